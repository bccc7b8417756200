/* SPDX-License-Identifier: MIT */
/* Every kernel once, as scalar C over REAL; compiled per type and per
 * instruction set with -ffp-contract=off, so all of them give the same bits.
 * Sums run in double: x[i] goes to lane i % 16, then the tree of tree16. */

/* --- n elements --------------------------------------------------------- */

#define BINARY(name, expr)                                                     \
    static void FN(name)(size_t n, const void *a_, const void *b_, void *y_)   \
    {                                                                          \
        const REAL *a = a_, *b = b_;                                           \
        REAL *y = y_;                                                          \
        TB_IVDEP                                                               \
        for (size_t i = 0; i < n; i++)                                         \
            y[i] = (expr);                                                     \
    }
BINARY(add, a[i] + b[i])
BINARY(sub, a[i] - b[i])
BINARY(mul, a[i] * b[i])
#undef BINARY

/* Nothing plus a product, too: -0 becomes 0 as it does in a sum. */
static void FN(mul_acc)(size_t n, const void *a_, const void *b_,
                        const void *base_, void *y_)
{
    const REAL *a = a_, *b = b_, *base = base_;
    REAL *y = y_;
    TB_IVDEP
    for (size_t i = 0; base && i < n; i++)
        y[i] = base[i] + a[i] * b[i];
    TB_IVDEP
    for (size_t i = 0; !base && i < n; i++)
        y[i] = 0 + a[i] * b[i];
}

static void FN(scale)(size_t n, double c_, const void *x_, void *y_)
{
    const REAL *x = x_, c = (REAL)c_;
    REAL *y = y_;
    TB_IVDEP
    for (size_t i = 0; i < n; i++)
        y[i] = c * x[i];
}

static void FN(axpy)(size_t n, double c_, const void *x_, void *y_)
{
    const REAL *x = x_, c = (REAL)c_;
    REAL *y = y_;
    TB_IVDEP
    for (size_t i = 0; i < n; i++)
        y[i] += c * x[i];
}

/* m <= 16 elements; the callers' loops pass the constant 16 */
TB_INLINE void FN(dot16)(double *lane, const REAL *a, const REAL *b, size_t m)
{
    TB_WHOLE
    for (size_t j = 0; j < m; j++)
        lane[j] += (double)a[j] * (double)b[j];
}

/* error <= (n/16 + 5) * 2^-53 * sum|a b| */
static double FN(dot)(size_t n, const void *a_, const void *b_)
{
    const REAL *a = a_, *b = b_;
    double lane[TB_LANES] = {0};
    size_t i = 0;
    for (; i + TB_LANES <= n; i += TB_LANES)
        FN(dot16)(lane, a + i, b + i, TB_LANES);
    FN(dot16)(lane, a + i, b + i, n - i);
    return tree16(lane);
}

TB_INLINE void FN(sum16)(double *lane, const REAL *x, double pivot, size_t m)
{
    TB_WHOLE
    for (size_t j = 0; j < m; j++)
        lane[j] += (double)x[j] - pivot;
}

/* sum of x - pivot */
TB_INLINE double FN(sum_about)(size_t n, const REAL *x, double pivot)
{
    double lane[TB_LANES] = {0};
    size_t i = 0;
    for (; i + TB_LANES <= n; i += TB_LANES)
        FN(sum16)(lane, x + i, pivot, TB_LANES);
    FN(sum16)(lane, x + i, pivot, n - i);
    return tree16(lane);
}

static double FN(sum)(size_t n, const void *x)
{
    return FN(sum_about)(n, x, 0);
}

/* sum of ((x - pivot) * scale)^2 */
TB_INLINE void FN(square16)(double *lane, const REAL *x, double pivot,
                            double scale, size_t m)
{
    TB_WHOLE
    for (size_t j = 0; j < m; j++) {
        double c = ((double)x[j] - pivot) * scale;
        lane[j] += c * c;
    }
}

TB_INLINE double FN(squares_about)(size_t n, const REAL *x, double pivot,
                                   double scale)
{
    double lane[TB_LANES] = {0};
    size_t i = 0;
    for (; i + TB_LANES <= n; i += TB_LANES)
        FN(square16)(lane, x + i, pivot, scale, TB_LANES);
    FN(square16)(lane, x + i, pivot, scale, n - i);
    return tree16(lane);
}

#if REAL_BITS == 64
TB_INLINE void span16(double *lane, const double *x, double pivot, size_t m)
{
    TB_WHOLE
    for (size_t j = 0; j < m; j++) {
        double c = __builtin_fabs(x[j] - pivot);
        lane[j] = c > lane[j] ? c : lane[j];
    }
}

