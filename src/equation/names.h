/* SPDX-License-Identifier: MIT */
/* The words of the language: what can be called, what is reserved, which
 * spellings of papers mean them. One table per kind; rooms share them. */
#ifndef TB_EQUATION_NAMES_H
#define TB_EQUATION_NAMES_H

#include "base/base.h"

/* name, kind */
#define TB_CALLABLE_LIST(X)                                                    \
    X(F, SUBLAYER)                                                             \
    X(attn, SUBLAYER)                                                          \
    X(cross, SUBLAYER)                                                         \
    X(ffn, SUBLAYER)                                                           \
    X(norm, NORM)                                                              \
    X(layernorm, NORM)                                                         \
    X(rmsnorm, NORM)                                                           \
    X(scalenorm, NORM)                                                         \
    X(l2norm, NORM)                                                            \
    X(batchnorm, NORM)                                                         \
    X(powernorm, NORM)                                                         \
    X(dyt, NORM)                                                               \
    X(derf, NORM)                                                              \
    X(relu, ELEMENT)                                                           \
    X(gelu, ELEMENT)                                                           \
    X(gelu_tanh, ELEMENT)                                                      \
    X(silu, ELEMENT)                                                           \
    X(sigmoid, ELEMENT)                                                        \
    X(tanh, ELEMENT)                                                           \
    X(softmax, STREAM)                                                         \
    X(sum, STREAM)                                                             \
    X(mean, STREAM)                                                            \
    X(shift, STREAM)                                                           \
    X(sinkhorn, STREAM)                                                        \
    X(unit, STREAM)                                                            \
    X(maxdiv, STREAM)                                                          \
    X(list, STREAM)                                                            \
    X(append, STREAM)                                                          \
    X(item, STREAM)                                                            \
    X(size, STREAM)                                                            \
    X(drop, STREAM)                                                            \
    X(drop_branch, STREAM)                                                     \
    X(stop, STREAM)                                                            \
    X(concat, STREAM)                                                          \
    X(mha, STREAM)                                                             \
    X(mix, STREAM)                                                             \
    X(dot, STREAM)                                                             \
    X(headscale, STREAM)                                                       \
    X(rope, STREAM)                                                            \
    X(scalar, LEARNED)                                                         \
    X(vector, LEARNED)                                                         \
    X(matrix, LEARNED)                                                         \
    X(linear, LEARNED)                                                         \
    X(project, STREAM)                                                         \
    X(q, WEIGHT)                                                               \
    X(k, WEIGHT)                                                               \
    X(v, WEIGHT)                                                               \
    X(o, WEIGHT)                                                               \
    X(up, WEIGHT)                                                              \
    X(gate, WEIGHT)                                                            \
    X(down, WEIGHT)                                                            \
    X(sqrt, CONSTANT)                                                          \
    X(log, CONSTANT)                                                           \
    X(exp, CONSTANT)                                                           \
    X(min, CONSTANT)                                                           \
    X(max, CONSTANT)                                                           \
    X(abs, CONSTANT)                                                           \
    X(floor, CONSTANT)

/* name, what it is */
#define TB_RESERVED_LIST(X)                                                    \
    X(N, "the number of blocks")                                               \
    X(M, "the number of decoder blocks")                                       \
    X(K, "the number of sublayers")                                            \
    X(l, "the number of this block")                                           \
    X(k, "the number of this sublayer")                                        \
    X(d, "the width of the stream")                                            \
    X(h, "the number of heads")                                                \
    X(F, "the sublayer")                                                       \
    X(memory, "the encoder's output")

/* rule, fewest arguments, most */
#define TB_INIT_RULE_LIST(X)                                                   \
    X(normal, 1, 1)         /* standard deviation */                           \
    X(xavier, 0, 1)         /* gain; normal */                                 \
    X(xavier_uniform, 0, 1) /* gain */                                         \
    X(uniform, 1, 1)        /* half width */                                   \
    X(const, 1, 1)                                                             \
    X(zeros, 0, 0)                                                             \
    X(ones, 0, 0)                                                              \
    X(orthogonal, 0, 1) /* gain */                                             \
    X(identity, 0, 0)   /* ones on the diagonal of a matrix */                 \
    X(onehot, 1, 1)     /* which element of a vector is 1, from 1 */           \
    X(profiled, 0, 0)   /* by a forward pass; scalars and vectors */

/* rule of after:, which a weight keeps to at the start and after each step */
#define TB_AFTER_RULE_LIST(X)                                                  \
    X(unit_rows, 0, 0) /* every row of a matrix has length 1 */                \
    X(unit_columns, 0, 0)

/* key of model:, words it takes ("" means a constant expression) */
#define TB_SETTING_LIST(X)                                                     \
    X(norm, "layernorm rmsnorm scalenorm l2norm batchnorm powernorm dyt derf") \
    X(eps, "")                                                                 \
    X(eps_mode, "inside outside clamp clamp_square dtype none")                \
    X(variance, "twopass onepass onepass_clipped")                             \
    X(activation, "relu gelu gelu_tanh silu sigmoid tanh")                     \
    X(ffn, "")                                                                 \
    X(heads, "")                                                               \
    X(kv_heads, "")                                                            \
    X(head_dim, "")                                                            \
    X(bias, "true false")                                                      \
    X(tied, "true false")                                                      \
    X(positions, "learned sinusoidal rope none")                               \
    X(rope_base, "")                                                           \
    X(dropout, "")

typedef enum tb_callable_kind {
    TB_CALLABLE_NONE, /* not built in */
    TB_CALLABLE_SUBLAYER,
    TB_CALLABLE_NORM,
    TB_CALLABLE_ELEMENT, /* one argument, element-wise */
    TB_CALLABLE_STREAM,
    TB_CALLABLE_LEARNED,
    TB_CALLABLE_WEIGHT, /* implicit linears of attn, cross and ffn */
    TB_CALLABLE_CONSTANT
} tb_callable_kind;

tb_callable_kind tb_callable_find(const char *name);

/** tb_callable_names - all of them, for suggestions; *n is the count. */
const char *const *tb_callable_names(size_t *n);

/** tb_callable_near - the function most likely meant by an unknown word: one of
 * the text's own, else a built-in one, also by the name it has elsewhere ("ln",
 * "swish"); NULL: none is near. */
const char *tb_callable_near(const char *word, const char *const *own,
                             size_t nown);

/** tb_reserved_find - what a reserved value name stands for, or NULL. */
const char *tb_reserved_find(const char *name);

/** tb_alias_find - the canonical name of a paper's spelling, or NULL. */
const char *tb_alias_find(const char *s, size_t n);

typedef struct tb_init_kind {
    const char *name;
    int least, most; /* arguments */
} tb_init_kind;
const tb_init_kind *tb_init_kind_find(const char *name);
const char *const *tb_init_kind_names(size_t *n);
/** The same for the rules of after:. */
const tb_init_kind *tb_after_kind_find(const char *name);
const char *const *tb_after_kind_names(size_t *n);

typedef struct tb_setting_kind {
    const char *key;
    const char *words; /* with blanks between; "": a constant expression */
} tb_setting_kind;
const tb_setting_kind *tb_setting_kind_find(const char *key);
/** tb_setting_word - which of the words of `key` it is, from 0; -1: none. */
int tb_setting_word(const char *key, const char *word);
const char *const *tb_setting_names(size_t *n);

/** tb_suggest - "; did you mean 'word'?" into out, or "". */
enum { TB_SUGGEST_CHARS = 64 };
void tb_suggest(char out[TB_SUGGEST_CHARS], const char *word,
                const char *const *candidates, size_t n);

#endif
