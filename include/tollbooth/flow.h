/* SPDX-License-Identifier: MIT */
/* Gradient flow through depth: what the backward signal is at every sublayer
 * boundary, split into the lane (all branches cut) and the rest. Definitions
 * E1-E14 of docs/flow.md; one meaning in CLI, JSON, report and page. */
#ifndef TOLLBOOTH_FLOW_H
#define TOLLBOOTH_FLOW_H

#include "tollbooth/block.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** What is sent back from the top of the stack, below the final norm. */
typedef enum tb_cotangent {
    TB_COTANGENT_LOSS,    /* gradient of the mean cross-entropy per token */
    TB_COTANGENT_RANDOM,  /* independent normal numbers, per token */
    TB_COTANGENT_COHERENT /* one normal vector, the same for all tokens */
} tb_cotangent;

/** One verdict threshold given by the user: "VANISH" = 0.01. */
typedef struct tb_threshold {
    const char *code;
    double value;
} tb_threshold;

/** What takes longer: the Jacobian of every sublayer, its sums once more, its
 * attention, a check of all derivatives. It is asked for by address, so that a
 * program which never asks does not carry it. */
typedef struct tb_flow_auditor tb_flow_auditor;
extern const tb_flow_auditor tb_flow_audit;

typedef struct tb_flow_spec {
    tb_settings settings; /* context is the number of tokens T */
    size_t batch;         /* 0: 1 */
    uint64_t seed;
    tb_dtype dtype;
    tb_cotangent cotangent;
    bool weights;  /* mean and std of every weight too */
    bool spectrum; /* singular values of d x_K / d x_0 (B*T*d <= 512) */
    bool what_if;  /* the same in changed blocks */
    const tb_flow_auditor *audit; /* NULL, or &tb_flow_audit */
    bool alpha; /* with it: exponents of the weights' spectra */
    /* batch*(T+1) token ids of a real text, row by row; NULL: random ones */
    const int32_t *ids;
    const tb_threshold *thresholds;
    size_t nthresholds;
} tb_flow_spec;

typedef struct tb_spectrum {
    size_t n;
    double rms, max, median;
    double *values; /* [n], falling */
} tb_spectrum;

/** One sublayer output x_k; k = 0 is the stem's. Gains are lengths relative
 * to the gradient at the top of the row's stack, over all tokens. The sublayer
 * of a row is the one that ends in it; the stem's has none (its local numbers
 * are 1, 0, 0). What reaches the top of an encoder under a decoder is the
 * gradient of the memory, which comes through cross branches only. */
typedef struct tb_flow_row {
    size_t k, layer;  /* layer from 1; 0 for the stem */
    const char *role; /* "encoder", "decoder"; NULL in a single stack */
    const char *name; /* "stem", "attn", "ffn", "attn+ffn" */
    double lane;      /* branches cut: exact backward pass */
    double total;     /* the true gradient */
    double branch;    /* |total - lane| */
    double cos;       /* angle of lane and branch; 0 if one is zero */
    double local_lane, local_branch, local_cos; /* inside this sublayer, per
                                  unit of gradient arriving at x_k */
    double toll;         /* RMS gain of the norms on its lane, 1 if none */
    double toll_max;     /* their largest singular value */
    double toll_product; /* tolls of all sublayers above x_k */
    int norms;           /* on the lane of this sublayer */
    double std_x;        /* standard deviation of x_k over all elements */
    double branch_ratio; /* |what the branches add| / |x_(k-1)| */
    /* total of the token that gets least and of the one that gets most, per the
       root mean square over the tokens at the top */
    double total_min, total_max;
    double norm_x;    /* root mean square of |x_k| over its tokens */
    double top_x[3];  /* largest magnitudes in x_k, falling */
    double median_x;  /* and the one in the middle */
    size_t top_token; /* where the largest is, from 1 */
    size_t top_channel;
    double top_g; /* the largest magnitude in its true gradient, as it is, */
    size_t top_g_token, top_g_channel; /* and where */
    double std_first;   /* std_x of the first token of each row alone */
    double angle;       /* between x_(k-1) and x_k, mean over tokens, over pi */
    size_t nonfinite;   /* numbers in x_k and in its gradient, */
    size_t nonfinite_x; /* in x_k alone */
    bool audited;       /* of J = d x_k / d x_(k-1), n = its elements: */
    double identity_share, identity_share_error; /* tr(J)/n and its standard
                         error; 0: by all rows of J, no probes */
    double jacobian_rms, jacobian_rms_error;     /* |J|_F / sqrt(n) */
    double jacobian_off;                         /* |J - I|_F / sqrt(n) */
    double sigma_max;            /* a lower bound, where probes were used */
    const tb_spectrum *spectrum; /* all singular values of J, or NULL */
    bool has_sums;               /* there are sums on its lane: */
    double identity_error;       /* E13, the largest of them */
} tb_flow_row;

