/* SPDX-License-Identifier: MIT */
/* The kinds of cases: norms, products, attention and a whole training step,
 * each on numbers that do not change from run to run. */
#include "base/number.h"
#include "tollbooth/block.h"
#include "train/bench.h"

/* --- memory -----------------------------------------------------------------
 */

void *tb_bench_memory(tb_bench_job *j, size_t n, size_t size)
{
    if (j->nmemory == TB_BENCH_MEMORY)
        return NULL;
    void *p = tb_alloc(j->ctx, n, size);
    if (p)
        j->memory[j->nmemory++] = p;
    return p;
}

void tb_bench_close(tb_bench_job *j)
{
    tb_optimizer_destroy(j->optimizer);
    tb_corpus_destroy(j->corpus);
    tb_model_destroy(j->model);
    if (j->block)
        tb_block_destroy(j->ctx, j->block);
    while (j->nmemory > 0)
        tb_free(j->ctx, j->memory[--j->nmemory]);
}

/* n floats: a few thousand normal numbers, over and over. */
static float *normals(tb_bench_job *j, size_t n)
{
    enum { PERIOD = 4099 };
    tb_rng rng = tb_rng_make(1, "bench");
    float *x = tb_bench_memory(j, n, sizeof *x);
    for (size_t i = 0; x && i < n; i++)
        x[i] = i < PERIOD ? (float)tb_rng_normal(rng, i) : x[i - PERIOD];
    return x;
}

/* --- ops --------------------------------------------------------------------
 */

static tb_status run_passes(tb_bench_job *j)
{
    for (size_t i = 0; i < j->npasses; i++) {
        const tb_bench_pass *p = &j->pass[i];
        (p->bwd ? p->op->bwd : p->op->fwd)(&p->c);
    }
    return TB_OK;
}

static bool inputs(tb_bench_job *j, tb_opcall *c)
{
    for (int i = 0; i < c->nin; i++) {
        size_t n = tb_shape_count(c->in_shape[i], c->batch, c->time);
        if (!c->in[i])
            c->in[i] = normals(j, n);
        c->gin[i] = tb_bench_memory(j, n, sizeof(float));
        if (!c->in[i] || !c->gin[i])
            return false;
    }
    return true;
}

/* Shapes are set, and those inputs that come from another call. */
static tb_status op_open(tb_bench_job *j, const tb_op *op, tb_opcall *c)
{
    const char *why = "";
    c->ctx = j->ctx;
    c->k = tb_kern_get(j->ctx, TB_F32);
    c->rng = tb_rng_make(1, op->name);
    if (!op->shape(c->in_shape, c->nin, c->attr, &c->out_shape, &why))
        return TB_FAIL(j->ctx, TB_ERR_SHAPE, "bench: %s: %s", op->name, why);
    size_t n = tb_shape_count(c->out_shape, c->batch, c->time);
    c->out = tb_bench_memory(j, n, sizeof(float));
    c->gout = c->out ? normals(j, n) : NULL;
    c->saved = tb_bench_memory(j, op->saved ? op->saved(c) : 0, 1);
    c->scratch = tb_bench_memory(j, op->scratch ? op->scratch(c) : 0, 1);
    if (!c->gout || !c->saved || !c->scratch || !inputs(j, c))
        return TB_ERR_MEMORY;
    tb_gemm_load(j->ctx);
    op->fwd(c); /* a backward pass reads what it saved */
    j->run = run_passes;
    return TB_OK;
}

static void pass(tb_bench_job *j, const tb_op *op, const tb_opcall *c, bool bwd)
{
    j->pass[j->npasses++] = (tb_bench_pass){op, *c, bwd};
}

static tb_opcall norm_call(size_t rows, size_t d)
{
    const tb_shape stream = {TB_SHAPE_STREAM, d, 1};
    const tb_shape vector = {TB_SHAPE_VECTOR, d, 1};
    return (tb_opcall){.batch = 1,
                       .time = rows,
                       .nin = 3,
                       .in_shape = {stream, vector, vector},
                       .attr = {[TB_ATTR_NORM_EPS] = 1e-5}};
}

/* Bytes: x and y; backward x, the gradient of y, and that of x, which is added
 * to: read and written. */
static tb_status norm_open(tb_bench_job *j, const size_t *size, size_t what)
{
    bool bwd = what == 1;
    tb_opcall c = norm_call(size[0], size[1]);
    TB_TRY(op_open(j, &tb_op_layernorm, &c));
    pass(j, &tb_op_layernorm, &c, bwd);
    j->bytes = (bwd ? 4.0 : 2.0) * 4 * (double)size[0] * (double)size[1];
    return TB_OK;
}

/* Bytes of one pass over all: x and f in, their sum and its norm out. */
static tb_status addnorm_open(tb_bench_job *j, const size_t *size, size_t what)
{
    (void)what;
    const tb_shape stream = {TB_SHAPE_STREAM, size[1], 1};
    tb_opcall norm = norm_call(size[0], size[1]);
    tb_opcall add = {
        .batch = 1, .time = size[0], .nin = 2, .in_shape = {stream, stream}};
    TB_TRY(op_open(j, &tb_op_add, &add));
    norm.in[0] = add.out;
    TB_TRY(op_open(j, &tb_op_layernorm, &norm));
    pass(j, &tb_op_add, &add, false);
    pass(j, &tb_op_layernorm, &norm, false);
    j->bytes = 4.0 * 4 * (double)size[0] * (double)size[1];
    return TB_OK;
}

