/* SPDX-License-Identifier: MIT */
/* One row per op. Adding an op is one file op_<name>.c and one row here; no
 * switch on op kinds stands anywhere else. Parameters are inputs like any
 * other (a `param` leaf owns them), so an op sees only inputs. */
#ifndef TB_OPS_OP_H
#define TB_OPS_OP_H

#include "base/base.h"
#include "base/number.h"
#include "kernels/kernels.h"
#include "threads/threads.h"

enum { TB_OP_INPUTS = 8, TB_OP_ATTRS = 6 };

/** What a value is. Rows are batch * time, b-major. Streams of one call may
 * differ in time (attention to a memory); see tb_opcall.in_time. */
typedef enum tb_shape_kind {
    TB_SHAPE_STREAM, /* [B, T, width] */
    TB_SHAPE_VECTOR, /* [width], broadcast over tokens */
    TB_SHAPE_SCALAR, /* [1] */
    TB_SHAPE_MATRIX, /* [height, width]: a weight, rows are outputs */
    TB_SHAPE_TOKENS  /* int32 [B, T] */
} tb_shape_kind;

typedef struct tb_shape {
    tb_shape_kind kind;
    size_t width, height; /* height of a MATRIX, else 1 */
} tb_shape;

/** tb_shape_count - elements of a value of this shape. */
size_t tb_shape_count(tb_shape s, size_t batch, size_t time);

/** Everything one node needs to run once. Pointers that a pass does not use
 * are NULL. Values have the kernel table's dtype (tokens: int32). */
typedef struct tb_opcall {
    tb_ctx *ctx;
    const tb_kern *k;
    bool bf16;                    /* products round their operands */
    size_t batch, time;           /* of the output */
    size_t in_time[TB_OP_INPUTS]; /* of each input; 0: `time` */
    int nin;
    tb_shape in_shape[TB_OP_INPUTS], out_shape;
    double attr[TB_OP_ATTRS];
    const void *in[TB_OP_INPUTS];
    void *out;                       /* fwd writes; bwd, tan may read */
    const void *tin[TB_OP_INPUTS];   /* tan: NULL means zero */
    void *tout;                      /* tan: overwritten */
    const void *gout;                /* bwd */
    void *gin[TB_OP_INPUTS];         /* bwd: added to; NULL means unwanted */
    const void *gbase[TB_OP_INPUTS]; /* bwd, see tb_op.bases: gin = gbase + the
                                        gradient; NULL means zero */
    size_t copies;  /* bwd, of an op that says so: gout and gin hold so many
                       batches, one after another; 0: one */
    bool own_token; /* of those, copy i has a gradient at token i % time alone;
                       else only gin that are the op's `own` are wanted */
    void *saved;    /* written by fwd, read by bwd and tan; bwd
                       may leave there what update reads */
    void *state[TB_OP_INPUTS]; /* update: the inputs it may rewrite */
    void *scratch;             /* free use within one call */
    bool stream;               /* row parts: what they write (out, gin[0])
                                  leaves the caches before it is read */
    tb_rng rng;                /* this node's random stream, this step */
    double *angles; /* rope: what tb_turn_fill makes; NULL: in scratch */
} tb_opcall;

/** What stands on the lane when every branch is removed. */
typedef enum tb_lane {
    TB_LANE_LEAF, /* input, param, tokens */
    TB_LANE_PASS, /* add, scale, ...: linear in the stream */
    TB_LANE_TOLL, /* a norm */
    TB_LANE_CUT   /* learned or non-linear: a branch, cut */
} tb_lane;

/** How the Jacobian with respect to stream inputs is written. */
typedef enum tb_jac {
    TB_JAC_LEAF,
    TB_JAC_SUM,    /* +J(a) + J(b); attr-free */
    TB_JAC_DIFF,   /* J(a) - J(b) */
    TB_JAC_AFFINE, /* c J(a) */
    TB_JAC_PROD,   /* diag(b) J(a) + diag(a) J(b), or a scalar or vector */
    TB_JAC_QUOT,   /* diag(1/b) (J(a) - diag(y) J(b)), or b a scalar */
    TB_JAC_SYMBOL, /* J_<symbol>(a) J(a) */
    TB_JAC_DIAG,   /* diag(<symbol>'(a)) J(a) */
    TB_JAC_WEIGHT, /* W J(a), W the weight's name */
    TB_JAC_MULTI,  /* J_<symbol>,1 J(a) + J_<symbol>,2 J(b) + ... */
    TB_JAC_MIX,    /* w_1 J(a) + w_2 J(b) + J_<symbol> J(w), w the last input */
    TB_JAC_ZERO    /* stop: constant to tangent and symbolic Jacobian */
} tb_jac;

