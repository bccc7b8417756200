/* SPDX-License-Identifier: MIT */
/* Atomic files (C124): a full disk, a limit, a lock, every system call
 * failing, and the process dying before or after every system call. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "checkpoint/files.h"
#include "unit/test_checkpoint_tmp.h"

/* --- reading
 * ------------------------------------------------------------------ */

TB_TEST(reads_what_is_there)
{
    static char big[200000];
    memset(big, 'x', sizeof(big));
    TB_CHECK(T, tmp_holds(T->ctx, tmp_file("big", big, sizeof(big)), big,
                          sizeof(big)));
    TB_CHECK(T, tmp_holds(T->ctx, tmp_file("nul", "a\0b", 3), "a\0b", 3));
    TB_CHECK(T, tmp_holds(T->ctx, tmp_file("none", "", 0), "", 0));
    TB_CHECK(T, tmp_holds(T->ctx, "/dev/null", "", 0));
}

TB_TEST(limit_of_bytes)
{
    tb_bytes b;
    const char *path = tmp_text("ten", "0123456789");
    TB_OKAY(T, tb_file_read(T->ctx, path, 10, &b));
    TB_CHECK(T, b.len == 10 && b.data[10] == 0);
    tb_bytes_clear(T->ctx, &b);
    TB_FAILS(T, tb_file_read(T->ctx, path, 9, &b), TB_ERR_INPUT,
             "longer than the limit of 9 bytes");
    TB_CHECK(T, b.data == NULL && b.len == 0);
    TB_FAILS(T, tb_file_read(T->ctx, "/dev/zero", 100000, &b), TB_ERR_INPUT,
             "/dev/zero: longer than the limit");
}

TB_TEST(absent_files_are_input_errors)
{
    tb_bytes b;
    TB_FAILS(T, tb_file_read(T->ctx, tmp_path("absent"), 0, &b), TB_ERR_INPUT,
             "absent: cannot open: No such file or directory");
    TB_FAILS(T, tb_file_read(T->ctx, tmp_dir, 0, &b), TB_ERR_INPUT,
             "Is a directory");
    TB_FAILS(T, tb_file_read(T->ctx, "", 0, &b), TB_ERR_INPUT, "No such file");
    TB_CHECK(T, !tb_file_exists(tmp_dir) && !tb_file_exists("/dev/null"));
    TB_CHECK(T, tb_file_exists(tmp_text("there", "")));
}

/* Standard input, as a file and as a pipe that comes in pieces. */
TB_TEST(standard_input)
{
    int old = dup(STDIN_FILENO), ends[2];
    TB_REQUIRE(T, old >= 0 && pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100; i++)
            if (write(ends[1], "0123456789", 10) != 10)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    tb_bytes b;
    tb_status s = tb_file_read(T->ctx, "-", 0, &b);
    dup2(old, STDIN_FILENO);
    close(old);
    waitpid(child, NULL, 0);
    TB_OKAY(T, s);
    TB_CHECK(T, b.len == 1000 && memcmp(b.data + 990, "0123456789", 10) == 0);
    tb_bytes_clear(T->ctx, &b);
}

/* --- writing
 * ------------------------------------------------------------------- */

static bool no_tmp(const char *path)
{
    char tmp[1100];
    snprintf(tmp, sizeof(tmp), "%s.tmp", path);
    return access(tmp, F_OK) != 0;
}

TB_TEST(writes_and_replaces)
{
    const char *path = tmp_path("new");
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, "one", 3));
    TB_CHECK(T, tmp_holds(T->ctx, path, "one", 3));
    TB_REQUIRE(T, chmod(path, 0640) == 0);
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, "2", 1));
    TB_CHECK(T, tmp_holds(T->ctx, path, "2", 1) && no_tmp(path));
    struct stat st;
    TB_CHECK(T, stat(path, &st) == 0 && (st.st_mode & 0777) == 0640);
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, "", 0));
    TB_CHECK(T, tmp_holds(T->ctx, path, "", 0));
}

TB_TEST(a_path_without_a_slash)
{
    char old[1024];
    TB_REQUIRE(T, getcwd(old, sizeof(old)) != NULL);
    const char *there = tmp_path("bare");
    TB_REQUIRE(T, chdir(tmp_dir) == 0);
    tb_status s = tb_file_write_atomic(T->ctx, "bare", "x", 1);
    TB_REQUIRE(T, chdir(old) == 0);
    TB_OKAY(T, s);
    TB_CHECK(T, tmp_holds(T->ctx, there, "x", 1));
}

