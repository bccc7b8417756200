/* SPDX-License-Identifier: MIT */
/* N1, N2, N4: what a token looks at. Weights are read off the engine's own
 * attention: where the values of token j are the j-th unit list, its output is
 * the row of weights. */
#include "pictures/shot_panels.h"

enum { D = 32, MOST = 8 }; /* width; tokens, so that four heads have room */

typedef struct looks {
    size_t tokens, heads;
    double sharp;
    uint64_t seed;
    bool causal, turned; /* turned: q and k, each by its position */
    bool apart;          /* keys are another list's */
    bool own_values;     /* v is made of the list that is asked, too */
    double *x, *m, *v;   /* [tokens, D] */
} looks;

/* Independent normal numbers, a list per token. */
static double *lists(tb_shot *s, const looks *l, const char *name)
{
    tb_rng r = tb_rng_make(l->seed, name);
    double *x = shot_alloc(s, l->tokens * D, sizeof *x);
    for (size_t i = 0; x && i < l->tokens * D; i++)
        x[i] = tb_rng_normal(r, i);
    return x;
}

/* Token j's values: 1 at place j of every head. */
static double *marks(tb_shot *s, const looks *l)
{
    double *v = shot_alloc(s, l->tokens * D, sizeof *v);
    for (size_t j = 0; v && j < l->tokens; j++)
        for (size_t h = 0; h < l->heads; h++)
            v[j * D + h * (D / l->heads) + j] = 1;
    return v;
}

static tb_status prepare(tb_shot *s, looks *l)
{
    l->x = lists(s, l, "x");
    l->m = l->apart ? lists(s, l, "m") : l->x;
    l->v = marks(s, l);
    return s->status;
}

#define MATRICES "ask = linear(d, d)\nkey = linear(d, d)\n"

/* What is run: who is asked, whether positions turn, where values are from. */
static const char *equation(const looks *l)
{
    if (l->own_values)
        return MATRICES "value = linear(d, d)\nmha(a*ask(x), key(m), value(m))";
    if (l->apart)
        return MATRICES "mha(a*ask(x), key(m), v)";
    return l->turned ? MATRICES "mha(rope(a*ask(x)), rope(key(x)), v)"
                     : MATRICES "mha(a*ask(x), key(x), v)";
}

/* `uses`: the letters of the lists and numbers that the text has. */
static tb_status evaluate(tb_shot *s, const looks *l, const char *text,
                          const char *uses, const tb_eval_value *g,
                          tb_eval_result **out)
{
    const tb_eval_value all[] = {{"x", 2, {l->tokens, D}, l->x},
                                 {"a", 0, {0}, &l->sharp},
                                 {"v", 2, {l->tokens, D}, l->v},
                                 {"m", 2, {l->tokens, D}, l->m}};
    tb_eval_value sets[TB_LEN(all)];
    tb_eval e = {.text = text,
                 .sets = sets,
                 .cotangent = g,
                 .heads = l->heads,
                 .seed = l->seed,
                 .mask = l->causal ? TB_EVAL_MASK_CAUSAL : TB_EVAL_MASK_NONE};
    for (size_t i = 0; i < TB_LEN(all); i++)
        if (strchr(uses, *all[i].name))
            sets[e.nsets++] = all[i];
    return tb_eval_run(s->ctx, &e, out);
}

/* The result of the attention, with the gradients where g is given. */
static tb_status run(tb_shot *s, const looks *l, const tb_eval_value *g,
                     tb_eval_result **out)
{
    const char *uses = l->own_values ? "xam" : l->apart ? "xavm" : "xav";
    return evaluate(s, l, equation(l), uses, g, out);
}

