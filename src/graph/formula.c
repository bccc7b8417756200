/* SPDX-License-Identifier: MIT */
/* Formulas and Jacobians as text, LaTeX and MathML. One walk, one pen with
 * three notations. Depth and length are bounded, so hostile texts end in an
 * ellipsis instead of an endless formula. */
#include "graph/graph.h"

enum { PEN_DEPTH = 60, PEN_BYTES = 16000 };

typedef struct pen {
    tb_notation note;
    tb_buf *out;
    const tb_graph *g;
    int entry; /* node that is this step's x */
    int index; /* x or x_1, x_2, ...: 0 prints x */
    int depth;
    tb_jac_mode mode;   /* how sublayers are written */
    const bool *silent; /* SILENT: nodes that are 0 */
    size_t start;
    bool full; /* an ellipsis has closed it */
} pen;

/* --- marks ---------------------------------------------------------------- */

static const char *pick(const pen *p, const char *text, const char *latex,
                        const char *mathml)
{
    return p->note == TB_NOTE_TEXT    ? text
           : p->note == TB_NOTE_LATEX ? latex
                                      : mathml;
}

static void put(pen *p, const char *text, const char *latex, const char *mathml)
{
    tb_buf_puts(p->out, pick(p, text, latex, mathml));
}

static void plus(pen *p)
{
    put(p, " + ", " + ", "<mo>+</mo>");
}

static void minus(pen *p)
{
    put(p, " - ", " - ", "<mo>-</mo>");
}

static void times(pen *p)
{
    put(p, "\xc2\xb7", "\\,", "<mo>&#183;</mo>");
}

static void open(pen *p)
{
    put(p, "(", "(", "<mo stretchy=\"false\">(</mo>");
}

static void close(pen *p)
{
    put(p, ")", ")", "<mo stretchy=\"false\">)</mo>");
}

static void number(pen *p, double v)
{
    char text[40];
    size_t n = tb_format(text, sizeof text, "%g", v);
    const char *e = strchr(text, 'e');
    if (e && p->note == TB_NOTE_LATEX) {
        tb_buf_printf(p->out, "%.*s \\cdot 10^{%s}", (int)(e - text), text,
                      e + 1);
        return;
    }
    put(p, "", "", "<mn>");
    tb_buf_put(p->out, text, n);
    put(p, "", "", "</mn>");
}

static void latex_word(pen *p, const char *word)
{
    for (const char *c = word; *c; c++)
        tb_buf_printf(p->out, *c == '_' ? "\\_" : "%c", *c);
}

/* Greek letters have glyphs of their own outside text. */
static const char *const greek[][2] = {
    {"alpha", "&#945;"},  {"beta", "&#946;"},  {"gamma", "&#947;"},
    {"delta", "&#948;"},  {"eps", "&#949;"},   {"zeta", "&#950;"},
    {"eta", "&#951;"},    {"theta", "&#952;"}, {"kappa", "&#954;"},
    {"lambda", "&#955;"}, {"mu", "&#956;"},    {"nu", "&#957;"},
    {"rho", "&#961;"},    {"sigma", "&#963;"}, {"tau", "&#964;"},
    {"phi", "&#966;"},    {"omega", "&#969;"},
};

static const char *greek_mathml(const char *name)
{
    for (size_t i = 0; i < TB_LEN(greek); i++)
        if (tb_streq(greek[i][0], name))
            return greek[i][1];
    return NULL;
}

/* A word set upright: LN, attn, gelu. One letter stays italic. */
static void word(pen *p, const char *name)
{
    const char *letter = greek_mathml(name);
    if (p->note == TB_NOTE_TEXT) {
        tb_buf_puts(p->out, name);
    } else if (p->note == TB_NOTE_MATHML) {
        tb_buf_printf(p->out, "<mi>%s</mi>", letter ? letter : name);
    } else if (letter) {
        tb_buf_printf(p->out, "\\%s ",
                      tb_streq(name, "eps") ? "varepsilon" : name);
    } else {
        tb_buf_puts(p->out, name[1] ? "\\mathrm{" : "");
        latex_word(p, name);
        tb_buf_puts(p->out, name[1] ? "}" : "");
    }
}

