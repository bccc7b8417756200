/* SPDX-License-Identifier: MIT */
/* Jacobians by many cotangents at once against those row by row: of the layers
 * of every built-in block, and of what cannot be repeated. */
#include "sizes_help.h"
#include "model/model.h"
#include "tb_test.h"

enum { BATCH = 2, TIME = 3, DEPTH = 3, SEED = 5, MOST = 64 };

/** A model after a forward pass. */
typedef struct rig {
    tb_block *block;
    tb_model *m;
    int32_t ids[3 * BATCH * TIME];
    tb_batch batch;
} rig;

static tb_status rig_open(tb_ctx *ctx, rig *r, const char *text,
                          tb_stacks stack, tb_dtype dtype)
{
    *r = (rig){.batch = {.tokens = r->ids}};
    for (size_t i = 0; i < TB_LEN(r->ids); i++)
        r->ids[i] = (int32_t)(i * 5 + 2) % 13;
    if (stack == TB_STACKS_BOTH)
        r->batch.source = r->ids + BATCH * TIME;
    TB_TRY(tb_block_load(ctx, text, &r->block));
    tb_settings s = help_sizes(r->block, DEPTH, TIME, 13);
    s.stack = (int)stack;
    TB_TRY(tb_model_create(ctx, r->block, &s, dtype, &r->m));
    TB_TRY(tb_model_init(r->m, SEED));
    TB_TRY(tb_model_bind(r->m, BATCH, TIME, TB_PASS_BWD | TB_PASS_KEEP));
    return tb_model_forward(r->m, &r->batch, NULL);
}

static void rig_close(tb_ctx *ctx, rig *r)
{
    tb_model_destroy(r->m);
    if (r->block)
        tb_block_destroy(ctx, r->block);
}

