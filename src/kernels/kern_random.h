/* SPDX-License-Identifier: MIT */
/* Random numbers over REAL, 16 blocks of Philox at a time; see kern_template.h.
 * Element i depends on (seed, stream, first + i) alone. */

/* --- dropout ------------------------------------------------------------ */

enum { FN(DRAWN) = 4 * TB_LANES };

/* y (+)= m (.) x, m by random words below `limit` */
TB_PER_CASE void FN(drop_by)(size_t n, const uint32_t *word, double limit,
                             REAL kept, const REAL *x, bool add, REAL *y)
{
    TB_IVDEP
    for (size_t i = 0; i < n; i++) {
        REAL m = (double)word[i] < limit ? 0 : kept;
        y[i] = add ? y[i] + m * x[i] : m * x[i];
    }
}

/* the words of 16 blocks in the order of their counters */
TB_INLINE void FN(words)(tb_rng r, uint64_t block, uint32_t *out)
{
    uint32_t w[4][TB_LANES];
    philox16(r, block, w);
    for (int j = 0; j < TB_LANES; j++)
        for (int i = 0; i < 4; i++)
            out[4 * j + i] = w[i][j];
}

static void FN(drop)(tb_rng r, double p, uint64_t first, size_t n,
                     const void *x_, bool add, void *y_)
{
    const REAL *x = x_, kept = (REAL)(1 / (1 - p));
    const double limit = p * 0x1p32;
    REAL *y = y_;
    uint32_t word[FN(DRAWN)];
    for (size_t i = 0; i < n;) {
        size_t skip = (size_t)((first + i) % 4), len = FN(DRAWN) - skip;
        len = n - i < len ? n - i : len;
        FN(words)(r, (first + i) / 4, word);
        if (add)
            FN(drop_by)(len, word + skip, limit, kept, x + i, true, y + i);
        else
            FN(drop_by)(len, word + skip, limit, kept, x + i, false, y + i);
        i += len;
    }
}

/* --- initial values ----------------------------------------------------- */

/* As tb_rng_normal: Box and Muller 1958. */
TB_INLINE double FN(normal_of)(uint32_t w0, uint32_t w1, uint32_t w2,
                               uint32_t w3)
{
    const double two_pi = 0x1.921fb54442d18p+2;
    double radius = __builtin_sqrt(-2 * tb_inline_log(1 - unit53(w0, w1)));
    return radius * tb_inline_cos_near(two_pi * unit53(w2, w3));
}

/* c times numbers of one kind, 16 at a time */
TB_INLINE void FN(fill)(tb_rng r, uint64_t first, size_t n, double c,
                        bool normal, REAL *y)
{
    REAL z[TB_LANES];
    uint32_t w[4][TB_LANES];
    for (size_t i = 0; i < n; i += TB_LANES) {
        philox16(r, first + i, w);
        TB_WHOLE
        for (int j = 0; j < TB_LANES; j++)
            z[j] = (REAL)(c * (normal ? FN(normal_of)(w[0][j], w[1][j], w[2][j],
                                                      w[3][j])
                                      : 2 * unit53(w[0][j], w[1][j]) - 1));
        size_t len = n - i < TB_LANES ? n - i : TB_LANES;
        memcpy(y + i, z, len * sizeof *z);
    }
}

static void FN(normal)(tb_rng r, uint64_t first, size_t n, double c, void *y)
{
    FN(fill)(r, first, n, c, true, y);
}

static void FN(uniform)(tb_rng r, uint64_t first, size_t n, double c, void *y)
{
    FN(fill)(r, first, n, c, false, y);
}
