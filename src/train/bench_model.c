/* SPDX-License-Identifier: MIT */
/* Cases that are whole models of pre-LN blocks: an update, text, gradient
 * flow, a dense Jacobian. Making the model is not timed. */
#include "flow/flow_model.h"
#include "model/eval_state.h"
#include "tollbooth/block.h"
#include "train/bench.h"
#include "train/lm.h"

/* Heads of width 64, or of 16 where there would be fewer than four, as far as
 * the width divides. */
static size_t heads_of(size_t width)
{
    size_t h = width >= 256 ? width / 64 : width >= 64 ? 4 : 1;
    while (width % h)
        h--;
    return h;
}

static tb_settings settings_of(size_t depth, size_t width, size_t context,
                               size_t vocab)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = depth;
    s.width = width;
    s.heads = heads_of(width);
    s.context = context;
    s.vocab = vocab;
    return s;
}

static tb_status model_open(tb_ctx *ctx, const tb_settings *s, tb_dtype dtype,
                            tb_block **block, tb_model **model)
{
    TB_TRY(tb_block_load(ctx, "pre-ln", block));
    TB_TRY(tb_model_create(ctx, *block, s, dtype, model));
    return tb_model_init(*model, 1);
}

/* --- a training step --------------------------------------------------------
 */

typedef struct training {
    tb_block *block;
    tb_model *model;
    tb_corpus *corpus;
    tb_optimizer *optimizer;
    int32_t *ids, *targets;
    size_t batch, step;
} training;

static const tb_adam adam = {0.9, 0.95, 1e-8, 0.1, 1};

/* As the loop of train does it, on tokens without a pattern. */
static tb_status run_step(tb_bench_job *j)
{
    training *t = j->state;
    double loss;
    tb_update u;
    size_t step = ++t->step;
    const tb_batch b = {
        .tokens = t->ids, .targets = t->targets, .seed = 1, .step = step};
    tb_corpus_batch(t->corpus, 1, step, 0, t->batch, t->ids, t->targets);
    tb_model_step(t->model, step);
    TB_TRY(tb_model_forward(t->model, &b, &loss));
    TB_TRY(tb_model_gradients(t->model, &b, t->optimizer->grads));
    TB_TRY(tb_optimizer_step(t->optimizer, &adam, step, 1e-4, &u));
    tb_model_after(t->model);
    return tb_model_update(t->model, &b);
}

static void close_step(tb_bench_job *j)
{
    training *t = j->state;
    tb_optimizer_destroy(t->optimizer);
    tb_corpus_destroy(t->corpus);
    tb_model_destroy(t->model);
    if (t->block)
        tb_block_destroy(j->ctx, t->block);
}

static tb_status corpus_open(tb_bench_job *j, size_t time, size_t vocab)
{
    training *t = j->state;
    size_t n = 64 * (time + 1);
    tb_corpus_options o = {.context = time};
    tb_rng rng = tb_rng_make(1, "tokens");
    int32_t *ids = tb_bench_memory(j, n, sizeof *ids);
    for (size_t i = 0; ids && i < n; i++)
        ids[i] = (int32_t)tb_rng_below(rng, i, vocab);
    if (!ids)
        return TB_ERR_MEMORY;
    return tb_corpus_create_ids(j->ctx, "bench", ids, n, vocab, &o, &t->corpus);
}

/* As train binds. */
enum { STEP_PASSES = TB_PASS_BWD | TB_PASS_ONCE };

static tb_status optimizer_open(training *t, const size_t *size)
{
    tb_model *m = t->model;
    TB_TRY(tb_model_bind(m, size[3], size[2], STEP_PASSES));
    return tb_optimizer_create(m->ctx, TB_F32, m->views, m->nviews,
                               m->nelements, m->params, &t->optimizer);
}

