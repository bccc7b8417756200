/* SPDX-License-Identifier: MIT */
/* Status codes, the context every call hangs off, and version.
 * Everything else in include/tollbooth builds on this header. */
#ifndef TOLLBOOTH_BASE_H
#define TOLLBOOTH_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define TB_VERSION "0.1.0"

#if defined(__GNUC__)
#    define TB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#    define TB_PRINTF(fmt, args)
#endif

/* code, process exit code, text (docs/json.md lists the exit codes) */
#define TB_STATUS_LIST(X)                                                      \
    X(OK, 0, "done")                                                           \
    X(CHECK, 1, "a check failed")                                              \
    X(ERR_USAGE, 2, "usage")                                                   \
    X(ERR_ARG, 2, "impossible setting")                                        \
    X(ERR_PARSE, 3, "bad equation")                                            \
    X(ERR_INPUT, 3, "bad input")                                               \
    X(ERR_SHAPE, 3, "shapes do not fit")                                       \
    X(ERR_NONFINITE, 4, "non-finite number")                                   \
    X(ERR_DIVERGED, 4, "training diverged")                                    \
    X(ERR_MEMORY, 5, "out of memory")                                          \
    X(ERR_IO, 5, "reading or writing failed")                                  \
    X(ERR_SYSTEM, 5, "the system failed")                                      \
    X(INTERRUPTED, 130, "interrupted")

typedef enum tb_status {
#define TB_STATUS_ENUM(code, exit, text) TB_##code,
    TB_STATUS_LIST(TB_STATUS_ENUM)
#undef TB_STATUS_ENUM
} tb_status;

/** tb_status_exit - the process exit code the command line uses for `s`. */
int tb_status_exit(tb_status s);

/** tb_status_text - a constant English phrase for `s`. */
const char *tb_status_text(tb_status s);

/** Storage and compute type of a plan's tensors. TB_BF16, for models and
 * training only: TB_F32 but for the products with weights, whose operands are
 * rounded to bf16 (sums in f32). Weights, gradients, the stream, norms,
 * attention, loss and optimizer stay f32. */
typedef enum tb_dtype { TB_F32, TB_F64, TB_BF16, TB_DTYPE_UNSET } tb_dtype;

/** tb_dtype_size - bytes of one element. */
size_t tb_dtype_size(tb_dtype t);

typedef struct tb_ctx tb_ctx;

/**
 * tb_ctx_create - the object that owns errors, memory accounting, threads
 * and the chosen kernels. One context serves one thread of the caller.
 *
 * Environment, read once: TB_ISA=ref|avx2|avx512|neon caps the kernels,
 * TB_THREADS=n caps the threads.
 * Returns TB_OK or TB_ERR_MEMORY (then *out is NULL).
 */
tb_status tb_ctx_create(tb_ctx **out);

/** tb_ctx_environment - TB_ERR_USAGE if TB_ISA or TB_THREADS held something
 * else, which was ignored: the message says what was wanted. */
tb_status tb_ctx_environment(tb_ctx *ctx);

/** tb_ctx_destroy - frees the context; NULL is fine. */
void tb_ctx_destroy(tb_ctx *ctx);

/** tb_error - the text of the last failure in `ctx`, "" if none. One or more
 * lines, no newline at the end; valid until the next failing call. */
const char *tb_error(const tb_ctx *ctx);

/** tb_error_clear - forget the last failure. */
void tb_error_clear(tb_ctx *ctx);

/** Levels of the log callback. */
typedef enum tb_log_level { TB_LOG_INFO, TB_LOG_WARN } tb_log_level;
typedef void (*tb_log_fn)(void *user, tb_log_level level, const char *line);

/** tb_ctx_on_log - where the library's messages go (default: nowhere). */
void tb_ctx_on_log(tb_ctx *ctx, tb_log_fn fn, void *user);

/** tb_ctx_exact - true: every matrix product uses our reference GEMM, so the
 * result is the same on every machine and in the browser. */
void tb_ctx_exact(tb_ctx *ctx, bool on);

/** tb_ctx_threads - use n threads (0: as many as the machine has). Results
 * do not depend on n except inside an outside GEMM library. */
void tb_ctx_threads(tb_ctx *ctx, int n);

/** tb_ctx_interrupt - ask a running train or flow to stop at its next safe
 * point; may be called from a signal handler. */
void tb_ctx_interrupt(tb_ctx *ctx);

/** tb_ctx_fail_alloc_at - make the n-th allocation from now fail (1 is the
 * next); 0 switches it off. For tests. */
void tb_ctx_fail_alloc_at(tb_ctx *ctx, size_t n);

/** tb_nearest - the candidate most like `word` (edit distance at most a third
 * of its length, and at least 1 is allowed), or NULL: "did you mean". */
const char *tb_nearest(const char *word, const char *const *candidates,
                       size_t n);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
