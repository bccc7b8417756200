/* SPDX-License-Identifier: MIT */
/* Constructors: a module per parameter name, so that the names of the file
 * are ours; and how weights start. */
#include "graph/pytorch_parts.h"

/* --- who owns what ------------------------------------------------------ */

/* The name of the sublayer whose class makes the parameter, or NULL. */
static const char *owner_of(const tb_py_graph *t, int param)
{
    int node = t->consumer[param];
    int region = node < 0 ? -1 : t->g->nodes[node].region;
    if (region < 0)
        return NULL;
    const char *name = t->g->regions[region].name;
    return tb_py_below(t->g->params[param].name, name) ? name : NULL;
}

bool tb_py_has(const tb_py_graph *t, int param, const char *name)
{
    return tb_streq(owner_of(t, param), name);
}

const char *tb_py_self(const tb_py_graph *t, int param)
{
    return t->g->params[param].shared ? "self" : t->self;
}

/* Only what the whole model has once is met again. */
static bool is_made(const tb_py_graph *t, int param)
{
    const tb_param *p = &t->g->params[param];
    for (const tb_py_graph *b = t->before; p->shared && b; b = b->before)
        for (int i = 0; i < b->g->nparams; i++)
            if (tb_streq(b->g->params[i].name, p->name))
                return true;
    return false;
}

/* scalar, vector, matrix: a parameter of the class itself, not of a norm. */
static bool is_bare(const tb_py_graph *t, int param)
{
    tb_role r = t->g->params[param].role;
    int node = t->consumer[param];
    bool norms = node >= 0 && t->g->nodes[node].op->lane == TB_LANE_TOLL;
    return !norms &&
           (r == TB_ROLE_SCALAR || r == TB_ROLE_VECTOR || r == TB_ROLE_TABLE);
}

/* Width of what the norm at `node` takes together. */
static size_t part_width(const tb_py_graph *t, int node, tb_dim *dim)
{
    const tb_node *n = &t->g->nodes[node], *x = &t->g->nodes[n->in[0]];
    double groups =
        tb_op_has_groups(n->op) ? n->attr[TB_ATTR_NORM_GROUPS].value : 0;
    double parts = groups > 0 ? groups : 1;
    *dim = (tb_dim){x->dim.per_d / parts, x->dim.fixed / parts};
    return x->shape.width / (size_t)parts;
}

static const char *part_text(const tb_py_graph *t, int node)
{
    tb_dim dim;
    size_t width = part_width(t, node, &dim);
    return tb_py_width(t->py, width, dim);
}

/* The row whose `make` builds the module; a linear that nothing calls is one
 * all the same. */
static const tb_py_row *maker(const tb_py_graph *t, int param)
{
    int node = t->consumer[param];
    return tb_py_row_of(node < 0 ? &tb_op_linear : t->g->nodes[node].op);
}

/* --- one module --------------------------------------------------------- */

static const char *as_float(tb_py *py, double v)
{
    const char *s = tb_py_number(py, v);
    return strpbrk(s, ".en") ? s : tb_py_printf(py, "%s.0", s);
}

static const char *attr_text(tb_py_graph *t, const tb_node *n, int which)
{
    tb_py *py = t->py;
    const tb_attr *a = &n->attr[which];
    if (!a->expr && which == 0 && a->value == py->stack->sizes->s.eps)
        return "EPS";
    if (!a->expr)
        return tb_py_number(py, a->value);
    if (!tb_py_mentions(a->expr, "l"))
        return tb_py_number(py, tb_py_fold(py, a->expr, n->k));
    t->ctor_l = true;
    return tb_py_constant(py, a->expr, n->k, "l").s;
}

static const char *const modes[] = {
    "", "inside", "outside", "clamp", "clamp_square", "dtype", "none"};

