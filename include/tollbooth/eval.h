/* SPDX-License-Identifier: MIT */
/* Evaluate an equation on given numbers: its value, the backward pass along a
 * cotangent, the tangent pass, the Jacobian, and the check that these agree. */
#ifndef TOLLBOOTH_EVAL_H
#define TOLLBOOTH_EVAL_H

#include "tollbooth/base.h"
#include "tollbooth/json.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { TB_EVAL_RANK = 3 };

/** A named block of numbers, row-major; rank 0 is one number. */
typedef struct tb_eval_value {
    const char *name;
    int rank;
    size_t dims[TB_EVAL_RANK];
    const double *data; /* NULL: not there */
} tb_eval_value;

typedef enum tb_eval_mask {
    TB_EVAL_MASK_DEFAULT, /* as a decoder: causal */
    TB_EVAL_MASK_CAUSAL,
    TB_EVAL_MASK_NONE
} tb_eval_mask;

/** What to evaluate. Zero everything, then fill in; zero is the default. */
typedef struct tb_eval {
    const char *text; /* EXPR: one or more statements, the last is the value */
    /* Inputs of EXPR, of rank 0, [d], [T,d] or [B,T,d] (all lists of one rank;
     * a [d] beside longer ones is one vector for all tokens; keys, values and
     * their mask may have another T than the queries), and parameters
     * of its calls by name: "norm.gain", "attn.q.weight" or "attn.q", a
     * declared scalar's own name. */
    size_t nsets;
    const tb_eval_value *sets;
    const tb_eval_value *cotangent; /* shape of y; NULL: no backward pass */
    size_t ntangents;
    const tb_eval_value *tangents; /* by name; what is not named is zero */
    const char *jacobian; /* a set name, or several: "x1,x2"; NULL: none */
    bool jacobian_blocks; /* only dY_t/dX_t: [rows, w_out, w_in] */
    size_t heads;         /* 0: 1 */
    size_t kv_heads;      /* 0: heads */
    size_t width;         /* d; 0: the width of x, or of the first list */
    tb_eval_mask mask;
    const char *norm;  /* NULL: layernorm */
    const double *eps; /* NULL: 1e-5 */
    const char *init;  /* init rules, or NULL */
    uint64_t seed;     /* of the weights that are not set */
    bool f32;          /* store and compute in float; default double */
    bool running;      /* norms over tokens use their running statistics, not
                          this batch's */
} tb_eval;

typedef struct tb_eval_result {
    tb_eval_value y; /* in the rank of the inputs */
    size_t ngrads;   /* with a cotangent: one per input and parameter, and one
                        more by the short name a weight was set by */
    tb_eval_value *grads;
    tb_eval_value tangent;  /* with tangents */
    tb_eval_value jacobian; /* rows = outputs, columns = inputs, flattened */
    size_t nstatistics;     /* of norms over tokens: the mean and mean square or
                               variance that each of them used, one per feature */
    tb_eval_value *statistics;
    /* Non-finite numbers are a result, not an error: how many rows of y hold
     * one, and the first operation (in the order of evaluation) that made one
     * in the first such row. */
    size_t empty_rows; /* of attention, that may see nothing: zeros */
    size_t nonfinite_rows;
    size_t first_row;     /* from 1; 0: none */
    const char *first_op; /* "layernorm"; NULL: it came in with the input */
} tb_eval_result;

/**
 * tb_eval_run - evaluate. The result is freed with tb_eval_free.
 *
 * Returns TB_ERR_PARSE   EXPR, with line, column and caret
 *         TB_ERR_INPUT   a set name that EXPR does not use (with the likely
 *                        meant one); zero variance met with eps = 0
 *         TB_ERR_SHAPE   lists that do not fit: got and wanted
 *         TB_ERR_ARG     impossible settings; a Jacobian above 1 GiB, refused
 *                        before it is allocated, with its size in bytes
 *         TB_ERR_MEMORY
 */
tb_status tb_eval_run(tb_ctx *ctx, const tb_eval *e, tb_eval_result **out);
/** tb_eval_free - NULL is fine. */
void tb_eval_free(tb_ctx *ctx, tb_eval_result *r);

/** tb_eval_json - the object of `eval --json` (docs/json.md). */
void tb_eval_json(const tb_eval_result *r, tb_json *j, const char *key);

/** How well three ways to one Jacobian agree. Errors are the largest entry
 * of the difference over the largest entry of the backward-built Jacobian
 * (over 1e-300 if that is 0). */
typedef struct tb_eval_agreement {
    double tangent;    /* columns by tangent passes */
    double difference; /* columns by central differences in double */
    double step;       /* largest step used: 6e-6 * max(1, |x|) */
    double largest;    /* entry of the Jacobian */
} tb_eval_agreement;

/** tb_eval_check - for e->jacobian, in double. Stopped values and dropout
 * masks are held fixed in the differences. */
tb_status tb_eval_check(tb_ctx *ctx, const tb_eval *e, tb_eval_agreement *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
