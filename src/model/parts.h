/* SPDX-License-Identifier: MIT */
/* Inside the model room: the parts of a stack, how weights start, and what a
 * binding holds. */
#ifndef TB_MODEL_PARTS_H
#define TB_MODEL_PARTS_H

#include "model/model.h"

#include "graph/init_rules.h"

/* --- parts --------------------------------------------------------------- */

/** How long a value is in time: as the targets, or as the source that an
 * encoder reads. */
typedef enum tb_time {
    TB_TIME_TARGET,
    TB_TIME_SOURCE,
    TB_TIME_CLASSES
} tb_time;

/** Data of the caller's batch, where an input is no value of another part. */
enum {
    TB_AT_TOKENS = -1,
    TB_AT_TARGETS = -2,
    TB_AT_SOURCE = -3,
    TB_AT_KEEP = -4,
    TB_AT_SOURCE_KEEP = -5
};

/** One step of the model, in running order. */
typedef struct tb_part {
    const tb_graph *graph;
    size_t kind; /* parts of one kind share graph and plan */
    tb_part_role role;
    tb_side side;
    tb_time time;
    size_t layer;      /* l, from 1; 0: no layer */
    size_t blocks;     /* it stands for, and l of the last of them: in an */
    size_t last;       /* outline more than one */
    const char *scope; /* "layers.3" */
    size_t *view;      /* per param of the graph */
    double (*attr)[TB_OP_ATTRS];
    int *in;     /* per input: a value made before, or TB_AT_* */
    size_t *out; /* per output: the value it is */
} tb_part;

/** What a part makes and later parts read. */
typedef struct tb_value {
    const char *name;
    size_t part, last; /* made by, read last by; the same: not read */
    tb_shape shape;
    tb_time time;
} tb_value;

/** tb_parts_build - graphs, parts, and the values that join them. */
tb_status tb_parts_build(tb_model *m);

/* --- how weights start --------------------------------------------------- */

typedef enum tb_start_kind {
    TB_START_CONST,      /* value */
    TB_START_NORMAL,     /* standard deviation `value` */
    TB_START_UNIFORM,    /* in [-value, value) */
    TB_START_ORTHOGONAL, /* value times rows or columns of length 1 */
    TB_START_IDENTITY,   /* 1 on the diagonal, else 0 */
    TB_START_ONEHOT      /* 1 at element number `value`, from 1, else 0 */
} tb_start_kind;

typedef struct tb_start {
    tb_start_kind kind;
    double value;
    bool profiled; /* a CONST: 1, after a profiling pass what that found */
} tb_start;

/** What the rules need to know of one view beside its name and shape. */
typedef struct tb_owner {
    const tb_graph *graph;
    int param;
} tb_owner;

/**
 * tb_starts_resolve - the start of every view: prelude, then the block's
 * init: rules, then sizes->s.init, the last match wins. Fills views[i].rule
 * and out[i]; texts live in `arena`. In an outline a rule may name a
 * layer that was not made.
 */
tb_status tb_starts_resolve(tb_ctx *ctx, tb_arena *arena, const tb_block *b,
                            const tb_sizes *sizes, tb_view *views,
                            const tb_owner *owners, size_t n, bool outline,
                            tb_start *out);

/* --- what weights keep to ------------------------------------------------- */

/** tb_after_resolve - m->after from the block's after: lines, the last match
 * wins; adds them to views[i].rule. */
tb_status tb_after_resolve(tb_model *m);
/** tb_after_view - the rule of one view on its values at w. */
void tb_after_view(const tb_model *m, const tb_view *v, void *w);

/** tb_glob_match - does the glob of an init rule mean this view? (rules.c
 * says how.) */
bool tb_glob_match(const char *glob, const tb_view *v);

/** tb_profile_product - the node that multiplies this profiled scalar or
 * vector with a stream, in a sum; -1 with *why where it stands otherwise. */
int tb_profile_product(const tb_graph *g, int param, const char **why);

/** tb_model_profile_random - tb_model_profile on one sequence of random tokens,
 * as long as the context. */
tb_status tb_model_profile_random(tb_model *m, uint64_t seed);

/** tb_draws_normal - n normal numbers of variance 1 out of what
 * tb_model_keep_draws keeps, drawn where they are not there yet; NULL where
 * they are not to be kept. */
const double *tb_draws_normal(tb_ctx *ctx, tb_rng from, size_t n);

/** tb_start_fill - the values of one view, out[count]. */
tb_status tb_start_fill(tb_ctx *ctx, tb_dtype dtype, const tb_start *s,
                        const char *name, tb_shape shape, uint64_t seed,
                        void *out);

/* --- a binding ----------------------------------------------------------- */

/** Cuts 64-byte aligned pieces off one allocation; without a base it only
 * measures. */
typedef struct tb_slab {
    unsigned char *base;
    size_t used;
    bool overflow;
} tb_slab;

void *tb_slab_take(tb_slab *s, size_t n, size_t size);

/** Buffers that values of one size take in turn: who gets which is decided
 * once, where they lie when the slab is cut. */
typedef struct tb_pool {
    struct tb_lot *lots;
    size_t nlots;
    size_t *of_value, *of_grad; /* [nvalues]: lot number + 1, 0: none */
} tb_pool;

/** Pointer tables of one part. */
typedef struct tb_io {
    void *saved;
    const void **inputs;
    void **outputs;
    const void **params;
} tb_io;

typedef struct tb_bound {
    tb_arena arena;
    size_t batch, time[TB_TIME_CLASSES];
    unsigned passes;
    bool growing; /* the encoder's parts have no passes */
    size_t nplans;
    tb_plan **plans; /* by kind */
    void *slab;
    size_t bytes;
    tb_io *io;         /* [nparts] */
    void **value;      /* [nvalues] */
    void **grad;       /* [nvalues], BWD only: NULL where nothing reads it */
    bool *has;         /* [nvalues]: its gradient holds something by now */
    tb_pool pool;      /* the buffers behind value and grad */
    const void **gout; /* scratch tables, wide enough for every part */
    void **gin, **gparams;
    bool *adds, *fresh;
    bool *begun; /* [nviews]: its gradient holds something by now */
    void *work, *one;
    int32_t *no_targets;
    void *keep[TB_TIME_CLASSES]; /* masks of padding, as the plans read them */
    bool ran;
} tb_bound;

/** tb_model_bind_growing - for tb_cache: one new token at a time keeps every
 * value but the encoder's own, several none. */
tb_status tb_model_bind_growing(tb_model *m, size_t batch, size_t time,
                                size_t source);

void tb_bound_destroy(tb_ctx *ctx, tb_bound *b);

/** tb_pool_plan - which values and gradients share a buffer, by lifetime.
 * TB_ERR_MEMORY also where a size overflows. */
tb_status tb_pool_plan(const tb_model *m, tb_bound *b);
/** tb_pool_place - cuts the buffers off the slab and fills value and grad. */
void tb_pool_place(const tb_model *m, tb_bound *b, tb_slab *s);
/** tb_pool_values - bytes of the values among them, where all are kept. */
size_t tb_pool_values(const tb_model *m, const tb_bound *b);

#endif
