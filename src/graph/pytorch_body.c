/* SPDX-License-Identifier: MIT */
/* Nodes to statements of a method. Nodes that the text gave a name, and those
 * read more than once, get a line; the rest is written in place. */
#include "graph/pytorch_parts.h"

enum {
    SHORT = 16, /* not worth a line of its own */
    LEAST = 24  /* columns, however long the names are */
};

static const tb_py_text nothing = {"", TB_PY_NAME};

/* --- expressions -------------------------------------------------------- */

/* A parameter as this class reaches it: its own, or an argument. */
static tb_py_text parameter(tb_py_body *b, int node)
{
    const tb_graph *g = b->t->g;
    const char *name = g->params[g->nodes[node].param].name;
    const char *self = tb_py_self(b->t, g->nodes[node].param);
    if (b->region >= 0)
        name = tb_py_below(name, g->regions[b->region].name);
    if (!name) /* an argument is held */
        return nothing;
    return (tb_py_text){tb_py_path(b->py, self, name, true), TB_PY_CALL};
}

/* The module that owns a parameter; a linear may come as an argument. */
static const char *module(tb_py_body *b, int node)
{
    const tb_graph *g = b->t->g;
    const char *name = g->params[g->nodes[node].param].name;
    const char *self = tb_py_self(b->t, g->nodes[node].param);
    if (b->held[node] >= 0)
        return b->vars[b->held[node]].name;
    if (b->region >= 0)
        name = tb_py_below(name, g->regions[b->region].name);
    return name ? tb_py_path(b->py, self, tb_py_parent(b->py, name), false)
                : "";
}

/* Letters of a row's text, see pytorch_parts.h. */
static const char *spell(tb_py_body *b, const tb_node *n, const char *text,
                         const tb_py_text *in)
{
    static const struct {
        char mark;
        int over; /* how much tighter than the op */
        int least;
    } marks[] = {
        {'$', -1, TB_PY_SUM}, {'<', 0, 0}, {'>', 1, 0}, {'@', -1, TB_PY_CALL}};
    const tb_py_row *row = tb_py_row_of(n->op);
    tb_buf out;
    tb_buf_init(&out, b->py->ctx);
    for (const char *c = text; *c; c++) {
        size_t m = 0;
        while (m < TB_LEN(marks) && marks[m].mark != *c)
            m++;
        char what = m < TB_LEN(marks) ? c[1] : ' ';
        if (what >= '0' && what < '0' + TB_OP_INPUTS) {
            int least =
                marks[m].over < 0 ? marks[m].least : row->bind + marks[m].over;
            tb_buf_puts(&out, tb_py_brackets(b->py, in[what - '0'], least));
            c++;
        } else if (what == 'M') {
            tb_buf_puts(&out, module(b, n->in[1]));
            c++;
        } else if (what == 'A') {
            tb_buf_puts(&out, tb_py_attr(b, n, &n->attr[0]).s);
            c++;
        } else {
            tb_buf_putc(&out, *c);
        }
    }
    return tb_py_take(b->py, &out);
}

/* An operand on a line of its own. */
static tb_py_text apart(tb_py_body *b, int node, tb_py_text t, const char *want)
{
    if (t.bind == TB_PY_NAME || b->py->status != TB_OK)
        return t;
    const char *name = want && tb_py_is_free(b, want)
                           ? want
                           : tb_py_fresh(b, want ? want : "t");
    tb_py_line(b, tb_py_printf(b->py, "%s = %s", name, t.s));
    tb_py_hold(b, name, node);
    return (tb_py_text){name, TB_PY_NAME};
}

/* The i-th word of "q k v", NULL beyond. */
static const char *word_at(tb_py *py, const char *words, int i)
{
    for (; words && i > 0; i--) {
        words = strchr(words, ' ');
        words += words != NULL;
    }
    return words ? tb_py_printf(py, "%.*s", (int)strcspn(words, " "), words)
                 : NULL;
}

static tb_py_text compose(tb_py_body *b, const tb_node *n, const tb_py_row *row,
                          const char *text, const tb_py_text *in)
{
    if (row->bare && n->nin < 2)
        return row->bare(b, n, in);
    if (row->write)
        return row->write(b, n, in);
    return (tb_py_text){spell(b, n, text, in), row->bind};
}