/** One norm, wherever it stands. k is that of the row it belongs to; norms
 * after a stack have that of its top. */
typedef struct tb_flow_norm {
    size_t k, layer; /* layer 0: after the stack */
    const char *role;
    const char *name; /* "layers.0.attn.norm"; of a norm without weights its
                         kind */
    const char *kind; /* "layernorm" */
    bool lane;        /* on the lane; else inside a branch */
    double toll, toll_max;         /* RMS gain and largest singular value */
    bool has_s;                    /* rows have a scale: */
    double s_min, s_median, s_max; /* s, what the row is divided by */
    double eps_share;              /* the largest share of eps in s squared, */
    size_t eps_token;              /* of which token, from 1 */
} tb_flow_norm;

typedef struct tb_flow_weight {
    const char *name;
    size_t layer; /* from 1; 0: stem, final, head */
    size_t elements;
    double grad_norm;
    const char *start; /* its init rule: "normal(0.02)" */
    double mean, std;  /* over its elements, as they are; spec.weights only */
    double alpha;      /* of a block's matrix; 0: none. spec.alpha only */
} tb_flow_weight;

/** What the queries of a sublayer give the first token, head by head: the mean
 * over those that see anything. */
typedef struct tb_flow_heads {
    size_t k, layer;
    const char *role;
    size_t heads;
    double *first; /* [heads] */
} tb_flow_heads;

/** E10 of one block in double, along a random direction. */
typedef struct tb_flow_check {
    size_t layer;
    const char *role;
    double error;       /* against a difference: max|A - N| / max|A| */
    double elementwise; /* the largest |A - N| / (|A| + |N|) */
    double adjoint;     /* tangent pass against backward pass */
} tb_flow_check;

typedef enum tb_level { TB_OK_, TB_NOTE, TB_WARN, TB_FAILED } tb_level;
/** tb_level_name - "OK", "NOTE", "WARN", "FAIL". */
const char *tb_level_name(tb_level l);

typedef struct tb_verdict {
    const char *code; /* "VANISH" */
    tb_level level;
    double value, threshold;
    const char *sentence;
    const char *source;
    const char *where; /* "k 3, attn of block 2", or "" */
} tb_verdict;

/** A changed block with the same seed or the same weights, not trained again,
 * in the stack with the head. */
typedef struct tb_flow_change {
    const char *change; /* "every branch times 2"; the first: "as it is" */
    double lane, total; /* at k = 0 */
    double least_total, loss;
} tb_flow_change;

/** One stack: its rows, its top being the last of them. Of an encoder and a
 * decoder the encoder's rows come first. */
typedef struct tb_flow_stack {
    const char *role;    /* as in its rows */
    size_t depth;        /* its blocks */
    size_t first, nrows; /* in tb_flow.rows; k counts through both stacks */
    bool has_final;
    double final_toll; /* RMS gain of the norms after the stack */
} tb_flow_stack;

typedef struct tb_flow {
    const char *block; /* name, or the text */
    size_t nstacks;
    tb_flow_stack stacks[2]; /* the last has the head */
    size_t depth, width, heads, tokens, batch;
    uint64_t seed;
    tb_dtype dtype;
    double loss;
    size_t nrows;
    tb_flow_row *rows;
    size_t nnorms; /* from the bottom to the top */
    tb_flow_norm *norms;
    bool lists; /* blocks read what earlier ones made: a row shows x where its
                   block leaves it, with all that is read of it later; its
                   local numbers are those from x to x */
    bool has_spread; /* mean and std of the weights */
    size_t nweights;
    tb_flow_weight *weights;
    bool has_spectrum;
    tb_spectrum spectrum;
    size_t nattention; /* with spec.audit; from the top to the bottom */
    tb_flow_heads *attention;
    size_t nchecks; /* the same; blocks with stop() have none */
    tb_flow_check *checks;
    size_t nverdicts;
    tb_verdict *verdicts;
    size_t nchanges; /* with spec.what_if */
    tb_flow_change *changes;
} tb_flow;

/**
 * tb_flow_measure - build the model at its initial values and measure.
 * Returns TB_ERR_ARG for impossible settings; TB_ERR_INPUT for zero variance
 * with eps = 0. Non-finite numbers are results (verdict NONFINITE).
 */
tb_status tb_flow_measure(tb_ctx *ctx, const tb_block *b,
                          const tb_flow_spec *spec, tb_flow **out);
/** tb_flow_free - with all its lists. NULL is fine. */
void tb_flow_free(tb_ctx *ctx, tb_flow *f);

/** tb_verdicts_json - a list of verdicts as every object has them. */
void tb_verdicts_json(const tb_verdict *v, size_t n, tb_json *j,
                      const char *key);

/** tb_flow_json - one element of "runs" (docs/json.md). */
void tb_flow_json(const tb_flow *f, tb_json *j, const char *key);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
