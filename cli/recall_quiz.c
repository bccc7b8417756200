/* SPDX-License-Identifier: MIT */
/* tollbooth recall: the quiz. Reads lines, so that it works in a pipe as on a
 * terminal; draws nothing but text. */
#include "recall.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct session {
    tb_ctx *ctx;
    tb_terminal term;
    tb_out *out;
    progress progress;
    size_t *queue, first, last, most; /* a ring: a card is in it once */
    size_t asked, grades[GRADES];
    bool echo;        /* of a terminal; in a pipe lines end after a prompt */
    char typed[4096]; /* but not yet answered with; NUL behind it */
    size_t have;
    char line[80];    /* what was answered */
    sigset_t signals; /* blocked before the quiz */
    int code;         /* 130 after Ctrl-C, or an error */
} session;

/* Text that fits, with `label` before it. */
static bool say(session *s, const char *label, const char *text, int indent)
{
    char *both = malloc(strlen(label) + strlen(text) + 1);
    tb_status status = both ? TB_OK : TB_ERR_MEMORY;
    tb_out_reset(s->out);
    if (both) {
        strcat(strcpy(both, label), text);
        status = tb_text_term(both, indent, &s->term, s->out);
    }
    free(both);
    if (status == TB_OK)
        fputs(tb_out_str(s->out), stdout);
    else
        s->code = die(s->ctx, status);
    return status == TB_OK;
}

/* More of standard input behind s->typed; 0 at its end, at Ctrl-D, and at
 * Ctrl-C, which is let in here and nowhere else: between a prompt and a read it
 * would be lost. */
static size_t read_more(session *s)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t room = sizeof s->typed - 1 - s->have;
    ssize_t n = ppoll(&in, 1, NULL, &s->signals);
    if (n > 0)
        n = read(STDIN_FILENO, s->typed + s->have, room);
    if (n < 0 && errno == EINTR)
        s->code = tb_status_exit(TB_INTERRUPTED);
    s->have += n > 0 ? (size_t)n : 0;
    s->typed[s->have] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* A line into s->line, without its end; of one that is too long its start.
 * False at the end of input and at Ctrl-C. */
static bool answer(session *s, const char *prompt)
{
    printf("%s", prompt);
    fflush(stdout);
    size_t n;
    while ((n = strcspn(s->typed, "\n")) == s->have && n + 1 < sizeof s->typed)
        if (read_more(s) == 0)
            break;
    if (s->code || s->have == 0) {
        printf("\n");
        return false;
    }
    if (!s->echo)
        printf("\n");
    snprintf(s->line, sizeof s->line, "%.*s", (int)n, s->typed);
    for (size_t k = strlen(s->line); k && strchr("\r \t", s->line[k - 1]);)
        s->line[--k] = '\0';
    n += n < s->have;
    s->have -= n;
    memmove(s->typed, s->typed + n, s->have + 1);
    return true;
}

static bool show_proof(session *s, size_t card)
{
    tb_proof p;
    tb_status status = tb_card_prove(s->ctx, card, &p);
    tb_out_reset(s->out);
    if (status == TB_OK)
        status = tb_proof_term(s->ctx, "  computed: ", &p, 4, &s->term, s->out);
    if (status != TB_OK) {
        s->code = die(s->ctx, status);
        return false;
    }
    fputs(tb_out_str(s->out), stdout);
    if (p.n)
        printf("  tollbooth %s\n", p.command);
    return true;
}

/* The answer, and the command that draws what shows it. */
static bool show_answer(session *s, const tb_card *card)
{
    char command[160];
    bool set = *card->settings != '\0';
    snprintf(command, sizeof command, "tollbooth picture %s%s%s%s", card->shot,
             set ? " --set '" : "", card->settings, set ? "'" : "");
    return say(s, "  ", card->answer, 2) && say(s, "  ", command, 4);
}

/* 1 to 4, as often as it takes; GRADES if the quiz ends here. */
static grade read_grade(session *s, size_t card)
{
    static const char prompt[] = "1 again 2 hard 3 good 4 easy p proof: ";
    while (answer(s, prompt)) {
        const char *word = s->line;
        if (word[0] >= '1' && word[0] <= '4' && !word[1])
            return (grade)(word[0] - '1');
        if (strcmp(word, "q") == 0)
            return GRADES;
        if (strcmp(word, "p") != 0)
            printf("wanted 1, 2, 3, 4, p or q\n");
        else if (!show_proof(s, card))
            return GRADES;
    }
    return GRADES;
}

static bool ask(session *s, size_t card)
{
    const tb_card *c = tb_card_at(card);
    char label[40];
    size_t left = s->last - s->first;
    snprintf(label, sizeof label, "[%zu left] ", left);
    printf("\n");
    if (!say(s, label, c->question, 0))
        return false;
    if (!answer(s, "Enter: ") || strcmp(s->line, "q") == 0 ||
        !show_answer(s, c))
        return false;
    grade g = read_grade(s, card);
    if (g == GRADES)
        return false;
    s->asked++;
    s->grades[g]++;
    s->first++;
    if (g == AGAIN)
        s->queue[s->last++ % s->most] = card;
    progress_grade(&s->progress, card, g);
    s->code = progress_save(s->ctx, &s->progress);
    return s->code == 0;
}

static void summary(session *s)
{
    char text[160];
    snprintf(text, sizeof text,
             "answers: %zu; again %zu, hard %zu, good %zu, easy %zu; cards "
             "left: %zu",
             s->asked, s->grades[AGAIN], s->grades[HARD], s->grades[GOOD],
             s->grades[EASY], s->last - s->first);
    int code = s->code;
    say(s, "", text, 2);
    s->code = code ? code : s->code;
}

/* The cards of the choice that are due; the earliest day of those that are
 * not. */
static long fill(session *s, const choice *c)
{
    long next = 0;
    for (size_t i = 0; i < c->n; i++) {
        const progress_card *p = &s->progress.cards[c->cards[i]];
        if (!s->progress.path || !p->asked || p->due <= s->progress.today)
            s->queue[s->last++] = c->cards[i];
        else if (next == 0 || p->due < next)
            next = p->due;
    }
    s->most = s->last;
    return next;
}

static void run(session *s, const choice *c, uint64_t seed)
{
    long next = fill(s, c);
    char date[DATE];
    if (s->most == 0) {
        date_text(next, date);
        say(s, "nothing is due until ", date, 2);
        return;
    }
    tb_cards_shuffle(seed, s->queue, s->most);
    if (!say(s, "",
             "Enter shows the answer; then say how well you knew it. q or "
             "Ctrl-D ends.",
             2))
        return;
    while (s->first < s->last && ask(s, s->queue[s->first % s->most]))
        ;
    summary(s);
}

int quiz(tb_ctx *ctx, const choice *c, const recall_options *o)
{
    session s = {.ctx = ctx,
                 .term = terminal_of(o->ascii),
                 .echo = isatty(STDIN_FILENO)};
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    s.code = progress_open(ctx, o, &s.progress);
    s.queue = calloc(c->n, sizeof *s.queue);
    tb_status status = tb_out_create(ctx, &s.out);
    if (s.code == 0 && (!s.queue || status != TB_OK))
        s.code = die(ctx, TB_ERR_MEMORY);
    if (s.code == 0) {
        sigprocmask(SIG_BLOCK, &stop, &s.signals);
        run(&s, c, o->has_seed ? o->seed : (uint64_t)s.progress.today);
        sigprocmask(SIG_SETMASK, &s.signals, NULL);
    }
    progress_close(&s.progress);
    tb_out_destroy(s.out);
    free(s.queue);
    return finish(s.code);
}
