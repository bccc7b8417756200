/* SPDX-License-Identifier: MIT */
/* The faces of a shot: its panels side by side and below each other, its
 * sentences with their numbers, its checks. */
#include "pictures/shot_parts.h"

enum { GAP = 18, MARGIN = 14, TITLE = 40, WIDEST = 760, PHONE = 349 };

static const shot_panel *panel_at(const tb_shot *s, size_t i)
{
    return &SHOT_AT(s->panels, shot_panel, i);
}

/* --- sentences ------------------------------------------------------------ */

static const shot_number *number_called(const tb_shot *s, const char *id,
                                        size_t n)
{
    for (size_t i = 0; i < s->numbers.n; i++) {
        const shot_number *x = &SHOT_AT(s->numbers, shot_number, i);
        if (strlen(x->id) == n && memcmp(x->id, id, n) == 0)
            return x;
    }
    return NULL;
}

const char *shot_sentence(const tb_shot *s, tb_arena *a, size_t i)
{
    tb_buf b;
    tb_buf_init(&b, s->ctx);
    for (const char *p = SHOT_AT(s->says, const char *, i); *p;) {
        size_t n = *p == '{' ? strcspn(p, "}") : 0;
        const shot_number *x =
            n && p[n] ? number_called(s, p + 1, n - 1) : NULL;
        char text[TB_SHOW_CHARS];
        if (x)
            tb_buf_puts(&b, tb_show_number(x->value, text));
        else
            tb_buf_putc(&b, *p);
        p += x ? n + 1 : 1;
    }
    const char *text = b.failed ? NULL : tb_arena_strdup(a, tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

/* --- picture -------------------------------------------------------------- */

/* Where the next panel goes: x right of the last, y of this row, and the row's
 * bottom so far. */
typedef struct place {
    double x, y, bottom, right;
    size_t count;
    bool stacked; /* every panel begins a row */
} place;

static tb_status put_panel(const tb_shot *s, const shot_panel *p, place *at,
                           tb_scene *all)
{
    char prefix[24];
    tb_scene *part;
    TB_TRY(p->face->scene(s->ctx, p->data, &part));
    if (!p->beside || at->x == 0 || at->stacked) {
        at->x = 0;
        at->y = at->bottom + (at->count ? GAP : 0);
    }
    tb_format(prefix, sizeof prefix, "p%zu", at->count++);
    tb_scene_group(
        all, &(tb_style){.role = "panel", .id = prefix, .title = part->title});
    tb_scene_place(all, part, prefix, at->x, at->y);
    tb_scene_end(all);
    at->x += part->w + GAP;
    at->right = tb_max2(at->right, at->x - GAP);
    at->bottom = tb_max2(at->bottom, at->y + part->h);
    tb_scene_destroy(part);
    return TB_OK;
}

static const tb_style title_style = {.size = 17, .bold = true};

/* Above the panels, as wide as they or a little wider; on a phone in lines. */
static void put_title(const tb_shot *s, place *at, tb_scene *all)
{
    double needs = 2 * MARGIN + tb_text_width(s->title, 17, true);
    at->right = tb_max2(at->right, tb_min2(WIDEST, needs));
    const char *title =
        tb_shorten_px(&all->arena, s->title, at->right - 2 * MARGIN, 17, true);
    tb_scene_text(all, MARGIN, 26, title ? title : "", &title_style);
}

static tb_status draw(const tb_shot *s, bool stacked, tb_scene **out)
{
    tb_scene *all;
    place at = {.bottom = TITLE, .right = 320, .stacked = stacked};
    *out = NULL;
    TB_TRY(tb_scene_create(s->ctx, 100, 100, s->title, s->desc, &all));
    tb_status status = TB_OK;
    if (stacked)
        at.bottom = tb_scene_wrap(all, MARGIN, 26, PHONE - 2 * MARGIN, s->title,
                                  &title_style);
    for (size_t i = 0; i < s->panels.n && status == TB_OK; i++)
        status = put_panel(s, panel_at(s, i), &at, all);
    if (status != TB_OK)
        tb_scene_fail(all, status);
    if (!stacked)
        put_title(s, &at, all);
    tb_scene_resize(all, at.right, at.bottom);
    return tb_scene_done(all, out);
}

tb_status tb_shot_scene(const tb_shot *s, tb_scene **out)
{
    return draw(s, false, out);
}

tb_status tb_shot_svg(const tb_shot *s, const tb_svg *opt, tb_out *out)
{
    tb_scene *scene;
    tb_svg how = opt ? *opt : (tb_svg){0};
    if (!how.prefix)
        how.prefix = s->row->name;
    TB_TRY(draw(s, how.stacked, &scene));
    tb_status status = tb_scene_svg(scene, &how, out);
    tb_scene_destroy(scene);
    return status;
}

void shot_drawn(tb_shot *s, const shot_face *face, const void *data,
                const char *const *roles, size_t n, size_t *counts)
{
    tb_scene *scene = NULL;
    memset(counts, 0, n * sizeof *counts);
    if (s->status == TB_OK)
        s->status = face->scene(s->ctx, data, &scene);
    for (size_t i = 0; s->status == TB_OK && i < scene->count; i++)
        for (size_t k = 0; k < n; k++)
            counts[k] += scene->items[i].style.role &&
                         tb_streq(scene->items[i].style.role, roles[k]);
    tb_scene_destroy(scene);
}

/* --- terminal ------------------------------------------------------------- */

static tb_status words(const tb_shot *s, const tb_terminal *term, tb_out *out)
{
    tb_arena a;
    tb_status status = TB_OK;
    tb_arena_init(&a, s->ctx);
    for (size_t i = 0; i < s->says.n && status == TB_OK; i++) {
        const char *line = shot_sentence(s, &a, i);
        if (line)
            tb_term_wrap(&out->buf, term, 0, line);
        else
            status = TB_ERR_MEMORY;
    }
    for (size_t i = 0; i < s->checks.n && status == TB_OK; i++) {
        const shot_check *c = &SHOT_AT(s->checks, shot_check, i);
        const char *line =
            tb_arena_printf(&a, "%s %s", c->ok ? "ok  " : "FAIL", c->text);
        if (line)
            tb_term_wrap(&out->buf, term, 5, line);
        else
            status = TB_ERR_MEMORY;
    }
    tb_arena_clear(&a);
    return status;
}

tb_status tb_shot_term(const tb_shot *s, const tb_terminal *term, tb_out *out)
{
    tb_term_wrap(&out->buf, term, 2, s->title);
    for (size_t i = 0; i < s->panels.n; i++) {
        const shot_panel *p = panel_at(s, i);
        tb_buf_putc(&out->buf, '\n');
        TB_TRY(p->face->term(s->ctx, p->data, term, out));
    }
    tb_buf_putc(&out->buf, '\n');
    TB_TRY(words(s, term, out));
    return tb_buf_status(&out->buf);
}

/* --- tables --------------------------------------------------------------- */

tb_status tb_shot_html(const tb_shot *s, tb_out *out)
{
    for (size_t i = 0; i < s->panels.n; i++) {
        const shot_panel *p = panel_at(s, i);
        if (p->face->html)
            TB_TRY(p->face->html(s->ctx, p->data, out));
    }
    return tb_buf_status(&out->buf);
}

/* --- JSON ----------------------------------------------------------------- */

static void json_inputs(const tb_shot *s, tb_json *j)
{
    tb_json_array(j, "inputs");
    for (size_t i = 0; i < SHOT_INPUTS && s->row->input[i].name; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "name", s->row->input[i].name);
        tb_json_string(j, "value", s->value[i].text);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void json_numbers(const tb_shot *s, tb_json *j)
{
    tb_json_array(j, "numbers");
    for (size_t i = 0; i < s->numbers.n; i++) {
        const shot_number *x = &SHOT_AT(s->numbers, shot_number, i);
        char text[TB_SHOW_CHARS];
        tb_json_object(j, NULL);
        tb_json_string(j, "id", x->id);
        tb_json_string(j, "label", x->label);
        tb_json_number(j, "value", x->value);
        tb_json_string(j, "shown", tb_show_number(x->value, text));
        tb_json_end(j);
    }
    tb_json_end(j);
}

static void json_words(const tb_shot *s, tb_json *j)
{
    tb_json_array(j, "sentences");
    for (size_t i = 0; i < s->says.n; i++)
        tb_json_string(j, NULL, SHOT_AT(s->says, const char *, i));
    tb_json_end(j);
    tb_json_array(j, "checks");
    for (size_t i = 0; i < s->checks.n; i++) {
        const shot_check *c = &SHOT_AT(s->checks, shot_check, i);
        tb_json_object(j, NULL);
        tb_json_bool(j, "ok", c->ok);
        tb_json_string(j, "text", c->text);
        tb_json_end(j);
    }
    tb_json_end(j);
}

void tb_shot_json(const tb_shot *s, tb_json *j, const char *key)
{
    tb_json_object(j, key);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "shot", s->row->name);
    tb_json_string(j, "title", s->title);
    tb_json_string(j, "description", s->desc);
    json_inputs(s, j);
    json_numbers(s, j);
    json_words(s, j);
    tb_json_array(j, "panels");
    for (size_t i = 0; i < s->panels.n; i++) {
        const shot_panel *p = panel_at(s, i);
        tb_json_object(j, NULL);
        tb_json_string(j, "kind", p->face->kind);
        p->face->json(p->data, j);
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_json_end(j);
}

static void json_input(const tb_shot_input *in, tb_json *j)
{
    static const char *const kinds[] = {
        [TB_SHOT_NUMBER] = "number", [TB_SHOT_SWITCH] = "switch",
        [TB_SHOT_CHOICE] = "choice", [TB_SHOT_LIST] = "list",
        [TB_SHOT_MATRIX] = "matrix", [TB_SHOT_TEXT] = "text"};
    tb_json_object(j, NULL);
    tb_json_string(j, "name", in->name);
    tb_json_string(j, "label", in->label);
    tb_json_string(j, "kind", kinds[in->kind]);
    tb_json_string(j, "own", in->own);
    tb_json_number(j, "low", in->low);
    tb_json_number(j, "high", in->high);
    tb_json_number(j, "step", in->step);
    tb_json_bool(j, "log", in->log);
    tb_json_bool(j, "whole", in->whole);
    tb_json_string(j, "choices", in->choices);
    tb_json_int(j, "most", (int64_t)in->most);
    tb_json_end(j);
}

void tb_shots_json(tb_json *j, const char *key)
{
    tb_json_object(j, key);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_array(j, "shots");
    for (size_t i = 0; i < tb_shot_count(); i++) {
        size_t n;
        const tb_shot_input *in = tb_shot_inputs(i, &n);
        tb_json_object(j, NULL);
        tb_json_string(j, "name", tb_shot_name(i));
        tb_json_string(j, "about", tb_shot_about(i));
        tb_json_array(j, "inputs");
        for (size_t k = 0; k < n; k++)
            json_input(&in[k], j);
        tb_json_end(j);
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_json_end(j);
}
