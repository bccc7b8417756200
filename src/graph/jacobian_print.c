/* SPDX-License-Identifier: MIT */
/* Jacobians as text, LaTeX and MathML: terms, matrices, and names for what is
 * long and returns. */
#include "graph/jx.h"
#include "graph/pen.h"

/* --- Jacobian terms ---------------------------------------------------------
 */

static void term(tb_pen *p, const tb_jx *x, bool brackets);

static void slope(tb_pen *p, const tb_jx *x)
{
    tb_pen_put(p, "diag(", "\\mathrm{diag}(",
               "<mi>diag</mi><mo stretchy=\"false\">(</mo>");
    if (x->kind == TB_JX_SLOPE) {
        tb_pen_word(p, x->name);
        tb_pen_put(p, "'", "'", "<mo>&#8242;</mo>");
        tb_pen_open(p);
    }
    if (x->inverse)
        tb_pen_put(p, "1/", "1/", "<mn>1</mn><mo>/</mo>");
    tb_pen_formula(p, x->node, x->inverse);
    if (x->kind == TB_JX_SLOPE)
        tb_pen_close(p);
    tb_pen_close(p);
}

/* How many of the factors at items[i] are those that J_z stands for. */
static int run_at(const tb_pen *p, const tb_jx *x, int i)
{
    int n = p->names ? p->names->nrun : 0;
    if (n == 0 || i + n > x->n)
        return 0;
    for (int k = 0; k < n; k++)
        if (x->items[i + k] != p->names->run[k])
            return 0;
    return n;
}

/* Factors first..end-1. */
static void product(tb_pen *p, const tb_jx *x, int first, int end)
{
    for (int i = first; i < end && !p->full; i++) {
        int run = run_at(p, x, i);
        if (i > first)
            tb_pen_times(p);
        if (!run) {
            term(p, x->items[i], true);
            continue;
        }
        tb_pen_subscript(p, "J", "z");
        p->names->run_used = true;
        i += run - 1;
    }
}

/* (-1) A as a term of a sum is written - A. */
static bool negated(const tb_jx *x)
{
    return x->kind == TB_JX_PROD && x->items[0]->kind == TB_JX_COEF &&
           tb_pen_is(x->items[0]->attr, -1);
}

static void sum_terms(tb_pen *p, const tb_jx *x)
{
    for (int i = 0; i < x->n && !p->full; i++) {
        const tb_jx *item = x->items[i];
        bool flip = negated(item), positive = (x->signs[i] > 0) != flip;
        if (i && positive)
            tb_pen_plus(p);
        else if (i)
            tb_pen_minus(p);
        else if (!positive)
            tb_pen_put(p, "-", "-", "<mo>-</mo>");
        if (flip)
            product(p, item, 1, item->n);
        else
            term(p, item, x->signs[i] < 0);
    }
}

static void coefficient(tb_pen *p, const tb_jx *x)
{
    if (x->inverse)
        tb_pen_put(p, "(1/", "(1/", "<mo>(</mo><mn>1</mn><mo>/</mo>");
    if (x->kind == TB_JX_COEF)
        tb_pen_constant(p, x->attr);
    else if (p->g->nodes[x->at].op == &tb_op_mix)
        tb_pen_weight(p, x->at, x->input);
    else
        tb_pen_formula(p, x->node, true);
    if (x->inverse)
        tb_pen_close(p);
}

