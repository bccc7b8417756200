/* SPDX-License-Identifier: MIT */
/* Sizes of a small model of any built-in block. */
#ifndef TB_TESTS_SIZES_HELP_H
#define TB_TESTS_SIZES_HELP_H

#include "model/model.h"
#include "tollbooth/block.h"

/* Heads of 4, as many as the block's own model: section wants. */
static inline tb_settings help_sizes(const tb_block *b, size_t depth,
                                     size_t context, size_t vocab)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = depth;
    s.context = context;
    s.vocab = vocab;
    s.heads = 2;
    for (int i = 0; i < b->nsettings; i++)
        if (tb_streq(b->settings[i].key, "heads"))
            s.heads = 0;
    s.width = s.heads ? 8 : 64;
    return s;
}

#endif
