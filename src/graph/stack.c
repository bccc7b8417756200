/* SPDX-License-Identifier: MIT */
/* Whole graphs: one layer, the stem below the stack, the tail above it, and
 * the expression of eval. */
#include "graph/build.h"

/* What the sublayers are where the text does not say; with rotary positions
 * the first line is the second. */
static const char attn_plain[] = "attn(x) = o(mha(q(x), k(x), v(x)))\n";
static const char attn_rope[] =
    "attn(x) = o(mha(rope(q(x)), rope(k(x)), v(x)))\n";
static const char rest_text[] =
    "cross(x) = o(mha(q(x), k(memory), v(memory)))\n"
    "ffn(x) = down(gelu(up(x)))\n";

/* A short text that expands without end is stopped before it fills memory. */
static size_t steps_allowed(const tb_block *b)
{
    size_t n = TB_STEPS_FREE + 8 * strlen(b->source);
    return n < TB_STEPS_MAX ? n : TB_STEPS_MAX;
}

tb_status tb_build_begin(tb_builder *b, tb_ctx *ctx, tb_arena *arena,
                         const tb_block *block, const tb_sizes *sizes,
                         tb_stack stack)
{
    *b = (tb_builder){.ctx = ctx,
                      .arena = arena,
                      .block = block,
                      .sizes = sizes,
                      .causal = sizes->s.causal && stack != TB_STACK_ENCODER,
                      .stack = stack,
                      .keep = {-1, -1},
                      .steps_max = steps_allowed(block),
                      .owner = "",
                      .region = -1};
    b->g = TB_NEW(arena, tb_graph);
    b->def_calls = tb_arena_alloc(arena, (size_t)block->ndefs + 1);
    if (!b->g || !b->def_calls)
        return TB_ERR_MEMORY;
    b->g->arena = arena;
    b->g->block = block;
    return TB_OK;
}

/* The prelude lives only while a graph is built: nodes keep no pointer into
 * it but names, which are copied. */
static tb_status with_prelude(tb_builder *b,
                              tb_status (*fn)(tb_builder *, const void *),
                              const void *arg)
{
    tb_block *prelude;
    bool rope = b->sizes->s.positions == TB_POSITIONS_ROPE;
    char text[256];
    size_t n = tb_format(text, sizeof text, "%s%s",
                         rope ? attn_rope : attn_plain, rest_text);
    TB_TRY(
        tb_block_parse(b->ctx, "prelude", text, n, TB_PARSE_BLOCK, &prelude));
    b->prelude = prelude;
    tb_status s = fn(b, arg);
    tb_block_destroy(b->ctx, prelude);
    b->prelude = NULL;
    return s;
}

tb_status tb_build_output(tb_builder *b, const char *name, int node)
{
    tb_graph *g = b->g;
    TB_TRY(TB_GROW(b, g->outputs, g->noutputs, b->cap_outputs, tb_output));
    g->outputs[g->noutputs++] = (tb_output){name, node};
    return TB_OK;
}

/* --- streams ------------------------------------------------------------- */

bool tb_section_serves(const tb_block *b, const tb_section *s,
                       const tb_sizes *sizes, tb_stack stack)
{
    const char *role = stack == TB_STACK_ENCODER ? "encoder" : "decoder";
    if (!s->role)
        return true;
    if (!tb_streq(s->role, role))
        return false;
    for (int i = 0; i < b->nsections && sizes->s.stack != TB_STACKS_BOTH; i++)
        if (b->sections[i].kind == s->kind && !b->sections[i].role)
            return false;
    return true;
}

static const tb_section *find_section(const tb_builder *b, tb_section_kind kind)
{
    for (int i = 0; i < b->block->nsections; i++) {
        const tb_section *s = &b->block->sections[i];
        if (s->kind == kind &&
            tb_section_serves(b->block, s, b->sizes, b->stack))
            return s;
    }
    return NULL;
}

/* --- stem ---------------------------------------------------------------- */

static tb_status embedding(tb_builder *b, const char *name, size_t rows,
                           int *node)
{
    size_t d = b->sizes->s.width;
    return tb_build_param(b, name, "weight", TB_ROLE_EMBEDDING,
                          (tb_shape){TB_SHAPE_MATRIX, d, rows}, (tb_dim){1, 0},
                          NULL, (tb_pos){0, 0}, node);
}

/* A parameter that both stacks, or the whole model, have once. */
static void share(tb_builder *b, int node)
{
    b->g->params[b->g->nodes[node].param].shared = true;
}

