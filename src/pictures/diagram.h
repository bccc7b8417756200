/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: what the scene and the terminal form of a block
 * diagram share. */
#ifndef TB_PICTURES_DIAGRAM_H
#define TB_PICTURES_DIAGRAM_H

#include "pictures/plot.h"

/** A branch with its place: it forks before item `from`, joins at item `to`
 * and runs on `level` (1 is nearest the lane; nested ones lie inside). */
typedef struct tb_route {
    const tb_diagram_branch *branch;
    size_t from, to;
    int level;
} tb_route;

tb_status tb_diagram_check(tb_ctx *ctx, const tb_diagram *d);
/** All branches, those of lower levels first; NULL without memory. */
tb_route *tb_diagram_routes(tb_arena *a, const tb_diagram *d, size_t *count,
                            int *levels);
/** "post-ln: lane passes plus (attn), LN; ..." */
const char *tb_diagram_describe(tb_arena *a, const tb_diagram *d);
/** Label of a part, never NULL: "LN", "x 0.5". */
const char *tb_part_label(tb_arena *a, const tb_diagram_part *p);
/** What the lane begins with: the embedding, or the block's input. */
const char *tb_diagram_foot(const tb_diagram *d);
/** How often the block is repeated, as a line: "from x up to x': 6 blocks".
 * `before`: a stem stands before it; `end`: where it ends, NULL at the end. */
void tb_diagram_repeat_term(const tb_diagram *d, bool before, const char *end,
                            const tb_terminal *term, tb_buf *b);
/** Items up to the end of a block. */
size_t tb_diagram_in_block(const tb_diagram *d);

/* --- parts as drawn ----------------------------------------------------- */

enum {
    TB_PART_HALF = 17,     /* half the height of a box, px */
    TB_PART_TEXT_MAX = 150 /* px of a label */
};

void tb_part_text(tb_scene *s, double x, double y, const char *text,
                  const tb_style *st);
/** A striped pole across the road at (x, y). */
void tb_part_barrier(tb_scene *s, double x, double y);
/** `toll` is NULL on a branch, else the number to print or "". */
void tb_part_booth(tb_scene *s, const tb_diagram_part *p, tb_box at,
                   const char *id, const char *toll);
void tb_part_box(tb_scene *s, const tb_diagram_part *p, tb_box at,
                 bool on_lane);
/** The same with its whole label: "x 0.5". */
void tb_part_shape(tb_scene *s, tb_diagram_kind kind, const char *text,
                   tb_box at, bool on_lane);
void tb_part_plus(tb_scene *s, double x, double y, double r);
/** The branch that leaves the lane at x = fork, runs at y = high and comes down
 * on what stands at x = plus with radius r. */
void tb_part_branch(tb_scene *s, double fork, double plus, double lane,
                    double high, double r);
/** px of a backward arrow that carries g, relative to the top of the stack:
 * 1 gives 10, 0.1 gives 7, 0.001 and less 1. */
double tb_back_width(double g);

/** The frame of what is repeated, which says how often where `head` is set. */
void tb_diagram_repeat(tb_scene *s, const tb_diagram *d, tb_box at, bool head);
enum { TB_DIAGRAM_WIDEST = 760 };
/** Of the picture: room for w px, the title, and a formula that may be broken.
 */
double tb_diagram_width(const tb_diagram *d, double w);
/** The formula under a diagram, broken at w px; the next baseline. */
double tb_diagram_formula(tb_scene *s, const tb_diagram *d, double y, double w);

#endif
