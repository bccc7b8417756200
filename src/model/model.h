/* SPDX-License-Identifier: MIT */
/* A language model: parts in running order (stem, N blocks, tail; of two
 * stacks first the encoder's stem, blocks and final) joined by the values they
 * make. All parameters are one flat aligned buffer with a
 * table of named views; gradients and optimizer state are laid out the same
 * way. */
#ifndef TB_MODEL_MODEL_H
#define TB_MODEL_MODEL_H

#include "plan/plan.h"

/** One named parameter. offset and count are in elements. */
typedef struct tb_view {
    const char *name; /* "layers.0.attn.q.weight" */
    tb_role role;
    tb_shape shape;
    size_t offset, count; /* offset is a multiple of 16 elements */
    size_t layer;         /* from 1; 0: stem or tail */
    const char *rule;     /* how it starts, as printed: "xavier(1)" */
} tb_view;

/** What a weight keeps to after every step. */
typedef enum tb_after {
    TB_AFTER_NOTHING,
    TB_AFTER_ROWS,   /* of length 1 */
    TB_AFTER_COLUMNS /* of length 1 */
} tb_after;

/** What a part of the model does. The layers of a side stand together: its
 * stem before them, its final part or the tail behind them. */
typedef enum tb_part_role {
    TB_PART_STEM,  /* tokens -> embedding -> stem: */
    TB_PART_LAYER, /* one block */
    TB_PART_FINAL, /* final: of a side without a head */
    TB_PART_TAIL   /* final: -> head -> loss */
} tb_part_role;

/** Of two stacks, the one with the head or the one under it; a single stack is
 * on the first. */
typedef enum tb_side { TB_SIDE_DECODER, TB_SIDE_ENCODER, TB_SIDES } tb_side;

typedef struct tb_model {
    tb_ctx *ctx;
    tb_arena arena;
    const tb_block *block; /* borrowed */
    tb_sizes sizes;        /* its strings are the model's own */
    tb_dtype dtype;        /* of values and weights: TB_F32 or TB_F64 */
    tb_dtype products;     /* of products with weights: that, or TB_BF16 */
    size_t nviews;
    tb_view *views;
    bool outline;       /* the first layer of each section stands for all */
    size_t nnames;      /* weights of all layers, made or not */
    size_t nelements;   /* of the flat buffer, padding included (kept zero) */
    size_t nparameters; /* tied weights once; not padding, not buffers */
    void *params;       /* [nelements]; NULL before tb_model_alloc, _init or
                           _bind */
    size_t nparts, nkinds;
    struct tb_part *parts; /* in running order; the last is the tail */
    size_t nvalues;
    struct tb_value *values; /* in the order they are made */
    size_t logits, loss;     /* values */
    struct tb_bound *bound;  /* plans and buffers; NULL before tb_model_bind */
    struct tb_profile *profile; /* of every run; NULL: none */
    struct tb_start *starts;    /* [nviews]: how each view starts */
    tb_after *after;            /* [nviews]: what it keeps to */
    size_t *index;              /* hash table of the view names */
    size_t nindex;
} tb_model;

/** Names in a model, and blocks: some 300 bytes each. */
enum { TB_MODEL_NAMES = 2000000 };

/** tb_model_create - build graphs and views and resolve the init rules;
 * params are not allocated yet, so that a model too large to hold can be
 * counted and explained. Nothing of `given` is kept. */
tb_status tb_model_create(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *given, tb_dtype dtype,
                          tb_model **out);
/** tb_model_outline - the same for a stack of any depth, to be explained only:
 * of the layers of one section the first is made and stands for all. Parts
 * do not count as layers then, and it is never bound. nparameters is that of
 * the whole stack, its nnames (weights of the layers) tells whether the whole
 * can be made. */
tb_status tb_model_outline(tb_ctx *ctx, const tb_block *b,
                           const tb_settings *given, tb_model **out);
void tb_model_destroy(tb_model *m);

/** tb_model_alloc - params, all zero, if there are none yet: for weights that
 * come from a file. */
tb_status tb_model_alloc(tb_model *m);