/* Of a norm over tokens: what its class does not do by itself. */
static const char *batch_options(tb_py_graph *t, const tb_node *n)
{
    const double mode = n->attr[TB_ATTR_NORM_EPS_MODE].value;
    tb_buf out;
    tb_buf_init(&out, t->py->ctx);
    if (mode > TB_EPS_INSIDE)
        tb_buf_printf(&out, ", mode=\"%s\"", modes[(int)mode]);
    for (int a = TB_ATTR_BATCH_MOMENTUM; a < n->op->nattr + n->op->noption; a++)
        if (n->attr[a].expr || n->attr[a].value > 0)
            tb_buf_printf(&out, ", %s=%s", n->op->attr_name[a],
                          attr_text(t, n, a));
    return tb_py_take(t->py, &out);
}

const char *tb_py_norm_options(tb_py_graph *t, const tb_node *n)
{
    static const char *const ways[] = {"", "onepass", "onepass_clipped"};
    const double mode = n->attr[TB_ATTR_NORM_EPS_MODE].value,
                 way = n->attr[TB_ATTR_NORM_VARIANCE].value,
                 groups = n->attr[TB_ATTR_NORM_GROUPS].value;
    size_t heads = t->py->stack->sizes->s.heads;
    tb_buf out;
    if (n->op->state)
        return batch_options(t, n);
    tb_buf_init(&out, t->py->ctx);
    if (mode > 0)
        tb_buf_printf(&out, ", mode=\"%s\"", modes[(int)mode]);
    if (way > 0)
        tb_buf_printf(&out, ", variance=\"%s\"", ways[(int)way]);
    if (n->attr[TB_ATTR_NORM_UNBIASED].value != 0)
        tb_buf_puts(&out, ", unbiased=True");
    if (groups > 1)
        tb_buf_printf(&out, ", groups=%s",
                      groups == (double)heads ? "h"
                                              : tb_py_number(t->py, groups));
    if (n->op == &tb_op_layernorm && n->nin == 2)
        tb_buf_puts(&out, ", bias=False");
    t->py->uses |= out.len ? TB_PY_USES_NORMED : 0;
    return tb_py_take(t->py, &out);
}

static bool has_bias(const tb_py_graph *t, int param)
{
    int i = param + 1;
    return i < t->g->nparams && t->g->params[i].role == TB_ROLE_BIAS;
}

static const char *out_text(const tb_py_graph *t, int param)
{
    const tb_param *p = &t->g->params[param];
    tb_dim dim = t->g->nodes[p->node].dim;
    const tb_settings *s = &t->py->stack->sizes->s;
    if (t->is_tail && dim.per_d == 0 && p->shape.height == s->vocab)
        return "VOCAB";
    return tb_py_width(t->py, p->shape.height, dim);
}

static const char *in_text(const tb_py_graph *t, int param)
{
    const tb_param *p = &t->g->params[param];
    int node = t->consumer[param];
    tb_dim none = {0, 0};
    return tb_py_width(t->py, p->shape.width,
                       node < 0 ? none
                                : t->g->nodes[t->g->nodes[node].in[0]].dim);
}

static const char *letter(tb_py_graph *t, int param, char c)
{
    const tb_param *p = &t->g->params[param];
    switch (c) {
    case 'i':
        return in_text(t, param);
    case 'o':
        return out_text(t, param);
    case 'w':
        return tb_py_width(t->py, p->shape.width, t->g->nodes[p->node].dim);
    case 'b':
        return has_bias(t, param) ? "" : ", bias=False";
    case 'x':
        return part_text(t, t->consumer[param]);
    case 'O':
        return tb_py_norm_options(t, &t->g->nodes[t->consumer[param]]);
    default:
        return attr_text(t, &t->g->nodes[t->consumer[param]], 0);
    }
}

static const char *make_module(tb_py_graph *t, int param, const tb_py_row *row)
{
    tb_buf out;
    tb_buf_init(&out, t->py->ctx);
    t->py->uses |= row->uses;
    for (const char *c = row->make; *c; c++) {
        if (*c == '$')
            tb_buf_puts(&out, letter(t, param, *++c));
        else
            tb_buf_putc(&out, *c);
    }
    return tb_py_take(t->py, &out);
}

