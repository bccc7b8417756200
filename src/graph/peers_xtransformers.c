/* SPDX-License-Identifier: MIT */
/* x-transformers 2.26: keywords of Decoder(...) and Encoder(...), and one of
 * TransformerWrapper. x_transformers/x_transformers.py. */
#include "graph/peers.h"

#include "base/number.h"

static bool is_not_one(const char *number)
{
    double v;
    return tb_double_parse(number, strlen(number), &v) && v != 1;
}

#define X_PRE      "pre_norm"
#define X_SANDWICH "sandwich_norm"
#define X_BOTH     "pre_and_post_norm"
#define X_FINAL    "pre_norm_has_final_norm"
#define X_EMB      "post_emb_norm"
#define X_SKIP     "scale_residual"
#define X_CONST    "scale_residual_constant"
#define X_GATE     "gate_residual"
#define X_LAYER    "use_layerscale"
#define X_START    "layerscale_init_value"
#define X_RMS      "use_rmsnorm"
#define X_SCALE    "use_scalenorm"
#define X_SIMPLE   "use_simple_rmsnorm"
#define X_TANH     "use_dynamic_tanh"
#define X_ALPHA    "dynamic_tanh_init_alpha"
#define X_INNER    "ff_post_act_ln"
#define X_GLU      "ff_glu"
#define X_SWISH    "ff_swish"
#define X_ROPE     "rotary_pos_emb"
#define X_ROPE_DIM "rotary_emb_dim"
#define X_VALUE    "add_value_residual"
#define X_LEARNED  "learned_value_residual_mix"

#define FLAG(name, start, parts, always)                                       \
    {                                                                          \
        name, NULL, TB_PEER_FLAG, NULL, start, parts, always                   \
    }
#define NUMBER(name, start, parts)                                             \
    {                                                                          \
        name, NULL, TB_PEER_NUMBER, NULL, start, parts, false                  \
    }

static const tb_peer_key x_keys[] = {
    FLAG(X_PRE, "true", TB_PEER_BLOCK | TB_PEER_FINAL, true),
    FLAG(X_SANDWICH, "false", TB_PEER_BLOCK, false),
    FLAG(X_BOTH, "false", TB_PEER_BLOCK | TB_PEER_FINAL, false),
    FLAG(X_FINAL, "true", TB_PEER_FINAL, false),
    FLAG(X_RMS, "false", TB_PEER_ALL, false),
    FLAG(X_SCALE, "false", TB_PEER_ALL, false),
    FLAG(X_SIMPLE, "false", TB_PEER_ALL, false),
    FLAG(X_TANH, "false", TB_PEER_ALL, false),
    NUMBER(X_ALPHA, "1", 0),
    FLAG(X_SKIP, "false", TB_PEER_BLOCK, false),
    NUMBER(X_CONST, "1", TB_PEER_BLOCK),
    FLAG(X_GATE, "false", TB_PEER_BLOCK, false),
    FLAG(X_LAYER, "false", TB_PEER_BLOCK, false),
    NUMBER(X_START, "0", TB_PEER_BLOCK),
    FLAG(X_INNER, "false", TB_PEER_BLOCK, false),
    FLAG(X_GLU, "false", TB_PEER_BLOCK, false),
    FLAG(X_SWISH, "false", 0, false),
    FLAG(X_ROPE, "false", TB_PEER_BLOCK, false),
    NUMBER(X_ROPE_DIM, "0", 0),
    FLAG(X_EMB, "false", TB_PEER_STEM, false),
    FLAG(X_VALUE, "false", TB_PEER_BLOCK | TB_PEER_STEM, false),
    FLAG(X_LEARNED, "true", 0, false),
    {0}};

typedef struct x_norm {
    const char *key, *model;
} x_norm;

/* Theirs divide by max(length, 1e-12), whatever the kind. */
static const x_norm x_norms[] = {
    {X_RMS, "    norm = rmsnorm\n    eps = 1e-12\n    eps_mode = clamp\n"},
    {X_SIMPLE, "    norm = rmsnorm\n    eps = 1e-12\n    eps_mode = clamp\n"},
    {X_SCALE, "    norm = scalenorm\n    eps = 1e-12\n    eps_mode = clamp\n"},
    {X_TANH, "    norm = dyt\n"},
};

static bool x_on(const tb_peer_set *set, const char *key)
{
    return tb_peer_on(&tb_peer_x_transformers, set, key);
}

static const char *x_at(const tb_peer_set *set, const char *key)
{
    return tb_peer_at(&tb_peer_x_transformers, set, key);
}

