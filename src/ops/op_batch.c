/* SPDX-License-Identifier: MIT */
/* Norms whose statistics run over tokens, one for each feature.
 *
 * batchnorm (Ioffe, Szegedy 2015, arXiv:1502.03167): c = x - mean,
 * v = mean(c^2) over the tokens that the mask keeps.
 * powernorm (Shen et al. 2020, arXiv:2003.07845): c = x, v = mean(x^2). The
 * paper's layer scale before it is a norm of its own (blocks/powernorm.block).
 *
 *   y = r c gain + bias,   r = 1/sqrt(v + eps); 0 at hidden tokens
 *
 * `statistics` says where v (and the mean) come from:
 *   BATCH    this batch. h = gy gain, n = r c, M tokens:
 *            gx = r (h - mean(h) - (1 - kappa) c <c,h>/|c|^2), the exact
 *            derivative (powernorm: without mean(h)).
 *   RUNNING  powernorm's training after warm-up (algorithm 2): forward by the
 *            running v, and the approximate backward gx = r (h - nu n). This
 *            is NOT the derivative of that forward, which would be r h; nu
 *            estimates the part along n that a batch statistic would take out.
 *            The tangent is that of the forward. The authors' code
 *            (sIncerass/powernorm) differs: its backward takes r from this
 *            batch, and is approximate in the warm-up too.
 *   FROZEN   evaluation: running statistics, constants to every pass.
 *
 * `update`, with m the momentum (0.1): mean += m (batch - mean), likewise v,
 * batchnorm's v divided by M-1 as in PyTorch (left alone by a single token).
 * powernorm: nu += m' (Lambda - Gamma nu), Lambda = mean(h n) of the backward
 * pass, if there was one, Gamma = mean(n^2). */
#include "ops/op_norm.h"

typedef enum kind { NORM_BATCH, NORM_POWER } kind;

enum { X, GAIN, BIAS, FIRST, SECOND, MASK }; /* inputs */

/* --- shape -------------------------------------------------------------- */

static bool rate(double a)
{
    return a >= 0 && a <= 1;
}

static bool options(kind what, int nin, const double *attr, const char **why)
{
    double from = attr[TB_ATTR_BATCH_STATISTICS];
    double mode = attr[TB_ATTR_NORM_EPS_MODE];
    if (!(attr[TB_ATTR_NORM_EPS] >= 0) || !tb_isfinite(attr[TB_ATTR_NORM_EPS]))
        return tb_op_no(why, "eps must be a finite number, 0 or more");
    if (from != TB_STATISTICS_BATCH && from != TB_STATISTICS_FROZEN &&
        (from != TB_STATISTICS_RUNNING || what == NORM_BATCH))
        return tb_op_no(why, "there are no such statistics");
    if (from != TB_STATISTICS_BATCH && nin < 5)
        return tb_op_no(why, "running statistics are its fourth and fifth "
                             "input");
    if (!rate(attr[TB_ATTR_BATCH_MOMENTUM]) ||
        (what == NORM_POWER && !rate(attr[TB_ATTR_BATCH_BACK_MOMENTUM])))
        return tb_op_no(why, "a momentum must lie in 0 .. 1");
    if (mode != TB_EPS_DEFAULT && mode != TB_EPS_INSIDE &&
        mode != TB_EPS_OUTSIDE && mode != TB_EPS_DTYPE && mode != TB_EPS_NONE)
        return tb_op_no(why, "its eps can be inside, outside, dtype or none");
    return true;
}

static bool shape_of(kind what, const tb_shape *in, int nin, const double *attr,
                     tb_shape *out, const char **why)
{
    if (in[X].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "a norm applies to a stream");
    for (int i = GAIN; i < nin && i < MASK; i++)
        if (in[i].kind != TB_SHAPE_VECTOR || in[i].width != in[X].width)
            return tb_op_no(why, "gain, bias and statistics must have the "
                                 "width");
    if (nin == SECOND)
        return tb_op_no(why, "running statistics come in twos");
    if (nin > MASK && (in[MASK].kind != TB_SHAPE_STREAM || in[MASK].width != 1))
        return tb_op_no(why, "its mask must be a stream of width 1");
    if (!options(what, nin, attr, why))
        return false;
    *out = in[X];
    return true;
}

/* --- one call ----------------------------------------------------------- */

