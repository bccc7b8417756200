/* SPDX-License-Identifier: MIT */
/* Cells of a Jacobian, and names for values and products that are long and
 * return. Decided on the text, so that all notations use the same names. */
#include "graph/jacobian_layout.h"
#include "graph/jx.h"

tb_pen tb_layout_pen(tb_layout *y, tb_notation note, int f, tb_buf *out)
{
    const tb_graph *g = y->j->graph;
    return (tb_pen){.note = note,
                    .out = out,
                    .g = g,
                    .entries = g->cuts[y->j->first + f].nodes,
                    .streams = g->streams,
                    .nentries = y->j->nstreams,
                    .step = f,
                    .index = y->shown > 1 ? f : 0,
                    .mode = y->j->mode,
                    .silent = y->j->mode == TB_JAC_SILENT ? y->j->silent : NULL,
                    .degree = y->j->degree,
                    .start = out->len,
                    .most = y->left,
                    .names = &y->names};
}

const tb_jx *tb_layout_entry(const tb_layout *y, int f, int cell)
{
    return y->j->entries[f * y->j->nstreams * y->j->nstreams + cell];
}

/* c I before another factor is c. */
static bool is_multiple(const tb_jx *x)
{
    return x->kind == TB_JX_PROD && x->items[x->n - 1]->kind == TB_JX_ONE;
}

void tb_layout_cell(tb_layout *y, tb_notation note, int f, int cell, bool lead,
                    tb_buf *out)
{
    tb_pen p = tb_layout_pen(y, note, f, out);
    const tb_jx *x = tb_layout_entry(y, f, cell);
    if (lead && is_multiple(x))
        tb_pen_product(&p, x, 0, x->n - 1);
    else
        tb_pen_term(&p, x, false);
}

int tb_layout_cells(const tb_layout *y)
{
    return y->j->nstreams * y->j->nstreams;
}

/* Every step in the same words, each relative to its own streams. */
bool tb_layout_same(tb_layout *y)
{
    bool same = true;
    tb_buf other;
    tb_buf_init(&other, y->ctx);
    y->shown = 1;
    for (int c = 0; c < tb_layout_cells(y) && same; c++) {
        y->scratch.len = 0;
        tb_layout_cell(y, TB_NOTE_TEXT, 0, c, false, &y->scratch);
        for (int f = 1; f < y->j->nfactors && same; f++) {
            other.len = 0;
            tb_layout_cell(y, TB_NOTE_TEXT, f, c, false, &other);
            same = y->scratch.len == other.len &&
                   memcmp(tb_buf_str(&y->scratch), tb_buf_str(&other),
                          other.len) == 0;
        }
    }
    tb_buf_clear(&other);
    return same;
}

/* --- names for what is long and returns ----------------------------------- */

/** Formulas shorter than TB_JACOBIAN_LINE need no names, those longer than LONG
 * have many repeats; a value is worth one from WORTH bytes on; a search looks
 * at VISITS terms. */
enum { LONG = 240, WORTH = 12, RUNS = 32, RUN_LEAST = 3, VISITS = 4000 };

void tb_layout_name(tb_layout *y, tb_notation note, const tb_pen_name *n,
                    tb_buf *out)
{
    tb_pen p = tb_layout_pen(y, note, n->step, out);
    tb_pen_define(&p, n->node);
}

/* J_z = ...: the run itself. */
void tb_layout_run(tb_layout *y, tb_notation note, const tb_pen_run *r,
                   tb_buf *out)
{
    const tb_jx *items[TB_LEN(r->item)];
    memcpy(items, r->item, sizeof items);
    const tb_jx run = {.kind = TB_JX_PROD, .n = r->n, .items = items};
    int nruns = y->names.nruns;
    tb_pen p = tb_layout_pen(y, note, r->step, out);
    y->names.nruns = 0;
    tb_pen_product(&p, &run, 0, run.n);
    y->names.nruns = nruns;
}

