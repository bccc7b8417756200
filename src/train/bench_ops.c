/* SPDX-License-Identifier: MIT */
/* Cases that are calls of single ops, and products. */
#include "train/bench.h"

#include "kernels/kern_tables.h"

/* --- calls ------------------------------------------------------------------
 */

typedef void (*pass_fn)(const tb_op *op, const tb_opcall *c);

typedef struct passes {
    size_t n;
    pass_fn run[4];
    const tb_op *op[4];
    tb_opcall call[4];
} passes;

static tb_status run_passes(tb_bench_job *j)
{
    const passes *p = j->state;
    for (size_t i = 0; i < p->n; i++)
        p->run[i](p->op[i], &p->call[i]);
    return TB_OK;
}

/* Forward of calls as one pass over memory, as a plan runs neighbours. */
typedef struct together {
    tb_rowcall call[2];
    tb_rowgroup rows;
} together;

static tb_status run_together(tb_bench_job *j)
{
    const together *t = j->state;
    tb_rows_run(j->ctx, &t->rows);
    return TB_OK;
}

static tb_status open_together(tb_bench_job *j, const tb_op *const *op,
                               const tb_opcall *const *call)
{
    together *t = tb_bench_memory(j, 1, sizeof *t);
    if (!t)
        return TB_ERR_MEMORY;
    t->rows = (tb_rowgroup){.calls = t->call,
                            .n = TB_LEN(t->call),
                            .rows = call[0]->batch * call[0]->time,
                            .slots = TB_CHUNKS_MAX};
    size_t bytes = 0;
    for (size_t i = 0; i < TB_LEN(t->call); i++) {
        t->call[i] = (tb_rowcall){op[i], op[i]->fwd_rows, false, *call[i]};
        bytes += tb_rows_bytes(call[i]);
    }
    t->rows.tile = tb_rows_tile(bytes);
    j->state = t;
    j->run = run_together;
    return TB_OK;
}

/* Values, gradients and tangents of the inputs. */
static bool inputs(tb_bench_job *j, tb_opcall *c)
{
    for (int i = 0; i < c->nin; i++) {
        size_t n = tb_shape_count(c->in_shape[i], c->batch, c->time);
        if (!c->in[i])
            c->in[i] = tb_bench_normals(j, n);
        c->gin[i] = tb_bench_memory(j, n, sizeof(float));
        c->tin[i] = c->in[i];
        if (!c->in[i] || !c->gin[i])
            return false;
    }
    return true;
}

/* Shapes are set, and those inputs that come from another call. */
static tb_status op_open(tb_bench_job *j, const tb_op *op, tb_opcall *c)
{
    const char *why = "";
    if (!j->state)
        j->state = tb_bench_memory(j, 1, sizeof(passes));
    c->ctx = j->ctx;
    c->k = tb_kern_get(j->ctx, TB_F32);
    c->rng = tb_rng_make(1, op->name);
    if (!op->shape(c->in_shape, c->nin, c->attr, &c->out_shape, &why))
        return TB_FAIL(j->ctx, TB_ERR_SHAPE, "%s: %s", op->name, why);
    size_t n = tb_shape_count(c->out_shape, c->batch, c->time);
    c->out = tb_bench_memory(j, n, sizeof(float));
    c->gout = c->out ? tb_bench_normals(j, n) : NULL;
    c->saved = tb_bench_memory(j, op->saved ? op->saved(c) : 0, 1);
    c->scratch = tb_bench_memory(j, tb_op_scratch(op, c), 1);
    if (!j->state || !c->gout || !c->saved || !c->scratch || !inputs(j, c))
        return TB_ERR_MEMORY;
    tb_gemm_load(j->ctx);
    tb_op_forward(op, c); /* later passes read what it saved */
    j->run = run_passes;
    return TB_OK;
}

/* A pass that is timed. A tangent goes where the value stood. */
static void add_pass(tb_bench_job *j, pass_fn run, const tb_op *op,
                     const tb_opcall *c)
{
    passes *p = j->state;
    p->run[p->n] = run;
    p->op[p->n] = op;
    p->call[p->n] = *c;
    p->call[p->n++].tout = c->out;
}

/* --- norms ------------------------------------------------------------------
 */

enum { FWD, BWD, TAN };