/* Learned or sinusoidal positions, added to x. */
static tb_status positions(tb_builder *b, int *x)
{
    tb_pos none = {0, 0};
    int in[2] = {*x, -1};
    if (b->sizes->s.positions == TB_POSITIONS_SINUSOIDAL)
        return tb_build_node(b, &tb_op_sinusoid, in, 1, NULL, none, x);
    if (b->sizes->s.positions != TB_POSITIONS_LEARNED)
        return TB_OK;
    TB_TRY(embedding(b, "embed.position", b->sizes->s.context, &in[1]));
    return tb_build_node(b, &tb_op_position, in, 2, NULL, none, x);
}

static tb_status embed_tokens(tb_builder *b, int *x)
{
    const tb_settings *s = &b->sizes->s;
    tb_pos none = {0, 0};
    int tokens, table, in[2];
    TB_TRY(tb_build_leaf(b, &tb_op_tokens, "tokens",
                         (tb_shape){TB_SHAPE_TOKENS, 1, 1}, (tb_dim){0, 1},
                         &tokens));
    TB_TRY(embedding(b, "embed.token", s->vocab, &table));
    share(b, table);
    in[0] = tokens;
    in[1] = table;
    TB_TRY(tb_build_node(b, &tb_op_embed, in, 2, NULL, none, x));
    b->g->nodes[*x].dim = (tb_dim){1, 0};
    TB_TRY(positions(b, x));
    if (s->dropout > 0) {
        tb_attr p = {NULL, s->dropout, NULL};
        TB_TRY(tb_build_node(b, &tb_op_drop, x, 1, &p, none, x));
    }
    return TB_OK;
}

static tb_status build_stem(tb_builder *b, const void *arg)
{
    const tb_section *stem = find_section(b, TB_SECTION_STEM);
    int x;
    (void)arg;
    TB_TRY(embed_tokens(b, &x));
    TB_TRY(tb_carry_bind(b, "x", x));
    if (stem)
        TB_TRY(tb_build_section(b, stem));
    TB_TRY(tb_carry_begin(b, stem ? stem->pos : (tb_pos){0, 0}));
    b->nmarks = 0;
    TB_TRY(tb_build_boundaries(b, b->g->inputs[0], b->g->outputs[0].node));
    return tb_build_cuts(b);
}

tb_status tb_graph_stem(tb_ctx *ctx, tb_arena *arena, const tb_block *block,
                        const tb_sizes *sizes, tb_stack stack, tb_graph **out)
{
    tb_builder b;
    TB_TRY(tb_build_begin(&b, ctx, arena, block, sizes, stack));
    b.place = "stem";
    TB_TRY(with_prelude(&b, build_stem, NULL));
    *out = b.g;
    return TB_OK;
}

/* --- layer --------------------------------------------------------------- */

tb_status tb_graph_section(tb_ctx *ctx, const tb_block *b,
                           const tb_sizes *sizes, tb_stack stack, size_t l,
                           int *section)
{
    static const char *const of[] = {[TB_STACK_DECODER] = "",
                                     [TB_STACK_ENCODER] = "encoder ",
                                     [TB_STACK_CROSS] = "decoder "};
    const char *role = sizes->s.stack == TB_STACKS_BOTH ? of[stack] : "";
    bool any = false;
    for (int i = 0; i < b->nsections; i++) {
        const tb_section *s = &b->sections[i];
        double holds = 1;
        if (s->kind != TB_SECTION_BLOCK ||
            !tb_section_serves(b, s, sizes, stack))
            continue;
        any = true;
        tb_consts c = {sizes->N,
                       sizes->M,
                       (double)l,
                       __builtin_nan(""),
                       (double)sizes->s.width,
                       (double)sizes->s.heads};
        if (s->condition)
            TB_TRY(tb_expr_fold(ctx, b, s->condition, &c, NULL, NULL, &holds));
        if (holds != 0) {
            *section = i;
            return TB_OK;
        }
    }
    if (!any)
        return TB_FAIL(ctx, TB_ERR_PARSE,
                       "%s: it has no %sblock section, wanted one",
                       b->name ? b->name : "block", role);
    return TB_FAIL(ctx, TB_ERR_PARSE,
                   "%s: no block section holds for %sblock l = %zu of %s = %zu",
                   b->name ? b->name : "block", role, l,
                   stack == TB_STACK_CROSS ? "M" : "N",
                   tb_sizes_depth(sizes, stack));
}