/* Is it the same in all layers of this graph? */
static bool same_start(const tb_py_graph *t, int param)
{
    const tb_py_start *first = &t->parts[t->layers[0]].starts[param];
    for (size_t i = 1; i < t->nparts; i++) {
        const tb_py_start *s = &t->parts[t->layers[i]].starts[param];
        if (s->dist != first->dist || s->value != first->value)
            return false;
    }
    return true;
}

/* The rule as written, without the value that follows it. */
static const char *rule_of(tb_py *py, const tb_py_start *s)
{
    enum { LONG = 60 };
    const char *end = strstr(s->rule, " = ");
    size_t n = end ? (size_t)(end - s->rule) : strlen(s->rule);
    if (n <= LONG)
        return tb_py_printf(py, "%.*s", (int)n, s->rule);
    for (n = LONG; n && s->rule[n - 1] == ' ';)
        n--;
    return tb_py_printf(py, "%.*s...", (int)n, s->rule);
}

/* What the module of a norm gives its scalar: as the text does. */
static double module_start(const tb_py_graph *t, int param)
{
    const char *dot = strrchr(t->g->params[param].name, '.');
    tb_dim dim;
    if (tb_streq(dot, ".length"))
        return tb_sqrt((double)part_width(t, t->consumer[param], &dim));
    return tb_streq(dot, ".alpha") ? 0.5 : 0;
}

static bool starts_ready(const tb_py_graph *t, int param)
{
    const tb_py_start *s = &t->parts[t->layers[0]].starts[param];
    tb_role role = t->g->params[param].role;
    const tb_py_row *row = maker(t, param);
    if (s->dist == TB_PY_IDENTITY && is_bare(t, param))
        return same_start(t, param);
    if (s->dist != TB_PY_CONST || !same_start(t, param))
        return false;
    if (is_bare(t, param))
        return true;
    return row && row->ready &&
           ((role == TB_ROLE_SCALAR && s->value == module_start(t, param)) ||
            (role == TB_ROLE_GAIN && s->value == 1) || role == TB_ROLE_BUFFER ||
            (role == TB_ROLE_BIAS && s->value == 0));
}

/* Its shape as arguments: "d", "4, 4". */
static const char *bare_shape(tb_py_graph *t, const tb_param *p)
{
    const char *n =
        tb_py_width(t->py, p->shape.width, t->g->nodes[p->node].dim);
    return p->shape.kind == TB_SHAPE_MATRIX
               ? tb_py_printf(t->py, "%zu, %s", p->shape.height, n)
               : n;
}

/* scalar(v), vector(v), matrix(rows, columns, v) */
static const char *make_bare(tb_py_graph *t, int param)
{
    const tb_param *p = &t->g->params[param];
    const tb_py_start *s = &t->parts[t->layers[0]].starts[param];
    bool ready = starts_ready(t, param);
    double v = ready ? s->value : 0;
    const char *n = bare_shape(t, p);
    if (ready && s->dist == TB_PY_IDENTITY)
        return tb_py_printf(t->py, "nn.Parameter(torch.eye(%s))", n);
    const char *rule = rule_of(t->py, s);
    bool plain = strcspn(rule, "NMlkdh/") == strlen(rule);
    const char *more = tb_streq(rule, "profiled") ? "; here not measured" : "";
    const char *note =
        plain || v == 0 ? "" : tb_py_printf(t->py, "  # %s%s", rule, more);
    if (v == 0 || v == 1)
        return tb_py_printf(t->py, "nn.Parameter(torch.%s(%s))%s",
                            v == 0 ? "zeros" : "ones", n, note);
    bool matrix = p->shape.kind == TB_SHAPE_MATRIX;
    return tb_py_printf(t->py, "nn.Parameter(torch.full((%s%s), %s))%s", n,
                        matrix ? "" : ",", as_float(t->py, v), note);
}

