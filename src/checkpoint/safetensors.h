/* SPDX-License-Identifier: MIT */
/* An open safetensors file: 8 bytes of header length (little-endian), that
 * many bytes of JSON, then the data area. */
#ifndef TB_CHECKPOINT_SAFETENSORS_H
#define TB_CHECKPOINT_SAFETENSORS_H

#include "base/base.h"
#include "tollbooth/checkpoint.h"

typedef struct tb_meta_pair {
    const char *key, *value;
} tb_meta_pair;

struct tb_safetensors {
    tb_ctx *ctx;
    tb_arena arena;
    const char *path;
    int fd; /* -1: from memory */
    const unsigned char *memory;
    uint64_t bytes;          /* of the file */
    uint64_t data_at;        /* where the data area starts */
    tb_tensor_info *tensors; /* in data order */
    size_t count;
    const tb_tensor_info **by_name;
    const char **names; /* of by_name */
    tb_meta_pair *meta;
    size_t meta_count;
};

/** tb_safetensors_read_at - n bytes of the file from `at`. */
tb_status tb_safetensors_read_at(tb_ctx *ctx, const tb_safetensors *f,
                                 uint64_t at, void *out, size_t n);

/** tb_safetensors_load - read and check the header into f's tables. */
tb_status tb_safetensors_load(tb_safetensors *f);

#endif
