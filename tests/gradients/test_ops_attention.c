/* SPDX-License-Identifier: MIT */
/* Attention: masks, memories of another length, queries that see nothing, and
 * what a NaN may and may not reach. */
#include "test_ops_call.h"

enum { T_LONG = 150, W = 8, HEADS = 2 };

static double bad_value(int inf)
{
    volatile double zero = 0;
    return inf ? 1 / zero : zero / zero;
}

static variant attention(size_t tq, size_t tk, double causal)
{
    return (variant){.op = "mha",
                     .batch = 2,
                     .time = tq,
                     .in_time = {0, tk, tk, 0},
                     .nin = 3,
                     .in = {STREAM(W), STREAM(W), STREAM(W)},
                     .attr = {HEADS, HEADS, causal}};
}

/* The same with a mask [T_q, T_k]. */
static bool open_masked(tb_test *T, bed *b, size_t tq, size_t tk, double causal,
                        const double *mask)
{
    variant v = attention(tq, tk, causal);
    v.nin = 4;
    v.in[3] = (tb_shape){TB_SHAPE_MATRIX, tk, tq};
    if (!bed_open(T, b, &v, TB_F64))
        return false;
    bed_put(b, b->x[3], mask, tq * tk);
    return true;
}

static void run_all(const bed *b)
{
    bed_fwd(b);
    bed_tan(b, 7);
    bed_bwd(b, 7);
}

static bool all_zero(const bed *b, const void *x, size_t from, size_t n)
{
    for (size_t i = from; i < from + n; i++)
        if (bed_get(b, x, i) != 0)
            return false;
    return true;
}

static bool finite_run(const bed *b)
{
    for (int i = 0; i < 3; i++)
        if (b->c.k->nonfinite(b->n[i], b->g[i]))
            return false;
    return !b->c.k->nonfinite(b->nout, b->y) &&
           !b->c.k->nonfinite(b->nout, b->ty);
}

/* What each query sees, as 0 and 1, by its probabilities: column j is the
 * tangent along v's token j. */
static void check_visible(tb_test *T, const bed *b, size_t tk,
                          const double *want)
{
    size_t tq = b->c.time, n = 2 * tq * HEADS;
    double sum[64] = {0};
    TB_REQUIRE(T, n <= TB_LEN(sum));
    for (size_t j = 0; j < tk; j++) {
        bed_set_all(b, b->t[2], b->n[2], 0);
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 0; i < W; i++)
                tb_test_set(b->type, b->t[2], (s * tk + j) * W + i, 1);
        bed_tan(b, 4);
        for (size_t at = 0; at < n; at++) {
            double p = bed_get(b, b->ty, at * (W / HEADS));
            TB_CHECK(T, (p > 0) == (want[at / HEADS % tq * tk + j] != 0));
            sum[at] += p;
        }
    }
    for (size_t at = 0; at < n; at++) {
        bool any = false;
        for (size_t j = 0; j < tk; j++)
            any = any || want[at / HEADS % tq * tk + j] != 0;
        TB_NEAR(T, sum[at], any ? 1 : 0, 1e-14);
    }
}

/* --- queries that see nothing ------------------------------------------- */

/* C074: zeros, no gradient, and the other rows as if it were not there */
TB_TEST(row_with_every_key_masked)
{
    const double mask[] = {1, 0, 1, 0, 0, 0, 1, 1, 1};
    const double rest[] = {1, 0, 1, 1, 1, 1};
    const size_t row[] = {0, 2};
    bed b, two;
    TB_REQUIRE(T, open_masked(T, &b, 3, 3, 0, mask));
    bed_set_all(&b, b.gy, b.nout, 1);
    run_all(&b);
    TB_CHECK(T, finite_run(&b));
    check_visible(T, &b, 3, mask);
    for (size_t s = 0; s < 2; s++) {
        size_t at = (3 * s + 1) * W;
        TB_CHECK(T, all_zero(&b, b.y, at, W) && all_zero(&b, b.ty, at, W));
        TB_CHECK(T, all_zero(&b, b.g[0], at, W));
    }
    TB_REQUIRE(T, open_masked(T, &two, 2, 3, 0, rest));
    for (size_t i = 0; i < 4; i++)
        memcpy((double *)two.x[0] + i * W,
               (double *)b.x[0] + (i / 2 * 3 + row[i % 2]) * W,
               W * sizeof(double));
    for (int i = 1; i < 3; i++)
        memcpy(two.x[i], b.x[i], b.n[i] * sizeof(double));
    bed_set_all(&two, two.gy, two.nout, 1);
    run_all(&two);
    for (size_t i = 0; i < 4; i++) {
        size_t at = (i / 2 * 3 + row[i % 2]) * W, n = W * sizeof(double);
        TB_SAME(T, (double *)b.y + at, (double *)two.y + i * W, n);
        TB_SAME(T, (double *)b.g[0] + at, (double *)two.g[0] + i * W, n);
    }
    for (int i = 1; i < 3; i++)
        TB_NEAR_N(T, (double *)b.g[i], (double *)two.g[i], b.n[i], 1e-15);
}