/* What fwd leaves of each feature, and of the whole. */
typedef struct saved_part {
    double *mean, *r, *kappa;
    double *square; /* of this batch: |c|^2 / M */
    double *lambda; /* powernorm's mean(h n), by bwd; nan: no backward yet */
    double *tokens; /* [1] M */
} saved_part;

typedef struct view {
    kind what;
    size_t rows, d;
    tb_eps_mode mode;
    double eps;
    int from; /* tb_statistics */
    saved_part s;
} view;

static view view_of(const tb_opcall *c, kind what)
{
    size_t d = c->out_shape.width;
    double *p = c->saved;
    view v = {.what = what,
              .rows = tb_op_rows(c),
              .d = d,
              .mode = (tb_eps_mode)c->attr[TB_ATTR_NORM_EPS_MODE],
              .eps = c->attr[TB_ATTR_NORM_EPS],
              .from = (int)c->attr[TB_ATTR_BATCH_STATISTICS]};
    if (v.mode == TB_EPS_DEFAULT)
        v.mode = TB_EPS_INSIDE;
    tb_norm_eps(c, &v.mode, &v.eps);
    if (p)
        v.s =
            (saved_part){p, p + d, p + 2 * d, p + 3 * d, p + 4 * d, p + 5 * d};
    return v;
}

static size_t saved(const tb_opcall *c)
{
    size_t n;
    if (!tb_add(tb_op_times(5, c->out_shape.width), 1, &n))
        return SIZE_MAX;
    return tb_op_part_bytes(n, 1);
}

/* Two doubles for each feature, whichever chunk has it. */
static size_t scratch(const tb_opcall *c)
{
    return tb_op_part_bytes(c->out_shape.width, 2);
}

static bool keeps(const tb_opcall *c, size_t row)
{
    return c->nin <= MASK || tb_op_get(c, c->in[MASK], row) > 0;
}

static double gain_at(const tb_opcall *c, size_t j)
{
    return c->nin > GAIN ? tb_op_get(c, c->in[GAIN], j) : 1;
}

static double deviation(const tb_opcall *c, const view *v, size_t row, size_t j)
{
    return tb_op_get(c, c->in[X], row * v->d + j) - v->s.mean[j];
}

static void each(const tb_opcall *c, tb_rows_fn fn)
{
    tb_op_each(c, c->out_shape.width, tb_op_times(4, tb_op_rows(c)), fn);
}

/* --- statistics of features [from, to) ---------------------------------- */

static size_t first_kept(const tb_opcall *c, const view *v)
{
    size_t r = 0;
    while (r < v->rows && !keeps(c, r))
        r++;
    return r;
}

/* Sums about the first token's value: a constant feature's mean is exact. */
static void find_mean(const tb_opcall *c, const view *v, size_t from, size_t to)
{
    size_t first = first_kept(c, v);
    double *sum = c->scratch, m = *v->s.tokens;
    memset(sum + from, 0, (to - from) * sizeof *sum);
    for (size_t j = from; j < to; j++)
        v->s.mean[j] = v->what == NORM_BATCH && first < v->rows
                           ? tb_op_get(c, c->in[X], first * v->d + j)
                           : 0;
    for (size_t r = 0; r < v->rows && v->what == NORM_BATCH; r++)
        for (size_t j = from; j < to && keeps(c, r); j++)
            sum[j] += deviation(c, v, r, j);
    for (size_t j = from; j < to && m > 0; j++)
        v->s.mean[j] += sum[j] / m;
}

static void find_square(const tb_opcall *c, const view *v, size_t from,
                        size_t to)
{
    double *sum = c->scratch, m = *v->s.tokens;
    memset(sum + from, 0, (to - from) * sizeof *sum);
    for (size_t r = 0; r < v->rows; r++)
        for (size_t j = from; j < to && keeps(c, r); j++) {
            double x = deviation(c, v, r, j);
            sum[j] += x * x;
        }
    for (size_t j = from; j < to; j++)
        v->s.square[j] = m > 0 ? sum[j] / m : 0;
}

/* The value that normalises: this batch's or the running one. */
static double square_used(const tb_opcall *c, const view *v, size_t j)
{
    if (v->from == TB_STATISTICS_BATCH)
        return v->s.square[j];
    return tb_op_get(c, c->in[v->what == NORM_BATCH ? SECOND : FIRST], j);
}

