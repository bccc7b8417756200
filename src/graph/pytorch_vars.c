/* SPDX-License-Identifier: MIT */
/* Variables of a method and its lines. A variable is overwritten only when
 * nothing reads it any more, or its value is kept under another name first, so
 * what the lines compute never depends on what the text called things. */
#include "graph/pytorch_parts.h"

enum { HEADS = TB_PY_HEADS, ALIASES_SOUGHT = 1000 };

/* --- variables ---------------------------------------------------------- */

static int var_find(const tb_py_body *b, const char *name)
{
    int i = b->heads ? b->heads[tb_hash(name, strlen(name)) % HEADS] : -1;
    while (i >= 0 && !tb_streq(b->vars[i].name, name))
        i = b->vars[i].next;
    return i;
}

/* The variable called `name`, new or old; -1 if memory ran out. */
static int var_put(tb_py_body *b, const char *name)
{
    int i = var_find(b, name);
    if (i >= 0 || b->py->status != TB_OK)
        return i;
    if (b->nvars == b->cap_vars) {
        int cap = b->cap_vars ? 2 * b->cap_vars : 16;
        tb_py_var *vars = tb_py_alloc(b->py, (size_t)cap, sizeof *vars);
        if (!vars)
            return -1;
        if (b->nvars)
            memcpy(vars, b->vars, (size_t)b->nvars * sizeof *vars);
        b->vars = vars;
        b->cap_vars = cap;
    }
    int *head = &b->heads[tb_hash(name, strlen(name)) % HEADS];
    b->vars[b->nvars] = (tb_py_var){.name = name, .node = -1, .next = *head};
    *head = b->nvars;
    return b->nvars++;
}

static bool is_live(const tb_py_body *b, int var)
{
    int node = b->vars[var].node;
    return node >= 0 && b->left[node] > 0 && b->held[node] == var;
}

/* May `name` be written in the middle of this statement? */
bool tb_py_is_free(const tb_py_body *b, const char *name)
{
    int i = var_find(b, name);
    return i < 0 || (b->vars[i].stamp < b->now && !is_live(b, i));
}

void tb_py_hold(tb_py_body *b, const char *name, int node)
{
    int i = var_put(b, name);
    if (i < 0)
        return;
    b->vars[i].node = node;
    b->vars[i].is = NULL;
    b->vars[i].stamp = b->now;
    b->held[node] = i;
}

const char *tb_py_body_bind(tb_py_body *b, const char *name, int node)
{
    const char *mine = tb_py_local(b->py, name);
    while (!tb_py_is_free(b, mine))
        mine = tb_py_printf(b->py, "%s_%d", name, ++b->temps);
    if (b->py->status == TB_OK)
        tb_py_hold(b, mine, node);
    return mine;
}

const char *tb_py_fresh(tb_py_body *b, const char *stem)
{
    const char *name;
    do
        name = tb_py_printf(b->py, "%s%d", stem, ++b->temps);
    while (b->py->status == TB_OK && !tb_py_is_free(b, name));
    return name;
}

/* --- lines -------------------------------------------------------------- */

/* A call that fills more than a line, over three: its arguments between. */
static const char *folded(const tb_py_body *b, const char *line)
{
    const char *open = strchr(line, '('), *c = open;
    int depth = 0;
    if (TB_PY_INDENT + strlen(line) <= TB_PY_COLUMNS || !open)
        return line;
    do {
        depth += (*c == '(') - (*c == ')');
        c++;
    } while (*c && depth > 0);
    if (*c) /* something stands behind it */
        return line;
    return tb_py_printf(b->py, "%.*s\n            %.*s\n        )",
                        (int)(open + 1 - line), line, (int)(c - open - 2),
                        open + 1);
}

/* "text  # notes", the notes on a line before where both do not fit. */
void tb_py_line(tb_py_body *b, const char *text)
{
    const char *notes = b->notes;
    b->notes = NULL;
    if (notes &&
        TB_PY_INDENT + strlen(text) + 4 + strlen(notes) > TB_PY_COLUMNS) {
        tb_buf_printf(b->out, "        # %s\n", notes);
        notes = NULL;
    }
    tb_buf_printf(b->out, "        %s%s%s\n", folded(b, text),
                  notes ? "  # " : "", notes ? notes : "");
}

