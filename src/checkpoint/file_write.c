/* SPDX-License-Identifier: MIT */
/* Atomic replacement of a file: PATH.tmp, locked, written, synced, renamed,
 * folder synced. Every step is checked, so a full disk is never silent. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h> /* rename */
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/files.h"

/* --- the system's calls -------------------------------------------------- */

static int sys_open(void *user, const char *path, int flags, mode_t mode)
{
    (void)user;
    return open(path, flags, mode);
}

static int sys_truncate(void *user, int fd)
{
    (void)user;
    return ftruncate(fd, 0);
}

/* A write beyond RLIMIT_FSIZE sends SIGXFSZ, which would end the program: it
 * is held back here so that the write fails with EFBIG like any other. */
static ssize_t sys_write(void *user, int fd, const void *data, size_t n)
{
    (void)user;
    sigset_t xfsz, old, pending;
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &xfsz, &old);
    ssize_t done = write(fd, data, n);
    int error = errno;
    if (done < 0 && error == EFBIG && !was_pending)
        sigtimedwait(&xfsz, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return done;
}

/* Pipes and some file systems cannot sync; that is no failure. */
static int sys_sync(void *user, int fd)
{
    (void)user;
    if (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS)
        return 0;
    return -1;
}

/* On Linux the descriptor is gone even after EINTR. */
static int sys_close(void *user, int fd)
{
    (void)user;
    return close(fd) == 0 || errno == EINTR ? 0 : -1;
}

static int sys_rename(void *user, const char *from, const char *to)
{
    (void)user;
    return rename(from, to);
}

const tb_file_ops tb_file_ops_system = {
    sys_open, sys_truncate, sys_write, sys_sync, sys_close, sys_rename, NULL};

/* --- one file being written ---------------------------------------------- */

struct tb_out {
    tb_ctx *ctx;
    tb_file_ops ops;
    tb_arena arena;
    int fd;            /* being written; -1 once closed */
    int lock;          /* a second descriptor that keeps the lock; -1: none */
    bool direct;       /* a device or pipe: no .tmp, no rename */
    bool renamed;      /* the .tmp is gone */
    const char *shown; /* the path as given, for messages */
    const char *path, *tmp;
};

static tb_status fail(tb_out *o, const char *what)
{
    return tb_fail_errno(o->ctx, o->shown, what, errno);
}

/* The file a link names, so that the link itself survives. */
static const char *resolve(tb_out *o, const char *path, struct stat *st,
                           bool *exists)
{
    char real[PATH_MAX];
    *exists = stat(path, st) == 0;
    if (*exists && !S_ISREG(st->st_mode))
        return tb_arena_strdup(&o->arena, path);
    return tb_arena_strdup(&o->arena, realpath(path, real) ? real : path);
}

/* True if `fd` is (still) what `path` names: a rename by another writer
 * between our open and our lock would make it that writer's finished file. */
