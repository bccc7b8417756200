/* SPDX-License-Identifier: MIT */
/* tollbooth recall: the cards. */
#include "recall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_SEED UINT64_MAX /* above what --seed takes */

static const opt_usage usage = {
    .name = "recall",
    .operands = "[ID...]",
    .summary = "questions and answers, proved by the engine",
    .detail =
        "Asks the cards on the terminal, in an order that --seed chooses: "
        "Enter shows the answer, 1 to 4 say how well it was known, p computes "
        "what the card claims. IDs (`tollbooth recall --list` names them) and "
        "--deck choose among 24 cards: six of the walkthrough's recall, ten "
        "questions and eight checklist items of its foundations.\n"
        "With --progress only cards that are due are asked. again: due today; "
        "hard: after as many days as the last time; good: twice as many; easy: "
        "four times as many; at least 1 (easy 4), at most 365.",
    .example = "recall --prove recall-eps",
    .min = 0,
    .max = -1,
};

static int unknown_card(const char *id)
{
    size_t n = tb_card_count();
    const char **names = calloc(n, sizeof *names), *near = NULL;
    for (size_t i = 0; names && i < n; i++)
        names[i] = tb_card_at(i)->id;
    if (names)
        near = tb_nearest(id, names, n);
    int code = usage_error("recall",
                           "got %s, wanted the ID of a card%s%s%s; --list "
                           "names them",
                           id, near ? "; did you mean " : "", near ? near : "",
                           near ? "?" : "");
    free(names);
    return code;
}

/* --deck, or all; 0 and IDs restrict it to those. */
static int choose(int deck, int argc, char **argv, choice *out)
{
    size_t n = tb_card_count();
    bool *named = calloc(n, sizeof *named);
    int code = 0;
    out->cards = calloc(n, sizeof *out->cards);
    if (!named || !out->cards)
        code = tb_status_exit(TB_ERR_MEMORY);
    for (int i = 0; i < argc && code == 0; i++) {
        size_t at = tb_card_find(argv[i]);
        if (at == n)
            code = unknown_card(argv[i]);
        else
            named[at] = true;
    }
    for (size_t i = 0; i < n && code == 0; i++) {
        bool in_deck = deck == 0 || strcmp(tb_card_at(i)->deck,
                                           tb_deck_names[deck - 1]) == 0;
        if (in_deck && (argc == 0 || named[i]))
            out->cards[out->n++] = i;
    }
    free(named);
    if (code == 0 && out->n == 0)
        code = usage_error("recall",
                           "got --deck %s, wanted the deck of the "
                           "cards named",
                           tb_deck_names[deck - 1]);
    return code;
}

/* --- output ------------------------------------------------------------------
 */

static int list(tb_ctx *ctx, const choice *c, const tb_terminal *term)
{
    tb_out *out;
    tb_status s = tb_out_create(ctx, &out);
    for (size_t i = 0; i < c->n && s == TB_OK; i++) {
        const tb_card *card = tb_card_at(c->cards[i]);
        char line[400];
        snprintf(line, sizeof line, "%-19s %-4s %s", card->id, card->shot,
                 card->question);
        s = tb_text_term(line, 25, term, out);
    }
    if (s == TB_OK)
        fputs(tb_out_str(out), stdout);
    tb_out_destroy(out);
    return s == TB_OK ? finish(0) : die(ctx, s);
}

/* "ok recall-eps: largest gain ...: 316.22777" and the command below. */
static tb_status show_proof(tb_ctx *ctx, const tb_card *card, const tb_proof *p,
                            const tb_terminal *term, tb_out *out)
{
    char label[80];
    tb_out_reset(out);
    snprintf(label, sizeof label, "%-6s %s: ",
             !p->n   ? "-"
             : p->ok ? "ok"
                     : "FAILED",
             card->id);
    tb_status s = tb_proof_term(ctx, label, p, 7, term, out);
    if (s != TB_OK)
        return s;
    fputs(tb_out_str(out), stdout);
    if (p->n)
        printf("       tollbooth %s\n", p->command);
    return TB_OK;
}

