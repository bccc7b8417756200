/* SPDX-License-Identifier: MIT */
/* A model without weights, handed to the printer of the graph room. */
#include "graph/pytorch.h"
#include "model/parts.h"
#include "tollbooth/export.h"

static tb_py_start start_of(const tb_model *m, size_t view)
{
    static const tb_py_dist dists[] = {
        [TB_START_CONST] = TB_PY_CONST,
        [TB_START_NORMAL] = TB_PY_NORMAL,
        [TB_START_UNIFORM] = TB_PY_UNIFORM,
        [TB_START_ORTHOGONAL] = TB_PY_ORTHOGONAL,
        [TB_START_IDENTITY] = TB_PY_IDENTITY,
        [TB_START_ONEHOT] = TB_PY_ONEHOT,
    };
    const tb_start *s = &m->starts[view];
    return (tb_py_start){dists[s->kind], s->value, m->views[view].rule};
}

static tb_status part_of(const tb_model *m, tb_arena *a, size_t l,
                         tb_py_part *out)
{
    const tb_part *p = &m->parts[l];
    size_t n = (size_t)p->graph->nparams;
    tb_py_start *starts = tb_arena_alloc(a, (n + 1) * sizeof *starts);
    if (!starts)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        starts[i] = start_of(m, p->view[i]);
    *out = (tb_py_part){p->graph, starts};
    return TB_OK;
}

static tb_status print(tb_ctx *ctx, const tb_model *m, tb_arena *a, tb_buf *out)
{
    size_t n = m->nparts;
    tb_py_part *parts = tb_arena_alloc(a, n * sizeof *parts);
    if (!parts)
        return TB_ERR_MEMORY;
    for (size_t l = 0; l < n; l++)
        TB_TRY(part_of(m, a, l, &parts[l]));
    const tb_py_stack stack = {m->block, &m->sizes, parts};
    return tb_pytorch_print(ctx, &stack, out);
}

static tb_status own(tb_ctx *ctx, const tb_buf *b, char **out)
{
    TB_TRY(tb_buf_status(b));
    *out = tb_alloc(ctx, b->len + 1, 1);
    if (!*out)
        return TB_ERR_MEMORY;
    memcpy(*out, tb_buf_str(b), b->len + 1);
    return TB_OK;
}

tb_status tb_export_pytorch(tb_ctx *ctx, const tb_block *block,
                            const tb_settings *settings, char **text)
{
    tb_model *m;
    tb_arena a;
    tb_buf out;
    *text = NULL;
    TB_TRY(tb_model_create(ctx, block, settings, TB_F32, &m));
    tb_arena_init(&a, ctx);
    tb_buf_init(&out, ctx);
    tb_status s = print(ctx, m, &a, &out);
    if (s == TB_OK)
        s = own(ctx, &out, text);
    tb_buf_clear(&out);
    tb_arena_clear(&a);
    tb_model_destroy(m);
    return s;
}
