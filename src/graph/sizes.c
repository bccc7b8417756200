/* SPDX-License-Identifier: MIT */
/* Ruling 6: call option over options over model: over defaults. One row per
 * setting; model: lines and the command line fill the same struct. */
#include "graph/graph.h"

#include "equation/names.h"

/* Kinds that can be computed. */
#define NORMS "layernorm rmsnorm scalenorm l2norm batchnorm powernorm dyt derf"

typedef enum tb_set_kind {
    SET_SIZE,
    SET_REAL,
    SET_FLAG,
    SET_NORM,
    SET_POSITIONS
} tb_set_kind;

typedef struct set_row {
    const char *key;
    tb_set_kind kind;
    size_t offset;
} set_row;

const char *const tb_stack_names[3] = {"decoder", "encoder", "encoder-decoder"};
const char *const tb_positions_names[] = {"none", "learned", "sinusoidal",
                                          "rope"};

#define AT(field) offsetof(tb_settings, field)
static const set_row rows[] = {
    {"heads", SET_SIZE, AT(heads)},
    {"kv_heads", SET_SIZE, AT(kv_heads)},
    {"ffn", SET_SIZE, AT(ffn)},
    {"norm", SET_NORM, AT(norm)},
    {"eps", SET_REAL, AT(eps)},
    {"dropout", SET_REAL, AT(dropout)},
    {"bias", SET_FLAG, AT(bias)},
    {"tied", SET_FLAG, AT(tied)},
    {"positions", SET_POSITIONS, AT(positions)},
};
#undef AT

static void *field(tb_settings *s, const set_row *row)
{
    return (char *)s + row->offset;
}

static tb_status fold(tb_ctx *ctx, const tb_block *b, const tb_settings *s,
                      const tb_expr *e, double *out)
{
    double M = (double)(s->decoder_depth ? s->decoder_depth : s->depth);
    tb_consts c = {(double)s->depth,  M,
                   __builtin_nan(""), __builtin_nan(""),
                   (double)s->width,  (double)s->heads};
    return tb_expr_fold(ctx, b, e, &c, NULL, NULL, out);
}

static tb_status set_flag(tb_ctx *ctx, const tb_block *b, const tb_setting *l,
                          int *out)
{
    static const char *const words[] = {"false", "true"};
    const char *word = l->value->kind == TB_EXPR_NAME ? l->value->name : NULL;
    if (*out >= 0)
        return TB_OK;
    for (int on = 0; on < 2; on++)
        if (tb_streq(words[on], word))
            return *out = on, TB_OK;
    return tb_block_fail(ctx, b, l->value->pos, "%s: wanted true or false",
                         l->key);
}

static tb_status set_positions(tb_ctx *ctx, const tb_block *b,
                               const tb_setting *l, int *out)
{
    const char *word = l->value->kind == TB_EXPR_NAME ? l->value->name : NULL;
    for (int i = 0; i < TB_POSITIONS_KINDS; i++)
        if (tb_streq(tb_positions_names[i], word)) {
            *out = *out < 0 ? i : *out;
            return TB_OK;
        }
    return tb_block_fail(ctx, b, l->value->pos, "%s: wanted one of %s", l->key,
                         tb_setting_kind_find(l->key)->words);
}

static tb_status set_norm(tb_ctx *ctx, const tb_block *b, const tb_setting *l,
                          tb_sizes *s)
{
    const char *word = l->value->kind == TB_EXPR_NAME ? l->value->name : NULL;
    if (!word || !tb_op_norm(word))
        return tb_block_fail(ctx, b, l->value->pos,
                             "norm: wanted one of " NORMS);
    if (s->s.norm)
        return TB_OK;
    s->s.norm = word;
    s->norm_from = TB_FROM_MODEL_SECTION;
    return TB_OK;
}

