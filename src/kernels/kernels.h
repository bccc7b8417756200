/* SPDX-License-Identifier: MIT */
/* Serial inner loops behind one table per (dtype, instruction set). Every row
 * is written once as scalar C in kern_template.h and compiled per instruction
 * set; all of them give the reference's bits: 16 lanes, a fixed folding tree,
 * no FMA, our own exp / tanh / erf. Kernels cannot fail. */
#ifndef TB_KERNELS_KERNELS_H
#define TB_KERNELS_KERNELS_H

#include "base/base.h"
#include "base/number.h"

/** Element-wise functions with one input (ops name them). */
#define TB_UNARY_LIST(X)                                                       \
    X(RELU, relu)                                                              \
    X(GELU, gelu)           /* x Phi(x), by erf */                             \
    X(GELU_TANH, gelu_tanh) /* Hendrycks and Gimpel 2016, the tanh form */     \
    X(SILU, silu)                                                              \
    X(SIGMOID, sigmoid)                                                        \
    X(TANH, tanh)

typedef enum tb_unary {
#define TB_UNARY_ENUM(id, name) TB_UNARY_##id,
    TB_UNARY_LIST(TB_UNARY_ENUM)
#undef TB_UNARY_ENUM
        TB_UNARY_COUNT
} tb_unary;

typedef enum tb_norm_kind { TB_NORM_LAYER, TB_NORM_RMS } tb_norm_kind;

/** Primal inputs of a norm over rows of width d. gain and bias may be NULL.
 * y = (x - mean) * rstd * gain + bias, rstd = 1/sqrt(var + eps), var divides
 * by d; RMS: mean is 0 and var is the mean square. */
typedef struct tb_k_norm {
    tb_norm_kind kind;
    const void *x;           /* [rows, d] */
    const void *gain, *bias; /* [d] or NULL */
    size_t rows, d;
    double eps;
    bool stream; /* y (bwd: gx) leaves the caches before it is read */
    bool far;    /* x comes from beyond a core's own caches */
} tb_k_norm;

/** A sum that is normed as it is made: sum = cx x + cr r, x being the norm's;
 * a factor of 1 is no product. */
typedef struct tb_k_sum {
    const void *r;
    double cx, cr;
    void *sum; /* [rows, d]; may be x or r */
} tb_k_sum;

/** A sum over rows of each of d columns: TB_NORM_SPAN rows at a time in the
 * table's type, one after the other, and these spans in double; where parts are
 * joined, four last spans by a tree, then in double. A sum of terms is thus
 * right to 17 * 2^-24 of the sum of their sizes (for floats). */
enum { TB_NORM_SPAN = 16 };
typedef struct tb_k_span {
    void *part;   /* [d]: the last span, full or not; NULL: sum unwanted */
    double *full; /* [d]: those before it. Nothing up to row TB_NORM_SPAN */
} tb_k_span;

/** The gradients of gain and bias. Where a call ends does not show. */
typedef struct tb_k_spans {
    size_t row; /* rows they have already; at 0 nothing in them is read */
    tb_k_span gain, bias;
} tb_k_spans;

/** One AdamW update over n elements (Loshchilov and Hutter 2019). */
typedef struct tb_k_adamw {
    size_t n;
    double lr, beta1, beta2, eps, decay;
    double bias1, bias2; /* 1 - beta^t */
    double grad_scale;   /* clipping factor, 1 if none */
} tb_k_adamw;

/** Attention of one head: queries q [rows, hd], keys k [keys, hd], values v
 * [keys, vd]; a row of x is ld<x> elements after the one before. */
typedef struct tb_k_attn {
    size_t rows, keys, hd, vd, ldq, ldk, ldv, ldo; /* ldo: of the output */
    const void *q, *k, *v;
    ptrdiff_t first;  /* query r sees the first `first + r` keys */
    const void *keep; /* of those, where this is above 0; NULL: all */
    size_t keep_ld;   /* 0: one row for all queries */
    double scale;     /* of q k^T */
    double drop;      /* rate on the probabilities [rows, keys], of which the
                         first is element `number` of the random stream */
    tb_rng rng;
    uint64_t number;
    const struct tb_kern *kern; /* whose `drop` runs */
    double *stat; /* [rows,2]: largest score, 1 / sum of exp(score - it), 0 for
                     a query that sees nothing; written by forward */
    void *work;   /* tb_attn_work elements */
} tb_k_attn;

/** Backward, all with the strides of what they belong to; gq, gk, gv are added
 * to, or written where they are new; NULL: unwanted. */
typedef struct tb_k_attn_grad {
    const void *out, *gout;
    void *gq, *gk, *gv;
    bool new_q, new_k, new_v;
} tb_k_attn_grad;

/** Backward of many gradients of one forward pass: of all but `out` there are
 * `copies`, each next<x> elements after the one before. gk and gv are new for
 * one query only. */
typedef struct tb_k_attn_copies {
    const void *out, *gout;
    void *gq, *gk, *gv;
    bool new_q, new_k, new_v;
    size_t copies, nexto, nextq, nextk, nextv;
} tb_k_attn_copies;

