/* SPDX-License-Identifier: MIT */
/* One tile of attention: some query rows of one head, what they see, and the
 * products between tiles and heads. A pair that is hidden contributes nothing,
 * not even where the other side holds a NaN or an infinity. */
#ifndef TB_OPS_MHA_TILE_H
#define TB_OPS_MHA_TILE_H

#include "ops/op_help.h"

typedef enum tb_attn_mask {
    TB_MASK_NONE,
    TB_MASK_SHARED, /* matrix [T_q, T_k] for every sequence */
    TB_MASK_PAIRS,  /* [B, T_q, T_k] */
    TB_MASK_KEYS    /* [B, T_k, 1]: real tokens of the memory */
} tb_attn_mask;

/** Sizes of one call. */
typedef struct tb_attn {
    size_t tq, tk;                 /* queries and keys of a sequence */
    size_t heads, kv_heads, group; /* group: query heads per kv head */
    size_t hd, qw, kw;             /* widths: a head, q, k */
    size_t vd, ow, vw;             /* of a head's values, out, v */
    size_t wide;                   /* the wider of the two heads */
    size_t tile, tiles;            /* rows of a tile; tiles of a head */
    bool causal;                   /* key j is seen iff j <= i + T_k - T_q */
    tb_attn_mask mask;
    double scale, drop; /* drop: rate on the probabilities */
} tb_attn;

/** Query rows [r0, r0 + rows) of one head; they see `cols` columns at most. */
typedef struct tb_tile {
    size_t b, head, r0, rows, cols;
} tb_tile;

/** tb_attn_of - TB_MASK_NONE also for a mask that does not fit. */
tb_attn tb_attn_of(const tb_opcall *c);
/** tb_attn_values - the same sizes for products with values: hd, qw and kw are
 * theirs. */
tb_attn tb_attn_values(const tb_attn *g);
/** tb_attn_fit - the op table's `fit`. */
const char *tb_attn_fit(const tb_opcall *c);
/** tb_attn_pairs - visible (query, key) pairs of one head, masks aside. */
double tb_attn_pairs(const tb_attn *g);

tb_tile tb_tile_at(const tb_attn *g, size_t b, size_t head, size_t i);
/** Offset of the tile's first row in the probabilities [B, heads, T_q, T_k]. */
size_t tb_tile_p(const tb_attn *g, const tb_tile *t);

/** Scratch of a call cut into `pieces` chunks: a flag, then for each chunk
 * one or two blocks of [tile, T_k], and rows of one head. */
size_t tb_tile_scratch(const tb_opcall *c, const tb_attn *g, size_t pieces);
/** tb_tile_suspect - starts a pass: is something hidden, and one of the n
 * operands (of `count` elements each; NULL: none) not finite? Only then do
 * the products look at what they multiply. */
void tb_tile_suspect(const tb_opcall *c, const tb_attn *g, int n,
                     const void *const *x, const size_t *count);
/** tb_tile_block - block i of this chunk (0: scores, 1: dropped p). */
void *tb_tile_block(const tb_opcall *c, const tb_attn *g, size_t chunk,
                    size_t i);

/* s and p are [rows, cols], row stride T_k; q-like operands [B, T_q, qw],
 * k-like ones [B, T_k, kw]; with tb_attn_values out is q-like and v k-like. */

/** s (+)= q k^T */
void tb_tile_scores(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                    const void *q, const void *k, bool add, void *s);
/** y (+)= p v into the tile's rows of y, which is shaped like q */
void tb_tile_mix(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                 size_t chunk, const void *p, const void *v, bool add, void *y);
/** gk += p^T q, for keys and values */
void tb_tile_gather(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                    size_t chunk, const void *p, const void *q, void *gk);
/** p = softmax(scale p) over what each row sees, 0 elsewhere, in all T_k
 * columns; a row that sees nothing is all 0. */
void tb_tile_softmax(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                     void *p);
/** From d loss / d p, in place, to d loss / d (q k^T); 0 where hidden. */
void tb_tile_through(const tb_opcall *c, const tb_attn *g, const tb_tile *t,
                     const void *p, void *gs);

#endif
