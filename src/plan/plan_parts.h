/* SPDX-License-Identifier: MIT */
/* What plan*.c share: what was decided about each node when the plan was
 * made, and how a node's call is filled in for one pass of one run. */
#ifndef TB_PLAN_PLAN_PARTS_H
#define TB_PLAN_PLAN_PARTS_H

#include "ops/op_help.h"
#include "ops/op_rows.h"
#include "plan/plan.h"
#include "plan/plan_profile.h"

/** Where the value of a node stands. */
typedef enum tb_place {
    TB_PLACE_INPUT, /* the caller's: run.inputs[slot] */
    TB_PLACE_PARAM, /* run.params[slot] */
    TB_PLACE_SAVED, /* in saved from forward to backward */
    TB_PLACE_WORK,  /* in work until its last reader ran */
    TB_PLACE_TILE   /* a few rows at a time: no other segment reads it */
} tb_place;

/** One node, planned. `*_at` are byte offsets. */
typedef struct tb_step {
    tb_opcall call;      /* sizes and kernels; pointers are filled per run */
    size_t count, bytes; /* of the value */
    int root;      /* node whose storage holds the value: itself, or the input
                      of an alias */
    int last;      /* last node that reads the value, aliases included */
    int reader;    /* last node that reads this very node, -1: none */
    int readers;   /* input slots it fills */
    int outputs;   /* graph outputs it is */
    int output;    /* of a root: the first output that shows it, -1: none */
    bool keep;     /* of a root: read after forward */
    bool borrows;  /* its gradient is that of its only reader, unchanged */
    int lowest;    /* lowest node that reads this node's gradient */
    bool in_place; /* a rope that turns value, gradient and tangent where
                      those of its input stand */
    int angles_of; /* of a rope: the one that owns its angles, */
    size_t angles_at; /* and of an owner: where they are in the plan's, */
    int owner_before; /* and the owner before it, -1: none */
    int fwd, bwd;     /* its segment in forward and tangent, and in backward */
    tb_place place;
    int slot;        /* of a leaf: index into inputs or params */
    size_t at;       /* its value in saved, work or tile */
    size_t saved_at; /* op->saved block: in saved, or in work where no later
                        pass reads it */
    size_t scratch;  /* bytes a call borrows */
    size_t tan_at, grad_at; /* tangent and gradient, in work */
    bool grad_tile;         /* the gradient stands in a tile, */
    bool grad_over;         /* or where the value stood */
} tb_step;

/** What row parts that run together take. */
typedef struct tb_segment {
    size_t row_bytes; /* a row of all that they read and write */
    size_t calls;     /* at most */
    size_t scratch, store;
} tb_segment;

struct tb_plan {
    const tb_graph *graph;
    unsigned passes;
    const char *name;
    double *angles; /* of ropes; see tb_plan_angles */
    size_t angle_bytes;
    size_t saved_bytes, work_bytes;
    size_t scratch_bytes;         /* work starts with what calls borrow, */
    size_t table_at, table_bytes; /* then pointers per node, */
    size_t calls_at;              /* calls that wait, */
    size_t store_at, store_bytes; /* tiles of so many bytes for each slot, */
    size_t pool_at;               /* then values, tangents or gradients */
    size_t slots;                 /* threads that run at once */
    double flops;
    tb_step *steps;        /* [nnodes] */
    tb_segment *fwd, *bwd; /* by number, from 0 */
};

/** A gradient in the making; the table of a backward pass. */
typedef struct tb_grad {
    const void *value; /* what has come so far, NULL: nothing */
    void *at;          /* the same, where it may be added to */
    void *into;        /* the caller's buffer for it, NULL: in work */
    bool adds;         /* `into` already counts: a parameter's, or asked for */
    bool reach;        /* something wanted lies behind */
} tb_grad;

/** tb_plan_grow - *total = align64(*total) + bytes, *at the start;
 * TB_ERR_MEMORY on overflow. */
tb_status tb_plan_grow(tb_ctx *ctx, const tb_plan *p, size_t bytes,
                       size_t *total, size_t *at);

/** tb_plan_place - decides where everything stands; fills the offsets of all
 * steps and the sizes of saved and work. */
tb_status tb_plan_place(tb_ctx *ctx, tb_plan *p);

/** tb_plan_turns - which ropes turn in place. */
void tb_plan_turns(tb_plan *p);

/** tb_plan_angles - those of all ropes, as far as no run changes them. */
tb_status tb_plan_angles(tb_ctx *ctx, tb_plan *p);

/** tb_plan_segments - who runs with whom: steps' fwd and bwd, and sizes. */
void tb_plan_segments(tb_plan *p);

/** Row parts that wait for the end of their segment. */
typedef struct tb_pending {
    tb_ctx *ctx;
    const tb_run *r;
    bool back;
    int segment;
    tb_rowcall *calls; /* in work */
    size_t n, rows;
    size_t used; /* scratch */
} tb_pending;

tb_pending tb_pending_make(tb_ctx *ctx, const tb_run *r, bool back);
/** tb_pending_enter - runs what waits if this is another segment. */
tb_status tb_pending_enter(tb_pending *q, int segment);
/** tb_pending_add - one more call; `scratch` bytes of it are its own. */
void tb_pending_add(tb_pending *q, const tb_op *op, tb_rows_fn rows,
                    const tb_opcall *c, size_t scratch);
/** tb_pending_run - now; in forward TB_ERR_INPUT as tb_plan_forward. */
tb_status tb_pending_run(tb_pending *q);

/** tb_plan_check - has every row of this call a value? */
tb_status tb_plan_check(tb_ctx *ctx, const tb_run *r, const tb_op *op,
                        const tb_opcall *c);

/** tb_past_attend - forward of a node that keeps keys and values. */
void tb_past_attend(const tb_run *r, int node, const tb_opcall *call);

/** tb_plan_leaf - data or parameter: nothing to run. */
bool tb_plan_leaf(const tb_plan *p, int node);

/** tb_plan_saves - has a call of this op a saved block? */
bool tb_plan_saves(const tb_plan *p, const tb_op *op);

/** tb_plan_stops - same value, no derivative: stop. (An op that computes may
 * have no Jacobian in the streams and still pass to a parameter: embed.) */
bool tb_plan_stops(const tb_op *op);

/** tb_plan_data - input i of this op has no derivative: a mask. */
bool tb_plan_data(const tb_op *op, int i);

/** tb_plan_reads_again - is input i one of several that read the same value?
 * Their gradients add up in one place, so none of them may be written over what
 * another left. */
bool tb_plan_reads_again(const tb_node *n, int i);

/** tb_plan_through - input i of this node gets the node's gradient as it is:
 * a sum of terms that look like it. */
bool tb_plan_through(const tb_plan *p, int node, int i);

/** tb_plan_storage - where a value that the plan computes stands. */
void *tb_plan_storage(const tb_run *r, const tb_step *s);

/** tb_plan_call - the call of a node: sizes, attributes, values, saved block,
 * scratch, random stream. `forward`: values in work are still there; later
 * they are NULL, so that an op that reads what it did not ask for is found. */
void tb_plan_call(tb_ctx *ctx, const tb_run *r, int node, bool forward,
                  tb_opcall *c);

#endif