/* Do its own parameters belong to a module of another op? */
static bool is_loose(const tb_py_body *b, const tb_node *n,
                     const tb_py_row *row)
{
    const tb_graph *g = b->t->g;
    if (!row->make || n->nin < 2)
        return false;
    return g->params[g->nodes[n->in[1]].param].role != row->role;
}

static tb_py_text operation(tb_py_body *b, int node, const tb_py_row *row)
{
    const tb_node *n = &b->t->g->nodes[node];
    tb_py_text in[TB_OP_INPUTS];
    bool loose = is_loose(b, n, row), full = row->full && n->nin == row->nin;
    const char *text = loose ? row->loose : full ? row->full : row->text;
    if (loose && !text) {
        tb_py_fail(b->py,
                   TB_FAIL(b->py->ctx, TB_ERR_INPUT,
                           "export: %s of another op's weight", n->op->name));
        return nothing;
    }
    bool bare = row->bare && n->nin < 2;
    b->py->uses |=
        (bare ? TB_PY_USES_NORMED : row->uses) | (loose ? TB_PY_USES_F : 0);
    for (int i = 0; i < TB_OP_INPUTS; i++)
        in[i] = nothing;
    for (int i = 0; i < n->nin; i++) {
        bool own = i > 0 && row->make && !loose; /* the module has it */
        if (own && b->t->g->nodes[n->in[i]].param >= 0)
            continue;
        const char *word = word_at(b->py, row->hold, i);
        in[i] = tb_py_value(b, n->in[i]);
        if (word)
            in[i] = apart(b, n->in[i], in[i], word);
    }
    const char *notes = b->notes;
    tb_py_text t = compose(b, n, row, text, in);
    const size_t least[] = {SHORT, 0}; /* the long ones, then all */
    for (size_t k = 0; k < TB_LEN(least) && strlen(t.s) > b->room; k++) {
        b->notes = notes; /* composed once more */
        for (int i = 0; i < n->nin; i++)
            if (strlen(in[i].s) > least[k] && in[i].bind < TB_PY_NAME)
                in[i] = apart(b, n->in[i], in[i], NULL);
        t = compose(b, n, row, text, in);
    }
    return t;
}

/* ", y, memory": what a sublayer reads beside its argument. */
static const char *further(tb_py_body *b, int region)
{
    const tb_py_region *p = &b->t->regions[region];
    tb_buf out;
    tb_buf_init(&out, b->py->ctx);
    for (int i = 0; i < p->nfree; i++) {
        const tb_node *n = &b->t->g->nodes[p->free[i]];
        bool linear =
            n->param >= 0 && b->t->g->params[n->param].role == TB_ROLE_MATRIX;
        const char *list = tb_py_list(b->py, n);
        const char *text =
            linear ? module(b, p->free[i]) : tb_py_value(b, p->free[i]).s;
        if (!list || !tb_py_same_list(b->t->g, p->free, i))
            tb_buf_printf(&out, ", %s", list ? list : text);
    }
    return tb_py_take(b->py, &out);
}

/* A sublayer's call. */
static tb_py_text call(tb_py_body *b, int region)
{
    const tb_region *r = &b->t->g->regions[region];
    tb_py_text x = tb_py_value(b, r->in[0]);
    const char *self = tb_py_path(b->py, "self", r->name, false);
    const char *method = b->t->regions[region].method;
    const char *rest = further(b, region);
    if (strlen(x.s) + strlen(self) + strlen(method) + strlen(rest) + 2 >
        b->room)
        x = apart(b, r->in[0], x, NULL);
    return (tb_py_text){
        tb_py_printf(b->py, "%s%s(%s%s)", self, method, x.s, rest), TB_PY_CALL};
}

/* An option or input the row does not know would be lost in silence. */
static bool is_known(tb_py_body *b, const tb_node *n, const tb_py_row *row)
{
    const char *what = NULL;
    if (!row)
        what = "";
    else if (n->nin > row->nin)
        what = " of more inputs";
    for (int i = row ? row->nattr : 0; !what && i < TB_OP_ATTRS; i++)
        if (n->attr[i].expr || n->attr[i].value != 0)
            what = tb_py_printf(b->py, " with %s", n->op->attr_name[i]);
    if (what)
        tb_py_fail(b->py, TB_FAIL(b->py->ctx, TB_ERR_INPUT,
                                  "export: %s%s has no spelling in PyTorch yet",
                                  n->op->name, what));
    return !what;
}

