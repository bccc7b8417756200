/* SPDX-License-Identifier: MIT */
/* Small tests with numbers of their own, and the engine's answers to them. */
#include "pictures/shot_checklist.h"
#include "pictures/shot_drawn.h"

enum { LIST = 4, LISTS = 3 };
static const char *const streams[LISTS] = {"first", "second", "third"};

/* n whole numbers from 1 to 9. */
static const double *draw_list(tb_shot *s, const char *stream, size_t n)
{
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), stream);
    double *z = shot_alloc(s, n, sizeof *z);
    for (size_t i = 0; z && i < n; i++)
        z[i] = 1 + (double)tb_rng_below(r, i, 9);
    return z;
}

static const char *list_text(tb_shot *s, const double *z, size_t n)
{
    const char *text = "(";
    for (size_t i = 0; text && i < n; i++)
        text = shot_text(s, "%s%g%s", text, z[i], i + 1 < n ? ", " : ")");
    return text;
}

/* As words, so that a long line breaks. */
static tb_status show_words(tb_shot *s, const char *text)
{
    size_t n = 1;
    for (const char *p = text ? text : ""; *p; p++)
        n += *p == ' ';
    shot_word *w = shot_alloc(s, n, sizeof *w);
    shot_words_of *all = shot_alloc(s, 1, sizeof *all);
    if (!w || !all || !text)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        w[i] = (shot_word){.text = shot_next_word(s, &text), .bold = true};
    *all = (shot_words_of){.words = w, .n = n};
    shot_below(s, &shot_words, all);
    return s->status;
}

/* One number off the engine. */
static tb_status ask(tb_shot *s, const char *text, const tb_eval_value *sets,
                     size_t n, double *out)
{
    const tb_eval e = {.text = text, .sets = sets, .nsets = n, .seed = 1};
    return shot_eval(s, &e, 1, out);
}

/* Rows of a number and a text. */
static tb_status show_rows(tb_shot *s, const char *caption, const char *head,
                           const char *const *texts, size_t n)
{
    tb_column *columns = shot_alloc(s, 2, sizeof *columns);
    const char **cells = shot_alloc(s, 2 * n, sizeof *cells);
    tb_table *t = shot_alloc(s, 1, sizeof *t);
    if (!columns || !cells || !t)
        return TB_ERR_MEMORY;
    columns[0] = (tb_column){.head = "number", .align = TB_RIGHT};
    columns[1] = (tb_column){.head = head};
    for (size_t i = 0; i < n; i++) {
        cells[2 * i] = shot_text(s, "%zu", i + 1);
        cells[2 * i + 1] = texts[i];
    }
    *t = (tb_table){.caption = caption,
                    .columns = columns,
                    .n_columns = 2,
                    .cells = cells,
                    .n_rows = n};
    shot_below(s, &shot_table, t);
    return TB_OK;
}

/* --- the tests ------------------------------------------------------------ */

static tb_status ask_bar(tb_shot *s, quiz *q)
{
    enum { BARS = 6 };
    static const char *const names[BARS] = {"1", "2", "3", "4", "5", "6"};
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "bar");
    size_t j = (size_t)tb_rng_below(r, 0, BARS);
    const double *z = draw_list(s, "bars", BARS);
    tb_bars *b = shot_alloc(s, 1, sizeof *b);
    if (!z || !b)
        return TB_ERR_MEMORY;
    *b = (tb_bars){.title = "A list as bars",
                   .x_label = "dial j",
                   .y_label = "its height",
                   .labels = names,
                   .values = z,
                   .n = BARS,
                   .width = 740,
                   .height = 220};
    shot_below(s, &shot_bars, b);
    q->question = shot_text(s, "Tell how high dial %zu is.", j + 1);
    q->wanted = "[height]";
    q->truth[0] = z[j];
    q->n = 1;
    return TB_OK;
}