/* C077: keep means keep; the strict upper triangle is then the future */
TB_TEST(one_means_keep)
{
    const double future[] = {0, 1, 1, 0, 0, 1, 0, 0, 0};
    bed b;
    TB_REQUIRE(T, open_masked(T, &b, 3, 3, 0, future));
    bed_fwd(&b);
    check_visible(T, &b, 3, future);
}

/* A mask and causality are joined as booleans: hidden by both is hidden once
 * (C075), and a query left with nothing by the two together is zero. */
TB_TEST(mask_and_causality)
{
    const double mask[] = {0, 1, 1, 1, 0, 1, 1, 1, 0};
    const double want[] = {0, 0, 0, 1, 0, 0, 1, 1, 0};
    bed b;
    TB_REQUIRE(T, open_masked(T, &b, 3, 3, 1, mask));
    run_all(&b);
    check_visible(T, &b, 3, want);
    TB_CHECK(T, finite_run(&b) && all_zero(&b, b.y, 0, W));
}

/* A mask of ones changes no bit, whatever its form. */
TB_TEST(mask_of_ones)
{
    const variant plain = attention(5, 7, 1);
    const tb_shape shape[] = {MATRIX(5, 7), STREAM(7), STREAM(1)};
    const size_t time[] = {0, 5, 7};
    for (int k = 0; k < 3; k++) {
        variant v = plain;
        uint64_t draws = T->draws;
        bed a, b;
        v.nin = 4;
        v.in[3] = shape[k];
        v.in_time[3] = time[k];
        TB_REQUIRE(T, bed_open(T, &a, &plain, TB_F32));
        T->draws = draws;
        TB_REQUIRE(T, bed_open(T, &b, &v, TB_F32));
        memcpy(b.gy, a.gy, a.nout * sizeof(float));
        bed_set_all(&b, b.x[3], b.n[3], 1);
        run_all(&a), run_all(&b);
        TB_SAME(T, a.y, b.y, a.nout * sizeof(float));
        TB_SAME(T, a.ty, b.ty, a.nout * sizeof(float));
        for (int i = 0; i < 3; i++)
            TB_SAME(T, a.g[i], b.g[i], a.n[i] * sizeof(float));
    }
}

/* --- another length ----------------------------------------------------- */

/* C078: key j is seen by query i iff j <= i + T_k - T_q */
TB_TEST(causal_is_bottom_right)
{
    const double wide[] = {1, 1, 1, 1, 0, 1, 1, 1, 1, 1};
    const double tall[] = {0, 0, 0, 0, 0, 0, 1, 0, 1, 1};
    const variant a = attention(2, 5, 1), c = attention(5, 2, 1);
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, &a, TB_F64));
    run_all(&b);
    check_visible(T, &b, 5, wide);
    TB_CHECK(T, b.op->flops(&b.c) == 4.0 * 2 * 9 * W);
    TB_REQUIRE(T, bed_open(T, &b, &c, TB_F64));
    run_all(&b);
    check_visible(T, &b, 2, tall);
    TB_CHECK(T, finite_run(&b) && all_zero(&b, b.y, 0, 3 * W));
    TB_CHECK(T, b.op->flops(&b.c) == 4.0 * 2 * 3 * W);
}