/* Bytes: x in, y out; backward x and the gradient of y in, that of x out;
 * tangent x and its own in, that of y out. Gains are small. */
static const struct {
    double arrays;
    tb_bench_stream stream;
} norm_moves[] = {
    [FWD] = {2, TB_BENCH_COPY},
    [BWD] = {3, TB_BENCH_2R1W},
    [TAN] = {3, TB_BENCH_2R1W},
};

/* x, gain and, of a norm that takes off the mean, bias */
static tb_opcall norm_call(const size_t *size, int nin)
{
    const tb_shape stream = {TB_SHAPE_STREAM, size[1], 1};
    const tb_shape vector = {TB_SHAPE_VECTOR, size[1], 1};
    return (tb_opcall){.batch = 1,
                       .time = size[0],
                       .nin = nin,
                       .in_shape = {stream, vector, vector},
                       .attr = {[TB_ATTR_NORM_EPS] = 1e-5}};
}

static tb_status norm_open(tb_bench_job *j, const tb_op *op, int nin,
                           const size_t *size, size_t what)
{
    static const pass_fn run[] = {
        [FWD] = tb_op_forward, [BWD] = tb_op_backward, [TAN] = tb_op_tangent};
    tb_opcall c = norm_call(size, nin);
    TB_TRY(op_open(j, op, &c));
    add_pass(j, run[what], op, &c);
    j->bytes = norm_moves[what].arrays * 4 * (double)size[0] * (double)size[1];
    j->stream = norm_moves[what].stream;
    return TB_OK;
}

tb_status tb_bench_norm(tb_bench_job *j, const size_t *size, size_t what)
{
    return norm_open(j, &tb_op_layernorm, 3, size, what);
}

tb_status tb_bench_rmsnorm(tb_bench_job *j, const size_t *size, size_t what)
{
    return norm_open(j, &tb_op_rmsnorm, 2, size, what);
}

/* an op of `nin` streams of R rows of D */
static tb_opcall streams_call(const size_t *size, int nin)
{
    const tb_shape stream = {TB_SHAPE_STREAM, size[1], 1};
    return (tb_opcall){
        .batch = 1, .time = size[0], .nin = nin, .in_shape = {stream, stream}};
}

/* `first` of some streams, then `then` of what it gives; in one pass, which has
 * to move so many arrays. */
static tb_status pair_open(tb_bench_job *j, const tb_op *first, tb_opcall *a,
                           const tb_op *then, tb_opcall *b, double arrays)
{
    TB_TRY(op_open(j, first, a));
    b->in[0] = a->out;
    TB_TRY(op_open(j, then, b));
    TB_TRY(open_together(j, (const tb_op *const[]){first, then},
                         (const tb_opcall *const[]){a, b}));
    j->bytes =
        arrays * 4 * (double)tb_shape_count(a->out_shape, a->batch, a->time);
    j->stream = arrays > 3 ? TB_BENCH_2R2W : TB_BENCH_2R1W;
    return TB_OK;
}

/* x and f in, their sum and its norm out; backward x, the gradients of norm and
 * sum in, that of x and f out. */
tb_status tb_bench_addnorm(tb_bench_job *j, const size_t *size, size_t what)
{
    tb_opcall add = streams_call(size, 2), norm = norm_call(size, 3);
    if (what == FWD)
        return pair_open(j, &tb_op_add, &add, &tb_op_layernorm, &norm, 4);
    TB_TRY(op_open(j, &tb_op_layernorm, &norm));
    norm.gbase[0] = tb_bench_normals(j, size[0] * size[1]);
    add_pass(j, tb_op_backward, &tb_op_layernorm, &norm);
    j->bytes = 4.0 * 4 * (double)size[0] * (double)size[1];
    j->stream = TB_BENCH_2R1W;
    return norm.gbase[0] ? TB_OK : TB_ERR_MEMORY;
}

/* --- elements, losses, tables -----------------------------------------------
 */

/* Which stream a pass of these is like: an array in and one out, or a gradient
 * in beside the value. */
