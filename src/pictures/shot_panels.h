/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: panels that several shots use. Their data are
 * tb_chart, tb_bars, tb_diagram, tb_table, tb_flow_figure, tb_heat and
 * shot_words_of. */
#ifndef TB_PICTURES_SHOT_PANELS_H
#define TB_PICTURES_SHOT_PANELS_H

#include "pictures/shot_parts.h"

/** One coloured piece of a formula. */
typedef struct shot_word {
    const char *text;
    tb_tone tone; /* TB_TONE_NONE: ink */
    bool bold, ends_line;
    const char *role, *id;
} shot_word;

typedef struct shot_words_of {
    const shot_word *words;
    size_t n;
} shot_words_of;

/** shot_next_word - the one that starts at *at, which goes on behind the blanks
 * that follow it; never NULL: without memory the shot fails. */
const char *shot_next_word(tb_shot *s, const char **at);

extern const shot_face shot_chart, shot_bars, shot_diagram, shot_table,
    shot_flow, shot_words, shot_heat;

#endif
