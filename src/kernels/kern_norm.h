/* SPDX-License-Identifier: MIT */
/* LayerNorm and RMSNorm over REAL, of a row or of a sum of two; see
 * kern_template.h. Elements are centred before they are scaled. */

/* How to reach xhat = (x - mean) * rstd without leaving REAL: the mean is
 * split in two REALs (x - hi is exact where it cancels), and `pre`, a power of
 * two, keeps rstd and x - mean in range for rows near the ends of the type.
 * Floats whose mean is within the deviation do without `lo`: it would change
 * xhat by less than half a unit in the last place of 1. */
typedef struct FN(centre) {
    REAL pre, hi, lo, r;
    REAL rstd;
} FN(centre);

#if REAL_BITS == 32
#    define RSTD_SMALL 0x1p-60
#    define PRE_SMALL  0x1p-64
#else
#    define RSTD_SMALL 0x1p-500
#    define PRE_SMALL  0x1p-512
#endif

/* The mean is within the deviation. */
TB_INLINE bool FN(stat_near)(const double *stat)
{
    return __builtin_fabs(stat[0]) * stat[1] <= 1;
}

/* What centre_of then gives is plain: hi and r are mean and rstd. */
TB_INLINE bool FN(stat_usual)(const double *stat)
{
    return stat[1] >= RSTD_SMALL && stat[1] <= 1 / RSTD_SMALL &&
           FN(stat_near)(stat);
}

TB_INLINE FN(centre) FN(centre_of)(const double *stat)
{
    double pre = 1, mean = stat[0], rstd = stat[1];
    if (rstd < RSTD_SMALL)
        pre = PRE_SMALL;
    if (rstd > 1 / RSTD_SMALL)
        pre = 1 / PRE_SMALL;
    bool near = REAL_BITS == 32 && FN(stat_near)(stat);
    mean *= pre;
    REAL hi = (REAL)mean;
    return (FN(centre)){.pre = (REAL)pre,
                        .hi = hi,
                        .lo = near ? 0 : (REAL)(mean - (double)hi),
                        .r = (REAL)(pre == 1 ? rstd : rstd / pre),
                        .rstd = (REAL)rstd};
}

/* Whether xhat is (x - hi) * r, which the fast loops count on. */
TB_INLINE bool FN(centre_plain)(const FN(centre) * c)
{
    return c->pre == 1 && c->lo == 0;
}

TB_INLINE REAL FN(xhat)(FN(centre) c, REAL x)
{
    return ((x * c.pre - c.hi) - c.lo) * c.r;
}

#if REAL_BITS == 64
/* The sum of squares left double's range: the mean again from halved-down
 * elements, then deviations in units of `scale`. */
static void stat_scaled_f64(const tb_k_norm *p, const double *x, double *stat)
{
    const double down = 0x1p-64, d = (double)p->d;
    double lane[TB_LANES] = {0};
    if (p->kind == TB_NORM_LAYER && !(__builtin_fabs(stat[0]) < 1e300)) {
        for (size_t i = 0; i < p->d; i++)
            lane[i % TB_LANES] += x[i] * down;
        stat[0] = tree16(lane) / d / down;
    }
    double scale = pow2_near_inverse(span_f64(p->d, x, stat[0]));
    double var = squares_about_f64(p->d, x, stat[0], scale) / d;
    double eps = p->eps > 0 ? p->eps * scale * scale : 0;
    stat[1] = scale / __builtin_sqrt(var + eps);
}
#endif

/* Two passes. A row that is constant has exactly that constant as its mean:
 * sums of d equal floats are exact in double, for doubles the pivot is it. */
static void FN(stat_two_pass)(const tb_k_norm *p, const REAL *x, double *stat)
{
    double mean = 0, d = (double)p->d;
    double pivot = REAL_BITS == 64 ? (double)x[0] : 0;
    if (p->kind == TB_NORM_LAYER)
        mean = pivot + FN(sum_about)(p->d, x, pivot) / d;
    double var = FN(squares_about)(p->d, x, mean, 1) / d;
    stat[0] = mean;
    stat[1] = 1 / __builtin_sqrt(var + p->eps);
#if REAL_BITS == 64
    if (!(var < 1e300) || (p->eps <= 0 && var < 1e-280))
        stat_scaled_f64(p, x, stat);
#endif
}

/* Whether a buffer may be streamed to, row by row. */
TB_INLINE bool FN(can_stream)(const tb_k_norm *p, const void *y)
{
    return p->stream && p->d % FN(PACK) == 0 && (uintptr_t)y % 64 == 0;
}