/* Sections that hold or not, block by block. */
static size_t conditions(const tb_block *b, const tb_sizes *sizes,
                         tb_stack stack)
{
    size_t n = 0;
    for (int i = 0; i < b->nsections; i++)
        n += b->sections[i].kind == TB_SECTION_BLOCK &&
             b->sections[i].condition &&
             tb_section_serves(b, &b->sections[i], sizes, stack);
    return n;
}

tb_status tb_graph_sections(tb_ctx *ctx, const tb_block *b,
                            const tb_sizes *sizes, tb_stack stack,
                            tb_section_use *use)
{
    const size_t most = 20000000; /* a few seconds */
    size_t n = conditions(b, sizes, stack), asked;
    size_t depth = tb_sizes_depth(sizes, stack);
    size_t alike = n ? 1 : depth; /* one answer for so many */
    int below = -1;
    if (!tb_mul(n, depth, &asked) || asked > most)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "depth: %zu blocks ask for %zu conditions each, wanted "
                       "at most %zu in all",
                       depth, n, most);
    memset(use, 0, (size_t)b->nsections * sizeof *use);
    for (size_t l = 1; l <= depth; l += alike) {
        int section;
        TB_TRY(tb_graph_section(ctx, b, sizes, stack, l, &section));
        if (!use[section].blocks)
            use[section].first = l;
        use[section].repeats |= alike > 1 || section == below;
        below = section;
        use[section].blocks += alike;
        use[section].last = l + alike - 1;
        if (alike > depth - l)
            break; /* l + alike may not be a number any more */
    }
    return TB_OK;
}

static tb_status build_layer(tb_builder *b, const void *arg)
{
    const tb_section *section = arg;
    TB_TRY(tb_carry_in(b));
    if (b->stack == TB_STACK_CROSS)
        TB_TRY(tb_carry_input(b, "memory"));
    TB_TRY(tb_build_section(b, section));
    TB_TRY(tb_carry_out(b, section->pos));
    int marks = b->nmarks;
    if (b->g->ncarried > 1 || b->g->nlists)
        b->nmarks = 0; /* several streams: only in and out are boundaries */
    TB_TRY(tb_build_boundaries(b, b->g->inputs[0], b->g->outputs[0].node));
    b->nmarks = marks;
    return tb_build_cuts(b);
}

tb_status tb_graph_layer_on(tb_ctx *ctx, tb_arena *arena, const tb_block *block,
                            const tb_sizes *sizes, tb_stack stack, size_t l,
                            const tb_graph *below, tb_graph **out)
{
    tb_builder b;
    int section;
    TB_TRY(tb_graph_section(ctx, block, sizes, stack, l, &section));
    TB_TRY(tb_build_begin(&b, ctx, arena, block, sizes, stack));
    b.l = (int)l;
    b.below = below;
    TB_TRY(with_prelude(&b, build_layer, &block->sections[section]));
    *out = b.g;
    return TB_OK;
}

/* --- tail ---------------------------------------------------------------- */

static tb_status head(tb_builder *b, int x, int *logits)
{
    const tb_settings *s = &b->sizes->s;
    size_t outputs = tb_settings_outputs(s);
    tb_shape shape = {TB_SHAPE_MATRIX, s->width, outputs};
    int in[2] = {x, -1};
    if (s->tied)
        TB_TRY(embedding(b, "embed.token", s->vocab, &in[1]));
    else
        TB_TRY(tb_build_param(b, "head", "weight", TB_ROLE_MATRIX, shape,
                              (tb_dim){0, (double)outputs}, NULL,
                              (tb_pos){0, 0}, &in[1]));
    share(b, in[1]);
    return tb_build_node(b, &tb_op_linear, in, 2, NULL, (tb_pos){0, 0}, logits);
}

/* The streams through final:, and the x that it leaves. */
static tb_status final_value(tb_builder *b, int *top)
{
    const tb_section *final = find_section(b, TB_SECTION_FINAL);
    tb_pos none = {0, 0};
    TB_TRY(tb_carry_in(b));
    if (final)
        TB_TRY(tb_build_section(b, final));
    b->nmarks = 0;
    return tb_carry_check(b, "x", final ? final->pos : none, top);
}

static tb_status build_memory(tb_builder *b, const void *arg)
{
    int top = -1;
    (void)arg;
    TB_TRY(final_value(b, &top));
    TB_TRY(tb_build_output(b, "memory", top));
    TB_TRY(tb_build_boundaries(b, b->g->inputs[0], top));
    return tb_build_cuts(b);
}