static void term_inner(tb_pen *p, const tb_jx *x, bool brackets)
{
    switch (x->kind) {
    case TB_JX_ZERO:
        tb_pen_number(p, 0);
        break;
    case TB_JX_ONE:
        tb_pen_word(p, "I");
        break;
    case TB_JX_SUM:
        if (brackets)
            tb_pen_open(p);
        sum_terms(p, x);
        if (brackets)
            tb_pen_close(p);
        break;
    case TB_JX_PROD:
        product(p, x, 0, x->n);
        break;
    case TB_JX_SYM:
        tb_pen_subscript(p, "J", x->name);
        if (x->node >= 0) {
            tb_pen_open(p);
            tb_pen_formula(p, x->node, false);
            tb_pen_close(p);
        }
        break;
    case TB_JX_SLOPE:
    case TB_JX_DIAG:
        slope(p, x);
        break;
    case TB_JX_COEF:
    case TB_JX_SCALAR:
        coefficient(p, x);
        break;
    case TB_JX_WEIGHT:
        tb_pen_subscript(p, "W", x->name);
        break;
    case TB_JX_TOKENS:
        tb_pen_put(p, "diag(", "\\mathrm{diag}(",
                   "<mi>diag</mi><mo stretchy=\"false\">(</mo>");
        tb_pen_weight(p, x->at, x->input);
        tb_pen_close(p);
        break;
    }
}

static void term(tb_pen *p, const tb_jx *x, bool brackets)
{
    if (tb_pen_spent(p))
        return;
    p->depth++;
    term_inner(p, x, brackets);
    p->depth--;
}

/* --- one matrix after the other ------------------------------------------- */

/** What the parts of one Jacobian are made with. */
typedef struct layout {
    tb_ctx *ctx;
    tb_arena *a;
    const tb_jacobian *j;
    int shown;   /* factors that are written */
    size_t left; /* bytes that all of it may still take */
    tb_pen_names names;
    tb_buf scratch;
} layout;

static tb_pen pen_for(layout *y, tb_notation note, int f, tb_buf *out)
{
    const tb_graph *g = y->j->graph;
    return (tb_pen){.note = note,
                    .out = out,
                    .g = g,
                    .entries = g->cuts[f].nodes,
                    .streams = g->streams,
                    .nentries = y->j->nstreams,
                    .step = f,
                    .index = y->shown > 1 ? f : 0,
                    .mode = y->j->mode,
                    .silent = y->j->mode == TB_JAC_SILENT ? y->j->silent : NULL,
                    .start = out->len,
                    .most = y->left,
                    .names = &y->names};
}

static const tb_jx *entry(const layout *y, int f, int cell)
{
    return y->j->entries[f * y->j->nstreams * y->j->nstreams + cell];
}

/* c I before another factor is c. */
static bool is_multiple(const tb_jx *x)
{
    return x->kind == TB_JX_PROD && x->items[x->n - 1]->kind == TB_JX_ONE;
}

static void write_cell(layout *y, tb_notation note, int f, int cell, bool lead,
                       tb_buf *out)
{
    tb_pen p = pen_for(y, note, f, out);
    const tb_jx *x = entry(y, f, cell);
    if (lead && is_multiple(x))
        product(&p, x, 0, x->n - 1);
    else
        term(&p, x, false);
}

static int cells_of(const layout *y)
{
    return y->j->nstreams * y->j->nstreams;
}

/* Every step in the same words, each relative to its own streams. */
static bool same_steps(layout *y)
{
    bool same = true;
    tb_buf other;
    tb_buf_init(&other, y->ctx);
    y->shown = 1;
    for (int c = 0; c < cells_of(y) && same; c++) {
        y->scratch.len = 0;
        write_cell(y, TB_NOTE_TEXT, 0, c, false, &y->scratch);
        for (int f = 1; f < y->j->nfactors && same; f++) {
            other.len = 0;
            write_cell(y, TB_NOTE_TEXT, f, c, false, &other);
            same = y->scratch.len == other.len &&
                   memcmp(tb_buf_str(&y->scratch), tb_buf_str(&other),
                          other.len) == 0;
        }
    }
    tb_buf_clear(&other);
    return same;
}

/* --- names for what is long and returns ----------------------------------- */

/** Formulas shorter than LINE need no names; a value is worth one from WORTH
 * bytes on; a search looks at VISITS terms. */
enum { LINE = 100, WORTH = 12, RUNS = 32, RUN_LEAST = 3, VISITS = 4000 };

