/* SPDX-License-Identifier: MIT */
/* A graph as wires: what a diagram draws where one lane with branches does not
 * tell all. Every node stands in it once, a sublayer as one node. */
#ifndef TB_PICTURES_WIRING_H
#define TB_PICTURES_WIRING_H

#include "graph/graph.h"
#include "pictures/diagram.h"

typedef enum tb_wired_kind {
    TB_WIRED_IN,    /* a stream, an element of a list, the memory */
    TB_WIRED_OUT,   /* the same as it leaves; what follows the block reads it */
    TB_WIRED_BOX,   /* a sublayer, a function */
    TB_WIRED_NORM,  /* a tollbooth */
    TB_WIRED_SCALE, /* times or plus something constant or learned */
    TB_WIRED_TIMES, /* two streams, element by element */
    TB_WIRED_PLUS
} tb_wired_kind;

typedef enum tb_wired_part {
    TB_WIRED_STEM, /* what stem: does, before the first block */
    TB_WIRED_BLOCK,
    TB_WIRED_AFTER /* what follows the last block */
} tb_wired_part;

typedef struct tb_wired {
    tb_wired_kind kind;
    const char *label; /* "LN", "x 0.5", "x'" */
    const char *name;  /* what the text calls the value, or NULL */
    int node;          /* of its graph; a sublayer's last */
    tb_wired_part part;
    bool lane;  /* on a way of its stream past all branches */
    int stream; /* whose row it may stand in, -1: none */
    int n;
    const int *in; /* wired nodes, the main one first */
    int odd;       /* of the two of PLUS and TIMES: the one that is taken away
                      or divided by, -1: none */
} tb_wired;

struct tb_wiring {
    tb_wired *nodes;
    int n, stem, block; /* of them up to the end of the stem, and of the block,
                           those that leave it included */
    bool step;          /* of the block one step, which stands for all */
    int nstreams;
    const char *const *streams;
};

/** tb_stem_of - a stem's graph that begins with the embedding, in `a`; NULL
 * where the block has no stem, or g is NULL. */
tb_status tb_stem_of(tb_arena *a, const tb_graph *g, const tb_graph **out);

/** tb_wiring_of - the block (or one step of it that stands for all, see
 * tb_jacobian_steps), what comes before (of tb_stem_of) and what follows (NULL:
 * nothing). Lives in `arena`. */
tb_status tb_wiring_of(tb_ctx *ctx, tb_arena *arena, const tb_graph *stem,
                       const tb_graph *g, const tb_graph *tail,
                       struct tb_wiring *out);

/* --- as laid out ---------------------------------------------------------- */

/** A node's place: `rank` along the way, `row` across, rows 0.. of streams
 * first. From `lo` to `hi` it reaches across at its rank, to its inputs. */
typedef struct tb_placed {
    const tb_wired *what;        /* NULL: a bend */
    int rank, row, lo, hi, last; /* last: rank of the last that reads it */
    int n;
    int *in; /* places */
    bool lane;
} tb_placed;

typedef struct tb_laid {
    tb_placed *places;
    int n, ranks, rows;
    int begin, end; /* first rank of the block, and after it */
} tb_laid;

/** tb_wiring_lay - `single`: one node a rank. No two nodes share a rank and a
 * row, no two reach across the same rows at one rank, no two values have one
 * row at a time. */
tb_status tb_wiring_lay(tb_arena *a, const struct tb_wiring *w, bool single,
                        tb_laid *out);

/** Into a scene that has its title and description; under a title. */
tb_status tb_wiring_draw(tb_scene *s, const tb_diagram *d);
tb_status tb_wiring_term(tb_arena *a, const tb_diagram *d,
                         const tb_terminal *term, tb_buf *b);

const char *tb_wiring_describe(tb_arena *a, const struct tb_wiring *w);

/** Members "streams" and "nodes" of an object. */
void tb_wiring_json(const struct tb_wiring *w, tb_json *j);

/** tb_wired_text - "a = sigmoid", for lists and titles. */
const char *tb_wired_text(tb_arena *a, const tb_wired *w);

#endif