/* What it asserts, and what it would ignore. */
static tb_status x_refused(tb_peer_text *t, const tb_peer_set *set)
{
    bool pre = x_on(set, X_PRE), gate = x_on(set, X_GATE);
    int kinds = 0;
    for (size_t i = 0; i < TB_LEN(x_norms); i++)
        kinds += x_on(set, x_norms[i].key);
    const struct {
        bool bad;
        const char *why;
    } rules[] = {
        {kinds > 1, "the norms of use_rmsnorm, use_simple_rmsnorm, "
                    "use_scalenorm and use_dynamic_tanh exclude each other"},
        {x_on(set, X_SANDWICH) && !pre, "sandwich_norm needs pre_norm"},
        {x_on(set, X_BOTH) && !pre, "pre_and_post_norm needs pre_norm"},
        {x_on(set, X_TANH) && !pre, "use_dynamic_tanh needs pre_norm"},
        {gate && is_not_one(x_at(set, X_CONST)),
         "gate_residual has no use for scale_residual_constant"},
        {x_on(set, X_VALUE) && gate,
         "a block cannot say add_value_residual with gate_residual"},
    };
    for (size_t i = 0; i < TB_LEN(rules); i++)
        if (rules[i].bad)
            return TB_FAIL(t->ctx, TB_ERR_INPUT, "x-transformers: %s",
                           rules[i].why);
    return TB_OK;
}

/* `finish` sets the second where the search has set the first. */
static tb_status x_check(tb_ctx *ctx, const tb_peer_set *set)
{
    if (!x_on(set, X_VALUE) || !x_on(set, X_LEARNED))
        return TB_OK;
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "x-transformers: learned_value_residual_mix: got True, "
                   "wanted False: a block cannot say weights that depend on "
                   "the token");
}

static void x_sublayers(tb_peer_text *t, const tb_peer_set *set)
{
    bool inner = x_on(set, X_INNER), glu = x_on(set, X_GLU);
    bool layernorm = true;
    for (size_t i = 0; i < TB_LEN(x_norms); i++)
        layernorm &= !x_on(set, x_norms[i].key);
    const char *e = x_on(set, X_SWISH) ? "silu" : "gelu";
    bool rope = x_on(set, X_ROPE), values = x_on(set, X_VALUE);
    if (rope || values)
        tb_buf_printf(&t->defs, "attn(%s) = o(mha(%s, %s))\n",
                      values ? "u" : "x",
                      rope && values ? "rope(q(u)), rope(k(u))"
                      : rope         ? "rope(q(x)), rope(k(x))"
                                     : "q(u), k(u)",
                      values ? "0.5*v1 + 0.5*y" : "v(x)");
    if (!inner && !glu) {
        tb_peer_activation(t, e);
        return;
    }
    e = tb_peer_of(t, glu ? "%s(gate(x))*up(x)" : "%s(up(x))", e);
    if (inner)
        e = tb_peer_norm(t, layernorm ? "norm" : "layernorm", e);
    tb_buf_printf(&t->defs, "ffn(x) = down(%s)\n", e);
}

/* A GRU cell whose input is the branch and whose state is the skip. */
static const char *x_gru(tb_peer_text *t, const char *s, const char *y,
                         const char *skip)
{
    static const char gates[] = "rzn";
    for (int i = 0; i < 3; i++)
        tb_buf_printf(&t->block,
                      "    i%c_%s = linear(d, d)\n    h%c_%s = linear(d, d)\n",
                      gates[i], s, gates[i], s);
    tb_buf_printf(&t->block, "    h0 = %s\n    y = %s\n", skip, y);
    tb_buf_printf(&t->block, "    r = sigmoid(ir_%s(y) + hr_%s(h0))\n", s, s);
    tb_buf_printf(&t->block, "    z = sigmoid(iz_%s(y) + hz_%s(h0))\n", s, s);
    tb_buf_printf(&t->block, "    n = tanh(in_%s(y) + r*hn_%s(h0))\n", s, s);
    return "(1 - z)*n + z*h0";
}

static const char *x_input(tb_peer_text *t, const tb_peer_set *set)
{
    return x_on(set, X_PRE) ? tb_peer_norm(t, "norm", "x") : "x";
}

static void x_sublayer(tb_peer_text *t, const tb_peer_set *set,
                       const char *name, const char *input)
{
    const char *factor = x_at(set, X_CONST);
    const char *e = tb_peer_of(t, "%s(%s)", name, input);
    if (x_on(set, X_LAYER))
        e = tb_peer_of(t, "vector(%s)*%s", x_at(set, X_START), e);
    if (x_on(set, X_SANDWICH))
        e = tb_peer_norm(t, "norm", e);
    const char *skip = x_on(set, X_SKIP) ? "vector(1)*x" : "x";
    if (is_not_one(factor))
        skip = tb_peer_of(t, "%s*%s", factor,
                          x_on(set, X_SKIP) ? "(vector(1)*x)" : "x");
    if (x_on(set, X_GATE))
        e = x_gru(t, name, e, skip);
    else
        e = tb_peer_of(t, "%s + %s", skip, e);
    if (!x_on(set, X_PRE) || x_on(set, X_BOTH))
        e = tb_peer_norm(t, "norm", e);
    tb_buf_printf(&t->block, "    x = %s\n", e);
}

/* Values of the first block, carried on in stream y, are half of all others'.
 */
static void x_values(tb_peer_text *t, const tb_peer_set *set, bool first)
{
    tb_buf_printf(&t->block,
                  "    w = linear(d, d)\n    n = %s\n    v1 = w(n)\n%s",
                  x_input(t, set), first ? "    y = v1\n" : "");
    x_sublayer(t, set, "attn", "n");
    x_sublayer(t, set, "ffn", x_input(t, set));
}

