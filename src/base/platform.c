/* SPDX-License-Identifier: MIT */
/* Memory and environment from the hosted C library. On wasm there is none:
 * web/ supplies the functions of platform.h and this file is empty. */
#include "base/platform.h"

#if !defined(__wasm__)

#    include <stdlib.h>

void *tb_platform_alloc(size_t bytes)
{
    return aligned_alloc(64, bytes);
}

void tb_platform_free(void *p)
{
    free(p);
}

const char *tb_platform_getenv(const char *name)
{
    return getenv(name);
}

#endif
