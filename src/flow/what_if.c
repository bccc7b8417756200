/* SPDX-License-Identifier: MIT */
/* The same measurement in changed blocks: same seed or same weights, nothing
 * trained again. A change that means nothing for a block is left out, as is one
 * whose block cannot be run. */
#include "flow/flow_model.h"

typedef struct row {
    tb_change what;
    double value; /* NaN: the block in the middle */
    const char *words;
} row;

static const row rows[] = {
    {TB_CHANGE_TO_BRANCH, 0,
     "norm moved from the lane onto the branch, a final norm if there was "
     "none"},
    {TB_CHANGE_TO_LANE, 0, "norm moved from the branch onto the lane"},
    {TB_CHANGE_SCALE, 0.5, "every branch times 0.5"},
    {TB_CHANGE_SCALE, 2, "every branch times 2"},
    {TB_CHANGE_CUT_ONE, __builtin_nan(""), "no skip in block"},
    {TB_CHANGE_CUT, 0, "no skip anywhere"},
};

/* Of the stack with the head. */
static tb_flow_change summary(const tb_flow *f, const char *words)
{
    const tb_flow_stack *s = &f->stacks[f->nstacks - 1];
    const tb_flow_row *all = f->rows + s->first;
    tb_flow_change out = {words, all[0].lane, all[0].total, all[0].total,
                          f->loss};
    for (size_t k = 0; k < s->nrows; k++)
        if (all[k].total < out.least_total)
            out.least_total = all[k].total;
    return out;
}

static bool can_be_left_out(tb_status s)
{
    return s == TB_ERR_INPUT || s == TB_ERR_ARG || s == TB_ERR_PARSE ||
           s == TB_ERR_SHAPE;
}

static tb_status one_change(tb_flow_box *box, const tb_block *b, const row *r,
                            const tb_flow_spec *spec, tb_flow_again again,
                            void *user)
{
    tb_ctx *ctx = box->arena.ctx;
    tb_flow *f = &box->flow, *other = NULL;
    size_t middle = (f->stacks[f->nstacks - 1].depth + 1) / 2;
    bool one = r->value != r->value;
    const char *words = r->words;
    tb_block *changed;
    tb_status s = tb_block_changed(ctx, b, r->what,
                                   one ? (double)middle : r->value, &changed);
    if (s != TB_OK || !changed)
        return s;
    if (one)
        words = tb_arena_printf(&box->arena, "%s %zu", words, middle);
    s = words ? again(user, changed, spec, &other) : TB_ERR_MEMORY;
    if (s == TB_OK)
        f->changes[f->nchanges++] = summary(other, words);
    if (can_be_left_out(s)) {
        tb_error_clear(ctx);
        s = TB_OK;
    }
    tb_flow_free(ctx, other);
    tb_block_destroy(ctx, changed);
    return s;
}

tb_status tb_flow_what_if(tb_flow *f, const tb_block *b,
                          const tb_flow_spec *spec, tb_flow_again again,
                          void *user)
{
    tb_flow_box *box = (tb_flow_box *)f;
    tb_flow_spec own = *spec;
    own.what_if = own.spectrum = own.weights = false;
    own.audit = NULL;
    own.alpha = false;
    f->changes =
        tb_arena_alloc(&box->arena, (TB_LEN(rows) + 1) * sizeof *f->changes);
    if (!f->changes)
        return TB_ERR_MEMORY;
    f->changes[f->nchanges++] = summary(f, "as it is");
    for (size_t i = 0; i < TB_LEN(rows); i++)
        TB_TRY(one_change(box, b, &rows[i], &own, again, user));
    return TB_OK;
}
