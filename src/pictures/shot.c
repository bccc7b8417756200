/* SPDX-License-Identifier: MIT */
/* The table of shots, their numbers, and their three faces. */
#include "pictures/shot_parts.h"

static const shot_row *const rows[] = {&shot_batchnorm};

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

const char *tb_shot_inputs(size_t i)
{
    return rows[i]->inputs;
}

/* --- numbers -------------------------------------------------------------- */

static int input_of(const shot_row *row, const char *name)
{
    for (int i = 0; i < SHOT_INPUTS && row->input[i].name; i++)
        if (tb_streq(row->input[i].name, name))
            return i;
    return -1;
}

const tb_eval_value *shot_value(const tb_shot *s, const char *name)
{
    return &s->value[input_of(s->row, name)];
}

tb_status shot_whole(const tb_shot *s, const char *name, size_t i, size_t low,
                     size_t high, size_t *out)
{
    double v = shot_value(s, name)->data[i];
    bool fits = v >= (double)low && v <= (double)high;
    *out = fits ? (size_t)v : 0;
    if (fits && (double)*out == v)
        return TB_OK;
    return TB_FAIL(s->ctx, TB_ERR_INPUT,
                   "set %s: got %g, wanted a whole number from %zu to %zu",
                   name, v, low, high);
}

void *shot_alloc(tb_shot *s, size_t n, size_t size)
{
    size_t bytes;
    if (!tb_mul(n, size, &bytes))
        bytes = SIZE_MAX; /* refused by the arena */
    return tb_arena_alloc(&s->arena, bytes);
}

/* The caller's arrays live as long as the call. */
static tb_status take(tb_shot *s, const tb_eval_value *set)
{
    int i = input_of(s->row, set->name);
    if (i < 0)
        return TB_FAIL(s->ctx, TB_ERR_INPUT,
                       "set %s: not used by %s; there are: %s", set->name,
                       s->row->name, s->row->inputs);
    if (set->rank != s->row->input[i].rank)
        return TB_FAIL(s->ctx, TB_ERR_SHAPE,
                       "set %s: got %d lists deep, wanted %d", set->name,
                       set->rank, s->row->input[i].rank);
    for (int k = 0; k < set->rank; k++)
        if (!set->dims[k])
            return TB_FAIL(s->ctx, TB_ERR_SHAPE, "set %s: got an empty list",
                           set->name);
    s->value[i] = *set;
    return TB_OK;
}

static tb_status take_all(tb_shot *s, size_t nsets, const tb_eval_value *sets)
{
    for (int i = 0; i < SHOT_INPUTS && s->row->input[i].name; i++) {
        const shot_input *in = &s->row->input[i];
        s->value[i] = (tb_eval_value){in->name, in->rank, {0}, in->data};
        memcpy(s->value[i].dims, in->dims, sizeof in->dims);
    }
    for (size_t i = 0; i < nsets; i++)
        TB_TRY(take(s, &sets[i]));
    return TB_OK;
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

tb_status tb_shot_create(tb_ctx *ctx, const char *name, size_t nsets,
                         const tb_eval_value *sets, tb_shot **out)
{
    const shot_row *row;
    *out = NULL;
    TB_TRY(find(ctx, name, &row));
    tb_shot *s = tb_alloc(ctx, 1, sizeof *s);
    if (!s)
        return TB_ERR_MEMORY;
    *s = (tb_shot){.ctx = ctx, .row = row};
    tb_arena_init(&s->arena, ctx);
    tb_status status = take_all(s, nsets, sets);
    if (status == TB_OK)
        status = row->build(s);
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

/* --- faces ---------------------------------------------------------------- */

tb_status tb_shot_svg(const tb_shot *s, tb_theme theme, tb_out *out)
{
    tb_scene *scene;
    const tb_svg how = {.prefix = s->row->name, .theme = theme};
    TB_TRY(tb_chart_scene(s->ctx, &s->chart, &scene));
    tb_status status = tb_scene_svg(scene, &how, out);
    tb_scene_destroy(scene);
    return status;
}

tb_status tb_shot_term(const tb_shot *s, const tb_terminal *term, tb_out *out)
{
    return tb_chart_term(s->ctx, &s->chart, term, out);
}

void tb_shot_json(const tb_shot *s, tb_json *j, const char *key)
{
    const tb_chart *c = &s->chart;
    tb_json_object(j, key);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "shot", s->row->name);
    tb_json_string(j, "title", c->title);
    tb_json_string(j, "description", c->desc);
    tb_json_string(j, "x_label", c->x_label);
    tb_json_string(j, "y_label", c->y_label);
    tb_json_array(j, "series");
    for (size_t i = 0; i < c->count; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "label", c->series[i].label);
        tb_json_tensor(j, "x", TB_F64, c->series[i].x, 1, &c->series[i].n);
        tb_json_tensor(j, "y", TB_F64, c->series[i].y, 1, &c->series[i].n);
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_json_end(j);
}
