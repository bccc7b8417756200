/* SPDX-License-Identifier: MIT */
/* The lane that explain states against the lane that flow measures, through N
 * blocks of every built-in block: by kind, and as the product of the lane's
 * formulas evaluated on the values of the run. */
#include "gradients/random_block.h"
#include "sizes_help.h"
#include "flow/flow_model.h"
#include "model/lane_depth.h"
#include "model/symbolic.h"
#include "tb_test.h"

#include <stdio.h>

enum { DEPTH = 5, TOKENS = 3, SEED = 5 };

typedef struct taken {
    tb_block *block;
    tb_model *m;
    tb_flow *f;
    int32_t ids[TOKENS + 1];
    tb_batch batch;
} taken;

/* Squares of squares: there are no numbers to compare. */
static bool overflows(const tb_flow *f)
{
    bool none = false;
    for (size_t k = 0; k < f->nrows; k++)
        none = none || f->rows[k].nonfinite || !(f->rows[k].norm_x < 1e100) ||
               !(f->rows[k].lane < 1e100);
    return none;
}

/* A block by its name or text; of a random one, at its sizes. */
static tb_status take(tb_ctx *ctx, taken *x, const char *what,
                      const random_drawn *d)
{
    *x = (taken){
        .batch = {.tokens = x->ids, .targets = x->ids + 1, .seed = SEED}};
    for (int i = 0; i <= TOKENS; i++)
        x->ids[i] = (i * 5 + 2) % 13;
    TB_TRY(tb_block_load(ctx, what, &x->block));
    tb_flow_spec s = {.settings = help_sizes(x->block, DEPTH, TOKENS, 13),
                      .seed = SEED,
                      .dtype = TB_F64,
                      .cotangent = TB_COTANGENT_RANDOM,
                      .ids = x->ids};
    if (d) {
        s.settings.width = d->width;
        s.settings.heads = d->heads;
        s.settings.stack = d->stack;
    }
    TB_TRY(tb_model_create(ctx, x->block, &s.settings, TB_F64, &x->m));
    TB_TRY(tb_model_init(x->m, SEED));
    return tb_flow_of_model(x->m, &s, &x->f);
}

static void leave(tb_ctx *ctx, taken *x)
{
    tb_flow_free(ctx, x->f);
    tb_model_destroy(x->m);
    if (x->block)
        tb_block_destroy(ctx, x->block);
}

/* --- the product of the formulas ------------------------------------------ */

/** The lane's signal on its way down: [streams * n]. */
typedef struct descent {
    tb_arena a;
    size_t streams, n;
    double *g, *next, *m;
    double top;
    bool loose;
    size_t row;
} descent;

static double length_of(const descent *d)
{
    double sum = 0;
    for (size_t i = 0; i < d->streams * d->n; i++)
        sum += d->g[i] * d->g[i];
    return tb_sqrt(sum);
}

static void begin(tb_test *T, descent *d, const taken *x)
{
    tb_rng r = tb_rng_make(SEED, "cotangent");
    tb_arena_init(&d->a, T->ctx);
    size_t first = tb_model_layers(x->m, tb_model_tail(x->m)).first;
    d->streams = (size_t)tb_model_graph(x->m, first)->nstreams;
    d->n = TOKENS * x->m->sizes.s.width;
    d->g = tb_arena_alloc(&d->a, d->streams * d->n * sizeof *d->g);
    d->next = tb_arena_alloc(&d->a, d->streams * d->n * sizeof *d->g);
    d->m = tb_arena_alloc(&d->a, d->n * d->n * sizeof *d->m);
    TB_CHECK(T, d->g && d->next && d->m);
    for (size_t i = 0; i < d->streams * d->n; i++)
        d->g[i] = tb_rng_normal(r, i);
    d->top = length_of(d);
    d->row = x->f->nrows - 1;
}

/* g = transposed step f of the lane, times g. */
static void step_down(tb_test *T, descent *d, const tb_symbolic *at,
                      const tb_jacobian *j, int f)
{
    size_t s = d->streams, n = d->n;
    memset(d->next, 0, s * n * sizeof *d->next);
    for (size_t i = 0; i < s; i++)
        for (size_t k = 0; k < s; k++) {
            const tb_jx *x = j->entries[((size_t)f * s + i) * s + k];
            if (x->kind == TB_JX_ZERO)
                continue;
            TB_OKAY(T, tb_symbolic_term(at, x, n, n, d->m));
            for (size_t r = 0; r < n; r++)
                for (size_t c = 0; c < n; c++)
                    d->next[k * n + c] += d->m[r * n + c] * d->g[i * n + r];
        }
    memcpy(d->g, d->next, s * n * sizeof *d->g);
}

static void compare_row(tb_test *T, const descent *d, const taken *x,
                        const char *name)
{
    double want = length_of(d) / d->top, got = x->f->rows[d->row].lane;
    double share = d->loose ? 1e-9 : 1e-12;
    double within = d->loose ? 1e-12 : 1e-42; /* a norm of a norm keeps none */
    if (!(tb_fabs(want - got) <= share * want + within))
        tb_test_fail(T, __FILE__, __LINE__,
                     "%s: k %zu: formulas %.17g, "
                     "measured %.17g",
                     name, d->row, want, got);
}

