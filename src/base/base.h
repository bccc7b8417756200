/* SPDX-License-Identifier: MIT */
/* What every room uses: failing with a message, memory, arenas, growing
 * strings and the formatter. No libc beyond string.h, so wasm shares it. */
#ifndef TB_BASE_BASE_H
#define TB_BASE_BASE_H

#include <stdarg.h>
#include <string.h>

#include "tollbooth/base.h"

#define TB_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* --- failing ------------------------------------------------------------ */

/** TB_FAIL - record "what: got, wanted" with file:line; yields the status. */
#define TB_FAIL(ctx, status, ...)                                              \
    tb_fail((ctx), (status), __FILE__, __LINE__, __VA_ARGS__)

/** TB_TRY - pass a failure up. */
#define TB_TRY(call)                                                           \
    do {                                                                       \
        tb_status try_status_ = (call);                                        \
        if (try_status_ != TB_OK)                                              \
            return try_status_;                                                \
    } while (0)

/** TB_TRY_GOTO - the same for a function that has to clean up at `label`;
 * the function's status variable is named `s`. */
#define TB_TRY_GOTO(call, label)                                               \
    do {                                                                       \
        s = (call);                                                            \
        if (s != TB_OK)                                                        \
            goto label;                                                        \
    } while (0)

tb_status tb_fail(tb_ctx *ctx, tb_status status, const char *file, int line,
                  const char *fmt, ...) TB_PRINTF(5, 6);

/** tb_error_where - "file:line" of the last TB_FAIL, for tests and --debug. */
const char *tb_error_where(const tb_ctx *ctx);

/** tb_say - one line to the log callback (tb_log is the logarithm). */
void tb_say(tb_ctx *ctx, tb_log_level level, const char *fmt, ...)
    TB_PRINTF(3, 4);

/* --- memory ------------------------------------------------------------- */

/** tb_alloc - n*size zeroed bytes, 64-byte aligned; NULL after recording
 * TB_ERR_MEMORY (also when n*size overflows). n*size = 0 gives a valid
 * pointer. */
void *tb_alloc(tb_ctx *ctx, size_t n, size_t size);

/** tb_realloc - grow or shrink a tb_alloc block from `old` to `bytes`; new
 * bytes are zero. On failure NULL, and `p` is still valid. */
void *tb_realloc(tb_ctx *ctx, void *p, size_t old, size_t bytes);
void tb_free(tb_ctx *ctx, void *p);

/** tb_ctx_blocks - live tb_alloc blocks: leak checks without a sanitizer. */
size_t tb_ctx_blocks(const tb_ctx *ctx);

/** tb_mul, tb_add - false on overflow. */
bool tb_mul(size_t a, size_t b, size_t *out);
bool tb_add(size_t a, size_t b, size_t *out);

/** An arena: many small objects, freed together. */
typedef struct tb_arena {
    tb_ctx *ctx;
    struct tb_arena_chunk *head;
} tb_arena;

void tb_arena_init(tb_arena *a, tb_ctx *ctx);
void tb_arena_clear(tb_arena *a);
/** tb_arena_alloc - zeroed, 16-byte aligned; NULL as tb_alloc. */
void *tb_arena_alloc(tb_arena *a, size_t bytes);
/** tb_arena_aligned - the same, 64-byte aligned. */
void *tb_arena_aligned(tb_arena *a, size_t bytes);
char *tb_arena_strndup(tb_arena *a, const char *s, size_t n);
char *tb_arena_strdup(tb_arena *a, const char *s);
char *tb_arena_printf(tb_arena *a, const char *fmt, ...) TB_PRINTF(2, 3);

#define TB_NEW(arena, type) ((type *)tb_arena_alloc((arena), sizeof(type)))

/* --- growing strings ---------------------------------------------------- */

/** A byte string that grows. A failed growth sticks: `failed` stays true and
 * later appends do nothing, so callers check once at the end. */
typedef struct tb_buf {
    tb_ctx *ctx;
    char *data; /* NUL-terminated once anything was appended */
    size_t len, cap;
    bool failed;
} tb_buf;

void tb_buf_init(tb_buf *b, tb_ctx *ctx);
void tb_buf_clear(tb_buf *b);
void tb_buf_put(tb_buf *b, const char *s, size_t n);
void tb_buf_puts(tb_buf *b, const char *s);
void tb_buf_putc(tb_buf *b, char c);
/** tb_buf_printf - the formatter below. */
void tb_buf_printf(tb_buf *b, const char *fmt, ...) TB_PRINTF(2, 3);
void tb_buf_vprintf(tb_buf *b, const char *fmt, va_list ap);
/** tb_buf_str - the text, "" if empty. */
const char *tb_buf_str(const tb_buf *b);
/** tb_buf_status - TB_OK, or TB_ERR_MEMORY if an append failed. */
tb_status tb_buf_status(const tb_buf *b);

/** tb_vformat - into dst[cap], always terminated; returns the full length.
 * Understands %s %.*s %c %d %i %u %x %X %ld %lu %lld %llu %zu %% with width,
 * '*', '-', '0', '+', ' ' and precision; %g prints the shortest text that reads
 * back to the same double (%.Ng: N significant digits, as C), %.Nf and %.Ne as
 * C. The decimal point is always '.'. */
size_t tb_vformat(char *dst, size_t cap, const char *fmt, va_list ap);
size_t tb_format(char *dst, size_t cap, const char *fmt, ...) TB_PRINTF(3, 4);

/** tb_streq - equal strings; NULL equals only NULL. */
bool tb_streq(const char *a, const char *b);

/* --- context internals -------------------------------------------------- */

bool tb_ctx_is_exact(const tb_ctx *ctx);
int tb_ctx_thread_limit(const tb_ctx *ctx);      /* 0: no limit asked for */
const char *tb_ctx_isa_limit(const tb_ctx *ctx); /* TB_ISA, or NULL */
/** Every instruction set that TB_ISA may name here, the narrowest first,
 * NULL-terminated. */
extern const char *const tb_isas[];
bool tb_ctx_interrupted(const tb_ctx *ctx);

/** tb_ctx_slot - one pointer a room hangs on the context (GEMM back
 * end, numbers kept); `drop` is called at tb_ctx_destroy. */
typedef enum tb_slot {
    TB_SLOT_GEMM,
    TB_SLOT_BF16,
    TB_SLOT_DRAWS,
    TB_SLOT_COUNT
} tb_slot;
void *tb_ctx_slot(const tb_ctx *ctx, tb_slot slot);
void tb_ctx_slot_set(tb_ctx *ctx, tb_slot slot, void *p,
                     void (*drop)(tb_ctx *, void *));

#endif