/* [heads][tokens][tokens] */
static tb_status weights(tb_shot *s, const looks *l, double **out)
{
    tb_eval_result *r;
    size_t T = l->tokens, w = D / l->heads;
    double *p = shot_alloc(s, l->heads * T * T, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    TB_TRY(run(s, l, NULL, &r));
    for (size_t h = 0; h < l->heads; h++)
        for (size_t t = 0; t < T; t++)
            memcpy(p + (h * T + t) * T, r->y.data + t * D + h * w,
                   T * sizeof *p);
    tb_eval_free(s->ctx, r);
    *out = p;
    return TB_OK;
}

/* --- what is checked ------------------------------------------------------ */

/* Largest distance of a row's sum from 1. */
static double off_one(const double *p, size_t rows, size_t T)
{
    double worst = 0;
    for (size_t t = 0; t < rows; t++) {
        double sum = 0;
        for (size_t j = 0; j < T; j++)
            sum += p[t * T + j];
        worst = tb_max2(worst, tb_fabs(sum - 1));
    }
    return worst;
}

static bool nothing_later(const double *p, size_t T)
{
    for (size_t t = 0; t < T; t++)
        for (size_t j = t + 1; j < T; j++)
            if (p[t * T + j] != 0)
                return false;
    return true;
}

/* Tokens in the other order give the same weights in the other order. */
static tb_status reversed(tb_shot *s, looks l, const double *p, double *far)
{
    double *x = shot_alloc(s, l.tokens * D, sizeof *x), *q;
    size_t T = l.tokens;
    if (!x)
        return TB_ERR_MEMORY;
    for (size_t t = 0; t < T; t++)
        memcpy(x + t * D, l.x + (T - 1 - t) * D, D * sizeof *x);
    l.x = x;
    TB_TRY(weights(s, &l, &q));
    *far = 0;
    for (size_t i = 0; i < T * T; i++)
        *far = tb_max2(*far, tb_fabs(p[i] - q[T * T - 1 - i]));
    return TB_OK;
}

/* The weights once more, from the questions and keys themselves: a softmax of
 * their inner products over the root of the width. */
static tb_status by_hand(tb_shot *s, const looks *l, const double *p,
                         double *far)
{
    tb_eval_result *q, *k = NULL;
    size_t T = l->tokens;
    TB_TRY(evaluate(s, l, MATRICES "a*ask(x)", "xa", NULL, &q));
    tb_status status = evaluate(s, l, MATRICES "key(x)", "x", NULL, &k);
    *far = 0;
    for (size_t t = 0; status == TB_OK && t < T; t++) {
        double e[MOST], sum = 0;
        for (size_t j = 0; j < T; j++) {
            double score = 0;
            for (size_t i = 0; i < D; i++)
                score += q->y.data[t * D + i] * k->y.data[j * D + i];
            sum += e[j] = tb_exp(score / tb_sqrt(D));
        }
        for (size_t j = 0; j < T; j++)
            *far = tb_max2(*far, tb_fabs(e[j] / sum - p[t * T + j]));
    }
    tb_eval_free(s->ctx, q);
    if (k)
        tb_eval_free(s->ctx, k);
    return status;
}

/* --- panels --------------------------------------------------------------- */

static const char *const token_names[MOST] = {"1", "2", "3", "4",
                                              "5", "6", "7", "8"};

/* Two of them stand side by side. */
static void grid(tb_shot *s, const char *title, const double *p, size_t T,
                 const char *keys, bool beside)
{
    tb_heat *h = shot_alloc(s, 1, sizeof *h);
    if (!h)
        return;
    *h = (tb_heat){.title = title,
                   .rows = T,
                   .columns = T,
                   .values = p,
                   .row_names = token_names,
                   .column_names = token_names,
                   .row_label = "token that looks",
                   .column_label = keys,
                   .value_label = "weight",
                   .scale = TB_HEAT_FROM_ZERO,
                   .limit = 1,
                   .decimals = T < MOST ? 3 : 2,
                   .width = 371};
    if (beside)
        shot_beside(s, &shot_heat, h);
    else
        shot_below(s, &shot_heat, h);
}

static looks asked(const tb_shot *s)
{
    return (looks){.tokens = shot_whole(s, "T"),
                   .sharp = shot_num(s, "sharp"),
                   .seed = (uint64_t)shot_num(s, "seed"),
                   .heads = 1};
}

#define LOOKS_INPUTS                                                           \
    {"T", "tokens", TB_SHOT_NUMBER, "5", 2, MOST, .step = 1, .whole = true},   \
        {"sharp", "scores times", TB_SHOT_NUMBER, "2", 0, 20, .step = 0.5},    \
    {                                                                          \
        "seed", "seed", TB_SHOT_NUMBER, "1", 0, 1e6, .step = 1, .whole = true  \
    }

/* --- N1 ------------------------------------------------------------------- */

static void check_self(tb_shot *s, const looks *l, const double *p,
                       const double *masked, double hand, double order)
{
    size_t T = l->tokens;
    shot_check_that(s,
                    off_one(p, T, T) < 1e-12 && off_one(masked, T, T) < 1e-12,
                    "every row sums to 1");
    shot_check_that(s, nothing_later(masked, T),
                    "with the causal mask nobody sees a later token");
    if (!l->turned) {
        shot_check_that(s, hand < 1e-12,
                        "a weight is the softmax of q\xC2\xB7k / "
                        "\xE2\x88\x9A%d",
                        (int)D);
        shot_check_that(s, order < 1e-12,
                        "tokens in the other order have the same weights");
    } else if (l->sharp > 0) {
        shot_check_that(s, order > 1e-12,
                        "tokens in the other order have other weights");
    }
}

static tb_status build_self(tb_shot *s)
{
    looks l = asked(s);
    double *p, *masked, order, hand;
    l.turned = shot_on(s, "turn");
    TB_TRY(prepare(s, &l));
    TB_TRY(weights(s, &l, &p));
    TB_TRY(reversed(s, l, p, &order));
    TB_TRY(by_hand(s, &l, p, &hand));
    looks hidden = l;
    hidden.causal = true;
    TB_TRY(weights(s, &hidden, &masked));
    size_t T = l.tokens;
    shot_tell(s, "own", "weight of the last token on itself", p[T * T - 1]);
    shot_tell(s, "T", "tokens", (double)T);
    shot_tell(s, "w", "width", D);
    shot_tell(s, "order", "largest change of a weight in the other order",
              order);
    shot_title(s, "Self-attention: every token asks all others",
               shot_text(s,
                         "Weights of %zu tokens, with and without a causal "
                         "mask; each row sums to 1.",
                         T));
    grid(s, "Who looks at whom", p, T, "token that is seen", false);
    grid(s, "With a causal mask", masked, T, "token that is seen", true);
    shot_say(s, "A row is one token's question q: its inner product with every "
                "key k, over the root of the width {w}, through a softmax. The "
                "weights on all {T} tokens sum to 1, and the answer is the sum "
                "of the tokens' values under those weights. The last token "
                "keeps {own} for itself.");
    shot_say(s, l.turned ? "Questions and keys are turned by their positions, "
                           "so that the order counts: the same tokens in the "
                           "other order have weights that differ by up to "
                           "{order}."
                         : "The order does not count: the same tokens in the "
                           "other order have the same weights (largest "
                           "difference {order}). That is what positions are "
                           "for.");
    check_self(s, &l, p, masked, hand, order);
    return TB_OK;
}

const shot_row shot_n1 = {
    .name = "N1",
    .about = "self-attention: what each token looks at",
    .input = {LOOKS_INPUTS,
              {"turn", "turn q and k by their positions", TB_SHOT_SWITCH, "0",
               0, 1, .step = 1}},
    .build = build_self,
};

/* --- N2 ------------------------------------------------------------------- */

/* Other values in the first head: the answers of the others keep every bit. */
static tb_status heads_apart(tb_shot *s, const looks *l, bool *apart)
{
    tb_eval_result *a, *b;
    looks other = *l;
    size_t w = D / l->heads;
    double *v = shot_alloc(s, l->tokens * D, sizeof *v);
    if (!v)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < l->tokens * D; i++)
        v[i] = i % D < w ? -3 * l->v[i] : l->v[i];
    other.v = v;
    TB_TRY(run(s, l, NULL, &a));
    tb_status status = run(s, &other, NULL, &b);
    if (status == TB_OK) {
        *apart = true;
        for (size_t i = 0; i < l->tokens * D; i++)
            *apart = *apart && (i % D < w || a->y.data[i] == b->y.data[i]);
        tb_eval_free(s->ctx, b);
    }
    tb_eval_free(s->ctx, a);
    return status;
}

