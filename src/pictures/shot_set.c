/* SPDX-License-Identifier: MIT */
/* Settings of a shot, "N=24,x=[1,2,3],F=relu": one writing for the command
 * line, the page's address and the rows' own values. */
#include "pictures/shot_parts.h"

typedef struct reader {
    tb_shot *s;
    const tb_shot_input *in;
    const char *at, *end; /* the value */
} reader;

static void blanks(reader *r)
{
    while (r->at < r->end && *r->at == ' ')
        r->at++;
}

static bool eat(reader *r, char c)
{
    blanks(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    blanks(r);
    return true;
}

static tb_status bad(const reader *r, const char *from, const char *wanted)
{
    return TB_FAIL(r->s->ctx, TB_ERR_INPUT, "set %s: got \"%.*s\", wanted %s",
                   r->in->name, (int)(r->end - from), from, wanted);
}

/* --- values --------------------------------------------------------------- */

static tb_status number(reader *r, double *out)
{
    const tb_shot_input *in = r->in;
    const char *from = r->at;
    size_t n = tb_double_parse(r->at, (size_t)(r->end - r->at), out);
    if (!n)
        return bad(r, from, "a number");
    r->at += n;
    bool whole = in->whole || in->kind == TB_SHOT_SWITCH;
    if (*out >= in->low && *out <= in->high &&
        (!whole || *out == (double)(int64_t)*out))
        return TB_OK;
    return TB_FAIL(r->s->ctx, TB_ERR_INPUT,
                   "set %s: got %g, wanted %s from %g to %g", in->name, *out,
                   whole ? "a whole number" : "a number", in->low, in->high);
}

static tb_status too_long(const reader *r)
{
    return TB_FAIL(r->s->ctx, TB_ERR_SHAPE,
                   "set %s: wanted 1 to %zu elements in a list", r->in->name,
                   r->in->most);
}

/* [1,2,3] appended to data, which has room for `most` more. */
static tb_status list(reader *r, double *data, size_t *n)
{
    const char *from = r->at;
    *n = 0;
    if (!eat(r, '['))
        return bad(r, from, "a list as [1,2,3]");
    do {
        if (*n == r->in->most || eat(r, ']'))
            return too_long(r);
        TB_TRY(number(r, &data[(*n)++]));
    } while (eat(r, ','));
    return eat(r, ']') ? TB_OK : bad(r, from, "a list as [1,2,3]");
}

static tb_status matrix(reader *r, double *data, shot_value *v)
{
    const char *from = r->at;
    size_t n;
    if (!eat(r, '['))
        return bad(r, from, "lists as [[1,2],[3,4]]");
    do {
        if (v->rows == r->in->most)
            return too_long(r);
        TB_TRY(list(r, data + v->rows * v->n, &n));
        if (v->rows++ && n != v->n)
            return TB_FAIL(r->s->ctx, TB_ERR_SHAPE,
                           "set %s: got rows of %zu and %zu", r->in->name, v->n,
                           n);
        v->n = n;
    } while (eat(r, ','));
    return eat(r, ']') ? TB_OK : bad(r, from, "lists as [[1,2],[3,4]]");
}

static tb_status word(reader *r, shot_value *v)
{
    size_t n = (size_t)(r->end - r->at);
    const char *p = r->in->choices;
    for (v->choice = 0; *p; v->choice++) {
        size_t w = strcspn(p, "|");
        if (w == n && memcmp(p, r->at, n) == 0) {
            r->at = r->end;
            return TB_OK;
        }
        p += w + (p[w] == '|');
    }
    return bad(r, r->at, r->in->choices);
}

static tb_status value(reader *r, shot_value *v)
{
    const char *from = r->at;
    size_t most = r->in->most ? r->in->most : 1;
    double *data = shot_alloc(r->s, most * most, sizeof *data);
    if (!data)
        return TB_ERR_MEMORY;
    *v = (shot_value){.data = data, .rows = 1, .n = 1};
    v->text = tb_arena_strndup(&r->s->arena, from, (size_t)(r->end - from));
    if (!v->text)
        return TB_ERR_MEMORY;
    switch (r->in->kind) {
    case TB_SHOT_TEXT:
        return TB_OK;
    case TB_SHOT_CHOICE:
        return word(r, v);
    case TB_SHOT_LIST:
        TB_TRY(list(r, data, &v->n));
        break;
    case TB_SHOT_MATRIX:
        v->rows = 0;
        TB_TRY(matrix(r, data, v));
        break;
    case TB_SHOT_NUMBER:
    case TB_SHOT_SWITCH:
        TB_TRY(number(r, data));
        break;
    }
    blanks(r);
    return r->at == r->end ? TB_OK : bad(r, from, "nothing after the value");
}

/* --- names ---------------------------------------------------------------- */

static tb_status unknown(tb_shot *s, const char *name, size_t n)
{
    const char *names[SHOT_INPUTS];
    tb_buf all;
    size_t count = 0;
    tb_buf_init(&all, s->ctx);
    for (; count < SHOT_INPUTS && s->row->input[count].name; count++) {
        names[count] = s->row->input[count].name;
        tb_buf_printf(&all, " %s", names[count]);
    }
    const char *word = tb_arena_strndup(&s->arena, name, n);
    const char *near = word ? tb_nearest(word, names, count) : NULL;
    tb_status status = TB_FAIL(
        s->ctx, TB_ERR_INPUT, "set %s: not an input of %s; %s%s%sthere are:%s",
        word ? word : "", s->row->name, near ? "did you mean " : "",
        near ? near : "", near ? "? " : "", tb_buf_str(&all));
    tb_buf_clear(&all);
    return status;
}

/* Where the value at p ends: equations hold commas and semicolons, lists hold
 * commas in brackets. */
static const char *value_end(const char *p, tb_shot_kind kind)
{
    if (kind == TB_SHOT_TEXT)
        return p + strcspn(p, "&");
    for (int depth = 0; *p && *p != ';' && *p != '&'; p++) {
        depth += (*p == '[') - (*p == ']');
        if (*p == ',' && depth <= 0)
            break;
    }
    return p;
}

static tb_status one(tb_shot *s, const char **at)
{
    const char *name = *at;
    size_t n = strcspn(name, "=,;&"), k = n, i = 0;
    if (name[n] != '=')
        return TB_FAIL(s->ctx, TB_ERR_INPUT,
                       "set: got \"%.*s\", wanted NAME=VALUE", (int)n, name);
    while (k && name[k - 1] == ' ')
        k--;
    for (; i < SHOT_INPUTS && s->row->input[i].name; i++)
        if (strlen(s->row->input[i].name) == k &&
            memcmp(s->row->input[i].name, name, k) == 0)
            break;
    if (i == SHOT_INPUTS || !s->row->input[i].name)
        return unknown(s, name, k);
    reader r = {s, &s->row->input[i], name + n + 1, NULL};
    *at = r.end = value_end(r.at, r.in->kind);
    while (r.end > r.at && r.end[-1] == ' ')
        r.end--;
    blanks(&r);
    TB_TRY(value(&r, &s->value[i]));
    s->value[i].set = true;
    return TB_OK;
}

tb_status shot_read(tb_shot *s, const char *settings)
{
    for (size_t i = 0; i < SHOT_INPUTS && s->row->input[i].name; i++) {
        const tb_shot_input *in = &s->row->input[i];
        reader r = {s, in, in->own, in->own + strlen(in->own)};
        TB_TRY(value(&r, &s->value[i]));
    }
    for (const char *p = settings ? settings : ""; *p;) {
        p += strspn(p, " ,;&");
        if (*p)
            TB_TRY(one(s, &p));
    }
    return TB_OK;
}

/* --- reading them --------------------------------------------------------- */

const shot_value *shot_get(const tb_shot *s, const char *name)
{
    size_t i = 0;
    while (!tb_streq(s->row->input[i].name, name))
        i++;
    return &s->value[i];
}

double shot_num(const tb_shot *s, const char *name)
{
    return shot_get(s, name)->data[0];
}

size_t shot_whole(const tb_shot *s, const char *name)
{
    return (size_t)shot_num(s, name);
}

bool shot_on(const tb_shot *s, const char *name)
{
    return shot_num(s, name) != 0;
}

size_t shot_choice(const tb_shot *s, const char *name)
{
    return shot_get(s, name)->choice;
}
