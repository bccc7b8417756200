/* SPDX-License-Identifier: MIT */
/* Writing a file so that a reader sees all of it or what was there before,
 * and the errors of the file system as text. */
#ifndef TB_CHECKPOINT_FILES_H
#define TB_CHECKPOINT_FILES_H

#include <sys/types.h>

#include "base/base.h"
#include "tollbooth/checkpoint.h"

/** The system calls a writer makes, so that a test can let each one fail or
 * die. They behave as POSIX says; `user` is handed through. */
typedef struct tb_file_ops {
    int (*open)(void *user, const char *path, int flags, mode_t mode);
    int (*truncate)(void *user, int fd);
    ssize_t (*write)(void *user, int fd, const void *data, size_t n);
    int (*sync)(void *user, int fd);
    int (*close)(void *user, int fd);
    int (*rename)(void *user, const char *from, const char *to);
    void *user;
} tb_file_ops;

extern const tb_file_ops tb_file_ops_system;

typedef struct tb_out tb_out;

/** tb_out_open - start to write `path`; nothing changes there until _finish.
 * `ops` NULL means the system's. See tb_file_write_atomic. */
tb_status tb_out_open(tb_ctx *ctx, const char *path, const tb_file_ops *ops,
                      tb_out **out);
tb_status tb_out_write(tb_out *o, const void *data, size_t n);
/** tb_out_write_elems - n numbers stored as `elem`, in constant memory; `elem`
 * is one that tb_elem_encode takes. */
tb_status tb_out_write_elems(tb_out *o, tb_elem elem, tb_dtype t, const void *x,
                             size_t n);
/** tb_out_finish - sync and put in place. Frees o, whatever it returns; on a
 * failure the partial file is gone and the old one untouched. */
tb_status tb_out_finish(tb_out *o);
/** tb_out_abort - remove the partial file and free o; NULL is fine. */
void tb_out_abort(tb_out *o);

/** tb_fail_errno - TB_ERR_INPUT where the user named a file that is not
 * there or not to be read, TB_ERR_IO otherwise: "path: what: errno text". */
tb_status tb_fail_errno(tb_ctx *ctx, const char *path, const char *what,
                        int error);

/** tb_read_at - exactly n bytes from `at`; TB_ERR_INPUT if the file is
 * shorter (it shrank after it was opened). */
tb_status tb_read_at(tb_ctx *ctx, const char *path, int fd, uint64_t at,
                     void *out, size_t n);

/** tb_open_regular - open for reading, with the size; a folder, pipe or device
 * is TB_ERR_INPUT. */
tb_status tb_open_regular(tb_ctx *ctx, const char *path, int *fd,
                          uint64_t *bytes);

/** tb_safetensors_writer_save with the calls of a test. */
tb_status tb_safetensors_writer_save_ops(tb_safetensors_writer *w,
                                         const char *path,
                                         const tb_file_ops *ops);

#endif