/* C078: one token at a time against the full pass */
TB_TEST(token_by_token)
{
    enum { LONG = 70 };
    const variant full = attention(LONG, LONG, 1);
    bed a, b;
    TB_REQUIRE(T, bed_open(T, &a, &full, TB_F32));
    bed_fwd(&a);
    for (size_t t = 1; t <= LONG; t += 23) {
        const variant one = attention(1, t, 1);
        TB_REQUIRE(T, bed_open(T, &b, &one, TB_F32));
        for (size_t s = 0; s < 2; s++) {
            float *from = (float *)a.x[0] + (s * LONG + t - 1) * W;
            memcpy((float *)b.x[0] + s * W, from, W * sizeof(float));
            for (int i = 1; i < 3; i++)
                memcpy((float *)b.x[i] + s * t * W,
                       (float *)a.x[i] + s * LONG * W, t * W * sizeof(float));
        }
        bed_fwd(&b);
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 0; i < W; i++)
                TB_NEAR(T, bed_get(&b, b.y, s * W + i),
                        bed_get(&a, a.y, (s * LONG + t - 1) * W + i), 1e-6);
    }
}

TB_TEST(lengths_that_do_not_fit)
{
    variant v = attention(3, 5, 0);
    bed b;
    v.nin = 4;
    v.in[3] = (tb_shape)STREAM(5);
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    b.c.in_time[2] = 4;
    TB_STR(T, b.op->fit(&b.c), "k and v must have the same number of tokens");
    b.c.in_time[2] = 5;
    b.c.in_time[3] = 5;
    TB_STR(T, b.op->fit(&b.c),
           "the mask must be [T_q, T_k], [B, T_q, T_k] or [B, T_k, 1]");
    b.c.in_shape[3] = (tb_shape)MATRIX(5, 3);
    TB_CHECK(T, b.op->fit(&b.c) != NULL);
    b.c.in_shape[3] = (tb_shape)MATRIX(3, 5);
    TB_CHECK(T, b.op->fit(&b.c) == NULL);
}

/* An additive mask is found, not misread. */
TB_TEST(mask_values)
{
    const double good[] = {1, 0, 0, 1}, added[] = {0, 0, -1e9, 0};
    size_t row = 9;
    bed b;
    TB_REQUIRE(T, open_masked(T, &b, 2, 2, 0, good));
    tb_opcall c = bed_call(&b);
    TB_CHECK(T, b.op->check(&c, &row) == NULL);
    bed_put(&b, b.x[3], added, 4);
    TB_STR(T, b.op->check(&c, &row),
           "a mask holds 1 (keep) or 0 (hide), not this");
    TB_CHECK(T, row == 1);
}

/* A scale of its own, of any sign; 0 is the usual one. */
TB_TEST(scale)
{
    variant v = attention(3, 3, 0);
    bed a, b;
    uint64_t draws = T->draws;
    TB_REQUIRE(T, bed_open(T, &a, &v, TB_F64));
    v.attr[TB_ATTR_ATTN_SCALE] = -1 / tb_sqrt(W / HEADS);
    T->draws = draws;
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    for (size_t i = 0; i < b.n[1]; i++)
        ((double *)b.x[1])[i] *= -1;
    bed_fwd(&a), bed_fwd(&b);
    TB_NEAR_N(T, (double *)a.y, (double *)b.y, a.nout, 1e-15);
}

/* --- what a NaN reaches ------------------------------------------------- */

/* Rows [from, to) of the first sequence of x become NaN or infinite. */
static void spoil(const bed *b, void *x, size_t from, size_t to, int inf)
{
    for (size_t i = from * W; i < to * W; i++)
        tb_test_set(b->type, x, i, bad_value(inf));
}

static void same_rows(tb_test *T, const bed *b, const void *x, const void *want,
                      size_t from, size_t to)
{
    size_t one = W * tb_dtype_size(b->type);
    TB_SAME(T, (const char *)x + from * one, (const char *)want + from * one,
            (to - from) * one);
}

/* Two beds with the same numbers. */
static bool twins(tb_test *T, bed *a, bed *b, const variant *v, tb_dtype type)
{
    uint64_t draws = T->draws;
    if (!bed_open(T, a, v, type))
        return false;
    T->draws = draws;
    return bed_open(T, b, v, type);
}

/* Later tokens hold NaN or infinity: rows before them keep every bit, forward,
 * tangent and the gradient of their query. */
