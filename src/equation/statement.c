/* SPDX-License-Identifier: MIT */
/* Statements: assignments, definitions, and the value an EXPR ends with. */
#include "equation/names.h"
#include "equation/parser.h"

static void fail_reserved(tb_parser *p, tb_pos pos, const char *name)
{
    const char *what = tb_reserved_find(name);
    if (what)
        tb_lexer_fail(&p->lx, pos, "'%s' is %s; choose another name", name,
                      what);
    else
        tb_lexer_fail(&p->lx, pos,
                      "'%s' is a built-in function; choose another name", name);
}

static tb_stmt *add_stmt(tb_parser *p, tb_stmt_kind kind, tb_pos pos)
{
    if (!p->open)
        tb_parser_open_section(p, TB_SECTION_BLOCK, pos, -1, NULL);
    if (p->value_at.line)
        tb_lexer_fail(&p->lx, p->value_at,
                      "a value without a name stands only in the last place");
    if (!tb_parser_ok(p))
        return NULL;
    tb_stmt *s = tb_list_push(p, &p->stmts);
    if (s) {
        s->kind = kind;
        s->pos = pos;
    }
    return s;
}

/* assignment = name "=" sum */
static void parse_assignment(tb_parser *p)
{
    tb_token t = p->tok;
    if (tb_reserved_find(t.name) || tb_callable_find(t.name))
        fail_reserved(p, t.pos, t.name);
    tb_parser_next(p);
    tb_parser_next(p);
    const tb_expr *value = tb_parse_sum(p);
    tb_stmt *s = value ? add_stmt(p, TB_STMT_ASSIGN, t.pos) : NULL;
    if (!s)
        return;
    s->name = t.name;
    s->value = value;
    if (t.subscript == TB_SUB_NEXT)
        p->next_assigned = true;
}

/* The parameters of a definition, read as the arguments of a call. */
static bool take_params(tb_parser *p, const tb_expr *call, tb_def *def)
{
    def->nparams = call->nargs;
    def->params = tb_arena_alloc(&p->lx.block->arena,
                                 (size_t)call->nargs * sizeof *def->params);
    if (!def->params) {
        p->lx.status = TB_ERR_MEMORY;
        return false;
    }
    for (int i = 0; i < call->nargs; i++) {
        const tb_arg *a = &call->args[i];
        if (a->key || a->value->kind != TB_EXPR_NAME)
            tb_lexer_fail(&p->lx, a->key ? a->key_pos : a->value->pos,
                          "a parameter is a name");
        else if (tb_reserved_find(a->value->name))
            fail_reserved(p, a->value->pos, a->value->name);
        else if (i >= TB_PARAMS_MAX)
            tb_lexer_fail(&p->lx, a->value->pos, "more than %d parameters",
                          TB_PARAMS_MAX);
        for (int j = 0; tb_parser_ok(p) && j < i; j++)
            if (!strcmp(def->params[j], a->value->name))
                tb_lexer_fail(&p->lx, a->value->pos,
                              "parameter '%.40s' stands twice", a->value->name);
        if (!tb_parser_ok(p))
            return false;
        def->params[i] = a->value->name;
    }
    return true;
}

static bool check_definable(tb_parser *p, const tb_expr *call)
{
    const tb_def *defs = p->defs.data;
    bool open = !strcmp(call->name, "attn") || !strcmp(call->name, "cross") ||
                !strcmp(call->name, "ffn");
    if (!open && (tb_callable_find(call->name) || tb_reserved_find(call->name)))
        fail_reserved(p, call->pos, call->name);
    else if (p->defs.n >= TB_DEFS_MAX)
        tb_lexer_fail(&p->lx, call->pos, "more than %d definitions",
                      TB_DEFS_MAX);
    for (size_t i = 0; tb_parser_ok(p) && i < p->defs.n; i++)
        if (!strcmp(defs[i].name, call->name))
            tb_lexer_fail(&p->lx, call->pos, "'%.40s' is defined at %d:%d",
                          call->name, defs[i].pos.line, defs[i].pos.column);
    return tb_parser_ok(p);
}

/* definition = name "(" [ name { "," name } ] ")" "=" sum */
static void parse_definition(tb_parser *p, const tb_expr *call)
{
    bool assigned = p->next_assigned;
    tb_def def = {.pos = call->pos, .name = call->name};
    if (!check_definable(p, call) || !take_params(p, call, &def))
        return;
    tb_parser_next(p);
    p->next_assigned = false;
    def.body = tb_parse_sum(p);
    p->next_assigned = assigned;
    tb_def *kept = def.body ? tb_list_push(p, &p->defs) : NULL;
    if (kept)
        *kept = def;
}

/* statement = assignment | definition | sum (EXPR of eval, in last place) */
void tb_parse_statement(tb_parser *p)
{
    tb_token first = p->tok;
    if (first.kind == TB_TOKEN_NAME && tb_lexer_peek(&p->lx) == '=') {
        parse_assignment(p);
        return;
    }
    const tb_expr *e = tb_parse_sum(p);
    if (!e)
        return;
    if (tb_parser_at(p, '=')) {
        if (e->kind == TB_EXPR_CALL && first.kind == TB_TOKEN_NAME)
            parse_definition(p, e);
        else
            tb_lexer_fail(&p->lx, first.pos,
                          "left of '=' stands a name, or a name with "
                          "parameters");
        return;
    }
    if (!tb_parser_at_line_end(p)) {
        tb_parser_unexpected(p);
        return;
    }
    if (p->area != TB_AREA_LINES) {
        tb_lexer_fail(&p->lx, first.pos, "expected %s",
                      p->area == TB_AREA_INIT
                          ? "weights: rule, as in attn.o: normal(0.02)"
                      : p->area == TB_AREA_AFTER
                          ? "weights: rule, as in attn.q: unit_rows"
                          : "name = value, as in eps = 1e-6");
        return;
    }
    if (p->mode != TB_PARSE_EVAL) {
        tb_lexer_fail(&p->lx, first.pos,
                      "a statement is name = value, as in x = x + F(norm(x))");
        return;
    }
    tb_stmt *s = add_stmt(p, TB_STMT_VALUE, first.pos);
    if (!s)
        return;
    s->value = e;
    p->value_at = first.pos;
}
