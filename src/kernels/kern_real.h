/* SPDX-License-Identifier: MIT */
/* Sets REAL and the names that depend on it from REAL_BITS. Included before
 * each use of the templates, hence no include guard. */
#undef REAL
#undef REAL_EXP
#undef REAL_TANH
#undef REAL_ERF
#undef REAL_SQRT
#undef REAL_INF
#undef FN
#undef REAL_MUL_ADD

#if REAL_BITS == 32
#    define REAL      float
#    define REAL_EXP  tb_inline_expf
#    define REAL_TANH tb_inline_tanhf
#    define REAL_ERF  tb_inline_erff
#    define REAL_SQRT __builtin_sqrtf
#    define REAL_INF  __builtin_inff()
#    define FN(name)  name##_f32
/* a b + c in double where a and b were floats: the product is exact, so one
 * rounding or two give the same bits */
#    if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#        define REAL_MUL_ADD(a, b, c) __builtin_fma((a), (b), (c))
#    else
#        define REAL_MUL_ADD(a, b, c) ((c) + (a) * (b))
#    endif
#else
#    define REAL                  double
#    define REAL_EXP              tb_inline_exp
#    define REAL_TANH             tb_inline_tanh
#    define REAL_ERF              tb_inline_erf
#    define REAL_SQRT             __builtin_sqrt
#    define REAL_INF              __builtin_inf()
#    define FN(name)              name##_f64
#    define REAL_MUL_ADD(a, b, c) ((c) + (a) * (b))
#endif