static void x_block(tb_peer_text *t, const tb_peer_set *set)
{
    if (x_on(set, X_VALUE)) {
        tb_buf_puts(&t->stem, "    y = x\n");
        x_values(t, set, true);
        tb_buf_printf(&t->headed, "block[l == 1]:\n%s", tb_buf_str(&t->block));
        tb_buf_clear(&t->block);
        tb_buf_init(&t->block, t->ctx);
        x_values(t, set, false);
    } else if (x_on(set, X_GATE)) {
        x_sublayer(t, set, "attn", x_input(t, set));
        x_sublayer(t, set, "ffn", x_input(t, set));
    } else {
        x_sublayer(t, set, "F", x_input(t, set));
    }
}

static void x_model(tb_peer_text *t, const tb_peer_set *set)
{
    const char *model = t->norms ? "    eps = 1e-5\n" : "";
    for (size_t i = 0; i < TB_LEN(x_norms); i++)
        if (x_on(set, x_norms[i].key))
            model = x_norms[i].model;
    tb_buf_puts(&t->model, model);
    if (x_on(set, X_TANH))
        tb_buf_printf(&t->init, "    *.norm*.alpha: const(%s)\n",
                      x_at(set, X_ALPHA));
    if (x_on(set, X_ROPE))
        tb_buf_puts(&t->model, "    positions = none\n");
}

static tb_status x_write(tb_peer_text *t, const tb_peer_set *set)
{
    bool kind = false;
    TB_TRY(x_refused(t, set));
    for (size_t i = 0; i < TB_LEN(x_norms); i++)
        kind |= x_on(set, x_norms[i].key);
    t->bare = x_on(set, X_SIMPLE) ? "norm" : NULL;
    x_sublayers(t, set);
    x_block(t, set);
    if (x_on(set, X_EMB))
        tb_buf_printf(&t->stem, "    x = %s\n",
                      tb_peer_norm(t, kind ? "layernorm" : "norm", "x"));
    if (x_on(set, X_PRE) && x_on(set, X_FINAL) && !x_on(set, X_BOTH))
        tb_buf_printf(&t->final, "    x = %s\n", tb_peer_norm(t, "norm", "x"));
    x_model(t, set);
    return TB_OK;
}

static void x_finish(tb_arena *a, const tb_peer_look *look, tb_peer_set *set)
{
    const tb_peer *p = &tb_peer_x_transformers;
    if (tb_streq(look->activation, "silu"))
        tb_peer_put(p, set, X_SWISH, "true");
    if (x_on(set, X_TANH) && look->alpha == look->alpha) {
        const char *alpha = tb_arena_printf(a, "%g", look->alpha);
        tb_peer_put(p, set, X_ALPHA, alpha ? alpha : "1");
    }
    if (x_on(set, X_VALUE))
        tb_peer_put(p, set, X_LEARNED, "false");
    if (x_on(set, X_ROPE)) {
        const char *dim = tb_arena_printf(a, "%zu", look->head);
        tb_peer_put(p, set, X_ROPE_DIM, dim ? dim : "0");
    }
}

static const char *x_remark(const tb_peer_look *look, const tb_peer_set *set,
                            int i)
{
    const struct {
        bool holds;
        const char *text;
    } rows[] = {
        {look->layernorm, "its LayerNorm has a gain and no bias"},
        {look->bias, "its attention has no biases; ff_no_bias=True takes "
                     "those of the feed-forward network"},
        {look->by_depth &&
             (is_not_one(x_at(set, X_CONST)) || x_on(set, X_LAYER)),
         "the number is that of this depth"},
        {x_on(set, X_ROPE), "its rotary positions turn neighbours, (2i, 2i+1); "
                            "ours turn (i, i + w/2)"},
        {x_on(set, X_EMB), "post_emb_norm is of TransformerWrapper"},
        {x_on(set, X_SCALE), "its ScaleNorm starts at 1 and multiplies by "
                             "sqrt(d); ours starts there"},
    };
    for (size_t k = 0; k < TB_LEN(rows); k++)
        if (rows[k].holds && i-- == 0)
            return rows[k].text;
    return NULL;
}

static const char *const x_starts[] = {
    "",
    "pre_norm=False",
    "sandwich_norm=True",
    "pre_and_post_norm=True",
    "use_layerscale=True",
    "gate_residual=True",
    "add_value_residual=True, learned_value_residual_mix=False",
    NULL};

const tb_peer tb_peer_x_transformers = {
    .name = "x-transformers",
    .lead = "",
    .shape = "%s=%s",
    .yes = "True",
    .no = "False",
    .gap = ", ",
    .empty = "\"\"",
    .keys = x_keys,
    .starts = x_starts,
    .stacks = 1u << TB_STACKS_DECODER | 1u << TB_STACKS_ENCODER,
    .check = x_check,
    .write = x_write,
    .finish = x_finish,
    .remark = x_remark,
    .activations = "gelu|silu",
};