/** Tangent: tq, tk, tv may be NULL (zero). */
typedef struct tb_k_attn_tangent {
    const void *out, *tq, *tk, *tv;
    void *tout;
} tb_k_attn_tangent;

typedef struct tb_k_attn_passes {
    void (*fwd)(const tb_k_attn *p, void *out);
    void (*bwd)(const tb_k_attn *p, const tb_k_attn_grad *g);
    void (*tan)(const tb_k_attn *p, const tb_k_attn_tangent *t);
    void (*bwd_copies)(const tb_k_attn *p, const tb_k_attn_copies *g);
} tb_k_attn_passes;

/** Attention goes by blocks of so many keys and tiles of so many queries, a
 * multiple of every register tile's; SPARE: rows by which one may reach out. */
enum { TB_ATTN_KEYS = 64, TB_ATTN_ROWS = 48, TB_ATTN_SPARE = 8 };

/** `void *` operands hold the table's dtype. t* outputs are overwritten, g*
 * outputs are added to; y may be an input unless said otherwise. */
typedef struct tb_kern {
    tb_dtype dtype;
    const char *isa; /* "ref", "avx2", "avx512", "neon", "wasm" */

    /* n elements */
    void (*add)(size_t n, const void *a, const void *b, void *y);
    void (*sub)(size_t n, const void *a, const void *b, void *y);
    void (*mul)(size_t n, const void *a, const void *b, void *y);
    /* y = base + a b; NULL is zero */
    void (*mul_acc)(size_t n, const void *a, const void *b, const void *base,
                    void *y);
    void (*scale)(size_t n, double c, const void *x, void *y);
    void (*axpy)(size_t n, double c, const void *x, void *y); /* y += c x */
    double (*dot)(size_t n, const void *a, const void *b);
    double (*sum)(size_t n, const void *a);
    void (*unary_fwd)(tb_unary f, size_t n, const void *x, void *y);
    /* d = f'(x), and y = f(x) unless it is NULL; y must not be d */
    void (*unary_slope)(tb_unary f, size_t n, const void *x, void *y, void *d);

    /* rows of width d */
    void (*row_add)(size_t rows, size_t d, const void *v, void *y); /* y+=v */
    void (*row_mul)(size_t rows, size_t d, const void *x, const void *v,
                    void *y); /* y = x (.) v */
    /* acc[c] += sum over rows of x[r,c]; and of x[r,c] z[r,c] */
    void (*col_sum)(size_t rows, size_t d, const void *x, double *acc);
    void (*col_dot)(size_t rows, size_t d, const void *x, const void *z,
                    double *acc);

    /* stat: f64 [rows,2] = mean, rstd; needed by bwd and tan */
    void (*norm_fwd)(const tb_k_norm *p, void *y, double *stat);
    /* the bits of the sum's own kernels and norm_fwd, in one pass */
    void (*addnorm_fwd)(const tb_k_norm *p, const tb_k_sum *a, void *y,
                        double *stat);
    /* gx = gbase + term, not added to: gbase may be gx, NULL is zero and is not
     * read. gx and sums may be NULL */
    void (*norm_bwd)(const tb_k_norm *p, const double *stat, const void *gy,
                     const void *gbase, void *gx, const tb_k_spans *sums);
    /* g[c] += what `parts` such sums come to, four by four; full NULL:
     * it has nothing */
    void (*span_join)(size_t d, size_t parts, const tb_k_span *s, void *g);
    /* tx, tgain, tbias may be NULL (zero) */
    void (*norm_tan)(const tb_k_norm *p, const double *stat, const void *tx,
                     const void *tgain, const void *tbias, void *ty);

    /* softmax of row r over its first min(n, first + r) columns (causal) or
     * all n (first >= n); hidden columns become 0; s is [rows, ld], in place;
     * a row with no visible column is all 0 */
    void (*softmax_fwd)(size_t rows, size_t n, size_t ld, size_t first,
                        double scale, void *s);
    /* gs = scale * p (.) (gp - <gp, p>) over visible columns, 0 elsewhere; in
     * place on gp; the tangent is the same map */
    void (*softmax_bwd)(size_t rows, size_t n, size_t ld, size_t first,
                        double scale, const void *p, void *gp);

    /* attention with the same bits everywhere; see tb_attn_passes */
    const tb_k_attn_passes *attn;

    /* n pairs (x[i], x[i + n]), or (x[2i], x[2i + 1]) if neighbours, turned by
     * angles whose cos and sin these are, back if way is -1; y (+)= that */
    void (*turn)(size_t n, bool neighbours, double way, const double *cos,
                 const double *sin, const void *x, bool add, void *y);

    /* cross-entropy of logits [rows, v] against target[rows] (int32; < 0:
     * ignored, its lse is 0). Adds each row's loss to *loss in row order, lse:
     * f64 [rows] */
    void (*xent_fwd)(size_t rows, size_t v, const void *logits,
                     const int32_t *target, double *lse, double *loss);
    /* glogits = gbase + scale * (softmax - onehot); gbase may be glogits, NULL
     * is zero, and then glogits may be logits */
    void (*xent_bwd)(size_t rows, size_t v, const void *logits,
                     const int32_t *target, const double *lse, double scale,
                     const void *gbase, void *glogits);
    /* d loss along tlogits, added to *tloss */
    void (*xent_tan)(size_t rows, size_t v, const void *logits,
                     const int32_t *target, const double *lse,
                     const void *tlogits, double *tloss);

    /* y (+)= m (.) x, element i of m being 0 where tb_rng_drops(r, first + i,
     * p), else 1/(1-p); y may be x */
    void (*drop)(tb_rng r, double p, uint64_t first, size_t n, const void *x,
                 bool add, void *y);
    /* y[i] = c tb_rng_normal(r, first + i); c (2 tb_rng_uniform(...) - 1) */
    void (*normal)(tb_rng r, uint64_t first, size_t n, double c, void *y);
    void (*uniform)(tb_rng r, uint64_t first, size_t n, double c, void *y);
    void (*adamw)(const tb_k_adamw *p, void *w, const void *g, void *m,
                  void *v);
    /* number of elements that are nan or infinite */
    size_t (*nonfinite)(size_t n, const void *x);
    /* Euclidean length; f64 scales first so that it cannot overflow */
    double (*norm2)(size_t n, const void *x);

    /* f32 tables only, NULL in the others: rounded to bf16, the upper half of
     * a float (nearest even; nan stays nan, subnormals are rounded like all
     * others), as its 16 bits and as a float */
    void (*to_bf16)(size_t n, const void *x, uint16_t *y);
    void (*round_bf16)(size_t n, const void *x, void *y);
} tb_kern;