/** What an op's time is spent on, for profiles; a norm is known by its lane. */
typedef enum tb_work {
    TB_WORK_ELEMENT, /* goes through memory, little to compute */
    TB_WORK_PRODUCT,
    TB_WORK_ATTENTION,
    TB_WORK_NORM,
    TB_WORK_LOSS,
    TB_WORKS
} tb_work;

/** Which rows of its streams a row of an op's value may depend on. */
typedef enum tb_reach {
    TB_REACH_TOKEN,    /* its own */
    TB_REACH_SEQUENCE, /* all of its sequence */
    TB_REACH_BATCH     /* all; or it depends on its number in the batch, as a
                          random mask does */
} tb_reach;

/** Bits of `needs`, `data` and `state`: inputs; of `needs` alone: the output.
 */
#define TB_NEED_IN(i) (1u << (i))
#define TB_NEED_OUT   (1u << 8)

/** Rows [from, to) of a pass, `chunk` being the piece they belong to: tokens
 * of a stream, rows of a matrix, else one row that is all. */
typedef void (*tb_rows_fn)(const tb_opcall *c, size_t from, size_t to,
                           size_t chunk);

/* A pass has a whole part, a row part, or both. Forward and tangent run the
 * whole part first, backward the row part. */
typedef struct tb_op {
    const char *name;   /* as in the language where it can be written */
    const char *symbol; /* in formulas: LN, RMS, gelu */
    int min_in, max_in;
    int nattr, noption; /* attributes every caller sets; then those whose 0 is
                           the default */
    const char *attr_name[TB_OP_ATTRS];
    tb_lane lane;
    tb_jac jac;
    unsigned needs;   /* values that bwd and tan read */
    unsigned data;    /* inputs that are given, not differentiated: masks and
                         running statistics. No gradient, no tangent */
    unsigned state;   /* of those: running statistics, see `update` */
    bool saves_ahead; /* what fwd saves is for later passes alone: where there
                         are none, `saved` is NULL */
    bool rounds;      /* its products may round their operands to bf16 */
    bool alias; /* fwd is the identity on in[0]: out may share its storage */
    bool approximate; /* in some mode bwd is not the derivative of fwd: the
                         paper's rule, stated in the op's file */
    /* shape rule: false with *why set where the shapes cannot be meant; the
     * caller has checked min_in and max_in. Leaves: NULL, and no passes */
    bool (*shape)(const tb_shape *in, int nin, const double *attr,
                  tb_shape *out, const char **why);
    /* times and widths of one call that its shapes alone do not tell: NULL or
     * what is wrong. No hook: every stream has the call's `time` */
    const char *(*fit)(const tb_opcall *c);
    size_t (*saved)(const tb_opcall *c);   /* bytes; NULL: none */
    size_t (*scratch)(const tb_opcall *c); /* bytes, any pass; NULL: none */
    void (*fwd)(const tb_opcall *c);       /* whole parts */
    void (*bwd)(const tb_opcall *c);
    void (*tan)(const tb_opcall *c);
    bool copies; /* bwd takes many gradients of one batch at once */
    /* row parts: a row of streams in gives that row of streams out, so several
     * ops can go through memory together */
    tb_rows_fn fwd_rows, bwd_rows, tan_rows;
    /* does fwd do all of this call, row part and all? NULL: never */
    bool (*fwd_whole)(const tb_opcall *c);
    bool elements; /* they want elements [from, to) instead */
    bool sums;     /* out = in[0] + in[1] */
    /* rows [from, to) of `sum`, an op that sums into this one's in[0], and of
     * this one in a single pass, with the bits of both row parts; false: it was
     * not done. NULL: never */
    bool (*fwd_sum_rows)(const tb_opcall *c, const tb_opcall *sum, size_t from,
                         size_t to);
    unsigned rows_in; /* of an op with both parts: the inputs that the row part
                         reads in fwd and has gradients for in bwd; 0: all */
    /* what a piece of rows sums: doubles of scratch, see tb_op_part, 0 before
     * bwd_rows unless part_open: it then makes them ready itself. Sums go row
     * by row, or by spans from the piece's first row on (a norm's, see
     * tb_k_span): where a call ends must not show */
    size_t (*part)(const tb_opcall *c);
    bool part_open;
    void (*join)(const tb_opcall *c, size_t pieces); /* adds them to gin */
    /* inputs for which bwd heeds gbase: a whole part gin itself or NULL, a row
     * part any. For the others gin is made ready before (a stream's in a row
     * part row by row, while it is in the cache) */
    unsigned bases;
    /* of those: inputs whose gradient bwd may write over their value; where
     * gbase is NULL it reads an element there before it writes it */
    unsigned over;
    /* state[i] = running statistic i after this step: once per training step,
     * after fwd and, where there was one, bwd, with their `saved` and without
     * inputs; buffers start as in the list below, have no gradient, no decay
     * and no place in the optimizer */
    void (*update)(const tb_opcall *c);
    /* what this call used for state input i, element j, after fwd: the batch's
     * own or the running one. False: it uses none of input i. NULL: no state */
    bool (*statistic)(const tb_opcall *c, int i, size_t j, double *out);
    /* norms: RMS gain |J|_F/sqrt(rows*d) over all tokens (those a mask keeps)
     * and the largest singular value, at this input, after fwd; NULL elsewhere
     */
    void (*gain)(const tb_opcall *c, double *rms, double *max);
    /* norms of single rows, after fwd: what row `row` was divided by, and how
     * much of its square eps is; false beyond the last row. NULL elsewhere */
    bool (*scale)(const tb_opcall *c, size_t row, double *s, double *eps_share);
    /* attention, after fwd: what the queries of each head give the first key,
     * the mean over those that see any, without dropout. NULL elsewhere */
    void (*first)(const tb_opcall *c, double *share);
    /* after fwd: a row the op has no value for (zero variance with eps = 0, a
     * token outside the vocabulary), with the reason; NULL: every row is fine.
     * A NULL check: the op has a value for everything */
    const char *(*check)(const tb_opcall *c, size_t *row);
    int place; /* the attribute, from 1, that says where its first token stands;
                  0: it is the same wherever */
    double (*flops)(const tb_opcall *c);   /* forward; NULL: element-wise */
    tb_reach (*reach)(const double *attr); /* NULL: TB_REACH_TOKEN */
    unsigned own; /* of an op that reaches further: inputs of which a row of its
                     value reads its own only (queries) */
    tb_work work;
} tb_op;

