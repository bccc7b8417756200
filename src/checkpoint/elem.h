/* SPDX-License-Identifier: MIT */
/* What this room's readers and writers share about elements and shapes. */
#ifndef TB_CHECKPOINT_ELEM_H
#define TB_CHECKPOINT_ELEM_H

#include "base/base.h"
#include "tollbooth/checkpoint.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#    define TB_LITTLE_ENDIAN 1
#else
#    define TB_LITTLE_ENDIAN 0
#endif

enum { TB_SHAPE_CHARS = 24 * TB_TENSOR_RANK };

/** tb_shape_text - "[2,3]", "[]" for a scalar; cut off at TB_SHAPE_CHARS. */
const char *tb_shape_text(int rank, const size_t *dims,
                          char out[TB_SHAPE_CHARS]);

/** tb_dims_count - product of dims; false on overflow. */
bool tb_dims_count(int rank, const size_t *dims, size_t *count);

#endif