/* Every boundary of one stream; of several, every block. */
static void block_down(tb_test *T, descent *d, const taken *x, size_t part,
                       const char *name)
{
    tb_run run;
    tb_jacobian j;
    const tb_graph *g = tb_model_graph(x->m, part);
    TB_OKAY(T, tb_model_run(x->m, part, &x->batch, &run));
    const tb_symbolic at = {T->ctx, g, &run, TOKENS};
    TB_OKAY(T, tb_jacobian_build(T->ctx, &d->a, g, TB_JAC_LANE, &j));
    for (int f = j.nfactors - 1; f >= 0; f--) {
        if (d->streams == 1 || f == j.nfactors - 1) {
            compare_row(T, d, x, name);
            d->row--;
        }
        step_down(T, d, &at, &j, f);
    }
}

/* What the kind promises, to the last bit where it is a constant. */
static void compare_kind(tb_test *T, const taken *x, const char *name,
                         bool loose)
{
    tb_layers layers = tb_model_layers(x->m, tb_model_tail(x->m));
    tb_lane_path path[TB_STREAMS_MOST * TB_STREAMS_MOST];
    double lane = x->f->rows[0].lane;
    TB_OKAY(T, tb_lane_through(x->m, layers, path));
    if (tb_model_graph(x->m, layers.first)->nstreams > 1)
        return;
    bool holds = true;
    size_t rows = loose ? 1 : x->f->nrows; /* 2*x, then x/2: at its ends */
    for (size_t k = 0; k < rows && path->kind == TB_LANE_KIND_CLEAN; k++)
        holds = holds && x->f->rows[k].lane == 1;
    if (path->kind == TB_LANE_KIND_SCALED)
        holds = tb_fabs(lane - tb_fabs(path->value)) <=
                1e-13 * tb_fabs(path->value);
    if (path->kind == TB_LANE_KIND_NONE)
        holds = lane == 0;
    if (!holds)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s %.17g, measured %.17g",
                     name, tb_lane_kind_name(path->kind), path->value, lane);
}

/* False where there is nothing to compare. */
static bool check(tb_test *T, const char *name, const random_drawn *drawn)
{
    taken x;
    descent d = {.loose = drawn != NULL};
    if (take(T->ctx, &x, name, drawn) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", name, tb_error(T->ctx));
        leave(T->ctx, &x);
        return false;
    }
    tb_layers layers = tb_model_layers(x.m, tb_model_tail(x.m));
    /* lists are no chain of blocks: test_flow_history */
    if (tb_model_graph(x.m, layers.first)->nlists > 0 ||
        (drawn && overflows(x.f))) {
        leave(T->ctx, &x);
        return false;
    }
    begin(T, &d, &x);
    for (size_t p = layers.first + layers.n; p-- > layers.first;)
        block_down(T, &d, &x, p, name);
    compare_row(T, &d, &x, name);
    TB_CHECK(T, d.row == 0);
    compare_kind(T, &x, name, drawn != NULL);
    tb_arena_clear(&d.a);
    leave(T->ctx, &x);
    return true;
}

TB_TEST(every_built_in)
{
    size_t compared = 0;
    for (size_t i = 0; i < tb_builtin_count(); i++)
        compared += check(T, tb_builtin_name(i), NULL);
    TB_CHECK(T, 4 * compared > 3 * tb_builtin_count());
}

TB_TEST(texts)
{
    static const char *const blocks[] = {
        "x = 2*x + F(norm(x))",
        "x = x/(l + 1) - F(x)",
        "a = scalar(0.7); x = a*x + F(x)",
        "w = linear(d, d); x = sigmoid(w(x))*x + F(norm(x))",
        "stem: y = x\nblock: x = x/2 + F(y); y = norm(y + x)",
        "stem: y = x\nblock: x = x + F(y); y = 3*y + x",
        "block[l <= 2]: x = norm(x + F(x))\nblock: x = 0.5*x + F(norm(x))"};
    for (size_t i = 0; i < TB_LEN(blocks); i++)
        TB_CHECK(T, check(T, blocks[i], NULL));
}

TB_TEST(random_blocks)
{
    const random_seeds all = random_asked(150);
    size_t compared = 0;
    tb_ctx_threads(T->ctx, 1);
    for (uint64_t seed = all.from; seed < all.to && T->failed < 10; seed++) {
        random_drawn d;
        int failed = T->failed;
        random_block(T->ctx, seed, 0, &d);
        if (d.stack != TB_STACKS_BOTH)
            compared += check(T, tb_buf_str(&d.text), &d);
        if (T->failed > failed)
            printf("seed %llu, width %zu\n", (unsigned long long)seed, d.width);
        tb_buf_clear(&d.text);
    }
    printf("%zu of %llu random blocks compared\n", compared,
           (unsigned long long)(all.to - all.from));
    TB_CHECK(T, 2 * compared > all.to - all.from || !all.enough);
}
