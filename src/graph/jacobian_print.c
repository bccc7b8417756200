/* SPDX-License-Identifier: MIT */
/* Jacobians as text, LaTeX and MathML: matrices, products, and what the names
 * in them stand for. */
#include "graph/jacobian_layout.h"

/* --- parts ---------------------------------------------------------------- */

/* What was written, out of what may be written. */
static const char *kept(tb_layout *y)
{
    size_t n = y->scratch.len;
    y->left = n < y->left ? y->left - n : 0;
    return y->scratch.failed ? NULL
                             : tb_arena_strdup(y->a, tb_buf_str(&y->scratch));
}

static tb_status write_cells(tb_layout *y, tb_notation note, tb_jac_parts *out)
{
    size_t n = (size_t)(y->shown * tb_layout_cells(y));
    const char **cells = tb_arena_alloc(y->a, n * sizeof *cells);
    bool *loose = tb_arena_alloc(y->a, n * sizeof *loose);
    bool *unit = tb_arena_alloc(y->a, n * sizeof *unit);
    if (!cells || !loose || !unit)
        return TB_ERR_MEMORY;
    for (int f = y->shown - 1, i; f >= 0 && y->left; f--)
        for (int c = 0; c < tb_layout_cells(y); c++) {
            const tb_jx *x = tb_layout_entry(y, f, c);
            i = f * tb_layout_cells(y) + c;
            y->scratch.len = 0;
            tb_layout_cell(y, note, f, c, f > 0 && y->j->nstreams == 1,
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
static tb_status write_entry(tb_layout *y, tb_notation note, int f, int i,
                             const char **out)
{
    y->scratch.len = 0;
    tb_pen p = tb_layout_pen(y, note, f, &y->scratch);
    tb_pen_indexed(&p, y->j->graph->streams[i], p.index);
    *out = kept(y);
    return *out ? TB_OK : TB_ERR_MEMORY;
}

static tb_status write_streams(tb_layout *y, tb_notation note,
                               tb_jac_parts *out)
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
static int next_name(const tb_layout *y, int step, int below)
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

static tb_status add_where(tb_layout *y, tb_jac_parts *out, const char *name)
{
    const char *is = kept(y);
    out->where[out->nwhere++] = (tb_where){name, is};
    return name && is ? TB_OK : TB_ERR_MEMORY;
}

static tb_status where_name(tb_layout *y, tb_notation note,
                            const tb_pen_name *n, tb_jac_parts *out)
{
    y->scratch.len = 0;
    tb_pen p = tb_layout_pen(y, note, n->step, &y->scratch);
    tb_pen_indexed(&p, n->name, n->index);
    const char *name = kept(y);
    y->scratch.len = 0;
    tb_layout_name(y, note, n, &y->scratch);
    return add_where(y, out, name);
}

static tb_status where_entry(tb_layout *y, tb_notation note, int f, int i,
                             tb_jac_parts *out)
{
    const char *name;
    TB_TRY(write_entry(y, note, f, i, &name));
    y->scratch.len = 0;
    tb_layout_stream(y, note, f, i, &y->scratch);
    return add_where(y, out, name);
}

static tb_status where_run(tb_layout *y, tb_notation note, const tb_pen_run *r,
                           tb_jac_parts *out)
{
    y->scratch.len = 0;
    tb_pen p = tb_layout_pen(y, note, 0, &y->scratch);
    tb_pen_subscript(&p, "J", r->name);
    const char *name = kept(y);
    y->scratch.len = 0;
    tb_layout_run(y, note, r, &y->scratch);
    return add_where(y, out, name);
}

/* From the last to the first: each uses only those that come after it. */
static tb_status write_where(tb_layout *y, tb_notation note, tb_jac_parts *out)
{
    size_t most =
        TB_PEN_NAMES + TB_PEN_RUNS + (size_t)(y->j->nfactors * y->j->nstreams);
    out->where = tb_arena_alloc(y->a, most * sizeof *out->where);
    if (!out->where)
        return TB_ERR_MEMORY;
    for (int i = y->names.nruns - 1; i >= 0; i--)
        if (y->names.run[i].used)
            TB_TRY(where_run(y, note, &y->names.run[i], out));
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
    tb_layout y;
    *out = (tb_jac_parts){.nstreams = j->nstreams};
    tb_status s = tb_layout_open(&y, ctx, arena, j);
    out->nfactors = y.shown;
    for (int i = 0; i < y.names.n; i++)
        y.names.item[i].used = false;
    for (int i = 0; i < y.names.nruns; i++)
        y.names.run[i].used = false;
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
    tb_layout y = {.ctx = ctx, .j = j, .left = TB_PEN_BYTES};
    tb_buf_init(&y.scratch, ctx);
    bool same = tb_layout_same(&y);
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

/* rows: each factor has one of its own, in MathML. */
static void factors(tb_pen *p, const tb_jac_parts *m, bool rows)
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
        if (!first && rows)
            tb_pen_put(p, "", "", "</mrow></mtd></mtr><mtr><mtd><mrow>");
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

/* long: the text does not fit into a line. */
static void formula_and_names(tb_pen *p, const tb_jac_parts *m, bool long_)
{
    bool rows = m->nwhere > 0 || long_;
    tb_pen_put(p, "", "",
               rows ? "<mtable columnalign=\"left\"><mtr><mtd><mrow>"
                    : "<mrow>");
    factors(p, m, long_);
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
    const char *names = strstr(tb_buf_str(&alt), " where ");
    size_t length = names ? (size_t)(names - tb_buf_str(&alt)) : alt.len;
    formula_and_names(&p, m, length > TB_JACOBIAN_LINE && m->nfactors > 1);
    tb_buf_clear(&alt);
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
        formula_and_names(&p, &m, false);
    tb_arena_clear(&a);
    return s == TB_OK ? tb_buf_status(out) : s;
}
