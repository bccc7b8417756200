/* SPDX-License-Identifier: MIT */
/* The only three things the base room asks of the system. A wasm build links
 * its own (web/); everything else in src/base is freestanding. */
#ifndef TB_BASE_PLATFORM_H
#define TB_BASE_PLATFORM_H

#include <stddef.h>

/** tb_platform_alloc - `bytes` (a multiple of 64, not 0) of uninitialised
 * memory, 64-byte aligned, large blocks in huge pages where the system has
 * them; NULL when there is none. */
void *tb_platform_alloc(size_t bytes);
void tb_platform_free(void *p);

/** tb_platform_getenv - the variable's text or NULL. */
const char *tb_platform_getenv(const char *name);

#endif
