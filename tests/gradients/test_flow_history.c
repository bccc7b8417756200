/* SPDX-License-Identifier: MIT */
/* Blocks that read what earlier blocks made: gradients against central
 * differences, the flow of such stacks against its definition and against
 * stacks that compute the same. */
#include "flow/flow_model.h"
#include "tb_test.h"

enum { WIDTH = 8, HEADS = 2, TOKENS = 5, VOCAB = 11, DEPTH = 9, SAMPLES = 2 };

static const char dense[] =
    "stem: past = list(x)\n"
    "block:\n"
    "  x = x + attn(norm(x)); x = x + ffn(norm(x)); past = append(past, x)\n"
    "  x = mix(vector(onehot(size(past)), size=size(past)), past)\n"
    "final: x = norm(x)\n";

/* Attention over depth: the embedding and every sublayer's output. */
static const char over_depth[] =
    "stem: past = list(x)\n"
    "block:\n"
    "  a = linear(d, 1, bias=false); f = linear(d, 1, bias=false)\n"
    "  past = append(past, attn(norm(x)))\n"
    "  x = mix(softmax(concat(a(norm(past)))), past)\n"
    "  past = append(past, ffn(norm(x)))\n"
    "  x = mix(softmax(concat(f(norm(past)))), past)\n"
    "final: x = norm(x)\n"
    "init: a, f: zeros\n";

/* Lists of one kind and another, of two widths, read by the tail, too. */
static const char mixed[] =
    "stem: past = list(x); y = x; wide = list(concat(x, x)); few = list(x)\n"
    "block[l <= 4]:\n"
    "  x = x + attn(norm(x)); y = y + ffn(x)\n"
    "  past = append(past, x, y); wide = append(wide, concat(y, x))\n"
    "block:\n"
    "  w = linear(2*d, d)\n"
    "  x = x + attn(norm(x) + item(past, 9 - l)) + mean(gelu(w(wide)))\n"
    "  y = mix(vector(0.3, size=size(past)), past) - 0.2*x\n"
    "  few = list(item(few, 0) + y)\n"
    "final: x = norm(x + y + sum(past) + sum(few))\n";

static const char *const blocks[] = {dense, over_depth, mixed};

static tb_flow_spec spec_of(size_t depth, tb_cotangent cotangent)
{
    tb_flow_spec s = {.settings = TB_SETTINGS_UNSET,
                      .seed = 3,
                      .dtype = TB_F64,
                      .cotangent = cotangent};
    s.settings.depth = depth;
    s.settings.width = WIDTH;
    s.settings.heads = HEADS;
    s.settings.context = TOKENS;
    s.settings.vocab = VOCAB;
    return s;
}

/** A model, its flow, and the batch that was used. */
typedef struct rig {
    tb_block *block;
    tb_model *m;
    tb_flow *f;
    int32_t ids[TOKENS + 1];
    tb_batch batch;
    double *grads;
} rig;

/* Weights away from their starts, where so much is 0. */
static void shake(tb_test *T, tb_model *m)
{
    double *w = m->params;
    for (size_t v = 0; v < m->nviews; v++)
        for (size_t i = 0; i < m->views[v].count; i++)
            w[m->views[v].offset + i] += 0.1 * tb_test_normal(T);
}

static tb_status rig_open(tb_test *T, rig *r, const char *text, bool start,
                          tb_flow_spec *s)
{
    *r = (rig){.batch = {.tokens = r->ids, .targets = r->ids + 1}};
    for (int i = 0; i <= TOKENS; i++)
        r->ids[i] = (i * 7 + 3) % VOCAB;
    s->ids = r->ids;
    TB_TRY(tb_block_load(T->ctx, text, &r->block));
    TB_TRY(tb_model_create(T->ctx, r->block, &s->settings, s->dtype, &r->m));
    TB_TRY(tb_model_init(r->m, s->seed));
    if (!start)
        shake(T, r->m);
    TB_TRY(tb_flow_of_model(r->m, s, &r->f));
    r->grads = tb_alloc(T->ctx, r->m->nelements, sizeof *r->grads);
    return r->grads ? TB_OK : TB_ERR_MEMORY;
}

static void rig_close(tb_test *T, rig *r)
{
    tb_free(T->ctx, r->grads);
    tb_flow_free(T->ctx, r->f);
    tb_model_destroy(r->m);
    tb_block_destroy(T->ctx, r->block);
}