static void okay(tb_test *T, tb_status s)
{
    if (s != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
}

/* --- row by row ------------------------------------------------------------
 */

/** All rows of one run, and where they are compared. */
typedef struct rows {
    const tb_run *run;
    const tb_graph *g;
    size_t count, columns; /* rows, elements of a row */
    int inputs[MOST];
    size_t ninputs;
    double *many; /* what is tested */
    void *gout[MOST], *gin[MOST];
} rows;

static size_t width_of(const tb_graph *g, int node)
{
    return g->nodes[node].shape.width;
}

static bool rows_open(tb_test *T, rows *x, const tb_run *run, const tb_graph *g,
                      tb_dtype dtype)
{
    size_t n = BATCH * TIME;
    *x = (rows){.run = run, .g = g};
    for (int o = 0; o < g->noutputs; o++) {
        size_t d = width_of(g, g->outputs[o].node);
        x->count += n * d;
        x->gout[o] = tb_alloc(T->ctx, n * d, tb_dtype_size(dtype));
    }
    for (int i = 0; i < g->ninputs; i++) {
        if (g->nodes[g->inputs[i]].shape.kind != TB_SHAPE_STREAM)
            continue;
        x->inputs[x->ninputs++] = i;
        x->columns += n * width_of(g, g->inputs[i]);
        x->gin[i] = tb_alloc(T->ctx, n * width_of(g, g->inputs[i]),
                             tb_dtype_size(dtype));
    }
    x->many = tb_alloc(T->ctx, x->count * x->columns, sizeof(double));
    return x->many != NULL;
}

static void rows_close(tb_test *T, rows *x)
{
    for (int i = 0; i < MOST; i++) {
        tb_free(T->ctx, x->gout[i]);
        tb_free(T->ctx, x->gin[i]);
    }
    tb_free(T->ctx, x->many);
}

/* The largest difference of row `number` from one backward pass. */
static double row_differs(tb_test *T, const rows *x, int o, size_t element,
                          size_t number, tb_dtype dtype)
{
    double worst = 0, size = 0;
    const double *row = x->many + number * x->columns;
    tb_bwd b = {.hi = -1,
                .lo = -1,
                .gout = (const void *const *)x->gout,
                .gin = x->gin};
    tb_test_set(dtype, x->gout[o], element, 1);
    okay(T, tb_plan_backward(T->ctx, x->run, &b));
    tb_test_set(dtype, x->gout[o], element, 0);
    for (size_t i = 0; i < x->ninputs; i++) {
        size_t n = BATCH * TIME * width_of(x->g, x->g->inputs[x->inputs[i]]);
        for (size_t e = 0; e < n; e++) {
            double want = tb_test_get(dtype, x->gin[x->inputs[i]], e);
            double d = tb_fabs(row[e] - want);
            worst = d > worst ? d : worst;
            size = tb_fabs(want) > size ? tb_fabs(want) : size;
        }
        row += n;
    }
    return worst / (1 + size);
}

static double differ(tb_test *T, const rows *x, tb_dtype dtype)
{
    double worst = 0;
    size_t channels = x->count / (BATCH * TIME), before = 0;
    for (int o = 0; o < x->g->noutputs; o++) {
        size_t d = width_of(x->g, x->g->outputs[o].node);
        for (size_t e = 0; e < BATCH * TIME * d; e++) {
            size_t number = e / d * channels + before + e % d;
            double w = row_differs(T, x, o, e, number, dtype);
            worst = w > worst ? w : worst;
        }
        before += d;
    }
    return worst;
}

/* False where the rows of this part cannot be taken at once. */
static bool part_agrees(tb_test *T, const char *text, rig *r, size_t p,
                        double bound)
{
    const tb_graph *g = tb_model_graph(r->m, p);
    tb_dtype dtype = r->m->dtype;
    tb_run run;
    rows x;
    bool done = false;
    okay(T, tb_model_run(r->m, p, &r->batch, &run));
    if (!rows_open(T, &x, &run, g, dtype)) {
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
        return false;
    }
    const tb_jacobian_spec j = {.inputs = x.inputs,
                                .ninputs = x.ninputs,
                                .columns = x.columns,
                                .out = x.many};
    okay(T, tb_plan_jacobian(T->ctx, &run, &j, &done));
    if (done) {
        double d = differ(T, &x, dtype);
        if (!(d <= bound))
            tb_test_fail(T, __FILE__, __LINE__, "%s, part %zu: off by %g", text,
                         p, d);
    }
    rows_close(T, &x);
    return done;
}

/* How many layers' rows were taken at once. */
static size_t layers_agree(tb_test *T, const char *text, tb_stacks stack,
                           tb_dtype dtype, double bound)
{
    rig r;
    size_t n = 0;
    okay(T, rig_open(T->ctx, &r, text, stack, dtype));
    for (size_t p = 0; r.m && p < r.m->nparts; p++)
        if (tb_model_role(r.m, p) == TB_PART_LAYER)
            n += part_agrees(T, text, &r, p, bound);
    rig_close(T->ctx, &r);
    return n;
}

/* Blocks whose tokens meet in a batch, or that draw masks, go row by row. */
TB_TEST(every_built_in)
{
    static const char *const apart[] = {"batchnorm", "stochastic-depth"};
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        const char *name = tb_builtin_name(i);
        size_t want = DEPTH;
        for (size_t k = 0; k < TB_LEN(apart); k++)
            want = tb_streq(name, apart[k]) ? 0 : want;
        size_t n = layers_agree(T, name, TB_STACKS_DECODER, TB_F64, 1e-13);
        if (n != want)
            tb_test_fail(T, __FILE__, __LINE__, "%s: %zu layers", name, n);
    }
}

TB_TEST(floats_and_two_stacks)
{
    TB_CHECK(T, layers_agree(T, "pre-ln", TB_STACKS_ENCODER, TB_F32, 1e-6) ==
                    DEPTH);
    TB_CHECK(T, layers_agree(T, "sandwich", TB_STACKS_BOTH, TB_F64, 1e-13) ==
                    2 * DEPTH);
    TB_CHECK(T, layers_agree(T, "powernorm", TB_STACKS_BOTH, TB_F64, 1e-13) ==
                    DEPTH); /* its encoder's tokens meet */
}

/* Our own product sums in one order, however many rows it has. */
TB_TEST(exact_products_have_the_same_bits)
{
    tb_ctx_exact(T->ctx, true);
    TB_CHECK(T,
             layers_agree(T, "pre-ln", TB_STACKS_DECODER, TB_F32, 0) == DEPTH);
    TB_CHECK(T,
             layers_agree(T, "post-ln", TB_STACKS_DECODER, TB_F64, 0) == DEPTH);
    tb_ctx_exact(T->ctx, false);
}
