/* SPDX-License-Identifier: MIT */
/* The context: last error, log callback, settings, and all memory. Errors sit
 * in a fixed buffer, so that "out of memory" can always be said. */
#include "base/base.h"

#include <stdatomic.h>

#include "base/platform.h"

enum { ERROR_CHARS = 4096, LOG_CHARS = 1024, ISA_CHARS = 16, ALIGN = 64 };

struct tb_ctx {
    char error[ERROR_CHARS];
    char where[80]; /* file:line of the last TB_FAIL */
    tb_log_fn log;
    void *log_user;
    bool exact;
    int threads; /* 0: no limit */
    char isa[ISA_CHARS];
    atomic_bool interrupted; /* lock-free, so a signal handler may set it */
    size_t fail_at;          /* allocations left until one fails; 0: never */
    size_t blocks;           /* live tb_alloc blocks */
    void *slot[TB_SLOT_COUNT];
    void (*drop[TB_SLOT_COUNT])(tb_ctx *, void *);
};

/* --- status ------------------------------------------------------------- */

static const struct {
    int exit;
    const char *text;
} status_table[] = {
#define TB_STATUS_ROW(code, exit, text) {exit, text},
    TB_STATUS_LIST(TB_STATUS_ROW)
#undef TB_STATUS_ROW
};

int tb_status_exit(tb_status s)
{
    return (size_t)s < TB_LEN(status_table) ? status_table[s].exit : 5;
}

const char *tb_status_text(tb_status s)
{
    return (size_t)s < TB_LEN(status_table) ? status_table[s].text
                                            : "unknown status";
}

size_t tb_dtype_size(tb_dtype t)
{
    return t == TB_F64 ? sizeof(double) : sizeof(float);
}

/* --- life --------------------------------------------------------------- */

#if defined(__wasm__)
const char *const tb_isas[] = {"wasm", NULL};
#elif defined(__aarch64__)
const char *const tb_isas[] = {"ref", "neon", NULL};
#else
const char *const tb_isas[] = {"ref", "avx2", "avx512", NULL};
#endif

/* Digits of a small positive number; anything else counts as "not set". */
static int parse_threads(const char *s)
{
    int n = 0;
    if (!s || !*s)
        return 0;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || n > 9999)
            return 0;
        n = 10 * n + (*s - '0');
    }
    return n;
}

tb_status tb_ctx_create(tb_ctx **out)
{
    size_t bytes = (sizeof(tb_ctx) + ALIGN - 1) / ALIGN * ALIGN;
    tb_ctx *ctx = tb_platform_alloc(bytes);
    *out = ctx;
    if (!ctx)
        return TB_ERR_MEMORY;
    memset(ctx, 0, sizeof *ctx);
    atomic_init(&ctx->interrupted, false);
    ctx->threads = parse_threads(tb_platform_getenv("TB_THREADS"));
    const char *isa = tb_platform_getenv("TB_ISA");
    if (isa)
        tb_format(ctx->isa, sizeof ctx->isa, "%s", isa);
    return TB_OK;
}

tb_status tb_ctx_environment(tb_ctx *ctx)
{
    const char *threads = tb_platform_getenv("TB_THREADS");
    bool known = !*ctx->isa;
    char list[64] = "";
    if (threads && *threads && parse_threads(threads) == 0)
        return TB_FAIL(ctx, TB_ERR_USAGE,
                       "TB_THREADS: got %s, wanted a whole number from 1 to "
                       "99999",
                       threads);
    for (size_t i = 0; tb_isas[i]; i++) {
        known = known || tb_streq(ctx->isa, tb_isas[i]);
        tb_format(list + strlen(list), sizeof list - strlen(list), "%s%s",
                  i ? ", " : "", tb_isas[i]);
    }
    return known ? TB_OK
                 : TB_FAIL(ctx, TB_ERR_USAGE,
                           "TB_ISA: got %s, wanted one of %s", ctx->isa, list);
}

void tb_ctx_destroy(tb_ctx *ctx)
{
    if (!ctx)
        return;
    for (int i = 0; i < TB_SLOT_COUNT; i++)
        if (ctx->drop[i])
            ctx->drop[i](ctx, ctx->slot[i]);
    tb_platform_free(ctx);
}

/* --- errors and log ----------------------------------------------------- */

const char *tb_error(const tb_ctx *ctx)
{
    return ctx ? ctx->error : "";
}

const char *tb_error_where(const tb_ctx *ctx)
{
    return ctx ? ctx->where : "";
}

void tb_error_clear(tb_ctx *ctx)
{
    ctx->error[0] = ctx->where[0] = '\0';
}