TB_TEST(nan_of_a_later_token)
{
    const size_t cut[] = {1, 63, 64, 65, 149};
    const variant v = attention(T_LONG, T_LONG, 1);
    for (size_t k = 0; k < 4 * TB_LEN(cut); k++) {
        size_t at = cut[k / 4];
        bed a, b;
        TB_REQUIRE(T, twins(T, &a, &b, &v, k % 2 ? TB_F32 : TB_F64));
        run_all(&a);
        for (int i = 0; i < 3; i++) {
            spoil(&b, b.x[i], at, T_LONG, k / 2 % 2);
            spoil(&b, b.t[i], at, T_LONG, k / 2 % 2);
        }
        spoil(&b, b.gy, at, T_LONG, 0);
        run_all(&b);
        same_rows(T, &b, b.y, a.y, 0, at);
        same_rows(T, &b, b.ty, a.ty, 0, at);
        same_rows(T, &b, b.g[0], a.g[0], 0, at);
        double y = bed_get(&b, b.y, at * W);
        TB_CHECK(T, y != y);        /* its own row shows it */
        for (int i = 0; i < 3; i++) /* the other sequence */
            same_rows(T, &b, b.g[i], a.g[i], T_LONG, 2 * T_LONG);
    }
}

/* The other way round: a query that came before gives nothing to a key. */
TB_TEST(nan_gradient_of_an_earlier_token)
{
    const size_t cut[] = {1, 63, 64, 65, 149};
    const variant v = attention(T_LONG, T_LONG, 1);
    for (size_t k = 0; k < 2 * TB_LEN(cut); k++) {
        size_t at = cut[k / 2];
        bed a, b;
        TB_REQUIRE(T, twins(T, &a, &b, &v, k % 2 ? TB_F32 : TB_F64));
        run_all(&a);
        spoil(&b, b.x[0], 0, at, 0);
        spoil(&b, b.gy, 0, at, 0);
        run_all(&b);
        for (int i = 0; i < 3; i++)
            same_rows(T, &b, b.g[i], a.g[i], at, T_LONG);
        double g = bed_get(&b, b.g[2], 0);
        TB_CHECK(T, g != g);
    }
}

/* Padding that holds NaN: as if it held zeros. */
TB_TEST(nan_behind_a_mask)
{
    variant v = attention(6, 9, 0);
    v.nin = 4;
    v.in[3] = (tb_shape)STREAM(1);
    v.in_time[3] = 9;
    for (int inf = 0; inf < 2; inf++) {
        bed a, b;
        TB_REQUIRE(T, twins(T, &a, &b, &v, TB_F32));
        for (size_t j = 0; j < 18; j++) {
            tb_test_set(TB_F32, a.x[3], j, j % 3 != 1);
            tb_test_set(TB_F32, b.x[3], j, j % 3 != 1);
        }
        for (size_t j = 1; j < 18; j += 3)
            for (int i = 1; i < 3; i++) {
                memset((float *)a.x[i] + j * W, 0, W * sizeof(float));
                spoil(&b, (float *)b.x[i] + j * W, 0, 1, inf);
                spoil(&b, (float *)b.t[i] + j * W, 0, 1, inf);
            }
        run_all(&a), run_all(&b);
        TB_CHECK(T, finite_run(&b));
        TB_SAME(T, b.y, a.y, a.nout * sizeof(float));
        for (int i = 0; i < 3; i++)
            TB_SAME(T, b.g[i], a.g[i], a.n[i] * sizeof(float));
        for (size_t j = 1; j < 18; j += 3)
            TB_CHECK(T, all_zero(&b, b.g[1], j * W, W) &&
                            all_zero(&b, b.g[2], j * W, W));
    }
}

/* --- against the definition, in double ----------------------------------- */

enum { R_TK = 420, R_WIDTH = 96 };

/* One query of one head: its score with key j and what it sees. */
typedef struct plain {
    const bed *b;
    size_t s, h, kv, tq, tk, hd, qw, kw;
    double scale, drop;
} plain;

static plain plain_of(const bed *b, size_t s, size_t h)
{
    const double *attr = b->c.attr;
    plain p = {.b = b, .s = s, .h = h, .tq = b->c.time};
    size_t heads = (size_t)attr[TB_ATTR_ATTN_HEADS];
    p.tk = b->c.in_time[1] ? b->c.in_time[1] : p.tq;
    p.qw = b->c.in_shape[0].width;
    p.kw = b->c.in_shape[1].width;
    p.hd = p.qw / heads;
    p.kv = h / (heads / (size_t)attr[TB_ATTR_ATTN_KV_HEADS]);
    p.scale = attr[TB_ATTR_ATTN_SCALE];
    if (p.scale == 0)
        p.scale = 1 / tb_sqrt((double)p.hd);
    p.drop = attr[TB_ATTR_ATTN_DROP];
    return p;
}

