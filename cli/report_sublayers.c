/* SPDX-License-Identifier: MIT */
/* The table of a report with every number of every sublayer; as text it has
 * bars beside tolls and totals. */
#include "report_parts.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/** The row that a cell is of. */
typedef struct place {
    pool *p;
    const tb_flow *f;
    const tb_flow_row *r;
    report_sink *s;
    tb_out *scratch; /* for bars; NULL: on a page */
} place;

/* --- cells ------------------------------------------------------------------
 */

static const char *or_blank(pool *p, bool there, double v)
{
    return there && !isnan(v) ? pool_number(p, v) : "";
}

static const char *cell_k(const place *x)
{
    return pool_text(x->p, "%zu", x->r->k);
}

static const char *cell_block(const place *x)
{
    return x->r->layer ? pool_text(x->p, "%zu", x->r->layer) : "";
}

static const char *cell_name(const place *x)
{
    const char *role = x->r->role ? x->r->role : "";
    return pool_text(x->p, "%s%s%s", role, *role ? " " : "", x->r->name);
}

/* Is a norm of this sublayer on the lane, or inside its branch? */
static bool has_norm(const place *x, bool lane)
{
    for (size_t i = 0; i < x->f->nnorms; i++) {
        const tb_flow_norm *n = &x->f->norms[i];
        if (n->k == x->r->k && n->layer && n->lane == lane)
            return true;
    }
    return false;
}

static const char *cell_norm(const place *x)
{
    static const char *const words[] = {"none", "pre", "post", "both"};
    return x->r->layer ? words[2 * has_norm(x, true) + has_norm(x, false)] : "";
}

/* Least, middle and largest s of the norms in a row's sublayer. */
static const char *scale(const place *x, int which)
{
    double out = 0;
    bool any = false;
    for (size_t i = 0; i < x->f->nnorms; i++) {
        const tb_flow_norm *n = &x->f->norms[i];
        const double s[] = {n->s_min, n->s_median, n->s_max};
        bool better = which == 0 ? s[0] < out : which == 2 && s[2] > out;
        if (n->k != x->r->k || n->layer == 0 || !n->has_s)
            continue;
        out = !any || better ? s[which] : out;
        any = true;
    }
    return or_blank(x->p, x->r->layer && any, out);
}

static const char *cell_s_min(const place *x)
{
    return scale(x, 0);
}

static const char *cell_s_middle(const place *x)
{
    return scale(x, 1);
}

static const char *cell_s_max(const place *x)
{
    return scale(x, 2);
}

static const char *cell_toll(const place *x)
{
    return or_blank(x->p, x->r->norms > 0, x->r->toll);
}

/* Six decades, "1e-4   1 100". */
static const char *bar(const place *x, double v)
{
    enum { CELLS = 12 };
    tb_out_reset(x->scratch);
    if (tb_log_bar(x->s->term, v, 1e-4, 1e2, CELLS, x->scratch) != TB_OK)
        x->s->status = TB_ERR_MEMORY;
    return pool_copy(x->p, tb_out_str(x->scratch));
}

static const char *cell_toll_bar(const place *x)
{
    return x->r->norms ? bar(x, x->r->toll) : "";
}

static const char *cell_total_bar(const place *x)
{
    return bar(x, x->r->total);
}

static const char *cell_nonfinite(const place *x)
{
    return pool_text(x->p, "%zu", x->r->nonfinite);
}

/* --- gradients of a sublayer's weights --------------------------------------
 */

typedef enum part { PART_ALL, PART_IN, PART_OUT } part;

/* The matrices that lead out of a sublayer are o and down. */
static bool is_part(const char *kind, part which)
{
    const char *dot = strrchr(kind, '.'), *first = strchr(kind, '.');
    if (which == PART_ALL)
        return true;
    if (!dot || strcmp(dot, ".weight") != 0 || first == dot)
        return false;
    bool out =
        strncmp(first, ".o.", 3) == 0 || strncmp(first, ".down.", 6) == 0;
    return out == (which == PART_OUT);
}

/* Of the weights of this sublayer; of all of the block where its name says no
 * more. */
static const char *weights_rms(const place *x, part which)
{
    double square = 0, n = 0;
    size_t length = strlen(x->r->name);
    bool one = strcmp(x->r->name, "attn") == 0 ||
               strcmp(x->r->name, "ffn") == 0 ||
               strcmp(x->r->name, "cross") == 0;
    for (size_t i = 0; x->r->layer && i < x->f->nweights; i++) {
        const tb_flow_weight *w = &x->f->weights[i];
        const char *kind;
        if (w->layer != x->r->layer ||
            !report_weight_kind(w, x->r->role, &kind) || !is_part(kind, which))
            continue;
        if (one &&
            (strncmp(kind, x->r->name, length) != 0 || kind[length] != '.'))
            continue;
        square += w->grad_norm * w->grad_norm;
        n += (double)w->elements;
    }
    return or_blank(x->p, n > 0, sqrt(square / n));
}

