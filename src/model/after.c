/* SPDX-License-Identifier: MIT */
/* What weights keep to: the rules of after:, at the start and after every step
 * of the optimizer (nGPT, Loshchilov et al. 2024, arXiv:2410.01131; FixNorm,
 * Nguyen, Salazar 2019, arXiv:1910.05895). */
#include "model/parts.h"

/* --- rules ---------------------------------------------------------------- */

static const struct {
    const char *name;
    tb_after rule;
} kinds[] = {{"unit_rows", TB_AFTER_ROWS}, {"unit_columns", TB_AFTER_COLUMNS}};

static tb_after rule_named(const char *name)
{
    size_t i = 0;
    while (i + 1 < TB_LEN(kinds) && !tb_streq(kinds[i].name, name))
        i++;
    return kinds[i].rule;
}

static tb_status apply_line(tb_model *m, const tb_init_rule *line, int glob)
{
    bool hit = false;
    for (size_t i = 0; i < m->nviews; i++) {
        const tb_view *v = &m->views[i];
        if (!tb_glob_match(line->globs[glob], v))
            continue;
        if (v->shape.kind != TB_SHAPE_MATRIX)
            return tb_block_fail(m->ctx, m->block, line->rule->pos,
                                 "%s: needs a matrix, %s is none",
                                 line->rule->name, v->name);
        m->after[i] = rule_named(line->rule->name);
        hit = true;
    }
    const char *g = line->globs[glob];
    bool other = m->sizes.s.stack != TB_STACKS_BOTH && tb_init_of_side(g);
    if (hit || other || (m->outline && tb_init_of_layer(g)))
        return TB_OK;
    return tb_block_fail(m->ctx, m->block, line->pos, "'%s' matches no weight",
                         line->globs[glob]);
}

/* "normal(0.02), unit_rows" */
static tb_status show(tb_model *m, size_t view)
{
    tb_view *v = &m->views[view];
    for (size_t i = 0; i < TB_LEN(kinds); i++)
        if (kinds[i].rule == m->after[view])
            v->rule =
                tb_arena_printf(&m->arena, "%s, %s", v->rule, kinds[i].name);
    return v->rule ? TB_OK : TB_ERR_MEMORY;
}

tb_status tb_after_resolve(tb_model *m)
{
    const tb_block *b = m->block;
    m->after = tb_arena_alloc(&m->arena, (m->nviews + 1) * sizeof *m->after);
    if (!m->after)
        return TB_ERR_MEMORY;
    for (int i = 0; i < b->nafter; i++)
        for (int g = 0; g < b->after[i].nglobs; g++)
            TB_TRY(apply_line(m, &b->after[i], g));
    for (size_t i = 0; i < m->nviews; i++)
        TB_TRY(show(m, i));
    return TB_OK;
}

/* --- lengths -------------------------------------------------------------- */

/** Element i of line k stands at k * line + i * step. */
typedef struct lines {
    tb_dtype dtype;
    void *w;
    size_t count, n, line, step, chunks;
} lines;

static lines lines_of(const tb_model *m, const tb_view *v, tb_after rule,
                      void *w)
{
    size_t height = v->shape.height, width = v->shape.width;
    if (rule == TB_AFTER_COLUMNS)
        return (lines){m->dtype, w, width, height, 1, width, 0};
    return (lines){m->dtype, w, height, width, width, 1, 0};
}

/* A line of zeros has no direction and stays. The largest element goes first:
 * squares may overflow. */
static void to_unit(const lines *l, size_t k)
{
    double big = 0, sum = 0;
    for (size_t i = 0; i < l->n; i++) {
        double x = tb_elem_get(l->dtype, l->w, k * l->line + i * l->step);
        big = tb_fabs(x) > big ? tb_fabs(x) : big;
    }
    if (!(big > 0) || !tb_isfinite(big))
        return;
    for (size_t i = 0; i < l->n; i++) {
        double x = tb_elem_get(l->dtype, l->w, k * l->line + i * l->step) / big;
        sum += x * x;
    }
    double root = tb_sqrt(sum);
    for (size_t i = 0; i < l->n; i++) {
        size_t at = k * l->line + i * l->step;
        double x = tb_elem_get(l->dtype, l->w, at) / big;
        tb_elem_set(l->dtype, l->w, at, x / root);
    }
}

static void chunk(void *arg, size_t c)
{
    const lines *l = arg;
    size_t end = tb_chunk_at(l->count, l->chunks, c + 1);
    for (size_t k = tb_chunk_at(l->count, l->chunks, c); k < end; k++)
        to_unit(l, k);
}

void tb_after_view(const tb_model *m, const tb_view *v, void *w)
{
    tb_after rule = m->after[v - m->views];
    if (rule == TB_AFTER_NOTHING)
        return;
    lines l = lines_of(m, v, rule, w);
    l.chunks = tb_chunks(l.count, 64);
    tb_parallel(m->ctx, l.chunks, chunk, &l);
}

void tb_model_after(tb_model *m)
{
    for (size_t i = 0; i < m->nviews; i++)
        tb_after_view(m, &m->views[i],
                      tb_elem_at(m->dtype, m->params, m->views[i].offset));
}