/** tb_kern_get - the fastest table this CPU, OS and TB_ISA allow. */
const tb_kern *tb_kern_get(const tb_ctx *ctx, tb_dtype dtype);

/** tb_kern_isa - the table of one instruction set, or NULL if this machine
 * or build lacks it; for tests and bench. */
const tb_kern *tb_kern_isa(const char *isa, tb_dtype dtype);

/** tb_kern_peak - multiply and add floats in the registers of an instruction
 * set that runs here, one of tb_isas: nothing else, many `rounds`. Returns
 * how many operations that was; *out is a number that depends on all of them.
 */
double tb_kern_peak(const char *isa, size_t rounds, float *out);

/** tb_attn_passes - attention, fastest: with FMA unless the context is exact.
 */
const tb_k_attn_passes *tb_attn_passes(const tb_ctx *ctx, tb_dtype dtype);

/** tb_attn_work - elements of work for a head, SIZE_MAX on overflow. */
size_t tb_attn_work(size_t rows, size_t hd, size_t vd);

/* --- matrix products ---------------------------------------------------- */

/** C = alpha op(A) op(B) + beta C, row-major, op by ta / tb ('T' if true):
 * op(A) is [m,k], op(B) is [k,n], C is [m,n]; ld* count elements. beta = 0
 * never reads C. */
typedef struct tb_gemm_args {
    tb_dtype dtype;
    bool bf16; /* f32 only: A and B are rounded to bf16 first, sums are f32 */
    bool ta, tb;
    size_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    size_t lda, ldb, ldc;
    const void *bias; /* [n], added to every row at last: only where
                         tb_gemm_adds_bias; NULL: none */
} tb_gemm_args;

/** tb_gemm - the back end that is fastest for this form and size: oneDNN's
 * matmul or dnnl_sgemm, CBLAS or our own (f32; the table is in gemm.c), CBLAS
 * or our own (f64); always our own when the context is exact. Inside
 * tb_parallel it runs on the calling thread, and there it never opens a
 * library: call tb_gemm_load before. */
void tb_gemm(tb_ctx *ctx, const tb_gemm_args *g);

/** tb_gemm_adds_bias - does tb_gemm run this product by code that adds a bias
 * as it writes, whatever libraries there are? */
bool tb_gemm_adds_bias(const tb_ctx *ctx, const tb_gemm_args *g);

/** With bf16, tb_gemm rounds as tb_kern.to_bf16 does. Where the processor has
 * AVX512_BF16: oneDNN's matmul primitive or our own kernel; both take subnormal
 * numbers for zero. Elsewhere, and in an exact context, it is emulated:
 * our own product of floats that were rounded, in blocks of k of 256. */

/** tb_gemm_ref - our own product, serial, no FMA: beta c, then for each 256
 * values of k alpha times their sum in increasing order, all in the operands'
 * type. The same bits everywhere; an exact context runs it in parallel. */
void tb_gemm_ref(const tb_gemm_args *g);

/** tb_gemm_load - find and open the libraries now (else the first product
 * does). Never fails: without a library our own code runs. */
void tb_gemm_load(tb_ctx *ctx);

/** tb_gemm_name - "oneDNN 2.6.3 (dnnl_sgemm)", ... for this dtype; TB_BF16:
 * what a product with bf16 runs on. */
const char *tb_gemm_name(tb_ctx *ctx, tb_dtype dtype);

#endif
