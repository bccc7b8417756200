/* SPDX-License-Identifier: MIT */
/* Marian and tensor2tensor: a letter for each operation, left to right. Marian:
 * src/models/transformer.h, src/common/config_parser.cpp of marian-dev;
 * tensor2tensor: layers/common_layers.py, layers/common_hparams.py. */
#include "graph/peers.h"

/* An expression that letters act on. */
typedef struct chain {
    tb_peer_text *t;
    tb_buf *section;   /* where a gate's statement goes */
    const char *e;     /* so far */
    bool sum;          /* e is a sum: in a product it needs brackets */
    bool ours;         /* the sublayer's own dropout is still to be said */
    const char *skip;  /* what is added */
    const char *n, *r; /* the words of the norms */
    const char *gate;  /* the linear of a highway gate */
} chain;

static const char *in_brackets(chain *c)
{
    return c->sum ? tb_peer_of(c->t, "(%s)", c->e) : c->e;
}

static void put(chain *c, const char *e, bool sum)
{
    c->e = e;
    c->sum = sum;
}

static void norm(chain *c)
{
    put(c, tb_peer_norm(c->t, c->n, c->e), false);
}

static void rmsnorm(chain *c)
{
    put(c, tb_peer_norm(c->t, c->r, c->e), false);
}

/* F drops its output itself: that is the string's first d. */
static void dropout(chain *c)
{
    if (!c->ours)
        put(c, tb_peer_of(c->t, "drop(%s)", c->e), false);
    c->ours = false;
}

static void add(chain *c)
{
    put(c, tb_peer_of(c->t, "%s + %s", c->skip, in_brackets(c)), true);
}

static void zero_add(chain *c)
{
    put(c, tb_peer_of(c->t, "%s + scalar(0)*%s", c->skip, in_brackets(c)),
        true);
}

static void highway(chain *c)
{
    tb_buf_printf(c->section,
                  "    %s = linear(d, d)\n    t = sigmoid(%s(%s))\n", c->gate,
                  c->gate, c->skip);
    put(c, tb_peer_of(c->t, "t*%s + (1 - t)*%s", in_brackets(c), c->skip),
        true);
}

static const struct {
    char letter;
    void (*act)(chain *c);
} acts[] = {{'n', norm}, {'r', rmsnorm},  {'d', dropout},
            {'a', add},  {'z', zero_add}, {'h', highway}};

static void apply(chain *c, const char *letters)
{
    for (; *letters; letters++)
        for (size_t i = 0; i < TB_LEN(acts); i++)
            if (acts[i].letter == *letters)
                acts[i].act(c);
}

/* x = what one sublayer does to it. */
static void sublayer(tb_peer_text *t, const char *name, const char *pre,
                     const char *post, chain like)
{
    chain c = like;
    c.section = &t->block;
    c.gate = tb_peer_of(t, "t_%s", name);
    c.skip = c.e = "x";
    apply(&c, pre);
    put(&c, tb_peer_of(t, "%s(%s)", name, c.e), false);
    c.ours = true;
    apply(&c, post);
    tb_buf_printf(&t->block, "    x = %s\n", c.e);
}

static void block_section(tb_peer_text *t, const char *pre, const char *post,
                          chain like)
{
    if (!strchr(post, 'h')) {
        sublayer(t, "F", pre, post, like);
        return;
    }
    sublayer(t, "attn", pre, post, like); /* each has a gate of its own */
    sublayer(t, "ffn", pre, post, like);
}

/* A section that does something to x, or nothing. */
static void around(tb_peer_text *t, tb_buf *section, const char *letters,
                   chain like)
{
    chain c = like;
    c.t = t;
    c.section = section;
    c.e = "x";
    apply(&c, letters);
    if (!tb_streq(c.e, "x"))
        tb_buf_printf(section, "    x = %s\n", c.e);
}

/* --- Marian --------------------------------------------------------------- */

#define PRE  "transformer-preprocess"
#define POST "transformer-postprocess"
#define EMB  "transformer-postprocess-emb"
#define TOP  "transformer-postprocess-top"
#define ACT  "transformer-ffn-activation"
#define DEEP "transformer-depth-scaling"
#define BARE "transformer-no-affine"

