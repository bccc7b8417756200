/* SPDX-License-Identifier: MIT */
/* Reading whole files, parts of files, and what is there at all. Every read
 * is checked; a file that shrinks meanwhile is an error, not a crash. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/files.h"

tb_status tb_fail_errno(tb_ctx *ctx, const char *path, const char *what,
                        int error)
{
    static const int of_the_caller[] = {ENOENT, ENOTDIR, EISDIR, EACCES,
                                        ELOOP,  EPERM,   ENXIO};
    tb_status s = TB_ERR_IO;
    if (tb_streq(what, "cannot open"))
        for (size_t i = 0; i < TB_LEN(of_the_caller); i++)
            if (error == of_the_caller[i])
                s = TB_ERR_INPUT;
    return TB_FAIL(ctx, s, "%s: %s: %s", path, what, strerror(error));
}

void tb_bytes_clear(tb_ctx *ctx, tb_bytes *b)
{
    tb_free(ctx, b->data);
    *b = (tb_bytes){0};
}

bool tb_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Open for reading; a folder is refused here, where open() would not. */
static tb_status open_read(tb_ctx *ctx, const char *path, int *fd,
                           struct stat *st)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return tb_fail_errno(ctx, path, "cannot open", errno);
    if (fstat(*fd, st) == 0 && !S_ISDIR(st->st_mode))
        return TB_OK;
    close(*fd);
    return tb_fail_errno(ctx, path, "cannot open", EISDIR);
}

tb_status tb_open_regular(tb_ctx *ctx, const char *path, int *fd,
                          uint64_t *bytes)
{
    struct stat st;
    TB_TRY(open_read(ctx, path, fd, &st));
    if (!S_ISREG(st.st_mode)) {
        close(*fd);
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "%s: got a pipe or device, wanted a file", path);
    }
    *bytes = (uint64_t)st.st_size;
    return TB_OK;
}

tb_status tb_read_at(tb_ctx *ctx, const char *path, int fd, uint64_t at,
                     void *out, size_t n)
{
    char *to = out;
    while (n > 0) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tb_fail_errno(ctx, path, "read failed", errno);
        if (got == 0)
            return TB_FAIL(ctx, TB_ERR_INPUT,
                           "%s: the file ends %zu bytes early", path, n);
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return TB_OK;
}

static tb_status too_long(tb_ctx *ctx, const char *path, size_t max)
{
    return TB_FAIL(ctx, TB_ERR_INPUT, "%s: longer than the limit of %zu bytes",
                   path, max);
}

/* Room for at least one more byte and the final NUL. */
static tb_status grow(tb_ctx *ctx, tb_bytes *b, size_t *cap)
{
    if (b->len + 2 <= *cap)
        return TB_OK;
    size_t want;
    if (!tb_mul(*cap, 2, &want))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "a file of more than %zu bytes",
                       *cap);
    char *p = tb_realloc(ctx, b->data, *cap, want);
    if (p == NULL)
        return TB_ERR_MEMORY;
    b->data = p;
    *cap = want;
    return TB_OK;
}

/* Read to the end. `guess` is only a hint: /proc files say 0, others grow. */
static tb_status read_all(tb_ctx *ctx, const char *path, int fd, size_t guess,
                          size_t max, tb_bytes *out)
{
    size_t cap = guess < SIZE_MAX - 2 ? guess + 2 : SIZE_MAX;
    out->data = tb_alloc(ctx, cap, 1);
    if (out->data == NULL)
        return TB_ERR_MEMORY;
    for (;;) {
        TB_TRY(grow(ctx, out, &cap));
        ssize_t got = read(fd, out->data + out->len, cap - out->len - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tb_fail_errno(ctx, path, "read failed", errno);
        if (got == 0)
            break;
        out->len += (size_t)got;
        if (out->len > max)
            return too_long(ctx, path, max);
    }
    out->data[out->len] = 0;
    return TB_OK;
}

tb_status tb_file_read(tb_ctx *ctx, const char *path, size_t max, tb_bytes *out)
{
    enum { PIPE_GUESS = 1 << 16 };
    *out = (tb_bytes){0};
    bool standard = tb_streq(path, "-");
    size_t limit = max == 0 ? SIZE_MAX : max, guess = PIPE_GUESS;
    const char *shown = standard ? "standard input" : path;
    struct stat st;
    int fd = STDIN_FILENO;
    if (!standard) {
        TB_TRY(open_read(ctx, path, &fd, &st));
        if (S_ISREG(st.st_mode) && st.st_size > 0)
            guess = (size_t)st.st_size;
    }
    tb_status s = guess > limit && guess != PIPE_GUESS
                      ? too_long(ctx, shown, limit)
                      : read_all(ctx, shown, fd, guess, limit, out);
    if (!standard)
        close(fd);
    if (s != TB_OK)
        tb_bytes_clear(ctx, out);
    return s;
}

tb_status tb_path_join(tb_ctx *ctx, const char *dir, const char *name,
                       tb_bytes *out)
{
    size_t d = strlen(dir), n = strlen(name);
    bool slash = d > 0 && dir[d - 1] != '/';
    *out = (tb_bytes){0};
    out->data = tb_alloc(ctx, d + n + 2, 1);
    if (out->data == NULL)
        return TB_ERR_MEMORY;
    out->len =
        tb_format(out->data, d + n + 2, "%s%s%s", dir, slash ? "/" : "", name);
    return TB_OK;
}
