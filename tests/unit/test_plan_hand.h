/* SPDX-License-Identifier: MIT */
/* Graphs built by hand, and a rig that owns everything one run of a plan
 * needs. Workspace ends at an unmapped page and starts as NaN. */
#ifndef TB_TEST_PLAN_HAND_H
#define TB_TEST_PLAN_HAND_H

#include "plan/plan.h"
#include "tb_test.h"

enum { HAND_NODES = 64, HAND_SLOTS = 8 };

typedef struct hand {
    tb_graph g;
    tb_node nodes[HAND_NODES];
    tb_param params[HAND_SLOTS * 2];
    tb_boundary boundaries[HAND_SLOTS];
    int inputs[HAND_SLOTS];
    tb_output outputs[HAND_SLOTS];
} hand;

static inline void hand_init(hand *h)
{
    memset(h, 0, sizeof(*h));
    h->g.nodes = h->nodes;
    h->g.params = h->params;
    h->g.boundaries = h->boundaries;
    h->g.inputs = h->inputs;
    h->g.outputs = h->outputs;
}

static inline int hand_node(hand *h, const tb_op *op, tb_shape shape)
{
    int i = h->g.nnodes++;
    h->nodes[i] =
        (tb_node){.op = op, .shape = shape, .region = -1, .param = -1};
    return i;
}

static inline int hand_input(hand *h, tb_shape_kind kind, size_t width)
{
    const tb_op *op = kind == TB_SHAPE_TOKENS ? &tb_op_tokens : &tb_op_input;
    int i = hand_node(h, op, (tb_shape){kind, width, 1});
    h->inputs[h->g.ninputs++] = i;
    return i;
}

static inline int hand_stream(hand *h, size_t width)
{
    return hand_input(h, TB_SHAPE_STREAM, width);
}

static inline int hand_param(hand *h, tb_shape_kind kind, size_t height,
                             size_t width)
{
    tb_shape shape = {kind, width, kind == TB_SHAPE_MATRIX ? height : 1};
    int i = hand_node(h, &tb_op_param, shape);
    h->nodes[i].param = h->g.nparams;
    h->params[h->g.nparams++] =
        (tb_param){.name = "p", .shape = shape, .node = i};
    return i;
}

static inline int hand_matrix(hand *h, size_t out, size_t in)
{
    return hand_param(h, TB_SHAPE_MATRIX, out, in);
}

/* An op over nodes in[0..nin); its shape by its rule. */
static inline int hand_call(hand *h, const tb_op *op, int nin, const int *in,
                            const double *attr)
{
    tb_shape shapes[TB_OP_INPUTS] = {0}, out = {0};
    double values[TB_OP_ATTRS] = {0};
    const char *why = NULL;
    for (int i = 0; i < op->nattr; i++)
        values[i] = attr ? attr[i] : 0;
    for (int i = 0; i < nin; i++)
        shapes[i] = h->nodes[in[i]].shape;
    bool fits = op->shape(shapes, nin, values, &out, &why);
    int n = hand_node(h, op, out);
    h->nodes[n].nin = fits ? nin : -1; /* tb_plan_create refuses it */
    for (int i = 0; i < nin; i++)
        h->nodes[n].in[i] = in[i];
    for (int i = 0; i < op->nattr; i++)
        h->nodes[n].attr[i].value = values[i];
    return n;
}

static inline int hand_1(hand *h, const tb_op *op, int a)
{
    return hand_call(h, op, 1, (int[]){a}, NULL);
}

static inline int hand_2(hand *h, const tb_op *op, int a, int b)
{
    return hand_call(h, op, 2, (int[]){a, b}, NULL);
}

static inline int hand_affine(hand *h, int a, double scale, double offset)
{
    return hand_call(h, &tb_op_affine, 1, (int[]){a},
                     (double[]){scale, offset});
}

/* A norm with its own gain and bias. */
static inline int hand_norm(hand *h, int x, double eps)
{
    size_t d = h->nodes[x].shape.width;
    int gain = hand_param(h, TB_SHAPE_VECTOR, 1, d);
    int bias = hand_param(h, TB_SHAPE_VECTOR, 1, d);
    return hand_call(h, &tb_op_layernorm, 3, (int[]){x, gain, bias}, &eps);
}