static tb_py_text build(tb_py_body *b, int node)
{
    const tb_node *n = &b->t->g->nodes[node];
    const tb_py_row *row = tb_py_row_of(n->op);
    if (b->py->status != TB_OK)
        return nothing;
    if (!is_known(b, n, row))
        return nothing;
    if (n->param >= 0)
        return parameter(b, node);
    if (n->region >= 0 && b->region < 0)
        return call(b, n->region);
    if (row->text || row->write)
        return operation(b, node, row);
    if (n->nin)
        return tb_py_value(b, n->in[0]);
    tb_py_fail(b->py,
               TB_FAIL(b->py->ctx, TB_ERR_INPUT,
                       "export: %s is read where it is not known", n->name));
    return nothing;
}

tb_py_text tb_py_value(tb_py_body *b, int node)
{
    int var = b->held[node];
    b->left[node]--;
    if (var < 0)
        return build(b, node);
    b->vars[var].stamp = b->now;
    return (tb_py_text){b->vars[var].name, TB_PY_NAME};
}

/* --- statements --------------------------------------------------------- */

/* A statement begins: "name = ...". A part of it may move to "t00 = ...". */
static void begin(tb_py_body *b, const char *name)
{
    size_t n = strlen(name), least = strlen("t00");
    size_t taken = TB_PY_INDENT + (n > least ? n : least) + 3;
    b->now++;
    b->room = taken + LEAST < TB_PY_COLUMNS ? TB_PY_COLUMNS - taken : LEAST;
}

static void assign(tb_py_body *b, const char *name, int node)
{
    begin(b, name ? name : "t000");
    tb_py_text t = build(b, node);
    if (b->py->status != TB_OK)
        return;
    if (!name)
        name = tb_py_fresh(b, "t");
    if (!tb_streq(name, t.s)) {
        tb_py_keep(b, name);
        tb_py_line(b, tb_py_printf(b->py, "%s = %s", name, t.s));
    }
    tb_py_hold(b, name, node);
}

static bool in_scope(const tb_py_body *b, int node)
{
    const tb_graph *g = b->t->g;
    int region = g->nodes[node].region;
    if (b->region >= 0)
        return region == b->region && node != g->regions[region].out;
    return region < 0 || node == g->regions[region].out;
}

static bool needs_line(const tb_py_body *b, int node)
{
    const tb_node *n = &b->t->g->nodes[node];
    if (!in_scope(b, node) || n->op->lane == TB_LANE_LEAF || !b->live[node] ||
        b->held[node] >= 0 || b->left[node] <= 0)
        return false;
    return (n->name && b->region < 0) || b->left[node] > 1;
}

void tb_py_body_run(tb_py_body *b)
{
    const tb_graph *g = b->t->g;
    for (int i = 0; i < g->nnodes && b->py->status == TB_OK; i++)
        if (needs_line(b, i)) {
            const char *name = b->region < 0 ? g->nodes[i].name : NULL;
            assign(b, name ? tb_py_local(b->py, name) : NULL, i);
        }
}

void tb_py_body_return(tb_py_body *b, int node)
{
    begin(b, "retu"); /* "return " */
    tb_py_line(b, tb_py_printf(b->py, "return %s", tb_py_value(b, node).s));
}

/* The output that is element i of a list, NULL where one stays as it came. */
static const tb_output *element_out(const tb_graph *g, const tb_list *l, int i)
{
    char name[160];
    tb_format(name, sizeof name, "%.140s.%d", l->name, i);
    for (int o = g->ncarried; o < g->noutputs; o++)
        if (tb_streq(g->outputs[o].name, name))
            return &g->outputs[o];
    return NULL;
}

/* "[a, b]", "past + [a]", "past[:2] + [a]", "[past[0], a, past[2]]" */
static const char *list_text(tb_py_body *b, const tb_list *l)
{
    const tb_graph *g = b->t->g;
    const char *name = tb_py_local(b->py, l->name);
    int kept = 0;
    tb_buf out;
    tb_buf_init(&out, b->py->ctx);
    while (kept < l->n && !element_out(g, l, kept))
        kept++;
    if (kept)
        tb_buf_puts(&out, name);
    if (kept && kept < l->entered)
        tb_buf_printf(&out, "[:%d]", kept);
    for (int i = kept; i < l->n; i++) {
        const tb_output *o = element_out(g, l, i);
        tb_buf_puts(&out, i > kept ? ", " : kept ? " + [" : "[");
        if (o)
            tb_buf_puts(&out, tb_py_value(b, o->node).s);
        else
            tb_buf_printf(&out, "%s[%d]", name, i);
    }
    tb_buf_puts(&out, kept < l->n ? "]" : l->n ? "" : "[]");
    return tb_py_take(b->py, &out);
}

