/* SPDX-License-Identifier: MIT */
/* A block as the source text of another system, or as its setting there. */
#ifndef TOLLBOOTH_EXPORT_H
#define TOLLBOOTH_EXPORT_H

#include "tollbooth/block.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

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

/** tb_peer_name - the i-th system that places its norms by settings ("marian",
 * "tensor2tensor", ...); NULL past the last. */
const char *tb_peer_name(size_t i);

/** What a system has for a block. Strings live as long as the answer. */
typedef struct tb_peer_answer {
    bool exact;          /* the setting computes this placement */
    const char *setting; /* as that system spells it; the nearest one if not
                            exact */
    const char *text;    /* what the setting means, as the text of a block */
    size_t nhere, nthere, nremarks;
    const char *const *here;    /* what only this block does */
    const char *const *there;   /* what only the setting does */
    const char *const *remarks; /* what is no placement and may differ: eps,
                                   activation, biases, initial weights */
} tb_peer_answer;

/**
 * tb_peer_find - the setting of a system that has the same graph of norms,
 * sums, factors and sublayers in the stem, every block and the final section;
 * where there is none, the nearest setting and how it differs. Nothing is read
 * from names: every setting means a text, and graphs are compared.
 *
 * in   settings   sizes count, as constants may depend on them
 * out  answer     freed with tb_peer_free
 * Returns TB_ERR_ARG for an unknown system, else as every graph of the block.
 */
tb_status tb_peer_find(tb_ctx *ctx, const tb_block *block,
                       const tb_settings *settings, const char *peer,
                       tb_peer_answer **answer);
/** tb_peer_free - NULL is fine. */
void tb_peer_free(tb_ctx *ctx, tb_peer_answer *answer);

/**
 * tb_peer_read - the text of the block that a setting means; freed with
 * tb_text_free. `setting` is what tb_peer_find gives, or shorter:
 * "pre=n post=da top=n". Returns TB_ERR_INPUT for what the system itself would
 * refuse or this language cannot say.
 */
tb_status tb_peer_read(tb_ctx *ctx, const char *peer, const char *setting,
                       char **text);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
