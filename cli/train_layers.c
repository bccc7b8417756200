/* SPDX-License-Identifier: MIT */
/* How a run ended and the gradient of each block there. */
#include "train_layers.h"

#include <stdio.h>
#include <stdlib.h>

void layers_keep(run_layers *l, size_t step, const tb_train_layer *rows,
                 size_t n)
{
    l->rows = calloc(n, sizeof *l->rows);
    l->forgot = !l->rows;
    if (l->forgot)
        return;
    l->step = step;
    l->n = n;
    for (size_t i = 0; i < n; i++) {
        l->rows[i].layer = rows[i].layer;
        l->rows[i].grad_norm = rows[i].grad_norm;
        l->rows[i].update_ratio = rows[i].update_ratio;
        snprintf(l->rows[i].weight, WEIGHT_NAME, "%s", rows[i].weight);
    }
}

void layers_free(run_layers *l)
{
    free(l->rows);
    *l = (run_layers){0};
}

const kept_layer *layers_largest(const run_layers *l)
{
    const kept_layer *most = NULL;
    for (size_t i = 0; i < l->n; i++)
        if (!most || !(l->rows[i].grad_norm <= most->grad_norm))
            most = &l->rows[i];
    return most;
}

void layers_json(const run_layers *l, tb_json *j)
{
    tb_json_array(j, "layers");
    for (size_t i = 0; i < l->n; i++) {
        tb_json_object(j, NULL);
        tb_json_int(j, "layer", (int64_t)l->rows[i].layer);
        tb_json_string(j, "weight", l->rows[i].weight);
        tb_json_number(j, "grad_norm", l->rows[i].grad_norm);
        tb_json_number(j, "update_ratio", l->rows[i].update_ratio);
        tb_json_end(j);
    }
    tb_json_end(j);
}

void ending_json(const tb_train_result *r, const run_layers *l, tb_json *j)
{
    tb_json_string(j, "status", tb_train_status(r));
    tb_json_int(j, "decided_at", (int64_t)tb_train_decided(r));
    tb_json_number(j, "first_loss", r->first_loss);
    tb_json_number(j, "uniform_loss", r->uniform_loss);
    if (!l->n)
        return;
    tb_json_int(j, "layers_step", (int64_t)l->step);
    layers_json(l, j);
}
