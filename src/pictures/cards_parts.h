/* SPDX-License-Identifier: MIT */
/* Inside the pictures room: what a card claims in numbers. */
#ifndef TB_PICTURES_CARDS_PARTS_H
#define TB_PICTURES_CARDS_PARTS_H

#include "base/base.h"
#include "base/number.h"
#include "tollbooth/cards.h"
#include "tollbooth/eval.h"

/** Numbers by name, one vector each. */
typedef struct claim_set {
    const char *name;
    size_t n;
    const double *data;
} claim_set;

enum { CLAIM_SETS = 3 };

typedef struct claim claim;
/** Reads the numbers of a claim off the engine, into out->value and out->n,
 * and writes the command that shows them. */
typedef tb_status (*claim_reader)(tb_ctx *ctx, const claim *c, tb_proof *out);

struct claim {
    claim_reader read; /* NULL: nothing to compute */
    const char *what;
    const char *text; /* the equation; or blocks with a blank between them */
    claim_set set[CLAIM_SETS]; /* ends at the first without a name */
    const char *says;          /* of a refusal: part of its message */
    const char *init;          /* rules of the weights that are not set */
    const char *jacobian;      /* by which input */
    const double *cotangent;   /* of the value; NULL: none */
    size_t ncotangent;
    size_t n;
    double expected[TB_PROOF_VALUES];
    double tolerance;
};

/* The numbers that a reader takes, of the equation's ... */
tb_status claim_value(tb_ctx *ctx, const claim *c, tb_proof *out); /* y */
/** ... largest singular value of the Jacobian */
tb_status claim_gain(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... largest entry of |J - I| */
tb_status claim_identity(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... largest entry of J beside the diagonal */
tb_status claim_beside(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... largest |y - x|, x being the first set */
tb_status claim_same(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... gradient of the first set */
tb_status claim_gradient(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... largest entry of |gradient of the first set - cotangent| */
tb_status claim_passed(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... exit code, with the message that goes with it */
tb_status claim_refused(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... and of blocks: norms on the lane of one block, block by block */
tb_status claim_tolls(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... least and largest gain of the lane through 12 blocks */
tb_status claim_lane(tb_ctx *ctx, const claim *c, tb_proof *out);
/** ... how many x_i 12 blocks have */
tb_status claim_floors(tb_ctx *ctx, const claim *c, tb_proof *out);

/** claim_prove - read the numbers, and compare. */
tb_status claim_prove(tb_ctx *ctx, const claim *c, tb_proof *out);

typedef struct card_row {
    tb_card card;
    claim claim;
} card_row;

extern const card_row tb_card_rows[];
extern const size_t tb_card_rows_count;

#endif