TB_TEST(a_link_stays_a_link)
{
    const char *real = tmp_text("real", "old"), *link = tmp_path("link");
    TB_REQUIRE(T, symlink(real, link) == 0);
    TB_OKAY(T, tb_file_write_atomic(T->ctx, link, "new", 3));
    struct stat st;
    TB_CHECK(T, lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    TB_CHECK(T, tmp_holds(T->ctx, real, "new", 3));
}

TB_TEST(places_that_cannot_be_written)
{
    TB_FAILS(T, tb_file_write_atomic(T->ctx, tmp_path("no/such"), "x", 1),
             TB_ERR_IO, "no/such: cannot create");
    TB_FAILS(T, tb_file_write_atomic(T->ctx, tmp_path(""), "x", 1), TB_ERR_IO,
             "is a folder");
}

TB_TEST(full_device)
{
    if (access("/dev/full", W_OK) != 0)
        TB_SKIP(T, "no /dev/full here");
    TB_FAILS(T, tb_file_write_atomic(T->ctx, "/dev/full", "x", 1), TB_ERR_IO,
             "/dev/full: write failed: No space left on device");
    TB_OKAY(T, tb_file_write_atomic(T->ctx, "/dev/null", "x", 1));
    struct stat st;
    TB_CHECK(T, stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
}

/* Beyond RLIMIT_FSIZE: an error with errno's text, no signal, old file kept. */
TB_TEST(limit_of_the_file_size)
{
    static char big[1 << 16];
    const char *path = tmp_text("limited", "old");
    struct rlimit old, low = {.rlim_cur = 10000};
    TB_REQUIRE(T, getrlimit(RLIMIT_FSIZE, &old) == 0);
    low.rlim_max = old.rlim_max;
    TB_REQUIRE(T, setrlimit(RLIMIT_FSIZE, &low) == 0);
    tb_status s = tb_file_write_atomic(T->ctx, path, big, sizeof(big));
    setrlimit(RLIMIT_FSIZE, &old);
    TB_FAILS(T, s, TB_ERR_IO, "limited: write failed: File too large");
    sigset_t pending;
    TB_CHECK(T,
             sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0);
    TB_CHECK(T, tmp_holds(T->ctx, path, "old", 3) && no_tmp(path));
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, big, sizeof(big)));
}

TB_TEST(leftover_tmp_is_reused)
{
    const char *path = tmp_text("left", "old");
    tmp_text("left.tmp", "a long half-written file of a killed writer");
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, "new", 3));
    TB_CHECK(T, tmp_holds(T->ctx, path, "new", 3) && no_tmp(path));
}

TB_TEST(second_writer_is_refused)
{
    const char *path = tmp_text("locked", "old");
    tb_out *first, *second;
    TB_OKAY(T, tb_out_open(T->ctx, path, NULL, &first));
    TB_OKAY(T, tb_out_write(first, "first", 5));
    TB_FAILS(T, tb_out_open(T->ctx, path, NULL, &second), TB_ERR_IO,
             "another process is writing it");
    TB_OKAY(T, tb_out_finish(first));
    TB_CHECK(T, tmp_holds(T->ctx, path, "first", 5));
    TB_OKAY(T, tb_file_write_atomic(T->ctx, path, "third", 5));
}

TB_TEST(abort_leaves_the_old_file)
{
    const char *path = tmp_text("aborted", "old");
    tb_out *o;
    TB_OKAY(T, tb_out_open(T->ctx, path, NULL, &o));
    TB_OKAY(T, tb_out_write(o, "half", 4));
    tb_out_abort(o);
    TB_CHECK(T, tmp_holds(T->ctx, path, "old", 3) && no_tmp(path));
}

TB_TEST(folders)
{
    TB_OKAY(T, tb_dir_make(T->ctx, tmp_path("a/b//c/")));
    TB_OKAY(T, tb_dir_make(T->ctx, tmp_path("a/b")));
    struct stat st;
    TB_CHECK(T, stat(tmp_path("a/b/c"), &st) == 0 && S_ISDIR(st.st_mode));
    tmp_text("file", "");
    TB_FAILS(T, tb_dir_make(T->ctx, tmp_path("file/x")), TB_ERR_IO,
             "cannot make the folder");
    TB_FAILS(T, tb_dir_make(T->ctx, ""), TB_ERR_INPUT, "wanted a path");
}