static void jacobian_of(pen *p, const char *name)
{
    if (p->note == TB_NOTE_TEXT) {
        tb_buf_printf(p->out, "J_%s", name);
    } else if (p->note == TB_NOTE_LATEX) {
        tb_buf_puts(p->out, name[1] ? "J_{\\mathrm{" : "J_{");
        latex_word(p, name);
        tb_buf_puts(p->out, name[1] ? "}}" : "}");
    } else {
        tb_buf_printf(p->out, "<msub><mi>J</mi><mi>%s</mi></msub>", name);
    }
}

static void stream_x(pen *p)
{
    if (!p->index) {
        word(p, "x");
        return;
    }
    put(p, "x", "x_{", "<msub><mi>x</mi><mn>");
    tb_buf_printf(p->out, "%d", p->index);
    put(p, "", "}", "</mn></msub>");
}

/* True past the limits: an ellipsis stands for what follows, one for all once
 * the formula is full. */
static bool spent(pen *p)
{
    bool full = p->out->len - p->start >= PEN_BYTES;
    if (!p->full && !full && p->depth < PEN_DEPTH)
        return false;
    if (!p->full)
        put(p, "...", "\\ldots ", "<mo>&#8230;</mo>");
    p->full = p->full || full;
    return true;
}

/* --- nodes as formulas -----------------------------------------------------
 */

static void formula(pen *p, int node, bool brackets);

/* Binding strength: sums, products, minus, powers, values. */
static int strength(const tb_expr *e)
{
    if (e->kind == TB_EXPR_NEG)
        return 3;
    if (e->kind != TB_EXPR_BINARY)
        return 5;
    return e->op == '^' ? 4 : e->op == '*' || e->op == '/' ? 2 : 1;
}

static void constant(pen *p, const tb_expr *e, int least);

/* base^exponent, raised. */
static void power(pen *p, const tb_expr *e)
{
    put(p, "", "", "<msup><mrow>");
    constant(p, e->args[0].value, 5);
    put(p, "", "^{", "</mrow><mrow>");
    constant(p, e->args[1].value, 0);
    put(p, "", "}", "</mrow></msup>");
}

static void constant_call(pen *p, const tb_expr *e)
{
    bool root = tb_streq(e->name, "sqrt");
    if (root) {
        put(p, "", "\\sqrt{", "<msqrt>");
    } else {
        word(p, e->name);
        open(p);
    }
    for (int i = 0; i < e->nargs; i++) {
        if (i)
            put(p, "", ", ", "<mo>,</mo>");
        constant(p, e->args[i].value, 0);
    }
    if (root)
        put(p, "", "}", "</msqrt>");
    else
        close(p);
}

static void constant_binary(pen *p, const tb_expr *e)
{
    if (e->op == '^') {
        power(p, e);
        return;
    }
    constant(p, e->args[0].value, strength(e));
    if (e->op == '+')
        plus(p);
    else if (e->op == '-')
        minus(p);
    else if (e->op == '*')
        times(p);
    else
        put(p, "/", "/", "<mo>/</mo>");
    constant(p, e->args[1].value, strength(e) + 1);
}

/* A constant in LaTeX and MathML, in brackets where it binds looser than
 * `least`. */
static void constant(pen *p, const tb_expr *e, int least)
{
    bool brackets = strength(e) < least;
    if (spent(p))
        return;
    p->depth++;
    if (brackets)
        open(p);
    if (e->kind == TB_EXPR_NUMBER) {
        number(p, e->number);
    } else if (e->kind == TB_EXPR_NAME) {
        word(p, e->name);
    } else if (e->kind == TB_EXPR_CALL) {
        constant_call(p, e);
    } else if (e->kind == TB_EXPR_NEG) {
        put(p, "-", "-", "<mo>-</mo>");
        constant(p, e->args[0].value, 3);
    } else {
        constant_binary(p, e);
    }
    if (brackets)
        close(p);
    p->depth--;
}

static void const_text(pen *p, const tb_attr *attr)
{
    if (attr->shown) {
        word(p, attr->shown);
    } else if (!attr->expr) {
        number(p, attr->value);
    } else if (p->note != TB_NOTE_TEXT) {
        constant(p, attr->expr, 4);
    } else {
        bool loose = strength(attr->expr) < 5;
        tb_buf_puts(p->out, loose ? "(" : "");
        tb_expr_print(attr->expr, p->out);
        tb_buf_puts(p->out, loose ? ")" : "");
    }
}

static bool is_number(const tb_attr *a, double v)
{
    if (a->expr)
        return a->expr->kind == TB_EXPR_NUMBER && a->expr->number == v;
    return a->value == v;
}

