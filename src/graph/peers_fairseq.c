/* SPDX-License-Identifier: MIT */
/* fairseq: a flag for each choice, of the decoder of transformer_lm, and of
 * both stacks of transformer. modules/transformer_layer.py,
 * models/transformer/transformer_config.py and transformer_decoder.py. */
#include "graph/peers.h"

/* --- transformer_lm
 * -------------------------------------------------------------- */

#define BEFORE "decoder-normalize-before"
#define FINAL  "no-decoder-final-norm"
#define EMBED  "layernorm-embedding"
#define ATTN   "scale-attn"
#define FC     "scale-fc"
#define HEADS  "scale-heads"
#define RESIDS "scale-resids"
#define ACT    "activation-fn"

static const tb_peer_key fairseq_keys[] = {
    {BEFORE, "pre", TB_PEER_FLAG, NULL, "false", TB_PEER_BLOCK | TB_PEER_FINAL,
     false},
    {FINAL, NULL, TB_PEER_FLAG, NULL, "false", TB_PEER_FINAL, false},
    {EMBED, NULL, TB_PEER_FLAG, NULL, "false", TB_PEER_STEM, false},
    {ATTN, NULL, TB_PEER_FLAG, NULL, "false", TB_PEER_BLOCK, false},
    {FC, NULL, TB_PEER_FLAG, NULL, "false", TB_PEER_BLOCK, false},
    {HEADS, NULL, TB_PEER_FLAG, NULL, "false", TB_PEER_BLOCK, false},
    {RESIDS, NULL, TB_PEER_FLAG, NULL, "false", TB_PEER_BLOCK, false},
    {ACT, "activation", TB_PEER_WORD,
     "relu|gelu|gelu_accurate|gelu_fast|tanh|linear", "", 0, false},
    {0}};

static const char *const fairseq_acts[][2] = {
    {"gelu", "gelu"},           {"relu", "relu"},
    {"tanh", "tanh"},           {"gelu_tanh", "gelu_accurate"},
    {"gelu_tanh", "gelu_fast"}, {NULL, NULL}};

/* ffn with its function, and a norm behind it. */
static void fairseq_ffn(tb_peer_text *t, const char *act, bool inner)
{
    if (!inner) {
        tb_peer_activation(t, act);
        return;
    }
    const char *e = tb_peer_of(t, "%s(up(x))", *act ? act : "gelu");
    tb_buf_printf(&t->defs, "ffn(x) = down(%s)\n", tb_peer_norm(t, "norm", e));
}

/* What one sublayer, or F, makes of x. */
static const char *fairseq_sum(tb_peer_text *t, const char *name,
                               const char *skip, bool before, bool scaled)
{
    const char *e = before ? tb_peer_norm(t, "norm", "x") : "x";
    e = tb_peer_of(t, "%s(%s)", name, e);
    if (scaled)
        e = tb_peer_norm(t, "norm", e);
    e = tb_peer_of(t, "%s + %s", skip, e);
    return before ? e : tb_peer_norm(t, "norm", e);
}

static tb_status fairseq_act(tb_peer_text *t, const char *act,
                             const char **ours)
{
    *ours = *act ? tb_peer_mapped(fairseq_acts, act, 1) : "";
    if (*ours)
        return TB_OK;
    return TB_FAIL(t->ctx, TB_ERR_INPUT,
                   "fairseq: activation-fn: got %s, wanted one that a block "
                   "can say: relu, gelu, gelu_accurate, tanh",
                   act);
}

static void fairseq_ends(tb_peer_text *t, bool embed, bool final)
{
    if (embed)
        tb_buf_printf(&t->stem, "    x = %s\n", tb_peer_norm(t, "norm", "x"));
    if (final)
        tb_buf_printf(&t->final, "    x = %s\n", tb_peer_norm(t, "norm", "x"));
    tb_buf_puts(&t->model, t->norms ? "    eps = 1e-5\n" : "");
}

static tb_status fairseq_write(tb_peer_text *t, const tb_peer_set *set)
{
    const tb_peer *p = &tb_peer_fairseq;
    bool before = tb_peer_on(p, set, BEFORE), attn = tb_peer_on(p, set, ATTN);
    bool resids = tb_peer_on(p, set, RESIDS);
    const char *act, *skip = resids ? "vector(1)*x" : "x";
    TB_TRY(fairseq_act(t, tb_peer_at(p, set, ACT), &act));
    if (tb_peer_on(p, set, HEADS)) /* behind out_proj; the paper: before it */
        tb_buf_puts(&t->defs, "attn(x) = headscale(o(mha(q(x), k(x), v(x))), "
                              "vector(1, size=h))\n");
    fairseq_ffn(t, act, tb_peer_on(p, set, FC));
    if (attn || resids)
        tb_buf_printf(&t->block, "    x = %s\n    x = %s\n",
                      fairseq_sum(t, "attn", "x", before, attn),
                      fairseq_sum(t, "ffn", skip, before, false));
    else
        tb_buf_printf(&t->block, "    x = %s\n",
                      fairseq_sum(t, "F", "x", before, false));
    fairseq_ends(t, tb_peer_on(p, set, EMBED),
                 before && !tb_peer_on(p, set, FINAL));
    return TB_OK;
}

