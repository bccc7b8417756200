/* SPDX-License-Identifier: MIT */
/* A class per sublayer. Calls that compute the same with the same weights
 * share a method, sublayers that read the same share a class. */
#include "graph/pytorch_parts.h"

static void add_free(const tb_py_graph *t, int region, int node)
{
    const tb_region *r = &t->g->regions[region];
    const tb_node *n = &t->g->nodes[node];
    tb_py_region *p = &t->regions[region];
    if (node == r->in[0] || n->region == region)
        return;
    if (n->param >= 0 && (tb_py_has(t, n->param, r->name) ||
                          t->g->params[n->param].role == TB_ROLE_BIAS))
        return; /* a bias comes with its weight */
    for (int i = 0; i < p->nfree; i++)
        if (p->free[i] == node)
            return;
    p->free[p->nfree++] = node;
}

/* What a sublayer reads beside its argument and its own weights. */
static void find_free(tb_py_graph *t, int region)
{
    const tb_graph *g = t->g;
    const tb_region *r = &g->regions[region];
    size_t most = (size_t)(r->last - r->first + 1) * TB_OP_INPUTS;
    t->regions[region].free = tb_py_alloc(t->py, most, sizeof(int));
    for (int i = r->first; i <= r->last && t->py->status == TB_OK; i++)
        for (int j = 0; j < g->nodes[i].nin && g->nodes[i].region == region;
             j++)
            add_free(t, region, g->nodes[i].in[j]);
}