static void write_name(layout *y, tb_notation note, const tb_pen_name *n,
                       tb_buf *out)
{
    tb_pen p = pen_for(y, note, n->step, out);
    tb_pen_define(&p, n->node);
}

/* J_z = ...: the run itself, in its own step. */
static void write_run(layout *y, tb_notation note, tb_buf *out)
{
    const tb_jx run = {.kind = TB_JX_PROD,
                       .n = y->names.nrun,
                       .items = y->names.run,
                       .node = -1};
    int f = 0;
    for (int i = 0; i < y->shown; i++)
        if (y->j->graph->cuts[i].nodes[0] < run.items[0]->at)
            f = i;
    tb_pen p = pen_for(y, note, f, out);
    y->names.nrun = 0;
    product(&p, &run, 0, run.n);
    y->names.nrun = run.n;
}

/* x1 = ...: a stream at the start of a step, in the words of the one before. */
static void write_definition(layout *y, tb_notation note, int f, int i,
                             tb_buf *out)
{
    tb_pen p = pen_for(y, note, f - 1, out);
    int node = y->j->graph->cuts[f].nodes[i];
    if (y->j->graph->nodes[node].op != &tb_op_input)
        tb_pen_define(&p, node);
}

/* How long all cells are; counts what stands in them. */
static size_t measure(layout *y)
{
    size_t nodes = (size_t)y->j->graph->nnodes;
    memset(y->names.count, 0, nodes * sizeof *y->names.count);
    y->scratch.len = 0;
    for (int f = 0; f < y->shown && y->scratch.len < y->left; f++) {
        for (int c = 0; c < cells_of(y); c++)
            write_cell(y, TB_NOTE_TEXT, f, c, false, &y->scratch);
        for (int i = 0; f && i < y->j->nstreams; i++)
            write_definition(y, TB_NOTE_TEXT, f, i, &y->scratch);
    }
    if (y->names.nrun)
        write_run(y, TB_NOTE_TEXT, &y->scratch);
    size_t total = y->scratch.len;
    for (int i = 0; i < y->names.n; i++)
        write_name(y, TB_NOTE_TEXT, &y->names.item[i], &y->scratch);
    return total;
}

static bool is_taken(const layout *y, const char *name, int index)
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
static const char *free_letter(const layout *y)
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
static bool give_name(layout *y, int node)
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
static int costliest(const layout *y)
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