/* --- what is normed: x, or a sum ------------------------------------------ */

/* TAKE_SUM: both factors are 1. */
typedef enum FN(take) { FN(TAKE_X), FN(TAKE_SUM), FN(TAKE_SCALED) } FN(take);

typedef struct FN(source) {
    const REAL *x, *r;
    REAL cx, cr;
} FN(source);

TB_INLINE FN(pack) FN(take_pack)(const FN(source) * s, FN(take) how, size_t i)
{
    FN(pack) x = FN(load)(s->x + i);
    if (how == FN(TAKE_X))
        return x;
    FN(pack) r = FN(load)(s->r + i);
    return how == FN(TAKE_SUM) ? x + r : s->cx * x + s->cr * r;
}

TB_INLINE REAL FN(take_one)(const FN(source) * s, FN(take) how, size_t i)
{
    if (how == FN(TAKE_X))
        return s->x[i];
    return how == FN(TAKE_SUM) ? s->x[i] + s->r[i]
                               : s->cx * s->x[i] + s->cr * s->r[i];
}

/* --- statistics ----------------------------------------------------------- */

#if REAL_BITS == 32
/* Sums of x and x^2 in 8 lanes. */
typedef struct moments {
    tb_d8 s, q;
} moments;

/* As many columns as are summed in float, 16 to a lane, before the lanes take
 * them. */
enum { MOMENTS = 128 };

/* Where what is summed goes, too, if `keeps`. */
typedef struct moments_keep {
    bool keeps;
    float *to;
} moments_keep;

TB_INLINE void moments_of_four(const source_f32 *s, take_f32 how, size_t i,
                               moments_keep keep, pack_f32 *sum,
                               pack_f32 *square)
{
    pack_f32 v[4];
    for (size_t j = 0; j < 4; j++) {
        v[j] = take_pack_f32(s, how, i + 16 * j);
        TB_ONCE(v[j]);
        if (keep.keeps)
            put_f32(keep.to + i + 16 * j, v[j], false);
    }
    *sum = (v[0] + v[1]) + (v[2] + v[3]);
    *square = (v[0] * v[0] + v[1] * v[1]) + (v[2] * v[2] + v[3] * v[3]);
}

TB_INLINE void moments_add(moments *m, const source_f32 *s, take_f32 how,
                           size_t i, moments_keep keep)
{
    pack_f32 s0, s1, q0, q1;
    moments_of_four(s, how, i, keep, &s0, &q0);
    moments_of_four(s, how, i + MOMENTS / 2, keep, &s1, &q1);
    m->s += wide8_f32(fold16(s0 + s1));
    m->q += wide8_f32(fold16(q0 + q1));
}

/* The columns from i on that fill no block, one by one in double. */
TB_INLINE void moments_rest(const source_f32 *s, take_f32 how, size_t i,
                            size_t d, size_t lanes, double *l1, double *l2)
{
    for (size_t j = 0; i < d; i++, j = (j + 1) % lanes) {
        double v = (double)take_one_f32(s, how, i);
        l1[j] += v;
        l2[j] = REAL_MUL_ADD(v, v, l2[j]);
    }
}

/* mean and rstd from two means; how far var can be trusted is the caller's */
TB_INLINE double stat_of_means(const tb_k_norm *p, double mean, double square,
                               double *stat)
{
    mean = p->kind == TB_NORM_LAYER ? mean : 0;
    double var = square - mean * mean;
    stat[0] = mean;
    stat[1] = 1 / __builtin_sqrt(var + p->eps);
    return var;
}

/* False where the sums are not good enough. Sixteen terms at a time were added
 * in float by a tree, so a sum is off by at most 5 * 2^-24 of the sum of its
 * terms' sizes. A mean within the deviation is then right to 5 * 2^-23 of the
 * deviation, and rstd to 10 * 2^-23 of itself, in the worst case; a hundredth
 * of it is usual. */
TB_INLINE bool moments_stat(const tb_k_norm *p, moments *m, const source_f32 *s,
                            take_f32 how, double *stat)
{
    double sum, squares;
    if (p->d % MOMENTS == 0) {
        sum = tree8_of(m->s);
        squares = tree8_of(m->q);
    } else {
        double l1[8], l2[8];
        memcpy(l1, &m->s, sizeof l1);
        memcpy(l2, &m->q, sizeof l2);
        moments_rest(s, how, p->d - p->d % MOMENTS, p->d, 8, l1, l2);
        sum = tree8(l1);
        squares = tree8(l2);
    }
    const double share = 1 / (double)p->d, mean_square = squares * share;
    double var = stat_of_means(p, sum * share, mean_square, stat);
    /* within these no square of a float left its range */
    return var > 0.5 * mean_square && mean_square > 0x1p-80 &&
           mean_square < 0x1p120;
}