static void note(tb_py_body *b, const char *text)
{
    if (!text)
        return;
    if (b->notes && strlen(b->notes) < TB_PY_COLUMNS / 2)
        b->notes = tb_py_printf(b->py, "%s, %s", b->notes, text);
    else if (!b->notes)
        b->notes = text;
}

/* --- constants ---------------------------------------------------------- */

static const char *constant_line(tb_py_body *b, const char *shown,
                                 const char *text, const char *source)
{
    const char *name = tb_py_local(b->py, shown), *notes = b->notes;
    int i = var_find(b, name);
    if (i >= 0 && tb_streq(b->vars[i].is, text)) {
        b->vars[i].stamp = b->now;
        return name;
    }
    if (!tb_py_is_free(b, name))
        return NULL;
    b->notes = source;
    tb_py_line(b, tb_py_printf(b->py, "%s = %s", name, text));
    b->notes = notes;
    i = var_put(b, name);
    if (i < 0)
        return NULL;
    if (b->vars[i].node >= 0)
        b->held[b->vars[i].node] = -1;
    b->vars[i].node = -1;
    b->vars[i].is = text;
    b->vars[i].stamp = b->now;
    return name;
}

/* Settings keep their names: eps of norms, the rate of dropout. */
static const char *setting_name(tb_py_body *b, const tb_node *n,
                                const tb_attr *a)
{
    const tb_settings *s = &b->py->stack->sizes->s;
    const char *key = a >= n->attr && a < n->attr + n->op->nattr
                          ? n->op->attr_name[a - n->attr]
                          : NULL;
    if (tb_streq(key, "eps") && a->value == s->eps)
        return "EPS";
    if (!tb_streq(key, "p") || a->value != s->dropout)
        return NULL;
    b->py->uses |= TB_PY_USES_DROPOUT;
    return "DROPOUT";
}

tb_py_text tb_py_attr(tb_py_body *b, const tb_node *n, const tb_attr *a)
{
    tb_py *py = b->py;
    tb_py_text t = {"", TB_PY_CALL};
    const char *source = NULL, *name;
    if (!a->expr) {
        t.s = setting_name(b, n, a);
        if (!t.s)
            t = (tb_py_text){tb_py_number(py, a->value),
                             a->value < 0 ? TB_PY_UNARY : TB_PY_CALL};
        return t;
    }
    if (tb_py_mentions(a->expr, "l")) {
        b->t->body_l = true;
        t = tb_py_constant(py, a->expr, n->k, "self.l");
    } else {
        double v = tb_py_fold(py, a->expr, n->k);
        t = (tb_py_text){tb_py_number(py, v), v < 0 ? TB_PY_UNARY : TB_PY_CALL};
        source = tb_py_source(py, a->expr);
    }
    name = a->shown ? constant_line(b, a->shown, t.s, source) : NULL;
    if (name)
        return (tb_py_text){name, TB_PY_NAME};
    note(b, source);
    return t;
}

/* `r` of a statement `r = x` in the text, if it can be written now. */
static const char *alias_of(tb_py_body *b, const char *name)
{
    const tb_block *block = b->t->g->block;
    int seen = 0;
    for (int i = 0; i < block->nsections; i++)
        for (int j = 0; j < block->sections[i].nstmts; j++) {
            const tb_stmt *s = &block->sections[i].stmts[j];
            if (++seen > ALIASES_SOUGHT)
                return NULL;
            if (s->kind != TB_STMT_ASSIGN || s->value->kind != TB_EXPR_NAME ||
                !tb_streq(s->value->name, name))
                continue;
            const char *alias = tb_py_local(b->py, s->name);
            if (tb_py_is_free(b, alias))
                return alias;
        }
    return NULL;
}

/* What `name` holds is still to be read: it moves to another name. */
void tb_py_keep(tb_py_body *b, const char *name)
{
    int var = var_find(b, name);
    if (var < 0)
        return;
    int node = b->vars[var].node;
    if (is_live(b, var)) {
        const char *alias = alias_of(b, name), *notes = b->notes;
        if (!alias)
            alias = tb_py_fresh(b, tb_py_printf(b->py, "%s_", name));
        b->notes = NULL;
        tb_py_line(b, tb_py_printf(b->py, "%s = %s", alias, name));
        b->notes = notes;
        if (b->py->status == TB_OK)
            tb_py_hold(b, alias, node);
    } else if (node >= 0 && b->held[node] == var) {
        b->held[node] = -1;
    }
}