static void statistics(const tb_opcall *c, const view *v, size_t from,
                       size_t to)
{
    bool frozen = v->from == TB_STATISTICS_FROZEN;
    if (!frozen) {
        find_mean(c, v, from, to);
        find_square(c, v, from, to);
    }
    for (size_t j = from; j < to; j++) {
        if (frozen) {
            v->s.mean[j] =
                v->what == NORM_BATCH ? tb_op_get(c, c->in[FIRST], j) : 0;
            v->s.square[j] = 0;
        }
        double s = tb_sqrt(square_used(c, v, j));
        tb_norm_stat t = tb_norm_scale(v->mode, v->eps, 1, s);
        v->s.r[j] = *v->s.tokens > 0 ? t.r : 0;
        v->s.kappa[j] = t.kappa;
        v->s.lambda[j] = __builtin_nan("");
    }
}

/* --- forward ------------------------------------------------------------ */

static void fwd_part(const tb_opcall *c, kind what, size_t from, size_t to)
{
    const view v = view_of(c, what);
    statistics(c, &v, from, to);
    for (size_t r = 0; r < v.rows; r++) {
        bool kept = keeps(c, r);
        for (size_t j = from; j < to; j++) {
            double n = kept ? deviation(c, &v, r, j) * v.s.r[j] : 0;
            double bias = c->nin > BIAS ? tb_op_get(c, c->in[BIAS], j) : 0;
            tb_op_set(c, c->out, r * v.d + j,
                      kept ? n * gain_at(c, j) + bias : 0);
        }
    }
}

static void fwd_with(const tb_opcall *c, kind what, tb_rows_fn fn)
{
    const view v = view_of(c, what);
    size_t kept = 0;
    for (size_t r = 0; r < v.rows; r++)
        kept += keeps(c, r);
    *v.s.tokens = (double)kept;
    each(c, fn);
}

/* --- both derivatives --------------------------------------------------- */

/* Sums over kept tokens of z and of c z, for features [from, to). */
static void two_sums(const tb_opcall *c, const view *v, const void *z,
                     size_t from, size_t to, double *sum, double *along)
{
    for (size_t j = from; j < to; j++)
        sum[j] = along[j] = 0;
    for (size_t r = 0; r < v->rows && z; r++)
        for (size_t j = from; j < to && keeps(c, r); j++) {
            double e = tb_op_get(c, z, r * v->d + j);
            sum[j] += e;
            along[j] += e * deviation(c, v, r, j);
        }
}

/* r P z at one token, P symmetric over the tokens of feature j; sum and along
 * are those of z. */
static double project(const view *v, size_t j, double z, double dev, double sum,
                      double along)
{
    double m = *v->s.tokens, length2 = v->s.square[j] * m;
    if (v->from == TB_STATISTICS_BATCH) {
        double part = length2 > 0 ? along / length2 : 0;
        z -= v->what == NORM_BATCH ? sum / m : 0;
        z -= (1 - v->s.kappa[j]) * dev * part;
    }
    return v->s.r[j] * z;
}

static void bwd_part(const tb_opcall *c, kind what, size_t from, size_t to)
{
    const view v = view_of(c, what);
    double *sum = c->scratch, *along = sum + v.d;
    two_sums(c, &v, c->gout, from, to, sum, along);
    for (size_t r = 0; r < v.rows && c->gin[X]; r++)
        for (size_t j = from; j < to && keeps(c, r); j++) {
            size_t e = r * v.d + j;
            double dev = deviation(c, &v, r, j), gy = tb_op_get(c, c->gout, e);
            double g = gain_at(c, j);
            double gx = g * project(&v, j, gy, dev, sum[j], along[j]);
            if (v.from == TB_STATISTICS_RUNNING) /* r (h - nu n) */
                gx -=
                    v.s.r[j] * tb_op_get(c, c->in[SECOND], j) * dev * v.s.r[j];
            tb_op_acc(c, c->gin[X], e, gx);
        }
    for (size_t j = from; j < to; j++) {
        double m = *v.s.tokens, n = along[j] * v.s.r[j]; /* sum of gy n */
        v.s.lambda[j] = m > 0 ? gain_at(c, j) * n / m : 0;
        if (c->nin > GAIN && c->gin[GAIN])
            tb_op_acc(c, c->gin[GAIN], j, n);
        if (c->nin > BIAS && c->gin[BIAS])
            tb_op_acc(c, c->gin[BIAS], j, sum[j]);
    }
}