static void call(pen *p, const char *name, const int *in, int n)
{
    word(p, name);
    open(p);
    for (int i = 0; i < n && !p->full; i++) {
        if (i)
            put(p, ", ", ", ", "<mo>,</mo>");
        formula(p, in[i], false);
    }
    close(p);
}

static void affine(pen *p, const tb_node *n, bool brackets)
{
    const tb_attr *scale = &n->attr[TB_ATTR_AFFINE_SCALE];
    const tb_attr *offset = &n->attr[TB_ATTR_AFFINE_OFFSET];
    bool scaled = !is_number(scale, 1), moved = !is_number(offset, 0);
    if (brackets)
        open(p);
    bool negative = is_number(scale, -1);
    if (moved)
        const_text(p, offset);
    if (moved && negative)
        minus(p);
    else if (moved)
        plus(p);
    else if (negative)
        put(p, "-", "-", "<mo>-</mo>");
    if (scaled && !negative) {
        const_text(p, scale);
        times(p);
    }
    formula(p, n->in[0], scaled);
    if (brackets)
        close(p);
}

static void infix(pen *p, const tb_node *n, bool brackets)
{
    bool sums = n->op->jac == TB_JAC_SUM || n->op->jac == TB_JAC_DIFF;
    for (int i = 0; i < 2 && sums; i++)
        if (p->silent && p->silent[n->in[i]] &&
            (i || n->op->jac == TB_JAC_SUM)) {
            formula(p, n->in[1 - i], brackets);
            return;
        }
    bool quot = n->op->jac == TB_JAC_QUOT;
    bool prod = n->op->jac == TB_JAC_PROD || quot;
    if (brackets)
        open(p);
    formula(p, n->in[0], prod);
    if (p->full)
        ; /* the ellipsis stands for the rest */
    else if (quot)
        put(p, "/", "/", "<mo>/</mo>");
    else if (prod)
        times(p);
    else if (n->op->jac == TB_JAC_DIFF)
        minus(p);
    else
        plus(p);
    formula(p, n->in[1], prod || n->op->jac == TB_JAC_DIFF);
    if (brackets)
        close(p);
}

static const char *applied_name(const pen *p, const tb_node *n, char out[64])
{
    const char *full, *dot;
    if (n->op != &tb_op_linear)
        return n->op->symbol;
    full = p->g->nodes[n->in[1]].name; /* attn.q.weight, w.weight */
    dot = strchr(full, '.');
    if (dot && strchr(dot + 1, '.'))
        full = dot + 1;
    tb_format(out, 64, "%.*s", (int)strcspn(full, "."), full);
    return out;
}

/* attn.vector reads the same in every sublayer: vector. */
static const char *short_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* The row that a mix takes, as the text counts. */
static void mix_row(pen *p, const tb_attr *row)
{
    tb_attr from_1 = {NULL, row->value + 1, NULL};
    if (row->expr)
        from_1 = (tb_attr){row->expr->args[0].value, 0, NULL};
    if (row->expr && p->note != TB_NOTE_TEXT)
        constant(p, from_1.expr, 0);
    else if (row->expr)
        tb_expr_print(from_1.expr, p->out);
    else
        number(p, from_1.value);
}

static bool has_rows(const pen *p, const tb_node *mix)
{
    const tb_node *w = &p->g->nodes[mix->in[mix->nin - 1]];
    return w->shape.kind == TB_SHAPE_MATRIX ||
           (w->shape.kind == TB_SHAPE_STREAM &&
            w->shape.width > (size_t)(mix->nin - 1));
}

/* mix(w, a, b), mix(w, a, b, row=2) */
static void mix(pen *p, const tb_node *n)
{
    int in[TB_OP_INPUTS];
    in[0] = n->in[n->nin - 1];
    memcpy(in + 1, n->in, (size_t)(n->nin - 1) * sizeof *in);
    word(p, n->op->symbol);
    open(p);
    for (int i = 0; i < n->nin && !p->full; i++) {
        if (i)
            put(p, ", ", ", ", "<mo>,</mo>");
        formula(p, in[i], false);
    }
    if (has_rows(p, n) && !p->full) {
        put(p,
            ", row=", ", \\mathrm{row}=", "<mo>,</mo><mi>row</mi><mo>=</mo>");
        mix_row(p, &n->attr[TB_ATTR_MIX_ROW]);
    }
    close(p);
}