/* --- __init__ ----------------------------------------------------------- */

typedef struct made {
    const char **names; /* modules, parameters and name spaces so far */
    const tb_py_row **rows;
    int n;
} made;

static int find_made(const made *m, const char *name)
{
    for (int i = 0; i < m->n; i++)
        if (tb_streq(m->names[i], name))
            return i;
    return -1;
}

static const tb_py_region *region_called(const tb_py_graph *t, const char *name)
{
    for (int i = 0; i < t->g->nregions; i++)
        if (tb_streq(t->g->regions[i].name, name))
            return &t->regions[i];
    return NULL;
}

/* Names before each dot: sublayers, else bare modules that hold others. */
static void make_spaces(tb_py_graph *t, const char *self, const char *name,
                        bool top, made *m, tb_buf *out)
{
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        const char *space =
            tb_py_printf(t->py, "%.*s", (int)(dot - name), name);
        const tb_py_region *r = top ? region_called(t, space) : NULL;
        const char *path = tb_py_path(t->py, self, space, false);
        if (find_made(m, path) >= 0)
            continue;
        m->names[m->n++] = path;
        tb_buf_printf(out, "        %s = %s(%s)\n", path,
                      r ? r->cls : "nn.Module", r && r->takes_l ? "l" : "");
        if (r && r->takes_l)
            t->ctor_l = true;
    }
}

/* "path = Module(...)", its arguments on a line of their own where it is long:
 * a norm has many. */
static void make_line(tb_buf *out, const char *path, const char *make)
{
    const char *open = strchr(make, '('), *note = strstr(make, "  # ");
    size_t wide = TB_PY_INDENT + strlen(path) + 3 + strlen(make);
    if (note && wide > TB_PY_COLUMNS) { /* it goes before */
        tb_buf_printf(out, "        %s\n        %s = %.*s\n", note + 2, path,
                      (int)(note - make), make);
        return;
    }
    bool norm = open && strchr(open, '=') && !strchr(open, '#');
    if (wide <= TB_PY_COLUMNS || !norm) {
        tb_buf_printf(out, "        %s = %s\n", path, make);
        return;
    }
    tb_buf_printf(out, "        %s = %.*s(\n            %.*s\n        )\n",
                  path, (int)(open - make), make, (int)strlen(open) - 2,
                  open + 1);
}

static void make_param(tb_py_graph *t, int i, const char *prefix, made *m,
                       tb_buf *out)
{
    const tb_param *p = &t->g->params[i];
    const char *rel = prefix ? tb_py_below(p->name, prefix) : p->name;
    bool bare = is_bare(t, i);
    const char *name = bare ? rel : tb_py_parent(t->py, rel);
    const char *self = prefix ? "self" : tb_py_self(t, i);
    const char *path = tb_py_path(t->py, self, name, bare);
    const tb_py_row *row = bare ? NULL : maker(t, i);
    int at = find_made(m, path);
    if (at >= 0 && (bare || m->rows[at] != row)) {
        tb_py_fail(t->py, TB_FAIL(t->py->ctx, TB_ERR_INPUT,
                                  "export: two things are called %s", name));
        return;
    }
    if (at >= 0)
        return;
    make_spaces(t, self, name, !prefix, m, out);
    m->rows[m->n] = row;
    m->names[m->n++] = path;
    const char *make = bare               ? make_bare(t, i)
                       : row && row->make ? make_module(t, i, row)
                                          : "nn.Module()";
    make_line(out, path, make);
}