static void choose_names(layout *y)
{
    while (measure(y) > LINE && y->names.n < TB_PEN_NAMES) {
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

/* Streams share their branches: two factors that return in several entries of
 * a matrix are written J_z; a third where it always follows. */
static void choose_run(layout *y)
{
    runs r = {.n = 0};
    int best = -1;
    for (int f = 0; f < y->shown; f++)
        for (int c = 0; c < cells_of(y); c++)
            count_pairs(&r, entry(y, f, c));
    for (int i = 0; i < r.n; i++)
        if (r.times[i] >= RUN_LEAST && (best < 0 || r.times[i] > r.times[best]))
            best = i;
    if (best < 0)
        return;
    y->names.run[0] = r.left[best];
    y->names.run[1] = r.right[best];
    y->names.nrun = 2;
    for (int i = 0; i < r.n; i++)
        if (r.left[i] == r.right[best] && r.times[i] == r.times[best]) {
            y->names.run[2] = r.right[i];
            y->names.nrun = 3;
            return;
        }
}

/* --- parts ---------------------------------------------------------------- */

static tb_status open_layout(layout *y, tb_ctx *ctx, tb_arena *a,
                             const tb_jacobian *j)
{
    size_t nodes = (size_t)j->graph->nnodes;
    tb_pen_names *n = &y->names;
    *y = (layout){.ctx = ctx, .a = a, .j = j, .left = TB_PEN_BYTES};
    tb_buf_init(&y->scratch, ctx);
    n->entry_used = tb_arena_alloc(
        a, (size_t)(j->nfactors * j->nstreams) * sizeof *n->entry_used + 1);
    n->count = tb_arena_alloc(a, nodes * sizeof *n->count);
    n->length = tb_arena_alloc(a, nodes * sizeof *n->length);
    n->step = tb_arena_alloc(a, nodes * sizeof *n->step);
    if (!n->entry_used || !n->count || !n->length || !n->step)
        return TB_ERR_MEMORY;
    y->shown = same_steps(y) ? 1 : j->nfactors;
    if (j->nstreams > 1)
        choose_run(y);
    choose_names(y);
    n->count = NULL;
    memset(n->entry_used, 0, (size_t)(j->nfactors * j->nstreams));
    return y->scratch.failed ? TB_ERR_MEMORY : TB_OK;
}

/* What was written, out of what may be written. */
static const char *kept(layout *y)
{
    size_t n = y->scratch.len;
    y->left = n < y->left ? y->left - n : 0;
    return y->scratch.failed ? NULL
                             : tb_arena_strdup(y->a, tb_buf_str(&y->scratch));
}

static tb_status write_cells(layout *y, tb_notation note, tb_jac_parts *out)
{
    size_t n = (size_t)(y->shown * cells_of(y));
    const char **cells = tb_arena_alloc(y->a, n * sizeof *cells);
    bool *loose = tb_arena_alloc(y->a, n * sizeof *loose);
    bool *unit = tb_arena_alloc(y->a, n * sizeof *unit);
    if (!cells || !loose || !unit)
        return TB_ERR_MEMORY;
    for (int f = y->shown - 1, i; f >= 0 && y->left; f--)
        for (int c = 0; c < cells_of(y); c++) {
            const tb_jx *x = entry(y, f, c);
            i = f * cells_of(y) + c;
            y->scratch.len = 0;
            write_cell(y, note, f, c, f > 0 && y->j->nstreams == 1,
                       &y->scratch);
            cells[i] = kept(y);
            loose[i] = x->kind == TB_JX_SUM;
            unit[i] = x->kind == TB_JX_ONE;
            if (!cells[i])
                return TB_ERR_MEMORY;
        }
    out->cells = cells;
    out->loose = loose;
    out->unit = unit;
    return TB_OK;
}

/* The stream's name at the start of a step. */
static tb_status write_entry(layout *y, tb_notation note, int f, int i,
                             const char **out)
{
    y->scratch.len = 0;
    tb_pen p = pen_for(y, note, f, &y->scratch);
    tb_pen_indexed(&p, y->j->graph->streams[i], p.index);
    *out = kept(y);
    return *out ? TB_OK : TB_ERR_MEMORY;
}

static tb_status write_streams(layout *y, tb_notation note, tb_jac_parts *out)
{
    out->streams =
        tb_arena_alloc(y->a, (size_t)y->j->nstreams * sizeof *out->streams);
    if (!out->streams)
        return TB_ERR_MEMORY;
    for (int i = 0; i < y->j->nstreams; i++)
        TB_TRY(write_entry(y, note, 0, i, &out->streams[i]));
    return TB_OK;
}

/* Names of a step by node, last first: a definition may use earlier ones. */
static int next_name(const layout *y, int step, int below)
{
    int best = -1;
    for (int i = 0; i < y->names.n; i++) {
        const tb_pen_name *n = &y->names.item[i];
        if (n->step == step && n->node < below &&
            (best < 0 || n->node > y->names.item[best].node))
            best = i;
    }
    return best;
}

static tb_status add_where(layout *y, tb_jac_parts *out, const char *name)
{
    const char *is = kept(y);
    out->where[out->nwhere++] = (tb_where){name, is};
    return name && is ? TB_OK : TB_ERR_MEMORY;
}

static tb_status where_name(layout *y, tb_notation note, const tb_pen_name *n,
                            tb_jac_parts *out)
{
    y->scratch.len = 0;
    tb_pen p = pen_for(y, note, n->step, &y->scratch);
    tb_pen_indexed(&p, n->name, n->index);
    const char *name = kept(y);
    y->scratch.len = 0;
    write_name(y, note, n, &y->scratch);
    return add_where(y, out, name);
}

static tb_status where_entry(layout *y, tb_notation note, int f, int i,
                             tb_jac_parts *out)
{
    const char *name;
    TB_TRY(write_entry(y, note, f, i, &name));
    y->scratch.len = 0;
    write_definition(y, note, f, i, &y->scratch);
    return add_where(y, out, name);
}

static tb_status where_run(layout *y, tb_notation note, tb_jac_parts *out)
{
    y->scratch.len = 0;
    tb_pen p = pen_for(y, note, 0, &y->scratch);
    tb_pen_subscript(&p, "J", "z");
    const char *name = kept(y);
    y->scratch.len = 0;
    write_run(y, note, &y->scratch);
    return add_where(y, out, name);
}

/* From the last to the first: each uses only those that come after it. */
static tb_status write_where(layout *y, tb_notation note, tb_jac_parts *out)
{
    size_t most = TB_PEN_NAMES + 1 + (size_t)(y->j->nfactors * y->j->nstreams);
    out->where = tb_arena_alloc(y->a, most * sizeof *out->where);
    if (!out->where)
        return TB_ERR_MEMORY;
    if (y->names.run_used)
        TB_TRY(where_run(y, note, out));
    for (int f = y->shown - 1; f >= 0 && y->left; f--) {
        for (int i = next_name(y, f, y->j->graph->nnodes); i >= 0;
             i = next_name(y, f, y->names.item[i].node))
            if (y->names.item[i].used)
                TB_TRY(where_name(y, note, &y->names.item[i], out));
        for (int i = 0; f && i < y->j->nstreams; i++)
            if (y->names.entry_used[f * y->j->nstreams + i])
                TB_TRY(where_entry(y, note, f, i, out));
    }
    return TB_OK;
}

tb_status tb_jacobian_parts(tb_ctx *ctx, tb_arena *arena, const tb_jacobian *j,
                            tb_notation note, tb_jac_parts *out)
{
    layout y;
    *out = (tb_jac_parts){.nstreams = j->nstreams};
    tb_status s = open_layout(&y, ctx, arena, j);
    out->nfactors = y.shown;
    for (int i = 0; i < y.names.n; i++)
        y.names.item[i].used = false;
    y.names.run_used = false;
    if (s == TB_OK)
        s = write_streams(&y, note, out);
    if (s == TB_OK)
        s = write_cells(&y, note, out);
    if (s == TB_OK)
        s = write_where(&y, note, out);
    tb_buf_clear(&y.scratch);
    return s;
}

int tb_jacobian_steps(tb_ctx *ctx, const tb_jacobian *j)
{
    layout y = {.ctx = ctx, .j = j, .left = TB_PEN_BYTES};
    tb_buf_init(&y.scratch, ctx);
    bool same = same_steps(&y);
    tb_buf_clear(&y.scratch);
    return same ? 1 : j->nfactors;
}

/* --- whole formulas ------------------------------------------------------- */

static void matrix(tb_pen *p, const tb_jac_parts *m, int f)
{
    int n = m->nstreams;
    tb_pen_put(p, "[ ", "\\begin{bmatrix} ", "<mrow><mo>[</mo><mtable>");
    for (int i = 0; i < n; i++) {
        if (i)
            tb_pen_put(p, " ; ", " \\\\ ", "");
        tb_pen_put(p, "", "", "<mtr>");
        for (int k = 0; k < n; k++) {
            tb_pen_put(p, k ? ", " : "", k ? " & " : "", "<mtd>");
            tb_buf_puts(p->out, m->cells[(f * n + i) * n + k]);
            tb_pen_put(p, "", "", "</mtd>");
        }
        tb_pen_put(p, "", "", "</mtr>");
    }
    tb_pen_put(p, " ]", " \\end{bmatrix}", "</mtable><mo>]</mo></mrow>");
}

static void factors(tb_pen *p, const tb_jac_parts *m)
{
    bool first = true;
    for (int f = m->nfactors - 1; f >= 0; f--) {
        bool brackets = m->nstreams == 1 && m->nfactors > 1 && m->loose[f];
        if (m->nstreams == 1 && m->unit[f] && (f || !first))
            continue;
        if (!m->cells[f * m->nstreams * m->nstreams]) {
            tb_pen_put(p, "...", "\\ldots ", "<mo>&#8230;</mo>");
            return;
        }
        if (!first)
            tb_pen_times(p);
        if (brackets)
            tb_pen_open(p);
        if (m->nstreams > 1)
            matrix(p, m, f);
        else
            tb_buf_puts(p->out, m->cells[f]);
        if (brackets)
            tb_pen_close(p);
        first = false;
    }
}

static void wheres(tb_pen *p, const tb_jac_parts *m)
{
    for (int i = 0; i < m->nwhere; i++) {
        tb_pen_put(p, i ? ", " : " where ",
                   i ? ",\\ " : "\\quad\\text{where }\\ ", "<mtr><mtd><mrow>");
        if (i == 0)
            tb_pen_put(p, "", "",
                       "<mtext>where</mtext><mspace width=\"0.5em\"></mspace>");
        tb_buf_puts(p->out, m->where[i].name);
        tb_pen_put(p, " = ", " = ", "<mo>=</mo>");
        tb_buf_puts(p->out, m->where[i].is);
        tb_pen_put(p, "", "", "</mrow></mtd></mtr>");
    }
}

static void formula_and_names(tb_pen *p, const tb_jac_parts *m)
{
    bool rows = m->nwhere > 0;
    tb_pen_put(p, "", "",
               rows ? "<mtable columnalign=\"left\"><mtr><mtd><mrow>"
                    : "<mrow>");
    factors(p, m);
    tb_pen_put(p, "", "", rows ? "</mrow></mtd></mtr>" : "</mrow>");
    wheres(p, m);
    tb_pen_put(p, "", "", rows ? "</mtable>" : "");
}

static void escape(const char *s, tb_buf *out)
{
    for (; *s; s++)
        if (*s == '&' || *s == '<' || *s == '"')
            tb_buf_printf(out, "&#%d;", *s);
        else
            tb_buf_putc(out, *s);
}

/* A whole <math> element; what cannot draw it reads the text. */
static tb_status as_mathml(tb_ctx *ctx, const tb_jacobian *j,
                           const tb_jac_parts *m, tb_buf *out)
{
    tb_pen p = {.note = TB_NOTE_MATHML, .out = out};
    tb_buf alt;
    tb_buf_init(&alt, ctx);
    tb_status s = tb_jacobian_print(ctx, j, TB_NOTE_TEXT, &alt);
    tb_buf_puts(out, "<math xmlns=\"http://www.w3.org/1998/Math/MathML\" "
                     "display=\"block\" alttext=\"");
    escape(tb_buf_str(&alt), out);
    tb_buf_puts(out, "\">");
    tb_buf_clear(&alt);
    formula_and_names(&p, m);
    tb_buf_puts(out, "</math>");
    return s;
}

tb_status tb_jacobian_print(tb_ctx *ctx, const tb_jacobian *j, tb_notation note,
                            tb_buf *out)
{
    tb_arena a;
    tb_jac_parts m;
    tb_pen p = {.note = note, .out = out};
    tb_arena_init(&a, ctx);
    tb_status s = tb_jacobian_parts(ctx, &a, j, note, &m);
    if (s == TB_OK && note == TB_NOTE_MATHML)
        s = as_mathml(ctx, j, &m, out);
    else if (s == TB_OK)
        formula_and_names(&p, &m);
    tb_arena_clear(&a);
    return s == TB_OK ? tb_buf_status(out) : s;
}