/* Build systems pass whole paths; file names are unique in the tree. */
static const char *last_component(const char *path)
{
    const char *name = path;
    for (; *path; path++)
        if (*path == '/' || *path == '\\')
            name = path + 1;
    return name;
}

tb_status tb_fail(tb_ctx *ctx, tb_status status, const char *file, int line,
                  const char *fmt, ...)
{
    char text[ERROR_CHARS]; /* an argument may be the old error: wrap it */
    va_list ap;
    if (!ctx)
        return status;
    va_start(ap, fmt);
    tb_vformat(text, sizeof text, fmt, ap);
    va_end(ap);
    memcpy(ctx->error, text, strlen(text) + 1);
    tb_format(ctx->where, sizeof ctx->where, "%s:%d", last_component(file),
              line);
    return status;
}

void tb_say(tb_ctx *ctx, tb_log_level level, const char *fmt, ...)
{
    char line[LOG_CHARS];
    va_list ap;
    if (!ctx->log)
        return;
    va_start(ap, fmt);
    tb_vformat(line, sizeof line, fmt, ap);
    va_end(ap);
    ctx->log(ctx->log_user, level, line);
}

void tb_ctx_on_log(tb_ctx *ctx, tb_log_fn fn, void *user)
{
    ctx->log = fn;
    ctx->log_user = user;
}

/* --- settings ----------------------------------------------------------- */

void tb_ctx_exact(tb_ctx *ctx, bool on)
{
    ctx->exact = on;
}

bool tb_ctx_is_exact(const tb_ctx *ctx)
{
    return ctx->exact;
}

void tb_ctx_threads(tb_ctx *ctx, int n)
{
    ctx->threads = n > 0 ? n : 0;
}

int tb_ctx_thread_limit(const tb_ctx *ctx)
{
    return ctx->threads;
}

const char *tb_ctx_isa_limit(const tb_ctx *ctx)
{
    return ctx->isa[0] ? ctx->isa : NULL;
}

void tb_ctx_interrupt(tb_ctx *ctx)
{
    atomic_store(&ctx->interrupted, true);
}

bool tb_ctx_interrupted(const tb_ctx *ctx)
{
    return atomic_load(&ctx->interrupted);
}

void *tb_ctx_slot(const tb_ctx *ctx, tb_slot slot)
{
    return ctx->slot[slot];
}

void tb_ctx_slot_set(tb_ctx *ctx, tb_slot slot, void *p,
                     void (*drop)(tb_ctx *, void *))
{
    ctx->slot[slot] = p;
    ctx->drop[slot] = drop;
}

/* --- memory ------------------------------------------------------------- */

bool tb_mul(size_t a, size_t b, size_t *out)
{
    *out = a * b;
    return b == 0 || a <= SIZE_MAX / b;
}

bool tb_add(size_t a, size_t b, size_t *out)
{
    *out = a + b;
    return *out >= a;
}

void tb_ctx_fail_alloc_at(tb_ctx *ctx, size_t n)
{
    ctx->fail_at = n;
}

size_t tb_ctx_blocks(const tb_ctx *ctx)
{
    return ctx->blocks;
}

static bool injected_failure(tb_ctx *ctx)
{
    return ctx->fail_at > 0 && --ctx->fail_at == 0;
}

void *tb_alloc(tb_ctx *ctx, size_t n, size_t size)
{
    size_t bytes, padded;
    if (!tb_mul(n, size, &bytes) || !tb_add(bytes, ALIGN - 1, &padded)) {
        (void)TB_FAIL(ctx, TB_ERR_MEMORY, "%zu elements of %zu bytes", n, size);
        return NULL;
    }
    padded = padded < ALIGN ? ALIGN : padded / ALIGN * ALIGN;
    void *p = injected_failure(ctx) ? NULL : tb_platform_alloc(padded);
    if (!p) {
        (void)TB_FAIL(ctx, TB_ERR_MEMORY, "no memory for %zu bytes", bytes);
        return NULL;
    }
    ctx->blocks++;
    return memset(p, 0, padded);
}

void *tb_realloc(tb_ctx *ctx, void *p, size_t old, size_t bytes)
{
    if (p && bytes <= old)
        return p; /* the block stays; the caller's size shrinks */
    void *q = tb_alloc(ctx, bytes, 1);
    if (q && p) {
        memcpy(q, p, old);
        tb_free(ctx, p);
    }
    return q;
}

void tb_free(tb_ctx *ctx, void *p)
{
    if (!p)
        return;
    ctx->blocks--;
    tb_platform_free(p);
}
