/* SPDX-License-Identifier: MIT */
/* Parsing and printing of option tables. */
#include "opt.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- values ------------------------------------------------------------------
 */

bool opt_real(const char *text, double *out)
{
    char *end;
    bool starts = strchr("+-.0123456789", text[0]) && text[0];
    *out = strtod(text, &end); /* no setlocale anywhere: the point is '.' */
    return starts && end != text && *end == '\0' && isfinite(*out) &&
           !strpbrk(text, "xX");
}

bool opt_size(const char *text, size_t *out)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    *out = (size_t)v;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static bool set_choice(const opt *o, const char *text)
{
    int i = 0;
    size_t n = strlen(text);
    for (const char *p = o->choices; *p; i++) {
        size_t len = strcspn(p, "|");
        if (len == n && memcmp(p, text, n) == 0) {
            *(int *)o->to = i;
            return true;
        }
        p += len + (p[len] == '|');
    }
    return false;
}

static bool set_sizes(const opt *o, const char *text)
{
    opt_sizes *s = o->to;
    char item[32];
    s->count = 0;
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        if (len == 0 || len >= sizeof item || s->count == 64)
            return false;
        memcpy(item, p, len);
        item[len] = '\0';
        size_t *at = &s->items[s->count++];
        if (!opt_size(item, at) || *at == 0)
            return false;
        p += len;
        if (*p == '\0')
            return true;
    }
}

static bool takes_value(const opt *o)
{
    return o->kind != OPT_FLAG && o->kind != OPT_OFF && o->kind != OPT_ON;
}

static bool set_many(const opt *o, const char *text)
{
    opt_many *m = o->to;
    if (m->count == sizeof m->items / sizeof m->items[0])
        return false;
    m->items[m->count++] = text;
    return true;
}

static bool set_value(const opt *o, const char *text)
{
    size_t size;
    switch (o->kind) {
    case OPT_FLAG:
    case OPT_OFF:
    case OPT_ON:
        return false;
    case OPT_SIZE:
        return opt_size(text, o->to) && *(size_t *)o->to > 0;
    case OPT_COUNT:
        return opt_size(text, o->to);
    case OPT_SEED:
        if (!opt_size(text, &size))
            return false;
        *(uint64_t *)o->to = size;
        return true;
    case OPT_REAL:
        return opt_real(text, o->to) && *(double *)o->to >= o->low;
    case OPT_TEXT:
        *(const char **)o->to = text;
        return true;
    case OPT_CHOICE:
        return set_choice(o, text);
    case OPT_SIZES:
        return set_sizes(o, text);
    case OPT_MANY:
        return set_many(o, text);
    }
    return false;
}

static void wanted(const opt *o, char out[160])
{
    static const char *const words[] = {
        [OPT_FLAG] = "no value",
        [OPT_OFF] = "no value",
        [OPT_ON] = "no value",
        [OPT_SIZE] = "a whole number from 1",
        [OPT_COUNT] = "a whole number from 0",
        [OPT_SEED] = "a whole number from 0",
        [OPT_REAL] = "a number",
        [OPT_TEXT] = "text",
        [OPT_CHOICE] = "one of ",
        [OPT_SIZES] = "whole numbers from 1, separated by commas",
        [OPT_MANY] = "at most 64 of them",
    };
    if (o->kind == OPT_CHOICE)
        snprintf(out, 160, "%s%s", words[o->kind], o->choices);
    else if (o->kind == OPT_REAL && o->low > -HUGE_VAL)
        snprintf(out, 160, "%s from %g", words[o->kind], o->low);
    else
        snprintf(out, 160, "%s", words[o->kind]);
}

/* --- help --------------------------------------------------------------------
 */

static void print_option(const opt *o, FILE *to)
{
    char left[80];
    bool takes = takes_value(o);
    snprintf(left, sizeof left, "--%s%s%s", o->name, takes ? " " : "",
             !takes                  ? ""
             : o->kind == OPT_CHOICE ? o->choices
                                     : o->arg);
    if (strlen(left) > 24)
        fprintf(to, "  %s\n%*s%s\n", left, 28, "", o->help);
    else
        fprintf(to, "  %-26s%s\n", left, o->help);
}

static void print_help(const opt_usage *u, const opt *opts)
{
    printf("tollbooth %s - %s\n\nusage: tollbooth %s [options] %s\n", u->name,
           u->summary, u->name, u->operands);
    if (u->detail)
        printf("\n%s\n", u->detail);
    printf("\noptions:\n");
    for (const opt *o = opts; o->name; o++)
        print_option(o, stdout);
    printf("  %-26s%s\n", "--help", "this text");
    if (u->example)
        printf("\nexample:\n  tollbooth %s\n", u->example);
}