/* Visible pairs alone count; a backward pass has twice the products. */
static tb_status attn_open(tb_bench_job *j, const size_t *size, size_t what)
{
    const double heads = (double)size[2];
    const tb_shape stream = {TB_SHAPE_STREAM, size[2] * size[3], 1};
    tb_opcall c = {.batch = size[0],
                   .time = size[1],
                   .nin = 3,
                   .in_shape = {stream, stream, stream},
                   .attr = {[TB_ATTR_ATTN_HEADS] = heads,
                            [TB_ATTR_ATTN_KV_HEADS] = heads,
                            [TB_ATTR_ATTN_CAUSAL] = 1}};
    TB_TRY(op_open(j, &tb_op_mha, &c));
    pass(j, &tb_op_mha, &c, false);
    if (what == 1)
        pass(j, &tb_op_mha, &c, true);
    j->flops = (what == 1 ? 3 : 1) * tb_op_mha.flops(&c);
    return TB_OK;
}

/* --- products ---------------------------------------------------------------
 */

static tb_status run_gemm(tb_bench_job *j)
{
    tb_gemm(j->ctx, &j->gemm);
    return TB_OK;
}

tb_status tb_bench_gemm(tb_bench_job *j, size_t m, size_t k, size_t n)
{
    j->gemm = (tb_gemm_args){.dtype = TB_F32,
                             .m = m,
                             .n = n,
                             .k = k,
                             .alpha = 1,
                             .a = normals(j, m * k),
                             .b = normals(j, k * n),
                             .c = tb_bench_memory(j, m * n, sizeof(float)),
                             .lda = k,
                             .ldb = n,
                             .ldc = n};
    if (!j->gemm.a || !j->gemm.b || !j->gemm.c)
        return TB_ERR_MEMORY;
    j->flops = 2.0 * (double)m * (double)k * (double)n;
    j->run = run_gemm;
    tb_gemm_load(j->ctx);
    return TB_OK;
}

static tb_status gemm_open(tb_bench_job *j, const size_t *size, size_t what)
{
    (void)what;
    return tb_bench_gemm(j, size[0], size[1], size[2]);
}

/* --- a training step --------------------------------------------------------
 */

static const tb_adam adam = {0.9, 0.95, 1e-8, 0.1, 1};

/* As the loop of train does it, on tokens without a pattern. */
static tb_status run_step(tb_bench_job *j)
{
    double loss;
    tb_update u;
    size_t step = ++j->step;
    const tb_batch b = {
        .tokens = j->ids, .targets = j->targets, .seed = 1, .step = step};
    tb_corpus_batch(j->corpus, 1, step, 0, j->batch, j->ids, j->targets);
    TB_TRY(tb_model_forward(j->model, &b, &loss));
    TB_TRY(tb_model_backward(j->model, &b, j->optimizer->grads));
    return tb_optimizer_step(j->optimizer, &adam, step, 1e-4, &u);
}

static tb_status corpus_open(tb_bench_job *j, size_t time, size_t vocab)
{
    size_t n = 64 * (time + 1);
    tb_corpus_options o = {.context = time};
    tb_rng rng = tb_rng_make(1, "tokens");
    int32_t *ids = tb_bench_memory(j, n, sizeof *ids);
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = (int32_t)tb_rng_below(rng, i, vocab);
    if (!ids)
        return TB_ERR_MEMORY;
    return tb_corpus_create_ids(j->ctx, "bench", ids, n, vocab, &o, &j->corpus);
}

/* Heads of width 64, as far as the width divides. */
static size_t heads_of(size_t width)
{
    size_t h = width > 64 ? width / 64 : 1;
    while (width % h)
        h--;
    return h;
}

static tb_status model_open(tb_bench_job *j, const size_t *size)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = size[0];
    s.width = size[1];
    s.heads = heads_of(size[1]);
    s.context = size[2];
    s.vocab = size[4];
    TB_TRY(tb_block_load(j->ctx, "pre-ln", &j->block));
    TB_TRY(tb_model_create(j->ctx, j->block, &s, TB_F32, &j->model));
    TB_TRY(tb_model_init(j->model, 1));
    TB_TRY(tb_model_bind(j->model, size[3], size[2], TB_PASS_BWD));
    return tb_optimizer_create(j->ctx, TB_F32, j->model->views,
                               j->model->nviews, j->model->nelements,
                               j->model->params, &j->optimizer);
}

static tb_status step_open(tb_bench_job *j, const size_t *size, size_t what)
{
    (void)what;
    size_t time = size[2], batch = size[3], n = time * batch;
    TB_TRY(corpus_open(j, time, size[4]));
    j->ids = tb_bench_memory(j, n, sizeof *j->ids);
    j->targets = tb_bench_memory(j, n, sizeof *j->targets);
    if (!j->ids || !j->targets)
        return TB_ERR_MEMORY;
    TB_TRY(model_open(j, size));
    j->batch = batch;
    j->tokens = (double)n;
    j->flops = tb_model_flops(j->model);
    j->run = run_step;
    return TB_OK;
}

/* --- the table --------------------------------------------------------------
 */

const tb_bench_kind tb_bench_kinds[] = {
    {"norm", "norm:RxD:fwd|bwd", NULL, 2, {"fwd", "bwd"}, norm_open},
    {"addnorm", "addnorm:RxD:fwd", NULL, 2, {"fwd"}, addnorm_open},
    {"gemm", "gemm:MxKxN:f32", NULL, 3, {"f32"}, gemm_open},
    {"attn", "attn:BxTxHxW:fwd|fwdbwd", NULL, 4, {"fwd", "fwdbwd"}, attn_open},
    {"step", "step:LldDTtBbVv:f32", "LdTBV", 5, {"f32"}, step_open},
};
const size_t tb_bench_nkinds = TB_LEN(tb_bench_kinds);
