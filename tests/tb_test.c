/* SPDX-License-Identifier: MIT */
/* The harness's main: runs every registered test of the program, or those
 * whose name contains argv[1]. The C library is welcome here. */
#include "tb_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TESTS_MAX = 512, TEXT_CHARS = 4096 };

static struct {
    const char *name;
    tb_test_fn fn;
} tests[TESTS_MAX];
static size_t test_count;

void tb_test_register(const char *name, tb_test_fn fn)
{
    if (test_count == TESTS_MAX) {
        fprintf(stderr, "tb_test: more than %d tests\n", (int)TESTS_MAX);
        abort();
    }
    tests[test_count].name = name;
    tests[test_count++].fn = fn;
}

/* --- what a test may borrow until it ends ------------------------------- */

typedef struct loan {
    struct loan *next;
    void *p;
    size_t mapped; /* bytes to unmap; 0: free() */
} loan;
static loan *loans;

static void *lend(void *p, size_t mapped)
{
    loan *l = malloc(sizeof *l);
    if (!l || !p)
        abort();
    *l = (loan){loans, p, mapped};
    loans = l;
    return p;
}

static void loans_return(void)
{
    while (loans) {
        loan *l = loans;
        loans = l->next;
        if (l->mapped)
            munmap(l->p, l->mapped);
        else
            free(l->p);
        free(l);
    }
}

void *tb_test_guarded(tb_test *T, size_t bytes)
{
    (void)T;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t body = (bytes + page - 1) / page * page;
    char *p = mmap(NULL, body + page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + body, page, PROT_NONE))
        abort();
    lend(p, body + page);
    return p + body - bytes;
}

const char *tb_test_shared(tb_test *T, const char *relative)
{
    /* the build passes whole paths: ROOT/tests/tb_test.c */
    const char *file = __FILE__, *root = getenv("TB_SHARED");
    char *path = lend(malloc(TEXT_CHARS), 0);
    (void)T;
    if (root)
        snprintf(path, TEXT_CHARS, "%s/%s", root, relative);
    else
        snprintf(path, TEXT_CHARS, "%.*s../shared/%s",
                 (int)(strlen(file) - strlen("tests/tb_test.c")), file,
                 relative);
    return access(path, R_OK) == 0 ? path : NULL;
}

/* --- failing ------------------------------------------------------------ */

static void fail_text(tb_test *T, const char *file, int line, const char *text)
{
    const char *name = strrchr(file, '/');
    T->failed++;
    printf("FAIL %s: %s:%d: %s\n", T->name, name ? name + 1 : file, line, text);
    fflush(stdout);
}

void tb_test_fail(tb_test *T, const char *file, int line, const char *fmt, ...)
{
    char text[TEXT_CHARS];
    va_list ap;
    va_start(ap, fmt);
    tb_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    fail_text(T, file, line, text);
}

void tb_test_fails(tb_test *T, const char *file, int line, const char *call,
                   tb_status got, tb_status want, const char *text)
{
    const char *error = tb_error(T->ctx);
    if (got != want)
        tb_test_fail(T, file, line, "%s: got '%s' (%s), wanted '%s'", call,
                     tb_status_text(got), error, tb_status_text(want));
    else if (text && !strstr(error, text))
        tb_test_fail(T, file, line, "%s: message '%s' lacks '%s'", call, error,
                     text);
}

void tb_test_str(tb_test *T, const char *file, int line, const char *got,
                 const char *want)
{
    if (!tb_streq(got, want))
        tb_test_fail(T, file, line, "\n  got    '%s'\n  wanted '%s'",
                     got ? got : "(null)", want ? want : "(null)");
}

/* --- numbers ------------------------------------------------------------ */

static bool near(double got, double want, double limit)
{
    if (got != got || want != want)
        return got != got && want != want;
    return got == want || tb_fabs(got - want) <= limit;
}

static double at_least_1(double v)
{
    return v > 1 ? v : 1; /* NaN: 1 */
}

void tb_test_near(tb_test *T, const char *file, int line, const char *what,
                  double got, double want, double tol)
{
    double limit = tol * at_least_1(tb_fabs(want));
    if (!near(got, want, limit))
        tb_test_fail(T, file, line,
                     "%s: got %g, wanted %g, difference %.3g, limit %.3g", what,
                     got, want, got - want, limit);
}