/* The words completion offers for this command. */
static void print_words(const opt *opts)
{
    for (const opt *o = opts; o->name; o++)
        printf("--%s\n", o->name);
    printf("--help\n");
}

static void print_roff(const char *text)
{
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_man(const opt_usage *u, const opt *opts)
{
    printf(".TH TOLLBOOTH-%s 1\n.SH NAME\ntollbooth-%s \\- ", u->name, u->name);
    print_roff(u->summary);
    printf("\n.SH SYNOPSIS\n.B tollbooth %s\n[options] ", u->name);
    print_roff(u->operands);
    if (u->detail) {
        printf("\n.SH DESCRIPTION\n");
        print_roff(u->detail);
    }
    printf("\n.SH OPTIONS\n");
    for (const opt *o = opts; o->name; o++) {
        bool takes = takes_value(o);
        printf(".TP\n.B \\-\\-");
        print_roff(o->name);
        if (takes) {
            printf(" \\fI");
            print_roff(o->kind == OPT_CHOICE ? o->choices : o->arg);
            printf("\\fR");
        }
        printf("\n");
        print_roff(o->help);
        printf("\n");
    }
    if (u->example) {
        printf(".SH EXAMPLE\n.nf\ntollbooth ");
        print_roff(u->example);
        printf("\n.fi\n");
    }
}

/* --- parsing -----------------------------------------------------------------
 */

static opt_end unknown(const opt_usage *u, const opt *opts, const char *name)
{
    const char *names[64], *near;
    size_t n = 0;
    for (const opt *o = opts; o->name && n < 64; o++)
        names[n++] = o->name;
    near = tb_nearest(name, names, n);
    fprintf(stderr, "tollbooth %s: unknown option --%s", u->name, name);
    if (near)
        fprintf(stderr, "; did you mean --%s?", near);
    fprintf(stderr, "\ntollbooth %s --help lists them\n", u->name);
    return OPT_BAD;
}

static const opt *find(const opt *opts, const char *name, size_t n)
{
    for (const opt *o = opts; o->name; o++)
        if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
            return o;
    return NULL;
}

static opt_end one_option(const opt_usage *u, const opt *opts, int argc,
                          char **argv, int *i)
{
    const char *name = argv[*i] + 2, *value = strchr(name, '=');
    const opt *o =
        find(opts, name, value ? (size_t)(value - name) : strlen(name));
    char want[160];
    if (!o) {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "="), name);
        return unknown(u, opts, word);
    }
    value = value ? value + 1 : NULL;
    if (!takes_value(o) && !value) {
        if (o->kind == OPT_FLAG)
            *(bool *)o->to = true;
        else
            *(int *)o->to = o->kind == OPT_ON;
        return OPT_GO;
    }
    if (!value && takes_value(o) && *i + 1 < argc)
        value = argv[++*i];
    if (value && set_value(o, value))
        return OPT_GO;
    wanted(o, want);
    fprintf(stderr, "tollbooth %s: --%s: got %s, wanted %s\n", u->name, o->name,
            value ? value : "nothing", want);
    return OPT_BAD;
}

static opt_end special(const opt_usage *u, const opt *opts, const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        print_help(u, opts);
    else if (strcmp(word, "--help-man") == 0)
        print_man(u, opts);
    else if (strcmp(word, "--help-words") == 0)
        print_words(opts);
    else
        return OPT_GO;
    return OPT_DONE;
}

static opt_end check_operands(const opt_usage *u, int n)
{
    if (n >= u->min && (u->max < 0 || n <= u->max))
        return OPT_GO;
    fprintf(stderr,
            "tollbooth %s: got %d operand%s, wanted %s\n"
            "usage: tollbooth %s [options] %s\n",
            u->name, n, n == 1 ? "" : "s", *u->operands ? u->operands : "none",
            u->name, u->operands);
    return OPT_BAD;
}

opt_end opt_parse(const opt_usage *u, const opt *opts, int *argc, char **argv)
{
    int kept = 0;
    bool ended = false;
    for (int i = 1; i < *argc; i++) {
        opt_end end = ended ? OPT_GO : special(u, opts, argv[i]);
        if (end != OPT_GO)
            return end;
        if (!ended && strcmp(argv[i], "--") == 0) {
            ended = true;
            continue;
        }
        bool is_option = !ended && argv[i][0] == '-' && argv[i][1] != '\0';
        if (!is_option) {
            argv[kept++] = argv[i];
            continue;
        }
        if (argv[i][1] != '-')
            return unknown(u, opts, argv[i] + 1);
        end = one_option(u, opts, *argc, argv, &i);
        if (end != OPT_GO)
            return end;
    }
    *argc = kept;
    return check_operands(u, kept);
}
