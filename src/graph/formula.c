/* SPDX-License-Identifier: MIT */
/* A node as a formula of the streams that its step starts from. */
#include "graph/pen.h"

static void call(tb_pen *p, const char *name, const int *in, int n)
{
    tb_pen_word(p, name);
    tb_pen_open(p);
    for (int i = 0; i < n && !p->full; i++) {
        if (i)
            tb_pen_put(p, ", ", ", ", "<mo>,</mo>");
        tb_pen_formula(p, in[i], false);
    }
    tb_pen_close(p);
}

static void affine(tb_pen *p, const tb_node *n, bool brackets)
{
    const tb_attr *scale = &n->attr[TB_ATTR_AFFINE_SCALE];
    const tb_attr *offset = &n->attr[TB_ATTR_AFFINE_OFFSET];
    bool scaled = !tb_pen_is(scale, 1), moved = !tb_pen_is(offset, 0);
    moved = moved && !(p->degree && p->degree[n->in[0]] > 0);
    if (brackets)
        tb_pen_open(p);
    bool negative = tb_pen_is(scale, -1);
    if (moved)
        tb_pen_constant(p, offset);
    if (moved && negative)
        tb_pen_minus(p);
    else if (moved)
        tb_pen_plus(p);
    else if (negative)
        tb_pen_put(p, "-", "-", "<mo>&#8722;</mo>");
    if (scaled && !negative) {
        tb_pen_constant(p, scale);
        tb_pen_times(p);
    }
    tb_pen_formula(p, n->in[0], scaled);
    if (brackets)
        tb_pen_close(p);
}

/* The only operand of a sum that counts, -1: both do. */
static int louder(const tb_pen *p, const tb_node *n)
{
    int l = p->degree ? p->degree[n->in[0]] : 0;
    int r = p->degree ? p->degree[n->in[1]] : 0;
    return l > r ? 0 : r > l ? 1 : -1;
}

static void infix(tb_pen *p, const tb_node *n, bool brackets)
{
    bool sums = n->op->jac == TB_JAC_SUM || n->op->jac == TB_JAC_DIFF;
    int only = sums ? louder(p, n) : -1;
    if (only >= 0) {
        bool negative = only == 1 && n->op->jac == TB_JAC_DIFF;
        if (negative)
            tb_pen_put(p, "-", "-", "<mo>&#8722;</mo>");
        tb_pen_formula(p, n->in[only], brackets || negative);
        return;
    }
    for (int i = 0; i < 2 && sums; i++)
        if (p->silent && p->silent[n->in[i]] &&
            (i || n->op->jac == TB_JAC_SUM)) {
            tb_pen_formula(p, n->in[1 - i], brackets);
            return;
        }
    bool quot = n->op->jac == TB_JAC_QUOT;
    bool prod = n->op->jac == TB_JAC_PROD || quot;
    if (brackets)
        tb_pen_open(p);
    tb_pen_formula(p, n->in[0], prod);
    if (p->full)
        ; /* the ellipsis stands for the rest */
    else if (quot)
        tb_pen_put(p, "/", "/", "<mo>/</mo>");
    else if (prod)
        tb_pen_times(p);
    else if (n->op->jac == TB_JAC_DIFF)
        tb_pen_minus(p);
    else
        tb_pen_plus(p);
    tb_pen_formula(p, n->in[1], prod || n->op->jac == TB_JAC_DIFF);
    if (brackets)
        tb_pen_close(p);
}

/* What a function is where its argument grows without end. */
static const char *limit_name(const tb_op *op)
{
    static const struct {
        const tb_op *op;
        const char *name;
    } limits[] = {{&tb_op_tanh, "sign"},
                  {&tb_op_sigmoid, "step"},
                  {&tb_op_gelu, "relu"},
                  {&tb_op_gelu_tanh, "relu"},
                  {&tb_op_silu, "relu"}};
    for (size_t i = 0; i < TB_LEN(limits); i++)
        if (limits[i].op == op)
            return limits[i].name;
    return op->symbol;
}