/** tb_model_init - every value a pure function of (seed, name, element) by
 * the block's init: rules over the prelude's; then, where a rule is
 * `profiled`, one forward pass on random tokens. */
tb_status tb_model_init(tb_model *m, uint64_t seed);

/** tb_model_keep_draws - from now on up to `most` of the normal numbers that
 * tb_model_init draws are kept for models made later; 0 forgets them. Nothing
 * is kept unless this is called. */
tb_status tb_model_keep_draws(tb_ctx *ctx, size_t most);

/** tb_model_init_view - the same for one view, into out[count] of the model's
 * dtype: a stack too deep to hold is made layer by layer. A profiled view is
 * 1 before tb_model_init, and then what the pass found. */
tb_status tb_model_init_view(tb_model *m, const tb_view *v, uint64_t seed,
                             void *out);

/** tb_model_after - the rules of after: on all parameters: once after each
 * step of the optimizer. The start values keep to them. */
void tb_model_after(tb_model *m);

const tb_view *tb_model_view(const tb_model *m, const char *name);

/** tb_model_smooth_labels - the loss of the head is that of smoothed targets
 * from now on; e in [0, 1), 0: as they are. */
void tb_model_smooth_labels(tb_model *m, double e);

/* --- parts: p counts from 0 to m->nparts - 1, in running order -------------
 */

/** In a model of one stack layer l is part l: the stem is part 0. */
const tb_graph *tb_model_graph(const tb_model *m, size_t p);
tb_part_role tb_model_role(const tb_model *m, size_t p);
tb_side tb_model_side(const tb_model *m, size_t p);
/** tb_model_layer - l of its side, from 1; 0: no layer. */
size_t tb_model_layer(const tb_model *m, size_t p);
/** Of an outline: how many blocks the part stands for, l of the last. */
size_t tb_model_blocks(const tb_model *m, size_t p);
size_t tb_model_last(const tb_model *m, size_t p);
/** tb_model_scope - "stem", "layers.0", ..., "tail"; of two stacks
 * "encoder.layers.0" and so on. */
const char *tb_model_scope(const tb_model *m, size_t p);
/** tb_model_part_view - the view of the i-th param of its graph. */
const tb_view *tb_model_part_view(const tb_model *m, size_t p, size_t i);
/** Its attributes, per node of its graph. */
const double (*tb_model_attrs(const tb_model *m, size_t p))[TB_OP_ATTRS];

/** tb_model_tail - the part with the head. */
size_t tb_model_tail(const tb_model *m);
/** tb_model_layers - the layers below a tail or final part: parts first, ...,
 * first + n - 1. The stem is part first - 1. */
typedef struct tb_layers {
    size_t first, n;
} tb_layers;
tb_layers tb_model_layers(const tb_model *m, size_t end);

/** The value that input i of part p reads, -1: data; and that output o is.
 * Values count from 0 to m->nvalues - 1. */
int tb_model_in_value(const tb_model *m, size_t p, size_t i);
size_t tb_model_out_value(const tb_model *m, size_t p, size_t o);
/** tb_model_value_count - elements of a value in the model's binding. */
size_t tb_model_value_count(const tb_model *m, size_t v);

/** tb_model_bind - plans and activation buffers for batch x time and passes;
 * replaces an earlier binding, or keeps one that fits. All buffers are one
 * allocation; forward and backward allocate nothing. Without passes nothing is
 * kept from layer to layer. TB_ERR_ARG if time is longer than the context. */
tb_status tb_model_bind(tb_model *m, size_t batch, size_t time,
                        unsigned passes);
/** tb_model_bind_source - the same where the encoder's rows have `source`
 * tokens; tb_model_bind: as many as the decoder's. */
tb_status tb_model_bind_source(tb_model *m, size_t batch, size_t time,
                               size_t source, unsigned passes);
/** tb_model_memory - bytes of that allocation, before it is made, and how many
 * of them hold what forward leaves for other passes. */
tb_status tb_model_memory(tb_model *m, size_t batch, size_t time, size_t source,
                          unsigned passes, size_t *bytes, size_t *saved);
