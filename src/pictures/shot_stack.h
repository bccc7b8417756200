/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: the two stacks of S5, S6, S7 and SUM, run by the
 * engine. A floor is one sublayer; attention and feed-forward in turn. */
#ifndef TB_PICTURES_SHOT_STACK_H
#define TB_PICTURES_SHOT_STACK_H

#include "pictures/shot_parts.h"

/** What stands in the branches. */
typedef enum stack_branch { STACK_TRANSFORMER, STACK_LINEAR } stack_branch;

enum { STACK_TOKENS = 128 };

typedef struct stack_spec {
    bool post;  /* the norm stands on the lane, else on the branch */
    bool final; /* a norm after the last floor */
    size_t n;   /* floors */
    size_t width, tokens;
    double factor; /* of every branch */
    double eps;
    size_t branch, init; /* STACK_BRANCHES, STACK_INITS, by place */
    uint64_t seed;
    size_t cut;      /* the floor without a skip; 0: none */
    size_t opened;   /* floor whose booth is kept, from 1; 0: the top */
    bool f32;        /* half the time, where seven digits do; a lane that they
                        cannot hold is measured again */
    bool multiplied; /* stack_matrix is wanted */
} stack_spec;

/** E6 of Post-LN by hand: the norms' Jacobians of the first token, multiplied
 * from the input to the top, and the scalars beside that matrix. */
typedef struct stack_matrix {
    double *m; /* [width * width], and room for two rows; NULL: not asked for */
    double first;    /* product of 1/s of that token, as the norms say */
    double mean;     /* of the means over all tokens, s as the engine has it */
    double rms, max; /* gains of the matrix */
} stack_matrix;

/** Floor k, from x_(k-1) to x_k. Gains are relative to the top. */
typedef struct stack_floor {
    const char *name;      /* of its sublayer */
    double lane, total;    /* below it, at x_(k-1) */
    double toll;           /* RMS gain of its norm, by E3 from the values */
    double tau, median;    /* mean and median over tokens of 1/s */
    double s, least, most; /* spread that it divides by: mean over tokens */
    double flow_toll;      /* of the norms on its lane, as flow has it */
    int lane_norms;        /* by the graph */
    double std_x;          /* of x_k */
    double local_lane, local_branch, local_cos, branch_ratio;
} stack_floor;

typedef struct stack_run {
    stack_spec spec;
    const char *equation; /* x = norm(x + F(x)) */
    const char *text;     /* the whole block, as it was run */
    const char *where;    /* "attention and feed-forward in turn, ..." */
    stack_floor *floor;   /* [n], the lowest first */
    double std_0;         /* of x_0 */
    double token[2]; /* total at the input of the token that gets least, most */
    double product;  /* of the tolls on the lane, as flow has it */
    double exit_toll, exit_s; /* of the final norm */
    int exit_norms;
    stack_matrix booths;
    const double *z; /* what the opened booth got, its first token: [width] */
} stack_run;

/** Inputs that a row with stacks has; STACK_INPUTS(N) are its first. */
#define STACK_BRANCHES "transformer|linear"
#define STACK_INITS    "xavier|he|normal(0.02)|xavier/sqrt(2L)"
#define STACK_INPUTS(floors)                                                   \
    {"N",       "floors (sublayers)", TB_SHOT_NUMBER, floors, 1, 96,           \
     .step = 1, .whole = true},                                                \
        {"d", "width d", TB_SHOT_NUMBER, "64",                                 \
         4,   256,       .step = 4,      .whole = true},                       \
        {"T", "tokens T", TB_SHOT_NUMBER, "32",                                \
         1,   128,        .step = 1,      .whole = true},                      \
        {"v",                                                                  \
         "branch times v (std of a linear one)",                               \
         TB_SHOT_NUMBER,                                                       \
         "1",                                                                  \
         0,                                                                    \
         100,                                                                  \
         .step = 0.1},                                                         \
        {"branch", "branch", TB_SHOT_CHOICE,           "transformer",          \
         0,        0,        .choices = STACK_BRANCHES},                       \
        {"init", "initial weights",     TB_SHOT_CHOICE, "xavier", 0,           \
         0,      .choices = STACK_INITS},                                      \
        {"eps", "\xCE\xB5", TB_SHOT_NUMBER, "1e-5",                            \
         0,     0.1,        .step = 1,      .log = true},                      \
    {                                                                          \
        "seed", "seed", TB_SHOT_NUMBER, "1", 0, 1e6, .step = 1, .whole = true  \
    }

/** stack_asked - what those inputs say. */
stack_spec stack_asked(const tb_shot *s, bool post);

/** stack_measure - everything lives in the shot's arena. */
tb_status stack_measure(tb_shot *s, const stack_spec *spec, stack_run *out);

/** Gains at x_k, k = 0..n: 1 at the top. */
double stack_lane(const stack_run *r, size_t k);
double stack_total(const stack_run *r, size_t k);
/** The spread of x_k. */
double stack_std(const stack_run *r, size_t k);

/** E14: 10^slope of the least-squares line through log10 y over 0..n-1, with
 * R^2; false where a value is not positive or there are fewer than 3. */
bool stack_fit(const double *y, size_t n, double *factor, double *r2);

/** The sublayer of the branch in words, and J_LN formulas of a placement. */
const char *stack_formula(bool post);

#endif
