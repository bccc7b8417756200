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

/* `keep`: what is summed goes there too, unless NULL. */
TB_INLINE void moments_of_four(const source_f32 *s, take_f32 how, size_t i,
                               float *keep, pack_f32 *sum, pack_f32 *square)
{
    pack_f32 v[4];
    for (size_t j = 0; j < 4; j++) {
        v[j] = take_pack_f32(s, how, i + 16 * j);
        TB_ONCE(v[j]);
        if (keep)
            put_f32(keep + i + 16 * j, v[j], false);
    }
    *sum = (v[0] + v[1]) + (v[2] + v[3]);
    *square = (v[0] * v[0] + v[1] * v[1]) + (v[2] * v[2] + v[3] * v[3]);
}

TB_INLINE void moments_add(moments *m, const source_f32 *s, take_f32 how,
                           size_t i, float *keep)
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

/* mean and rstd from two sums; how far var can be trusted is the caller's */
TB_INLINE double stat_of_sums(const tb_k_norm *p, double sum, double squares,
                              double *stat)
{
    double d = (double)p->d, mean = p->kind == TB_NORM_LAYER ? sum / d : 0;
    double var = squares / d - mean * mean;
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
    double l1[8], l2[8];
    memcpy(l1, &m->s, sizeof l1);
    memcpy(l2, &m->q, sizeof l2);
    moments_rest(s, how, p->d - p->d % MOMENTS, p->d, 8, l1, l2);
    double squares = tree8(l2);
    double var = stat_of_sums(p, tree8(l1), squares, stat);
    double mean_square = squares / (double)p->d;
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
    double squares = tree16(l2);
    double var = stat_of_sums(p, tree16(l1), squares, stat);
    return var > 0x1p-20 * (squares / (double)p->d);
}