static const double *row_q(const plain *p, const void *x, size_t i)
{
    return (const double *)x + (p->s * p->tq + i) * p->qw + p->h * p->hd;
}

static const double *row_k(const plain *p, const void *x, size_t j)
{
    return (const double *)x + (p->s * p->tk + j) * p->kw + p->kv * p->hd;
}

static double inner(const plain *p, const double *a, const double *b)
{
    double sum = 0;
    for (size_t c = 0; c < p->hd; c++)
        sum += a[c] * b[c];
    return sum;
}

static bool plain_sees(const plain *p, size_t i, size_t j)
{
    const bed *b = p->b;
    size_t at = i * p->tk + j;
    if (b->c.attr[TB_ATTR_ATTN_CAUSAL] != 0 && j + p->tq > i + p->tk)
        return false;
    if (b->c.nin < 4)
        return true;
    if (b->c.in_shape[3].kind == TB_SHAPE_STREAM)
        at =
            b->n[3] == 2 * p->tk ? p->s * p->tk + j : p->s * p->tq * p->tk + at;
    return bed_get(b, b->x[3], at) > 0;
}

/* pr[j], the probabilities of query i, and m[j], what dropout makes of 1 */
static void plain_row(const plain *p, size_t i, double *pr, double *m)
{
    const bed *b = p->b;
    double max = bad_value(1) * -1, sum = 0;
    size_t heads = (size_t)b->c.attr[TB_ATTR_ATTN_HEADS];
    size_t first = ((p->s * heads + p->h) * p->tq + i) * p->tk;
    for (size_t j = 0; j < p->tk; j++) {
        pr[j] = p->scale * inner(p, row_q(p, b->x[0], i), row_k(p, b->x[1], j));
        max = plain_sees(p, i, j) && pr[j] > max ? pr[j] : max;
    }
    for (size_t j = 0; j < p->tk; j++) {
        pr[j] = plain_sees(p, i, j) ? tb_exp(pr[j] - max) : 0;
        sum += pr[j];
        bool gone = p->drop > 0 && tb_rng_drops(b->c.rng, first + j, p->drop);
        m[j] = gone ? 0 : 1 / (1 - p->drop);
    }
    for (size_t j = 0; j < p->tk; j++)
        pr[j] = sum > 0 ? pr[j] / sum : 0;
}

/* Adds query i's output, tangent and gradients to y, ty and g. */
static void plain_query(const plain *p, size_t i, double *y, double *ty,
                        double *const *g)
{
    const bed *b = p->b;
    const double *q = row_q(p, b->x[0], i), *tq = row_q(p, b->t[0], i);
    const double *gy = row_q(p, b->gy, i);
    size_t at = (size_t)(q - (const double *)b->x[0]);
    double pr[R_TK], m[R_TK], back = 0, ahead = 0;
    plain_row(p, i, pr, m);
    for (size_t j = 0; j < p->tk; j++) {
        const double *k = row_k(p, b->x[1], j), *v = row_k(p, b->x[2], j);
        back += pr[j] * m[j] * inner(p, gy, v);
        ahead += pr[j] * (inner(p, tq, k) + inner(p, q, row_k(p, b->t[1], j)));
    }
    for (size_t j = 0; j < p->tk; j++) {
        const double *k = row_k(p, b->x[1], j), *v = row_k(p, b->x[2], j);
        const double *tk = row_k(p, b->t[1], j), *tv = row_k(p, b->t[2], j);
        size_t to = (size_t)(k - (const double *)b->x[1]);
        double w = p->scale * pr[j];
        double gs = w * (m[j] * inner(p, gy, v) - back);
        double ts = w * (inner(p, tq, k) + inner(p, q, tk) - ahead);
        for (size_t c = 0; c < p->hd; c++) {
            y[at + c] += m[j] * pr[j] * v[c];
            ty[at + c] += m[j] * (ts * v[c] + pr[j] * tv[c]);
            g[0][at + c] += gs * k[c];
            g[1][to + c] += gs * q[c];
            g[2][to + c] += m[j] * pr[j] * gy[c];
        }
    }
}

static double largest(const void *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double v = tb_fabs(((const double *)x)[i]);
        most = v > most ? v : most;
    }
    return most;
}

static void near_plain(tb_test *T, const void *x, const double *want, size_t n)
{
    double size = largest(want, n);
    TB_NEAR_N(T, (const double *)x, want, n, 1e-13 * (size > 1 ? size : 1));
}