tb_status tb_bench_step(tb_bench_job *j, const size_t *size, size_t what)
{
    enum { COPIES = 4 }; /* weights, gradients, two moments */
    const tb_dtype dtype = what == 1 ? TB_BF16 : TB_F32;
    size_t n = size[2] * size[3], activations, saved;
    const tb_settings s = settings_of(size[0], size[1], size[2], size[4]);
    training *t = tb_bench_memory(j, 1, sizeof *t);
    if (!t)
        return TB_ERR_MEMORY;
    j->state = t;
    j->close = close_step;
    TB_TRY(corpus_open(j, size[2], size[4]));
    t->ids = tb_bench_memory(j, n, sizeof *t->ids);
    t->targets = tb_bench_memory(j, n, sizeof *t->targets);
    if (!t->ids || !t->targets)
        return TB_ERR_MEMORY;
    TB_TRY(model_open(j->ctx, &s, dtype, &t->block, &t->model));
    TB_TRY(optimizer_open(t, size));
    TB_TRY(tb_model_memory(t->model, size[3], size[2], size[2], STEP_PASSES,
                           &activations, &saved));
    j->held = (double)activations +
              COPIES * sizeof(float) * (double)t->model->nelements;
    t->batch = size[3];
    j->tokens = (double)n;
    j->flops = tb_model_flops(t->model);
    j->run = run_step;
    return TB_OK;
}

/* --- the optimizer alone ----------------------------------------------------
 */

typedef struct stepper {
    tb_optimizer *optimizer;
    tb_view view; /* one matrix */
    size_t step;
} stepper;

static tb_status run_adamw(tb_bench_job *j)
{
    stepper *s = j->state;
    tb_update u;
    return tb_optimizer_step(s->optimizer, &adam, ++s->step, 1e-3, &u);
}

static void close_adamw(tb_bench_job *j)
{
    stepper *s = j->state;
    tb_optimizer_destroy(s->optimizer);
}

/* Bytes: the gradient for its norm; then it, weight and both moments in, weight
 * and moments out. */
tb_status tb_bench_adamw(tb_bench_job *j, const size_t *size, size_t what)
{
    (void)what;
    const size_t n = size[0] * size[1];
    stepper *s = tb_bench_memory(j, 1, sizeof *s);
    float *weight = tb_bench_normals(j, n), *grad = tb_bench_normals(j, n);
    if (!s || !weight || !grad)
        return TB_ERR_MEMORY;
    s->view = (tb_view){.name = "weight", .role = TB_ROLE_MATRIX, .count = n};
    j->state = s;
    j->close = close_adamw;
    TB_TRY(tb_optimizer_create(j->ctx, TB_F32, &s->view, 1, n, weight,
                               &s->optimizer));
    memcpy(s->optimizer->grads, grad, n * sizeof *grad);
    j->bytes = 8.0 * 4 * (double)n;
    j->stream = TB_BENCH_COPY;
    j->run = run_adamw;
    return TB_OK;
}

/* --- text -------------------------------------------------------------------
 */

static bool any_token(void *user, int32_t id)
{
    *(int32_t *)user = id;
    return true;
}

/* One token, then as many as fill the context. */
static tb_status run_generate(tb_bench_job *j)
{
    tb_lm *m = j->state;
    tb_sampling greedy = TB_SAMPLING_DEFAULT;
    greedy.greedy = true;
    const int32_t prompt = 0;
    int32_t last = 0;
    return tb_lm_generate(m, &prompt, 1, (size_t)j->tokens, &greedy, any_token,
                          &last);
}

static void close_generate(tb_bench_job *j)
{
    tb_lm_close(j->state);
}

/* What tb_lm_open makes of a folder, without one. */
tb_status tb_bench_generate(tb_bench_job *j, const size_t *size, size_t what)
{
    (void)what;
    tb_lm *m = tb_alloc(j->ctx, 1, sizeof *m);
    if (!m)
        return TB_ERR_MEMORY;
    m->ctx = j->ctx;
    tb_arena_init(&m->arena, j->ctx);
    j->state = m;
    j->close = close_generate;
    const tb_settings s = settings_of(size[0], size[1], size[2], size[3]);
    TB_TRY(model_open(j->ctx, &s, TB_F32, &m->block, &m->model));
    m->record.spec = (tb_train_spec)TB_TRAIN_UNSET;
    m->record.spec.task = TB_TASK_LM;
    m->record.spec.settings = m->model->sizes.s;
    tb_model_quiet(m->model);
    TB_TRY(tb_quiet_init(m->model, &m->quiet));
    j->tokens = (double)(size[2] > 1 ? size[2] - 1 : 1);
    j->run = run_generate;
    return TB_OK;
}