/* x1 = ...: a stream at the start of a step, in the words of the one before. */
void tb_layout_stream(tb_layout *y, tb_notation note, int f, int i, tb_buf *out)
{
    tb_pen p = tb_layout_pen(y, note, f - 1, out);
    int node = y->j->graph->cuts[y->j->first + f].nodes[i];
    if (y->j->graph->nodes[node].op != &tb_op_input)
        tb_pen_define(&p, node);
}

/* How long all cells are; counts what stands in them. */
static size_t measure(tb_layout *y)
{
    size_t nodes = (size_t)y->j->graph->nnodes;
    memset(y->names.count, 0, nodes * sizeof *y->names.count);
    y->scratch.len = 0;
    for (int f = 0; f < y->shown && y->scratch.len < y->left; f++) {
        for (int c = 0; c < tb_layout_cells(y); c++)
            tb_layout_cell(y, TB_NOTE_TEXT, f, c, false, &y->scratch);
        for (int i = 0; f && i < y->j->nstreams; i++)
            tb_layout_stream(y, TB_NOTE_TEXT, f, i, &y->scratch);
    }
    for (int i = 0; i < y->names.nruns; i++)
        tb_layout_run(y, TB_NOTE_TEXT, &y->names.run[i], &y->scratch);
    size_t total = y->scratch.len;
    for (int i = 0; i < y->names.n; i++)
        tb_layout_name(y, TB_NOTE_TEXT, &y->names.item[i], &y->scratch);
    return total;
}

static bool is_taken(const tb_layout *y, const char *name, int index)
{
    for (int i = 0; i < y->names.n; i++)
        if (tb_streq(y->names.item[i].name, name) &&
            y->names.item[i].index == index)
            return true;
    for (int i = 0; i < y->j->nstreams; i++)
        if (tb_streq(y->j->graph->streams[i], name))
            return true;
    return false;
}

/* A letter that the text has no use for. */
static const char *free_letter(const tb_layout *y)
{
    static const char *const letters[] = {"u", "v", "w", "s", "p", "r",
                                          "t", "a", "b", "c", "e", "g"};
    const tb_graph *g = y->j->graph;
    for (size_t i = 0; i < TB_LEN(letters); i++) {
        bool used = is_taken(y, letters[i], 0);
        for (int n = 0; n < g->nnodes && !used; n++) {
            const char *name = g->nodes[n].name;
            used = name && strncmp(name, letters[i], 1) == 0 &&
                   (name[1] == '\0' || name[1] == '.');
        }
        if (!used)
            return letters[i];
    }
    return NULL;
}

/* The name that the text gave the value, or a letter; false: none is left. */
static bool give_name(tb_layout *y, int node)
{
    tb_pen_names *n = &y->names;
    const char *own = y->j->graph->nodes[node].name;
    int step = n->step[node], index = y->shown > 1 ? step : 0;
    if (!own || is_taken(y, own, index)) {
        own = free_letter(y);
        index = 0;
    }
    if (own)
        n->item[n->n++] = (tb_pen_name){node, step, own, index, false};
    return own != NULL;
}

/* The value whose name saves most, -1: none is worth one. */
static int costliest(const tb_layout *y)
{
    int best = -1;
    size_t most = 0;
    for (int i = 0; i < y->j->graph->nnodes; i++) {
        const tb_node *n = &y->j->graph->nodes[i];
        size_t times = (size_t)y->names.count[i], length = y->names.length[i];
        bool named = false;
        for (int k = 0; k < y->names.n; k++)
            named = named || y->names.item[k].node == i;
        if (named || times < 2 || length < WORTH ||
            n->op->lane == TB_LANE_LEAF || n->op->alias)
            continue;
        if ((times - 1) * length > most) {
            most = (times - 1) * length;
            best = i;
        }
    }
    return best;
}

static void choose_names(tb_layout *y)
{
    while (measure(y) > TB_JACOBIAN_LINE && y->names.n < TB_PEN_NAMES) {
        int node = costliest(y);
        if (node < 0 || !give_name(y, node))
            return;
    }
}

/** Pairs of factors side by side, and how many products have them. */
typedef struct runs {
    const tb_jx *left[RUNS], *right[RUNS];
    int times[RUNS], n, visits;
} runs;