/* Sums of x and x^2 in double: whole 16s, then the rest. */
static void sums_wide(const float *x, size_t d, double *l1, double *l2)
{
    const source_f32 source = {.x = x};
    tb_d8 s[2] = {{0}}, q[2] = {{0}};
    size_t i = 0;
    for (; i + TB_LANES <= d; i += TB_LANES)
        for (int half = 0; half < 2; half++) {
            tb_d8 v = wide8_f32(load8_f32(x + i + 8 * half));
            s[half] += v;
            q[half] = mul_add8_f32(v, v, q[half]);
        }
    memcpy(l1, s, sizeof s);
    memcpy(l2, q, sizeof q);
    moments_rest(&source, TAKE_X_f32, i, d, TB_LANES, l1, l2);
}

/* One pass: var = E x^2 - (E x)^2, of exact squares. False where that
 * difference lost 20 of double's 53 bits, or is no number: the mean is then a
 * thousand times the deviation or more, and two passes have to do it. */
static bool stat_one_pass(const tb_k_norm *p, const float *x, double *stat)
{
    double l1[TB_LANES], l2[TB_LANES];
    sums_wide(x, p->d, l1, l2);
    double square = tree16(l2) / (double)p->d;
    double var = stat_of_means(p, tree16(l1) / (double)p->d, square, stat);
    return var > 0x1p-20 * square;
}

static bool stat_by_blocks(const tb_k_norm *p, const float *x, double *stat)
{
    const source_f32 s = {.x = x};
    moments m = {.s = {0}};
    if (p->d < MOMENTS)
        return false;
    for (size_t i = 0; i + MOMENTS <= p->d; i += MOMENTS)
        moments_add(&m, &s, TAKE_X_f32, i, (moments_keep){.to = NULL});
    return moments_stat(p, &m, &s, TAKE_X_f32, stat);
}
#endif

static void FN(norm_stat)(const tb_k_norm *p, const REAL *x, double *stat)
{
#if REAL_BITS == 32
    if (stat_by_blocks(p, x, stat) || stat_one_pass(p, x, stat))
        return;
#endif
    FN(stat_two_pass)(p, x, stat);
}

/* --- row by row ----------------------------------------------------------- */

TB_PER_CASE void FN(norm_loop)(FN(centre) c, size_t d, const REAL *x,
                               const REAL *gain, const REAL *bias, REAL *y)
{
    TB_IVDEP
    for (size_t i = 0; i < d; i++) {
        REAL v = FN(xhat)(c, x[i]);
        if (gain)
            v *= gain[i];
        if (bias)
            v += bias[i];
        y[i] = v;
    }
}

/* One loop per case: a test inside would stop the vectoriser. */
static void FN(norm_row)(const tb_k_norm *p, const double *stat, const REAL *x,
                         REAL *y)
{
    const REAL *gain = p->gain, *bias = p->bias;
    FN(centre) c = FN(centre_of)(stat), plain = c;
    plain.pre = 1; /* constants: two operations less in the usual case */
    plain.lo = 0;
    if (gain && bias && FN(centre_plain)(&c))
        FN(norm_loop)(plain, p->d, x, gain, bias, y);
    else if (gain && bias)
        FN(norm_loop)(c, p->d, x, gain, bias, y);
    else if (gain)
        FN(norm_loop)(c, p->d, x, gain, NULL, y);
    else if (bias)
        FN(norm_loop)(c, p->d, x, NULL, bias, y);
    else
        FN(norm_loop)(c, p->d, x, NULL, NULL, y);
}

static void FN(sum_row)(size_t d, const FN(source) * s, REAL *y)
{
    TB_IVDEP
    for (size_t i = 0; i < d; i++)
        y[i] = FN(take_one)(s, FN(TAKE_SCALED), i); /* times 1 is exact */
}

#if REAL_BITS == 32 && !TB_SMALL
/* --- rows in a pipeline --------------------------------------------------- */

/* While a group of rows is written the next one is measured, block by block:
 * loads, sums and stores of different rows overlap. Two rows share what they
 * load of gain and bias. A sum is stored as it is measured and read again, or,
 * where it goes past the caches, made twice. */