/* Which way a dial must be turned is the sign of its gradient. */
static tb_status ask_gradient(tb_shot *s, quiz *q)
{
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "dial");
    size_t j = (size_t)tb_rng_below(r, 0, LIST);
    const double *x = draw_list(s, "is", LIST),
                 *t = draw_list(s, "wanted", LIST);
    static const double one = 1;
    if (!x || !t)
        return TB_ERR_MEMORY;
    const tb_eval_value sets[] = {{"x", 1, {LIST}, x}, {"t", 1, {LIST}, t}};
    const tb_eval_value cotangent = {"y", 1, {1}, &one};
    const tb_eval e = {.text = "e = x - t; dot(e, e)",
                       .sets = sets,
                       .nsets = 2,
                       .cotangent = &cotangent};
    tb_eval_result *got;
    TB_TRY(
        show_words(s, shot_text(s, "x = %s, wanted: %s", list_text(s, x, LIST),
                                list_text(s, t, LIST))));
    TB_TRY(tb_eval_run(s->ctx, &e, &got));
    double g = got->grads[0].data[j];
    tb_eval_free(s->ctx, got);
    q->question = shot_text(s,
                            "The error is the sum of the squared distances. "
                            "Must dial %zu be turned up (1), down (2) or not "
                            "at all (3), and how large is its gradient?",
                            j + 1);
    q->wanted = "[1, 2 or 3, size]";
    q->truth[0] = g < 0 ? 1 : g > 0 ? 2 : 3;
    q->truth[1] = tb_fabs(g);
    q->n = 2;
    return TB_OK;
}

/* Does the engine take it? */
static tb_status taken(tb_shot *s, const tb_eval *e, tb_status refusal,
                       bool *yes)
{
    tb_eval_result *r;
    tb_status status = tb_eval_run(s->ctx, e, &r);
    *yes = status == TB_OK;
    if (*yes)
        tb_eval_free(s->ctx, r);
    tb_error_clear(s->ctx);
    return status == refusal ? TB_OK : status;
}

static tb_status ask_length(tb_shot *s, quiz *q)
{
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "length");
    size_t turn = (size_t)tb_rng_below(r, 0, LISTS);
    const double *x = draw_list(s, "list", LIST);
    const char *texts[LISTS];
    if (!x)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < LISTS; i++) {
        size_t n = LIST - 1 + (i + turn) % LISTS;
        bool yes;
        const tb_eval_value set = {"x", 1, {LIST}, x};
        const tb_eval e = {.text = shot_text(s, "x + project(x, %zu)", n),
                           .sets = &set,
                           .nsets = 1};
        texts[i] = shot_text(s, "%zu numbers", n);
        if (!e.text || !texts[i])
            return TB_ERR_MEMORY;
        TB_TRY(taken(s, &e, TB_ERR_PARSE, &yes));
        q->truth[0] = yes ? (double)(i + 1) : q->truth[0];
    }
    TB_TRY(show_rows(s, shot_text(s, "x = %s", list_text(s, x, LIST)),
                     "what the box gives", texts, LISTS));
    q->question = "Which of these boxes may be added to x?";
    q->wanted = "[1], [2] or [3]";
    q->n = 1;
    return TB_OK;
}

static tb_status ask_variance(tb_shot *s, quiz *q)
{
    static const double ones[LIST] = {1, 1, 1, 1};
    const double *z = draw_list(s, "list", LIST);
    const tb_eval_value sets[] = {{"x", 1, {LIST}, z}, {"u", 1, {LIST}, ones}};
    if (!z)
        return TB_ERR_MEMORY;
    TB_TRY(show_words(s, list_text(s, z, LIST)));
    TB_TRY(ask(s, "mean(x)", sets, 1, &q->truth[0]));
    TB_TRY(ask(s, "c = x - mix(mean(x), u)\nmean(c*c)", sets, 2, &q->truth[1]));
    q->question = "Tell the mean and the variance of this list.";
    q->wanted = "[mean,variance]";
    q->n = 2;
    return TB_OK;
}

/* The unit list that picks dial j, from 0. */
static const double *pick(tb_shot *s, size_t j)
{
    double *e = shot_alloc(s, LIST, sizeof *e);
    if (e)
        e[j] = 1;
    return e;
}

/* One dial after gain and bias. */
static tb_status ask_symbols(tb_shot *s, quiz *q)
{
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "dial");
    size_t j = (size_t)tb_rng_below(r, 0, LIST);
    static const double hat[LIST] = {-1.5, -0.5, 0.5, 1.5};
    const double *g = draw_list(s, "gain", LIST),
                 *b = draw_list(s, "bias", LIST);
    const double *e = pick(s, j);
    if (!g || !b || !e)
        return TB_ERR_MEMORY;
    const tb_eval_value sets[] = {{"x", 1, {LIST}, hat},
                                  {"g", 1, {LIST}, g},
                                  {"b", 1, {LIST}, b},
                                  {"e", 1, {LIST}, e}};
    TB_TRY(
        show_words(s, shot_text(s, "squeezed: %s, \xCE\xB3 = %s, \xCE\xB2 = %s",
                                list_text(s, hat, LIST), list_text(s, g, LIST),
                                list_text(s, b, LIST))));
    TB_TRY(ask(s, "dot(g*x + b, e)", sets, 4, &q->truth[0]));
    q->question = shot_text(s,
                            "Tell dial %zu of \xCE\xB3 \xE2\x8A\x99 squeezed + "
                            "\xCE\xB2.",
                            j + 1);
    q->wanted = "[value]";
    q->n = 1;
    return TB_OK;
}