tb_status tb_graph_memory_on(tb_ctx *ctx, tb_arena *arena,
                             const tb_block *block, const tb_sizes *sizes,
                             const tb_graph *below, tb_graph **out)
{
    tb_builder b;
    TB_TRY(tb_build_begin(&b, ctx, arena, block, sizes, TB_STACK_ENCODER));
    b.place = "final";
    b.below = below;
    TB_TRY(with_prelude(&b, build_memory, NULL));
    *out = b.g;
    return TB_OK;
}

static tb_status build_tail(tb_builder *b, const void *arg)
{
    tb_pos none = {0, 0};
    int top = -1, in[2];
    (void)arg;
    TB_TRY(final_value(b, &top));
    TB_TRY(head(b, top, &in[0]));
    TB_TRY(tb_build_output(b, "logits", in[0]));
    TB_TRY(tb_build_leaf(b, &tb_op_tokens, "targets",
                         (tb_shape){TB_SHAPE_TOKENS, 1, 1}, (tb_dim){0, 1},
                         &in[1]));
    int loss;
    TB_TRY(tb_build_node(b, &tb_op_xent, in, 2, NULL, none, &loss));
    TB_TRY(tb_build_output(b, "loss", loss));
    TB_TRY(tb_build_boundaries(b, b->g->inputs[0], top));
    return tb_build_cuts(b);
}

tb_status tb_graph_tail_on(tb_ctx *ctx, tb_arena *arena, const tb_block *block,
                           const tb_sizes *sizes, const tb_graph *below,
                           tb_graph **out)
{
    tb_builder b;
    TB_TRY(tb_build_begin(&b, ctx, arena, block, sizes, tb_sizes_top(sizes)));
    b.place = "final";
    b.below = below;
    TB_TRY(with_prelude(&b, build_tail, NULL));
    *out = b.g;
    return TB_OK;
}

/* --- without the graph below -----------------------------------------------
 */

/* The graph under layer l, or one that leaves the same; *scratch holds it. */
static tb_status graph_below(tb_ctx *ctx, tb_arena *scratch, const tb_block *b,
                             const tb_sizes *sizes, tb_stack stack, size_t l,
                             tb_graph **out)
{
    TB_TRY(tb_graph_stem(ctx, scratch, b, sizes, stack, out));
    for (size_t i = 1; i < l && (*out)->nlists; i++)
        TB_TRY(tb_graph_layer_on(ctx, scratch, b, sizes, stack, i, *out, out));
    return TB_OK;
}

tb_status tb_graph_layer(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                         const tb_sizes *sizes, tb_stack stack, size_t l,
                         tb_graph **out)
{
    tb_arena scratch;
    tb_graph *below;
    tb_arena_init(&scratch, ctx);
    tb_status s = graph_below(ctx, &scratch, b, sizes, stack, l, &below);
    if (s == TB_OK)
        s = tb_graph_layer_on(ctx, arena, b, sizes, stack, l, below, out);
    tb_arena_clear(&scratch);
    return s;
}

tb_status tb_graph_memory(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                          const tb_sizes *sizes, tb_graph **out)
{
    tb_arena scratch;
    tb_graph *below;
    size_t top = tb_sizes_depth(sizes, TB_STACK_ENCODER) + 1;
    tb_arena_init(&scratch, ctx);
    tb_status s =
        graph_below(ctx, &scratch, b, sizes, TB_STACK_ENCODER, top, &below);
    if (s == TB_OK)
        s = tb_graph_memory_on(ctx, arena, b, sizes, below, out);
    tb_arena_clear(&scratch);
    return s;
}

tb_status tb_graph_tail(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                        const tb_sizes *sizes, tb_graph **out)
{
    tb_arena scratch;
    tb_graph *below;
    tb_stack stack = tb_sizes_top(sizes);
    size_t top = tb_sizes_depth(sizes, stack) + 1;
    tb_arena_init(&scratch, ctx);
    tb_status s = graph_below(ctx, &scratch, b, sizes, stack, top, &below);
    if (s == TB_OK)
        s = tb_graph_tail_on(ctx, arena, b, sizes, below, out);
    tb_arena_clear(&scratch);
    return s;
}

/* --- eval ---------------------------------------------------------------- */

typedef struct eval_args {
    const tb_eval_input *inputs;
    int ninputs;
} eval_args;

static tb_status eval_output(tb_builder *b, const tb_section *s)
{
    const tb_stmt *last = &s->stmts[s->nstmts - 1];
    if (b->g->noutputs)
        return TB_OK;
    tb_binding *bind = tb_scope_find(&b->scope, last->name);
    if (!bind || !bind->is_value || bind->val.kind != TB_VAL_NODE)
        return tb_build_fail(b, last->pos,
                             "%s is not a value that depends "
                             "on an input",
                             last->name);
    return tb_build_output(b, "", bind->val.node);
}