/* Numbers in the matrices of a whole attention with so many heads. */
static tb_status count_weights(tb_shot *s, const looks *l, size_t heads,
                               double *count)
{
    tb_eval_result *r;
    const tb_eval_value g = {"y", 2, {l->tokens, D}, l->x};
    looks whole = *l;
    whole.heads = heads;
    TB_TRY(evaluate(s, &whole, "attn(x)", "x", &g, &r));
    *count = 0;
    for (size_t i = 0; i < r->ngrads; i++)
        if (strstr(r->grads[i].name, ".weight"))
            *count += (double)(r->grads[i].dims[0] * r->grads[i].dims[1]);
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

static tb_status build_heads(tb_shot *s)
{
    static const size_t counts[] = {1, 2, 4};
    looks l = asked(s);
    double *p, one, all;
    bool apart;
    l.heads = counts[shot_choice(s, "heads")];
    TB_TRY(prepare(s, &l));
    TB_TRY(weights(s, &l, &p));
    TB_TRY(heads_apart(s, &l, &apart));
    TB_TRY(count_weights(s, &l, 1, &one));
    TB_TRY(count_weights(s, &l, l.heads, &all));
    size_t T = l.tokens;
    shot_tell(s, "heads", "heads", (double)l.heads);
    shot_tell(s, "w", "width of a head", (double)(D / l.heads));
    shot_tell(s, "weights", "weights of q, k, v, o", all);
    shot_title(s, "Multi-head attention: several questions at once",
               shot_text(s, "%zu heads of width %zu, %zu tokens.", l.heads,
                         (size_t)D / l.heads, T));
    for (size_t h = 0; h < l.heads; h++)
        grid(s, shot_text(s, "Head %zu", h + 1), p + h * T * T, T,
             "token that is seen", h % 2 == 1);
    shot_say(s,
             "{heads} heads cut the width of 32 into pieces of {w}, and each "
             "asks its own question. The four matrices have {weights} "
             "weights however many heads there are.");
    shot_check_that(s, off_one(p, l.heads * T, T) < 1e-12,
                    "every row of every head sums to 1");
    shot_check_that(s, apart,
                    "the values of one head change no bit of the "
                    "other heads' answers");
    shot_check_that(s, all == one, "one head has as many weights: %g", one);
    return TB_OK;
}

const shot_row shot_n2 = {
    .name = "N2",
    .about = "multi-head attention: one grid of weights per head",
    .input = {LOOKS_INPUTS,
              {"heads", "heads", TB_SHOT_CHOICE, "4", 0, 0,
               .choices = "1|2|4"}},
    .build = build_heads,
};

/* --- N4 ------------------------------------------------------------------- */

/* How much of a gradient at the decoder's token reaches each source token,
 * through its key and its value. */
static tb_status to_source(tb_shot *s, looks l, size_t token, double *length)
{
    double *g = shot_alloc(s, l.tokens * D, sizeof *g);
    tb_eval_result *r;
    if (!g)
        return TB_ERR_MEMORY;
    l.own_values = true;
    for (size_t i = 0; i < D; i++)
        g[(token - 1) * D + i] = tb_rng_normal(tb_rng_make(l.seed, "g"), i);
    const tb_eval_value cotangent = {"y", 2, {l.tokens, D}, g};
    TB_TRY(run(s, &l, &cotangent, &r));
    for (size_t k = 0; k < r->ngrads; k++)
        for (size_t j = 0; tb_streq(r->grads[k].name, "m") && j < l.tokens;
             j++) {
            double sum = 0;
            for (size_t i = 0; i < D; i++) {
                double v = r->grads[k].data[j * D + i];
                sum += v * v;
            }
            length[j] = tb_sqrt(sum);
        }
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

static void draw_cross(tb_shot *s, const looks *l, const double *p,
                       const double *g, size_t token)
{
    size_t T = l->tokens;
    bool beside = T < 6; /* else the numbers over its bars need the room */
    tb_bars *bars = shot_alloc(s, 1, sizeof *bars);
    if (!bars)
        return;
    grid(s, "Decoder asks, encoder answers", p, T, "source token", false);
    *bars = (tb_bars){.title =
                          shot_text(s, "What comes back from token %zu", token),
                      .x_label = "source token",
                      .y_label = "length of the gradient",
                      .labels = token_names,
                      .values = g,
                      .n = T,
                      .tone = TB_TONE_BOX,
                      .width = beside ? 371 : 740,
                      .height = 300};
    if (beside)
        shot_beside(s, &shot_bars, bars);
    else
        shot_below(s, &shot_bars, bars);
}

static tb_status build_cross(tb_shot *s)
{
    looks l = asked(s);
    size_t token = shot_whole(s, "token"), T = l.tokens;
    double *p, *g = shot_alloc(s, MOST, sizeof *g), least = 1, least_g = 1e300;
    l.apart = true;
    if (!g)
        return TB_ERR_MEMORY;
    if (token > T)
        return TB_FAIL(s->ctx, TB_ERR_INPUT,
                       "set token: got %zu, wanted 1 to %zu", token, T);
    TB_TRY(prepare(s, &l));
    TB_TRY(weights(s, &l, &p));
    TB_TRY(to_source(s, l, token, g));
    for (size_t i = 0; i < T * T; i++)
        least = tb_min2(least, p[i]);
    for (size_t j = 0; j < T; j++)
        least_g = tb_min2(least_g, g[j]);
    shot_title(s, "Encoder-decoder attention: one list asks the other",
               shot_text(s,
                         "Weights of %zu decoder tokens on %zu source "
                         "tokens.",
                         T, T));
    draw_cross(s, &l, p, g, token);
    shot_tell(s, "token", "the decoder's token", (double)token);
    shot_tell(s, "least", "smallest weight", least);
    shot_tell(s, "least.back", "smallest gradient of a source token", least_g);
    shot_say(s, "Questions come from the decoder, keys and values from the "
                "encoder's last floor. Nothing is hidden: the smallest weight "
                "is {least}. By keys and values the gradient of decoder token "
                "{token} reaches every source token, {least.back} or more of "
                "it, and this is the only road it has to them.");
    shot_check_that(s, off_one(p, T, T) < 1e-12, "every row sums to 1");
    shot_check_that(s, least > 0, "no source token is hidden");
    shot_check_that(s, least_g > 0, "every source token gets a gradient");
    return TB_OK;
}

const shot_row shot_n4 = {
    .name = "N4",
    .about = "encoder-decoder attention, forward and backward",
    .input = {LOOKS_INPUTS,
              {"token", "decoder token", TB_SHOT_NUMBER, "2", 1, MOST,
               .step = 1, .whole = true}},
    .build = build_cross,
};
