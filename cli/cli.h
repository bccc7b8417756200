/* SPDX-License-Identifier: MIT */
/* What the commands share. */
#ifndef TB_CLI_CLI_H
#define TB_CLI_CLI_H

#include <stdio.h>

#include "opt.h"
#include "tollbooth/block.h"
#include "tollbooth/pictures.h"

typedef int (*command_fn)(tb_ctx *ctx, int argc, char **argv);

int cmd_bench(tb_ctx *ctx, int argc, char **argv);
int cmd_blocks(tb_ctx *ctx, int argc, char **argv);
int cmd_compare(tb_ctx *ctx, int argc, char **argv);
int cmd_eval(tb_ctx *ctx, int argc, char **argv);
int cmd_explain(tb_ctx *ctx, int argc, char **argv);
int cmd_export(tb_ctx *ctx, int argc, char **argv);
int cmd_flow(tb_ctx *ctx, int argc, char **argv);
int cmd_generate(tb_ctx *ctx, int argc, char **argv);
int cmd_lint(tb_ctx *ctx, int argc, char **argv);
int cmd_picture(tb_ctx *ctx, int argc, char **argv);
int cmd_recall(tb_ctx *ctx, int argc, char **argv);
int cmd_report(tb_ctx *ctx, int argc, char **argv);
int cmd_score(tb_ctx *ctx, int argc, char **argv);
int cmd_train(tb_ctx *ctx, int argc, char **argv);
int cmd_translate(tb_ctx *ctx, int argc, char **argv);

/** put_clean - text as a terminal may have it: of control characters only
 * newline and tab, '?' for the others. What users and files say goes through
 * it. */
void put_clean(FILE *to, const char *text);

/** complain - a line for stderr, clean. */
void complain(const char *fmt, ...) TB_PRINTF(1, 2);

/** die - "tollbooth: <error text>" on stderr; the exit code of `s`. */
int die(tb_ctx *ctx, tb_status s);

/** usage_error - the same for a usage mistake, exit 2. */
int usage_error(const char *command, const char *fmt, ...) TB_PRINTF(2, 3);

/** finish - flush stdout; 5 with a message if it could not be written, else
 * `code`. */
int finish(int code);

/** print_json - the finished object and a newline. */
int print_json(tb_ctx *ctx, tb_json *j, int code);

/** command_line - "tollbooth flow 'x = F(x)'"; NULL: no memory; free it. */
char *command_line(int argc, char **argv);

/** terminal_of - columns of the terminal on stdout (COLUMNS wins), 80 where
 * there is none. */
tb_terminal terminal_of(bool ascii);

/** line_columns - columns that lines may be broken to fit into; 0: leave them
 * whole, they go to a file or a program. */
size_t line_columns(void);

/** stderr_is_terminal - true if a progress line may be rewritten. */
bool stderr_is_terminal(void);

/* Options that size a model, for every command that takes a BLOCK. `s` is a
 * tb_settings, D the command's default width as text; norm and eps exist
 * wherever a BLOCK does (ruling 6). */
#define SETTINGS_OPTS(s, D)                                                      \
    {                                                                            \
        "width",                                                                 \
        OPT_SIZE,                                                                \
        &(s).width,                                                              \
        "d",                                                                     \
        "width of the stream (default " D ")",                                   \
        0,                                                                       \
        0},                                                                      \
        {"heads", OPT_SIZE, &(s).heads, "h", "attention heads (default 4)",      \
         0,       0},                                                            \
        {"kv-heads",                                                             \
         OPT_SIZE,                                                               \
         &(s).kv_heads,                                                          \
         "n",                                                                    \
         "key and value heads (default: heads)",                                 \
         0,                                                                      \
         0},                                                                     \
        {"ffn", OPT_SIZE, &(s).ffn, "n", "width inside ffn (default: 4*d)",      \
         0,     0},                                                              \
        {"norm",                                                                 \
         OPT_TEXT,                                                               \
         &(s).norm,                                                              \
         "KIND",                                                                 \
         "norm(...): rmsnorm scalenorm l2norm batchnorm powernorm dyt derf "     \
         "(default layernorm)",                                                  \
         0,                                                                      \
         0},                                                                     \
        {"eps", OPT_REAL, &(s).eps, "E", "eps of the norms (default 1e-5)",      \
         0,     0},                                                              \
        {"dropout", OPT_REAL, &(s).dropout, "p", "dropout rate (default 0)",     \
         0,         0},                                                          \
        {"no-bias", OPT_OFF, &(s).bias, NULL, "linears without biases", 0, 0},   \
        {"positions",                                                            \
         OPT_CHOICE,                                                             \
         &(s).positions,                                                         \
         NULL,                                                                   \
         "where a token stands (default learned)",                               \
         "none|learned|sinusoidal|rope",                                         \
         0},                                                                     \
        {"no-positions",                                                         \
         OPT_OFF,                                                                \
         &(s).positions,                                                         \
         NULL,                                                                   \
         "the same as --positions none",                                         \
         0,                                                                      \
         0},                                                                     \
        {"tied", OPT_ON, &(s).tied, NULL, "the head shares the token embedding", \
         0,      0},                                                             \
    {                                                                            \
        "init", OPT_TEXT, &(s).init, "RULES",                                    \
            "init rules over the block's: '*: normal(0.02)'", 0, 0               \
    }

/* What is stacked, for the commands that look at a model. */
#define STACK_OPTS(s)                                                          \
    {"stack",                                                                  \
     OPT_CHOICE,                                                               \
     &(s).stack,                                                               \
     NULL,                                                                     \
     "one causal stack, one that sees everything, or both (default decoder)",  \
     "decoder|encoder|encoder-decoder",                                        \
     0},                                                                       \
    {                                                                          \
        "decoder-depth", OPT_SIZE, &(s).decoder_depth, "M",                    \
            "decoder blocks of encoder-decoder (default: as deep as the "      \
            "encoder)",                                                        \
            0, 0                                                               \
    }

#endif