TB_TEST(paths_join)
{
    static const struct {
        const char *dir, *name, *want;
    } rows[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_bytes b;
        TB_OKAY(T, tb_path_join(T->ctx, rows[i].dir, rows[i].name, &b));
        TB_STR(T, b.data, rows[i].want);
        TB_CHECK(T, b.len == strlen(rows[i].want));
        tb_bytes_clear(T->ctx, &b);
    }
}

TB_TEST(each_allocation_may_fail)
{
    const char *path = tmp_text("alloc", "old");
    TMP_EACH_ALLOC(T, tb_file_write_atomic(T->ctx, path, "new", 3), (void)0);
    tb_bytes b;
    TMP_EACH_ALLOC(T, tb_file_read(T->ctx, path, 0, &b),
                   tb_bytes_clear(T->ctx, &b));
    TMP_EACH_ALLOC(T, tb_path_join(T->ctx, "a", "b", &b),
                   tb_bytes_clear(T->ctx, &b));
    TMP_EACH_ALLOC(T, tb_dir_make(T->ctx, tmp_path("x/y")), (void)0);
}

/* --- every system call fails, or is the last thing the process does
 * ------------ */

typedef struct faults {
    int calls;    /* so far */
    int at;       /* this one fails; 0: none */
    int kill;     /* 1: die before it, 2: die after it */
    int short_by; /* writes take at most this many bytes; 0: all */
    int eintr;    /* every other write is interrupted */
} faults;

static bool fault(faults *f)
{
    f->calls++;
    if (f->calls != f->at)
        return false;
    if (f->kill == 1)
        kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return f->kill == 0;
}

static void after(const faults *f)
{
    if (f->kill == 2 && f->calls == f->at)
        kill(getpid(), SIGKILL);
}

static int f_open(void *user, const char *path, int flags, mode_t mode)
{
    if (fault(user))
        return -1;
    int fd = open(path, flags, mode);
    after(user);
    return fd;
}

static int f_truncate(void *user, int fd)
{
    if (fault(user))
        return -1;
    int s = ftruncate(fd, 0);
    after(user);
    return s;
}

static ssize_t f_write(void *user, int fd, const void *data, size_t n)
{
    faults *f = user;
    if (fault(f))
        return -1;
    if (f->eintr && f->calls % 2) {
        errno = EINTR;
        return -1;
    }
    size_t most = f->short_by ? (size_t)f->short_by : n;
    ssize_t done = write(fd, data, n < most ? n : most);
    after(f);
    return done;
}

static int f_sync(void *user, int fd)
{
    if (fault(user))
        return -1;
    int s = fsync(fd);
    after(user);
    return s;
}

static int f_close(void *user, int fd)
{
    bool fails = fault(user);
    int s = close(fd);
    after(user);
    return fails ? -1 : s;
}

static int f_rename(void *user, const char *from, const char *to)
{
    if (fault(user))
        return -1;
    int s = rename(from, to);
    after(user);
    return s;
}

static tb_file_ops ops_of(faults *f)
{
    return (tb_file_ops){f_open,  f_truncate, f_write, f_sync,
                         f_close, f_rename,   f};
}

/* A state whose weights and step must agree: w = [step, step]. */
static tb_status save_state(tb_ctx *ctx, const char *path, int step, faults *f)
{
    tb_safetensors_writer *w;
    const tb_file_ops ops = ops_of(f);
    const size_t dims[] = {2};
    const float x[] = {(float)step, (float)step};
    char text[16];
    snprintf(text, sizeof(text), "%d", step);
    TB_TRY(tb_safetensors_writer_create(ctx, &w));
    tb_status s = tb_safetensors_writer_meta(w, "step", text);
    if (s == TB_OK)
        s = tb_safetensors_writer_add(w, "w", TB_ELEM_F32, 1, dims, TB_F32, x);
    if (s == TB_OK)
        s = tb_safetensors_writer_save_ops(w, path, &ops);
    tb_safetensors_writer_destroy(w);
    return s;
}

/* The step of a state that is whole, or -1. */
static int step_of(tb_ctx *ctx, const char *path)
{
    tb_safetensors *f;
    float x[2] = {-2, -3};
    if (tb_safetensors_open(ctx, path, &f) != TB_OK)
        return -1;
    const tb_tensor_info *t = tb_safetensors_find(f, "w");
    int step = atoi(tb_safetensors_meta(f, "step"));
    if (t == NULL || t->count != 2 ||
        tb_safetensors_read(ctx, f, t, 0, 2, TB_F32, x) != TB_OK ||
        (int)x[0] != step || (int)x[1] != step)
        step = -1;
    tb_safetensors_close(f);
    return step;
}

