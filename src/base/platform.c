/* SPDX-License-Identifier: MIT */
/* Memory and environment from the hosted C library. On wasm there is none:
 * web/ supplies the functions of platform.h and this file is empty. */
#include "base/platform.h"

#if !defined(__wasm__)

#    include <stdlib.h>

#    if defined(__linux__)
#        include <sys/mman.h>
#    endif

#    if defined(MADV_HUGEPAGE)

enum { HUGE_PAGE = 1 << 21, LARGE = 1 << 22 };

/* A step walks through hundreds of megabytes: in pages of 4 KiB each product
 * would wait for the table of pages. Advice only: a refusal is no failure. */
static void *large_block(size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, HUGE_PAGE, bytes) != 0)
        return NULL;
    (void)madvise(p, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return p;
}

void *tb_platform_alloc(size_t bytes)
{
    return bytes < LARGE ? aligned_alloc(64, bytes) : large_block(bytes);
}

#    else

void *tb_platform_alloc(size_t bytes)
{
    return aligned_alloc(64, bytes);
}

#    endif

void tb_platform_free(void *p)
{
    free(p);
}

const char *tb_platform_getenv(const char *name)
{
    return getenv(name);
}

#endif