typedef struct pipe {
    const tb_k_norm *p;
    source_f32 s; /* of row 0 */
    float *sum;   /* NULL: nothing is added */
    float *y;
} pipe;

/* What is constant in one compiled copy of the pipeline. Sums go row by row:
 * four arrays of two rows would not stay in a first-level cache. So do rows
 * from far: one long stream is read faster than two. */
typedef struct pipe_form {
    take_f32 how;
    bool biased, stream;
    size_t rows; /* of a group */
} pipe_form;

enum { PIPE_ROWS = 2 };

TB_INLINE bool pipe_keeps(pipe_form f)
{
    return f.how != TAKE_X_f32 && !f.stream;
}

TB_INLINE source_f32 pipe_source(const pipe *j, size_t row)
{
    source_f32 s = j->s;
    s.x += row * j->p->d;
    s.r = s.r ? s.r + row * j->p->d : NULL;
    return s;
}

TB_INLINE bool pipe_sums(pipe_form f)
{
    return f.how != TAKE_X_f32 && f.stream;
}

/* A row from when it is measured on, and how to take it. */
TB_INLINE source_f32 pipe_again(const pipe *j, pipe_form f, size_t row)
{
    if (!pipe_keeps(f))
        return pipe_source(j, row);
    return (source_f32){.x = j->sum + row * j->p->d};
}

TB_INLINE take_f32 pipe_how_again(pipe_form f)
{
    return pipe_keeps(f) ? TAKE_X_f32 : f.how;
}

/* How many rows lie between one that is measured and the one written beside it.
 * Past the caches a row is done before its sums are needed. */
TB_INLINE size_t pipe_ago(pipe_form f)
{
    return f.stream ? 2 * f.rows : f.rows;
}

/* A group on its way in and an earlier one on its way out; rows follow each
 * other in memory. */
typedef struct pipe_pair {
    source_f32 in, out;
    moments_keep keep;
    const float *gain, *bias;
    float *sum, *y;
    size_t d;
} pipe_pair;

TB_INLINE pipe_pair pipe_pair_of(const pipe *j, pipe_form f, size_t next)
{
    const size_t d = j->p->d, ago = pipe_ago(f);
    const size_t row = next > ago ? next - ago : 0;
    return (pipe_pair){
        .in = pipe_source(j, next < j->p->rows ? next : 0),
        .out = pipe_again(j, f, row),
        .keep = {pipe_keeps(f), pipe_keeps(f) ? j->sum + next * d : NULL},
        .gain = j->p->gain,
        .bias = j->p->bias,
        .sum = pipe_sums(f) ? j->sum + row * d : NULL,
        .y = j->y + row * d,
        .d = d};
}

/* Columns [i, i + PACK) of a group, to what stands at `to` of its outputs. */
TB_INLINE void pipe_write(pipe_pair g, pipe_form f, const centre_f32 *c,
                          size_t i, size_t to)
{
    pack_f32 gain = load_f32(g.gain + i), bias = {0};
    if (f.biased)
        bias = load_f32(g.bias + i);
    if (f.rows > 1) {
        TB_ONCE(gain);
        TB_ONCE(bias);
    }
    for (size_t k = 0; k < f.rows; k++, i += g.d, to += g.d) {
        pack_f32 v = take_pack_f32(&g.out, pipe_how_again(f), i);
        if (pipe_sums(f))
            put_f32(g.sum + to, v, f.stream);
        v = (v - c[k].hi) * c[k].r * gain;
        put_f32(g.y + to, f.biased ? v + bias : v, f.stream);
    }
}

/* Columns [i, i + MOMENTS). Beside stores past the caches, which are slow to
 * make room, a line's address must not be kept in memory. */
TB_INLINE void pipe_block(pipe_pair g, pipe_form f, const centre_f32 *c,
                          size_t i)
{
    size_t to = i;
    if (f.stream) {
        to = 0;
        g.sum = pipe_sums(f) ? g.sum + i : NULL;
        g.y += i;
        TB_BASE(g.sum);
        TB_BASE(g.y);
    }
    for (size_t n = 0; n < MOMENTS; n += PACK_f32)
        pipe_write(g, f, c, i + n, to + n);
}

/* Floats ahead of those that are measured: 24 KiB, to the second-level cache. A
 * core that waits for its stores past the caches asks for too few lines by
 * itself. In rows of 384 that costs more than it gives. */