static const tb_peer_key marian_keys[] = {
    {PRE, "pre", TB_PEER_LETTERS, "dnr", "", TB_PEER_BLOCK, true},
    {POST, "post", TB_PEER_LETTERS, "dahnr", "dan", TB_PEER_BLOCK, true},
    {EMB, "emb", TB_PEER_LETTERS, "dnr", "d", TB_PEER_STEM, false},
    {TOP, "top", TB_PEER_LETTERS, "dahnr", "", TB_PEER_STEM | TB_PEER_FINAL,
     true},
    {ACT, "activation", TB_PEER_WORD, "swish|relu|gelu", "", 0, false},
    {DEEP, "depth-scaling", TB_PEER_FLAG, NULL, "false", 0, false},
    {BARE, "no-affine", TB_PEER_FLAG, NULL, "false", TB_PEER_ALL, false},
    {0}};

static const char *const marian_acts[][2] = {
    {"silu", "swish"}, {"relu", "relu"}, {"gelu", "gelu"}, {NULL, NULL}};

/* Weights are found by name, and a string has one name for each of these. */
static tb_status refuse_twice(tb_peer_text *t, const tb_peer_set *set)
{
    for (int i = 0; marian_keys[i].kind == TB_PEER_LETTERS; i++)
        for (const char *c = set->value[i]; *c; c++)
            if (strchr("nrh", *c) && strchr(c + 1, *c))
                return TB_FAIL(t->ctx, TB_ERR_INPUT,
                               "marian: %s: got '%c' twice in '%.60s', wanted "
                               "it once: the second would share the weights "
                               "of the first",
                               marian_keys[i].name, *c, set->value[i]);
    return TB_OK;
}

static bool any(const tb_peer_set *set, char letter)
{
    for (int i = 0; marian_keys[i].kind == TB_PEER_LETTERS; i++)
        if (strchr(set->value[i], letter))
            return true;
    return false;
}

/* `norm` where one kind will do. */
static chain marian_words(tb_peer_text *t, const tb_peer_set *set)
{
    chain c = {.t = t, .n = "norm", .r = "norm"};
    if (any(set, 'n') && any(set, 'r')) {
        c.n = "layernorm";
        c.r = "rmsnorm";
    } else if (any(set, 'r')) {
        tb_buf_puts(&t->model, "    norm = rmsnorm\n");
    }
    return c;
}

static tb_status marian_write(tb_peer_text *t, const tb_peer_set *set)
{
    const tb_peer *p = &tb_peer_marian;
    const char *top = tb_peer_at(p, set, TOP), *emb = tb_peer_at(p, set, EMB);
    TB_TRY(refuse_twice(t, set));
    t->bare = tb_peer_on(p, set, BARE) ? "" : NULL;
    chain like = marian_words(t, set), stem = like;
    const char *act = tb_peer_mapped(marian_acts, tb_peer_at(p, set, ACT), 1);
    tb_peer_activation(t, act ? act : "");
    block_section(t, tb_peer_at(p, set, PRE), tb_peer_at(p, set, POST), like);
    if (strpbrk(top, "ah")) /* adds what came before the letters of emb */
        tb_buf_puts(&t->stem, "    e = x\n");
    stem.ours = true; /* the stem drops by itself */
    around(t, &t->stem, emb, stem);
    like.skip = "e";
    like.gate = "t_top";
    around(t, &t->final, top, like);
    if (tb_peer_on(p, set, DEEP))
        tb_buf_puts(&t->init, "    attn.*, ffn.*: xavier(1/sqrt(l))\n");
    if (t->norms)
        tb_buf_puts(&t->model, "    eps = 1e-6\n");
    return TB_OK;
}

static void marian_finish(tb_arena *a, const tb_peer_look *look,
                          tb_peer_set *set)
{
    const tb_peer *p = &tb_peer_marian;
    const char *act = tb_peer_mapped(marian_acts, look->activation, 0);
    (void)a;
    if (act)
        tb_peer_put(p, set, ACT, act);
    if (look->depth_init)
        tb_peer_put(p, set, DEEP, "true");
}

static const char *const marian_starts[] = {"post=dan",
                                            "pre=n post=da top=n",
                                            "post=nda",
                                            "pre=n post=nda top=n",
                                            "pre=n post=dan",
                                            "post=dh",
                                            NULL};