void tb_py_modules(tb_py_graph *t, const char *name, tb_buf *out)
{
    const tb_graph *g = t->g;
    size_t dots = (size_t)g->nparams + (size_t)g->nregions + 1;
    for (int i = 0; i < g->nparams; i++)
        for (const char *c = g->params[i].name; *c; c++)
            dots += *c == '.';
    made m = {tb_py_alloc(t->py, dots, sizeof *m.names),
              tb_py_alloc(t->py, dots, sizeof *m.rows), 0};
    for (int i = 0; i < g->nparams && t->py->status == TB_OK; i++) {
        if (is_made(t, i))
            continue;
        if (tb_py_has(t, i, name))
            make_param(t, i, name, &m, out);
        else if (!name)
            make_spaces(t, tb_py_self(t, i),
                        tb_py_parent(t->py, g->params[i].name), true, &m, out);
    }
    for (int i = 0; !name && i < g->nregions && t->py->status == TB_OK; i++)
        make_spaces(t, t->self, tb_py_printf(t->py, "%s.", g->regions[i].name),
                    true, &m, out);
}

/* --- init_weights
 * ------------------------------------------------------------- */

void tb_py_fill(tb_buf *out, int indent, const char *const *items, size_t n)
{
    size_t column = TB_PY_COLUMNS;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(items[i]);
        if (column + len + 2 > TB_PY_COLUMNS) {
            tb_buf_printf(out, "%s%*s", i ? "\n" : "", indent, "");
            column = (size_t)indent;
        } else {
            tb_buf_putc(out, ' ');
            column++;
        }
        tb_buf_printf(out, "%s,", items[i]);
        column += len + 1;
    }
    tb_buf_putc(out, '\n');
}

/* nn.init.normal_(W, std=V); `v` is the value's text. */
static const char *init_call(tb_py *py, const tb_py_start *s, const char *w,
                             const char *v)
{
    static const char *const calls[] = {
        [TB_PY_CONST] = "nn.init.constant_(%s, %s)",
        [TB_PY_NORMAL] = "nn.init.normal_(%s, std=%s)",
        [TB_PY_UNIFORM] = "nn.init.uniform_(%s, -%s, %s)",
        [TB_PY_ORTHOGONAL] = "nn.init.orthogonal_(%s, gain=%s)",
        [TB_PY_IDENTITY] = "nn.init.eye_(%s)",
        [TB_PY_ONEHOT] = "onehot_(%s, %s)",
    };
    const char *zero_or_one = s->value == 0 ? "zeros" : "ones";
    py->uses |= s->dist == TB_PY_ONEHOT ? TB_PY_USES_ONEHOT : 0;
    if (!v && s->dist == TB_PY_CONST && (s->value == 0 || s->value == 1))
        return tb_py_printf(py, "nn.init.%s_(%s)", zero_or_one, w);
    if (!v)
        v = tb_py_number(py, s->value);
    tb_buf out;
    tb_buf_init(&out, py->ctx);
    int arg = 0;
    for (const char *c = calls[s->dist]; *c; c++)
        if (c[0] == '%' && c[1] == 's') {
            tb_buf_puts(&out, arg++ ? v : w);
            c++;
        } else {
            tb_buf_putc(&out, *c);
        }
    return tb_py_take(py, &out);
}

/* A call that is too long for its line has its arguments on the next. */
static void broken_line(tb_buf *out, int indent, const char *call)
{
    const char *open = strchr(call, '(');
    int head = open ? (int)(open - call) + 1 : 0;
    tb_buf_printf(out, "%*s%.*s\n%*s%.*s\n%*s)\n", indent, "", head, call,
                  indent + 4, "", (int)strlen(call) - head - 1, call + head,
                  indent, "");
}

static void init_line(tb_buf *out, int indent, const char *call,
                      const char *rule)
{
    bool plain = tb_streq(rule, "zeros") || tb_streq(rule, "ones");
    size_t wide = (size_t)indent + strlen(call) + 4 + strlen(rule);
    if (!plain && wide > TB_PY_COLUMNS)
        tb_buf_printf(out, "%*s# %s\n", indent, "", rule);
    if ((size_t)indent + strlen(call) > TB_PY_COLUMNS) {
        broken_line(out, indent, call);
        return;
    }
    bool after = !plain && wide <= TB_PY_COLUMNS;
    const char *open = strchr(call, '(');
    if ((size_t)indent + strlen(call) > TB_PY_COLUMNS && open)
        tb_buf_printf(out, "%*s%.*s(\n%*s%.*s\n%*s)\n", indent, "",
                      (int)(open - call), call, indent + 4, "",
                      (int)strlen(open) - 2, open + 1, indent, "");
    else
        tb_buf_printf(out, "%*s%s%s%s\n", indent, "", call, after ? "  # " : "",
                      after ? rule : "");
}

