/* SPDX-License-Identifier: MIT */
/* The op table: one row per op, in the order of TB_OP_LIST. */
#include "ops/op.h"

#define ROW(id) &tb_op_##id,
const tb_op *const tb_ops[] = {TB_OP_LIST(ROW) NULL};
#undef ROW

const tb_op *tb_op_find(const char *name)
{
    for (size_t i = 0; tb_ops[i]; i++)
        if (tb_streq(tb_ops[i]->name, name))
            return tb_ops[i];
    return NULL;
}

bool tb_op_has_groups(const tb_op *op)
{
    return op->nattr + op->noption > TB_ATTR_NORM_GROUPS &&
           tb_streq(op->attr_name[TB_ATTR_NORM_GROUPS], "groups");
}

const tb_op *tb_op_norm(const char *name)
{
    const tb_op *op = tb_op_find(name);
    return op && op->lane == TB_LANE_TOLL ? op : NULL;
}
