/* SPDX-License-Identifier: MIT */
/* The program: finds the command, runs it, exits with its code. */
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name;
    command_fn run;
    const char *summary;
} command;

static const command commands[] = {
    {"explain", cmd_explain, "diagram, Jacobian, lane and weights of a block"},
    {"eval", cmd_eval, "evaluate an equation, its gradients and Jacobian"},
    {"flow", cmd_flow, "gradient flow through any depth, side by side"},
    {"train", cmd_train, "train a language model on a text"},
    {"compare", cmd_compare, "blocks on the same data and seeds, one report"},
    {"generate", cmd_generate, "write text with a trained model"},
    {"score", cmd_score, "loss and perplexity of a trained model on a text"},
    {"blocks", cmd_blocks, "the blocks that are built in"},
};

enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

static tb_ctx *running;

static void on_signal(int sig)
{
    (void)sig;
    tb_ctx_interrupt(running);
}

static void print_usage(FILE *to)
{
    fprintf(to, "tollbooth " TB_VERSION
                ": write a Transformer block as an equation, read its\n"
                "Jacobian, see its gradient highway, measure it, train it.\n\n"
                "usage: tollbooth COMMAND ...\n\n");
    for (size_t i = 0; i < NCOMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(to, "\ntollbooth COMMAND --help tells more. A BLOCK is a built-in "
                "name (pre-ln),\na file, or the text itself: 'x = x + "
                "F(norm(x))'.\n");
}

static int unknown_command(const char *word)
{
    const char *names[NCOMMANDS], *near;
    for (size_t i = 0; i < NCOMMANDS; i++)
        names[i] = commands[i].name;
    near = tb_nearest(word, names, NCOMMANDS);
    fprintf(stderr, "tollbooth: unknown command %s", word);
    if (near)
        fprintf(stderr, "; did you mean %s?", near);
    fprintf(stderr, "\ntollbooth --help lists them\n");
    return tb_status_exit(TB_ERR_USAGE);
}

static void print_log(void *user, tb_log_level level, const char *line)
{
    (void)user;
    fprintf(stderr, "tollbooth: %s%s\n",
            level == TB_LOG_WARN ? "warning: " : "", line);
}

static int run(const command *c, int argc, char **argv)
{
    struct sigaction act = {.sa_handler = on_signal};
    if (tb_ctx_create(&running) != TB_OK) {
        fprintf(stderr, "tollbooth: out of memory\n");
        return tb_status_exit(TB_ERR_MEMORY);
    }
    tb_ctx_on_log(running, print_log, NULL);
    act.sa_flags = (int)SA_RESETHAND; /* a second Ctrl-C ends at once */
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    int code = c->run(running, argc, argv);
    tb_ctx_destroy(running);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return tb_status_exit(TB_ERR_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return finish(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tollbooth " TB_VERSION "\n");
        return finish(0);
    }
    for (size_t i = 0; i < NCOMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return run(&commands[i], argc - 1, argv + 1);
    return unknown_command(argv[1]);
}