static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Open and lock the .tmp. File systems without locks do without. */
static tb_status open_tmp(tb_out *o)
{
    for (int tries = 0; tries < 16; tries++) {
        o->fd = o->ops.open(o->ops.user, o->tmp, O_RDWR | O_CREAT | O_CLOEXEC,
                            0666);
        if (o->fd < 0)
            return fail(o, "cannot create the .tmp beside it");
        if (flock(o->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(o->fd);
            o->fd = -1;
            return TB_FAIL(o->ctx, TB_ERR_IO,
                           "%s: another process is writing it", o->shown);
        }
        if (same_file(o->fd, o->tmp))
            return TB_OK;
        close(o->fd);
        o->fd = -1;
    }
    return TB_FAIL(o->ctx, TB_ERR_IO, "%s: another process keeps writing it",
                   o->shown);
}

static tb_status start_tmp(tb_out *o, const struct stat *old, bool exists)
{
    o->tmp = tb_arena_printf(&o->arena, "%s.tmp", o->path);
    if (o->tmp == NULL)
        return TB_ERR_MEMORY;
    TB_TRY(open_tmp(o));
    if (o->ops.truncate(o->ops.user, o->fd) != 0)
        return fail(o, "cannot empty the .tmp");
    if (exists && fchmod(o->fd, old->st_mode & 07777) != 0)
        return fail(o, "cannot set the mode of the .tmp");
    o->lock = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
    return o->lock < 0 ? fail(o, "cannot keep the lock") : TB_OK;
}

static tb_status start(tb_out *o, const char *path)
{
    struct stat st;
    bool exists;
    o->shown = tb_arena_strdup(&o->arena, path);
    o->path = resolve(o, path, &st, &exists);
    if (o->shown == NULL || o->path == NULL)
        return TB_ERR_MEMORY;
    if (exists && S_ISDIR(st.st_mode))
        return TB_FAIL(o->ctx, TB_ERR_IO, "%s: cannot write: is a folder",
                       path);
    o->direct = exists && !S_ISREG(st.st_mode);
    if (!o->direct)
        return start_tmp(o, &st, exists);
    o->fd = o->ops.open(o->ops.user, o->path, O_WRONLY | O_CLOEXEC, 0);
    return o->fd < 0 ? fail(o, "cannot open for writing") : TB_OK;
}

tb_status tb_out_open(tb_ctx *ctx, const char *path, const tb_file_ops *ops,
                      tb_out **out)
{
    *out = NULL;
    tb_out *o = tb_alloc(ctx, 1, sizeof(*o));
    if (o == NULL)
        return TB_ERR_MEMORY;
    *o = (tb_out){.ctx = ctx,
                  .ops = ops ? *ops : tb_file_ops_system,
                  .fd = -1,
                  .lock = -1};
    tb_arena_init(&o->arena, ctx);
    tb_status s = start(o, path);
    if (s == TB_OK)
        *out = o;
    else
        tb_out_abort(o);
    return s;
}

tb_status tb_out_write(tb_out *o, const void *data, size_t n)
{
    const char *from = data;
    while (n > 0) {
        ssize_t done = o->ops.write(o->ops.user, o->fd, from, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            if (done == 0)
                errno = ENOSPC;
            return fail(o, "write failed");
        }
        from += done;
        n -= (size_t)done;
    }
    return TB_OK;
}

static tb_status close_checked(tb_out *o)
{
    int fd = o->fd;
    o->fd = -1;
    return o->ops.close(o->ops.user, fd) == 0 ? TB_OK : fail(o, "close failed");
}

/* The rename is durable once the folder is. */
static tb_status sync_folder(tb_out *o)
{
    const char *slash = strrchr(o->path, '/');
    size_t n = slash == NULL ? 1 : (size_t)(slash - o->path) + 1;
    const char *dir = tb_arena_strndup(&o->arena, slash ? o->path : ".", n);
    if (dir == NULL)
        return TB_ERR_MEMORY;
    int fd =
        o->ops.open(o->ops.user, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fail(o, "written, but its folder cannot be opened to sync");
    bool synced = o->ops.sync(o->ops.user, fd) == 0;
    int error = errno;
    if (o->ops.close(o->ops.user, fd) != 0 && synced)
        return fail(o, "written, but closing its folder failed");
    errno = error;
    return synced ? TB_OK : fail(o, "written, but syncing its folder failed");
}

static tb_status put_in_place(tb_out *o)
{
    if (o->ops.sync(o->ops.user, o->fd) != 0)
        return fail(o, "sync failed");
    TB_TRY(close_checked(o));
    if (o->direct)
        return TB_OK;
    if (o->ops.rename(o->ops.user, o->tmp, o->path) != 0)
        return fail(o, "rename failed");
    o->renamed = true;
    return sync_folder(o);
}

tb_status tb_out_finish(tb_out *o)
{
    tb_status s = put_in_place(o);
    tb_out_abort(o); /* removes nothing once renamed */
    return s;
}

void tb_out_abort(tb_out *o)
{
    if (o == NULL)
        return;
    bool ours = o->fd >= 0 || o->lock >= 0; /* else another writer's .tmp */
    if (o->tmp != NULL && ours && !o->renamed)
        unlink(o->tmp);
    if (o->fd >= 0)
        close(o->fd);
    if (o->lock >= 0)
        close(o->lock);
    tb_arena_clear(&o->arena);
    tb_free(o->ctx, o);
}

tb_status tb_file_write_atomic(tb_ctx *ctx, const char *path, const void *data,
                               size_t n)
{
    tb_out *o;
    TB_TRY(tb_out_open(ctx, path, NULL, &o));
    tb_status s = tb_out_write(o, data, n);
    if (s != TB_OK) {
        tb_out_abort(o);
        return s;
    }
    return tb_out_finish(o);
}

/* --- folders -------------------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Make every prefix of `p` that ends before a slash, then p itself. */
static tb_status make_prefixes(tb_ctx *ctx, char *p)
{
    for (size_t i = 1;; i++) {
        char c = p[i];
        if (c != '/' && c != 0)
            continue;
        p[i] = 0;
        if (!is_folder(p) && mkdir(p, 0777) != 0 && errno != EEXIST)
            return tb_fail_errno(ctx, p, "cannot make the folder", errno);
        if (!is_folder(p))
            return tb_fail_errno(ctx, p, "cannot make the folder", ENOTDIR);
        if (c == 0)
            return TB_OK;
        p[i] = c;
    }
}

tb_status tb_dir_make(tb_ctx *ctx, const char *path)
{
    if (path[0] == 0)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "folder name: got \"\", wanted a path");
    tb_arena a;
    tb_arena_init(&a, ctx);
    char *p = tb_arena_strdup(&a, path);
    tb_status s = p == NULL ? TB_ERR_MEMORY : make_prefixes(ctx, p);
    tb_arena_clear(&a);
    return s;
}