static int calls_of_a_save(tb_ctx *ctx, const char *path)
{
    faults none = {0};
    return save_state(ctx, path, 1, &none) == TB_OK ? none.calls : 0;
}

TB_TEST(every_call_may_fail)
{
    const char *path = tmp_path("state.safetensors");
    int calls = calls_of_a_save(T->ctx, path);
    TB_CHECK(T, calls == 10); /* open truncate write*2 sync close rename;
                                 folder: open sync close */
    for (int at = 1; at <= calls; at++) {
        faults f = {.at = at};
        TB_FAILS(T, save_state(T->ctx, path, 2, &f), TB_ERR_IO,
                 "No space left on device");
        TB_CHECK(T, strstr(tb_error(T->ctx), path) != NULL);
        TB_CHECK(T, no_tmp(path));
        /* once renamed, the new state is the one that counts */
        TB_CHECK(T, step_of(T->ctx, path) == (at <= 7 ? 1 : 2));
        faults none = {0};
        TB_OKAY(T, save_state(T->ctx, path, 1, &none));
    }
}

/* kill -9 before and after every call; then the next save works, twice. */
TB_TEST(every_call_may_be_the_last)
{
    const char *path = tmp_path("killed.safetensors");
    int calls = calls_of_a_save(T->ctx, path);
    for (int at = 1; at <= calls; at++)
        for (int how = 1; how <= 2; how++) {
            faults none = {0}, f = {.at = at, .kill = how};
            TB_OKAY(T, save_state(T->ctx, path, 1, &none));
            pid_t child = fork();
            if (child == 0)
                _exit(save_state(T->ctx, path, 2, &f) == TB_OK ? 0 : 1);
            int status = 0;
            waitpid(child, &status, 0);
            TB_CHECK(T, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            int step = step_of(T->ctx, path);
            TB_CHECK(T, step == 1 || step == 2);
            TB_CHECK(T, step == (at < 7 || (at == 7 && how == 1) ? 1 : 2));
            TB_OKAY(T, save_state(T->ctx, path, 3, &none));
            TB_CHECK(T, step_of(T->ctx, path) == 3 && no_tmp(path));
        }
}

/* A child that saves one state after the other, killed at any moment. */
TB_TEST(killed_at_random)
{
    const char *path = tmp_path("random.safetensors");
    int last = 0;
    for (int round = 0; round < 20; round++) {
        faults none = {0};
        TB_OKAY(T, save_state(T->ctx, path, last, &none));
        pid_t child = fork();
        if (child == 0)
            for (int step = last + 1;; step++)
                if (save_state(T->ctx, path, step, &none) != TB_OK)
                    _exit(1);
        usleep((useconds_t)(1000 + 20000 * tb_test_uniform(T)));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        int step = step_of(T->ctx, path);
        TB_REQUIRE(T, step >= last);
        last = step;
    }
    TB_CHECK(T, last > 0);
}

/* Another writer finishes between our open and our lock: what we hold then is
 * its finished file, which must not be emptied. */
static int f_open_late(void *user, const char *path, int flags, mode_t mode)
{
    faults *f = user;
    int fd = open(path, flags, mode);
    char final[1100];
    snprintf(final, sizeof(final), "%.*s", (int)strlen(path) - 4, path);
    if (f->calls++ == 0 && (write(fd, "theirs", 6) != 6 || rename(path, final)))
        return -1;
    return fd;
}

TB_TEST(overtaken_between_open_and_lock)
{
    const char *path = tmp_text("race", "old");
    faults f = {0};
    tb_file_ops ops = ops_of(&f);
    tb_out *o;
    ops.open = f_open_late;
    TB_OKAY(T, tb_out_open(T->ctx, path, &ops, &o));
    TB_OKAY(T, tb_out_write(o, "ours", 4));
    TB_CHECK(T, tmp_holds(T->ctx, path, "theirs", 6));
    TB_OKAY(T, tb_out_finish(o));
    TB_CHECK(T, tmp_holds(T->ctx, path, "ours", 4) && no_tmp(path));
}

TB_TEST(short_and_interrupted_writes)
{
    const char *path = tmp_path("short.safetensors");
    for (int by = 1; by <= 9; by += 4)
        for (int eintr = 0; eintr < 2; eintr++) {
            faults f = {.short_by = by, .eintr = eintr};
            TB_OKAY(T, save_state(T->ctx, path, 7, &f));
            TB_CHECK(T, step_of(T->ctx, path) == 7);
        }
}
