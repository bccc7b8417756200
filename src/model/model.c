/* SPDX-License-Identifier: MIT */
/* A model from a block: its parts, and one table of views over the flat
 * parameter buffer. */
#include "model/parts.h"

enum { ALIGN = 16 }; /* elements: a view starts on a cache line */

double tb_elem_get(tb_dtype t, const void *x, size_t i)
{
    return t == TB_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

void tb_elem_set(tb_dtype t, void *x, size_t i, double v)
{
    if (t == TB_F64)
        ((double *)x)[i] = v;
    else
        ((float *)x)[i] = (float)v;
}

void *tb_elem_at(tb_dtype t, void *x, size_t i)
{
    return (char *)x + i * tb_dtype_size(t);
}

/* --- views --------------------------------------------------------------- */

/* Slot of `name` in the hash table: its view number + 1, or 0 where it would
 * go. */
static size_t *index_slot(const tb_model *m, const char *name)
{
    size_t i = tb_hash(name, strlen(name)) % m->nindex;
    while (m->index[i] && !tb_streq(m->views[m->index[i] - 1].name, name))
        i = (i + 1) % m->nindex;
    return &m->index[i];
}

const tb_view *tb_model_view(const tb_model *m, const char *name)
{
    size_t at = *index_slot(m, name);
    return at ? &m->views[at - 1] : NULL;
}

/* The elements of one view; of its whole section in the count of numbers. */
static tb_status view_place(tb_model *m, tb_view *v, size_t blocks)
{
    size_t end, numbers = v->role == TB_ROLE_BUFFER ? 0 : v->count;
    v->offset = m->nelements;
    if (!tb_add(m->nelements, v->count, &end) ||
        !tb_add(end, ALIGN - 1, &end) || end > SIZE_MAX / sizeof(double) ||
        !tb_mul(numbers, blocks, &numbers) ||
        !tb_add(m->nparameters, numbers, &m->nparameters))
        return TB_FAIL(m->ctx, TB_ERR_MEMORY,
                       "parameters: more than fits in "
                       "memory, at %s",
                       v->name);
    m->nelements = end / ALIGN * ALIGN;
    return TB_OK;
}

static bool same_shape(tb_shape a, tb_shape b)
{
    return a.kind == b.kind && a.width == b.width && a.height == b.height;
}

/* Layers have their scope before the name; of two stacks the other parts have
 * their side, but for what the model has once. */
static const char *view_name(tb_model *m, const tb_part *p, const tb_param *q)
{
    static const char *const sides[] = {
        [TB_SIDE_DECODER] = "decoder.", [TB_SIDE_ENCODER] = "encoder."};
    bool both = m->sizes.s.stack == TB_STACKS_BOTH;
    if (p->layer)
        return tb_arena_printf(&m->arena, "%s.%s", p->scope, q->name);
    return both && !q->shared
               ? tb_arena_printf(&m->arena, "%s%s", sides[p->side], q->name)
               : q->name;
}

/* The view of one param: new, or the embedding's for a head tied to it. Any
 * other name met twice is two weights that only read alike. */
static tb_status view_of(tb_model *m, tb_owner *owners, tb_part *p, int i)
{
    const tb_param *q = &p->graph->params[i];
    const char *name = view_name(m, p, q);
    if (!name)
        return TB_ERR_MEMORY;
    size_t *slot = index_slot(m, name);
    if (*slot && q->role != TB_ROLE_EMBEDDING)
        return tb_block_fail(m->ctx, m->block, q->pos,
                             "two parameters are called %s: give the named "
                             "one another name",
                             name);
    if (*slot) {
        p->view[i] = *slot - 1;
        if (same_shape(m->views[p->view[i]].shape, q->shape))
            return TB_OK;
        return TB_FAIL(m->ctx, TB_ERR_SHAPE, "%s: two shapes for one name",
                       name);
    }
    tb_view *v = &m->views[m->nviews];
    *v = (tb_view){.name = name,
                   .role = q->role,
                   .shape = q->shape,
                   .count = tb_shape_count(q->shape, 1, 1),
                   .layer = p->layer};
    owners[m->nviews] = (tb_owner){p->graph, i};
    p->view[i] = m->nviews++;
    *slot = m->nviews;
    return view_place(m, v, p->blocks);
}

/* Room for every param of every part and for their hash table. */
static tb_status views_reserve(tb_model *m, tb_owner **owners)
{
    size_t n = 0, bytes;
    for (size_t p = 0; p < m->nparts; p++)
        n += (size_t)m->parts[p].graph->nparams;
    m->nindex = 64;
    while (m->nindex < 2 * n)
        m->nindex *= 2;
    if (!tb_mul(n + 1, sizeof *m->views, &bytes))
        bytes = SIZE_MAX;
    m->views = tb_arena_alloc(&m->arena, bytes);
    m->index = tb_arena_alloc(&m->arena, m->nindex * sizeof *m->index);
    m->starts = tb_arena_alloc(&m->arena, (n + 1) * sizeof *m->starts);
    *owners = tb_alloc(m->ctx, n + 1, sizeof **owners);
    return m->views && m->index && m->starts && *owners ? TB_OK : TB_ERR_MEMORY;
}

static tb_status build_views(tb_model *m)
{
    tb_owner *owners = NULL;
    tb_status s = views_reserve(m, &owners);
    for (size_t p = 0; p < m->nparts && s == TB_OK; p++)
        for (int i = 0; i < m->parts[p].graph->nparams && s == TB_OK; i++)
            s = view_of(m, owners, &m->parts[p], i);
    if (s == TB_OK)
        s = tb_starts_resolve(m->ctx, &m->arena, m->block, &m->sizes, m->views,
                              owners, m->nviews, m->outline, m->starts);
    if (s == TB_OK)
        s = tb_after_resolve(m);
    tb_free(m->ctx, owners);
    return s;
}

/* --- life ---------------------------------------------------------------- */

/* The strings of the sizes outlive the caller's settings. */
static tb_status own_strings(tb_model *m)
{
    tb_settings *s = &m->sizes.s;
    if (s->norm && !(s->norm = tb_arena_strdup(&m->arena, s->norm)))
        return TB_ERR_MEMORY;
    if (s->init && !(s->init = tb_arena_strdup(&m->arena, s->init)))
        return TB_ERR_MEMORY;
    return TB_OK;
}

static tb_status build(tb_model *m, const tb_settings *given)
{
    TB_TRY(tb_sizes_resolve(m->ctx, m->block, given, &m->sizes));
    TB_TRY(own_strings(m));
    TB_TRY(tb_parts_build(m));
    return build_views(m);
}

static tb_status create(tb_ctx *ctx, const tb_block *b,
                        const tb_settings *given, tb_dtype dtype, bool outline,
                        tb_model **out)
{
    *out = NULL;
    tb_model *m = tb_alloc(ctx, 1, sizeof *m);
    if (!m)
        return TB_ERR_MEMORY;
    m->ctx = ctx;
    m->block = b;
    m->dtype = dtype == TB_BF16 ? TB_F32 : dtype;
    m->products = dtype;
    m->outline = outline;
    tb_arena_init(&m->arena, ctx);
    tb_status s = build(m, given);
    if (s != TB_OK) {
        tb_model_destroy(m);
        return s;
    }
    *out = m;
    return TB_OK;
}

tb_status tb_model_create(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *given, tb_dtype dtype,
                          tb_model **out)
{
    return create(ctx, b, given, dtype, false, out);
}

tb_status tb_model_outline(tb_ctx *ctx, const tb_block *b,
                           const tb_settings *given, tb_model **out)
{
    return create(ctx, b, given, TB_F32, true, out);
}

void tb_model_destroy(tb_model *m)
{
    if (!m)
        return;
    tb_bound_destroy(m->ctx, m->bound);
    tb_free(m->ctx, m->params);
    tb_arena_clear(&m->arena);
    tb_free(m->ctx, m);
}

tb_status tb_model_alloc(tb_model *m)
{
    if (!m->params)
        m->params = tb_alloc(m->ctx, m->nelements, tb_dtype_size(m->dtype));
    return m->params ? TB_OK : TB_ERR_MEMORY;
}

tb_status tb_model_init_view(tb_model *m, const tb_view *v, uint64_t seed,
                             void *out)
{
    TB_TRY(tb_start_fill(m->ctx, m->dtype, &m->starts[v - m->views], v->name,
                         v->shape, seed, out));
    tb_after_view(m, v, out);
    return TB_OK;
}

tb_status tb_model_init(tb_model *m, uint64_t seed)
{
    TB_TRY(tb_model_alloc(m));
    for (size_t i = 0; i < m->nviews; i++)
        TB_TRY(tb_model_init_view(
            m, &m->views[i], seed,
            tb_elem_at(m->dtype, m->params, m->views[i].offset)));
    return tb_model_profile_random(m, seed);
}

/* --- loss ---------------------------------------------------------------- */

void tb_model_smooth_labels(tb_model *m, double e)
{
    const tb_part *tail = &m->parts[tb_model_tail(m)];
    for (int i = 0; i < tail->graph->nnodes; i++)
        if (tail->graph->nodes[i].op == &tb_op_xent)
            tail->attr[i][TB_ATTR_XENT_SMOOTH] = e;
}
