/* SPDX-License-Identifier: MIT */
/* A block: the text that is the program. Load one, print it, and read what
 * is derived from the text alone: Jacobian, lane, parameters, diagram. */
#ifndef TOLLBOOTH_BLOCK_H
#define TOLLBOOTH_BLOCK_H

#include "tollbooth/base.h"
#include "tollbooth/json.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct tb_block tb_block;

/**
 * tb_block_load - BLOCK of the command line: a built-in name ("pre-ln"), a
 * file name, or the text itself (it holds '=' or a newline).
 * Returns TB_ERR_PARSE with line, column and a caret; TB_ERR_INPUT for an
 * unknown word (with the nearest names) or an unreadable file.
 */
tb_status tb_block_load(tb_ctx *ctx, const char *what, tb_block **out);
/** tb_block_destroy - frees the block and every string read from it. */
void tb_block_destroy(tb_ctx *ctx, tb_block *b);

/** tb_block_name - built-in or file name, NULL for a text. */
const char *tb_block_name(const tb_block *b);

/** tb_block_text - the canonical text; freed with tb_text_free. */
tb_status tb_block_text(tb_ctx *ctx, const tb_block *b, char **out);
/** tb_text_free - frees a text this header's calls gave; NULL is fine. */
void tb_text_free(tb_ctx *ctx, char *text);

/** tb_builtin_count - how many files blocks/ has. */
size_t tb_builtin_count(void);
/** tb_builtin_name - the i-th by name, without ".block"; i < count. */
const char *tb_builtin_name(size_t i);
/** tb_block_about - the comment at the head of the text (what, source), or
 * NULL. */
const char *tb_block_about(const tb_block *b);

/** A change of a block's equations, to ask what if. */
typedef enum tb_change {
    TB_CHANGE_SCALE,     /* every branch times a value */
    TB_CHANGE_CUT,       /* no skip around any branch */
    TB_CHANGE_CUT_ONE,   /* the same in one block alone, by its number */
    TB_CHANGE_TO_BRANCH, /* norm(x + F(x)) becomes x + F(norm(x)), with a final
                            norm if there was none */
    TB_CHANGE_TO_LANE    /* and the other way */
} tb_change;

/** tb_block_changed - the changed block; *out is NULL where the change finds
 * nothing to change. Names of weights stay, so the same seed or the same
 * weights give the same values. */
tb_status tb_block_changed(tb_ctx *ctx, const tb_block *b, tb_change what,
                           double value, tb_block **out);

/** Where each norm's eps and kind came from, by ruling 6. */
typedef enum tb_origin {
    TB_FROM_DEFAULT,
    TB_FROM_CONFIG,
    TB_FROM_MODEL_SECTION,
    TB_FROM_OPTION,
    TB_FROM_TEXT
} tb_origin;

/** What is built of the blocks. A model of one stack has N = M = depth. */
typedef enum tb_stacks {
    TB_STACKS_DECODER, /* one stack, causal: attn, ffn */
    TB_STACKS_ENCODER, /* one stack in which tokens see each other: attn, ffn */
    TB_STACKS_BOTH     /* an encoder of N blocks, and M decoder blocks that read
                          its output as `memory`: attn, cross, ffn */
} tb_stacks;
extern const char *const tb_stack_names[3]; /* by tb_stacks */

/** What says where in the sequence a token stands. */
typedef enum tb_positions {
    TB_POSITIONS_NONE,
    TB_POSITIONS_LEARNED,    /* a table of `context` rows is added */
    TB_POSITIONS_SINUSOIDAL, /* sin and cos of t/10000^(2i/d) are added */
    TB_POSITIONS_ROPE        /* the attn that is built in turns q and k */
} tb_positions;
enum { TB_POSITIONS_KINDS = TB_POSITIONS_ROPE + 1 };
extern const char *const tb_positions_names[]; /* by tb_positions */

/** Sizes and choices that are not in the block's equations. Zero or NULL
 * means: take the block's model: section, else the default in brackets. */
typedef struct tb_settings {
    size_t depth;          /* N, blocks of a stack [6] */
    size_t width;          /* d [64] */
    size_t heads;          /* h [4] */
    size_t kv_heads;       /* [heads] */
    size_t ffn;            /* FFN width [4*d] */
    size_t context;        /* T, positions that can be told apart [32] */
    size_t vocab;          /* V [256] */
    const char *norm;      /* what norm(...) means [layernorm] */
    double eps;            /* < 0: unset [1e-5] */
    double dropout;        /* < 0: unset [0] */
    int bias;              /* biases in linears: -1 unset [1] */
    int tied;              /* head = embedding: -1 unset [0] */
    int causal;            /* -1 unset [1, in an encoder 0] */
    int positions;         /* tb_positions: -1 unset [learned] */
    int uniform_attention; /* q, k start at zero: -1 unset [0] */
    const char *init;      /* extra init rules, as an init: section, or NULL */
    int stack;             /* tb_stacks [decoder] */
    size_t decoder_depth;  /* M, of TB_STACKS_BOTH [depth] */
    bool padding;          /* batches say which tokens are padding: attention
                              does not see those */
    size_t classes;        /* the head has so many outputs, not V; 0: V */
} tb_settings;

/** TB_SETTINGS_UNSET - every field unset. */
#define TB_SETTINGS_UNSET                                                      \
    {                                                                          \
        .eps = -1, .dropout = -1, .bias = -1, .tied = -1, .causal = -1,        \
        .positions = -1, .uniform_attention = -1                               \
    }

/** tb_lane_text - the lane of one block in a word or two ("toll (2 per
 * block)"), freed with tb_text_free. */
tb_status tb_lane_text(tb_ctx *ctx, const tb_block *b, char **out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
