/* SPDX-License-Identifier: MIT */
/* BLOCK of the command line: built-in name, file, or text. */
#include "unit/equation_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TB_TEST(builtin_name)
{
    tb_block *b;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    TB_STR(T, b->name, "pre-ln");
    TB_CHECK(T, b->nsections == 2 && b->ninit == 0);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(text)
{
    tb_block *b;
    TB_OKAY(T, tb_block_load(T->ctx, "x = x + F(norm(x))", &b));
    TB_CHECK(T, b->name == NULL && b->nsections == 1);
    tb_block_destroy(T->ctx, b);
    TB_FAILS(T, tb_block_load(T->ctx, "x = 2x", &b), TB_ERR_PARSE,
             "1:6: no operator before 'x'");
    TB_CHECK(T, b == NULL);
    TB_FAILS(T, tb_block_load(T->ctx, "norm(x)\n", &b), TB_ERR_PARSE,
             "a statement is name = value");
}

TB_TEST(unknown_word)
{
    tb_block *b;
    TB_FAILS(T, tb_block_load(T->ctx, "pre-nl", &b), TB_ERR_INPUT,
             "unknown block 'pre-nl'; did you mean 'pre-ln'?");
    TB_FAILS(T, tb_block_load(T->ctx, "nothing-like-it.block", &b),
             TB_ERR_INPUT,
             "unknown block 'nothing-like-it.block': neither built in, nor a "
             "file, nor a text with '='");
    TB_FAILS(T, tb_block_load(T->ctx, "", &b), TB_ERR_INPUT,
             "unknown block ''");
}

/* A file in a fresh folder, loaded, then gone again. */
static tb_status load_written(tb_test *T, const char *text, size_t n,
                              tb_block **out)
{
    char folder[] = "/tmp/tollbooth-XXXXXX", path[64];
    *out = NULL;
    if (!mkdtemp(folder))
        return TB_FAIL(T->ctx, TB_ERR_SYSTEM, "no folder for a file");
    tb_format(path, sizeof path, "%s/mine.block", folder);
    FILE *f = fopen(path, "wb");
    if (f) {
        (void)fwrite(text, 1, n, f);
        (void)fclose(f);
    }
    tb_status s = tb_block_load(T->ctx, path, out);
    (void)remove(path);
    (void)rmdir(folder);
    return s;
}

TB_TEST(file)
{
    static const char good[] = "# mine\nx = x + F(x)\n", bad[] = "x = 2x\n";
    tb_block *b;
    TB_OKAY(T, load_written(T, good, sizeof good - 1, &b));
    TB_STR(T, b->name, "mine.block");
    TB_STR(T, b->about, "mine");
    tb_block_destroy(T->ctx, b);
    TB_FAILS(T, load_written(T, bad, sizeof bad - 1, &b), TB_ERR_PARSE,
             "mine.block:1:6: no operator before 'x'");
    TB_FAILS(T, load_written(T, good, sizeof good, &b), TB_ERR_PARSE,
             "mine.block:3:1: a NUL byte in the text");
    TB_FAILS(T, load_written(T, "", 0, &b), TB_ERR_PARSE,
             "mine.block: the text has no statement");
}

TB_TEST(file_that_cannot_be_read)
{
    tb_block *b;
    TB_FAILS(T, tb_block_load(T->ctx, "/tmp", &b), TB_ERR_INPUT,
             "/tmp: cannot be read");
    /* Endless: read up to the limit, then refused. */
    TB_FAILS(T, tb_block_load(T->ctx, "/dev/zero", &b), TB_ERR_PARSE,
             "at most 1048576 are read");
}
