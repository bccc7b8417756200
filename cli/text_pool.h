/* SPDX-License-Identifier: MIT */
/* Many small things that are freed together. A failure sticks. */
#ifndef TB_CLI_TEXT_POOL_H
#define TB_CLI_TEXT_POOL_H

#include "tollbooth/base.h"

typedef struct pool {
    struct pool_piece *head;
    bool failed;
} pool;

/** pool_get - n zeroed things of `size` bytes; NULL: no memory. */
void *pool_get(pool *p, size_t n, size_t size);
/** pool_text - as printf; "" without memory. */
const char *pool_text(pool *p, const char *fmt, ...) TB_PRINTF(2, 3);
const char *pool_copy(pool *p, const char *text); /* NULL gives NULL */
/** pool_number - as tb_show_number. */
const char *pool_number(pool *p, double v);
/** pool_own - `thing` ends with the pool, by `end`; at once without memory. */
void pool_own(pool *p, void *thing, void (*end)(void *));
void pool_free(pool *p);
/** pool_status - TB_OK, or TB_ERR_MEMORY once something failed. */
tb_status pool_status(const pool *p);

#endif
