/* SPDX-License-Identifier: MIT */
/* The Jacobian of each op from its textbook formula, in double: one row per
 * op that stands in formulas as a factor of its own. */
#include "model/symbolic.h"

/* Width of a node's rows. */
static size_t width_of(const tb_symbolic *s, int node)
{
    return s->graph->nodes[node].shape.width;
}

static int in_of(const tb_symbolic *s, int node, int i)
{
    return s->graph->nodes[node].in[i];
}

static const double *in_value(const tb_symbolic *s, int node, int i)
{
    return tb_symbolic_value(s, in_of(s, node, i));
}

/* --- norms -----------------------------------------------------------------
 * y = gain f(L) u + bias, c = x - mean (x itself for rmsnorm), L = |c|, u =
 * c/L: diag(gain) (r (I - ee' - uu') + f'(L) uu'), r = f(L)/L and e the unit
 * vector of ones, without ee' where no mean is taken off. For each part of the
 * width by itself. */

typedef struct norm_kind {
    bool centred;
    bool length; /* divisor of the variance: 1, not the width */
} norm_kind;

static double mean_of(const double *x, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += x[i];
    return sum / (double)d;
}

/* f(L)/L and f'(L) by where eps stands; n the divisor of the variance. */
static void length_rule(const double *attr, bool length, double n, double L,
                        double *r, double *slope)
{
    int mode = (int)attr[TB_ATTR_NORM_EPS_MODE];
    double eps = attr[TB_ATTR_NORM_EPS], root = tb_sqrt(n);
    if (mode == TB_EPS_DEFAULT)
        mode = length ? TB_EPS_CLAMP : TB_EPS_INSIDE;
    if (mode == TB_EPS_CLAMP_SQUARE)
        eps = tb_sqrt(eps);
    if (mode == TB_EPS_CLAMP || mode == TB_EPS_CLAMP_SQUARE) {
        *r = root / (L > eps ? L : eps);
        *slope = L > eps ? 0 : *r;
    } else if (mode == TB_EPS_OUTSIDE) {
        double s = L / root + eps;
        *r = 1 / s;
        *slope = eps / (s * s);
    } else {
        eps = mode == TB_EPS_DTYPE ? 0x1p-52 : mode == TB_EPS_NONE ? 0 : eps;
        double s = tb_sqrt(L * L / n + eps);
        *r = 1 / s;
        *slope = eps / (s * s * s);
    }
}

/* One part of one token; ld is the width of the whole matrix. */
static void norm_block(const double *x, const double *gain, size_t gains,
                       size_t d, const double *attr, norm_kind kind, double *j,
                       size_t ld)
{
    double mean = kind.centred ? mean_of(x, d) : 0, L = 0, r, slope;
    double n = kind.length ? 1 : (double)d - attr[TB_ATTR_NORM_UNBIASED];
    for (size_t i = 0; i < d; i++)
        L += (x[i] - mean) * (x[i] - mean);
    L = tb_sqrt(L);
    length_rule(attr, kind.length, n, L, &r, &slope);
    for (size_t a = 0; a < d; a++)
        for (size_t c = 0; c < d; c++) {
            double uu = L > 0 ? (x[a] - mean) / L * ((x[c] - mean) / L) : 0;
            double one = (a == c ? 1 : 0) - (kind.centred ? 1 / (double)d : 0);
            double v = r * (one - uu) + slope * uu;
            j[a * ld + c] = (gain ? gain[a % gains] : 1) * v;
        }
}

static void norm(const tb_symbolic *s, int node, norm_kind kind, double *j)
{
    const tb_node *n = &s->graph->nodes[node];
    const double *attr = s->run->attr[node];
    size_t width = width_of(s, node), ld = s->time * width;
    double groups = attr[TB_ATTR_NORM_GROUPS];
    size_t d = width / (groups > 0 ? (size_t)groups : 1);
    const double *x = in_value(s, node, 0);
    const double *gain = n->nin > 1 ? in_value(s, node, 1) : NULL;
    size_t gains = n->nin > 1 ? width_of(s, n->in[1]) : 1;
    for (size_t at = 0; at < ld; at += d)
        norm_block(x + at, gain, gains, d, attr, kind, j + at * ld + at, ld);
}

