/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: shots. One row per shot says what it shows, which
 * inputs it takes, and what computes it. `build` leaves panels, numbers,
 * sentences and checks by the calls below; shot.c, shot_set.c and shot_faces.c
 * do the rest. Calls that leave something cannot fail on their own: the first
 * failure sticks and ends the shot. */
#ifndef TB_PICTURES_SHOT_PARTS_H
#define TB_PICTURES_SHOT_PARTS_H

#include "base/base.h"
#include "base/number.h"
#include "pictures/plot.h"
#include "tollbooth/eval.h"
#include "tollbooth/shot.h"

enum { SHOT_INPUTS = 16 };

typedef struct shot_row {
    const char *name, *about;
    tb_shot_input input[SHOT_INPUTS]; /* ends at the first without a name */
    tb_status (*build)(tb_shot *s);
} shot_row;

/** The value of an input: text as written; numbers where it has any. */
typedef struct shot_value {
    const char *text;
    const double *data;
    size_t rows, n; /* n numbers in each row; a list has one row */
    size_t choice;
    bool set; /* by the settings, not the row */
} shot_value;

/** A kind of panel: how its data are drawn, printed and written down. */
typedef struct shot_face {
    const char *kind; /* "chart", in JSON */
    tb_status (*scene)(tb_ctx *ctx, const void *data, tb_scene **out);
    tb_status (*term)(tb_ctx *ctx, const void *data, const tb_terminal *term,
                      tb_out *out);
    tb_status (*html)(tb_ctx *ctx, const void *data, tb_out *out); /* or NULL */
    void (*json)(const void *data, tb_json *j); /* members of its object */
} shot_face;

/** The HTML of a face whose table is the grid that `make` fills. */
#define SHOT_GRID_HTML(name, make)                                             \
    static tb_status name(tb_ctx *ctx, const void *data, tb_out *out)          \
    {                                                                          \
        return tb_grid_html_of(ctx, make, data, out);                          \
    }

typedef struct shot_panel {
    const shot_face *face;
    const void *data;
    bool beside; /* right of the one before, else below */
} shot_panel;

typedef struct shot_number {
    const char *id, *label;
    double value;
} shot_number;

typedef struct shot_check {
    bool ok;
    const char *text;
} shot_check;

/** One list in the shot's arena that grows. */
typedef struct shot_list {
    void *at;
    size_t n, cap;
} shot_list;

struct tb_shot {
    tb_ctx *ctx;
    tb_arena arena; /* everything the faces read */
    const shot_row *row;
    shot_value value[SHOT_INPUTS];
    const char *title, *desc;
    shot_list panels, numbers, says, checks; /* says: const char * */
    tb_status status;
    tb_status refused; /* what the picture shows the engine refuse */
};

/* --- inputs --------------------------------------------------------------- */

/** The value of the input `name`, which the row has; checked against it. */
const shot_value *shot_get(const tb_shot *s, const char *name);
double shot_num(const tb_shot *s, const char *name);
size_t shot_whole(const tb_shot *s, const char *name);
bool shot_on(const tb_shot *s, const char *name);
size_t shot_choice(const tb_shot *s, const char *name); /* index in choices */

/* --- what a shot leaves --------------------------------------------------- */

void *shot_alloc(tb_shot *s, size_t n, size_t size); /* NULL: no memory */
/** The first n numbers of what the engine makes of an equation. */
tb_status shot_eval(tb_shot *s, const tb_eval *e, size_t n, double *out);
char *shot_text(tb_shot *s, const char *fmt, ...) TB_PRINTF(2, 3);
/** Title and message-with-numbers of the whole picture. */
void shot_title(tb_shot *s, const char *title, const char *desc);
/** A panel below the last, or right of it; `data` is the face's own struct, in
 * the shot's arena. */
void shot_below(tb_shot *s, const shot_face *face, const void *data);
void shot_beside(tb_shot *s, const shot_face *face, const void *data);
/** A number by id ("E1.mu"): what sentences and pages quote. */
void shot_tell(tb_shot *s, const char *id, const char *label, double value);
/** A sentence; {E1.mu} stands for that number. */
void shot_say(tb_shot *s, const char *sentence);
/** A claim of the picture, held or not. */
void shot_check_that(tb_shot *s, bool ok, const char *fmt, ...) TB_PRINTF(3, 4);

/** Items of each of n roles in the drawing that `face` makes of `data`: claims
 * about the picture are held against it. */
void shot_drawn(tb_shot *s, const shot_face *face, const void *data,
                const char *const *roles, size_t n, size_t *counts);

/** In the faces: sentence i with its numbers as text. */
const char *shot_sentence(const tb_shot *s, tb_arena *a, size_t i);

/** shot_set.c: reads `settings` into s->value. */
tb_status shot_read(tb_shot *s, const char *settings);

#define SHOT_AT(list, type, i) (((type *)(list).at)[i])

/** Every shot, in the order of the walkthrough. */
#define SHOTS(X)                                                               \
    X(f1)                                                                      \
    X(f2)                                                                      \
    X(f3)                                                                      \
    X(f4)                                                                      \
    X(f5)                                                                      \
    X(s1)                                                                      \
    X(s2)                                                                      \
    X(s3)                                                                      \
    X(s4)                                                                      \
    X(s5)                                                                      \
    X(s6)                                                                      \
    X(s7)                                                                      \
    X(sum)                                                                     \
    X(retell)                                                                  \
    X(recall)                                                                  \
    X(f6)                                                                      \
    X(f_map)                                                                   \
    X(checklist)                                                               \
    X(n1)                                                                      \
    X(n2)                                                                      \
    X(n3)                                                                      \
    X(n4)                                                                      \
    X(n5)                                                                      \
    X(n6)                                                                      \
    X(n7)                                                                      \
    X(batchnorm)                                                               \
    X(workbench)
#define SHOT_DECLARE(name) extern const shot_row shot_##name;
SHOTS(SHOT_DECLARE)

#endif