static double tangent_of(const tb_opcall *c, int i, size_t j)
{
    return c->nin > i && c->tin[i] ? tb_op_get(c, c->tin[i], j) : 0;
}

static void tan_part(const tb_opcall *c, kind what, size_t from, size_t to)
{
    const view v = view_of(c, what);
    double *sum = c->scratch, *along = sum + v.d;
    two_sums(c, &v, c->tin[X], from, to, sum, along);
    for (size_t r = 0; r < v.rows; r++) {
        bool kept = keeps(c, r);
        for (size_t j = from; j < to; j++) {
            size_t e = r * v.d + j;
            double dev = deviation(c, &v, r, j);
            double t =
                project(&v, j, tangent_of(c, X, e), dev, sum[j], along[j]);
            tb_op_set(c, c->tout, e,
                      kept ? gain_at(c, j) * t +
                                 tangent_of(c, GAIN, j) * dev * v.s.r[j] +
                                 tangent_of(c, BIAS, j)
                           : 0);
        }
    }
}

/* --- running statistics ------------------------------------------------- */

static void approach(const tb_opcall *c, int i, size_t j, double rate_,
                     double goal)
{
    double old = tb_op_get(c, c->state[i], j);
    tb_op_set(c, c->state[i], j, old + rate_ * (goal - old));
}

static double momentum(const tb_opcall *c, int attr)
{
    return c->attr[attr] > 0 ? c->attr[attr] : 0.1;
}

static void update_batch(const tb_opcall *c)
{
    const view v = view_of(c, NORM_BATCH);
    double m = *v.s.tokens, rate_ = momentum(c, TB_ATTR_BATCH_MOMENTUM);
    if (v.from == TB_STATISTICS_FROZEN || c->nin < 5 || !(m > 0))
        return;
    for (size_t j = 0; j < v.d; j++) {
        approach(c, FIRST, j, rate_, v.s.mean[j]);
        if (m > 1)
            approach(c, SECOND, j, rate_, v.s.square[j] * (m / (m - 1)));
    }
}

static void update_power(const tb_opcall *c)
{
    const view v = view_of(c, NORM_POWER);
    double rate_ = momentum(c, TB_ATTR_BATCH_MOMENTUM);
    double back = momentum(c, TB_ATTR_BATCH_BACK_MOMENTUM);
    if (v.from == TB_STATISTICS_FROZEN || c->nin < 5 || !(*v.s.tokens > 0))
        return;
    for (size_t j = 0; j < v.d; j++) {
        double lambda = v.s.lambda[j], nu = tb_op_get(c, c->state[SECOND], j);
        double gamma = v.s.square[j] * v.s.r[j] * v.s.r[j];
        approach(c, FIRST, j, rate_, v.s.square[j]);
        if (lambda == lambda)
            tb_op_set(c, c->state[SECOND], j,
                      nu + back * (lambda - gamma * nu));
    }
}

static bool statistic_of(const tb_opcall *c, kind what, int i, size_t j,
                         double *out)
{
    const view v = view_of(c, what);
    bool mean = what == NORM_BATCH && i == FIRST;
    if (!mean && i != (what == NORM_BATCH ? SECOND : FIRST))
        return false; /* nu, of the backward pass only */
    *out = mean ? v.s.mean[j] : square_used(c, &v, j);
    return true;
}

/* --- gain and check ----------------------------------------------------- */

/* J of one feature is r gain P over its M tokens. RUNNING: of the forward. */
static void gain_of(const tb_opcall *c, kind what, double *rms, double *max)
{
    const view v = view_of(c, what);
    double m = *v.s.tokens, sum = 0;
    *max = 0;
    for (size_t j = 0; j < v.d; j++) {
        double kappa = v.s.kappa[j], others = m - (what == NORM_BATCH ? 2 : 1);
        double square = others + kappa * kappa;
        double top = others > 0 ? 1 : kappa;
        if (v.from != TB_STATISTICS_BATCH)
            square = m, top = 1;
        if (others < 0 && v.from == TB_STATISTICS_BATCH)
            square = top = 0; /* one token is its own mean */
        double scale = tb_fabs(gain_at(c, j)) * v.s.r[j];
        sum += scale * scale * square;
        top *= scale;
        *max = top > *max || top != top ? top : *max;
    }
    *rms = m > 0 ? tb_sqrt(sum / (m * (double)v.d)) : 0;
}