/** tb_op_reach - of an op with these attributes. */
tb_reach tb_op_reach(const tb_op *op, const double *attr);

/** Attributes, by op. Layer constants (N l k d) are already folded. */
enum {
    TB_ATTR_NORM_EPS,
    TB_ATTR_NORM_EPS_MODE, /* tb_eps_mode */
    TB_ATTR_NORM_VARIANCE, /* tb_variance */
    TB_ATTR_NORM_UNBIASED, /* 1: divide the variance by n-1 */
    TB_ATTR_NORM_GROUPS    /* norm each of so many equal parts of the width by
                              itself (a head); gain and bias have the width of
                              one part. 0: 1 */
};
enum { TB_ATTR_AFFINE_SCALE, TB_ATTR_AFFINE_OFFSET };
enum {
    TB_ATTR_ATTN_HEADS,
    TB_ATTR_ATTN_KV_HEADS,
    TB_ATTR_ATTN_CAUSAL,
    TB_ATTR_ATTN_DROP, /* rate on the probabilities */
    TB_ATTR_ATTN_SCALE /* of q k^T; 0: 1/sqrt(head width) */
};
enum { TB_ATTR_DROP_P }; /* skipdrop, too */
enum {
    TB_ATTR_ROPE_HEADS,
    TB_ATTR_ROPE_BASE,        /* 0: 10000 */
    TB_ATTR_ROPE_INTERLEAVED, /* 1: pairs (2i, 2i+1) */
    TB_ATTR_ROPE_ROTARY,      /* elements of a head that turn; 0: all */
    TB_ATTR_ROPE_START        /* position of the first token */
};
enum { TB_ATTR_POSITION_START }; /* place of the first token; sinusoid, too */
enum { TB_ATTR_XENT_SMOOTH };    /* in [0, 1) */
enum { TB_ATTR_CONCAT_GROUPS }; /* join each of so many parts by itself; 0: 1 */
enum {
    TB_ATTR_MIX_ROW,   /* from 0 */
    TB_ATTR_MIX_FIRST, /* column of the first stream's weight */
    TB_ATTR_MIX_OF     /* columns of a row; 0: as many as streams */
};
enum { TB_ATTR_SINKHORN_ROUNDS, TB_ATTR_SINKHORN_COLUMNS /* 1: first */ };
enum { TB_ATTR_UNIT_EPS, TB_ATTR_UNIT_COLUMNS /* 1: columns, not rows */ };
enum { TB_ATTR_MAXDIV_TO, TB_ATTR_MAXDIV_WHOLE /* 1: over all tokens */ };
enum { /* batchnorm, powernorm; the first two are those of every norm */
       TB_ATTR_BATCH_STATISTICS = 2, /* tb_statistics */
       TB_ATTR_BATCH_MOMENTUM,       /* of running statistics; 0: 0.1 */
       TB_ATTR_BATCH_BACK_MOMENTUM,  /* powernorm's nu; 0: 0.1 */
       TB_ATTR_BATCH_WARMUP /* powernorm's training steps by BATCH; read
                               by whoever knows the step */
};