static void count_pair(runs *r, const tb_jx *left, const tb_jx *right)
{
    int i = 0;
    if (tb_jx_is_number(left))
        return;
    while (i < r->n && (r->left[i] != left || r->right[i] != right))
        i++;
    if (i == RUNS)
        return;
    r->left[i] = left;
    r->right[i] = right;
    r->times[i] = i < r->n ? r->times[i] + 1 : 1;
    r->n = i < r->n ? r->n : i + 1;
}

static void count_pairs(runs *r, const tb_jx *x)
{
    bool inside = x->kind == TB_JX_PROD || x->kind == TB_JX_SUM;
    for (int i = 0; inside && i < x->n && r->visits++ < VISITS; i++) {
        if (x->kind == TB_JX_PROD && i)
            count_pair(r, x->items[i - 1], x->items[i]);
        count_pairs(r, x->items[i]);
    }
}

/* What two factors that return are followed by whenever they do; NULL. */
static const tb_jx *always_after(const runs *r, int best)
{
    for (int i = 0; i < r->n; i++)
        if (r->left[i] == r->right[best] && r->times[i] == r->times[best])
            return r->right[i];
    return NULL;
}

/* What a pair saves where it has a name: bytes, as often as it returns. */
static size_t worth(tb_layout *y, int f, const runs *r, int i)
{
    const tb_jx *items[] = {r->left[i], r->right[i]};
    const tb_jx pair = {.kind = TB_JX_PROD, .n = 2, .items = items};
    if (r->times[i] < RUN_LEAST)
        return 0;
    y->scratch.len = 0;
    tb_pen p = tb_layout_pen(y, TB_NOTE_TEXT, f, &y->scratch);
    tb_pen_product(&p, &pair, 0, 2);
    return y->scratch.len * (size_t)(r->times[i] - 1);
}

/* Streams and gates share their branches: factors side by side that return in
 * a step are written J_z. */
static void choose_run(tb_layout *y, int f)
{
    runs r = {.n = 0};
    tb_pen_run *run = &y->names.run[y->names.nruns];
    size_t most = 0;
    int best = -1;
    for (int c = 0; c < tb_layout_cells(y); c++)
        count_pairs(&r, tb_layout_entry(y, f, c));
    for (int i = 0; i < r.n; i++) {
        size_t w = worth(y, f, &r, i);
        best = w > most ? i : best;
        most = w > most ? w : most;
    }
    if (best < 0)
        return;
    *run = (tb_pen_run){.item = {r.left[best], r.right[best]}, .n = 2};
    run->item[2] = always_after(&r, best);
    run->n += run->item[2] != NULL;
    run->step = f;
    tb_format(run->name, sizeof run->name, f && y->shown > 1 ? "z%d" : "z", f);
    y->names.nruns++;
}

tb_status tb_layout_open(tb_layout *y, tb_ctx *ctx, tb_arena *a,
                         const tb_jacobian *j)
{
    size_t nodes = (size_t)j->graph->nnodes;
    tb_pen_names *n = &y->names;
    *y = (tb_layout){.ctx = ctx, .a = a, .j = j, .left = TB_PEN_BYTES};
    tb_buf_init(&y->scratch, ctx);
    n->entry_used = tb_arena_alloc(
        a, (size_t)(j->nfactors * j->nstreams) * sizeof *n->entry_used + 1);
    n->count = tb_arena_alloc(a, nodes * sizeof *n->count);
    n->length = tb_arena_alloc(a, nodes * sizeof *n->length);
    n->step = tb_arena_alloc(a, nodes * sizeof *n->step);
    if (!n->entry_used || !n->count || !n->length || !n->step)
        return TB_ERR_MEMORY;
    y->shown = tb_layout_same(y) ? 1 : j->nfactors;
    if (j->nstreams > 1 || measure(y) > LONG)
        for (int f = 0; f < y->shown && y->names.nruns < TB_PEN_RUNS; f++)
            choose_run(y, f);
    choose_names(y);
    n->count = NULL;
    memset(n->entry_used, 0, (size_t)(j->nfactors * j->nstreams));
    return y->scratch.failed ? TB_ERR_MEMORY : TB_OK;
}