static void layernorm(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    norm(s, node, (norm_kind){.centred = true}, j);
}

static void rmsnorm(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    norm(s, node, (norm_kind){0}, j);
}

static void scalenorm(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    norm(s, node, (norm_kind){.length = true}, j);
}

/* --- norms over tokens -------------------------------------------------------
 * One feature, M tokens that count: y = gain c r(v) + bias, c = x - mean (x
 * itself for powernorm), v = |c|^2/M: gain (r (I - 11'/M) + 2 r'(v) cc'/M).
 * With statistics that are given: gain r I. */

typedef struct feature {
    const double *x, *mask; /* of its tokens; mask NULL: all count */
    size_t time, width, at;
    double mean, v, count;
} feature;

static bool counts(const feature *k, size_t t)
{
    return !k->mask || k->mask[t] > 0;
}

static double centred(const feature *k, size_t t)
{
    return k->x[t * k->width + k->at] - k->mean;
}

static void batch_statistics(feature *k, bool centre)
{
    k->mean = k->v = 0;
    for (size_t t = 0; t < k->time && centre; t++)
        k->mean += counts(k, t) ? k->x[t * k->width + k->at] / k->count : 0;
    for (size_t t = 0; t < k->time; t++)
        k->v += counts(k, t) ? centred(k, t) * centred(k, t) / k->count : 0;
}

/* r and r'(v) */
static void variance_rule(const double *attr, double v, double *r,
                          double *slope)
{
    int mode = (int)attr[TB_ATTR_NORM_EPS_MODE];
    double eps = attr[TB_ATTR_NORM_EPS], s = tb_sqrt(v);
    if (mode == TB_EPS_OUTSIDE) {
        *r = 1 / (s + eps);
        *slope = s > 0 ? -*r * *r / (2 * s) : 0;
        return;
    }
    eps = mode == TB_EPS_DTYPE ? 0x1p-52 : mode == TB_EPS_NONE ? 0 : eps;
    *r = 1 / tb_sqrt(v + eps);
    *slope = -0.5 * *r * *r * *r;
}

static void feature_block(const feature *k, bool centre, bool given,
                          double gain, const double *attr, double *j)
{
    double r, slope;
    size_t ld = k->time * k->width;
    variance_rule(attr, k->v, &r, &slope);
    for (size_t t = 0; t < k->time; t++)
        for (size_t u = 0; u < k->time; u++) {
            double y = t == u ? r : 0;
            if (!counts(k, t) || !counts(k, u))
                continue;
            if (!given)
                y += (2 * slope * centred(k, t) * centred(k, u) -
                      (centre ? r : 0)) /
                     k->count;
            j[(t * k->width + k->at) * ld + u * k->width + k->at] = gain * y;
        }
}

static void over_tokens(const tb_symbolic *s, int node, bool centre, double *j)
{
    enum { GAIN = 1, MEAN = 3, VAR = 4, SQUARE = 3, MASK = 5 };
    const tb_node *n = &s->graph->nodes[node];
    const double *attr = s->run->attr[node];
    bool given = attr[TB_ATTR_BATCH_STATISTICS] != TB_STATISTICS_BATCH;
    feature k = {.x = in_value(s, node, 0),
                 .mask = n->nin > MASK ? in_value(s, node, MASK) : NULL,
                 .time = s->time,
                 .width = width_of(s, node)};
    for (size_t t = 0; t < k.time; t++)
        k.count += counts(&k, t);
    for (k.at = 0; k.at < k.width; k.at++) {
        if (given) {
            k.mean = centre ? in_value(s, node, MEAN)[k.at] : 0;
            k.v = in_value(s, node, centre ? VAR : SQUARE)[k.at];
        } else {
            batch_statistics(&k, centre);
        }
        double gain = n->nin > GAIN ? in_value(s, node, GAIN)[k.at] : 1;
        feature_block(&k, centre, given, gain, attr, j);
    }
}

static void batchnorm(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    over_tokens(s, node, true, j);
}

static void powernorm(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    over_tokens(s, node, false, j);
}