/* A drawing of either placement; which of them is asked of the graph. */
static tb_status ask_placement(tb_shot *s, quiz *q)
{
    static const char *const blocks[] = {"x = norm(x + F(x))",
                                         "x = x + F(norm(x))"};
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "placement");
    int tolls;
    TB_TRY(
        shot_draw(s, blocks[tb_rng_below(r, 0, 2)], "A block", false, &tolls));
    q->question = "Name this placement, 1: Post-LN, 2: Pre-LN.";
    q->wanted = "[1] or [2]";
    q->truth[0] = tolls ? 1 : 2;
    q->n = 1;
    return TB_OK;
}

/* A floor is a list, a dial one of its numbers. */
static tb_status ask_subscript(tb_shot *s, quiz *q)
{
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "subscript");
    size_t i = (size_t)tb_rng_below(r, 0, LISTS);
    size_t j = (size_t)tb_rng_below(r, 1, LIST);
    const double *x = NULL, *e = pick(s, j);
    const char *texts[LISTS];
    for (size_t k = 0; k < LISTS; k++) {
        const double *drawn = draw_list(s, streams[k], LIST);
        texts[k] = drawn ? list_text(s, drawn, LIST) : NULL;
        x = k == i ? drawn : x;
    }
    if (s->status != TB_OK || !x || !e)
        return TB_ERR_MEMORY;
    const tb_eval_value sets[] = {{"x", 1, {LIST}, x}, {"e", 1, {LIST}, e}};
    TB_TRY(show_rows(s, "Three floors", "its list", texts, LISTS));
    TB_TRY(ask(s, "sum(x/x)", sets, 1, &q->truth[0])); /* from 1 to 9 each */
    TB_TRY(ask(s, "dot(x, e)", sets, 2, &q->truth[1]));
    q->question =
        shot_text(s,
                  "How many numbers is x_i, i = %zu, and which is its "
                  "x_j, j = %zu?",
                  i + 1, j + 1);
    q->wanted = "[how many,which]";
    q->n = 2;
    return TB_OK;
}

static tb_status ask_flat(tb_shot *s, quiz *q)
{
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "flat");
    size_t flat = (size_t)tb_rng_below(r, 0, LISTS);
    const char *texts[LISTS];
    const double eps = 0;
    for (size_t i = 0; i < LISTS; i++) {
        double z[LIST];
        bool yes;
        const double *drawn = draw_list(s, streams[i], LIST);
        const tb_eval_value x = {"x", 1, {LIST}, z};
        const tb_eval e = {
            .text = "layernorm(x)", .sets = &x, .nsets = 1, .eps = &eps};
        if (!drawn)
            return TB_ERR_MEMORY;
        for (size_t k = 0; k < LIST; k++)
            z[k] = i == flat ? drawn[0] : drawn[k];
        z[1] += i != flat && z[1] == z[0]; /* not flat by chance */
        TB_TRY(taken(s, &e, TB_ERR_INPUT, &yes));
        q->truth[0] = yes ? q->truth[0] : (double)(i + 1);
        texts[i] = list_text(s, z, LIST);
    }
    TB_TRY(show_rows(s, "Three lists", "list", texts, LISTS));
    q->question = "Tell which of them has no norm without \xCE\xB5.";
    q->wanted = "[1], [2] or [3]";
    q->n = 1;
    return TB_OK;
}

tb_status quiz_ask(tb_shot *s, size_t k, quiz *out)
{
    static tb_status (*const tests[CHECKLIST])(tb_shot *, quiz *) = {
        ask_bar,     ask_gradient,  ask_length,    ask_variance,
        ask_symbols, ask_placement, ask_subscript, ask_flat};
    TB_TRY(tests[k - 1](s, out));
    return show_words(s, out->question);
}