static bool stat_by_blocks(const tb_k_norm *p, const float *x, double *stat)
{
    const source_f32 s = {.x = x};
    moments m = {.s = {0}};
    if (p->d < MOMENTS)
        return false;
    for (size_t i = 0; i + MOMENTS <= p->d; i += MOMENTS)
        moments_add(&m, &s, TAKE_X_f32, i, NULL);
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

/* While row r is written a row further on is measured, block by block: loads,
 * sums and stores of different rows overlap. A sum is stored as it is measured
 * and read again, or, where it goes past the caches, made twice. */
typedef struct pipe {
    const tb_k_norm *p;
    source_f32 s; /* of row 0 */
    float *sum;   /* NULL: nothing is added */
    float *y;
} pipe;

/* What is constant in one compiled copy of the pipeline. */
typedef struct pipe_form {
    take_f32 how;
    bool biased, stream;
} pipe_form;

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

/* Columns [i, i + MOMENTS) of a row whose centre is plain. */
TB_INLINE void pipe_write(const source_f32 *s, take_f32 how, centre_f32 c,
                          const float *gain, const float *bias, bool stream,
                          size_t i, float *sum, float *y)
{
    for (size_t to = i + MOMENTS; i < to; i += PACK_f32) {
        pack_f32 v = take_pack_f32(s, how, i);
        if (sum)
            put_f32(sum + i, v, stream);
        v = (v - c.hi) * c.r * load_f32(gain + i);
        if (bias)
            v += load_f32(bias + i);
        put_f32(y + i, v, stream);
    }
}

/* The columns that fill no block. */
TB_INLINE void pipe_write_rest(const source_f32 *s, take_f32 how, centre_f32 c,
                               const float *gain, const float *bias, size_t d,
                               float *sum, float *y)
{
    for (size_t i = d - d % MOMENTS; i < d; i++) {
        float v = take_one_f32(s, how, i);
        if (sum)
            sum[i] = v;
        v = (v - c.hi) * c.r * gain[i];
        y[i] = bias ? v + bias[i] : v;
    }
}

TB_INLINE void pipe_keep_rest(const source_f32 *s, take_f32 how, size_t d,
                              float *keep)
{
    for (size_t i = d - d % MOMENTS; keep && i < d; i++)
        keep[i] = take_one_f32(s, how, i);
}

/* Row `row` out, row `next` in. */
TB_INLINE void pipe_row(const pipe *j, pipe_form f, centre_f32 c, size_t row,
                        size_t next, moments *m)
{
    const size_t d = j->p->d;
    const float *gain = j->p->gain, *bias = f.biased ? j->p->bias : NULL;
    const source_f32 s = pipe_again(j, f, row), n = pipe_source(j, next);
    const take_f32 how = pipe_how_again(f);
    float *y = j->y + row * d, *keep = NULL, *sum = NULL;
    if (pipe_keeps(f))
        keep = j->sum + next * d;
    else if (f.how != TAKE_X_f32)
        sum = j->sum + row * d;
    moments now = {.s = {0}};
    for (size_t i = 0; i + MOMENTS <= d; i += MOMENTS) {
        moments_add(&now, &n, f.how, i, keep);
        pipe_write(&s, how, c, gain, bias, f.stream, i, sum, y);
    }
    pipe_keep_rest(&n, f.how, d, keep);
    pipe_write_rest(&s, how, c, gain, bias, d, sum, y);
    *m = now;
}

TB_INLINE void pipe_measure(const pipe *j, pipe_form f, size_t row, moments *m)
{
    const size_t d = j->p->d;
    const source_f32 s = pipe_source(j, row);
    float *keep = pipe_keeps(f) ? j->sum + row * d : NULL;
    *m = (moments){.s = {0}};
    for (size_t i = 0; i + MOMENTS <= d; i += MOMENTS)
        moments_add(m, &s, f.how, i, keep);
    pipe_keep_rest(&s, f.how, d, keep);
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

/* Two rows ahead, so that nothing waits for a root and a division. The last
 * two rows have none to measure. */
TB_INLINE void pipe_run(const pipe *j, pipe_form f, double *stat)
{
    const size_t rows = j->p->rows;
    pipe_state now, next = {.apart = false};
    moments m;
    pipe_measure(j, f, 0, &m);
    pipe_finish(j, f, 0, &m, &now);
    if (rows > 1)
        pipe_measure(j, f, 1, &m);
    for (size_t r = 0; r < rows; r++, now = next) {
        centre_f32 c = centre_of_f32(now.stat);
        if (stat)
            memcpy(stat + 2 * r, now.stat, sizeof now.stat);
        if (r + 1 < rows)
            pipe_finish(j, f, r + 1, &m, &next);
        bool fast = !now.apart && centre_plain_f32(&c);
        if (fast && r + 2 < rows) {
            pipe_row(j, f, c, r, r + 2, &m);
            continue;
        }
        pipe_apart(j, now.apart || pipe_keeps(f), r, &now);
        if (r + 2 < rows)
            pipe_measure(j, f, r + 2, &m);
    }
}

#    define PIPE(name, take)                                                   \
        static void name(const pipe *j, bool stream, double *stat)             \
        {                                                                      \
            if (j->p->bias && stream)                                          \
                pipe_run(j, (pipe_form){take, true, true}, stat);              \
            else if (j->p->bias)                                               \
                pipe_run(j, (pipe_form){take, true, false}, stat);             \
            else if (stream)                                                   \
                pipe_run(j, (pipe_form){take, false, true}, stat);             \
            else                                                               \
                pipe_run(j, (pipe_form){take, false, false}, stat);            \
        }
PIPE(pipe_x, TAKE_X_f32)
PIPE(pipe_sum, TAKE_SUM_f32)
PIPE(pipe_scaled, TAKE_SCALED_f32)
#    undef PIPE

/* False where rows are too short for it, or there is no gain. */
static bool norm_by_pipe(const tb_k_norm *p, const source_f32 *s, float *sum,
                         float *y, double *stat)
{
    const pipe j = {p, *s, sum, y};
    const bool stream = can_stream_f32(p, y) && can_stream_f32(p, sum);
    if (p->d < MOMENTS || !p->gain || p->rows == 0)
        return false;
    if (!sum)
        pipe_x(&j, stream, stat);
    else if (s->cx == 1 && s->cr == 1)
        pipe_sum(&j, stream, stat);
    else
        pipe_scaled(&j, stream, stat);
    if (stream)
        tb_stream_end();
    return true;
}
#endif

/* --- the two kernels ------------------------------------------------------ */

static void FN(norm_rows)(const tb_k_norm *p, const FN(source) * from,
                          REAL *sum, REAL *y, double *stat)
{
#if REAL_BITS == 32 && !TB_SMALL
    if (norm_by_pipe(p, from, sum, y, stat))
        return;
#endif
    FN(source) s = *from;
    double local[2];
    for (size_t r = 0; r < p->rows; r++, s.x += p->d, y += p->d) {
        double *at = stat ? stat + 2 * r : local;
        const REAL *x = s.x;
        if (sum) {
            FN(sum_row)(p->d, &s, sum);
            x = sum;
            sum += p->d;
            s.r += p->d;
        }
        FN(norm_stat)(p, x, at);
        FN(norm_row)(p, at, x, y);
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