/* gain f(alpha x + shift) + bias, element by element: gain alpha f' */
static void squash(const tb_symbolic *s, int node, int shift,
                   double (*slope)(double), double *j)
{
    const tb_node *n = &s->graph->nodes[node];
    size_t count = tb_symbolic_count(s, node), width = width_of(s, node);
    const double *x = in_value(s, node, 0), alpha = in_value(s, node, 1)[0];
    double b = shift ? in_value(s, node, shift)[0] : 0;
    int at = shift ? shift + 1 : 2;
    const double *gain = n->nin > at ? in_value(s, node, at) : NULL;
    for (size_t i = 0; i < count; i++)
        j[i * count + i] =
            (gain ? gain[i % width] : 1) * alpha * slope(alpha * x[i] + b);
}

/* --- slopes --------------------------------------------------------------- */

static double relu_slope(double x)
{
    return x > 0 ? 1 : 0;
}

/* x Phi(x): Phi(x) + x phi(x) */
static double gelu_slope(double x)
{
    const double root2 = 1.4142135623730951, root2pi = 2.5066282746310002;
    return 0.5 * (1 + tb_erf(x / root2)) + x * tb_exp(-0.5 * x * x) / root2pi;
}

/* x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3) */
static double gelu_tanh_slope(double x)
{
    const double c = 0.7978845608028654, a = 0.044715;
    double t = tb_tanh(c * (x + a * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * a * x * x);
}

static double logistic(double x)
{
    double e = tb_exp(x < 0 ? x : -x);
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

static double sigmoid_slope(double x)
{
    return logistic(x) * logistic(-x);
}

static double silu_slope(double x)
{
    return logistic(x) + x * sigmoid_slope(x);
}

static double exp_slope(double x)
{
    return tb_exp(x);
}

static double abs_slope(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static double tanh_slope(double x)
{
    double t = tb_tanh(x);
    return 1 - t * t;
}

/* 2/sqrt(pi) e^(-x^2) */
static double erf_slope(double x)
{
    return 1.1283791670955126 * tb_exp(-x * x);
}

static void dyt(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    squash(s, node, 0, tanh_slope, j);
}

static void derf(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    squash(s, node, 2, erf_slope, j);
}

static void slope(const tb_symbolic *s, int node, double (*f)(double),
                  double *j)
{
    size_t n = tb_symbolic_count(s, node);
    const double *x = in_value(s, node, 0);
    for (size_t i = 0; i < n; i++)
        j[i * n + i] = f(x[i]);
}

#define SLOPE(name)                                                            \
    static void name##_j(const tb_symbolic *s, int node, int input, double *j) \
    {                                                                          \
        (void)input;                                                           \
        slope(s, node, name##_slope, j);                                       \
    }
SLOPE(relu)
SLOPE(gelu)
SLOPE(gelu_tanh)
SLOPE(silu)
SLOPE(sigmoid)
SLOPE(tanh)
SLOPE(exp)
SLOPE(abs)
#undef SLOPE

/* --- linear: I_T (x) W ---------------------------------------------------- */

static void linear(const tb_symbolic *s, int node, int input, double *j)
{
    size_t out = width_of(s, node), in = width_of(s, in_of(s, node, 0));
    const double *w = in_value(s, node, 1);
    (void)input;
    for (size_t t = 0; t < s->time; t++)
        for (size_t r = 0; r < out; r++)
            for (size_t c = 0; c < in; c++)
                j[(t * out + r) * s->time * in + t * in + c] = w[r * in + c];
}

/* --- drop: diag(m), m 0 with probability p, else 1/(1-p) ------------------ */

static double mask(tb_rng rng, size_t element, double p)
{
    if (p <= 0)
        return 1;
    return tb_rng_drops(rng, element, p) ? 0 : 1 / (1 - p);
}

static void drop(const tb_symbolic *s, int node, int input, double *j)
{
    size_t n = tb_symbolic_count(s, node);
    double p = s->run->attr[node][TB_ATTR_DROP_P];
    tb_rng rng = tb_plan_rng(s->run, node);
    (void)input;
    for (size_t i = 0; i < n; i++)
        j[i * n + i] = mask(rng, i, p);
}

/* skipdrop: one such m for the sequence, which is the first */
static void skipdrop(const tb_symbolic *s, int node, int input, double *j)
{
    size_t n = tb_symbolic_count(s, node);
    double p = s->run->attr[node][TB_ATTR_DROP_P];
    double m = mask(tb_plan_rng(s->run, node), 0, p);
    (void)input;
    for (size_t i = 0; i < n; i++)
        j[i * n + i] = m;
}

/* --- softmax p of each token: diag(p) - pp' ------------------------------- */

/* p_i = exp(z_i - most) / sum */
typedef struct soft {
    double most, sum;
} soft;

static void soft_max(soft *f, double z, bool first)
{
    f->most = first || z > f->most ? z : f->most;
}

static double soft_part(const soft *f, double z)
{
    return tb_exp(z - f->most);
}

static soft soft_of(const double *z, size_t n)
{
    soft f = {0, 0};
    for (size_t i = 0; i < n; i++)
        soft_max(&f, z[i], i == 0);
    for (size_t i = 0; i < n; i++)
        f.sum += soft_part(&f, z[i]);
    return f;
}

static void softmax(const tb_symbolic *s, int node, int input, double *j)
{
    size_t d = width_of(s, node), ld = s->time * d;
    (void)input;
    for (size_t t = 0; t < s->time; t++) {
        const double *z = in_value(s, node, 0) + t * d;
        double *block = j + t * d * ld + t * d;
        soft f = soft_of(z, d);
        for (size_t r = 0; r < d; r++)
            for (size_t c = 0; c < d; c++) {
                double pr = soft_part(&f, z[r]) / f.sum;
                double pc = soft_part(&f, z[c]) / f.sum;
                block[r * ld + c] = (r == c ? pr : 0) - pr * pc;
            }
    }
}

/* --- attention ---------------------------------------------------------------
 * y_i = sum_j m_ij p_ij v_j, p_i = softmax_j(q_i.k_j / sqrt(hd)), m the dropout
 * mask (1 without): with g_ij = p_ij (m_ij v_j - y_i),
 *   dy_i/dq_i = sum_j g_ij k_j' / sqrt(hd)
 *   dy_i/dk_j = g_ij q_i' / sqrt(hd)
 *   dy_i/dv_j = m_ij p_ij I
 * for each head, whose keys and values are those of its group. */

/* One head: its columns in q and y, and in k and v. */
typedef struct head {
    const double *q, *k, *v;
    size_t qw, kw, vw, hd, vd;
    size_t time;
    double scale, drop;
    bool causal;
    tb_rng rng;
    size_t first; /* element of the probabilities where its rows start */
} head;

static head head_of(const tb_symbolic *s, int node, size_t h)
{
    const double *attr = s->run->attr[node];
    size_t heads = (size_t)attr[TB_ATTR_ATTN_HEADS];
    size_t group = heads / (size_t)attr[TB_ATTR_ATTN_KV_HEADS];
    head a = {.qw = width_of(s, in_of(s, node, 0)),
              .kw = width_of(s, in_of(s, node, 1)),
              .vw = width_of(s, in_of(s, node, 2)),
              .vd = width_of(s, node) / heads,
              .time = s->time,
              .drop = attr[TB_ATTR_ATTN_DROP],
              .causal = attr[TB_ATTR_ATTN_CAUSAL] != 0,
              .rng = tb_plan_rng(s->run, node),
              .first = h * s->time * s->time};
    a.hd = a.qw / heads;
    a.scale = attr[TB_ATTR_ATTN_SCALE];
    if (a.scale == 0)
        a.scale = 1 / tb_sqrt((double)a.hd);
    a.q = in_value(s, node, 0) + h * a.hd;
    a.k = in_value(s, node, 1) + h / group * a.hd;
    a.v = in_value(s, node, 2) + h / group * a.vd;
    return a;
}

static size_t seen(const head *a, size_t i)
{
    return a->causal ? i + 1 : a->time;
}

static double score(const head *a, size_t i, size_t j)
{
    double sum = 0;
    for (size_t c = 0; c < a->hd; c++)
        sum += a->q[i * a->qw + c] * a->k[j * a->kw + c];
    return sum * a->scale;
}

static soft row_of(const head *a, size_t i)
{
    soft f = {0, 0};
    for (size_t j = 0; j < seen(a, i); j++)
        soft_max(&f, score(a, i, j), j == 0);
    for (size_t j = 0; j < seen(a, i); j++)
        f.sum += soft_part(&f, score(a, i, j));
    return f;
}

static double kept(const head *a, size_t i, size_t j)
{
    return mask(a->rng, a->first + i * a->time + j, a->drop);
}

/* The derivatives of y_i[c] into row[], its row of the whole matrix. */
static void head_row(const head *a, size_t i, size_t c, int input,
                     size_t column, double *row)
{
    soft f = row_of(a, i);
    double y = 0;
    for (size_t j = 0; j < seen(a, i); j++)
        y += kept(a, i, j) * soft_part(&f, score(a, i, j)) / f.sum *
             a->v[j * a->vw + c];
    for (size_t j = 0; j < seen(a, i); j++) {
        double p = soft_part(&f, score(a, i, j)) / f.sum, m = kept(a, i, j);
        double g = p * (m * a->v[j * a->vw + c] - y) * a->scale;
        if (input == 2)
            row[j * a->vw + column + c] = m * p;
        for (size_t b = 0; b < a->hd && input == 0; b++)
            row[i * a->qw + column + b] += g * a->k[j * a->kw + b];
        for (size_t b = 0; b < a->hd && input == 1; b++)
            row[j * a->kw + column + b] = g * a->q[i * a->qw + b];
    }
}

static void mha(const tb_symbolic *s, int node, int input, double *j)
{
    size_t heads = (size_t)s->run->attr[node][TB_ATTR_ATTN_HEADS];
    size_t in = tb_symbolic_count(s, in_of(s, node, input));
    for (size_t h = 0; h < heads; h++) {
        head a = head_of(s, node, h);
        size_t column = input == 0   ? h * a.hd
                        : input == 1 ? (size_t)(a.k - in_value(s, node, 1))
                                     : (size_t)(a.v - in_value(s, node, 2));
        for (size_t i = 0; i < a.time; i++)
            for (size_t c = 0; c < a.vd; c++)
                head_row(&a, i, c, input, column,
                         j + (i * heads * a.vd + h * a.vd + c) * in);
    }
}

/* --- rope: pairs (i, i + w/2) of each head turned by t base^(-2i/w) --------
 */

static void rope(const tb_symbolic *s, int node, int input, double *j)
{
    const double *attr = s->run->attr[node];
    size_t width = width_of(s, node), n = s->time * width;
    size_t w = width / (size_t)attr[TB_ATTR_ROPE_HEADS];
    double base = attr[TB_ATTR_ROPE_BASE];
    (void)input;
    if (base <= 0)
        base = 10000;
    for (size_t a = 0; a < n; a++) {
        size_t i = a % w % (w / 2);
        bool first = a % w < w / 2;
        size_t other = first ? a + w / 2 : a - w / 2;
        double angle =
            (double)(a / width) * tb_pow(base, -2 * (double)i / (double)w);
        j[a * n + a] = tb_cos(angle);
        j[a * n + other] = first ? -tb_sin(angle) : tb_sin(angle);
    }
}

/* --- concat: ones from each input to its columns ---------------------------
 */

static void concat(const tb_symbolic *s, int node, int input, double *j)
{
    size_t out = width_of(s, node), in = width_of(s, in_of(s, node, input));
    double parts = s->run->attr[node][TB_ATTR_CONCAT_GROUPS];
    size_t column = 0, n = parts > 0 ? (size_t)parts : 1, w = in / n;
    for (int i = 0; i < input; i++)
        column += width_of(s, in_of(s, node, i)) / n;
    for (size_t t = 0; t < s->time; t++)
        for (size_t c = 0; c < in; c++) {
            size_t to = c / w * (out / n) + column + c % w;
            j[(t * out + to) * s->time * in + t * in + c] = 1;
        }
}

/* --- mix: sum of w_t x_t: diag(w_t) by x_t, the x_t themselves by w ---------
 */

static void mix(const tb_symbolic *s, int node, int input, double *j)
{
    const tb_node *n = &s->graph->nodes[node];
    int last = n->nin - 1;
    size_t d = width_of(s, node), in = width_of(s, n->in[input]);
    size_t all = width_of(s, n->in[last]), ld = s->time * in;
    bool own = s->graph->nodes[n->in[last]].shape.kind == TB_SHAPE_STREAM;
    size_t row = tb_mix_first(s->run->attr[node], (size_t)last);
    const double *w = in_value(s, node, last);
    for (size_t t = 0; t < s->time; t++)
        for (size_t c = 0; c < d; c++) {
            double *to = j + (t * d + c) * ld + t * in;
            size_t at = (own ? t * all : 0) + row;
            if (input < last)
                to[c] = w[at + (size_t)input];
            for (int i = 0; input == last && i < last; i++)
                to[row + (size_t)i] = in_value(s, node, i)[t * d + c];
        }
}

/* --- headscale: diag of each head's factor ---------------------------------
 */

static void headscale(const tb_symbolic *s, int node, int input, double *j)
{
    size_t n = tb_symbolic_count(s, node), d = width_of(s, node);
    size_t part = d / width_of(s, in_of(s, node, 1));
    const double *w = in_value(s, node, 1);
    (void)input;
    for (size_t i = 0; i < n; i++)
        j[i * n + i] = w[i % d / part];
}

/* --- sum, mean: a row of ones for each token -------------------------------
 */

static void row_of_ones(const tb_symbolic *s, int node, double share, double *j)
{
    size_t d = width_of(s, in_of(s, node, 0));
    for (size_t t = 0; t < s->time; t++)
        for (size_t c = 0; c < d; c++)
            j[t * s->time * d + t * d + c] = share;
}

static void sum(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    row_of_ones(s, node, 1, j);
}

static void mean(const tb_symbolic *s, int node, int input, double *j)
{
    (void)input;
    row_of_ones(s, node, 1 / (double)width_of(s, in_of(s, node, 0)), j);
}

/* --- maxdiv: to/max|x| held constant, over a token or all of them ----------
 */

static double max_of(const double *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = tb_fabs(x[i]) > most ? tb_fabs(x[i]) : most;
    return most;
}

static void maxdiv(const tb_symbolic *s, int node, int input, double *j)
{
    const double *attr = s->run->attr[node], *x = in_value(s, node, 0);
    size_t d = width_of(s, node), n = s->time * d;
    bool whole = attr[TB_ATTR_MAXDIV_WHOLE] != 0;
    (void)input;
    for (size_t i = 0; i < n; i++) {
        double most = whole ? max_of(x, n) : max_of(x + i / d * d, d);
        j[i * n + i] = most > 0 ? attr[TB_ATTR_MAXDIV_TO] / most : 1;
    }
}

/* --- sinkhorn: from A = exp(L) on, a line over its sum c turns da into (da - a
 * sum(da)) / c; each token has its own A ----------------------------------- */

typedef struct square {
    size_t n, ld; /* rows; elements from row to row of da */
    double *a, *da;
} square;

/* Element k of line i. */
static size_t place(const square *q, bool rows, size_t i, size_t k)
{
    return rows ? i * q->n + k : k * q->n + i;
}

static void over_sum(square *q, bool rows, size_t line)
{
    size_t all = q->n * q->n;
    double c = 0;
    for (size_t k = 0; k < q->n; k++)
        c += q->a[place(q, rows, line, k)];
    for (size_t k = 0; k < q->n; k++)
        q->a[place(q, rows, line, k)] /= c;
    for (size_t by = 0; by < all; by++) {
        double dc = 0;
        for (size_t k = 0; k < q->n; k++)
            dc += q->da[place(q, rows, line, k) * q->ld + by];
        for (size_t k = 0; k < q->n; k++) {
            size_t e = place(q, rows, line, k);
            double *d = &q->da[e * q->ld + by];
            *d = (*d - q->a[e] * dc) / c;
        }
    }
}

static void sinkhorn_token(const double *attr, const double *l, square *q)
{
    size_t all = q->n * q->n, steps = 2 * (size_t)attr[TB_ATTR_SINKHORN_ROUNDS];
    bool columns_first = attr[TB_ATTR_SINKHORN_COLUMNS] != 0;
    for (size_t i = 0; i < all; i++)
        q->a[i] = q->da[i * q->ld + i] = tb_exp(l[i]);
    for (size_t s = 0; s < steps; s++)
        for (size_t i = 0; i < q->n; i++)
            over_sum(q, (s % 2 == 0) != columns_first, i);
}

static void sinkhorn(const tb_symbolic *s, int node, int input, double *j)
{
    double a[64 * 64]; /* the op takes no more */
    size_t all = width_of(s, node);
    square q = {1, s->time * all, a, j};
    (void)input;
    while (q.n * q.n < all)
        q.n++;
    for (size_t t = 0; t < s->time; t++) {
        q.da = j + t * all * q.ld + t * all;
        sinkhorn_token(s->run->attr[node], in_value(s, node, 0) + t * all, &q);
    }
}

/* --- dot: each token's other side ------------------------------------------
 */

static void dot(const tb_symbolic *s, int node, int input, double *j)
{
    size_t d = width_of(s, in_of(s, node, 0));
    const double *other = in_value(s, node, 1 - input);
    for (size_t t = 0; t < s->time; t++)
        for (size_t c = 0; c < d; c++)
            j[t * s->time * d + t * d + c] = other[t * d + c];
}

/* --- cross-entropy: (p - target) / count of targets, where there is one; of a
 * smoothed target e/V belongs to every class -------------------------------
 */

static void xent(const tb_symbolic *s, int node, int input, double *j)
{
    size_t v = width_of(s, in_of(s, node, 0)), count = 0;
    const int32_t *target = tb_plan_value(s->run, in_of(s, node, 1));
    double e = s->run->attr[node][TB_ATTR_XENT_SMOOTH];
    (void)input;
    for (size_t t = 0; t < s->time; t++)
        count += target[t] >= 0;
    for (size_t t = 0; t < s->time; t++) {
        const double *z = in_value(s, node, 0) + t * v;
        soft f = soft_of(z, v);
        for (size_t c = 0; c < v && target[t] >= 0; c++)
            j[t * v + c] = (soft_part(&f, z[c]) / f.sum - e / (double)v -
                            ((size_t)target[t] == c ? 1 - e : 0)) /
                           (double)count;
    }
}

/* --- the table ------------------------------------------------------------ */

static const tb_symbolic_row rows[] = {
    {&tb_op_layernorm, layernorm, 3, 5},
    {&tb_op_rmsnorm, rmsnorm, 3, 5},
    {&tb_op_scalenorm, scalenorm, 2, 5},
    {&tb_op_l2norm, scalenorm, 1, 5},
    {&tb_op_batchnorm, batchnorm, 6, 4},
    {&tb_op_powernorm, powernorm, 6, 6},
    {&tb_op_dyt, dyt, 4, 0},
    {&tb_op_derf, derf, 5, 0},
    {&tb_op_linear, linear, 3, 0},
    {&tb_op_mha, mha, 3, 5},
    {&tb_op_relu, relu_j, 1, 0},
    {&tb_op_gelu, gelu_j, 1, 0},
    {&tb_op_gelu_tanh, gelu_tanh_j, 1, 0},
    {&tb_op_silu, silu_j, 1, 0},
    {&tb_op_sigmoid, sigmoid_j, 1, 0},
    {&tb_op_tanh, tanh_j, 1, 0},
    {&tb_op_softmax, softmax, 1, 0},
    {&tb_op_rope, rope, 1, 2},
    {&tb_op_concat, concat, TB_OP_INPUTS, 1},
    {&tb_op_mix, mix, TB_OP_INPUTS, 3},
    {&tb_op_dot, dot, 2, 0},
    {&tb_op_headscale, headscale, 2, 0},
    {&tb_op_sum, sum, 1, 0},
    {&tb_op_mean, mean, 1, 0},
    {&tb_op_maxdiv, maxdiv, 2, 2},
    {&tb_op_sinkhorn, sinkhorn, 1, 2},
    {&tb_op_drop, drop, 1, 1},
    {&tb_op_skipdrop, skipdrop, 1, 1},
    {&tb_op_exp, exp_j, 1, 0},
    {&tb_op_abs, abs_j, 1, 0},
    {&tb_op_xent, xent, 2, 1},
};

const tb_symbolic_row *tb_symbolic_find(const tb_op *op)
{
    for (size_t i = 0; i < TB_LEN(rows); i++)
        if (rows[i].op == op)
            return &rows[i];
    return NULL;
}
