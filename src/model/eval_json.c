/* SPDX-License-Identifier: MIT */
/* An evaluation as JSON; the names are the contract's. */
#include "tollbooth/eval.h"

static void value_json(tb_json *j, const char *key, const tb_eval_value *v)
{
    if (v->data)
        tb_json_tensor(j, key, TB_F64, v->data, v->rank, v->dims);
}

static void nonfinite_json(tb_json *j, const tb_eval_result *r)
{
    tb_json_object(j, "nonfinite");
    tb_json_int(j, "rows", (int64_t)r->nonfinite_rows);
    tb_json_int(j, "first_row", (int64_t)r->first_row);
    tb_json_string(j, "operation", r->first_op);
    tb_json_end(j);
}

void tb_eval_json(const tb_eval_result *r, tb_json *j, const char *key)
{
    tb_json_object(j, key);
    tb_json_string(j, "tollbooth", TB_VERSION);
    value_json(j, "y", &r->y);
    if (r->ngrads) {
        tb_json_object(j, "grad");
        for (size_t i = 0; i < r->ngrads; i++)
            value_json(j, r->grads[i].name, &r->grads[i]);
        tb_json_end(j);
    }
    value_json(j, "tangent", &r->tangent);
    value_json(j, "jacobian", &r->jacobian);
    if (r->nstatistics) {
        tb_json_object(j, "statistics");
        for (size_t i = 0; i < r->nstatistics; i++)
            value_json(j, r->statistics[i].name, &r->statistics[i]);
        tb_json_end(j);
    }
    if (r->empty_rows)
        tb_json_int(j, "empty_rows", (int64_t)r->empty_rows);
    if (r->nonfinite_rows)
        nonfinite_json(j, r);
    tb_json_end(j);
}
