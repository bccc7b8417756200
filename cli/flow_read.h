/* SPDX-License-Identifier: MIT */
/* A gradient flow from the JSON that flow printed: printed again it has the
 * same bytes. */
#ifndef TB_CLI_FLOW_READ_H
#define TB_CLI_FLOW_READ_H

#include "text_pool.h"
#include "tollbooth/checkpoint.h"
#include "tollbooth/flow.h"

/** TRY - pass a failure up, in both readers. */
#define TRY(call)                                                              \
    do {                                                                       \
        tb_status try_status = (call);                                         \
        if (try_status != TB_OK)                                               \
            return try_status;                                                 \
    } while (0)

/** json_number - a number, or one of the strings "nan", "inf", "-inf". */
tb_status json_number(tb_config *c, const char *key, double *out);
/** json_text - a string, kept in the pool; absent or null gives `or_`. */
tb_status json_text(pool *p, tb_config *c, const char *key, const char *or_,
                    const char **out);

/** flow_read - an element of "runs", into the pool. TB_ERR_INPUT names the
 * file and the place. */
tb_status flow_read(pool *p, tb_config *run, tb_flow **out);

#endif
