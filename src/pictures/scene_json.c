/* SPDX-License-Identifier: MIT */
/* A scene as JSON: every item in drawing order, with what another renderer or
 * a test needs. Members that are not set are left out. */
#include "pictures/scene.h"

static const char *const kinds[] = {
    [TB_ITEM_RECT] = "rect",     [TB_ITEM_PATH] = "path",
    [TB_ITEM_CIRCLE] = "circle", [TB_ITEM_TEXT] = "text",
    [TB_ITEM_GROUP] = "group",   [TB_ITEM_END] = "end"};

static void put_word(tb_json *j, const char *key, const char *word)
{
    if (word)
        tb_json_string(j, key, word);
}

static void put_tone(tb_json *j, const char *key, tb_tone tone)
{
    if (tone != TB_TONE_NONE)
        tb_json_string(j, key, tb_tone_at(tone)->name);
}

static void put_stroke(const tb_style *st, tb_json *j)
{
    double length[4], line = st->line > 0 ? st->line : TB_LINE_WIDTH;
    size_t n = tb_dash_lengths(st->dash, line, length);
    put_tone(j, "stroke", st->stroke);
    if (st->stroke == TB_TONE_NONE)
        return;
    tb_json_number(j, "line", line);
    if (n)
        tb_json_tensor(j, "dash", TB_F64, length, 1, &n);
}

static void put_style(const tb_style *st, tb_json *j)
{
    put_word(j, "role", st->role);
    put_word(j, "id", st->id);
    put_word(j, "title", st->title);
    put_tone(j, "fill", st->fill);
    put_stroke(st, j);
    if (st->round > 0)
        tb_json_number(j, "round", st->round);
    if (st->alpha > 0 && st->alpha < 1)
        tb_json_number(j, "alpha", st->alpha);
}

static void put_size(const tb_item *it, tb_json *j)
{
    tb_json_number(j, "width", it->w);
    tb_json_number(j, "height", it->h);
}

static void put_radius(const tb_item *it, tb_json *j)
{
    tb_json_number(j, "r", it->w);
}

static void put_points(const tb_item *it, tb_json *j)
{
    const size_t dims[] = {it->n, 2};
    tb_json_tensor(j, "points", TB_F64, it->xy, 2, dims);
    tb_json_bool(j, "closed", it->closed);
}

static void put_text(const tb_item *it, tb_json *j)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    const tb_style *st = &it->style;
    tb_json_string(j, "text", it->text);
    tb_json_number(j, "size", st->size > 0 ? st->size : TB_FONT_SIZE);
    tb_json_string(j, "anchor", anchors[st->anchor]);
    tb_json_number(j, "room", tb_item_text_box(it).w);
    if (st->bold)
        tb_json_bool(j, "bold", true);
    if (st->italic)
        tb_json_bool(j, "italic", true);
    if (st->mono)
        tb_json_bool(j, "mono", true);
}

static void put_item(const tb_item *it, tb_json *j)
{
    static void (*const rest[])(const tb_item *,
                                tb_json *) = {[TB_ITEM_RECT] = put_size,
                                              [TB_ITEM_PATH] = put_points,
                                              [TB_ITEM_CIRCLE] = put_radius,
                                              [TB_ITEM_TEXT] = put_text};
    bool drawn = (size_t)it->kind < TB_LEN(rest);
    tb_json_object(j, NULL);
    tb_json_string(j, "kind", kinds[it->kind]);
    put_style(&it->style, j);
    if (drawn && it->kind != TB_ITEM_PATH) {
        tb_json_number(j, "x", it->x);
        tb_json_number(j, "y", it->y);
    }
    if (drawn)
        rest[it->kind](it, j);
    tb_json_end(j);
}

static void put_tones(tb_json *j)
{
    tb_json_array(j, "tones");
    for (int t = TB_TONE_NONE + 1; t < TB_TONE_COUNT; t++) {
        const tb_tone_row *row = tb_tone_at((tb_tone)t);
        tb_json_object(j, NULL);
        tb_json_string(j, "name", row->name);
        tb_json_string(j, "light", row->light);
        tb_json_string(j, "dark", row->dark);
        tb_json_end(j);
    }
    tb_json_end(j);
}

void tb_scene_json(const tb_scene *s, tb_json *j, const char *key)
{
    tb_json_object(j, key);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "title", s->title);
    tb_json_string(j, "description", s->desc);
    tb_json_number(j, "width", s->w);
    tb_json_number(j, "height", s->h);
    put_tones(j);
    tb_json_array(j, "items");
    for (size_t i = 0; i < s->count; i++)
        put_item(&s->items[i], j);
    for (size_t i = 0; i < s->depth; i++)
        put_item(&(tb_item){.kind = TB_ITEM_END}, j);
    tb_json_end(j);
    tb_json_end(j);
}