static const char *check_of(const tb_opcall *c, kind what, size_t *row)
{
    const view v = view_of(c, what);
    *row = first_kept(c, &v);
    for (size_t r = 0; r < v.rows && c->nin > MASK; r++) {
        double keep = tb_op_get(c, c->in[MASK], r);
        if (keep != 0 && keep != 1) {
            *row = r;
            return "a mask holds 1 (keep) or 0 (hide), not this";
        }
    }
    for (size_t j = 0; j < v.d && v.eps <= 0; j++)
        if (v.s.r[j] == v.s.r[j] && !tb_isfinite(v.s.r[j]))
            return "a feature has zero variance with eps = 0, first met";
    return NULL;
}

/* --- rows of the table -------------------------------------------------- */

#define PASS(label, what, pass)                                                \
    static void label##_##pass##_range(const tb_opcall *c, size_t from,        \
                                       size_t to, size_t chunk)                \
    {                                                                          \
        (void)chunk;                                                           \
        pass##_part(c, what, from, to);                                        \
    }

static tb_reach reach(const double *attr)
{
    return attr[TB_ATTR_BATCH_STATISTICS] == TB_STATISTICS_FROZEN
               ? TB_REACH_TOKEN
               : TB_REACH_BATCH;
}

#define OVER_TOKENS(label, what, sign, options_, more, extra, inexact, move)   \
    PASS(label, what, fwd)                                                     \
    PASS(label, what, bwd)                                                     \
    PASS(label, what, tan)                                                     \
    static bool label##_shape(const tb_shape *in, int nin, const double *attr, \
                              tb_shape *out, const char **why)                 \
    {                                                                          \
        return shape_of(what, in, nin, attr, out, why);                        \
    }                                                                          \
    static void label##_fwd(const tb_opcall *c)                                \
    {                                                                          \
        fwd_with(c, what, label##_fwd_range);                                  \
    }                                                                          \
    static void label##_bwd(const tb_opcall *c)                                \
    {                                                                          \
        each(c, label##_bwd_range);                                            \
    }                                                                          \
    static void label##_tan(const tb_opcall *c)                                \
    {                                                                          \
        each(c, label##_tan_range);                                            \
    }                                                                          \
    static bool label##_statistic(const tb_opcall *c, int i, size_t j,         \
                                  double *out)                                 \
    {                                                                          \
        return statistic_of(c, what, i, j, out);                               \
    }                                                                          \
    static void label##_gain(const tb_opcall *c, double *rms, double *max)     \
    {                                                                          \
        gain_of(c, what, rms, max);                                            \
    }                                                                          \
    static const char *label##_check(const tb_opcall *c, size_t *row)          \
    {                                                                          \
        return check_of(c, what, row);                                         \
    }                                                                          \
    const tb_op tb_op_##label = {                                              \
        .name = #label,                                                        \
        .symbol = sign,                                                        \
        .min_in = 1,                                                           \
        .max_in = 6,                                                           \
        .nattr = 1,                                                            \
        .noption = options_,                                                   \
        .attr_name = {"eps", "eps_mode", "statistics", "momentum", more,       \
                      extra},                                                  \
        .lane = TB_LANE_TOLL,                                                  \
        .jac = TB_JAC_SYMBOL,                                                  \
        .needs = TB_NEED_IN(X) | TB_NEED_IN(GAIN) | TB_NEED_IN(SECOND) |       \
                 TB_NEED_IN(MASK),                                             \
        .data = TB_NEED_IN(FIRST) | TB_NEED_IN(SECOND) | TB_NEED_IN(MASK),     \
        .state = TB_NEED_IN(FIRST) | TB_NEED_IN(SECOND),                       \
        .approximate = inexact,                                                \
        .shape = label##_shape,                                                \
        .saved = saved,                                                        \
        .scratch = scratch,                                                    \
        .fwd = label##_fwd,                                                    \
        .bwd = label##_bwd,                                                    \
        .tan = label##_tan,                                                    \
        .update = move,                                                        \
        .statistic = label##_statistic,                                        \
        .gain = label##_gain,                                                  \
        .check = label##_check,                                                \
        .reach = reach,                                                        \
    };

OVER_TOKENS(batchnorm, NORM_BATCH, "BN", 3, NULL, NULL, false, update_batch)
OVER_TOKENS(powernorm, NORM_POWER, "PN", 5, "back_momentum", "warmup", true,
            update_power)
