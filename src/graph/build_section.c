/* SPDX-License-Identifier: MIT */
/* Statements and sections: what F stands for, who owns a norm's parameters,
 * where the stack can be cut. */
#include "graph/build.h"

/* Attn, cross and ffn in the order F stands for them. */
static const char *const sublayers[] = {"attn", "cross", "ffn"};

/* Definitions remember their answer, which also ends a recursion. */
static unsigned def_calls(tb_builder *b, const tb_def *def)
{
    unsigned char *known = &b->def_calls[def - b->block->defs];
    if (!(*known & TB_CALLS_KNOWN)) {
        *known = TB_CALLS_KNOWN;
        *known |= (unsigned char)tb_build_calls(b, def->body);
    }
    return *known & ~(unsigned)TB_CALLS_KNOWN;
}

unsigned tb_build_calls(tb_builder *b, const tb_expr *e)
{
    unsigned bits = 0;
    if (b->depth >= TB_EXPAND_MAX)
        return 0; /* building it will fail */
    b->depth++;
    if (e->kind == TB_EXPR_CALL) {
        const tb_def *def = NULL;
        for (size_t i = 0; i < TB_LEN(sublayers); i++)
            if (tb_streq(e->name, sublayers[i]))
                bits = 1u << i;
        if (tb_streq(e->name, "F"))
            bits = TB_CALLS_F;
        if (!bits)
            def = tb_def_find(b->block, e->name);
        if (def)
            bits = def_calls(b, def);
    }
    for (int i = 0; i < e->nargs; i++)
        bits |= tb_build_calls(b, e->args[i].value);
    b->depth--;
    return bits;
}

/* --- statements ---------------------------------------------------------- */

static tb_status assign(tb_builder *b, const tb_stmt *s, const tb_val *v)
{
    tb_binding *bind;
    TB_TRY(tb_scope_put(b, s->name, &bind));
    bind->val = *v;
    bind->is_value = true;
    bind->is_linear = false;
    if (v->kind == TB_VAL_CONST) {
        bind->val.shown = s->name;
        return TB_OK;
    }
    if (v->kind == TB_VAL_LIST)
        return TB_OK;
    tb_node *n = &b->g->nodes[v->node];
    if (!n->name && n->op != &tb_op_param)
        n->name = s->name;
    return TB_OK;
}

/* The sublayer a statement belongs to names its norms: "attn" for
 * x = x + attn(norm(x)); none where it calls both or neither. */
static const char *stmt_owner(tb_builder *b, const tb_expr *e)
{
    if (b->sub)
        return b->sub;
    if (b->place)
        return b->place;
    unsigned calls = b->eval ? 0 : tb_build_calls(b, e);
    for (size_t i = 0; i < TB_LEN(sublayers); i++)
        if (calls == 1u << i)
            return sublayers[i];
    return "";
}

/* The value of eval; (a, b) has one output per part. */
static tb_status values(tb_builder *b, const tb_expr *e)
{
    tb_val v;
    const tb_expr *parts = e;
    const tb_args *outer = b->args;
    tb_args mine;
    TB_TRY(tb_build_tuple_args(b, &parts, &mine));
    if (parts != e)
        b->args = &mine;
    bool tuple = parts->kind == TB_EXPR_TUPLE;
    for (int i = 0; i < (tuple ? parts->nargs : 1); i++) {
        const tb_expr *part = tuple ? parts->args[i].value : parts;
        TB_TRY(tb_build_expr(b, part, &v));
        if (v.kind == TB_VAL_CONST)
            return tb_build_fail(b, part->pos,
                                 "the value is a constant; "
                                 "nothing depends on an input");
        if (v.kind == TB_VAL_LIST)
            return tb_build_fail(b, part->pos,
                                 "the value is a list; wanted a stream");
        TB_TRY(tb_build_output(b, "", v.node));
    }
    b->args = outer;
    return TB_OK;
}

static bool is_stream(const tb_builder *b, const char *name)
{
    bool found = tb_streq(name, "x");
    for (int i = 0; i < b->g->ninputs && !b->eval; i++)
        found = found || tb_streq(b->g->nodes[b->g->inputs[i]].name, name);
    return found;
}

static tb_status statement(tb_builder *b, const tb_stmt *s)
{
    tb_val v;
    if (s->kind == TB_STMT_ASSIGN && tb_declares(s->value))
        return tb_build_declare(b, s->name, s->value);
    b->owner = stmt_owner(b, s->value);
    if (!b->sub)
        b->k = b->g->nregions + 1;
    if (s->kind == TB_STMT_VALUE)
        return values(b, s->value);
    TB_TRY(tb_build_expr(b, s->value, &v));
    TB_TRY(assign(b, s, &v));
    if (!b->sub && v.kind == TB_VAL_NODE && is_stream(b, s->name))
        return tb_build_mark(b);
    return TB_OK;
}

/* Ruling 1: a section with F is repeated once per sublayer; the value of an
 * EXPR, which stands last, is computed once. */
static tb_status repeat(tb_builder *b, const tb_section *s)
{
    int n = s->nstmts - (s->stmts[s->nstmts - 1].kind == TB_STMT_VALUE);
    b->sub_is_f = true;
    for (size_t i = 0; i < TB_LEN(sublayers); i++) {
        if (i == 1 && b->stack != TB_STACK_CROSS)
            continue;
        b->sub = sublayers[i];
        b->k++;
        for (int j = 0; j < n; j++)
            TB_TRY(statement(b, &s->stmts[j]));
        TB_TRY(tb_build_mark(b));
    }
    b->sub = NULL;
    b->sub_is_f = false;
    return n < s->nstmts ? statement(b, &s->stmts[n]) : TB_OK;
}

/* Whether the section calls F, and that it then calls nothing else. */
static tb_status check_mixed(tb_builder *b, const tb_section *s, bool *has_f)
{
    unsigned all = 0;
    for (int i = 0; i < s->nstmts; i++) {
        const tb_stmt *t = &s->stmts[i];
        unsigned calls = tb_build_calls(b, t->value);
        all |= calls;
        for (size_t j = 0; j < TB_LEN(sublayers); j++)
            if ((all & TB_CALLS_F) && (all & 1u << j))
                return tb_build_fail(b, t->pos,
                                     "F and %s in one section: F already "
                                     "stands for every sublayer",
                                     sublayers[j]);
        if (t->kind == TB_STMT_VALUE && (calls & TB_CALLS_F))
            return tb_build_fail(b, t->pos,
                                 "F stands for each sublayer in turn: assign, "
                                 "as in x = x + F(norm(x))");
    }
    *has_f = (all & TB_CALLS_F) != 0;
    return TB_OK;
}

tb_status tb_build_section(tb_builder *b, const tb_section *s)
{
    bool has_f = false;
    TB_TRY(check_mixed(b, s, &has_f));
    if (has_f)
        return repeat(b, s);
    for (int i = 0; i < s->nstmts; i++)
        TB_TRY(statement(b, &s->stmts[i]));
    return TB_OK;
}