static inline int hand_linear(hand *h, int x, size_t out)
{
    int w = hand_matrix(h, out, h->nodes[x].shape.width);
    int bias = hand_param(h, TB_SHAPE_VECTOR, 1, out);
    return hand_call(h, &tb_op_linear, 3, (int[]){x, w, bias}, NULL);
}

static inline void hand_output(hand *h, const char *name, int node)
{
    h->outputs[h->g.noutputs++] = (tb_output){name, node};
}

static inline void hand_boundary(hand *h, int node)
{
    h->boundaries[h->g.nboundaries++] = (tb_boundary){.node = node, .name = ""};
}

/* --- a zoo -------------------------------------------------------------- */

/* F(x) = W2 gelu(W1 x) */
static inline int hand_ffn(hand *h, int x)
{
    size_t d = h->nodes[x].shape.width;
    return hand_linear(h, hand_1(h, &tb_op_gelu, hand_linear(h, x, 2 * d)), d);
}

/* Two pre-norm sublayers: x = x + F(norm(x)). */
static inline void hand_pre(hand *h)
{
    int x = hand_stream(h, 8);
    hand_boundary(h, x);
    for (int i = 0; i < 2; i++) {
        x = hand_2(h, &tb_op_add, x, hand_ffn(h, hand_norm(h, x, 1e-5)));
        hand_boundary(h, x);
    }
    hand_output(h, "x", x);
}

/* Two post-norm sublayers: x = norm(x + F(x)). */
static inline void hand_post(hand *h)
{
    int x = hand_stream(h, 8);
    hand_boundary(h, x);
    for (int i = 0; i < 2; i++) {
        x = hand_norm(h, hand_2(h, &tb_op_add, x, hand_ffn(h, x)), 1e-5);
        hand_boundary(h, x);
    }
    hand_output(h, "x", x);
}

/* C025: x + x (.) x. */
static inline void hand_square(hand *h)
{
    int x = hand_stream(h, 3);
    hand_boundary(h, x);
    int y = hand_2(h, &tb_op_add, x, hand_2(h, &tb_op_mul, x, x));
    hand_boundary(h, y);
    hand_output(h, "x", y);
}

/* Attention with shared input of q, k and v, LayerScale, dropout. */
static inline void hand_attention(hand *h)
{
    int x = hand_stream(h, 8);
    hand_boundary(h, x);
    int n = hand_norm(h, x, 1e-5);
    int q = hand_linear(h, n, 8);
    int a =
        hand_call(h, &tb_op_mha, 3, (int[]){q, n, n}, (double[]){2, 2, 1, 0});
    int d = hand_call(h, &tb_op_drop, 1, (int[]){hand_linear(h, a, 8)},
                      (double[]){0.25});
    int scale = hand_param(h, TB_SHAPE_VECTOR, 1, 8);
    int y = hand_2(h, &tb_op_add, x, hand_2(h, &tb_op_mul, scale, d));
    hand_boundary(h, y);
    hand_output(h, "x", y);
}

/* A gate made once from a parameter before the first boundary and used in
 * both pieces; chains of sums; identity. */
static inline void hand_gated(hand *h)
{
    int s = hand_param(h, TB_SHAPE_SCALAR, 1, 1);
    int gate = hand_1(h, &tb_op_sigmoid, hand_affine(h, s, 2, 0.5));
    int x = hand_stream(h, 8);
    hand_boundary(h, x);
    for (int i = 0; i < 2; i++) {
        int f = hand_1(h, &tb_op_identity, hand_1(h, &tb_op_tanh, x));
        int g = hand_2(h, &tb_op_mul, gate, f);
        int sum = hand_2(h, &tb_op_add, hand_2(h, &tb_op_add, g, f),
                         hand_2(h, &tb_op_mul, x, x));
        x = hand_2(h, &tb_op_sub, hand_2(h, &tb_op_add, x, sum), g);
        hand_boundary(h, x);
    }
    hand_output(h, "x", x);
}

