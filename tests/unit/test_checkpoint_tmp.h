/* SPDX-License-Identifier: MIT */
/* A folder of its own for each test program, gone when it ends, and loops
 * that let every allocation of a call fail once. */
#ifndef TEST_CHECKPOINT_TMP_H
#define TEST_CHECKPOINT_TMP_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tb_test.h"
#include "tollbooth/checkpoint.h"

static char tmp_dir[512];

static int tmp_remove_one(const char *path, const struct stat *st, int kind,
                          struct FTW *f)
{
    (void)st;
    (void)kind;
    (void)f;
    return remove(path);
}

static void tmp_remove(void)
{
    nftw(tmp_dir, tmp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path in the folder; four of them stay valid at a time. */
__attribute__((unused)) static const char *tmp_path(const char *name)
{
    static char paths[4][1024];
    static unsigned turn;
    if (tmp_dir[0] == 0) {
        const char *base = getenv("TMPDIR");
        snprintf(tmp_dir, sizeof(tmp_dir), "%s/tollbooth-XXXXXX",
                 base ? base : "/tmp");
        if (mkdtemp(tmp_dir) == NULL)
            abort();
        atexit(tmp_remove);
    }
    char *p = paths[turn++ % 4];
    snprintf(p, sizeof(paths[0]), "%s/%s", tmp_dir, name);
    return p;
}

/* Write a file without the code under test. */
__attribute__((unused)) static const char *tmp_file(const char *name,
                                                    const void *data, size_t n)
{
    const char *path = tmp_path(name);
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        abort();
    return path;
}

__attribute__((unused)) static const char *tmp_text(const char *name,
                                                    const char *text)
{
    return tmp_file(name, text, strlen(text));
}

/* The file's bytes are exactly these. */
__attribute__((unused)) static bool tmp_holds(tb_ctx *ctx, const char *path,
                                              const void *data, size_t n)
{
    tb_bytes b;
    if (tb_file_read(ctx, path, 0, &b) != TB_OK)
        return false;
    bool same = b.len == n && memcmp(b.data, data, n) == 0;
    tb_bytes_clear(ctx, &b);
    return same;
}

/* Run `call` with the 1st, 2nd, ... allocation failing until it succeeds. It
 * must fail with TB_ERR_MEMORY before that; `undo` clears a success. */
#define TMP_EACH_ALLOC(T, call, undo)                                          \
    do {                                                                       \
        size_t n_ = 1;                                                         \
        for (;; n_++) {                                                        \
            tb_ctx_fail_alloc_at((T)->ctx, n_);                                \
            tb_status s_ = (call);                                             \
            tb_ctx_fail_alloc_at((T)->ctx, 0);                                 \
            if (s_ == TB_OK)                                                   \
                break;                                                         \
            TB_REQUIRE((T), s_ == TB_ERR_MEMORY);                              \
        }                                                                      \
        undo;                                                                  \
        TB_CHECK((T), n_ > 1);                                                 \
    } while (0)

#endif
