/* SPDX-License-Identifier: MIT */
/* BLOCK of the command line: a built-in name, a file name, or the text. */
#include "equation/equation.h"

#if !defined(__wasm__)
#    include <errno.h>
#    include <stdio.h>
#endif

static const tb_builtin *find_builtin(const char *name)
{
    for (const tb_builtin *b = tb_builtins; b->name; b++)
        if (!strcmp(b->name, name))
            return b;
    return NULL;
}

static const char *nearest_builtin(const char *word)
{
    enum { WORD_MAX = 64, BUILTINS_MAX = 512 };
    const char *names[BUILTINS_MAX];
    size_t n = 0;
    for (; tb_builtins[n].name && n < BUILTINS_MAX; n++)
        names[n] = tb_builtins[n].name;
    return strlen(word) < WORD_MAX ? tb_nearest(word, names, n) : NULL;
}

static tb_status fail_unknown(tb_ctx *ctx, const char *what)
{
    const char *near = nearest_builtin(what);
    if (near)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "unknown block '%.80s'; did you mean '%s'?", what, near);
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "unknown block '%.80s': neither built in, nor a file, nor a "
                   "text with '='",
                   what);
}

#if defined(__wasm__)
static tb_status load_file(tb_ctx *ctx, const char *path, tb_block **out)
{
    *out = NULL;
    return fail_unknown(ctx, path);
}
#else
static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* All of the file, or one byte more than a text may have. */
static tb_status read_all(tb_ctx *ctx, const char *path, FILE *f, tb_buf *out)
{
    char piece[4096];
    size_t n;
    while (out->len <= TB_TEXT_MAX &&
           (n = fread(piece, 1, sizeof piece, f)) > 0)
        tb_buf_put(out, piece, n);
    if (ferror(f)) /* a folder opens, but cannot be read */
        return TB_FAIL(ctx, errno == EISDIR ? TB_ERR_INPUT : TB_ERR_IO,
                       "%.200s: cannot be read: %s", path, strerror(errno));
    return tb_buf_status(out);
}

static tb_status load_file(tb_ctx *ctx, const char *path, tb_block **out)
{
    tb_buf text;
    *out = NULL;
    FILE *f = fopen(path, "rb");
    if (!f && (errno == ENOENT || errno == ENOTDIR))
        return fail_unknown(ctx, path);
    if (!f)
        return TB_FAIL(ctx, TB_ERR_INPUT, "%.200s: cannot open: %s", path,
                       strerror(errno));
    tb_buf_init(&text, ctx);
    tb_status s = read_all(ctx, path, f, &text);
    (void)fclose(f);
    if (s == TB_OK)
        s = tb_block_parse(ctx, last_component(path), tb_buf_str(&text),
                           text.len, TB_PARSE_BLOCK, out);
    tb_buf_clear(&text);
    return s;
}
#endif

tb_status tb_block_load(tb_ctx *ctx, const char *what, tb_block **out)
{
    const tb_builtin *b = find_builtin(what);
    if (b)
        return tb_block_parse(ctx, b->name, b->text, strlen(b->text),
                              TB_PARSE_BLOCK, out);
    if (strpbrk(what, "=\n"))
        return tb_block_parse(ctx, NULL, what, strlen(what), TB_PARSE_BLOCK,
                              out);
    return load_file(ctx, what, out);
}