static tb_status set_real(tb_ctx *ctx, const tb_block *b, const tb_setting *l,
                          const set_row *row, tb_sizes *s)
{
    double *out = field(&s->s, row), v;
    if (*out >= 0)
        return TB_OK;
    TB_TRY(fold(ctx, b, &s->s, l->value, &v));
    if (!(v >= 0))
        return tb_block_fail(ctx, b, l->pos, "%s: got %g, wanted 0 or more",
                             row->key, v);
    *out = v;
    if (tb_streq(row->key, "eps"))
        s->eps_from = TB_FROM_MODEL_SECTION;
    return TB_OK;
}

static tb_status set_size(tb_ctx *ctx, const tb_block *b, const tb_setting *l,
                          const set_row *row, tb_sizes *s)
{
    size_t *out = field(&s->s, row);
    double v;
    if (*out)
        return TB_OK;
    TB_TRY(fold(ctx, b, &s->s, l->value, &v));
    if (!(v >= 1 && v < 1e9) || v != (double)(size_t)v)
        return tb_block_fail(ctx, b, l->pos,
                             "%s: got %g, wanted a whole number from 1",
                             row->key, v);
    *out = (size_t)v;
    return TB_OK;
}

/* Words that norms are told beside eps; tb_eps_mode counts from DEFAULT. */
static bool set_convention(const tb_setting *l, tb_sizes *s)
{
    const char *word = l->value->kind == TB_EXPR_NAME ? l->value->name : "";
    if (tb_streq(l->key, "eps_mode"))
        s->eps_mode = 1 + tb_setting_word(l->key, word);
    else if (tb_streq(l->key, "variance"))
        s->variance = tb_setting_word(l->key, word);
    else
        return false;
    return true;
}

static tb_status set_rope_base(tb_ctx *ctx, const tb_block *b,
                               const tb_setting *l, tb_sizes *s)
{
    TB_TRY(fold(ctx, b, &s->s, l->value, &s->rope_base));
    if (s->rope_base > 0 && tb_isfinite(s->rope_base))
        return TB_OK;
    return tb_block_fail(ctx, b, l->pos, "%s: got %g, wanted more than 0",
                         l->key, s->rope_base);
}

static tb_status set_line(tb_ctx *ctx, const tb_block *b, const tb_setting *l,
                          tb_sizes *s)
{
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        if (!tb_streq(rows[i].key, l->key))
            continue;
        if (rows[i].kind == SET_FLAG)
            return set_flag(ctx, b, l, field(&s->s, &rows[i]));
        if (rows[i].kind == SET_NORM)
            return set_norm(ctx, b, l, s);
        if (rows[i].kind == SET_POSITIONS)
            return set_positions(ctx, b, l, field(&s->s, &rows[i]));
        return rows[i].kind == SET_REAL ? set_real(ctx, b, l, &rows[i], s)
                                        : set_size(ctx, b, l, &rows[i], s);
    }
    if (set_convention(l, s))
        return TB_OK;
    if (tb_streq(l->key, "rope_base"))
        return set_rope_base(ctx, b, l, s);
    return tb_block_fail(ctx, b, l->pos, "%s: this setting has no effect yet",
                         l->key);
}

/* heads comes first: the other lines may say h. */
static tb_status set_lines(tb_ctx *ctx, const tb_block *b, bool heads,
                           tb_sizes *s)
{
    for (int i = 0; i < b->nsettings; i++)
        if (tb_streq(b->settings[i].key, "heads") == heads)
            TB_TRY(set_line(ctx, b, &b->settings[i], s));
    return TB_OK;
}

static void defaults(tb_settings *s)
{
    if (!s->kv_heads)
        s->kv_heads = s->heads;
    if (!s->ffn)
        s->ffn = 4 * s->width;
    if (!s->context)
        s->context = 32;
    if (!s->vocab)
        s->vocab = 256;
    if (!s->norm)
        s->norm = "layernorm";
    if (s->eps < 0)
        s->eps = 1e-5;
    if (s->dropout < 0)
        s->dropout = 0;
    s->bias = s->bias < 0 ? 1 : s->bias;
    s->tied = s->tied < 0 ? 0 : s->tied;
    s->causal = s->causal < 0 ? s->stack != TB_STACKS_ENCODER : s->causal;
    s->positions = s->positions < 0 ? TB_POSITIONS_LEARNED : s->positions;
    s->uniform_attention = s->uniform_attention < 0 ? 0 : s->uniform_attention;
}

