/* SPDX-License-Identifier: MIT */
/* Few rows times a B that is stored along k, which is how text is generated:
 * to copy B would take longer than the product. Each element is a scalar
 * product in lanes, over all of k: other bits than tiles give, so an exact
 * context does without. Part of gemm_template.h, for the files with FMA. */

/* as many elements of C as a vector has: four columns, two where it has two */
enum {
    FN(DOT_COLS) = FN(VEC) < 4 ? FN(VEC) : 4,
    FN(DOT_ROWS) = FN(VEC) / FN(DOT_COLS)
};

/* Sums in lanes over whole vectors of k of one row of A and a vector of rows of
 * B. One row of B after the other: it is in no cache, and that is how memory
 * gives the most, twice of what it gives for sixteen rows at a time. */
TB_INLINE void FN(dot_lanes_one)(const tb_gemm_args *g, const REAL *a,
                                 const REAL *b, FN(vec) s[FN(VEC)])
{
    enum { ABREAST = 4, STEP = ABREAST * FN(VEC) };
    const FN(vec) zero = {0};
    for (int q = 0; q < FN(VEC); q++, b += g->ldb) {
        FN(vec) sum[ABREAST], x, y;
        size_t k = 0;
        GEMM_UNROLL
        for (int u = 0; u < ABREAST; u++)
            sum[u] = zero;
        for (; k + STEP <= g->k; k += STEP)
            GEMM_UNROLL
        for (int u = 0; u < ABREAST; u++) {
            memcpy(&x, a + k + (size_t)u * FN(VEC), sizeof x);
            memcpy(&y, b + k + (size_t)u * FN(VEC), sizeof y);
            sum[u] += x * y;
        }
        for (; k + FN(VEC) <= g->k; k += FN(VEC)) {
            memcpy(&x, a + k, sizeof x);
            memcpy(&y, b + k, sizeof y);
            sum[0] += x * y;
        }
        s[q] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}

/* Sums in lanes over whole vectors of k; vector r * cols + c is of row r of A
 * and row c of B. */
TB_INLINE void FN(dot_lanes)(const tb_gemm_args *g, const REAL *a,
                             const REAL *b, int rows, int cols,
                             FN(vec) s[FN(VEC)])
{
    const FN(vec) zero = {0};
    FN(vec) x, y[FN(VEC)];
    GEMM_UNROLL
    for (int i = 0; i < FN(VEC); i++)
        s[i] = zero;
    for (size_t k = 0; k + FN(VEC) <= g->k; k += FN(VEC)) {
        GEMM_UNROLL
        for (int c = 0; c < cols; c++)
            memcpy(&y[c], b + (size_t)c * g->ldb + k, sizeof x);
        GEMM_UNROLL
        for (int r = 0; r < rows; r++) {
            memcpy(&x, a + (size_t)r * g->lda + k, sizeof x);
            GEMM_UNROLL
            for (int c = 0; c < cols; c++)
                s[r * cols + c] += x * y[c];
        }
    }
}

/* Vectors to one: element q is the sum of vector q's lanes. */
TB_INLINE FN(vec) FN(fold)(FN(vec) s[FN(VEC)])
{
    GEMM_UNROLL
    for (int part = 2; part <= FN(VEC); part *= 2) {
        const int n = FN(VEC) / part; /* are left after this round */
        GEMM_UNROLL
        for (int q = 0; q < FN(VEC) / 2; q++)
            if (q < n)
                s[q] = __builtin_shufflevector(s[q], s[q + n], GEMM_LOW) +
                       __builtin_shufflevector(s[q], s[q + n], GEMM_HIGH);
    }
    return s[0];
}

/* Elements (i, j) to (i + rows, j + cols) of C, as many as a vector has. */
TB_INLINE void FN(dots)(const tb_gemm_args *g, size_t i, size_t j, int rows,
                        int cols)
{
    const size_t whole = g->k / FN(VEC) * FN(VEC);
    const REAL *a = (const REAL *)g->a + i * g->lda;
    const REAL *b = (const REAL *)g->b + j * g->ldb;
    REAL *out = (REAL *)g->c + i * g->ldc + j, beta = (REAL)g->beta;
    FN(vec) s[FN(VEC)], rest = {0}, old = {0};
    if (rows == 1 && g->m == 1)
        FN(dot_lanes_one)(g, a, b, s);
    else
        FN(dot_lanes)(g, a, b, rows, cols, s);
    for (int q = 0; whole < g->k && q < FN(VEC); q++)
        for (size_t k = whole; k < g->k; k++)
            rest[q] += a[(size_t)(q / cols) * g->lda + k] *
                       b[(size_t)(q % cols) * g->ldb + k];
    s[0] = (REAL)g->alpha * (FN(fold)(s) + rest);
    GEMM_UNROLL
    for (int r = 0; r < rows; r++)
        if (beta != 0)
            memcpy((REAL *)&old + r * cols, out + (size_t)r * g->ldc,
                   (size_t)cols * sizeof *out);
    if (beta != 0)
        s[0] += beta * old;
    GEMM_UNROLL
    for (int r = 0; r < rows; r++)
        memcpy(out + (size_t)r * g->ldc, (REAL *)&s[0] + r * cols,
               (size_t)cols * sizeof *out);
}

/* One element, in the same order of lanes and halves. */
static void FN(dot)(const tb_gemm_args *g, size_t i, size_t j)
{
    const REAL *a = (const REAL *)g->a + i * g->lda;
    const REAL *b = (const REAL *)g->b + j * g->ldb;
    REAL *to = (REAL *)g->c + i * g->ldc + j, s[FN(VEC)] = {0};
    size_t k = 0;
    for (; k + FN(VEC) <= g->k; k += FN(VEC))
        for (size_t q = 0; q < (size_t)FN(VEC); q++)
            s[q] += a[k + q] * b[k + q];
    for (size_t n = FN(VEC) / 2; n >= 1; n /= 2)
        for (size_t q = 0; q < n; q++)
            s[q] += s[q + n];
    for (; k < g->k; k++)
        s[0] += a[k] * b[k];
    s[0] *= (REAL)g->alpha;
    *to = g->beta == 0 ? s[0] : (REAL)g->beta * *to + s[0];
}

/* A group of rows of B stays in the first cache while rows of A pass by. */
static void FN(thin_part)(const tb_gemm_args *g, tb_gemm_part p)
{
    size_t j = p.j0;
    for (; j + FN(VEC) <= p.j1; j += FN(VEC)) {
        size_t i = p.i0;
        for (; i + FN(DOT_ROWS) <= p.i1; i += FN(DOT_ROWS))
            for (size_t c = j; c < j + FN(VEC); c += FN(DOT_COLS))
                FN(dots)(g, i, c, FN(DOT_ROWS), FN(DOT_COLS));
        for (; i < p.i1; i++)
            FN(dots)(g, i, j, 1, FN(VEC));
    }
    for (; j < p.j1; j++)
        for (size_t i = p.i0; i < p.i1; i++)
            FN(dot)(g, i, j);
}

/* Folding takes as long as some 8 values of k for each row. */
static bool FN(is_thin)(const tb_gemm_args *g)
{
    return !g->ta && g->tb && g->m <= GEMM_THIN && g->k >= FN(VEC) &&
           g->k >= 8 * g->m;
}

static void FN(gemm_any_part)(const tb_gemm_args *g, tb_gemm_part p)
{
    if (FN(is_thin)(g))
        FN(thin_part)(g, p);
    else
        FN(gemm_part)(g, p);
}