/* w[2], w[2,1]: the weight of one stream */
static void mix_weight(pen *p, const tb_jx *x)
{
    const tb_node *n = &p->g->nodes[x->at];
    put(p, "", "{", "<msub><mrow>");
    formula(p, x->node, true);
    put(p, "[", "}_{", "</mrow><mrow>");
    if (has_rows(p, n)) {
        mix_row(p, &n->attr[TB_ATTR_MIX_ROW]);
        put(p, ",", ",", "<mo>,</mo>");
    }
    number(p, x->input + 1);
    put(p, "]", "}", "</mrow></msub>");
}

static void formula_inner(pen *p, int node, bool brackets)
{
    const tb_node *n = &p->g->nodes[node];
    char name[64];
    if (p->silent && p->silent[node]) {
        number(p, 0);
    } else if (n->region >= 0 && p->mode != TB_JAC_OPEN &&
               n->op == &tb_op_branch) {
        const tb_region *r = &p->g->regions[n->region];
        call(p, r->shown, r->in, 1);
    } else if (n->op->lane == TB_LANE_LEAF) {
        word(p, short_name(n->name));
    } else if (n->op->alias && n->op != &tb_op_stop) {
        formula(p, n->in[0], brackets);
    } else if (n->op->jac == TB_JAC_MIX) {
        mix(p, n);
    } else if (n->op->jac == TB_JAC_AFFINE) {
        affine(p, n, brackets);
    } else if (n->op->jac == TB_JAC_SUM || n->op->jac == TB_JAC_DIFF ||
               n->op->jac == TB_JAC_PROD || n->op->jac == TB_JAC_QUOT) {
        infix(p, n, brackets);
    } else {
        int inputs = n->op->jac == TB_JAC_MULTI ? n->nin : 1;
        call(p, applied_name(p, n, name), n->in, inputs);
    }
}

static void formula(pen *p, int node, bool brackets)
{
    if (node == p->entry) {
        stream_x(p);
        return;
    }
    if (spent(p))
        return;
    p->depth++;
    formula_inner(p, node, brackets);
    p->depth--;
}

/* --- Jacobian terms ---------------------------------------------------------
 */

static void term(pen *p, const tb_jx *x, bool brackets);

static void slope(pen *p, const tb_jx *x)
{
    put(p, "diag(", "\\mathrm{diag}(",
        "<mi>diag</mi><mo stretchy=\"false\">(</mo>");
    if (x->kind == TB_JX_SLOPE) {
        word(p, x->name);
        put(p, "'", "'", "<mo>&#8242;</mo>");
        open(p);
    }
    formula(p, x->node, false);
    if (x->kind == TB_JX_SLOPE)
        close(p);
    close(p);
}

static void product(pen *p, const tb_jx *x, int first)
{
    for (int i = first; i < x->n && !p->full; i++) {
        if (i > first)
            times(p);
        term(p, x->items[i], true);
    }
}

/* (-1) A as a term of a sum is written - A. */
static bool negated(const tb_jx *x)
{
    return x->kind == TB_JX_PROD && x->items[0]->kind == TB_JX_COEF &&
           is_number(x->items[0]->attr, -1);
}

static void sum_terms(pen *p, const tb_jx *x)
{
    for (int i = 0; i < x->n && !p->full; i++) {
        const tb_jx *item = x->items[i];
        bool flip = negated(item), positive = (x->signs[i] > 0) != flip;
        if (i && positive)
            plus(p);
        else if (i)
            minus(p);
        else if (!positive)
            put(p, "-", "-", "<mo>-</mo>");
        if (flip)
            product(p, item, 1);
        else
            term(p, item, x->signs[i] < 0);
    }
}

static void weight(pen *p, const tb_jx *x)
{
    if (p->note == TB_NOTE_TEXT)
        tb_buf_printf(p->out, "W_%s", x->name);
    else if (p->note == TB_NOTE_LATEX)
        tb_buf_printf(p->out, "W_{%s}", x->name);
    else
        tb_buf_printf(p->out, "<msub><mi>W</mi><mi>%s</mi></msub>", x->name);
}

static void coefficient(pen *p, const tb_jx *x)
{
    if (x->inverse)
        put(p, "(1/", "(1/", "<mo>(</mo><mn>1</mn><mo>/</mo>");
    if (x->kind == TB_JX_COEF)
        const_text(p, x->attr);
    else if (p->g->nodes[x->at].op == &tb_op_mix)
        mix_weight(p, x);
    else
        formula(p, x->node, true);
    if (x->inverse)
        close(p);
}