static tb_status check(tb_ctx *ctx, const tb_settings *s)
{
    if (s->width % s->heads)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "width: got %zu, wanted a multiple of %zu heads",
                       s->width, s->heads);
    if (s->heads % s->kv_heads)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "heads: got %zu, wanted a multiple of %zu kv-heads",
                       s->heads, s->kv_heads);
    if (!(s->dropout < 1))
        return TB_FAIL(ctx, TB_ERR_ARG, "dropout: got %g, wanted 0 <= p < 1",
                       s->dropout);
    if (s->classes && s->tied)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "tied: a head over %zu classes cannot be the embedding",
                       s->classes);
    if (!tb_isfinite(s->eps))
        return TB_FAIL(ctx, TB_ERR_ARG, "eps: got %g, wanted 0 or more",
                       s->eps);
    if (!tb_op_norm(s->norm))
        return TB_FAIL(ctx, TB_ERR_ARG, "norm: got %s, wanted one of " NORMS,
                       s->norm);
    return TB_OK;
}

tb_stack tb_sizes_top(const tb_sizes *sizes)
{
    static const tb_stack tops[] = {
        [TB_STACKS_DECODER] = TB_STACK_DECODER,
        [TB_STACKS_ENCODER] = TB_STACK_ENCODER,
        [TB_STACKS_BOTH] = TB_STACK_CROSS,
    };
    return tops[sizes->s.stack];
}

size_t tb_sizes_depth(const tb_sizes *sizes, tb_stack stack)
{
    return (size_t)(stack == TB_STACK_CROSS ? sizes->M : sizes->N);
}

size_t tb_settings_outputs(const tb_settings *s)
{
    return s->classes ? s->classes : s->vocab;
}

/* N and M; a model of one stack has one depth (ruling 7). */
static tb_status stacks(tb_ctx *ctx, tb_sizes *out)
{
    tb_settings *s = &out->s;
    bool both = s->stack == TB_STACKS_BOTH;
    if (s->stack == TB_STACKS_ENCODER && s->causal == 1)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "mask: got causal, but the tokens of an encoder see "
                       "each other");
    if (s->decoder_depth && !both)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "decoder depth: got %zu for a model of one stack, which "
                       "has one depth",
                       s->decoder_depth);
    s->depth = s->depth ? s->depth : 6;
    if (both && !s->decoder_depth)
        s->decoder_depth = s->depth;
    out->N = (double)s->depth;
    out->M = both ? (double)s->decoder_depth : out->N;
    return TB_OK;
}

tb_status tb_sizes_resolve(tb_ctx *ctx, const tb_block *b,
                           const tb_settings *given, tb_sizes *out)
{
    static const tb_settings unset = TB_SETTINGS_UNSET;
    *out = (tb_sizes){.s = *given};
    tb_settings *s = &out->s;
    if (!(s->eps >= 0) && s->eps != unset.eps)
        return TB_FAIL(ctx, TB_ERR_ARG, "eps: got %g, wanted 0 or more",
                       s->eps);
    if (!(s->dropout >= 0) && s->dropout != unset.dropout)
        return TB_FAIL(ctx, TB_ERR_ARG, "dropout: got %g, wanted 0 <= p < 1",
                       s->dropout);
    TB_TRY(stacks(ctx, out));
    s->width = s->width ? s->width : 64;
    out->norm_from = s->norm ? TB_FROM_OPTION : TB_FROM_DEFAULT;
    out->eps_from = s->eps >= 0 ? TB_FROM_OPTION : TB_FROM_DEFAULT;
    TB_TRY(set_lines(ctx, b, true, out));
    s->heads = s->heads ? s->heads : 4;
    TB_TRY(set_lines(ctx, b, false, out));
    if (s->classes && given->tied < 0)
        s->tied = 0; /* a block ties the head over tokens */
    defaults(s);
    return check(ctx, s);
}