enum { PIPE_AHEAD = 6144, PIPE_WIDE = 512 };

TB_INLINE void pipe_fetch(pipe_pair g, pipe_form f, size_t i)
{
    for (size_t n = i + PIPE_AHEAD; n < i + PIPE_AHEAD + MOMENTS; n += 16) {
        __builtin_prefetch(g.in.x + n, 0, 2);
        if (f.how != TAKE_X_f32)
            __builtin_prefetch(g.in.r + n, 0, 2);
    }
}

/* The columns of row k that fill no block. */
TB_INLINE void pipe_rest(pipe_pair g, pipe_form f, bool in, bool out,
                         centre_f32 c, size_t k)
{
    for (size_t i = g.d - g.d % MOMENTS; i < g.d; i++) {
        const size_t at = k * g.d + i;
        if (in && pipe_keeps(f))
            g.keep.to[at] = take_one_f32(&g.in, f.how, at);
        if (!out)
            continue;
        float v = take_one_f32(&g.out, pipe_how_again(f), at);
        if (pipe_sums(f))
            g.sum[at] = v;
        v = (v - c.hi) * c.r * g.gain[i];
        g.y[at] = f.biased ? v + g.bias[i] : v;
    }
}

/* The group at row `next` in, that of pipe_ago out; `in`, `out`: whether. */
TB_INLINE void pipe_step(const pipe *j, pipe_form f, size_t next, bool in,
                         bool out, const centre_f32 *c, moments *m)
{
    const pipe_pair g = pipe_pair_of(j, f, next);
    moments now[PIPE_ROWS] = {{.s = {0}}};
    for (size_t i = 0; i + MOMENTS <= g.d; i += MOMENTS) {
        if (in && f.stream && g.d >= PIPE_WIDE)
            pipe_fetch(g, f, i);
        for (size_t k = 0; in && k < f.rows; k++)
            moments_add(&now[k], &g.in, f.how, i + k * g.d, g.keep);
        if (out)
            pipe_block(g, f, c, i);
    }
    for (size_t k = 0; k < f.rows; k++)
        m[k] = now[k];
    for (size_t k = 0; g.d % MOMENTS > 0 && k < f.rows; k++)
        pipe_rest(g, f, in, out, c[k], k);
}

/* A row on its way: `apart` if its sum is written and all else is to be done
 * from there. */
typedef struct pipe_state {
    double stat[2];
    bool apart;
} pipe_state;

TB_INLINE void pipe_finish(const pipe *j, pipe_form f, size_t row, moments *m,
                           pipe_state *state)
{
    const source_f32 s = pipe_again(j, f, row);
    const float *x = s.x;
    state->apart = !moments_stat(j->p, m, &s, pipe_how_again(f), state->stat);
    if (!state->apart)
        return;
    if (pipe_how_again(f) != TAKE_X_f32) {
        sum_row_f32(j->p->d, &s, j->sum + row * j->p->d);
        x = j->sum + row * j->p->d;
    }
    if (!stat_one_pass(j->p, x, state->stat))
        stat_two_pass_f32(j->p, x, state->stat);
}

/* A row with a mean far off, or near the ends of the type. */
static void pipe_apart(const pipe *j, bool summed, size_t row,
                       const pipe_state *state)
{
    const source_f32 s = pipe_source(j, row);
    const size_t at = row * j->p->d;
    if (j->sum && !summed)
        sum_row_f32(j->p->d, &s, j->sum + at);
    norm_row_f32(j->p, state->stat, j->sum ? j->sum + at : s.x, j->y + at);
}

/* The centre of a row that was measured; false if it is not usual. */
TB_INLINE bool pipe_centre_one(const pipe *j, pipe_form f, size_t row,
                               moments *m, double *stat, centre_f32 *c,
                               pipe_state *state)
{
    pipe_finish(j, f, row, m, state);
    c->hi = (float)state->stat[0];
    c->r = (float)state->stat[1];
    if (stat)
        memcpy(stat + 2 * row, state->stat, sizeof state->stat);
    return !state->apart && stat_usual_f32(state->stat);
}

/* Of all rows; where one of them is not usual, all are written. */
TB_INLINE bool pipe_centre(const pipe *j, pipe_form f, size_t row, moments *m,
                           double *stat, centre_f32 *c)
{
    pipe_state state[PIPE_ROWS];
    bool usual = pipe_centre_one(j, f, row, &m[0], stat, &c[0], &state[0]);
    if (f.rows > 1)
        usual &= pipe_centre_one(j, f, row + 1, &m[1], stat, &c[1], &state[1]);
    for (size_t k = 0; !usual && k < f.rows; k++)
        pipe_apart(j, state[k].apart || pipe_keeps(f), row + k, &state[k]);
    return usual;
}

