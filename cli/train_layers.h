/* SPDX-License-Identifier: MIT */
/* How a run ended and the gradient of each block there, for train and
 * compare. */
#ifndef TB_CLI_TRAIN_LAYERS_H
#define TB_CLI_TRAIN_LAYERS_H

#include "cli.h"
#include "tollbooth/train.h"

enum { WEIGHT_NAME = 64 };

typedef struct kept_layer {
    size_t layer;
    char weight[WEIGHT_NAME];
    double grad_norm, update_ratio;
} kept_layer;

/** What outlives the run. */
typedef struct run_layers {
    size_t step, n;
    kept_layer *rows;
    bool forgot; /* no memory for them */
} run_layers;

/** layers_keep - a tb_train_observer's `ended`; user is the run_layers. */
void layers_keep(run_layers *l, size_t step, const tb_train_layer *rows,
                 size_t n);
void layers_free(run_layers *l);
/** layers_largest - the row with the longest gradient; NULL if there is none.
 */
const kept_layer *layers_largest(const run_layers *l);
/** layers_json - the member "layers". */
void layers_json(const run_layers *l, tb_json *j);
/** ending_json - status, decided_at, first_loss, uniform_loss,
 * layers_step, layers. */
void ending_json(const tb_train_result *r, const run_layers *l, tb_json *j);

#endif
