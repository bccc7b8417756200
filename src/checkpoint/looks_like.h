/* SPDX-License-Identifier: MIT */
/* What a file that should be something else seems to be. */
#ifndef TB_CHECKPOINT_LOOKS_LIKE_H
#define TB_CHECKPOINT_LOOKS_LIKE_H

#include "base/base.h"

/** tb_looks_like - from the first n (say 256) bytes: a phrase such as "a Git
 * LFS pointer (the real file has 548105171 bytes; fetch it with `git lfs
 * pull`)", in dst[cap]; or NULL if nothing is recognised. */
const char *tb_looks_like(const void *head, size_t n, char *dst, size_t cap);

#endif
