/* SPDX-License-Identifier: MIT */
/* Parsing and printing of option tables. */
#include "cli.h"

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
    unsigned long long v = strtoull(text, &end, 10); /* too large: the most */
    *out = (size_t)v;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && v <= 1ULL << 53;
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
        [OPT_SIZE] = "a whole number from 1 to 2^53",
        [OPT_COUNT] = "a whole number from 0 to 2^53",
        [OPT_SEED] = "a whole number from 0 to 2^53",
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

enum { LINE = 79, LEFT = 28 };

/* Words of `text` in lines of LINE columns; the first begins at column `at`,
 * the others at `indent`. A newline in the text starts a new one. */
static void print_wrapped(const char *text, int at, int indent)
{
    bool first = true;
    while (*text) {
        int n = (int)strcspn(text, " \n");
        if (!first && at + 1 + n > LINE) {
            printf("\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            putchar(' ');
            at++;
        }
        printf("%.*s", n, text);
        at += n;
        text += n;
        first = *text == '\n';
        if (first) {
            printf("\n%*s", indent, "");
            at = indent;
        }
        text += *text != '\0';
    }
    putchar('\n');
}

static void print_option(const char *left, const char *help)
{
    printf("  %-*s", LEFT - 2, left);
    if (strlen(left) > LEFT - 4)
        printf("\n%*s", LEFT, "");
    print_wrapped(help, LEFT, LEFT);
}

static void print_table_option(const opt *o)
{
    char left[80];
    bool takes = takes_value(o);
    snprintf(left, sizeof left, "--%s%s%s", o->name, takes ? " " : "",
             !takes                  ? ""
             : o->kind == OPT_CHOICE ? o->choices
                                     : o->arg);
    print_option(left, o->help);
}

static const char *gap(const opt_usage *u)
{
    return *u->operands ? " " : "";
}

static void print_help(const opt_usage *u, const opt *opts)
{
    printf("tollbooth %s - %s\n\nusage: tollbooth %s [options]%s%s\n", u->name,
           u->summary, u->name, gap(u), u->operands);
    if (u->detail) {
        printf("\n");
        print_wrapped(u->detail, 0, 0);
    }
    printf("\noptions:\n");
    for (const opt *o = opts; o->name; o++)
        print_table_option(o);
    print_option("--help", "this text");
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

/* `word` as it was typed, dashes and all. */
static opt_end unknown(const opt_usage *u, const opt *opts, const char *word)
{
    const char *names[64], *near;
    size_t n = 0, dashes = strspn(word, "-"), len = strcspn(word, "=");
    char name[64];
    names[n++] = "help";
    for (const opt *o = opts; o->name && n < 64; o++)
        names[n++] = o->name;
    snprintf(name, sizeof name, "%.*s", (int)(len > dashes ? len - dashes : 0),
             word + (len > dashes ? dashes : len));
    for (char *c = name; *c; c++) /* no option has capitals */
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    near = tb_nearest(name, names, n);
    complain("tollbooth %s: unknown option %.*s", u->name,
             len < sizeof name ? (int)len : (int)sizeof name, word);
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
    if (!o)
        return unknown(u, opts, argv[*i]);
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
    complain("tollbooth %s: --%s: got %s, wanted %s\n", u->name, o->name,
             !value   ? "nothing"
             : *value ? value
                      : "an empty value",
             want);
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
            "usage: tollbooth %s [options]%s%s\n",
            u->name, n, n == 1 ? "" : "s", *u->operands ? u->operands : "none",
            u->name, gap(u), u->operands);
    return OPT_BAD;
}

/* "-" is a file, "-2*x" an equation. */
static bool is_option(const char *word)
{
    return word[0] == '-' &&
           strchr("-abcdefghijklmnopqrstuvwxyz"
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                  word[1]) &&
           word[1];
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
        bool text = u->dashed && argv[i][strcspn(argv[i], "= ")] == ' ';
        if (ended || text || !is_option(argv[i])) {
            argv[kept++] = argv[i];
            continue;
        }
        if (argv[i][1] != '-')
            return unknown(u, opts, argv[i]);
        end = one_option(u, opts, *argc, argv, &i);
        if (end != OPT_GO)
            return end;
    }
    *argc = kept;
    return check_operands(u, kept);
}