/* max|x - pivot|; a nan does not count */
static double span_f64(size_t n, const double *x, double pivot)
{
    double lane[TB_LANES] = {0};
    size_t i = 0;
    for (; i + TB_LANES <= n; i += TB_LANES)
        span16(lane, x + i, pivot, TB_LANES);
    span16(lane, x + i, pivot, n - i);
    for (int j = 1; j < TB_LANES; j++)
        lane[0] = lane[j] > lane[0] ? lane[j] : lane[0];
    return lane[0];
}
#endif

static double FN(norm2)(size_t n, const void *x)
{
#if REAL_BITS == 64
    double scale = pow2_near_inverse(span_f64(n, x, 0));
#else
    double scale = 1; /* no sum of squares of floats overflows a double */
#endif
    return __builtin_sqrt(FN(squares_about)(n, x, 0, scale)) / scale;
}

static size_t FN(nonfinite)(size_t n, const void *x_)
{
    enum { BLOCK = 4096 }; /* narrow counters inside vectorise better */
    const REAL *x = x_;
    size_t count = 0;
    for (size_t i = 0; i < n; i += BLOCK) {
        size_t m = n - i < BLOCK ? n - i : BLOCK;
        uint32_t c = 0;
        for (size_t j = 0; j < m; j++)
            c += x[i + j] - x[i + j] == 0 ? 0 : 1;
        count += c;
    }
    return count;
}

/* --- activations -------------------------------------------------------- */

/* Comparisons are turned so that a nan falls through to the nan side. */
TB_INLINE REAL FN(relu)(REAL x)
{
    return x <= 0 ? 0 : x;
}

TB_INLINE REAL FN(relu_d)(REAL x)
{
    REAL one_or_nan = x == x ? 1 : x;
    return x <= 0 ? 0 : one_or_nan;
}

TB_INLINE REAL FN(phi_cdf)(REAL x)
{
    return (REAL)0.5 * (1 + REAL_ERF(x * (REAL)0.70710678118654752440));
}

TB_INLINE REAL FN(gelu)(REAL x)
{
    return x * FN(phi_cdf)(x);
}

TB_INLINE REAL FN(gelu_d)(REAL x)
{
    const REAL inv_sqrt_2pi = (REAL)0.39894228040143267794;
    REAL pdf = inv_sqrt_2pi * REAL_EXP((REAL)-0.5 * x * x);
    return FN(phi_cdf)(x) + x * pdf;
}

/* The argument of tanh; beyond |x| = 20 the result no longer changes, and
 * there its derivative would meet inf * 0. */
TB_INLINE REAL FN(gelu_clamp)(REAL x)
{
    x = x > 20 ? 20 : x;
    return x < -20 ? -20 : x;
}

#define GELU_C ((REAL)0.79788456080286535588) /* sqrt(2/pi) */
#define GELU_A ((REAL)0.044715)

TB_INLINE REAL FN(gelu_tanh)(REAL x)
{
    REAL c = FN(gelu_clamp)(x);
    REAL u = GELU_C * (c + GELU_A * c * c * c);
    return (REAL)0.5 * x * (1 + REAL_TANH(u));
}

TB_INLINE REAL FN(gelu_tanh_d)(REAL x)
{
    REAL c = FN(gelu_clamp)(x), cc = c * c;
    REAL t = REAL_TANH(GELU_C * (c + GELU_A * cc * c));
    REAL du = GELU_C * (1 + 3 * GELU_A * cc);
    return (REAL)0.5 * (1 + t) + (REAL)0.5 * c * (1 - t * t) * du;
}

#undef GELU_C
#undef GELU_A

TB_INLINE REAL FN(sigmoid)(REAL x)
{
    return 1 / (1 + REAL_EXP(-x));
}

TB_INLINE REAL FN(sigmoid_d)(REAL x)
{
    REAL s = FN(sigmoid)(x);
    return s * (1 - s);
}

TB_INLINE REAL FN(silu)(REAL x)
{
    return x * FN(sigmoid)(x);
}

TB_INLINE REAL FN(silu_d)(REAL x)
{
    REAL s = FN(sigmoid)(x);
    return s * (1 + x * (1 - s));
}

TB_INLINE REAL FN(tanh)(REAL x)
{
    return REAL_TANH(x);
}

TB_INLINE REAL FN(tanh_d)(REAL x)
{
    REAL t = REAL_TANH(x);
    return 1 - t * t;
}

