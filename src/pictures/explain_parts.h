/* SPDX-License-Identifier: MIT */
/* What every format of explain reads, and the pieces of its text. */
#ifndef TB_PICTURES_EXPLAIN_PARTS_H
#define TB_PICTURES_EXPLAIN_PARTS_H

#include "model/lane_depth.h"
#include "pictures/scene.h"
#include "tollbooth/explain.h"
#include "tollbooth/lint.h"

/** One kind of block: all that have the same graph. */
typedef struct tb_explained_kind {
    const tb_graph *g;
    size_t part;        /* of the model: the first block of this kind */
    size_t from, to;    /* the first run of such blocks, from 1 */
    bool encoder;       /* of two stacks, the one under the head's */
    const char *blocks; /* "block 1", "encoder blocks 2-6" */
    tb_jacobian closed, open, silent, lane;
    /* by the encoder's output, where that is said */
    tb_jacobian memory, memory_open;
    bool has_memory;
    tb_lane_info info;
} tb_explained_kind;

typedef struct tb_explained {
    tb_arena arena;
    const tb_block *block;
    tb_settings given;
    tb_model *model; /* not allocated: names, shapes and init rules only */
    const tb_graph *tail;
    size_t nkinds;
    tb_explained_kind *kinds;
    tb_lane_info final;
    tb_lane_path *through;  /* [streams, streams] of the head's stack; NULL of
                               an outline */
    tb_layers layers;       /* its parts */
    size_t norms[TB_SIDES]; /* numbers in the parameters of norms */
    tb_lint *lint;
} tb_explained;

tb_status tb_explained_open(tb_ctx *ctx, tb_explained *e, const tb_block *b,
                            const tb_settings *settings);
void tb_explained_close(tb_explained *e);

/** tb_explained_each - one formula stands for each of several sublayers. */
bool tb_explained_each(tb_ctx *ctx, const tb_jacobian *j);

/** What x takes from an element of a list that enters the block. */
typedef struct tb_explained_element {
    const char *name; /* "past[2]" */
    tb_jacobian jacobian;
} tb_explained_element;

enum { TB_ELEMENTS_MOST = 8 };

/** tb_explained_elements - of a block with one stream, at most
 * TB_ELEMENTS_MOST of them into out; *n of them. */
tb_status tb_explained_elements(tb_explained *e, const tb_explained_kind *k,
                                tb_explained_element *out, int *n);

/** tb_explained_diagram - blocks of one kind, in `arena`, and over the last of
 * a stack what follows it; its title says which blocks where there are several
 * kinds. */
tb_status tb_explained_diagram(tb_ctx *ctx, tb_arena *arena,
                               const tb_explained *e,
                               const tb_explained_kind *k, tb_diagram *out);

/** tb_explain_wrap - a formula under a label of 10 columns, broken after
 * factors and before terms where it is wider than the terminal. */
void tb_explain_wrap(const tb_terminal *t, const char *label, const char *text,
                     tb_buf *out);
/** tb_explain_formula - a Jacobian in the terminal: a line, or matrices. */
tb_status tb_explain_formula(tb_ctx *ctx, const tb_terminal *t,
                             const char *label, const tb_jacobian *j,
                             tb_buf *out);

/** tb_explain_corners_json - members of `corners`; tb_explain_corners - lines
 * for the terminal. Both measure: small trials, some milliseconds. */
tb_status tb_explain_corners_json(tb_ctx *ctx, tb_explained *e, tb_json *j);
tb_status tb_explain_corners(tb_ctx *ctx, tb_explained *e, const tb_terminal *t,
                             tb_buf *out);

/** tb_origin_name - as printed: "default", "model section". */
const char *tb_origin_name(tb_origin o);

#endif