static double loss_of(tb_test *T, rig *r)
{
    double loss = 0;
    if (tb_model_forward(r->m, &r->batch, &loss) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    return loss;
}

/* --- gradients ------------------------------------------------------------ */

static void differences(tb_test *T, rig *r, const tb_view *v)
{
    const double h = 1e-5;
    double *w = (double *)r->m->params + v->offset;
    for (int k = 0; k < SAMPLES; k++) {
        size_t i = (size_t)(tb_test_uniform(T) * (double)v->count);
        double keep = w[i], at[2];
        for (int side = 0; side < 2; side++) {
            w[i] = side ? keep - h : keep + h;
            at[side] = loss_of(T, r);
        }
        w[i] = keep;
        double want = (at[0] - at[1]) / (2 * h), got = r->grads[v->offset + i];
        if (!(tb_fabs(want - got) <= 1e-7 * (1 + tb_fabs(want))))
            tb_test_fail(T, __FILE__, __LINE__, "%s[%zu]: %g, difference %g",
                         v->name, i, got, want);
    }
}

/* More blocks than an op has inputs. Buffers by lifetime or not: the same. */
TB_TEST(every_gradient_is_a_difference)
{
    for (size_t b = 0; b < TB_LEN(blocks); b++) {
        rig r;
        tb_flow_spec s = spec_of(DEPTH, TB_COTANGENT_LOSS);
        TB_OKAY(T, rig_open(T, &r, blocks[b], false, &s));
        TB_OKAY(T, tb_model_bind(r.m, 1, TOKENS, TB_PASS_BWD));
        (void)loss_of(T, &r);
        TB_OKAY(T, tb_model_backward(r.m, &r.batch, r.grads));
        TB_OKAY(T, tb_model_bind(r.m, 1, TOKENS, 0));
        TB_NEAR(T, loss_of(T, &r), r.f->loss, 0);
        for (size_t v = 0; v < r.m->nviews; v++)
            differences(T, &r, &r.m->views[v]);
        rig_close(T, &r);
    }
}

/* --- flow ------------------------------------------------------------------
 */

/* Its way down, value by value, and that of the model agree. */
TB_TEST(weight_gradients_are_those_of_the_model)
{
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    for (size_t b = 0; b < TB_LEN(blocks); b++) {
        rig r;
        tb_flow_spec s = spec_of(DEPTH, TB_COTANGENT_LOSS);
        TB_OKAY(T, rig_open(T, &r, blocks[b], false, &s));
        TB_NEAR(T, loss_of(T, &r), r.f->loss, 0);
        TB_OKAY(T, tb_model_backward(r.m, &r.batch, r.grads));
        for (size_t v = 0; v < r.m->nviews; v++) {
            const tb_view *view = &r.m->views[v];
            TB_NEAR(T, r.f->weights[v].grad_norm,
                    k->norm2(view->count, r.grads + view->offset), 1e-13);
        }
        rig_close(T, &r);
    }
}

/* Length of the gradient at x_K, whose value only the tail and what it reads
 * of lists take: by a backward pass of the tail and the last block. */
static double top_of(tb_test *T, rig *r)
{
    size_t tail = tb_model_tail(r->m), last = tail - 1;
    const tb_graph *g = tb_model_graph(r->m, tail);
    const tb_graph *h = tb_model_graph(r->m, last);
    enum { N = TOKENS * WIDTH, MOST = 16 };
    static double in[MOST][2 * N], seen[N];
    const double one = 1;
    const void *gout[MOST] = {NULL};
    void *gin[MOST];
    tb_run run;
    for (int i = 0; i < MOST; i++)
        gin[i] = in[i];
    gout[1] = &one;
    tb_bwd b = {.hi = -1, .lo = -1, .gout = gout, .gin = gin};
    tb_status s = tb_model_run(r->m, tail, &r->batch, &run);
    if (s == TB_OK)
        s = tb_plan_backward(T->ctx, &run, &b);
    /* each output of the last block: what the tail gives back for it */
    for (int o = 0; o < h->noutputs; o++) {
        gout[o] = NULL;
        for (int i = 0; i < g->ninputs; i++)
            if (tb_model_in_value(r->m, tail, (size_t)i) ==
                (int)tb_model_out_value(r->m, last, (size_t)o))
                gout[o] = in[i];
    }
    b.gin = NULL;
    void *const look[] = {seen};
    b.nseen = 1;
    b.seen = &h->outputs[0].node;
    b.gseen = look;
    if (s == TB_OK)
        s = tb_model_run(r->m, last, &r->batch, &run);
    if (s == TB_OK)
        s = tb_plan_backward(T->ctx, &run, &b);
    if (s != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    return tb_kern_get(T->ctx, TB_F64)->norm2(N, seen);
}

/* x_0 is the embedding plus the position table: the gradient of that is the
 * whole gradient at k = 0, by every way there is. */
TB_TEST(total_counts_every_reader)
{
    const tb_kern *k = tb_kern_get(T->ctx, TB_F64);
    for (size_t b = 0; b < TB_LEN(blocks); b++) {
        rig r;
        tb_flow_spec s = spec_of(DEPTH, TB_COTANGENT_LOSS);
        TB_OKAY(T, rig_open(T, &r, blocks[b], false, &s));
        const tb_view *v = tb_model_view(r.m, "embed.position.weight");
        (void)loss_of(T, &r);
        TB_OKAY(T, tb_model_backward(r.m, &r.batch, r.grads));
        double whole = k->norm2(v->count, r.grads + v->offset);
        /* the same for the top, which x alone leads to in a plain final: */
        double top = whole / r.f->rows[0].total;
        TB_NEAR(T, r.f->rows[DEPTH].total, 1, 1e-15);
        TB_CHECK(T, r.f->nrows == DEPTH + 1);
        TB_NEAR(T, top, top_of(T, &r), 1e-12 * top);
        rig_close(T, &r);
    }
}

/* DenseFormer starts as its host, in every number (placements I4). */
TB_TEST(dense_starts_as_pre_ln)
{
    tb_flow_spec s = spec_of(DEPTH, TB_COTANGENT_LOSS);
    rig host, mine;
    TB_OKAY(T, rig_open(T, &mine, dense, true, &s));
    TB_OKAY(T, rig_open(T, &host, "pre-ln", true, &s));
    TB_NEAR(T, mine.f->loss, host.f->loss, 0);
    for (size_t l = 0; l <= DEPTH; l++) {
        const tb_flow_row *a = &mine.f->rows[l], *b = &host.f->rows[2 * l];
        TB_NEAR(T, a->total, b->total, 1e-14);
        TB_NEAR(T, a->lane, b->lane, 1e-14);
        TB_NEAR(T, a->std_x, b->std_x, 0);
    }
    rig_close(T, &host);
    rig_close(T, &mine);
}

/* A sum over all outputs is a residual stream, written as a list. The rows of
 * x differ: there x is a sum that only the next sublayer reads. At the
 * embedding, which every sum reads, they are the same. */
TB_TEST(a_sum_of_all_is_a_residual)
{
    static const char sums[] =
        "stem: past = list(x)\n"
        "block: past = append(past, F(norm(sum(past)))); x = sum(past)\n"
        "final: x = norm(x)\n";
    tb_flow_spec s = spec_of(4, TB_COTANGENT_LOSS);
    rig host, mine;
    TB_OKAY(T, rig_open(T, &mine, sums, true, &s));
    TB_OKAY(T, rig_open(T, &host, "pre-ln", true, &s));
    TB_NEAR(T, mine.f->loss, host.f->loss, 1e-14);
    TB_NEAR(T, mine.f->rows[0].total, host.f->rows[0].total, 1e-13);
    TB_NEAR(T, mine.f->rows[0].lane, 1, 1e-14);
    TB_NEAR(T, mine.f->rows[4].total, 1, 1e-15);
    rig_close(T, &host);
    rig_close(T, &mine);
}

/* With w = 0 the mean: one of 2N + 1 ways leads past all branches. */
TB_TEST(attention_over_depth_starts_as_the_mean)
{
    for (int c = 0; c < 3; c++) {
        tb_flow_spec s = spec_of(DEPTH, (tb_cotangent)c);
        rig r;
        TB_OKAY(T, rig_open(T, &r, over_depth, true, &s));
        TB_NEAR(T, r.f->rows[0].lane, 1.0 / (2 * DEPTH + 1), 1e-14);
        for (size_t k = 1; k < DEPTH; k++)
            TB_CHECK(T, r.f->rows[k].lane == 0 && r.f->rows[k].total > 0);
        rig_close(T, &r);
    }
}

/* What leaves a block through something learned or bent has no lane below. */
TB_TEST(a_lane_ends_where_x_is_cut)
{
    static const char *const texts[] = {
        "stem: past = list(x)\n"
        "block: x = tanh(x + sum(past)); past = append(past, x)",
        "stem: past = list(x)\n"
        "block: x = ffn(mean(past)); past = append(past, x)"};
    for (size_t i = 0; i < TB_LEN(texts); i++) {
        tb_flow_spec s = spec_of(3, TB_COTANGENT_RANDOM);
        rig r;
        TB_OKAY(T, rig_open(T, &r, texts[i], true, &s));
        TB_NEAR(T, r.f->rows[3].lane, 1, 1e-15);
        for (size_t k = 0; k < 3; k++)
            TB_CHECK(T, r.f->rows[k].lane == 0);
        TB_CHECK(T, r.f->rows[0].total > 0);
        rig_close(T, &r);
    }
}

/* An encoder under a decoder, each with a list of its own: the ledger carries
 * the memory's gradient, and agrees with the model and with the walk that
 * knows no lists. */
TB_TEST(two_stacks)
{
    static const char with[] =
        "stem: past = list(x)\n"
        "block: past = append(past, F(norm(sum(past)))); x = sum(past)\n"
        "final: x = norm(x)\n";
    tb_flow_spec s = spec_of(3, TB_COTANGENT_LOSS);
    rig host, mine;
    s.settings.stack = TB_STACKS_BOTH;
    TB_OKAY(T, rig_open(T, &mine, with, true, &s));
    TB_OKAY(T, rig_open(T, &host, "pre-ln", true, &s));
    TB_NEAR(T, mine.f->loss, host.f->loss, 1e-14);
    TB_CHECK(T, mine.f->nstacks == 2 && mine.f->nrows == 2 * 4);
    for (size_t i = 0; i < 2; i++) { /* rows of the stems */
        const tb_flow_row *a = &mine.f->rows[mine.f->stacks[i].first];
        const tb_flow_row *b = &host.f->rows[host.f->stacks[i].first];
        TB_NEAR(T, a->total, b->total, 1e-13);
        TB_NEAR(T, a->lane, 1, 1e-13);
        TB_STR(T, a->role, b->role);
        TB_CHECK(T, a->k == mine.f->stacks[i].first);
    }
    for (size_t v = 0; v < mine.f->nweights; v++)
        TB_NEAR(T, mine.f->weights[v].grad_norm, host.f->weights[v].grad_norm,
                1e-13);
    rig_close(T, &host);
    rig_close(T, &mine);
}

TB_TEST(spectrum_wants_one_stream)
{
    tb_flow_spec s = spec_of(2, TB_COTANGENT_LOSS);
    tb_block *b;
    tb_flow *f;
    s.spectrum = true;
    TB_OKAY(T, tb_block_load(T->ctx, dense, &b));
    TB_FAILS(T, tb_flow_measure(T->ctx, b, &s, &f), TB_ERR_ARG,
             "spectrum: got a block with lists, wanted one stream");
    tb_block_destroy(T->ctx, b);
}

TB_TEST(every_failed_allocation_is_reported)
{
    tb_flow_spec s = spec_of(2, TB_COTANGENT_LOSS);
    tb_status status = TB_ERR_MEMORY;
    tb_block *b;
    tb_flow *f;
    TB_OKAY(T, tb_block_load(T->ctx, mixed, &b));
    TB_OKAY(T, tb_flow_measure(T->ctx, b, &s, &f));
    tb_flow_free(T->ctx, f);
    const size_t before = tb_ctx_blocks(T->ctx);
    for (size_t n = 1; status != TB_OK && n < 5000; n++) {
        tb_ctx_fail_alloc_at(T->ctx, n);
        status = tb_flow_measure(T->ctx, b, &s, &f);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        TB_CHECK(T, status == TB_OK || status == TB_ERR_MEMORY);
        tb_flow_free(T->ctx, f);
        if (tb_ctx_blocks(T->ctx) != before)
            tb_test_fail(T, __FILE__, __LINE__, "n = %zu leaks", n);
    }
    TB_CHECK(T, status == TB_OK);
    tb_block_destroy(T->ctx, b);
}