static void check_plain(tb_test *T, const variant *v)
{
    bed b;
    TB_REQUIRE(T, bed_open(T, &b, v, TB_F64));
    double *y = bed_buffer(T, TB_F64, b.nout);
    double *ty = bed_buffer(T, TB_F64, b.nout), *g[3];
    memset(y, 0, b.nout * sizeof *y);
    memset(ty, 0, b.nout * sizeof *ty);
    for (int i = 0; i < 3; i++) {
        g[i] = bed_buffer(T, TB_F64, b.n[i]);
        memset(g[i], 0, b.n[i] * sizeof **g);
    }
    for (size_t s = 0; s < v->batch; s++)
        for (size_t h = 0; h < (size_t)v->attr[TB_ATTR_ATTN_HEADS]; h++) {
            const plain p = plain_of(&b, s, h);
            for (size_t i = 0; i < p.tq; i++)
                plain_query(&p, i, y, ty, g);
        }
    run_all(&b);
    near_plain(T, b.y, y, b.nout);
    near_plain(T, b.ty, ty, b.nout);
    for (int i = 0; i < 3; i++)
        near_plain(T, b.g[i], g[i], b.n[i]);
}

static size_t below(tb_test *T, size_t n)
{
    return (size_t)(tb_test_uniform(T) * (double)n);
}

/* The k-th call of this length: every mask, with and without causality, dropout
 * and shared keys. */
static variant drawn(tb_test *T, size_t k, size_t tq, size_t tk)
{
    size_t kv = 1 + below(T, 2), group = 1 + below(T, 2);
    size_t hd = 1 + below(T, R_WIDTH / (kv * group));
    const tb_shape mask[] = {MATRIX(tq, tk), STREAM(tk), STREAM(1)};
    const size_t time[] = {0, tq, tk};
    return (variant){.op = "mha",
                     .batch = 2,
                     .time = tq,
                     .in_time = {0, tk, tk, time[k % 3]},
                     .nin = k % 4 ? 4 : 3,
                     .in = {STREAM(kv * group * hd), STREAM(kv * hd),
                            STREAM(kv * hd), mask[k % 3]},
                     .attr = {(double)(kv * group), (double)kv,
                              (double)(k / 2 % 2), k % 5 < 2 ? 0.25 : 0,
                              k % 7 ? 0 : -0.3}};
}

/* Head counts, widths, lengths around those of tiles and blocks. */
TB_TEST(equals_the_definition)
{
    const size_t len[] = {1, 2, 47, 48, 49, 95, 97, 191, 192, 193, 200, 385};
    for (size_t k = 0; k < 48; k++) {
        const variant v =
            drawn(T, k, len[below(T, TB_LEN(len))], len[k % TB_LEN(len)]);
        check_plain(T, &v);
    }
}

/* Few queries, few keys, or both. */
TB_TEST(short_sequences_equal_the_definition)
{
    const size_t many[] = {15, 16, 17, 63, 64, 65, 130};
    for (size_t k = 0; k < 63; k++) {
        const size_t few = 1 + k % 9, other = many[k % 7];
        const variant both = drawn(T, k, few, 1 + k / 7);
        const variant queries = drawn(T, k, 1 + k % 2, other);
        const variant keys = drawn(T, k, other, few);
        check_plain(T, &both);
        check_plain(T, &queries);
        check_plain(T, &keys);
    }
}

/* --- many gradients of one forward pass ----------------------------------- */

/* `copies` gradients of the output, of copy i at token i % time alone where
 * `own`; what inputs get from each by itself, added to what is there. */
typedef struct many {
    size_t copies;
    bool own;
    double *gout, *want[3], *got[3];
} many;

static void many_open(tb_test *T, const bed *b, many *m)
{
    m->gout = bed_buffer(T, TB_F64, m->copies * b->nout);
    bed_fill(T, TB_F64, m->gout, m->copies * b->nout);
    for (size_t i = 0; m->own && i < m->copies * b->nout; i++) {
        size_t token = i / b->c.out_shape.width % b->c.time;
        if (token != i / b->nout % b->c.time)
            m->gout[i] = 0;
    }
    for (int k = 0; k < 3; k++) {
        size_t n = m->copies * b->n[k];
        m->want[k] = bed_buffer(T, TB_F64, n);
        m->got[k] = bed_buffer(T, TB_F64, n);
        bed_fill(T, TB_F64, m->want[k], n);
        memcpy(m->got[k], m->want[k], n * sizeof(double));
    }
}

