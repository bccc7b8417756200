/* SPDX-License-Identifier: MIT */
/* Progress with time left. */
#include "progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_begin(progress *p, const char *label, bool quiet)
{
    *p = (progress){.terminal = stderr_is_terminal(),
                    .quiet = quiet,
                    .last = seconds_now(),
                    .label = label};
}

static void time_left(double s, char out[32])
{
    if (!(s >= 0 && s < 360000))
        snprintf(out, 32, "--:--");
    else if (s < 3600)
        snprintf(out, 32, "%d:%02d", (int)s / 60, (int)s % 60);
    else
        snprintf(out, 32, "%d:%02d:%02d", (int)s / 3600, (int)s / 60 % 60,
                 (int)s % 60);
}

static int columns(void)
{
    struct winsize w;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col)
        return w.ws_col;
    return 80;
}

static void draw_bar(progress *p, size_t done, size_t total, const char *left,
                     const char *text)
{
    char bar[24], line[256];
    int width = columns() - 1;
    size_t cells = sizeof bar - 1, full = total ? done * cells / total : cells;
    for (size_t i = 0; i < cells; i++)
        bar[i] = i < full ? '#' : '.';
    bar[cells] = '\0';
    int n = snprintf(line, sizeof line, "%s [%s] %zu/%zu  left %s  %s",
                     p->label, bar, done, total, left, text);
    if (n > (int)sizeof line - 1)
        n = (int)sizeof line - 1;
    fprintf(stderr, "\r%.*s\033[K", n < width ? n : width, line);
    p->drawn = true;
}

void progress_show(progress *p, size_t done, size_t total, double seconds_left,
                   const char *text)
{
    double now = seconds_now();
    char left[32];
    bool first = done == 1 || done == total;
    if (p->quiet || (!first && now - p->last < (p->terminal ? 0.1 : 10)))
        return;
    p->last = now;
    time_left(seconds_left, left);
    if (p->terminal)
        draw_bar(p, done, total, left, text);
    else
        fprintf(stderr, "%s %zu/%zu, left %s, %s\n", p->label, done, total,
                left, text);
}

void progress_end(progress *p)
{
    if (p->drawn)
        fprintf(stderr, "\r\033[K");
    p->drawn = false;
}

void progress_memory(const tb_train_memory *m, double *most)
{
    const double mb = 1e-6;
    const double all = (double)m->weights + (double)m->gradients +
                       (double)m->optimizer + (double)m->saved +
                       (double)m->work;
    if (all <= *most)
        return;
    *most = all;
    complain("tollbooth: memory %.1f MB: weights %.1f, gradients %.1f, "
             "optimizer %.1f, saved values %.1f, workspace %.1f\n",
             all * mb, (double)m->weights * mb, (double)m->gradients * mb,
             (double)m->optimizer * mb, (double)m->saved * mb,
             (double)m->work * mb);
}