static const char *applied_name(const tb_pen *p, const tb_node *n, char out[64])
{
    const char *full, *dot;
    if (p->degree && p->degree[n->in[0]] > 0 && n->op != &tb_op_linear)
        return limit_name(n->op);
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

/* Element 2 of a list: past[2]. */
static void element(tb_pen *p, const char *name)
{
    const char *dot = strchr(name, '.');
    char list[64];
    tb_format(list, sizeof list, "%.*s", (int)(dot - name), name);
    tb_pen_put(p, "", "{", "<msub><mrow>");
    tb_pen_word(p, list);
    tb_pen_put(p, "[", "}_{", "</mrow><mn>");
    tb_buf_puts(p->out, dot + 1);
    tb_pen_put(p, "]", "}", "</mn></msub>");
}

/* The row that a mix takes, as the text counts. */
static void mix_row(tb_pen *p, const tb_attr *row)
{
    tb_attr from_1 = {NULL, row->value + 1, NULL};
    if (row->expr)
        from_1 = (tb_attr){row->expr->args[0].value, 0, NULL};
    if (row->expr && p->note != TB_NOTE_TEXT)
        tb_pen_expr(p, from_1.expr, 0);
    else if (row->expr)
        tb_expr_print(from_1.expr, p->out);
    else
        tb_pen_number(p, from_1.value);
}

static size_t mix_columns(const tb_node *mix)
{
    double of = mix->attr[TB_ATTR_MIX_OF].value;
    return of > 0 ? (size_t)of : (size_t)(mix->nin - 1);
}

static bool has_rows(const tb_pen *p, const tb_node *mix)
{
    const tb_node *w = &p->g->nodes[mix->in[mix->nin - 1]];
    return w->shape.kind == TB_SHAPE_MATRIX ||
           (w->shape.kind == TB_SHAPE_STREAM &&
            w->shape.width > mix_columns(mix));
}

/* mix(w, a, b), mix(w, a, b, row=2) */
static void mix(tb_pen *p, const tb_node *n)
{
    int in[TB_OP_INPUTS];
    in[0] = n->in[n->nin - 1];
    memcpy(in + 1, n->in, (size_t)(n->nin - 1) * sizeof *in);
    tb_pen_word(p, n->op->symbol);
    tb_pen_open(p);
    for (int i = 0; i < n->nin && !p->full; i++) {
        if (i)
            tb_pen_put(p, ", ", ", ", "<mo>,</mo>");
        tb_pen_formula(p, in[i], false);
    }
    if (has_rows(p, n) && !p->full) {
        tb_pen_put(p, ", row=", ", \\mathrm{row}=",
                   "<mo>,</mo><mi>row</mi><mo>=</mo>");
        mix_row(p, &n->attr[TB_ATTR_MIX_ROW]);
    }
    tb_pen_close(p);
}

void tb_pen_weight(tb_pen *p, int mix, int i)
{
    const tb_node *n = &p->g->nodes[mix];
    tb_pen_put(p, "", "{", "<msub><mrow>");
    tb_pen_formula(p, n->in[n->nin - 1], true);
    tb_pen_put(p, "[", "}_{", "</mrow><mrow>");
    if (has_rows(p, n)) {
        mix_row(p, &n->attr[TB_ATTR_MIX_ROW]);
        tb_pen_put(p, ",", ",", "<mo>,</mo>");
    }
    tb_pen_number(p, n->attr[TB_ATTR_MIX_FIRST].value + i + 1);
    tb_pen_put(p, "]", "}", "</mrow></msub>");
}

static void formula_inner(tb_pen *p, int node, bool brackets)
{
    const tb_node *n = &p->g->nodes[node];
    char name[64];
    if (p->silent && p->silent[node]) {
        tb_pen_number(p, 0);
    } else if (n->region >= 0 && p->mode != TB_JAC_OPEN &&
               n->op == &tb_op_branch) {
        const tb_region *r = &p->g->regions[n->region];
        call(p, r->shown, r->in, 1);
    } else if (n->op == &tb_op_input && strchr(n->name, '.')) {
        element(p, n->name);
    } else if (n->op->lane == TB_LANE_LEAF) {
        tb_pen_indexed(p, short_name(n->name), 0);
    } else if (n->op->alias && n->op != &tb_op_stop) {
        tb_pen_formula(p, n->in[0], brackets);
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

/* The stream that a node is at the start of the step, -1: none. */
static int entry_of(const tb_pen *p, int node)
{
    for (int i = 0; i < p->nentries; i++)
        if (p->entries[i] == node)
            return i;
    return -1;
}

/* A stream that enters the layer keeps its plain name. */
static void stream(tb_pen *p, int i)
{
    bool own = p->g->nodes[p->entries[i]].op == &tb_op_input;
    tb_pen_indexed(p, p->streams[i], own ? 0 : p->index);
    if (!own && p->index && p->names)
        p->names->entry_used[p->step * p->nentries + i] = true;
}

static tb_pen_name *name_of(const tb_pen *p, int node)
{
    for (int i = 0; p->names && i < p->names->n; i++)
        if (p->names->item[i].node == node)
            return &p->names->item[i];
    return NULL;
}

static void write(tb_pen *p, int node, bool brackets)
{
    size_t before = p->out->len;
    tb_pen_names *n = p->names;
    if (tb_pen_spent(p))
        return;
    p->depth++;
    formula_inner(p, node, brackets);
    p->depth--;
    if (n && n->count) {
        n->count[node]++;
        n->length[node] = p->out->len - before;
        n->step[node] = p->step;
    }
}

void tb_pen_define(tb_pen *p, int node)
{
    write(p, node, false);
}

void tb_pen_formula(tb_pen *p, int node, bool brackets)
{
    int entry = entry_of(p, node);
    tb_pen_name *name = name_of(p, node);
    if (entry >= 0) {
        stream(p, entry);
    } else if (name) {
        name->used = true;
        tb_pen_indexed(p, name->name, name->index);
    } else {
        write(p, node, brackets);
    }
}

tb_status tb_formula_print(tb_ctx *ctx, const tb_graph *g, int node,
                           tb_notation note, tb_buf *out)
{
    static const char *const x[] = {"x"};
    int entry = g->boundaries[0].node;
    (void)ctx;
    for (int i = 0; i < g->nboundaries; i++)
        if (g->boundaries[i].node < node)
            entry = g->boundaries[i].node;
    tb_pen p = {.note = note,
                .out = out,
                .g = g,
                .entries = &entry,
                .streams = x,
                .nentries = 1,
                .start = out->len,
                .most = TB_PEN_BYTES};
    tb_pen_formula(&p, node, false);
    return tb_buf_status(out);
}
