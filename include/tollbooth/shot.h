/* SPDX-License-Identifier: MIT */
/* Figures of the walkthrough by name. A shot has inputs, computes with the
 * engine what they lead to, and leaves panels (charts, diagrams, tables),
 * numbers, sentences that quote them, and checks of what it claims. Its faces
 * are SVG, terminal, JSON and HTML tables: the command line, the page and the
 * tests read the same ones. */
#ifndef TOLLBOOTH_SHOT_H
#define TOLLBOOTH_SHOT_H

#include "tollbooth/json.h"
#include "tollbooth/pictures.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum tb_shot_kind {
    TB_SHOT_NUMBER,
    TB_SHOT_SWITCH, /* 0 or 1 */
    TB_SHOT_CHOICE, /* one word of several */
    TB_SHOT_LIST,   /* [1,2,3] */
    TB_SHOT_MATRIX, /* [[1,2],[3,4]] */
    TB_SHOT_TEXT    /* an equation */
} tb_shot_kind;

/** What settings may name, and the control that a page makes of it. */
typedef struct tb_shot_input {
    const char *name;  /* "N" */
    const char *label; /* "blocks" */
    tb_shot_kind kind;
    const char *own;     /* its value unless set, in the same writing */
    double low, high;    /* of every number; least and most */
    double step;         /* of a slider; 0: none is offered */
    bool log;            /* the slider is logarithmic */
    bool whole;          /* whole numbers only */
    const char *choices; /* "linear|relu|zero" */
    size_t most;         /* elements of a list, rows of a matrix */
} tb_shot_input;

/** The table of shots: how many, their names, what they show, and their
 * inputs. */
size_t tb_shot_count(void);
const char *tb_shot_name(size_t i);
const char *tb_shot_about(size_t i);
const tb_shot_input *tb_shot_inputs(size_t i, size_t *n);

typedef struct tb_shot tb_shot;

/**
 * tb_shot_create - compute what the shot `name` draws. `settings` replaces
 * inputs by name: "N=24,seed=1" (',', ';' or '&' between them, blanks
 * anywhere; an equation reaches to the next '&'). NULL: none.
 *
 * Returns TB_ERR_ARG     no shot of that name (with the likely meant one)
 *         TB_ERR_INPUT   a name it does not have, a value it cannot use
 *         TB_ERR_SHAPE   a list of another depth or length
 *         TB_ERR_MEMORY, and what the engine finds wrong
 */
tb_status tb_shot_create(tb_ctx *ctx, const char *name, const char *settings,
                         tb_shot **out);
/** tb_shot_destroy - NULL is fine. */
void tb_shot_destroy(tb_shot *s);

/** tb_shot_ok - did every check hold? */
bool tb_shot_ok(const tb_shot *s);
/** tb_shot_refused - TB_OK, or how the engine refused what the settings ask
 * for where the picture shows just that (eps = 0 and a flat list). */
tb_status tb_shot_refused(const tb_shot *s);

/** tb_shot_scene - all panels as one picture, which the caller destroys. */
tb_status tb_shot_scene(const tb_shot *s, tb_scene **out);
/** tb_shot_svg - the picture; opt->prefix NULL: the shot's name. */
tb_status tb_shot_svg(const tb_shot *s, const tb_svg *opt, tb_out *out);
/** tb_shot_term - all panels as text, with the sentences and the checks. */
tb_status tb_shot_term(const tb_shot *s, const tb_terminal *term, tb_out *out);
/** tb_shot_html - the numbers of all panels: "show as table". */
tb_status tb_shot_html(const tb_shot *s, tb_out *out);
/** tb_shot_json - the object of `picture --json` (docs/json.md). */
void tb_shot_json(const tb_shot *s, tb_json *j, const char *key);
/** tb_shots_json - the object of `picture --list --json`. */
void tb_shots_json(tb_json *j, const char *key);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