void tb_test_near_n(tb_test *T, const char *file, int line, const char *what,
                    const double *got, const double *want, size_t n, double tol)
{
    double scale = 1;
    for (size_t i = 0; i < n; i++)
        if (tb_isfinite(want[i]) && tb_fabs(want[i]) > scale)
            scale = tb_fabs(want[i]);
    for (size_t i = 0; i < n; i++) {
        if (near(got[i], want[i], tol * scale))
            continue;
        tb_test_fail(T, file, line,
                     "%s[%zu]: got %g, wanted %g, difference %.3g, limit %.3g",
                     what, i, got[i], want[i], got[i] - want[i], tol * scale);
        return; /* the first one is enough */
    }
}

/* Elements of 8 or 4 bytes that are NaN in both are the same, whatever their
 * payload; the size is not known here, so both readings are tried. */
static bool nan_at(const unsigned char *p, size_t size)
{
    double d;
    float f;
    if (size == sizeof d) {
        memcpy(&d, p, sizeof d);
        return d != d;
    }
    memcpy(&f, p, sizeof f);
    return f != f;
}

static bool same_elements(const unsigned char *a, const unsigned char *b,
                          size_t bytes, size_t size, size_t *at)
{
    size_t i = 0;
    for (; i + size <= bytes; i += size) {
        bool same = memcmp(a + i, b + i, size) == 0;
        if (!same && !(nan_at(a + i, size) && nan_at(b + i, size)))
            break;
    }
    *at = i;
    return i + size > bytes && memcmp(a + i, b + i, bytes - i) == 0;
}

void tb_test_same(tb_test *T, const char *file, int line, const char *what,
                  const void *got, const void *want, size_t bytes)
{
    const unsigned char *a = got, *b = want;
    size_t at4, at8;
    if (memcmp(a, b, bytes) == 0 ||
        same_elements(a, b, bytes, sizeof(float), &at4) ||
        same_elements(a, b, bytes, sizeof(double), &at8))
        return;
    float f[2] = {0};
    double d[2] = {0};
    if (at4 + sizeof f[0] <= bytes) {
        memcpy(&f[0], a + at4, sizeof f[0]);
        memcpy(&f[1], b + at4, sizeof f[1]);
    }
    if (at8 + sizeof d[0] <= bytes) {
        memcpy(&d[0], a + at8, sizeof d[0]);
        memcpy(&d[1], b + at8, sizeof d[1]);
    }
    tb_test_fail(T, file, line,
                 "%s: differs at byte %zu: as float[%zu] %.9g, wanted %.9g; "
                 "as double[%zu] %.17g, wanted %.17g",
                 what, at4, at4 / 4, (double)f[0], (double)f[1], at8 / 8, d[0],
                 d[1]);
}

double tb_test_get(tb_dtype t, const void *x, size_t i)
{
    if (t == TB_F64)
        return ((const double *)x)[i];
    return (double)((const float *)x)[i];
}

void tb_test_set(tb_dtype t, void *x, size_t i, double v)
{
    if (t == TB_F64)
        ((double *)x)[i] = v;
    else
        ((float *)x)[i] = (float)v;
}

/* --- random ------------------------------------------------------------- */

double tb_test_uniform(tb_test *T)
{
    return tb_rng_uniform(tb_rng_make(1, T->name), T->draws++);
}

double tb_test_normal(tb_test *T)
{
    return tb_rng_normal(tb_rng_make(1, T->name), T->draws++);
}

void tb_test_fill(tb_test *T, tb_dtype t, void *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tb_test_set(t, x, i, tb_test_normal(T));
}

void tb_test_fill_wide(tb_test *T, tb_dtype t, void *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tb_rng r = tb_rng_make(2, T->name);
        int k = (int)tb_rng_below(r, T->draws, 41) - 20;
        double scale = 1;
        for (; k > 0; k--)
            scale *= 2;
        for (; k < 0; k++)
            scale /= 2;
        tb_test_set(t, x, i, tb_test_normal(T) * scale);
    }
}

/* --- main --------------------------------------------------------------- */

typedef struct tally {
    int passed, failed, skipped;
} tally;

static void run_one(size_t i, tally *sum)
{
    tb_test T = {.name = tests[i].name};
    if (tb_ctx_create(&T.ctx) != TB_OK)
        abort();
    tests[i].fn(&T);
    tb_ctx_destroy(T.ctx);
    loans_return();
    if (T.skipped && !T.failed) {
        printf("SKIP %s: %s\n", T.name, T.skipped);
        sum->skipped++;
    } else if (T.failed) {
        sum->failed++;
    } else {
        sum->passed++;
    }
}

int main(int argc, char **argv)
{
    tally sum = {0};
    for (size_t i = 0; i < test_count; i++)
        if (argc < 2 || strstr(tests[i].name, argv[1]))
            run_one(i, &sum);
    printf("%d passed, %d failed, %d skipped\n", sum.passed, sum.failed,
           sum.skipped);
    return sum.failed > 0;
}
