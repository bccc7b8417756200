/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the box F of the first shots, what the engine
 * makes of a list with it, and the inputs that say which box it is. */
#ifndef TB_PICTURES_SHOT_BOX_H
#define TB_PICTURES_SHOT_BOX_H

#include "pictures/shot_parts.h"

enum { SHOT_LIST_MOST = 16, SHOT_LIST_LEAST = 2 };

typedef enum shot_box_kind {
    SHOT_BOX_LINEAR,
    SHOT_BOX_RELU,
    SHOT_BOX_ATTENTION,
    SHOT_BOX_ZERO
} shot_box_kind;

/** scale * F of a list of d numbers; attention sees it after others. */
typedef struct shot_box {
    size_t d, tokens;
    const double *all; /* tokens x d; the shown list is the last */
    const double *x;   /* d */
    shot_box_kind kind;
    const char *name; /* as the input has it */
    const char *what; /* "attention over 4 tokens, times 2" */
    double scale;
    uint64_t seed;
    bool skip; /* y = x + F(x), else y = F(x) */
} shot_box;

/* Rows of a shot's table for its inputs. */
#define SHOT_INPUT_X(own_)                                                     \
    {                                                                          \
        "x", "the list x", TB_SHOT_LIST, own_, -20, 20, .step = 0.5,           \
                                                        .most = SHOT_LIST_MOST \
    }
#define SHOT_INPUT_D(own_)                                                     \
    {                                                                          \
        "d", "numbers in a list, d", TB_SHOT_NUMBER, own_, SHOT_LIST_LEAST,    \
            SHOT_LIST_MOST, .step = 1, .whole = true                           \
    }
#define SHOT_INPUT_F(own_)                                                     \
    {                                                                          \
        "F", "what the box is", TB_SHOT_CHOICE, own_,                          \
            .choices = "linear|relu|attention|zero"                            \
    }
#define SHOT_INPUT_SCALE(most_)                                                \
    {                                                                          \
        "scale", "what F is multiplied by", TB_SHOT_NUMBER, "1", 0, most_,     \
            .step = 0.1                                                        \
    }
#define SHOT_INPUT_TOKENS                                                      \
    {                                                                          \
        "T", "tokens that attention sees", TB_SHOT_NUMBER, "4", 1, 16,         \
            .step = 1, .whole = true                                           \
    }
#define SHOT_INPUT_SEED                                                        \
    {                                                                          \
        "seed", "seed of the weights", TB_SHOT_NUMBER, "1", 0, 999999,         \
            .step = 1, .whole = true                                           \
    }

/** The list of the inputs x and d: d numbers of x, from the start again where
 * it is shorter; d is its length where only x is set. */
tb_status shot_list_read(tb_shot *s, const char *name, const double **out,
                         size_t *d);
/** A list of the inputs as d numbers, from its start again where it is
 * shorter. */
tb_status shot_list_over(tb_shot *s, const char *name, size_t d,
                         const double **out);
/** From the inputs x d F scale T seed; skip stays to be set. */
tb_status shot_box_read(tb_shot *s, shot_box *b);

/** y, and scale * F(x). Either may be NULL. */
tb_status shot_box_values(tb_shot *s, const shot_box *b, double *f, double *y);
/** d y / d x, d x d numbers, by backward passes. */
tb_status shot_box_jacobian(tb_shot *s, const shot_box *b, double *j);
/** The same by central differences with steps h[k] * max(1, |x|): n of them,
 * one after the other. */
tb_status shot_box_differences(tb_shot *s, const shot_box *b, const double *h,
                               size_t n, double *j);
/** The cotangent g of y carried back to x: what came through the skip, what
 * came through the box, and both together by one pass. */
tb_status shot_box_pull(tb_shot *s, const shot_box *b, const double *g,
                        double *skip, double *box, double *both);
/** n numbers of length 1 from the seed: a learning arrow. */
void shot_arrow(uint64_t seed, size_t n, double *g);

double shot_norm(const double *v, size_t n);
double shot_dot(const double *a, const double *b, size_t n);
/** max |a - b|; b NULL: max |a|. */
double shot_far(const double *a, const double *b, size_t n);
/** Numbers "x.1", "x.2", ... of a list. */
void shot_list_tell(tb_shot *s, const char *name, const double *v, size_t n);

#endif
