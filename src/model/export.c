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

/* "layers.3.attn.q.weight" as "layers.*.attn.q.weight" */
static const char *any_layer(tb_arena *a, const char *name)
{
    size_t head = strcspn(name, "0123456789");
    size_t digits = strspn(name + head, "0123456789");
    return digits ? tb_arena_printf(a, "%.*s*%s", (int)head, name,
                                    name + head + digits)
                  : name;
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (tb_streq(names[i], name))
            return true;
    return false;
}

/* Names of the weights that keep to `rule`; layers must agree. */
static tb_status unit_of(const tb_model *m, tb_arena *a, tb_after rule,
                         tb_py_unit *out)
{
    const char **names = tb_arena_alloc(a, (m->nviews + 1) * sizeof *names);
    for (size_t pass = 0; names && pass < 2; pass++)
        for (size_t i = 0; i < m->nviews; i++) {
            const char *name = any_layer(a, m->views[i].name);
            if (!name)
                return TB_ERR_MEMORY;
            bool known = has_name(names, out->n, name);
            if (pass == 0 && m->after[i] == rule && !known)
                names[out->n++] = name;
            else if (pass == 1 && m->after[i] != rule && known)
                return TB_FAIL(m->ctx, TB_ERR_INPUT,
                               "export: after: treats %s otherwise than the "
                               "same weight of another layer",
                               m->views[i].name);
        }
    out->names = names;
    return names ? TB_OK : TB_ERR_MEMORY;
}

static tb_status print(tb_ctx *ctx, const tb_model *m, tb_arena *a, tb_buf *out)
{
    size_t n = m->nparts;
    tb_py_part *parts = tb_arena_alloc(a, n * sizeof *parts);
    if (!parts)
        return TB_ERR_MEMORY;
    for (size_t l = 0; l < n; l++)
        TB_TRY(part_of(m, a, l, &parts[l]));
    tb_py_stack stack = {.block = m->block, .sizes = &m->sizes, .parts = parts};
    TB_TRY(unit_of(m, a, TB_AFTER_COLUMNS, &stack.unit[0]));
    TB_TRY(unit_of(m, a, TB_AFTER_ROWS, &stack.unit[1]));
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
    tb_sizes sizes;
    tb_settings s = *settings;
    *text = NULL;
    TB_TRY(tb_sizes_resolve(ctx, block, settings, &sizes));
    /* only what learns one long text has no padding */
    s.padding = sizes.s.stack != TB_STACKS_DECODER;
    TB_TRY(tb_model_create(ctx, block, &s, TB_F32, &m));
    tb_arena_init(&a, ctx);
    tb_buf_init(&out, ctx);
    tb_status status = print(ctx, m, &a, &out);
    if (status == TB_OK)
        status = own(ctx, &out, text);
    tb_buf_clear(&out);
    tb_arena_clear(&a);
    tb_model_destroy(m);
    return status;
}
