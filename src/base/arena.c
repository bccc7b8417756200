/* SPDX-License-Identifier: MIT */
/* Arena: chunks in a list; objects are cut off the first chunk. Large objects
 * get a chunk of their own behind it, so that its rest stays usable. */
#include "base/base.h"

enum { GRAIN = 16, CHUNK = 16384 };

typedef struct tb_arena_chunk {
    struct tb_arena_chunk *next;
    size_t used, cap; /* bytes after the header */
} chunk;

/* Keeps the payload on a 16-byte boundary of the 64-byte aligned block. */
enum { HEAD = (sizeof(chunk) + GRAIN - 1) / GRAIN * GRAIN };

void tb_arena_init(tb_arena *a, tb_ctx *ctx)
{
    a->ctx = ctx;
    a->head = NULL;
}

void tb_arena_clear(tb_arena *a)
{
    while (a->head) {
        chunk *next = a->head->next;
        tb_free(a->ctx, a->head);
        a->head = next;
    }
}

static chunk *chunk_create(tb_arena *a, size_t cap)
{
    size_t bytes;
    chunk *c = tb_add(cap, HEAD, &bytes) ? tb_alloc(a->ctx, bytes, 1)
                                         : tb_alloc(a->ctx, SIZE_MAX, 2);
    if (c)
        c->cap = cap;
    return c;
}

static void *cut(chunk *c, size_t bytes)
{
    void *p = (char *)c + HEAD + c->used;
    c->used += bytes;
    return p;
}

/* A chunk for `bytes`: at the front if it is an ordinary one, else second. */
static chunk *chunk_add(tb_arena *a, size_t bytes)
{
    bool large = bytes > CHUNK / 4;
    chunk *c = chunk_create(a, large ? bytes : (size_t)CHUNK);
    if (!c)
        return NULL;
    if (large && a->head) {
        c->next = a->head->next;
        a->head->next = c;
    } else {
        c->next = a->head;
        a->head = c;
    }
    return c;
}

void *tb_arena_alloc(tb_arena *a, size_t bytes)
{
    size_t rounded;
    if (!tb_add(bytes, GRAIN - 1, &rounded))
        return tb_alloc(a->ctx, SIZE_MAX, 2); /* records the failure */
    rounded = rounded / GRAIN * GRAIN;
    chunk *c = a->head;
    if (!c || c->cap - c->used < rounded)
        c = chunk_add(a, rounded);
    return c ? cut(c, rounded) : NULL;
}

void *tb_arena_aligned(tb_arena *a, size_t bytes)
{
    char *p = tb_arena_alloc(a, bytes < SIZE_MAX - 64 ? bytes + 64 : SIZE_MAX);
    return p ? p + (64 - (uintptr_t)p % 64) % 64 : NULL;
}

char *tb_arena_strndup(tb_arena *a, const char *s, size_t n)
{
    size_t bytes;
    if (!tb_add(n, 1, &bytes))
        return tb_alloc(a->ctx, SIZE_MAX, 2);
    char *copy = tb_arena_alloc(a, bytes);
    if (copy && n)
        memcpy(copy, s, n);
    return copy; /* the arena's zero ends it */
}

char *tb_arena_strdup(tb_arena *a, const char *s)
{
    return tb_arena_strndup(a, s, strlen(s));
}

char *tb_arena_printf(tb_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t n = tb_vformat(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = tb_arena_alloc(a, n + 1);
    if (!s)
        return NULL;
    va_start(ap, fmt);
    tb_vformat(s, n + 1, fmt, ap);
    va_end(ap);
    return s;
}