/** Which statistics normalise. An evaluation sets FROZEN, as it sets drop to 0;
 * powernorm goes from BATCH to RUNNING after its warm-up. */
typedef enum tb_statistics {
    TB_STATISTICS_BATCH,
    TB_STATISTICS_RUNNING, /* powernorm only: approximate backward */
    TB_STATISTICS_FROZEN
} tb_statistics;

/** Where eps stands. c = x - mean, L = |c| (Euclidean), n the divisor of the
 * variance v = L^2/n: d, d-1, or 1 for scalenorm and l2norm. */
typedef enum tb_eps_mode {
    TB_EPS_DEFAULT,      /* clamp for scalenorm and l2norm, else inside */
    TB_EPS_INSIDE,       /* c / sqrt(v + eps) */
    TB_EPS_OUTSIDE,      /* c / (sqrt(v) + eps) */
    TB_EPS_CLAMP,        /* sqrt(n) c / max(L, eps) */
    TB_EPS_CLAMP_SQUARE, /* sqrt(n) c / sqrt(max(L^2, eps)) */
    TB_EPS_DTYPE,        /* inside; eps = 2^-23 in float, 2^-52 in double */
    TB_EPS_NONE          /* inside; eps = 0 */
} tb_eps_mode;

/** How the variance is computed. One pass: E[x^2] - E[x]^2 by plain sums in
 * the storage type, cancellation and all. */
typedef enum tb_variance {
    TB_VARIANCE_TWOPASS,
    TB_VARIANCE_ONEPASS,        /* may come out below 0: NaN */
    TB_VARIANCE_ONEPASS_CLIPPED /* at 0 */
} tb_variance;