static tb_status one_pass(tb_bench_job *j, const tb_op *op, tb_opcall *c,
                          bool bwd, double arrays, size_t elements)
{
    TB_TRY(op_open(j, op, c));
    if (!bwd && op->saves_ahead)
        c->saved = NULL;
    add_pass(j, bwd ? tb_op_backward : tb_op_forward, op, c);
    j->bytes = arrays * 4 * (double)elements;
    j->stream = arrays > 2 ? TB_BENCH_2R1W : TB_BENCH_COPY;
    return TB_OK;
}

/* an op of one stream */
static tb_status rows_open(tb_bench_job *j, const tb_op *op, const size_t *size,
                           bool bwd)
{
    tb_opcall c = streams_call(size, 1);
    return one_pass(j, op, &c, bwd, bwd ? 3 : 2, size[0] * size[1]);
}

tb_status tb_bench_gelu(tb_bench_job *j, const size_t *size, size_t what)
{
    return rows_open(j, &tb_op_gelu, size, what == BWD);
}

tb_status tb_bench_gelu_tanh(tb_bench_job *j, const size_t *size, size_t what)
{
    return rows_open(j, &tb_op_gelu_tanh, size, what == BWD);
}

tb_status tb_bench_silu(tb_bench_job *j, const size_t *size, size_t what)
{
    return rows_open(j, &tb_op_silu, size, what == BWD);
}

/* the gate and what it lets through in */
tb_status tb_bench_swiglu(tb_bench_job *j, const size_t *size, size_t what)
{
    (void)what;
    tb_opcall silu = streams_call(size, 1), mul = streams_call(size, 2);
    return pair_open(j, &tb_op_silu, &silu, &tb_op_mul, &mul, 3);
}

/* Backward turns the gradient back and reads nothing else. */
tb_status tb_bench_rope(tb_bench_job *j, const size_t *size, size_t what)
{
    const size_t rows[] = {size[1], size[2] * size[3]};
    tb_opcall c = streams_call(rows, 1);
    c.batch = size[0];
    c.attr[TB_ATTR_ROPE_HEADS] = (double)size[2];
    return one_pass(j, &tb_op_rope, &c, what == BWD, 2,
                    size[0] * rows[0] * rows[1]);
}

tb_status tb_bench_softmax(tb_bench_job *j, const size_t *size, size_t what)
{
    return rows_open(j, &tb_op_softmax, size, what == BWD);
}

/* n tokens out of `kinds` */
static int32_t *tokens(tb_bench_job *j, size_t n, size_t kinds)
{
    tb_rng rng = tb_rng_make(1, "tokens");
    int32_t *ids = tb_bench_memory(j, n, sizeof *ids);
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = (int32_t)tb_rng_below(rng, i, kinds);
    return ids;
}

/* Forward reads the logits; backward writes a gradient as well. */
tb_status tb_bench_xent(tb_bench_job *j, const size_t *size, size_t what)
{
    tb_opcall c = {
        .batch = 1,
        .time = size[0],
        .nin = 2,
        .in_shape = {{TB_SHAPE_STREAM, size[1], 1}, {TB_SHAPE_TOKENS, 1, 1}}};
    c.in[1] = tokens(j, size[0], size[1]);
    return c.in[1] ? one_pass(j, &tb_op_xent, &c, what == BWD,
                              what == BWD ? 2 : 1, size[0] * size[1])
                   : TB_ERR_MEMORY;
}

/* Backward reads the rows of the table's gradient, too. */
tb_status tb_bench_embed(tb_bench_job *j, const size_t *size, size_t what)
{
    tb_opcall c = {.batch = 1,
                   .time = size[0],
                   .nin = 2,
                   .in_shape = {{TB_SHAPE_TOKENS, 1, 1},
                                {TB_SHAPE_MATRIX, size[1], size[2]}}};
    c.in[0] = tokens(j, size[0], size[2]);
    return c.in[0] ? one_pass(j, &tb_op_embed, &c, what == BWD,
                              what == BWD ? 3 : 2, size[0] * size[1])
                   : TB_ERR_MEMORY;
}

/* --- attention --------------------------------------------------------------
 */

/* What blocks of 64 by 64 execute for one sequence and head of T tokens: whole
 * blocks, those above the diagonal left out; over T * T. */
static double executed_share(double time)
{
    const double block = 64;
    double pairs = 0;
    for (double from = 0; from < time; from += block) {
        double rows = time - from < block ? time - from : block;
        double seen = from + block < time ? from + block : time;
        pairs += rows * seen;
    }
    return pairs / (time * time);
}

