/* SPDX-License-Identifier: MIT */
/* The test harness: TB_TEST(name) { ... } defines and registers a test; one
 * file is one program. Prints one line per failure or skip and closes with
 * "N passed, N failed, N skipped"; exits 1 on a failure. */
#ifndef TB_TEST_H
#define TB_TEST_H

#include "base/base.h"
#include "base/number.h"

typedef struct tb_test {
    tb_ctx *ctx;
    const char *name;
    int failed;
    const char *skipped; /* reason */
    uint64_t draws;      /* position in this test's random stream */
} tb_test;

typedef void (*tb_test_fn)(tb_test *T);
void tb_test_register(const char *name, tb_test_fn fn);

#define TB_TEST(id)                                                            \
    static void id(tb_test *T);                                                \
    __attribute__((constructor)) static void id##_register(void)               \
    {                                                                          \
        tb_test_register(#id, id);                                             \
    }                                                                          \
    static void id(tb_test *T)

void tb_test_fail(tb_test *T, const char *file, int line, const char *fmt, ...)
    TB_PRINTF(4, 5);

/** Skip: said aloud and counted. */
#define TB_SKIP(T, reason)                                                     \
    do {                                                                       \
        (T)->skipped = (reason);                                               \
        return;                                                                \
    } while (0)

#define TB_CHECK(T, cond)                                                      \
    do {                                                                       \
        if (!(cond))                                                           \
            tb_test_fail((T), __FILE__, __LINE__, "%s", #cond);                \
    } while (0)

#define TB_REQUIRE(T, cond)                                                    \
    do {                                                                       \
        if (!(cond)) {                                                         \
            tb_test_fail((T), __FILE__, __LINE__, "%s; %s", #cond,             \
                         tb_error((T)->ctx));                                  \
            return;                                                            \
        }                                                                      \
    } while (0)

/** A call that must return TB_OK; prints the error text otherwise. */
#define TB_OKAY(T, call)                                                       \
    do {                                                                       \
        tb_status okay_ = (call);                                              \
        if (okay_ != TB_OK) {                                                  \
            tb_test_fail((T), __FILE__, __LINE__, "%s: %s; %s", #call,         \
                         tb_status_text(okay_), tb_error((T)->ctx));           \
            return;                                                            \
        }                                                                      \
    } while (0)

/** A call that must fail with `status` and a message containing `text`. */
#define TB_FAILS(T, call, status, text)                                        \
    tb_test_fails((T), __FILE__, __LINE__, #call, (call), (status), (text))
void tb_test_fails(tb_test *T, const char *file, int line, const char *call,
                   tb_status got, tb_status want, const char *text);

#define TB_STR(T, got, want) tb_test_str((T), __FILE__, __LINE__, (got), (want))
void tb_test_str(tb_test *T, const char *file, int line, const char *got,
                 const char *want);

/** |got - want| <= tol * max(1, |want|); NaN equals NaN. */
#define TB_NEAR(T, got, want, tol)                                             \
    tb_test_near((T), __FILE__, __LINE__, #got, (got), (want), (tol))
void tb_test_near(tb_test *T, const char *file, int line, const char *what,
                  double got, double want, double tol);

/** max|got - want| <= tol * max(1, max|want|), over n doubles. */
#define TB_NEAR_N(T, got, want, n, tol)                                        \
    tb_test_near_n((T), __FILE__, __LINE__, #got, (got), (want), (n), (tol))
void tb_test_near_n(tb_test *T, const char *file, int line, const char *what,
                    const double *got, const double *want, size_t n,
                    double tol);

/** The same bits (NaN equals NaN). */
#define TB_SAME(T, got, want, bytes)                                           \
    tb_test_same((T), __FILE__, __LINE__, #got, (got), (want), (bytes))
void tb_test_same(tb_test *T, const char *file, int line, const char *what,
                  const void *got, const void *want, size_t bytes);

/** Random numbers that differ per test and repeat per run. */
double tb_test_normal(tb_test *T);
double tb_test_uniform(tb_test *T);
void tb_test_fill(tb_test *T, tb_dtype t, void *x, size_t n); /* normal */
/** Normal times 2^k, k in -20..20: sums of them are never exact. */
void tb_test_fill_wide(tb_test *T, tb_dtype t, void *x, size_t n);

/** n bytes that end right before an unmapped page; freed after the test. */
void *tb_test_guarded(tb_test *T, size_t bytes);

/** Path of a file in ../shared (or $TB_SHARED), or NULL: skip then. */
const char *tb_test_shared(tb_test *T, const char *relative);

/** Element i of a buffer of dtype t, as double. */
double tb_test_get(tb_dtype t, const void *x, size_t i);
void tb_test_set(tb_dtype t, void *x, size_t i, double v);

#endif
