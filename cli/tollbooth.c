/* SPDX-License-Identifier: MIT */
/* The program: finds the command, runs it, exits with its code. */
#include "cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    command_fn run;
    const char *summary;
    bool threads; /* works long enough to be worth a calm thread pool */
} command;

static const command commands[] = {
    {"explain", cmd_explain, "diagram, Jacobian, lane and weights of a block",
     false},
    {"lint", cmd_lint, "what is wrong in blocks, and how to fix it", false},
    {"eval", cmd_eval, "evaluate an equation, its gradients and Jacobian",
     false},
    {"export", cmd_export, "a block as a PyTorch module", false},
    {"flow", cmd_flow, "gradient flow through any depth, side by side", true},
    {"train", cmd_train, "train a model on a text, labels or pairs of lines",
     true},
    {"compare", cmd_compare, "blocks on the same data and seeds, one report",
     true},
    {"report", cmd_report, "one page from trained folders and printed JSON",
     true},
    {"generate", cmd_generate, "write text with a trained model", true},
    {"translate", cmd_translate,
     "lines of a source through a trained encoder and decoder", true},
    {"score", cmd_score, "loss and perplexity of a trained model on a text",
     true},
    {"bench", cmd_bench, "how fast this machine is, case by case", true},
    {"picture", cmd_picture, "a figure of the walkthrough, computed", false},
    {"recall", cmd_recall, "questions and answers, proved by the engine",
     false},
    {"blocks", cmd_blocks, "the blocks that are built in", false},
};

enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

static tb_ctx *running;

static void on_signal(int sig)
{
    (void)sig;
    tb_ctx_interrupt(running);
}

/* On a stack of their own: inside a product of a library the stack pointer was
 * seen in the heap, and a signal's frame over what lies below it. */
static void catch_signals(void)
{
    static char room[1 << 16];
    struct sigaction act = {.sa_handler = on_signal};
    stack_t own = {.ss_sp = room, .ss_size = sizeof room};
    act.sa_flags = SA_ONSTACK;
    act.sa_flags |= (int)SA_RESETHAND; /* a second Ctrl-C ends at once */
    sigaltstack(&own, NULL);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGXFSZ, SIG_IGN); /* ulimit -f: an error like a full disk's */
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
    const char *names[NCOMMANDS + 1], *near;
    for (size_t i = 0; i < NCOMMANDS; i++)
        names[i] = commands[i].name;
    names[NCOMMANDS] = "help";
    near = tb_nearest(word, names, NCOMMANDS + 1);
    complain("tollbooth: unknown command %s", word);
    if (near)
        fprintf(stderr, "; did you mean %s?", near);
    fprintf(stderr, "\ntollbooth --help lists them\n");
    return tb_status_exit(TB_ERR_USAGE);
}

static void print_log(void *user, tb_log_level level, const char *line)
{
    (void)user;
    complain("tollbooth: %s%s\n", level == TB_LOG_WARN ? "warning: " : "",
             line);
}

static int run(const command *c, int argc, char **argv)
{
    if (tb_ctx_create(&running) != TB_OK) {
        fprintf(stderr, "tollbooth: out of memory\n");
        return tb_status_exit(TB_ERR_MEMORY);
    }
    tb_ctx_on_log(running, print_log, NULL);
    catch_signals();
    tb_status s = tb_ctx_environment(running);
    int code = s == TB_OK ? c->run(running, argc, argv) : die(running, s);
    tb_ctx_destroy(running);
    return code;
}

/* A closed standard stream would lend its number to the next file opened, and
 * results would be written into it; so it is opened the wrong way round: every
 * use fails with EBADF. */
static void guard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* libgomp lets waiting threads spin for milliseconds, which on a machine that
 * others use too made training 27 times slower; asleep at once they cost half
 * the speed of a quiet one. Ten thousand turns lose neither, but libgomp reads
 * the number before main: so the program starts itself again. Where that is
 * not possible it goes on as it is. */
static void calm_threads(char **argv)
{
    static const char name[] = "GOMP_SPINCOUNT";
    if (getenv(name) || getenv("OMP_WAIT_POLICY"))
        return;
    if (setenv(name, "10000", 1) == 0)
        execv("/proc/self/exe", argv);
}

/* all_argv is main's: by_name may be called with a command of help's. */
static int by_name(const char *word, int argc, char **argv, char **all_argv)
{
    for (size_t i = 0; i < NCOMMANDS; i++) {
        if (strcmp(word, commands[i].name) != 0)
            continue;
        if (commands[i].threads)
            calm_threads(all_argv);
        return run(&commands[i], argc, argv);
    }
    return unknown_command(word);
}

static int help(int argc, char **argv, char **all_argv)
{
    char option[] = "--help", *as_option[] = {argv[argc - 1], option, NULL};
    if (argc > 1)
        return by_name(argv[argc - 1], 2, as_option, all_argv);
    print_usage(stdout);
    return finish(0);
}

int main(int argc, char **argv)
{
    guard_streams();
    if (argc < 2) {
        print_usage(stderr);
        return tb_status_exit(TB_ERR_USAGE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help(1, argv + 1, argv);
    if (strcmp(argv[1], "help") == 0)
        return help(argc > 2 ? 2 : 1, argv + 1, argv);
    if (strcmp(argv[1], "--version") == 0) {
        printf("tollbooth " TB_VERSION "\n");
        return finish(0);
    }
    return by_name(argv[1], argc - 1, argv + 1, argv);
}