/* y = x (.) stop(x) + stop(x): the derivative is that of x alone. */
static inline void hand_stopped(hand *h)
{
    int x = hand_stream(h, 8);
    int held = hand_1(h, &tb_op_stop, x);
    hand_output(h, "held", held);
    hand_output(h, "y",
                hand_2(h, &tb_op_add, hand_2(h, &tb_op_mul, x, held), held));
}

/* Two inputs and one nobody reads; outputs that are data, an alias of data,
 * read again inside, one value twice. */
static inline void hand_many(hand *h)
{
    int x = hand_stream(h, 8), z = hand_stream(h, 8);
    (void)hand_stream(h, 4);
    int a = hand_2(h, &tb_op_mul, x, z);
    int b = hand_1(h, &tb_op_silu, a);
    int c = hand_2(h, &tb_op_add, b, b);
    hand_output(h, "a", a);
    hand_output(h, "x", x);
    hand_output(h, "same", hand_1(h, &tb_op_identity, x));
    hand_output(h, "b", b);
    hand_output(h, "c", c);
    hand_output(h, "b again", hand_1(h, &tb_op_identity, b));
    hand_output(h, "a again", a);
}

/* y = W softmax(x / s): both ops read what they computed. */
static inline void hand_ratio(hand *h)
{
    int x = hand_stream(h, 8);
    int s = hand_param(h, TB_SHAPE_SCALAR, 1, 1);
    int half = hand_affine(h, hand_1(h, &tb_op_sigmoid, s), 1, 0.5);
    int ratio = hand_2(h, &tb_op_div, x, half);
    hand_output(h, "y", hand_linear(h, hand_1(h, &tb_op_softmax, ratio), 8));
}

/* Tokens to loss: embedding, positions, norm, tied head. */
static inline void hand_loss(hand *h)
{
    int tokens = hand_input(h, TB_SHAPE_TOKENS, 1);
    int targets = hand_input(h, TB_SHAPE_TOKENS, 1);
    int table = hand_matrix(h, 11, 8), where = hand_matrix(h, 8, 8);
    int x = hand_2(h, &tb_op_position, hand_2(h, &tb_op_embed, tokens, table),
                   where);
    int logits = hand_2(h, &tb_op_linear, hand_norm(h, x, 1e-5), table);
    hand_output(h, "logits", logits);
    hand_output(h, "loss", hand_2(h, &tb_op_xent, logits, targets));
}

typedef struct hand_kind {
    const char *name;
    void (*make)(hand *h);
    bool stops; /* no difference quotient equals its derivative */
} hand_kind;

static const hand_kind hand_zoo[] = {
    {"pre", hand_pre, false},       {"post", hand_post, false},
    {"square", hand_square, false}, {"attention", hand_attention, false},
    {"gated", hand_gated, false},   {"many", hand_many, false},
    {"loss", hand_loss, false},     {"stopped", hand_stopped, true},
    {"ratio", hand_ratio, false},
};

/* --- a rig -------------------------------------------------------------- */

typedef struct rig {
    tb_test *T;
    const tb_graph *g;
    tb_dtype dtype;
    tb_plan *plan;
    tb_run run;
    void *inputs[HAND_SLOTS], *params[HAND_SLOTS * 2], *outputs[HAND_SLOTS];
    void *gout[HAND_SLOTS], *gin[HAND_SLOTS], *gparams[HAND_SLOTS * 2];
    void *tin[HAND_SLOTS], *tparams[HAND_SLOTS * 2], *tout[HAND_SLOTS];
} rig;

enum { RIG_BATCH = 2, RIG_TIME = 4 };

static inline size_t rig_count(const rig *r, int node)
{
    return tb_shape_count(r->g->nodes[node].shape, RIG_BATCH, RIG_TIME);
}

static inline size_t rig_bytes(const rig *r, int node)
{
    bool ids = r->g->nodes[node].shape.kind == TB_SHAPE_TOKENS;
    return rig_count(r, node) * (ids ? 4 : tb_dtype_size(r->dtype));
}

/* Guarded, 64-byte aligned where the size allows, every byte 0xff: NaN. */
static inline void *rig_poison(tb_test *T, size_t bytes)
{
    void *p = tb_test_guarded(T, (bytes + 63) / 64 * 64);
    memset(p, 0xff, (bytes + 63) / 64 * 64);
    return p;
}