/** FLOPs of the matrix products of one step: forward, and twice that for
 * backward if the binding has TB_PASS_BWD. 0 without a binding. */
double tb_model_flops(const tb_model *m);

typedef struct tb_batch {
    const int32_t *tokens, *targets; /* [B,T]; targets < 0: not counted; NULL:
                                        no loss wanted */
    uint64_t seed, step;             /* dropout's randomness */
    const int32_t *source; /* [B,S]: what the encoder of TB_STACKS_BOTH reads;
                              NULL in a single stack */
    /* of models with settings.padding: 1 a token, 0 padding, which attention
     * does not see; NULL: no padding. A padded position computes like any
     * other, so its target must be < 0 */
    const unsigned char *keep;        /* [B,T], of tokens */
    const unsigned char *source_keep; /* [B,S] */
} tb_batch;

/** tb_model_forward - logits and, if targets, mean loss (natural log); `loss`
 * may be NULL. A non-finite loss is TB_OK here: callers decide. TB_ERR_INPUT
 * for a token or target beyond the vocabulary. */
tb_status tb_model_forward(tb_model *m, const tb_batch *b, double *loss);

/** tb_model_profile - the start values of `profiled` parameters, from one
 * forward pass over b's tokens [batch,time], lowest sublayer first. The other
 * weights must have their values. Leaves the model's binding as it is. */
tb_status tb_model_profile(tb_model *m, const tb_batch *b, size_t batch,
                           size_t time);

/** tb_model_logits - [B,T,V] of the last forward. */
const void *tb_model_logits(const tb_model *m);
/** tb_model_loss - of the last forward that had targets. */
double tb_model_loss(const tb_model *m);

/** tb_model_backward - gradient of the mean loss, added to grads
 * [nelements]. Needs TB_PASS_BWD and a forward of the same batch. */
tb_status tb_model_backward(tb_model *m, const tb_batch *b, void *grads);
/** tb_model_gradients - the same, overwriting grads (of learned views; those of
 * role buffer are left alone). */
tb_status tb_model_gradients(tb_model *m, const tb_batch *b, void *grads);

/** tb_model_quiet_attrs - attributes of part l for use, not training: every
 * dropout rate 0, also those fixed in the text; labels as they are, not
 * smoothed; running statistics, frozen.
 * Into out[nnodes]. */
void tb_model_quiet_attrs(const tb_model *m, size_t l,
                          double (*out)[TB_OP_ATTRS]);
/** tb_model_quiet - the model itself is run so from now on. */
void tb_model_quiet(tb_model *m);

/** tb_model_step - which statistics powernorm uses in training step `step`
 * (from 1): the batch's in its warm-up, then the running ones. Before the
 * step's forward; models start as in step 1. */
void tb_model_step(tb_model *m, size_t step);
/** tb_model_update - moves running statistics, the views of role buffer, after
 * a training step's forward and backward of the same batch. */
tb_status tb_model_update(tb_model *m, const tb_batch *b);

/** tb_model_first_nonfinite - where the first non-finite value of the last
 * forward stands: "layers.4" and so on, NULL if all are finite. A binding
 * without passes keeps only the last two layers' outputs. */
const char *tb_model_first_nonfinite(tb_model *m);

/* --- for flow: one part at a time ----------------------------------------- */

/** tb_model_run - the run of part p: its plan and where its data is. */
tb_status tb_model_run(tb_model *m, size_t p, const tb_batch *b, tb_run *out);
/** tb_model_stream - x after part p, [B,T,d]. */
void *tb_model_stream(tb_model *m, size_t p);
/** tb_model_gparams - pointers into grads for part p's params, in its graph's
 * order; valid until the next call. */
void *const *tb_model_gparams(tb_model *m, size_t p, void *grads);

/* --- elements of either type --------------------------------------------- */

double tb_elem_get(tb_dtype t, const void *x, size_t i);
void tb_elem_set(tb_dtype t, void *x, size_t i, double v);
/** tb_elem_at - address of element i. */
void *tb_elem_at(tb_dtype t, void *x, size_t i);

#endif