/* Of all cards chosen, into j if it is there, else as text; *failed counts. */
static tb_status prove(tb_ctx *ctx, const choice *c, const tb_terminal *term,
                       tb_json *j, size_t *failed)
{
    tb_out *out;
    size_t proved = 0;
    tb_proof p;
    tb_status s = tb_out_create(ctx, &out);
    for (size_t i = 0; i < c->n && s == TB_OK; i++) {
        const tb_card *card = tb_card_at(c->cards[i]);
        s = tb_card_prove(ctx, c->cards[i], &p);
        if (s != TB_OK)
            break;
        proved += p.n > 0;
        *failed += !p.ok;
        if (j)
            tb_card_json(card, &p, j);
        else
            s = show_proof(ctx, card, &p, term, out);
    }
    tb_out_destroy(out);
    if (s == TB_OK && !j)
        printf("%zu cards, %zu with something to compute, %zu failed\n", c->n,
               proved, *failed);
    return s;
}

static int print_object(tb_ctx *ctx, const choice *c, size_t *failed)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_array(j, "cards");
    tb_status s = prove(ctx, c, NULL, j, failed);
    tb_json_end(j);
    tb_json_end(j);
    if (s == TB_OK)
        return print_json(ctx, j, 0);
    tb_json_destroy(j);
    return die(ctx, s);
}

/* --- command -----------------------------------------------------------------
 */

static int run(tb_ctx *ctx, const choice *c, const recall_options *o)
{
    tb_terminal term = terminal_of(o->ascii);
    size_t failed = 0;
    int code = 0;
    if (o->import)
        return recall_import(ctx, o);
    if (o->format)
        return recall_export(ctx, c, o);
    if (o->json)
        code = print_object(ctx, c, &failed);
    else if (o->prove || o->check) {
        tb_status s = prove(ctx, c, &term, NULL, &failed);
        code = s == TB_OK ? finish(0) : die(ctx, s);
    } else
        return o->list ? list(ctx, c, &term) : quiz(ctx, c, o);
    return code == 0 && o->check && failed ? tb_status_exit(TB_CHECK) : code;
}

/* Words that have no meaning beside the others; 0 or an exit code. */
static int check_options(const recall_options *o)
{
    if (o->out && !o->format)
        return usage_error("recall", "got --out alone, wanted --export anki or "
                                     "--export obsidian");
    if (o->two_way && !o->format)
        return usage_error("recall", "got --two-way alone, wanted --export "
                                     "anki or --export obsidian");
    if (o->import && o->progress)
        return usage_error("recall", "got --import and --progress, wanted one "
                                     "of them");
    return 0;
}

int cmd_recall(tb_ctx *ctx, int argc, char **argv)
{
    recall_options o = {.seed = NO_SEED};
    choice c = {0};
    const opt opts[] = {
        {"deck", OPT_CHOICE, &o.deck, NULL, "cards of one deck (default all)",
         "all|recall|inline|checklist", 0},
        {"list", OPT_FLAG, &o.list, NULL,
         "ID, picture and question of each card", 0, 0},
        {"prove", OPT_FLAG, &o.prove, NULL,
         "compute what each card claims, and print the number", 0, 0},
        {"check", OPT_FLAG, &o.check, NULL,
         "the same; exit 1 if a number is not the one claimed. With --import: "
         "exit 1 if a card is not ours, or missing",
         0, 0},
        {"seed", OPT_SEED, &o.seed, "S",
         "order of the questions (default: of the day)", 0, 0},
        {"progress", OPT_TEXT, &o.progress, "FILE",
         "when to ask which card again is kept here", 0, 0},
        {"today", OPT_TEXT, &o.today, "DATE", "as if it were 2026-12-01", 0, 0},
        {"export", OPT_CHOICE, &o.format, NULL,
         "print the cards for another program", "none|anki|obsidian", 0},
        {"out", OPT_TEXT, &o.out, "FILE",
         "of --export: write there, in one step; an Obsidian file that is "
         "there is not replaced",
         0, 0},
        {"two-way", OPT_FLAG, &o.two_way, NULL,
         "of --export: answers ask for their questions, too", 0, 0},
        {"import", OPT_TEXT, &o.import, "FILE",
         "read cards of such a file and say which they are; with --export "
         "write them",
         0, 0},
        {"json", OPT_FLAG, &o.json, NULL,
         "print one JSON object: the cards with their proofs, or what --import "
         "read",
         0, 0},
        {"ascii", OPT_FLAG, &o.ascii, NULL, "plain ASCII, formulas spelled out",
         0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    o.has_seed = o.seed != NO_SEED;
    int code = check_options(&o);
    if (code == 0)
        code = choose(o.deck, argc, argv, &c);
    if (code == 0)
        code = run(ctx, &c, &o);
    free(c.cards);
    return code;
}
