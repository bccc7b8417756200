/* SPDX-License-Identifier: MIT */
/* Small tests with numbers of their own, and the engine's answers to them. */
#include "pictures/shot_checklist.h"
#include "pictures/shot_drawn.h"
#include "tollbooth/eval.h"

enum { LIST = 4, LISTS = 3 };

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

static tb_status show_words(tb_shot *s, const char *text)
{
    shot_word *w = shot_alloc(s, 1, sizeof *w);
    shot_words_of *all = shot_alloc(s, 1, sizeof *all);
    if (!w || !all || !text)
        return TB_ERR_MEMORY;
    *w = (shot_word){.text = text, .bold = true};
    *all = (shot_words_of){.words = w, .n = 1};
    shot_below(s, &shot_words, all);
    return TB_OK;
}

/* One number off the engine. */
static tb_status ask(tb_shot *s, const char *text, const double *z, size_t n,
                     double *out)
{
    double *ones = shot_alloc(s, n, sizeof *ones);
    if (!ones)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        ones[i] = 1;
    const tb_eval_value sets[] = {{"x", 1, {n}, z}, {"u", 1, {n}, ones}};
    const tb_eval e = {
        .text = text, .sets = sets, .nsets = strchr(text, 'u') ? 2 : 1};
    tb_eval_result *r;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    *out = r->y.data[0];
    tb_eval_free(s->ctx, r);
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

static tb_status ask_variance(tb_shot *s, quiz *q)
{
    const double *z = draw_list(s, "list", LIST);
    if (!z)
        return TB_ERR_MEMORY;
    TB_TRY(show_words(s, list_text(s, z, LIST)));
    TB_TRY(ask(s, "mean(x)", z, LIST, &q->truth[0]));
    TB_TRY(ask(s, "c = x - mix(mean(x), u)\nmean(c*c)", z, LIST, &q->truth[1]));
    q->question = "Tell the mean and the variance of this list.";
    q->wanted = "[mean,variance]";
    q->n = 2;
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

static tb_status ask_subscript(tb_shot *s, quiz *q)
{
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "subscript");
    bool floor = tb_rng_below(r, 0, 2) == 1;
    TB_TRY(show_words(s, floor ? "x with the number of a floor, i"
                               : "x with the number of a dial, j"));
    q->question = "Tell which it is, 1: one number, 2: a whole list.";
    q->wanted = "[1] or [2]";
    q->truth[0] = floor ? 2 : 1;
    q->n = 1;
    return TB_OK;
}

/* Does a norm without eps refuse this list? */
static tb_status refused(tb_shot *s, const double *z, bool *yes)
{
    const tb_eval_value x = {"x", 1, {LIST}, z};
    const double eps = 0;
    const tb_eval e = {
        .text = "layernorm(x)", .sets = &x, .nsets = 1, .eps = &eps};
    tb_eval_result *r;
    tb_status status = tb_eval_run(s->ctx, &e, &r);
    *yes = status == TB_ERR_INPUT;
    if (status == TB_OK)
        tb_eval_free(s->ctx, r);
    tb_error_clear(s->ctx);
    return *yes ? TB_OK : status;
}

static tb_status ask_flat(tb_shot *s, quiz *q)
{
    static const char *const streams[LISTS] = {"first", "second", "third"};
    static const tb_column columns[] = {{.head = "number", .align = TB_RIGHT},
                                        {.head = "list"}};
    tb_rng r = tb_rng_make(shot_whole(s, "seed"), "flat");
    size_t flat = (size_t)tb_rng_below(r, 0, LISTS);
    const char **cells = shot_alloc(s, 2 * LISTS, sizeof *cells);
    tb_table *t = shot_alloc(s, 1, sizeof *t);
    if (!cells || !t)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < LISTS; i++) {
        double z[LIST];
        bool yes;
        const double *drawn = draw_list(s, streams[i], LIST);
        if (!drawn)
            return TB_ERR_MEMORY;
        for (size_t k = 0; k < LIST; k++)
            z[k] = i == flat ? drawn[0] : drawn[k];
        z[1] += i != flat && z[1] == z[0]; /* not flat by chance */
        TB_TRY(refused(s, z, &yes));
        q->truth[0] = yes ? (double)(i + 1) : q->truth[0];
        cells[2 * i] = shot_text(s, "%zu", i + 1);
        cells[2 * i + 1] = list_text(s, z, LIST);
    }
    *t = (tb_table){.caption = "Three lists",
                    .columns = columns,
                    .n_columns = 2,
                    .cells = cells,
                    .n_rows = LISTS};
    shot_below(s, &shot_table, t);
    q->question = "Tell which of them has no norm without \xCE\xB5.";
    q->wanted = "[1], [2] or [3]";
    q->n = 1;
    return TB_OK;
}

tb_status quiz_ask(tb_shot *s, size_t k, quiz *out)
{
    static tb_status (*const tests[CHECKLIST])(tb_shot * s,
                                               quiz * q) = {[0] = ask_bar,
                                                            [3] = ask_variance,
                                                            [5] = ask_placement,
                                                            [6] = ask_subscript,
                                                            [7] = ask_flat};
    return tests[k - 1] ? tests[k - 1](s, out) : TB_OK;
}