/* The last component of "w.weight" without ".weight", a local's name, or t. */
static const char *argument_name(tb_py_graph *t, int node)
{
    const tb_node *n = &t->g->nodes[node];
    const char *name = n->name ? n->name : "t";
    if (n->param >= 0 && t->g->params[n->param].role == TB_ROLE_MATRIX)
        name = tb_py_parent(t->py, name);
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* ", a"; elements come as their whole list, once. */
static void argument(tb_py_body *b, const int *free, int i, tb_buf *out)
{
    const tb_node *n = &b->t->g->nodes[free[i]];
    const char *list = tb_py_list(b->py, n);
    int mask = n->op == &tb_op_input ? tb_py_mask(n->name) : -1;
    if (mask >= 0) {
        tb_py_hold(b, tb_py_masks[mask], free[i]);
        tb_buf_printf(out, ", %s", tb_py_masks[mask]);
        return;
    }
    if (!list) {
        tb_buf_printf(
            out, ", %s",
            tb_py_body_bind(b, argument_name(b->t, free[i]), free[i]));
        return;
    }
    tb_py_body_bind(b, tb_py_input(b->py, n->name), free[i]);
    if (!tb_py_same_list(b->t->g, free, i))
        tb_buf_printf(out, ", %s", list);
}

/* "(self, x, a):" and the lines below. */
static const char *method(tb_py_graph *t, int region)
{
    const tb_region *r = &t->g->regions[region];
    const tb_py_region *p = &t->regions[region];
    tb_py_body b;
    tb_buf lines, out;
    tb_buf_init(&lines, t->py->ctx);
    tb_buf_init(&out, t->py->ctx);
    tb_py_body_begin(&b, t, region, &r->out, 1, &lines);
    if (t->py->status == TB_OK) {
        tb_buf_printf(&out, "(self, %s", tb_py_body_bind(&b, "x", r->in[0]));
        for (int i = 0; i < p->nfree; i++)
            argument(&b, p->free, i, &out);
        tb_buf_puts(&out, "):\n");
        tb_py_body_run(&b);
        tb_py_body_return(&b, r->out);
    }
    tb_buf_puts(&out, tb_py_take(t->py, &lines));
    return tb_py_take(t->py, &out);
}

/* Calls that compute the same with the same weights share a method. */
static void methods(tb_py_graph *t, const char *name, tb_buf *out)
{
    int n = 0;
    const char **texts =
        tb_py_alloc(t->py, (size_t)t->g->nregions, sizeof *texts);
    for (int i = 0; i < t->g->nregions && t->py->status == TB_OK; i++) {
        int same = 0;
        if (!tb_streq(t->g->regions[i].name, name))
            continue;
        find_free(t, i);
        const char *text = method(t, i);
        while (same < n && !tb_streq(texts[same], text))
            same++;
        const char *suffix = same ? tb_py_printf(t->py, "%d", same + 1) : "";
        t->regions[i].method =
            same ? tb_py_printf(t->py, ".forward%s", suffix) : "";
        if (same < n)
            continue;
        texts[n++] = text;
        tb_buf_printf(out, "\n    def forward%s%s", suffix, text);
    }
}

static const struct {
    const char *name, *cls, *text;
} sublayers[] = {
    {"attn", "Attention", "attn(x) = o(mha(q(x), k(x), v(x)))"},
    {"cross", "CrossAttention",
     "cross(x) = o(mha(q(x), k(memory), v(memory)))"},
    {"ffn", "FeedForward", "ffn(x) = down(gelu(up(x)))"},
};

static size_t sublayer_row(const char *name)
{
    size_t i = 0;
    while (i + 1 < TB_LEN(sublayers) && !tb_streq(sublayers[i].name, name))
        i++;
    return i;
}

/* Its definition: the block's own, or the one every block has. */
static const char *definition(tb_py *py, const char *name)
{
    const tb_block *block = py->stack->block;
    for (int i = 0; i < block->ndefs; i++) {
        const tb_def *d = &block->defs[i];
        tb_buf out;
        if (!tb_streq(d->name, name))
            continue;
        tb_buf_init(&out, py->ctx);
        tb_buf_printf(&out, "%s(%s) = ", d->name,
                      d->nparams ? d->params[0] : "");
        tb_expr_print(d->body, &out);
        return tb_py_take(py, &out);
    }
    return sublayers[sublayer_row(name)].text;
}

/* The lines of a class below its first; `init` may be NULL. */
const char *tb_py_class_body(tb_py_graph *t, const char *doc,
                             const char *modules, bool takes_l,
                             const char *init, const char *methods_text)
{
    return tb_py_printf(
        t->py,
        "%s\n    def __init__(self%s):\n        super().__init__()\n%s%s%s%s",
        doc, takes_l ? ", l" : "",
        t->body_l ? "        self.l = l  # this block, from 1\n" : "", modules,
        init ? init : "", methods_text);
}

static const char *one_line_doc(tb_py *py, const char *text)
{
    tb_buf b;
    tb_buf_init(&b, py->ctx);
    if (strlen(text) + 10 <= TB_PY_COLUMNS) {
        tb_buf_printf(&b, "    \"\"\"%s\"\"\"\n", text);
    } else {
        tb_buf_puts(&b, "    \"\"\"\n");
        tb_py_doc(&b, 4, text, strlen(text));
        tb_buf_puts(&b, "    \"\"\"\n");
    }
    return tb_py_take(py, &b);
}

/* The class with this body: an earlier one, or a new one. */
static const tb_py_class *class_of(tb_py *py, size_t row, const char *body,
                                   bool takes_l)
{
    int number = 1;
    for (tb_py_class *c = py->known; c; c = c->next) {
        if (tb_streq(c->body, body))
            return c;
        number += strncmp(c->name, sublayers[row].cls,
                          strlen(sublayers[row].cls)) == 0;
    }
    tb_py_class *c = tb_py_alloc(py, 1, sizeof *c);
    if (!c)
        return NULL;
    *c = (tb_py_class){.body = body, .takes_l = takes_l};
    c->name = number == 1
                  ? sublayers[row].cls
                  : tb_py_printf(py, "%s%d", sublayers[row].cls, number);
    *py->last = c;
    py->last = &c->next;
    tb_buf_printf(&py->classes, "\n\nclass %s(nn.Module):\n%s", c->name, body);
    return c;
}

static void sublayer_class(tb_py_graph *t, const char *name)
{
    tb_py *py = t->py;
    tb_buf modules, lines;
    tb_buf_init(&modules, py->ctx);
    tb_buf_init(&lines, py->ctx);
    t->body_l = t->ctor_l = false;
    methods(t, name, &lines);
    tb_py_modules(t, name, &modules);
    bool takes_l = t->body_l || t->ctor_l;
    const char *modules_text = tb_py_take(py, &modules);
    const char *body =
        tb_py_class_body(t, one_line_doc(py, definition(py, name)),
                         modules_text, takes_l, NULL, tb_py_take(py, &lines));
    const tb_py_class *c = class_of(py, sublayer_row(name), body, takes_l);
    for (int i = 0; c && i < t->g->nregions; i++)
        if (tb_streq(t->g->regions[i].name, name)) {
            t->regions[i].cls = c->name;
            t->regions[i].takes_l = takes_l;
        }
}

void tb_py_sublayers(tb_py_graph *t)
{
    for (int i = 0; i < t->g->nregions && t->py->status == TB_OK; i++)
        if (!t->regions[i].cls)
            sublayer_class(t, t->g->regions[i].name);
}