/* Products in units of the forward pass: its two; backward four, and five where
 * the scores are made again instead of kept. */
static const struct {
    bool fwd, bwd;
    double flops, executed;
} attn_passes[] = {
    {true, false, 1, 1},
    {false, true, 2, 2.5},
    {true, true, 3, 3.5},
};

tb_status tb_bench_attn(tb_bench_job *j, const size_t *size, size_t what)
{
    const double heads = (double)size[2], time = (double)size[1];
    const tb_shape stream = {TB_SHAPE_STREAM, size[2] * size[3], 1};
    tb_opcall c = {.batch = size[0],
                   .time = size[1],
                   .nin = 3,
                   .in_shape = {stream, stream, stream},
                   .attr = {[TB_ATTR_ATTN_HEADS] = heads,
                            [TB_ATTR_ATTN_KV_HEADS] = heads,
                            [TB_ATTR_ATTN_CAUSAL] = 1}};
    TB_TRY(op_open(j, &tb_op_mha, &c));
    if (attn_passes[what].fwd)
        add_pass(j, tb_op_forward, &tb_op_mha, &c);
    if (attn_passes[what].bwd)
        add_pass(j, tb_op_backward, &tb_op_mha, &c);
    j->flops = attn_passes[what].flops * tb_op_mha.flops(&c);
    j->executed = attn_passes[what].executed * 4 * (double)size[0] * heads *
                  (double)size[3] * time * time * executed_share(time);
    return TB_OK;
}

/* --- products ---------------------------------------------------------------
 */

typedef bool (*product_fn)(tb_ctx *ctx, const tb_gemm_args *g);

typedef struct product {
    tb_gemm_args g;
    product_fn by;
} product;

static bool by_live(tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_gemm(ctx, g);
    return true;
}

static bool by_own(tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_gemm_own(ctx, g);
    return true;
}

static tb_status run_product(tb_bench_job *j)
{
    const product *p = j->state;
    if (!p->by(j->ctx, &p->g))
        return TB_FAIL(j->ctx, TB_ERR_INPUT,
                       "the library or the instructions for it are not "
                       "on this machine");
    return TB_OK;
}

static bool by_emulation(tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_gemm_bf16_emulated(ctx, g);
    return true;
}

/* The kind's `whats`: the back ends of each form, one after the other, first
 * all in f32, then all in bf16. */
enum { BACK_ENDS = 4 };
static const product_fn back_ends[][BACK_ENDS] = {
    {by_live, by_own, tb_gemm_dnnl, tb_gemm_cblas},
    {by_live, tb_gemm_bf16_own, tb_gemm_bf16_dnnl, by_emulation}};
static const struct form {
    bool ta, tb;
} forms[] = {{false, false}, {false, true}, {true, false}};

tb_status tb_bench_product(tb_bench_job *j, const size_t *size, size_t what)
{
    const struct form *form = &forms[what / BACK_ENDS % TB_LEN(forms)];
    const bool bf16 = what >= BACK_ENDS * TB_LEN(forms);
    size_t m = size[0], k = size[1], n = size[2];
    product *p = tb_bench_memory(j, 1, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    p->by = back_ends[bf16][what % BACK_ENDS];
    p->g = (tb_gemm_args){.dtype = TB_F32,
                          .bf16 = bf16,
                          .ta = form->ta,
                          .tb = form->tb,
                          .m = m,
                          .n = n,
                          .k = k,
                          .alpha = 1,
                          .a = tb_bench_normals(j, m * k),
                          .b = tb_bench_normals(j, k * n),
                          .c = tb_bench_memory(j, m * n, sizeof(float)),
                          .lda = form->ta ? m : k,
                          .ldb = form->tb ? k : n,
                          .ldc = n};
    if (!p->g.a || !p->g.b || !p->g.c)
        return TB_ERR_MEMORY;
    j->flops = 2.0 * (double)m * (double)k * (double)n;
    j->state = p;
    j->run = run_product;
    tb_gemm_load(j->ctx);
    return TB_OK;
}

tb_status tb_bench_gemm(tb_bench_job *j, size_t m, size_t k, size_t n)
{
    const size_t size[] = {m, k, n};
    return tb_bench_product(j, size, 0);
}