static const char *cell_rms(const place *x)
{
    return weights_rms(x, PART_ALL);
}

static const char *cell_rms_in(const place *x)
{
    return weights_rms(x, PART_IN);
}

static const char *cell_rms_out(const place *x)
{
    return weights_rms(x, PART_OUT);
}

/* --- columns ----------------------------------------------------------------
 */

typedef enum when { ALWAYS, NOT_OF_STEM, AUDITED, OF_SUMS } when;

typedef struct column {
    tb_column look;
    const char *(*cell)(const place *x); /* or, NULL, a number of the row: */
    size_t at;
    when there;
    bool text; /* not on a page */
} column;

#define NUMBER(head, priority, field, there)                                   \
    {                                                                          \
        {head, TB_RIGHT, priority, false}, NULL, offsetof(tb_flow_row, field), \
            there, false                                                       \
    }
#define CELL(head, align, priority, fn)                                        \
    {                                                                          \
        {head, align, priority, false}, fn, 0, ALWAYS, false                   \
    }
#define BAR(priority, fn)                                                      \
    {                                                                          \
        {"1e-4   1 100", TB_LEFT, priority, false}, fn, 0, ALWAYS, true        \
    }

static const column columns[] = {
    CELL("k", TB_RIGHT, 0, cell_k),
    CELL("block", TB_RIGHT, 3, cell_block),
    CELL("sublayer", TB_LEFT, 0, cell_name),
    CELL("norm", TB_LEFT, 1, cell_norm),
    CELL("s min", TB_RIGHT, 9, cell_s_min),
    CELL("s middle", TB_RIGHT, 2, cell_s_middle),
    CELL("s max", TB_RIGHT, 9, cell_s_max),
    CELL("toll", TB_RIGHT, 1, cell_toll),
    BAR(1, cell_toll_bar),
    NUMBER("total", 0, total, ALWAYS),
    BAR(0, cell_total_bar),
    NUMBER("least token", 8, total_min, ALWAYS),
    NUMBER("most token", 8, total_max, ALWAYS),
    NUMBER("lane", 0, lane, ALWAYS),
    NUMBER("branch", 5, branch, ALWAYS),
    NUMBER("cos", 6, cos, ALWAYS),
    NUMBER("local lane", 7, local_lane, NOT_OF_STEM),
    NUMBER("local branch", 7, local_branch, NOT_OF_STEM),
    NUMBER("|F|/|x|", 1, branch_ratio, NOT_OF_STEM),
    NUMBER("angle", 6, angle, NOT_OF_STEM),
    NUMBER("std x", 4, std_x, ALWAYS),
    NUMBER("max |x|", 6, top_x, ALWAYS),
    NUMBER("tr(J)/d", 3, identity_share, AUDITED),
    NUMBER("sigma max", 4, sigma_max, AUDITED),
    CELL("RMS gradient", TB_RIGHT, 5, cell_rms),
    CELL("RMS in", TB_RIGHT, 8, cell_rms_in),
    CELL("RMS out", TB_RIGHT, 8, cell_rms_out),
    CELL("non-finite", TB_RIGHT, 9, cell_nonfinite),
    NUMBER("identity error", 9, identity_error, OF_SUMS)};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const char *cell_of(const place *x, const column *c)
{
    const tb_flow_row *r = x->r;
    const bool there[] = {true, r->layer > 0, r->audited, r->has_sums};
    double v;
    if (c->cell)
        return c->cell(x);
    memcpy(&v, (const char *)r + c->at, sizeof v);
    return there[c->there] ? pool_number(x->p, v) : "";
}

static void fill(report_sink *s, pool *p, const tb_flow *f,
                 const column *const *used, size_t n, const char **cells)
{
    tb_out *scratch = NULL;
    if (!s->page && tb_out_create(s->ctx, &scratch) != TB_OK) {
        s->status = TB_ERR_MEMORY;
        return;
    }
    for (size_t i = 0; i < f->nrows; i++) { /* the top first */
        const place x = {p, f, &f->rows[f->nrows - 1 - i], s, scratch};
        for (size_t c = 0; c < n; c++)
            cells[i * n + c] = cell_of(&x, used[c]);
    }
    tb_out_destroy(scratch);
}

void report_sublayers(report_sink *s, pool *p, const tb_flow *f, size_t which)
{
    tb_column looks[COLUMNS];
    const column *used[COLUMNS];
    size_t n = 0;
    for (size_t c = 0; c < COLUMNS; c++)
        if (!columns[c].text || !s->page) {
            looks[n] = columns[c].look;
            used[n++] = &columns[c];
        }
    const char **cells = pool_get(p, f->nrows * n, sizeof *cells);
    if (!cells)
        return;
    fill(s, p, f, used, n, cells);
    const tb_table t = {.caption = "Every sublayer, the top first",
                        .columns = looks,
                        .n_columns = n,
                        .cells = cells,
                        .n_rows = f->nrows,
                        .anchor = pool_text(p, "r%zu-k", which + 1)};
    sink_table(s, &t);
}