/* Weights that start alike: one or two lines, or a loop. */
static void init_group(tb_py_graph *t, const tb_py_start *s,
                       const char *const *weights, size_t n, tb_buf *out)
{
    tb_py *py = t->py;
    const char *rule = rule_of(py, s);
    if (n < 3) {
        for (size_t i = 0; i < n; i++)
            init_line(out, 8, init_call(py, s, weights[i], NULL), rule);
        return;
    }
    tb_buf_puts(out, "        for weight in (\n");
    tb_py_fill(out, 12, weights, n);
    tb_buf_puts(out, "        ):\n");
    init_line(out, 12, init_call(py, s, "weight", NULL), rule);
}

/* A start that differs from layer to layer: one table for each kind. */
static void init_by_layer(tb_py_graph *t, int param, const char *weight,
                          tb_py_dist dist, tb_buf *out)
{
    tb_py *py = t->py;
    const char **items = tb_py_alloc(py, t->nparts, sizeof *items);
    const tb_py_start *s = NULL;
    size_t n = 0;
    for (size_t i = 0; items && i < t->nparts; i++) {
        const tb_py_start *at = &t->parts[t->layers[i]].starts[param];
        if (at->dist != dist)
            continue;
        s = s ? s : at;
        items[n++] = tb_py_printf(py, "%zu: %s", t->layers[i],
                                  tb_py_number(py, at->value));
    }
    if (!n)
        return;
    t->body_l = true;
    tb_buf_puts(out, "        values = {\n");
    tb_py_fill(out, 12, items, n);
    tb_buf_puts(out, "        }\n");
    if (n < t->nparts)
        tb_buf_puts(out, "        if self.l in values:\n");
    init_line(out, n < t->nparts ? 12 : 8,
              init_call(py, s, weight, "values[self.l]"), rule_of(py, s));
}

static const char *weight_of(tb_py_graph *t, int param)
{
    return tb_py_path(t->py, tb_py_self(t, param), t->g->params[param].name,
                      is_bare(t, param));
}

static bool alike(const tb_py_start *a, const tb_py_start *b)
{
    return a->dist == b->dist && a->value == b->value &&
           tb_streq(a->rule, b->rule);
}

void tb_py_starts(tb_py_graph *t, tb_buf *out)
{
    size_t n = (size_t)t->g->nparams;
    unsigned char *done = tb_py_alloc(t->py, n, 1);
    const char **weights = tb_py_alloc(t->py, n, sizeof *weights);
    for (size_t i = 0; i < n && t->py->status == TB_OK; i++) {
        const tb_py_start *s = &t->parts[t->layers[0]].starts[i];
        size_t count = 0;
        if (done[i] || is_made(t, (int)i) || starts_ready(t, (int)i))
            continue;
        if (!same_start(t, (int)i)) {
            for (int d = TB_PY_CONST; d <= TB_PY_ONEHOT; d++)
                init_by_layer(t, (int)i, weight_of(t, (int)i), (tb_py_dist)d,
                              out);
            continue;
        }
        for (size_t j = i; j < n; j++) {
            const tb_py_start *o = &t->parts[t->layers[0]].starts[j];
            if (done[j] || !alike(s, o) || is_made(t, (int)j) ||
                starts_ready(t, (int)j) || !same_start(t, (int)j))
                continue;
            done[j] = 1;
            weights[count++] = weight_of(t, (int)j);
        }
        init_group(t, s, weights, count, out);
    }
}
