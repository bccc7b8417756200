/* SPDX-License-Identifier: MIT */
/* A list of allocations. */
#include "text_pool.h"
#include "tollbooth/pictures.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pool_piece {
    struct pool_piece *next;
    void *thing; /* of pool_own */
    void (*end)(void *);
    max_align_t data[];
} pool_piece;

void *pool_get(pool *p, size_t n, size_t size)
{
    pool_piece *piece = NULL;
    if (size == 0 || n <= (SIZE_MAX - sizeof *piece) / size)
        piece = calloc(1, sizeof *piece + n * size + 1);
    if (!piece) {
        p->failed = true;
        return NULL;
    }
    piece->next = p->head;
    p->head = piece;
    return piece->data;
}

const char *pool_text(pool *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : pool_get(p, (size_t)n + 1, 1);
    if (!text)
        return "";
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

const char *pool_copy(pool *p, const char *text)
{
    return text ? pool_text(p, "%s", text) : NULL;
}

const char *pool_number(pool *p, double v)
{
    char text[TB_SHOW_CHARS];
    return pool_text(p, "%s", tb_show_number(v, text));
}

void pool_own(pool *p, void *thing, void (*end)(void *))
{
    if (!pool_get(p, 0, 1)) {
        end(thing);
        return;
    }
    p->head->thing = thing;
    p->head->end = end;
}

void pool_free(pool *p)
{
    while (p->head) {
        pool_piece *next = p->head->next;
        if (p->head->end)
            p->head->end(p->head->thing);
        free(p->head);
        p->head = next;
    }
}

tb_status pool_status(const pool *p)
{
    return p->failed ? TB_ERR_MEMORY : TB_OK;
}
