/* SPDX-License-Identifier: MIT */
/* The table of shots, their life, and what a shot leaves while it is built. */
#include "pictures/shot_parts.h"

#define SHOT_ROW(name) &shot_##name,
static const shot_row *const rows[] = {SHOTS(SHOT_ROW)};

size_t tb_shot_count(void)
{
    return TB_LEN(rows);
}

const char *tb_shot_name(size_t i)
{
    return rows[i]->name;
}

const char *tb_shot_about(size_t i)
{
    return rows[i]->about;
}

const tb_shot_input *tb_shot_inputs(size_t i, size_t *n)
{
    *n = 0;
    while (*n < SHOT_INPUTS && rows[i]->input[*n].name)
        ++*n;
    return rows[i]->input;
}

/* --- life ----------------------------------------------------------------- */

static tb_status find(tb_ctx *ctx, const char *name, const shot_row **out)
{
    const char *names[TB_LEN(rows)], *near;
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        names[i] = rows[i]->name;
        if (tb_streq(names[i], name)) {
            *out = rows[i];
            return TB_OK;
        }
    }
    near = tb_nearest(name, names, TB_LEN(rows));
    return TB_FAIL(ctx, TB_ERR_ARG, "there is no picture of %s%s%s", name,
                   near ? "; did you mean " : "", near ? near : "");
}

/* On one thread: what a shot computes is too small to be worth two. */
static tb_status build(tb_shot *s, const char *settings)
{
    int threads = tb_ctx_thread_limit(s->ctx);
    TB_TRY(shot_read(s, settings));
    tb_ctx_threads(s->ctx, 1);
    tb_status status = s->row->build(s);
    tb_ctx_threads(s->ctx, threads);
    return status == TB_OK ? s->status : status;
}

tb_status tb_shot_create(tb_ctx *ctx, const char *name, const char *settings,
                         tb_shot **out)
{
    const shot_row *row = NULL;
    *out = NULL;
    TB_TRY(find(ctx, name, &row));
    tb_shot *s = tb_alloc(ctx, 1, sizeof *s);
    if (!s)
        return TB_ERR_MEMORY;
    *s = (tb_shot){
        .ctx = ctx, .row = row, .title = row->name, .desc = row->about};
    tb_arena_init(&s->arena, ctx);
    tb_status status = build(s, settings);
    if (status == TB_OK)
        *out = s;
    else
        tb_shot_destroy(s);
    return status;
}

void tb_shot_destroy(tb_shot *s)
{
    if (!s)
        return;
    tb_arena_clear(&s->arena);
    tb_free(s->ctx, s);
}

bool tb_shot_ok(const tb_shot *s)
{
    for (size_t i = 0; i < s->checks.n; i++)
        if (!SHOT_AT(s->checks, shot_check, i).ok)
            return false;
    return true;
}

tb_status tb_shot_refused(const tb_shot *s)
{
    return s->refused;
}

/* --- what it leaves ------------------------------------------------------- */

void *shot_alloc(tb_shot *s, size_t n, size_t size)
{
    size_t bytes;
    if (!tb_mul(n, size, &bytes))
        bytes = SIZE_MAX; /* refused by the arena */
    void *p = tb_arena_alloc(&s->arena, bytes);
    if (!p && s->status == TB_OK)
        s->status = TB_ERR_MEMORY;
    return p;
}

char *shot_text(tb_shot *s, const char *fmt, ...)
{
    tb_buf b;
    va_list ap;
    tb_buf_init(&b, s->ctx);
    va_start(ap, fmt);
    tb_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    char *text = b.failed ? NULL : tb_arena_strdup(&s->arena, tb_buf_str(&b));
    tb_buf_clear(&b);
    if (!text && s->status == TB_OK)
        s->status = TB_ERR_MEMORY;
    return text;
}

tb_status shot_eval(tb_shot *s, const tb_eval *e, size_t n, double *out)
{
    tb_eval_result *r;
    TB_TRY(tb_eval_run(s->ctx, e, &r));
    memcpy(out, r->y.data, n * sizeof *out);
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

/* Room for one more element; NULL once the shot failed. */
static void *more(tb_shot *s, shot_list *l, size_t size)
{
    if (s->status != TB_OK)
        return NULL;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        void *at = shot_alloc(s, cap, size);
        if (!at)
            return NULL;
        if (l->n)
            memcpy(at, l->at, l->n * size);
        l->at = at;
        l->cap = cap;
    }
    return (char *)l->at + size * l->n++;
}

void shot_title(tb_shot *s, const char *title, const char *desc)
{
    s->title = title;
    s->desc = desc;
    if ((!title || !desc) && s->status == TB_OK)
        s->status = TB_ERR_MEMORY;
}

static void add_panel(tb_shot *s, const shot_face *face, const void *data,
                      bool beside)
{
    shot_panel *p = more(s, &s->panels, sizeof *p);
    if (p)
        *p = (shot_panel){face, data, beside};
}

void shot_below(tb_shot *s, const shot_face *face, const void *data)
{
    add_panel(s, face, data, false);
}

void shot_beside(tb_shot *s, const shot_face *face, const void *data)
{
    add_panel(s, face, data, true);
}

void shot_tell(tb_shot *s, const char *id, const char *label, double value)
{
    shot_number *n = more(s, &s->numbers, sizeof *n);
    if (n)
        *n = (shot_number){shot_text(s, "%s", id), shot_text(s, "%s", label),
                           value};
}

void shot_say(tb_shot *s, const char *sentence)
{
    const char **t = more(s, &s->says, sizeof *t);
    if (t)
        *t = shot_text(s, "%s", sentence ? sentence : "");
}

void shot_check_that(tb_shot *s, bool ok, const char *fmt, ...)
{
    shot_check *c = more(s, &s->checks, sizeof *c);
    if (!c)
        return;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    tb_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    *c = (shot_check){ok, shot_text(s, "%s", text)};
}
