/* SPDX-License-Identifier: MIT */
/* Errors, output and the terminal. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Control characters of C0, DEL, and of C1 as UTF-8 has them. */
static size_t control(const char *s)
{
    unsigned char a = (unsigned char)s[0], b = (unsigned char)s[1];
    if (a == 0xc2 && b >= 0x80 && b < 0xa0)
        return 2;
    return (a < ' ' && a != '\n' && a != '\t') || a == 0x7f;
}

void put_clean(FILE *to, const char *text)
{
    while (*text) {
        size_t n = 0;
        while (text[n] && !control(text + n))
            n++;
        fwrite(text, 1, n, to);
        text += n;
        if (*text) {
            putc('?', to);
            text += control(text);
        }
    }
}

static void say_list(const char *fmt, va_list ap) TB_PRINTF(1, 0);

static void say_list(const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    put_clean(stderr, text ? text : "tollbooth: out of memory\n");
    free(text);
    va_end(again);
}

void complain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_list(fmt, ap);
    va_end(ap);
}

int die(tb_ctx *ctx, tb_status s)
{
    const char *text = tb_error(ctx);
    fflush(stdout);
    complain("tollbooth: %s\n", *text ? text : tb_status_text(s));
    return tb_status_exit(s);
}

int usage_error(const char *command, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "tollbooth %s: ", command);
    va_start(ap, fmt);
    say_list(fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    return tb_status_exit(TB_ERR_USAGE);
}

int finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "tollbooth: standard output: %s\n",
            errno ? strerror(errno) : "cannot be written");
    return tb_status_exit(TB_ERR_IO);
}

int print_json(tb_ctx *ctx, tb_json *j, int code)
{
    const char *text = tb_json_text(j);
    if (!text)
        code = die(ctx, TB_ERR_MEMORY);
    else
        printf("%s\n", text);
    tb_json_destroy(j);
    return finish(code);
}

char *command_line(int argc, char **argv)
{
    size_t n = sizeof "tollbooth";
    for (int i = 0; i < argc; i++)
        n += strlen(argv[i]) + 3;
    char *text = malloc(n), *at = text;
    if (!text)
        return NULL;
    at += sprintf(at, "tollbooth");
    for (int i = 0; i < argc; i++)
        at +=
            sprintf(at, strpbrk(argv[i], " ;()'*") ? " '%s'" : " %s", argv[i]);
    return text;
}

tb_terminal terminal_of(bool ascii)
{
    tb_terminal t = {80, ascii};
    struct winsize w;
    const char *columns = getenv("COLUMNS");
    size_t n;
    if (columns && opt_size(columns, &n) && n > 0)
        t.width = n > 200 ? 200 : (int)n;
    else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col)
        t.width = w.ws_col;
    return t;
}

size_t line_columns(void)
{
    bool narrow = getenv("COLUMNS") || isatty(STDOUT_FILENO);
    return narrow ? (size_t)terminal_of(false).width : 0;
}

bool stderr_is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}
