/* SPDX-License-Identifier: MIT */
/* tollbooth lint: findings of one block, or of every *.block in a folder. */
#include "cli.h"
#include "tollbooth/lint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const opt_usage usage = {
    .name = "lint",
    .operands = "BLOCK|DIR...",
    .summary = "what is wrong or remarkable in blocks, and how to fix it",
    .detail = "A DIR stands for every *.block in it and below. Exit 0 whatever "
              "is found, unless --check or --strict says otherwise; a text "
              "that cannot be read is an error (3) after all others.",
    .example = "lint 'x = norm(x); x = x + attn(x)'",
    .min = 1,
    .max = -1,
};

/* --- what to look at ----------------------------------------------------- */

typedef struct list {
    char **items;
    size_t n, cap;
} list;

static bool push(list *l, const char *text)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        char **items = realloc(l->items, cap * sizeof *items);
        if (!items)
            return false;
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n] = strdup(text);
    return l->items[l->n] && ++l->n;
}

static void clear(list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
    free(l->items);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_folder(const char *path, bool follow)
{
    struct stat st;
    int failed = follow ? stat(path, &st) : lstat(path, &st);
    return !failed && S_ISDIR(st.st_mode);
}

static bool is_block_file(const char *name)
{
    static const char tail[] = ".block";
    size_t n = strlen(name), k = sizeof tail - 1;
    return n > k && !strcmp(name + n - k, tail);
}

static char *join(const char *folder, const char *name)
{
    size_t n = strlen(folder), size = n + strlen(name) + 2;
    const char *slash = n && folder[n - 1] == '/' ? "" : "/";
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s%s", folder, slash, name);
    return path;
}

/* The folder's *.block files and those below, without following links; false
 * with errno set. */
static bool walk(const char *folder, list *out)
{
    DIR *d = opendir(folder);
    bool ok = d != NULL;
    for (struct dirent *e; ok && (errno = 0, e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        char *path = join(folder, e->d_name);
        ok = path != NULL;
        if (ok && is_folder(path, false))
            ok = walk(path, out);
        else if (ok && is_block_file(e->d_name))
            ok = push(out, path);
        free(path);
    }
    int error = errno;
    if (d)
        closedir(d);
    errno = error;
    return ok && !error;
}

/* --- looking ------------------------------------------------------------- */

typedef struct job {
    tb_ctx *ctx;
    const tb_settings *settings;
    tb_json *json; /* NULL: text */
    size_t blocks, levels[3];
    int worst, error; /* level, exit code */
} job;

/* A file's error begins with its last component: show the whole path. */
static void say_error(job *w, const char *what, tb_status s)
{
    const char *text = tb_error(w->ctx), *slash = strrchr(what, '/');
    const char *name = slash ? slash + 1 : what;
    bool folder =
        slash && !strpbrk(what, "=\n") && !strncmp(text, name, strlen(name));
    fflush(stdout);
    complain("tollbooth: %.*s%s\n", folder ? (int)(name - what) : 0, what,
             *text ? text : tb_status_text(s));
    if (!w->error || s != TB_ERR_PARSE)
        w->error = tb_status_exit(s);
}

static tb_status show(job *w, const tb_lint *l, const tb_block *b,
                      const char *what)
{
    const char *name = tb_block_name(b) ? what : NULL;
    char *text;
    if (w->json) {
        tb_lint_json(l, w->json, true, name);
        return TB_OK;
    }
    tb_status s = tb_lint_text(l, name, line_columns(), &text);
    if (s == TB_OK) {
        put_clean(stdout, text);
        tb_text_free(w->ctx, text);
    }
    return s;
}

static void count(job *w, const tb_lint *l)
{
    w->blocks++;
    for (size_t i = 0; i < tb_lint_count(l); i++)
        w->levels[tb_lint_at(l, i)->level]++;
    if (tb_lint_worst(l) > w->worst)
        w->worst = tb_lint_worst(l);
}

static void look(job *w, const char *what)
{
    tb_block *b = NULL;
    tb_lint *l = NULL;
    tb_status s = tb_block_load(w->ctx, what, &b);
    if (s == TB_OK)
        s = tb_lint_create(w->ctx, b, w->settings, &l);
    if (s == TB_OK) {
        count(w, l);
        s = show(w, l, b, what);
    }
    if (s != TB_OK)
        say_error(w, what, s);
    tb_lint_destroy(l);
    if (b)
        tb_block_destroy(w->ctx, b);
}

static void look_into(job *w, const char *folder)
{
    list files = {0};
    if (!walk(folder, &files)) {
        complain("tollbooth: %s: cannot be read: %s\n", folder,
                 strerror(errno));
        w->error = tb_status_exit(TB_ERR_INPUT);
    }
    if (files.n)
        qsort(files.items, files.n, sizeof *files.items, by_name);
    for (size_t i = 0; i < files.n; i++)
        look(w, files.items[i]);
    clear(&files);
}

static void look_at_all(job *w, int n, char **what)
{
    for (int i = 0; i < n; i++)
        if (!strpbrk(what[i], "=\n") && is_folder(what[i], true))
            look_into(w, what[i]);
        else
            look(w, what[i]);
}

static void summary(const job *w)
{
    fflush(stdout);
    fprintf(stderr, "%zu block%s: %zu fail, %zu warn, %zu note\n", w->blocks,
            w->blocks == 1 ? "" : "s", w->levels[TB_LINT_FAIL],
            w->levels[TB_LINT_WARN], w->levels[TB_LINT_NOTE]);
}

static int run(job *w, int n, char **what, int limit)
{
    if (w->json) {
        tb_json_object(w->json, NULL);
        tb_json_string(w->json, "tollbooth", TB_VERSION);
        tb_json_array(w->json, "lint");
    }
    look_at_all(w, n, what);
    int code = w->error            ? w->error
               : w->worst >= limit ? tb_status_exit(TB_CHECK)
                                   : 0;
    if (!w->json) {
        summary(w);
        return finish(code);
    }
    tb_json_end(w->json);
    tb_json_end(w->json);
    return print_json(w->ctx, w->json, code);
}

int cmd_lint(tb_ctx *ctx, int argc, char **argv)
{
    tb_settings s = TB_SETTINGS_UNSET;
    bool json = false, check = false, strict = false;
    const opt opts[] = {
        {"check", OPT_FLAG, &check, NULL, "exit 1 on a fail", 0, 0},
        {"strict", OPT_FLAG, &strict, NULL, "exit 1 on a warn or fail", 0, 0},
        {"depth", OPT_SIZE, &s.depth, "N", "blocks in the stack (default 6)", 0,
         0},
        SETTINGS_OPTS(s, "64"),
        STACK_OPTS(s),
        {"json", OPT_FLAG, &json, NULL, "print one JSON object", 0, 0},
        OPT_END,
    };
    job w = {.ctx = ctx, .settings = &s, .worst = -1};
    opt_end end = opt_parse(&usage, opts, &argc, argv);
    if (end != OPT_GO)
        return end == OPT_DONE ? finish(0) : 2;
    if (json && tb_json_create(ctx, &w.json) != TB_OK)
        return die(ctx, TB_ERR_MEMORY);
    return run(&w, argc, argv,
               strict  ? TB_LINT_WARN
               : check ? TB_LINT_FAIL
                       : TB_LINT_FAIL + 1);
}
