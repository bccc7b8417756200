/* SPDX-License-Identifier: MIT */
/* tollbooth blocks: the files of blocks/, their lane and source. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const opt_usage usage = {
    .name = "blocks",
    .operands = "",
    .summary = "the blocks that are built in",
    .detail = "Their names stand wherever a command takes a BLOCK: what is on "
              "the lane when every branch is removed, what they are, and where "
              "they were published. --json prints their texts too.",
    .example = "blocks",
};

typedef struct row {
    tb_block *block;
    char *text, *lane;
    char what[120], source[160];
} row;

/* A line of the comment at the head of the file, from 0. */
static void line_of(const char *about, int line, char *out, size_t cap)
{
    for (; about && line > 0; line--) {
        about = strchr(about, '\n');
        about += about != NULL;
    }
    size_t n = about ? strcspn(about, "\n") : 0;
    snprintf(out, cap, "%.*s", (int)n, about ? about : "");
}

/* Without a number: the second line up to what is beside it, "PMLR v119" of a
 * long one. */
static void other_source(const char *about, char *out, size_t cap)
{
    enum { LONG = 24 };
    line_of(about, 1, out, cap);
    char *and = strstr(out, " and ");
    size_t n = and? (size_t)(and-out) : strcspn(out, "(;");
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    char *last = n > LONG ? strrchr(out, ',') : NULL;
    if (last)
        memmove(out, last + 2, strlen(last + 1));
}

/* The first arXiv number of the comment. */
static void source_of(const char *about, char *out, size_t cap)
{
    static const char mark[] = "arXiv:", digits[] = "0123456789";
    const char *at = about ? strstr(about, mark) : NULL;
    while (at && !strchr(digits, at[sizeof mark - 1]))
        at = strstr(at + 1, mark);
    if (!at) {
        other_source(about, out, cap);
        return;
    }
    at += sizeof mark - 1;
    size_t n = strspn(at, "0123456789.");
    while (n && at[n - 1] == '.') /* of the sentence */
        n--;
    snprintf(out, cap, "%s%.*s", mark, (int)n, at);
}

static tb_status load(tb_ctx *ctx, size_t i, row *r)
{
    tb_status s = tb_block_load(ctx, tb_builtin_name(i), &r->block);
    if (s == TB_OK)
        s = tb_block_text(ctx, r->block, &r->text);
    if (s == TB_OK)
        s = tb_lane_text(ctx, r->block, &r->lane);
    if (s != TB_OK)
        return s;
    line_of(tb_block_about(r->block), 0, r->what, sizeof r->what);
    source_of(tb_block_about(r->block), r->source, sizeof r->source);
    return TB_OK;
}

static void unload(tb_ctx *ctx, row *r)
{
    tb_text_free(ctx, r->text);
    tb_text_free(ctx, r->lane);
    if (r->block)
        tb_block_destroy(ctx, r->block);
}

static int as_json(tb_ctx *ctx, const row *rows, size_t n)
{
    tb_json *j;
    if (tb_json_create(ctx, &j) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_array(j, "blocks");
    for (size_t i = 0; i < n; i++) {
        tb_json_object(j, NULL);
        tb_json_string(j, "name", tb_block_name(rows[i].block));
        tb_json_string(j, "text", rows[i].text);
        tb_json_string(j, "lane", rows[i].lane);
        tb_json_string(j, "source", tb_block_about(rows[i].block));
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_json_end(j);
    return print_json(ctx, j, 0);
}

enum { COLUMNS = 4, WIDE = 110 }; /* below it: the lane in a word, no source */

/* "toll" of "toll, 2 a block". */
static void lane_word(row *r)
{
    r->lane[strcspn(r->lane, ", ")] = '\0';
}

static int as_table(tb_ctx *ctx, row *rows, size_t n, bool ascii)
{
    static const tb_column columns[] = {{"block", TB_LEFT, 0, false},
                                        {"lane", TB_LEFT, 0, true},
                                        {"what it is", TB_LEFT, 2, true},
                                        {"source", TB_LEFT, 1, false}};
    const char **cells = calloc(COLUMNS * n + 1, sizeof *cells);
    tb_terminal term = terminal_of(ascii);
    size_t shown = term.width < WIDE ? COLUMNS - 1 : COLUMNS;
    tb_out *out;
    if (!cells || tb_out_create(ctx, &out) != TB_OK) {
        free(cells);
        return die(ctx, TB_ERR_MEMORY);
    }
    for (size_t i = 0; i < n; i++) {
        const char **cell = &cells[shown * i];
        if (shown < COLUMNS)
            lane_word(&rows[i]);
        cell[0] = tb_block_name(rows[i].block);
        cell[1] = rows[i].lane;
        cell[2] = rows[i].what;
        if (shown == COLUMNS)
            cell[3] = rows[i].source;
    }
    tb_table t = {
        .columns = columns, .n_columns = shown, .cells = cells, .n_rows = n};
    tb_status s = tb_table_term(ctx, &t, &term, out);
    if (s == TB_OK)
        fputs(tb_out_str(out), stdout);
    if (s == TB_OK && shown < COLUMNS)
        printf("not shown: source\n");
    tb_out_destroy(out);
    free(cells);
    return s == TB_OK ? finish(0) : die(ctx, s);
}

int cmd_blocks(tb_ctx *ctx, int argc, char **argv)
{
    bool json = false, ascii = false;
    const opt opts[] = {
        {"json", OPT_FLAG, &json, NULL, "print one JSON object", 0, 0},
        {"ascii", OPT_FLAG, &ascii, NULL, "plain ASCII drawing", 0, 0},
        OPT_END,
    };
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    size_t n = tb_builtin_count();
    row *rows = calloc(n + 1, sizeof *rows);
    tb_status s = rows ? TB_OK : TB_ERR_MEMORY;
    for (size_t i = 0; i < n && s == TB_OK; i++)
        s = load(ctx, i, &rows[i]);
    int code = s != TB_OK ? die(ctx, s)
               : json     ? as_json(ctx, rows, n)
                          : as_table(ctx, rows, n, ascii);
    for (size_t i = 0; i < n && rows; i++)
        unload(ctx, &rows[i]);
    free(rows);
    return code;
}
