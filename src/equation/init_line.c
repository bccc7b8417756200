/* SPDX-License-Identifier: MIT */
/* The lines of init:, after: and model:. Names of rules and settings are
 * checked here, names of weights when a model has some. */
#include "equation/names.h"
#include "equation/parser.h"

/* --- init: ---------------------------------------------------------------- */

/* rule = name [ "(" [ sum { "," sum } ] ")" ] */
static const tb_expr *parse_rule(tb_parser *p, const tb_token *glob)
{
    char near[TB_SUGGEST_CHARS];
    bool after = p->area == TB_AREA_AFTER;
    const char *what = after ? "a rule such as unit_rows"
                             : "an init rule such as normal(0.02)";
    size_t n;
    if (tb_parser_at_line_end(p) && !strchr(glob->name, '.') &&
        !strchr(glob->name, '*'))
        tb_parser_fail_section(p, glob);
    if (p->tok.kind != TB_TOKEN_NAME) {
        tb_parser_fail_expected(p, what);
        return NULL;
    }
    tb_expr *e = tb_parse_sum(p);
    if (!e)
        return NULL;
    if (e->kind != TB_EXPR_CALL && e->kind != TB_EXPR_NAME) {
        tb_lexer_fail(&p->lx, e->pos,
                      "an init rule is a name with arguments, such as "
                      "normal(0.02)");
        return NULL;
    }
    const tb_init_kind *kind =
        after ? tb_after_kind_find(e->name) : tb_init_kind_find(e->name);
    if (!kind) {
        const char *const *names =
            after ? tb_after_kind_names(&n) : tb_init_kind_names(&n);
        tb_suggest(near, e->name, names, n);
        tb_lexer_fail(&p->lx, e->pos, "unknown %s rule '%.40s'%s",
                      after ? "after" : "init", e->name, near);
        return NULL;
    }
    if (e->nargs < kind->least || e->nargs > kind->most)
        tb_lexer_fail(&p->lx, e->pos, "'%s' takes %s%d argument%s, got %d",
                      kind->name, kind->least < kind->most ? "at most " : "",
                      kind->most, kind->most == 1 ? "" : "s", e->nargs);
    for (int i = 0; i < e->nargs; i++)
        if (e->args[i].key)
            tb_lexer_fail(&p->lx, e->args[i].key_pos,
                          "init rules take no options");
        else if (!tb_expr_is_const(e->args[i].value, NULL, NULL))
            tb_lexer_fail(&p->lx, e->args[i].value->pos,
                          "not a constant expression");
    if (e->nargs == 0)
        e->kind = TB_EXPR_NAME; /* zeros() is zeros */
    return tb_parser_ok(p) ? e : NULL;
}

static bool parse_glob(tb_parser *p)
{
    if (p->tok.kind != TB_TOKEN_WORD) {
        tb_parser_fail_expected(p, "a weight name such as attn.o or ffn.*");
        return false;
    }
    const char *dash = strchr(p->tok.name, '-');
    if (dash) {
        tb_pos at = p->tok.pos;
        at.column += (int)(dash - p->tok.name);
        tb_lexer_fail(&p->lx, at,
                      "weight names hold letters, digits, '_', "
                      "'.' and '*'");
        return false;
    }
    const char **glob = tb_list_push(p, &p->globs);
    if (!glob)
        return false;
    *glob = p->tok.name;
    tb_parser_next(p);
    return tb_parser_ok(p);
}

/* weights-line = glob { "," glob } ":" rule */
void tb_parse_init_line(tb_parser *p)
{
    tb_token start = p->tok;
    if (tb_lexer_peek(&p->lx) == '(') {
        tb_parser_reread(p);
        tb_parse_statement(p);
        return;
    }
    if (!parse_glob(p))
        return;
    while (tb_parser_at(p, ',')) {
        tb_parser_next(p);
        if (!parse_glob(p))
            return;
    }
    p->lx.words = false;
    if (!tb_parser_expect(p, ':', "',' or ':' and an init rule"))
        return;
    const tb_expr *rule = parse_rule(p, &start);
    tb_list *to = p->area == TB_AREA_AFTER ? &p->after : &p->init;
    tb_init_rule *r = rule ? tb_list_push(p, to) : NULL;
    if (!r)
        return;
    r->pos = start.pos;
    r->rule = rule;
    r->nglobs = (int)p->globs.n;
    r->globs = tb_list_keep(p, &p->globs, 0);
}

/* --- model: --------------------------------------------------------------- */

/* True if `word` is one of the words in `list` (with blanks between). */
static bool is_one_of(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *s = list; *s;) {
        size_t length = strcspn(s, " ");
        if (length == n && !memcmp(s, word, n))
            return true;
        s += length + (s[length] == ' ');
    }
    return false;
}

static void check_setting(tb_parser *p, const tb_setting *s)
{
    const tb_setting_kind *kind = tb_setting_kind_find(s->key);
    const tb_setting *old = p->settings.data;
    size_t n;
    if (!kind) {
        char near[TB_SUGGEST_CHARS];
        const char *const *names = tb_setting_names(&n);
        tb_suggest(near, s->key, names, n);
        tb_lexer_fail(&p->lx, s->pos, "unknown setting '%.40s'%s", s->key,
                      near);
        return;
    }
    for (size_t i = 0; i < p->settings.n; i++)
        if (!strcmp(old[i].key, s->key))
            tb_lexer_fail(&p->lx, s->pos, "'%s' is set at %d:%d", s->key,
                          old[i].pos.line, old[i].pos.column);
    if (!*kind->words) {
        if (!tb_expr_is_const(s->value, NULL, NULL))
            tb_lexer_fail(&p->lx, s->value->pos,
                          "'%s' takes a constant expression", s->key);
    } else if (s->value->kind != TB_EXPR_NAME ||
               !is_one_of(s->value->name, kind->words)) {
        tb_lexer_fail(&p->lx, s->value->pos, "'%s' takes one of: %s", s->key,
                      kind->words);
    }
}

/* setting = name "=" ( sum | word ) */
void tb_parse_setting(tb_parser *p)
{
    tb_setting s = {.pos = p->tok.pos, .key = p->tok.name};
    if (p->tok.kind != TB_TOKEN_NAME) {
        tb_parser_fail_expected(p, "a setting such as eps = 1e-6");
        return;
    }
    if (tb_lexer_peek(&p->lx) == '(') {
        tb_parse_statement(p);
        return;
    }
    tb_parser_next(p);
    if (!tb_parser_expect(p, '=', "'=' and the value of the setting"))
        return;
    s.value = tb_parse_sum(p);
    if (!s.value)
        return;
    check_setting(p, &s);
    tb_setting *kept = tb_parser_ok(p) ? tb_list_push(p, &p->settings) : NULL;
    if (kept)
        *kept = s;
}
