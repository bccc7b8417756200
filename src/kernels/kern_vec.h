/* SPDX-License-Identifier: MIT */
/* 64 bytes of REAL at a time, for kernels whose order of operations a
 * vectoriser does not find by itself; see kern_template.h. On narrower
 * registers the compiler takes them apart, element for element. */

enum { FN(PACK) = 64 / sizeof(REAL) };

typedef REAL FN(pack) __attribute__((vector_size(64)));

TB_INLINE FN(pack) FN(load)(const REAL *x)
{
    FN(pack) v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Eight elements, and the same in double: halves of the 16 lanes. */
typedef REAL FN(v8) __attribute__((vector_size(8 * sizeof(REAL))));

TB_INLINE FN(v8) FN(load8)(const REAL *x)
{
    FN(v8) v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* gcc splits __builtin_convertvector in two, and this loop in 512 bits; clang
 * would keep both vectors in memory unless it unrolls. */
TB_INLINE tb_d8 FN(wide8)(FN(v8) x)
{
#if defined(__AVX512F__) && REAL_BITS == 32
    return (tb_d8)_mm512_cvtps_pd((__m256)x);
#else
    tb_d8 y;
    TB_UNROLL8
    for (int j = 0; j < 8; j++)
        y[j] = (double)x[j];
    return y;
#endif
}

#if REAL_BITS == 32
/* tree8 without a way through memory */
TB_INLINE double tree8_of(tb_d8 x)
{
    typedef double four __attribute__((vector_size(32)));
    typedef double two __attribute__((vector_size(16)));
    four a = __builtin_shufflevector(x, x, 0, 1, 2, 3) +
             __builtin_shufflevector(x, x, 4, 5, 6, 7);
    two b = __builtin_shufflevector(a, a, 0, 1) +
            __builtin_shufflevector(a, a, 2, 3);
    return b[0] + b[1];
}
#endif

/* a b + c, see REAL_MUL_ADD */
TB_INLINE tb_d8 FN(mul_add8)(tb_d8 a, tb_d8 b, tb_d8 c)
{
    TB_UNROLL8
    for (int j = 0; j < 8; j++)
        c[j] = REAL_MUL_ADD(a[j], b[j], c[j]);
    return c;
}

#if REAL_BITS == 32
/* 16 -> 8 */
TB_INLINE v8_f32 fold16(pack_f32 x)
{
    return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
           __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
#endif

/* y[0, PACK) = v. `stream`: past the caches, for an output that is larger than
 * them and not read soon; y is then 64-byte aligned, and a tb_stream_end
 * follows the last one. */
TB_INLINE void FN(put)(REAL *y, FN(pack) v, bool stream)
{
    if (stream)
        tb_stream(y, &v, sizeof v);
    else
        memcpy(y, &v, sizeof v);
}

TB_INLINE void FN(put8)(REAL *y, FN(v8) v, bool stream)
{
    if (stream)
        tb_stream(y, &v, sizeof v);
    else
        memcpy(y, &v, sizeof v);
}