/* --- gradient flow ----------------------------------------------------------
 */

typedef struct flow {
    tb_block *block;
    tb_model *model;
    tb_flow_spec spec;
} flow;

static tb_status run_flow(tb_bench_job *j)
{
    const flow *f = j->state;
    tb_flow *out = NULL;
    TB_TRY(tb_flow_of_model(f->model, &f->spec, &out));
    tb_flow_free(j->ctx, out);
    return TB_OK;
}

static void close_flow(tb_bench_job *j)
{
    flow *f = j->state;
    tb_model_destroy(f->model);
    if (f->block)
        tb_block_destroy(j->ctx, f->block);
}

/* Of all boundaries and all weights; a vocabulary of 256, as flow has it. */
tb_status tb_bench_flow(tb_bench_job *j, const size_t *size, size_t what)
{
    (void)what;
    const tb_settings s = settings_of(size[0], size[1], size[2], 256);
    flow *f = tb_bench_memory(j, 1, sizeof *f);
    if (!f)
        return TB_ERR_MEMORY;
    j->state = f;
    j->close = close_flow;
    f->spec = (tb_flow_spec){.batch = size[3], .seed = 1, .dtype = TB_F32};
    TB_TRY(model_open(j->ctx, &s, TB_F32, &f->block, &f->model));
    TB_TRY(tb_model_bind(f->model, size[3], size[2], TB_PASS_BWD));
    j->tokens = (double)(size[2] * size[3]);
    j->flops = tb_model_flops(f->model);
    j->run = run_flow;
    return TB_OK;
}

/* --- a dense Jacobian -------------------------------------------------------
 */

typedef struct jacobian {
    tb_eval spec;
    tb_eval_value x;
    tb_eval_state state;
    tb_eval_cols columns;
    double *out;
} jacobian;

static tb_status run_jacobian(tb_bench_job *j)
{
    jacobian *c = j->state;
    TB_TRY(tb_eval_forward(&c->state));
    return tb_eval_jacobian(&c->state, &c->columns, false, c->out);
}

static void close_jacobian(tb_bench_job *j)
{
    jacobian *c = j->state;
    if (c->state.ctx)
        tb_eval_close(&c->state);
}

/* The whole of a block's output by the whole of its input. */
tb_status tb_bench_jacobian(tb_bench_job *j, const size_t *size, size_t what)
{
    (void)what;
    const size_t d = size[0], time = size[1], n = d * time;
    const tb_rng rng = tb_rng_make(1, "bench");
    jacobian *c = tb_bench_memory(j, 1, sizeof *c);
    double *x = tb_bench_memory(j, n, sizeof *x);
    if (!c || !x)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        x[i] = tb_rng_normal(rng, i);
    j->state = c;
    j->close = close_jacobian;
    c->x = (tb_eval_value){"x", 2, {time, d}, x};
    c->spec = (tb_eval){.text = "a = x + attn(norm(x)); a + ffn(norm(a))",
                        .nsets = 1,
                        .sets = &c->x,
                        .heads = heads_of(d),
                        .seed = 1,
                        .f32 = true};
    TB_TRY(tb_eval_open(&c->state, j->ctx, &c->spec, TB_F32));
    TB_TRY(tb_eval_plan(&c->state, TB_PASS_BWD));
    TB_TRY(tb_eval_columns(&c->state, "x", &c->columns));
    size_t count;
    TB_TRY(tb_eval_jacobian_size(&c->state, &c->columns, false, &count));
    c->out = tb_bench_memory(j, count, sizeof *c->out);
    j->run = run_jacobian;
    return c->out ? TB_OK : TB_ERR_MEMORY;
}