static void term_inner(pen *p, const tb_jx *x, bool brackets)
{
    switch (x->kind) {
    case TB_JX_ZERO:
        number(p, 0);
        break;
    case TB_JX_ONE:
        word(p, "I");
        break;
    case TB_JX_SUM:
        if (brackets)
            open(p);
        sum_terms(p, x);
        if (brackets)
            close(p);
        break;
    case TB_JX_PROD:
        product(p, x, 0);
        break;
    case TB_JX_SYM:
        jacobian_of(p, x->name);
        if (x->node >= 0) {
            open(p);
            formula(p, x->node, false);
            close(p);
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
        weight(p, x);
        break;
    case TB_JX_TOKENS:
        put(p, "diag(", "\\mathrm{diag}(",
            "<mi>diag</mi><mo stretchy=\"false\">(</mo>");
        mix_weight(p, x);
        close(p);
        break;
    }
}

static void term(pen *p, const tb_jx *x, bool brackets)
{
    if (spent(p))
        return;
    p->depth++;
    term_inner(p, x, brackets);
    p->depth--;
}

/* --- whole formulas ----------------------------------------------------------
 */

static void print_factor(tb_notation note, const tb_jacobian *j, int f,
                         int index, bool brackets, tb_buf *out)
{
    pen p = {.note = note,
             .out = out,
             .g = j->graph,
             .entry = j->graph->boundaries[f].node,
             .index = index,
             .mode = j->mode,
             .silent = j->mode == TB_JAC_SILENT ? j->silent : NULL,
             .start = out->len};
    term(&p, j->factors[f], brackets);
}

static bool same_steps(tb_ctx *ctx, const tb_jacobian *j)
{
    tb_buf first, other;
    bool same = true;
    tb_buf_init(&first, ctx);
    tb_buf_init(&other, ctx);
    print_factor(TB_NOTE_TEXT, j, 0, 0, false, &first);
    for (int i = 1; i < j->nfactors && same; i++) {
        other.len = 0;
        print_factor(TB_NOTE_TEXT, j, i, 0, false, &other);
        same = first.len == other.len &&
               memcmp(tb_buf_str(&first), tb_buf_str(&other), first.len) == 0;
    }
    tb_buf_clear(&first);
    tb_buf_clear(&other);
    return same;
}

int tb_jacobian_steps(tb_ctx *ctx, const tb_jacobian *j)
{
    return same_steps(ctx, j) ? 1 : j->nfactors;
}

static void print_product(tb_ctx *ctx, const tb_jacobian *j, tb_notation note,
                          tb_buf *out)
{
    int n = tb_jacobian_steps(ctx, j);
    pen p = {.note = note, .out = out, .start = out->len};
    for (int i = n - 1; i >= 0 && !spent(&p); i--) {
        print_factor(note, j, i, n > 1 ? i : 0, n > 1, out);
        if (i)
            times(&p);
    }
}

static void escape(const char *s, tb_buf *out)
{
    for (; *s; s++)
        if (*s == '&' || *s == '<' || *s == '"')
            tb_buf_printf(out, "&#%d;", *s);
        else
            tb_buf_putc(out, *s);
}

tb_status tb_jacobian_print(tb_ctx *ctx, const tb_jacobian *j, tb_notation note,
                            tb_buf *out)
{
    if (note == TB_NOTE_MATHML) {
        tb_buf alt;
        tb_buf_init(&alt, ctx);
        print_product(ctx, j, TB_NOTE_TEXT, &alt);
        tb_buf_puts(out, "<math xmlns=\"http://www.w3.org/1998/Math/MathML\" "
                         "display=\"block\" alttext=\"");
        escape(tb_buf_str(&alt), out);
        tb_buf_puts(out, "\"><mrow>");
        tb_buf_clear(&alt);
    }
    print_product(ctx, j, note, out);
    if (note == TB_NOTE_MATHML)
        tb_buf_puts(out, "</mrow></math>");
    return tb_buf_status(out);
}

tb_status tb_formula_print(tb_ctx *ctx, const tb_graph *g, int node,
                           tb_notation note, tb_buf *out)
{
    int entry = g->boundaries[0].node;
    (void)ctx;
    for (int i = 0; i < g->nboundaries; i++)
        if (g->boundaries[i].node < node)
            entry = g->boundaries[i].node;
    pen p = {
        .note = note, .out = out, .g = g, .entry = entry, .start = out->len};
    formula(&p, node, false);
    return tb_buf_status(out);
}
