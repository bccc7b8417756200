/* SPDX-License-Identifier: MIT */
/* A block as the source text of another system. */
#ifndef TOLLBOOTH_EXPORT_H
#define TOLLBOOTH_EXPORT_H

#include "tollbooth/block.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * tb_export_pytorch - one Python file with an nn.Module that computes the same
 * function: a class per sublayer, Block, Model, and load_tollbooth(path),
 * which reads the checkpoints of `train`. It imports torch and the standard
 * library only; the names of its state dict are ours.
 *
 * in   block, settings   unset ones: the block's model: section, else the
 *                        defaults of tb_settings
 * out  text              UTF-8, freed with tb_text_free; NULL on failure
 * Logits and gradients agree with ours to 1e-10 relative in float64, dropout
 * off. Initial weights have our distributions, not our bits.
 * Returns TB_ERR_PARSE and TB_ERR_ARG as every model of this block does;
 * TB_ERR_INPUT for an operation that has no spelling in PyTorch yet.
 */
tb_status tb_export_pytorch(tb_ctx *ctx, const tb_block *block,
                            const tb_settings *settings, char **text);

#ifdef __cplusplus
}
#endif
#endif