/* All rows in whole groups; how many were done. */
TB_INLINE size_t pipe_run(const pipe *j, pipe_form f, double *stat)
{
    const size_t end = j->p->rows / f.rows * f.rows;
    centre_f32 c[PIPE_ROWS] = {{.pre = 1}}, before[PIPE_ROWS];
    moments m[PIPE_ROWS] = {{.s = {0}}};
    bool ready = false;
    /* the first round measures, the last one writes */
    for (size_t next = 0; next < end + pipe_ago(f); next += f.rows) {
        const bool was = ready;
        memcpy(before, c, sizeof c);
        ready = next > 0 && next <= end &&
                pipe_centre(j, f, next - f.rows, m, stat, c);
        pipe_step(j, f, next, next < end, f.stream ? was : ready,
                  f.stream ? before : c, m);
    }
    return end;
}

#    define PIPE(name, take)                                                   \
        static size_t name(const pipe *j, bool stream, double *stat)           \
        {                                                                      \
            if (j->p->bias && stream)                                          \
                return pipe_run(j, (pipe_form){take, true, true, 1}, stat);    \
            if (j->p->bias)                                                    \
                return pipe_run(j, (pipe_form){take, true, false, 1}, stat);   \
            if (stream)                                                        \
                return pipe_run(j, (pipe_form){take, false, true, 1}, stat);   \
            return pipe_run(j, (pipe_form){take, false, false, 1}, stat);      \
        }
PIPE(pipe_x, TAKE_X_f32)
PIPE(pipe_sum, TAKE_SUM_f32)
PIPE(pipe_scaled, TAKE_SCALED_f32)
#    undef PIPE

TB_APART size_t pipe_pairs(const pipe *j, double *stat)
{
    if (j->p->bias)
        return pipe_run(j, (pipe_form){TAKE_X_f32, true, false, 2}, stat);
    return pipe_run(j, (pipe_form){TAKE_X_f32, false, false, 2}, stat);
}

/* How many rows were done: none where they are too short for it, or there is
 * no gain. */
static size_t norm_by_pipe(const tb_k_norm *p, const source_f32 *s, float *sum,
                           float *y, double *stat)
{
    const pipe j = {p, *s, sum, y};
    const bool stream = can_stream_f32(p, y) && can_stream_f32(p, sum);
    size_t done;
    if (p->d < MOMENTS || !p->gain)
        return 0;
    if (!sum && (stream || p->far))
        done = pipe_x(&j, stream, stat);
    else if (!sum)
        done = pipe_pairs(&j, stat);
    else if (s->cx == 1 && s->cr == 1)
        done = pipe_sum(&j, stream, stat);
    else
        done = pipe_scaled(&j, stream, stat);
    if (stream)
        tb_stream_end();
    return done;
}
#endif

/* --- the two kernels ------------------------------------------------------ */

static void FN(norm_rows)(const tb_k_norm *p, const FN(source) * from,
                          REAL *sum, REAL *y, double *stat)
{
    size_t r = 0;
#if REAL_BITS == 32 && !TB_SMALL
    r = norm_by_pipe(p, from, sum, y, stat);
#endif
    for (; r < p->rows; r++) {
        const size_t at = r * p->d;
        double local[2], *to = stat ? stat + 2 * r : local;
        FN(source) s = *from;
        s.x += at;
        s.r = sum ? s.r + at : NULL;
        if (sum)
            FN(sum_row)(p->d, &s, sum + at);
        FN(norm_stat)(p, sum ? sum + at : s.x, to);
        FN(norm_row)(p, to, sum ? sum + at : s.x, y + at);
    }
}

static void FN(norm_fwd)(const tb_k_norm *p, void *y, double *stat)
{
    const FN(source) s = {.x = p->x};
    FN(norm_rows)(p, &s, NULL, y, stat);
}

static void FN(addnorm_fwd)(const tb_k_norm *p, const tb_k_sum *a, void *y,
                            double *stat)
{
    const FN(source) s = {p->x, a->r, .cx = (REAL)a->cx, .cr = (REAL)a->cr};
    FN(norm_rows)(p, &s, a->sum, y, stat);
}

#undef RSTD_SMALL
#undef PRE_SMALL