/* Whether input k has a gradient in such a call. */
static bool gives(const many *m, int k)
{
    return m->own ? k > 0 : k == 0;
}

static void many_run(const bed *b, const many *m, bool at_once, bool new)
{
    tb_opcall c = bed_later_call(b);
    double *const *to = at_once ? m->got : m->want;
    for (size_t i = 0; i < (at_once ? 1 : m->copies); i++) {
        c.gout = m->gout + i * b->nout;
        for (int k = 0; k < 3; k++) {
            c.gin[k] = gives(m, k) ? to[k] + i * b->n[k] : NULL;
            c.gbase[k] = new ? NULL : c.gin[k];
        }
        c.copies = at_once ? m->copies : 0;
        c.own_token = at_once && m->own;
        b->op->bwd(&c);
    }
}

TB_TEST(many_gradients)
{
    for (size_t k = 0; k < 60; k++) {
        const size_t tq = 1 + k % 9;
        const variant v = drawn(T, k, tq, k % 5 ? 1 + k / 7 : 70);
        many m = {.own = k / 3 % 2};
        bed b;
        TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
        bed_fwd(&b);
        m.copies = (1 + below(T, 8)) * (m.own ? tq : 1);
        many_open(T, &b, &m);
        many_run(&b, &m, false, k % 2);
        many_run(&b, &m, true, k % 2);
        for (int i = 0; i < 3; i++)
            TB_NEAR_N(T, m.got[i], m.want[i], m.copies * b.n[i], 1e-12);
    }
}

/* A head wider than our product sums at once. */
TB_TEST(a_wide_head)
{
    const variant v = {.op = "mha",
                       .batch = 2,
                       .time = 50,
                       .nin = 3,
                       .in = {STREAM(400), STREAM(400), STREAM(400)},
                       .attr = {1, 1, 1}};
    check_plain(T, &v);
}

/* A query that sees one key, or gives it all of its attention, has no gradient
 * at all: not one of the size of a rounding. */
TB_TEST(one_key_gives_no_gradient)
{
    for (int type = 0; type < 2; type++)
        for (size_t hd = 4; hd <= 68; hd += 32) {
            variant v = attention(1, 1, 0);
            bed b;
            for (int i = 0; i < 3; i++)
                v.in[i].width = HEADS * hd;
            TB_REQUIRE(T, bed_open(T, &b, &v, type ? TB_F32 : TB_F64));
            run_all(&b);
            TB_CHECK(T, all_zero(&b, b.g[0], 0, b.n[0]));
            TB_CHECK(T, all_zero(&b, b.g[1], 0, b.n[1]));
            TB_CHECK(T, !all_zero(&b, b.g[2], 0, b.n[2]));
        }
}

/* The same where other keys are there: scores far apart. */
TB_TEST(one_hot_attention_gives_no_gradient)
{
    bed b;
    variant v = attention(3, 70, 0);
    TB_REQUIRE(T, bed_open(T, &b, &v, TB_F64));
    for (size_t i = 0; i < b.n[0]; i++)
        tb_test_set(b.type, b.x[0], i, 100);
    for (size_t i = 0; i < b.n[1]; i++)
        tb_test_set(b.type, b.x[1], i, 100.0 * (double)(i / W));
    run_all(&b);
    TB_CHECK(T, all_zero(&b, b.g[0], 0, b.n[0]));
    TB_CHECK(T, all_zero(&b, b.g[1], 0, b.n[1]));
}

/* What is kept grows with the number of tokens, not with its square; scratch
 * does, too. */
TB_TEST(memory_is_linear)
{
    tb_opcall c = {.ctx = T->ctx,
                   .k = tb_kern_get(T->ctx, TB_F32),
                   .batch = 2,
                   .nin = 3,
                   .in_shape = {STREAM(64), STREAM(64), STREAM(64)},
                   .attr = {4, 4, 1}};
    c.time = 4096;
    size_t saved = tb_op_mha.saved(&c), scratch = tb_op_mha.scratch(&c);
    TB_CHECK(T, saved == 2 * 4 * 4096 * 2 * sizeof(double));
    c.time = 8192;
    TB_CHECK(T, tb_op_mha.saved(&c) == 2 * saved);
    TB_CHECK(T, tb_op_mha.scratch(&c) <= 2 * scratch);
}