static void fairseq_finish(tb_arena *a, const tb_peer_look *look,
                           tb_peer_set *set)
{
    const char *act = tb_peer_mapped(fairseq_acts, look->activation, 0);
    (void)a;
    if (act)
        tb_peer_put(&tb_peer_fairseq, set, ACT, act);
}

static const char *const fairseq_starts[] = {
    "", "--decoder-normalize-before",
    "--decoder-normalize-before --scale-attn --scale-fc",
    "--decoder-normalize-before --scale-attn --scale-fc --scale-heads", NULL};

const tb_peer tb_peer_fairseq = {
    .name = "fairseq",
    .lead = "--arch transformer_lm",
    TB_PEER_OPTIONS,
    .keys = fairseq_keys,
    .starts = fairseq_starts,
    .stacks = 1u << TB_STACKS_DECODER,
    .write = fairseq_write,
    .finish = fairseq_finish,
    .activations = "gelu|relu|tanh|gelu_tanh",
};

/* --- transformer: two stacks --------------------------------------------- */

#define ENCODER "encoder-normalize-before"

static const tb_peer_key both_keys[] = {
    {ENCODER, "encoder", TB_PEER_FLAG, NULL, "false",
     TB_PEER_BLOCK | TB_PEER_FINAL, false},
    {BEFORE, "decoder", TB_PEER_FLAG, NULL, "false",
     TB_PEER_BLOCK | TB_PEER_FINAL, false},
    {FINAL, NULL, TB_PEER_FLAG, NULL, "false", TB_PEER_FINAL, false},
    {EMBED, NULL, TB_PEER_FLAG, NULL, "false", TB_PEER_STEM, false},
    {ACT, "activation", TB_PEER_WORD,
     "relu|gelu|gelu_accurate|gelu_fast|tanh|linear", "", 0, false},
    {0}};

/* A section of each role where they differ. */
static void both_roles(tb_peer_text *t, const bool before[2],
                       const bool final[2])
{
    static const char *const roles[] = {"encoder", "decoder"};
    for (int i = 0; i < 2; i++) {
        tb_buf_printf(&t->headed, "%s:\n    x = %s\n", roles[i],
                      fairseq_sum(t, "F", "x", before[i], false));
        if (final[i])
            tb_buf_printf(&t->headed, "%s final:\n    x = %s\n", roles[i],
                          tb_peer_norm(t, "norm", "x"));
    }
}

static tb_status both_write(tb_peer_text *t, const tb_peer_set *set)
{
    const tb_peer *p = &tb_peer_fairseq_both;
    bool embed = tb_peer_on(p, set, EMBED);
    const bool before[] = {tb_peer_on(p, set, ENCODER),
                           tb_peer_on(p, set, BEFORE)};
    const bool final[] = {before[0], before[1] && !tb_peer_on(p, set, FINAL)};
    const char *act;
    TB_TRY(fairseq_act(t, tb_peer_at(p, set, ACT), &act));
    fairseq_ffn(t, act, false);
    if (before[0] == before[1] && final[0] == final[1]) {
        tb_buf_printf(&t->block, "    x = %s\n",
                      fairseq_sum(t, "F", "x", before[0], false));
        fairseq_ends(t, embed, final[0]);
    } else {
        both_roles(t, before, final);
        fairseq_ends(t, embed, false);
    }
    return TB_OK;
}

static void both_finish(tb_arena *a, const tb_peer_look *look, tb_peer_set *set)
{
    const char *act = tb_peer_mapped(fairseq_acts, look->activation, 0);
    (void)a;
    if (act)
        tb_peer_put(&tb_peer_fairseq_both, set, ACT, act);
}

static const char *const both_starts[] = {"", "encoder=true decoder=true",
                                          "encoder=true", "decoder=true", NULL};

const tb_peer tb_peer_fairseq_both = {
    .name = "fairseq",
    .lead = "--arch transformer",
    TB_PEER_OPTIONS,
    .keys = both_keys,
    .starts = both_starts,
    .stacks = 1u << TB_STACKS_BOTH,
    .write = both_write,
    .finish = both_finish,
    .activations = "gelu|relu|tanh|gelu_tanh",
};
