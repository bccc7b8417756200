/* SPDX-License-Identifier: MIT */
/* What the tests of shots share: making one, its numbers, and what is drawn. */
#ifndef TEST_PICTURES_SHOT_HELP_H
#define TEST_PICTURES_SHOT_HELP_H

#include "test_pictures_demo.h"

#include "pictures/shot_parts.h"

static UNUSED tb_shot *make_shot(tb_test *T, const char *name, const char *set)
{
    tb_shot *s = NULL;
    if (tb_shot_create(T->ctx, name, set, &s) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s %s: %s", name, set ? set : "",
                     tb_error(T->ctx));
    for (size_t k = 0; s && k < s->checks.n; k++) {
        const shot_check *c = &SHOT_AT(s->checks, shot_check, k);
        if (!c->ok)
            tb_test_fail(T, __FILE__, __LINE__, "%s %s: %s", name,
                         set ? set : "", c->text);
    }
    return s;
}

static UNUSED double number_of(tb_test *T, const tb_shot *s, const char *id)
{
    for (size_t i = 0; i < s->numbers.n; i++) {
        const shot_number *n = &SHOT_AT(s->numbers, shot_number, i);
        if (tb_streq(n->id, id))
            return n->value;
    }
    tb_test_fail(T, __FILE__, __LINE__, "no number %s", id);
    return 0;
}

static UNUSED const void *panel_of(tb_test *T, const tb_shot *s,
                                   const char *kind)
{
    for (size_t i = 0; i < s->panels.n; i++) {
        const shot_panel *p = &SHOT_AT(s->panels, shot_panel, i);
        if (tb_streq(p->face->kind, kind))
            return p->data;
    }
    tb_test_fail(T, __FILE__, __LINE__, "no panel of kind %s", kind);
    return NULL;
}

/* Items with this role; with `id`: whose id ends in it, too. */
static UNUSED size_t roles(const tb_scene *s, const char *role, const char *id)
{
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++) {
        const tb_style *st = &s->items[i].style;
        if (!st->role || !tb_streq(st->role, role))
            continue;
        size_t have = st->id ? strlen(st->id) : 0, want = id ? strlen(id) : 0;
        n += have >= want &&
             (!want || memcmp(st->id + have - want, id, want) == 0);
    }
    return n;
}

static UNUSED const tb_item *item_called(tb_test *T, const tb_scene *s,
                                         const char *id)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].style.id && tb_streq(s->items[i].style.id, id))
            return &s->items[i];
    tb_test_fail(T, __FILE__, __LINE__, "nothing is called %s", id);
    return NULL;
}

static UNUSED size_t question_marks(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += *s == '?';
    return n;
}

/* Figure rules and terminal widths of a shot under other settings. In ASCII a
 * question mark is a question's, not a character that has no stand-in. */
static UNUSED void check_faces(tb_test *T, const char *name, const char *set)
{
    tb_scene *scene;
    tb_out *out;
    tb_shot *s = make_shot(T, name, set);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_shot_scene(s, &scene));
    check_figure(T, scene, out);
    if (scene->w > 760)
        tb_test_fail(T, __FILE__, __LINE__, "%s %s: %g px wide", name, set,
                     scene->w);
    for (size_t i = 0; i < scene->count; i++)
        TB_CHECK(T, scene->items[i].kind != TB_ITEM_TEXT ||
                        scene->items[i].style.size == 0 ||
                        scene->items[i].style.size >= 12);
    tb_scene_destroy(scene);
    static const int widths[] = {40, 80, 200};
    for (size_t w = 0, asked = 0; w < TB_LEN(widths); w++)
        for (int ascii = 0; ascii < 2; ascii++) {
            tb_terminal term = {.width = widths[w], .ascii = ascii};
            tb_out_reset(out);
            TB_OKAY(T, tb_shot_term(s, &term, out));
            check_terminal(T, tb_out_str(out), (size_t)widths[w], ascii);
            if (!ascii)
                asked = question_marks(tb_out_str(out));
            TB_CHECK(T, question_marks(tb_out_str(out)) == asked);
        }
    tb_out_destroy(out);
    tb_shot_destroy(s);
}

#endif
