/* SPDX-License-Identifier: MIT */
/* A table and JSON of where the time of updates went. */
#include "train_profile.h"

#include <string.h>

enum { ROUNDS = 5 };

tb_status profile_measure(tb_ctx *ctx, run_profile *p)
{
    const tb_bench nothing = {.rounds = ROUNDS};
    if (!p->there)
        return TB_OK;
    return tb_bench_run(ctx, &nothing, &p->machine, NULL);
}

/** A part's numbers, 0 where they say nothing. */
typedef struct rates {
    double share, gflops, of_peak, gbps, of_stream;
} rates;

static rates rates_of(const run_profile *p, const tb_train_part *part)
{
    const tb_bench_machine *m = &p->machine;
    rates r = {.share = part->seconds / p->times.seconds};
    if (!(part->seconds > 0))
        return r;
    r.gflops = part->flops / part->seconds * 1e-9;
    r.of_peak = r.gflops / m->peak_gflops;
    r.gbps = part->bytes / part->seconds * 1e-9;
    r.of_stream = r.gbps / m->stream_gbps[TB_BENCH_COPY];
    return r;
}

void profile_json(const run_profile *p, tb_json *j)
{
    if (!p->there)
        return;
    tb_json_object(j, "profile");
    tb_json_int(j, "updates", (int64_t)p->times.updates);
    tb_json_number(j, "seconds", p->times.seconds);
    tb_json_number(j, "stream_gbps", p->machine.stream_gbps[TB_BENCH_COPY]);
    tb_json_number(j, "peak_gflops", p->machine.peak_gflops);
    tb_json_array(j, "parts");
    for (size_t i = 0; i < p->times.nparts; i++) {
        const tb_train_part *part = &p->times.parts[i];
        const rates r = rates_of(p, part);
        tb_json_object(j, NULL);
        tb_json_string(j, "part", part->name);
        tb_json_number(j, "seconds", part->seconds);
        tb_json_number(j, "share", r.share);
        if (r.gflops > 0) {
            tb_json_number(j, "gflops", r.gflops);
            tb_json_number(j, "share_of_peak", r.of_peak);
        }
        if (r.gbps > 0) {
            tb_json_number(j, "gbps", r.gbps);
            tb_json_number(j, "share_of_stream", r.of_stream);
        }
        tb_json_end(j);
    }
    tb_json_end(j);
    tb_json_end(j);
}

/* --- text -------------------------------------------------------------------
 */

enum { COLUMNS = 7 };
typedef char cell[TB_SHOW_CHARS];

static void percent(double share, cell *out)
{
    if (share > 0)
        snprintf(*out, sizeof *out, "%.1f %%", 100 * share);
}

static void row_cells(const run_profile *p, const tb_train_part *part,
                      cell *text, const char **cells)
{
    const rates r = rates_of(p, part);
    memset(text, 0, COLUMNS * sizeof *text);
    tb_show_number(1e3 * part->seconds, text[1]);
    percent(r.share, &text[2]);
    if (r.gflops > 0)
        tb_show_number(r.gflops, text[3]);
    percent(r.of_peak, &text[4]);
    if (r.gbps > 0)
        tb_show_number(r.gbps, text[5]);
    percent(r.of_stream, &text[6]);
    cells[0] = part->name;
    for (size_t c = 1; c < COLUMNS; c++)
        cells[c] = text[c];
}

tb_status profile_text(tb_ctx *ctx, const run_profile *p)
{
    static const tb_column columns[COLUMNS] = {
        {"part", TB_LEFT, 0, false},     {"ms", TB_RIGHT, 0, false},
        {"share", TB_RIGHT, 0, false},   {"GFLOP/s", TB_RIGHT, 1, false},
        {"of peak", TB_RIGHT, 1, false}, {"GB/s", TB_RIGHT, 1, false},
        {"of copy", TB_RIGHT, 1, false},
    };
    cell text[TB_TRAIN_PARTS][COLUMNS];
    const char *cells[TB_TRAIN_PARTS * COLUMNS];
    const tb_terminal term = terminal_of(true);
    tb_out *out;
    if (!p->there)
        return TB_OK;
    for (size_t i = 0; i < p->times.nparts; i++)
        row_cells(p, &p->times.parts[i], text[i], cells + COLUMNS * i);
    const tb_table t = {.columns = columns,
                        .n_columns = COLUMNS,
                        .cells = cells,
                        .n_rows = p->times.nparts};
    tb_status s = tb_out_create(ctx, &out);
    if (s != TB_OK)
        return s;
    s = tb_table_term(ctx, &t, &term, out);
    if (s == TB_OK)
        printf("\na mean update of %zu, %.4g ms; copy %.1f GB/s, peak %.0f "
               "GFLOP/s\n\n%s",
               p->times.updates, 1e3 * p->times.seconds,
               p->machine.stream_gbps[TB_BENCH_COPY], p->machine.peak_gflops,
               tb_out_str(out));
    tb_out_destroy(out);
    return s;
}