void tb_py_body_leave(tb_py_body *b)
{
    const tb_graph *g = b->t->g;
    tb_buf text;
    tb_buf_init(&text, b->py->ctx);
    begin(b, "retu");
    for (int i = 0; i < g->ncarried; i++)
        tb_buf_printf(&text, "%s%s", i ? ", " : "return ",
                      tb_py_value(b, g->outputs[i].node).s);
    for (int i = 0; i < g->nlists; i++)
        tb_buf_printf(&text, ", %s", list_text(b, &g->lists[i]));
    tb_py_line(b, tb_py_take(b->py, &text));
}

void tb_py_body_settle(tb_py_body *b)
{
    const tb_graph *g = b->t->g;
    tb_buf to, from;
    int count = 0;
    tb_buf_init(&to, b->py->ctx);
    tb_buf_init(&from, b->py->ctx);
    begin(b, g->outputs[0].name);
    for (int i = 0; i < g->ncarried + g->nlists; i++) {
        bool list = i >= g->ncarried;
        const tb_list *l = list ? &g->lists[i - g->ncarried] : NULL;
        const char *name =
            tb_py_local(b->py, list ? l->name : g->outputs[i].name);
        const char *text =
            list ? list_text(b, l) : tb_py_value(b, g->outputs[i].node).s;
        if (tb_streq(text, name))
            continue;
        tb_buf_printf(&to, "%s%s", count ? ", " : "", name);
        tb_buf_printf(&from, "%s%s", count++ ? ", " : "", text);
    }
    const char *left = tb_py_take(b->py, &to),
               *right = tb_py_take(b->py, &from);
    if (count)
        tb_py_line(b, tb_py_printf(b->py, "%s = %s", left, right));
}

/* --- beginning ---------------------------------------------------------- */

static void mark_live(tb_py_body *b, const int *wanted, int n)
{
    const tb_graph *g = b->t->g;
    for (int i = 0; i < n; i++)
        b->live[wanted[i]] = 1;
    for (int i = g->nnodes - 1; i >= 0; i--)
        if (b->live[i])
            for (int j = 0; j < g->nodes[i].nin; j++)
                b->live[g->nodes[i].in[j]] = 1;
}

static void count_uses(tb_py_body *b, const int *wanted, int n)
{
    const tb_graph *g = b->t->g;
    for (int i = 0; i < n; i++)
        b->left[wanted[i]]++;
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *node = &g->nodes[i];
        if (!b->live[i] || (b->region >= 0 && node->region != b->region))
            continue;
        if (node->region < 0 || b->region >= 0) {
            for (int j = 0; j < node->nin; j++)
                b->left[node->in[j]]++;
        } else if (g->regions[node->region].out == i) {
            const tb_py_region *r = &b->t->regions[node->region];
            b->left[g->regions[node->region].in[0]]++;
            for (int j = 0; j < r->nfree; j++)
                b->left[r->free[j]]++;
        }
    }
}

void tb_py_body_begin(tb_py_body *b, tb_py_graph *t, int region,
                      const int *wanted, int nwanted, tb_buf *out)
{
    size_t n = (size_t)t->g->nnodes;
    *b = (tb_py_body){
        .t = t, .py = t->py, .region = region, .out = out, .now = 1};
    b->left = tb_py_alloc(b->py, n, sizeof *b->left);
    b->held = tb_py_alloc(b->py, n, sizeof *b->held);
    b->live = tb_py_alloc(b->py, n, sizeof *b->live);
    b->heads = tb_py_alloc(b->py, TB_PY_HEADS, sizeof *b->heads);
    if (b->py->status != TB_OK)
        return;
    for (size_t i = 0; i < n; i++)
        b->held[i] = -1;
    for (size_t i = 0; i < TB_PY_HEADS; i++)
        b->heads[i] = -1;
    mark_live(b, wanted, nwanted);
    count_uses(b, wanted, nwanted);
}