static inline void rig_dirty(rig *r, bool saved)
{
    memset(r->run.work, 0xff, tb_plan_work_bytes(r->plan));
    if (saved)
        memset(r->run.saved, 0xff, tb_plan_saved_bytes(r->plan));
}

static inline void rig_fill(rig *r, void *x, int node)
{
    size_t n = rig_count(r, node);
    if (r->g->nodes[node].shape.kind == TB_SHAPE_TOKENS)
        for (size_t i = 0; i < n; i++)
            ((int32_t *)x)[i] = (int32_t)(i * 7 % 11);
    else
        tb_test_fill(r->T, r->dtype, x, n);
}

static inline void rig_slot(rig *r, int node, void **value, void **grad,
                            void **tangent)
{
    *value = rig_poison(r->T, rig_bytes(r, node));
    *grad = rig_poison(r->T, rig_bytes(r, node));
    *tangent = rig_poison(r->T, rig_bytes(r, node));
    rig_fill(r, *value, node);
    rig_fill(r, *tangent, node);
}

/* Everything for one graph; false (and the test has failed) if no plan. */
static inline bool rig_make(rig *r, tb_test *T, const hand *h, tb_dtype dtype,
                            unsigned passes)
{
    *r = (rig){.T = T, .g = &h->g, .dtype = dtype};
    const tb_plan_spec spec = {.graph = &h->g,
                               .batch = RIG_BATCH,
                               .time = RIG_TIME,
                               .dtype = dtype,
                               .passes = passes,
                               .name = "hand"};
    if (tb_plan_create(T->ctx, &spec, &r->plan) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
        return false;
    }
    for (int i = 0; i < h->g.ninputs; i++)
        rig_slot(r, h->inputs[i], &r->inputs[i], &r->gin[i], &r->tin[i]);
    for (int i = 0; i < h->g.nparams; i++)
        rig_slot(r, h->params[i].node, &r->params[i], &r->gparams[i],
                 &r->tparams[i]);
    for (int i = 0; i < h->g.noutputs; i++) {
        rig_slot(r, h->outputs[i].node, &r->outputs[i], &r->gout[i],
                 &r->tout[i]);
        rig_fill(r, r->gout[i], h->outputs[i].node);
    }
    r->run = (tb_run){.plan = r->plan,
                      .saved = rig_poison(T, tb_plan_saved_bytes(r->plan)),
                      .work = rig_poison(T, tb_plan_work_bytes(r->plan)),
                      .inputs = (const void *const *)r->inputs,
                      .outputs = r->outputs,
                      .params = (const void *const *)r->params,
                      .seed = 5,
                      .step = 3,
                      .scope = "layers.3"};
    return true;
}

static inline void rig_free(rig *r)
{
    tb_plan_destroy(r->T->ctx, r->plan);
}

static inline void rig_zero_gparams(rig *r)
{
    for (int i = 0; i < r->g->nparams; i++)
        memset(r->gparams[i], 0, rig_bytes(r, r->g->params[i].node));
}

/* Forward and whole backward, from a dirty workspace each time. */
static inline tb_status rig_forward(rig *r)
{
    rig_dirty(r, true);
    return tb_plan_forward(r->T->ctx, &r->run);
}

static inline tb_status rig_backward(rig *r, int hi, int lo, bool cut,
                                     const void *gout, void *gin, bool params)
{
    bool whole = hi < 0;
    rig_dirty(r, false);
    const tb_bwd b = {.hi = hi,
                      .lo = lo,
                      .cut = cut,
                      .gout = whole ? (const void *const *)r->gout : &gout,
                      .gin = whole ? r->gin : &gin,
                      .gparams = params ? r->gparams : NULL};
    return tb_plan_backward(r->T->ctx, &r->run, &b);
}

static inline double rig_dot(const rig *r, const void *a, const void *b,
                             int node)
{
    double sum = 0;
    for (size_t i = 0; i < rig_count(r, node); i++)
        sum += tb_test_get(r->dtype, a, i) * tb_test_get(r->dtype, b, i);
    return sum;
}

static inline bool rig_is_ids(const rig *r, int node)
{
    return r->g->nodes[node].shape.kind == TB_SHAPE_TOKENS;
}

#endif