const tb_peer tb_peer_marian = {
    .name = "marian",
    .lead = "",
    TB_PEER_OPTIONS,
    .keys = marian_keys,
    .starts = marian_starts,
    .stacks = 7,
    .write = marian_write,
    .finish = marian_finish,
    .eps_note = "1e-5 in its newer layers",
    .activations = "silu|relu|gelu",
};

/* --- tensor2tensor -------------------------------------------------------- */

#define T2T_PRE  "layer_preprocess_sequence"
#define T2T_POST "layer_postprocess_sequence"
#define T2T_NORM "norm_type"
#define T2T_EPS  "norm_epsilon"

static const tb_peer_key t2t_keys[] = {
    {T2T_PRE, "pre", TB_PEER_LETTERS, "nd", "", TB_PEER_BLOCK | TB_PEER_FINAL,
     true},
    {T2T_POST, "post", TB_PEER_LETTERS, "andz", "da", TB_PEER_BLOCK, true},
    {T2T_NORM, "norm", TB_PEER_WORD, "layer|batch|noam|l2|group|none", "layer",
     TB_PEER_BLOCK | TB_PEER_FINAL, false},
    {T2T_EPS, "eps", TB_PEER_NUMBER, NULL, "1e-6", 0, false},
    {0}};

/* What its norms are here. NULL: nothing here is one. */
static const struct {
    const char *type, *word, *model;
} t2t_norms[] = {
    {"layer", "norm", ""},
    {"batch", "norm", "    norm = batchnorm\n"},
    {"noam", "norm", "    norm = rmsnorm\n    eps_mode = clamp_square\n"},
    {"none", NULL, ""},
};

static tb_status t2t_norm(tb_peer_text *t, const char *type, size_t *row)
{
    for (*row = 0; *row < TB_LEN(t2t_norms); ++*row)
        if (tb_streq(t2t_norms[*row].type, type))
            return TB_OK;
    return TB_FAIL(t->ctx, TB_ERR_INPUT,
                   "tensor2tensor: norm_type: got '%s', wanted one that a "
                   "block can say: layer, batch, noam, none",
                   type);
}

/* Letters without those of the norm. */
static const char *without(tb_peer_text *t, const char *letters, char letter)
{
    char out[64];
    size_t n = 0;
    for (; *letters && n + 1 < sizeof out; letters++)
        if (*letters != letter)
            out[n++] = *letters;
    out[n] = 0;
    return tb_peer_of(t, "%s", out);
}

static tb_status t2t_write(tb_peer_text *t, const tb_peer_set *set)
{
    const tb_peer *p = &tb_peer_tensor2tensor;
    const char *pre = tb_peer_at(p, set, T2T_PRE);
    const char *post = tb_peer_at(p, set, T2T_POST);
    size_t row;
    TB_TRY(t2t_norm(t, tb_peer_at(p, set, T2T_NORM), &row));
    chain like = {.t = t, .n = t2t_norms[row].word, .skip = "x"};
    t->bare = tb_streq(t2t_norms[row].type, "noam") ? "" : NULL;
    if (!like.n) {
        pre = without(t, pre, 'n');
        post = without(t, post, 'n');
    }
    block_section(t, pre, post, like);
    around(t, &t->final, pre, like);
    tb_buf_puts(&t->model, t->norms ? t2t_norms[row].model : "");
    if (t->norms)
        tb_buf_printf(&t->model, "    eps = %s\n", tb_peer_at(p, set, T2T_EPS));
    return TB_OK;
}

static void t2t_finish(tb_arena *a, const tb_peer_look *look, tb_peer_set *set)
{
    if (look->eps >= 0 && look->eps != 1e-6) {
        const char *eps = tb_arena_printf(a, "%g", look->eps);
        tb_peer_put(&tb_peer_tensor2tensor, set, T2T_EPS, eps ? eps : "1e-6");
    }
}

static const char *const t2t_starts[] = {"pre=none post=dan",
                                         "pre=n post=da",
                                         "pre=none post=nda",
                                         "pre=n post=nda",
                                         "pre=none post=dz",
                                         "pre=n post=dan",
                                         NULL};

const tb_peer tb_peer_tensor2tensor = {
    .name = "tensor2tensor",
    .lead = "",
    .shape = "%s=%s",
    .gap = ",",
    .empty = "none",
    .keys = t2t_keys,
    .starts = t2t_starts,
    .stacks = 7,
    .write = t2t_write,
    .finish = t2t_finish,
    .activations = "relu",
};