#define UNARY_LOOPS(id, name)                                                  \
    static void FN(name##_fwd)(size_t n, const REAL *x, REAL *y)               \
    {                                                                          \
        TB_IVDEP                                                               \
        for (size_t i = 0; i < n; i++)                                         \
            y[i] = FN(name)(x[i]);                                             \
    }                                                                          \
    static void FN(name##_slope)(size_t n, const REAL *x, REAL *y, REAL *d)    \
    {                                                                          \
        if (!y) {                                                              \
            TB_IVDEP                                                           \
            for (size_t i = 0; i < n; i++)                                     \
                d[i] = FN(name##_d)(x[i]);                                     \
            return;                                                            \
        }                                                                      \
        TB_IVDEP                                                               \
        for (size_t i = 0; i < n; i++) {                                       \
            REAL at = x[i];                                                    \
            y[i] = FN(name)(at);                                               \
            d[i] = FN(name##_d)(at);                                           \
        }                                                                      \
    }
TB_UNARY_LIST(UNARY_LOOPS)
#undef UNARY_LOOPS

static void FN(unary_fwd)(tb_unary f, size_t n, const void *x, void *y)
{
#define ROW(id, name) [TB_UNARY_##id] = FN(name##_fwd),
    static void (*const loop[])(size_t, const REAL *,
                                REAL *) = {TB_UNARY_LIST(ROW)};
#undef ROW
    loop[f](n, x, y);
}

static void FN(unary_slope)(tb_unary f, size_t n, const void *x, void *y,
                            void *d)
{
#define ROW(id, name) [TB_UNARY_##id] = FN(name##_slope),
    static void (*const loop[])(size_t, const REAL *, REAL *,
                                REAL *) = {TB_UNARY_LIST(ROW)};
#undef ROW
    loop[f](n, x, y, d);
}

/* --- rows of width d ---------------------------------------------------- */

static void FN(row_add)(size_t rows, size_t d, const void *v, void *y_)
{
    REAL *y = y_;
    for (size_t r = 0; r < rows; r++)
        FN(add)(d, y + r * d, v, y + r * d);
}

static void FN(row_mul)(size_t rows, size_t d, const void *x_, const void *v,
                        void *y_)
{
    const REAL *x = x_;
    REAL *y = y_;
    for (size_t r = 0; r < rows; r++)
        FN(mul)(d, x + r * d, v, y + r * d);
}

/* Four rows for one pass over acc; each column still adds in row order. */
static void FN(col_sum)(size_t rows, size_t d, const void *x_, double *acc)
{
    const REAL *x = x_;
    size_t r = 0;
    for (; r + 4 <= rows; r += 4, x += 4 * d)
        for (size_t c = 0; c < d; c++)
            acc[c] = (((acc[c] + (double)x[c]) + (double)x[c + d]) +
                      (double)x[c + 2 * d]) +
                     (double)x[c + 3 * d];
    for (; r < rows; r++, x += d)
        for (size_t c = 0; c < d; c++)
            acc[c] += (double)x[c];
}

static void FN(col_dot)(size_t rows, size_t d, const void *x_, const void *z_,
                        double *acc)
{
    const REAL *x = x_, *z = z_;
    size_t r = 0;
#define AT(k) ((double)x[c + (k)*d] * (double)z[c + (k)*d])
    for (; r + 4 <= rows; r += 4, x += 4 * d, z += 4 * d)
        for (size_t c = 0; c < d; c++)
            acc[c] = (((acc[c] + AT(0)) + AT(1)) + AT(2)) + AT(3);
    for (; r < rows; r++, x += d, z += d)
        for (size_t c = 0; c < d; c++)
            acc[c] += AT(0);
#undef AT
}

/* --- AdamW -------------------------------------------------------------- */

/* Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2: decay acts on w
 * alone, eps stands beside the bias-corrected root. */
static void FN(adamw)(const tb_k_adamw *p, void *w_, const void *g_, void *m_,
                      void *v_)
{
    REAL *w = w_, *m = m_, *v = v_;
    const REAL *grad = g_, gscale = (REAL)p->grad_scale;
    const REAL b1 = (REAL)p->beta1, c1 = (REAL)(1 - p->beta1);
    const REAL b2 = (REAL)p->beta2, c2 = (REAL)(1 - p->beta2);
    const REAL shrink = (REAL)(p->lr * p->decay), eps = (REAL)p->eps;
    const REAL step = (REAL)(p->lr / p->bias1);
    const REAL root = (REAL)(1 / __builtin_sqrt(p->bias2));
    TB_IVDEP
    for (size_t i = 0; i < p->n; i++) {
        REAL g = gscale * grad[i];
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * (g * g);
        REAL kept = w[i] - shrink * w[i];
        w[i] = kept - step * m[i] / (root * REAL_SQRT(v[i]) + eps);
    }
}