static tb_status build_eval(tb_builder *b, const void *arg)
{
    const eval_args *a = arg;
    const tb_section *s = find_section(b, TB_SECTION_BLOCK);
    b->sets = a->inputs;
    b->nsets = a->ninputs;
    if (!s || !s->nstmts)
        return TB_FAIL(b->ctx, TB_ERR_PARSE,
                       "equation: got nothing to compute, wanted an "
                       "expression");
    TB_TRY(tb_build_section(b, s));
    TB_TRY(eval_output(b, s));
    int in = b->g->ninputs ? b->g->inputs[0] : b->g->outputs[0].node;
    for (int i = 0; i < b->g->ninputs; i++)
        if (tb_streq(b->g->nodes[b->g->inputs[i]].name, "x"))
            in = b->g->inputs[i];
    TB_TRY(tb_build_boundaries(b, in, b->g->outputs[0].node));
    return tb_build_cuts(b);
}

tb_status tb_graph_eval(tb_ctx *ctx, tb_arena *arena, const tb_block *block,
                        const tb_sizes *sizes, const tb_eval_input *inputs,
                        int ninputs, tb_graph **out)
{
    tb_builder b;
    eval_args a = {inputs, ninputs};
    TB_TRY(tb_build_begin(&b, ctx, arena, block, sizes, TB_STACK_DECODER));
    b.eval = true;
    TB_TRY(with_prelude(&b, build_eval, &a));
    *out = b.g;
    return TB_OK;
}

/* --- attributes and dump -------------------------------------------------- */

/* What a shape rule refuses, such as eps < 0 in one layer only. */
static tb_status check_attrs(tb_ctx *ctx, const tb_graph *g, const tb_node *n,
                             size_t l, const double *attr)
{
    tb_shape in[TB_OP_INPUTS], out;
    const char *why = "shapes do not fit";
    for (int i = 0; i < n->nin; i++)
        in[i] = g->nodes[n->in[i]].shape;
    if (!n->op->shape || n->op->shape(in, n->nin, attr, &out, &why))
        return TB_OK;
    return tb_block_fail(ctx, g->block, n->pos, "%s: %s in block l = %zu",
                         n->op->name, why, l);
}

tb_status tb_graph_attrs(tb_ctx *ctx, const tb_graph *g, const tb_sizes *sizes,
                         size_t l, double (*out)[TB_OP_ATTRS])
{
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *n = &g->nodes[i];
        tb_consts c = {sizes->N,
                       sizes->M,
                       (double)l,
                       (double)n->k,
                       (double)sizes->s.width,
                       (double)sizes->s.heads};
        bool folded = false;
        for (int a = 0; a < TB_OP_ATTRS; a++) {
            out[i][a] = n->attr[a].value;
            if (!n->attr[a].expr)
                continue;
            folded = true;
            TB_TRY(tb_expr_fold(ctx, g->block, n->attr[a].expr, &c, NULL, NULL,
                                &out[i][a]));
        }
        if (folded)
            TB_TRY(check_attrs(ctx, g, n, l, out[i]));
    }
    return TB_OK;
}

static void dump_attr(const tb_attr *a, tb_buf *out)
{
    if (a->expr)
        tb_expr_print(a->expr, out);
    else
        tb_buf_printf(out, "%g", a->value);
}

/* Slots and locals are the text's choice: two texts that compute the same
 * dump the same. */
void tb_graph_dump(const tb_graph *g, tb_buf *out)
{
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *n = &g->nodes[i];
        tb_buf_printf(out, "%d %s", i, n->op->name);
        if (n->param >= 0)
            tb_buf_printf(out, " %s", tb_role_name(g->params[n->param].role));
        else if (n->op->lane == TB_LANE_LEAF)
            tb_buf_printf(out, " %s", n->name);
        for (int j = 0; j < n->nin; j++)
            tb_buf_printf(out, " %d", n->in[j]);
        for (int a = 0; a < n->op->nattr + n->op->noption; a++) {
            if (a >= n->op->nattr && !n->attr[a].expr && n->attr[a].value == 0)
                continue; /* an option that was not taken */
            tb_buf_printf(out, " %s=", n->op->attr_name[a]);
            dump_attr(&n->attr[a], out);
        }
        tb_buf_printf(out, " [%zu]\n", n->shape.width);
    }
    for (int i = 0; i < g->noutputs; i++)
        tb_buf_printf(out, "out %s %d\n", g->outputs[i].name,
                      g->outputs[i].node);
}