/* name        inputs                                 attributes | options
 * input       -                                      -
 * param       -                                      -
 * tokens      -                                      -
 * identity    x                                      -        (alias)
 * branch      x: where a sublayer joins; nothing passes when branches are
 *             cut                                    -        (alias)
 * add, sub    a b, equal shapes (stream or scalar)   -
 * mul         stream*stream, vector*stream, scalar*stream (either order),
 *             scalar*scalar                          -
 * div         stream/scalar, scalar/scalar, stream/stream  -
 * shift       x b: b a vector or a scalar            -
 * affine      x                                      scale offset
 * layernorm   x gain? bias?                          eps | eps_mode variance
 *                                                    unbiased groups
 * rmsnorm     x gain? bias?                          as layernorm
 * scalenorm   x length (starts at sqrt(d))           as layernorm
 * l2norm      x                                      as layernorm
 * batchnorm   x gain? bias? (mean var mask?)?        eps | eps_mode statistics
 *             start 0, 1; mask [B,T,1]               momentum
 * powernorm   x gain? bias? (square nu mask?)?       eps | eps_mode statistics
 *             start 1, 0; mask [B,T,1]               momentum back_momentum
 *                                                    warmup
 * dyt         x alpha gain? bias?: alpha a scalar    -
 * derf        x alpha shift gain? bias?: scalars     -
 * linear      x weight[out,in] bias?                 -
 * mha         q k v mask?                            heads kv_heads causal drop
 *                                                    | scale
 * relu gelu gelu_tanh silu sigmoid tanh   x          -
 * exp abs     x                                      -
 * softmax     x (over the width)                     -
 * rope        x                                      heads | base interleaved
 *                                                    rotary start
 * concat      x1 ... x8 (joined in the width)        | groups
 * mix         x1 ... x7 A: sum_t A[row,t] x_t; A a matrix [m,n], a vector
 *             [n] or a stream [m n]                  row | first of
 * dot         a b: over the width; a stream of width 1 -
 * headscale   x w: part h of n of the width times w[h], w a vector of n  -
 * sinkhorn    A: matrix [n,n] or stream [n n]        rounds | columns_first
 * unit        W: matrix or vector                    eps | columns
 * maxdiv      x max?: max|x| of that instead, data   to | whole
 * sum, mean   x: over the width; a stream of width 1; of a vector, a scalar
 *                                                    -
 * embed       tokens table[V,w]                      -
 * position    x table[T_max,w]: x[b,t,:] + table[t]  | start
 * sinusoid    x                                      | start
 * drop        x                                      p (0: not in the graph)
 * skipdrop    x: whole sequences                     p
 * stop        x                                      -        (alias)
 * xent        logits targets: mean over targets >= 0; scalar
 *                                                    | smooth  */
#define TB_OP_LIST(X)                                                          \
    X(input)                                                                   \
    X(param)                                                                   \
    X(tokens)                                                                  \
    X(identity)                                                                \
    X(branch)                                                                  \
    X(add)                                                                     \
    X(sub)                                                                     \
    X(mul)                                                                     \
    X(div)                                                                     \
    X(shift)                                                                   \
    X(affine)                                                                  \
    X(layernorm)                                                               \
    X(rmsnorm)                                                                 \
    X(scalenorm)                                                               \
    X(l2norm)                                                                  \
    X(batchnorm)                                                               \
    X(powernorm)                                                               \
    X(dyt)                                                                     \
    X(derf)                                                                    \
    X(linear)                                                                  \
    X(mha)                                                                     \
    X(relu)                                                                    \
    X(gelu)                                                                    \
    X(gelu_tanh)                                                               \
    X(silu)                                                                    \
    X(sigmoid)                                                                 \
    X(tanh)                                                                    \
    X(exp)                                                                     \
    X(abs)                                                                     \
    X(softmax)                                                                 \
    X(rope)                                                                    \
    X(concat)                                                                  \
    X(mix)                                                                     \
    X(dot)                                                                     \
    X(headscale)                                                               \
    X(sinkhorn)                                                                \
    X(unit)                                                                    \
    X(maxdiv)                                                                  \
    X(sum)                                                                     \
    X(mean)                                                                    \
    X(embed)                                                                   \
    X(position)                                                                \
    X(sinusoid)                                                                \
    X(drop)                                                                    \
    X(skipdrop)                                                                \
    X(stop)                                                                    \
    X(xent)

#define TB_OP_EXTERN(id) extern const tb_op tb_op_##id;
TB_OP_LIST(TB_OP_EXTERN)
#undef TB_OP_EXTERN

/** Every op, in the order of TB_OP_LIST, NULL-terminated. */
extern const tb_op *const tb_ops[];

/** tb_op_find - by name, NULL if there is none. */
const tb_op *tb_op_find(const char *name);

/** tb_op_has_groups - may it norm parts of the width, TB_ATTR_NORM_GROUPS? */
bool tb_op_has_groups(const tb_op *op);

/** tb_mix_first - of mix: which of its weights the first stream has. */
size_t tb_mix_first(const double *attr, size_t streams);

/** tb_op_norm - the ops whose lane is TB_LANE_TOLL, by name ("layernorm",
 * "rmsnorm"), NULL if `name` is not a norm kind. */
const tb_op *tb_op_norm(const char *name);

#endif
