/* SPDX-License-Identifier: MIT */
/* The lines of a text: section headers, statements, definitions, init rules,
 * settings. docs/language.md has the whole grammar. */
#include "equation/parser.h"

#include "equation/names.h"

/* --- lists ---------------------------------------------------------------- */

void *tb_list_push(tb_parser *p, tb_list *l)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        void *data =
            tb_realloc(p->lx.ctx, l->data, l->cap * l->size, cap * l->size);
        if (!data) {
            p->lx.status = TB_ERR_MEMORY;
            return NULL;
        }
        l->data = data;
        l->cap = cap;
    }
    return memset((char *)l->data + l->n++ * l->size, 0, l->size);
}

void *tb_list_keep(tb_parser *p, tb_list *l, size_t from)
{
    size_t bytes = (l->n - from) * l->size;
    void *kept = tb_arena_alloc(&p->lx.block->arena, bytes);
    if (!kept)
        p->lx.status = TB_ERR_MEMORY;
    else if (bytes)
        memcpy(kept, (char *)l->data + from * l->size, bytes);
    l->n = from;
    return kept;
}

/* --- tokens --------------------------------------------------------------- */

bool tb_parser_ok(const tb_parser *p)
{
    return p->lx.status == TB_OK;
}

void tb_parser_next(tb_parser *p)
{
    p->tok = tb_lexer_next(&p->lx);
}

bool tb_parser_at(const tb_parser *p, char op)
{
    return p->tok.kind == TB_TOKEN_OP && p->tok.op == op;
}

static void fail_expected(tb_parser *p, const char *wanted)
{
    char got[TB_TOKEN_CHARS];
    tb_lexer_fail(&p->lx, p->tok.pos, "expected %s, got %s", wanted,
                  tb_token_text(&p->tok, got));
}

/* Over this operator, or fail naming `what`. */
static bool expect(tb_parser *p, char op, const char *what)
{
    if (!tb_parser_at(p, op)) {
        fail_expected(p, what);
        return false;
    }
    tb_parser_next(p);
    return tb_parser_ok(p);
}

static bool token_is(const tb_token *t, const char *word)
{
    return strlen(word) == t->n && !memcmp(word, t->start, t->n);
}

static bool at_line_end(const tb_parser *p)
{
    return p->tok.kind == TB_TOKEN_NEWLINE || p->tok.kind == TB_TOKEN_END;
}

/* The token again, now as a name or operator rather than a word. */
static void reread(tb_parser *p)
{
    p->lx.words = false;
    tb_lexer_seek(&p->lx, &p->tok);
    tb_parser_next(p);
}

/* --- section headers ------------------------------------------------------ */

static const char *const section_words[] = {"block", "stem",  "final",
                                            "init",  "model", "expect"};
static const char *const role_words[] = {"encoder", "decoder"};
enum { WORD_INIT = 3, WORD_MODEL, WORD_EXPECT };

static int find_word(const tb_token *t, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (token_is(t, words[i]))
            return (int)i;
    return -1;
}

static int section_word(const tb_token *t)
{
    return find_word(t, section_words, TB_LEN(section_words));
}

static int role_word(const tb_token *t)
{
    return find_word(t, role_words, TB_LEN(role_words));
}

static bool at_header(const tb_parser *p)
{
    char after = tb_lexer_peek(&p->lx);
    if (p->tok.kind != TB_TOKEN_NAME && p->tok.kind != TB_TOKEN_WORD)
        return false;
    if (role_word(&p->tok) >= 0)
        return after == ':' || after == '[' || (after >= 'a' && after <= 'z');
    return section_word(&p->tok) >= 0 && (after == ':' || after == '[');
}

static void fail_section(tb_parser *p, const tb_token *t)
{
    char near[TB_SUGGEST_CHARS], got[TB_TOKEN_CHARS];
    char word[TB_SUGGEST_CHARS];
    tb_format(word, sizeof word, "%.*s", (int)(t->n < 40 ? t->n : 40),
              t->start);
    tb_suggest(near, word, section_words, TB_LEN(section_words));
    if (token_is(t, "out"))
        tb_format(near, sizeof near, "; a last norm is final: x = norm(x)");
    tb_lexer_fail(&p->lx, t->pos, "unknown section %s%s", tb_token_text(t, got),
                  near);
}

/* A section that no layer can reach is a mistake. */
static void check_reached(tb_parser *p, const tb_section *s, int role)
{
    tb_pos *always = p->always[s->kind];
    tb_pos at = always[0].line ? always[0] : always[role + 1];
    if (at.line)
        tb_lexer_fail(&p->lx, s->pos,
                      "never reached: the section at %d:%d comes first and "
                      "always matches",
                      at.line, at.column);
    else if (!s->condition)
        always[role + 1] = s->pos;
}

static void open_section(tb_parser *p, tb_section_kind kind, tb_pos pos,
                         int role, const tb_expr *condition)
{
    size_t *first = tb_list_push(p, &p->first);
    tb_section *s = first ? tb_list_push(p, &p->sections) : NULL;
    if (!s)
        return;
    *first = p->stmts.n;
    *s = (tb_section){.kind = kind,
                      .pos = pos,
                      .role = role < 0 ? NULL : role_words[role],
                      .condition = condition};
    p->open = true;
    p->next_assigned = false;
    check_reached(p, s, role);
}

/* expect = "expect" ":" code { "," code }; the section before it goes on */
static void parse_expect(tb_parser *p)
{
    p->lx.words = true;
    tb_parser_next(p);
    do {
        if (tb_parser_at(p, ','))
            tb_parser_next(p);
        if (p->tok.kind != TB_TOKEN_WORD) {
            fail_expected(p, "a lint code");
            return;
        }
        const char **code = tb_list_push(p, &p->expect);
        if (!code)
            return;
        *code = p->tok.name;
        tb_parser_next(p);
    } while (tb_parser_at(p, ','));
    p->lx.words = false;
    if (!at_line_end(p))
        fail_expected(p, "',' or the end of the line");
}

/* header = [ role ] [ "block" | "stem" | "final" ] [ condition ] ":"
 *        | "init" ":" | "model" ":" | expect; a role alone means its block */
static void parse_header(tb_parser *p)
{
    tb_token start = p->tok;
    const tb_expr *condition = NULL;
    int role = role_word(&p->tok), word = TB_SECTION_BLOCK;
    reread(p);
    if (role >= 0)
        tb_parser_next(p);
    if (role < 0 || p->tok.kind == TB_TOKEN_NAME) {
        tb_token t = p->tok;
        word = section_word(&t);
        if (word < 0)
            fail_section(p, &t);
        else if (role >= 0 && word >= WORD_INIT)
            tb_lexer_fail(&p->lx, start.pos, "'%s:' takes no role",
                          section_words[word]);
        tb_parser_next(p);
    }
    if (tb_parser_ok(p) && tb_parser_at(p, '[')) {
        if (word != TB_SECTION_BLOCK)
            tb_lexer_fail(&p->lx, p->tok.pos, "'%s:' takes no condition",
                          section_words[word]);
        condition = tb_parse_condition(p);
    }
    if (!tb_parser_ok(p))
        return;
    if (!tb_parser_at(p, ':')) {
        fail_expected(p, "':'");
        return;
    }
    if (word == WORD_EXPECT) {
        parse_expect(p);
        return;
    }
    p->open = false;
    p->area = word == WORD_INIT    ? TB_AREA_INIT
              : word == WORD_MODEL ? TB_AREA_MODEL
                                   : TB_AREA_LINES;
    if (p->area == TB_AREA_LINES)
        open_section(p, (tb_section_kind)word, start.pos, role, condition);
    p->lx.words = p->area == TB_AREA_INIT;
    tb_parser_next(p);
}

/* --- statements ----------------------------------------------------------- */

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
        open_section(p, TB_SECTION_BLOCK, pos, -1, NULL);
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
static void parse_statement(tb_parser *p)
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
    if (!at_line_end(p)) {
        tb_parser_unexpected(p);
        return;
    }
    if (p->area != TB_AREA_LINES) {
        tb_lexer_fail(&p->lx, first.pos, "expected %s",
                      p->area == TB_AREA_INIT
                          ? "weights: rule, as in attn.o: normal(0.02)"
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

/* --- init: and model: ----------------------------------------------------- */

/* rule = name [ "(" [ sum { "," sum } ] ")" ] */
static const tb_expr *parse_rule(tb_parser *p, const tb_token *glob)
{
    char near[TB_SUGGEST_CHARS];
    size_t n;
    if (at_line_end(p) && !strchr(glob->name, '.') && !strchr(glob->name, '*'))
        fail_section(p, glob);
    if (p->tok.kind != TB_TOKEN_NAME) {
        fail_expected(p, "an init rule such as normal(0.02)");
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
    const tb_init_kind *kind = tb_init_kind_find(e->name);
    if (!kind) {
        const char *const *names = tb_init_kind_names(&n);
        tb_suggest(near, e->name, names, n);
        tb_lexer_fail(&p->lx, e->pos, "unknown init rule '%.40s'%s", e->name,
                      near);
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
        fail_expected(p, "a weight name such as attn.o or ffn.*");
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

/* init-line = glob { "," glob } ":" rule */
static void parse_init_line(tb_parser *p)
{
    tb_token start = p->tok;
    if (tb_lexer_peek(&p->lx) == '(') {
        reread(p);
        parse_statement(p);
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
    if (!expect(p, ':', "',' or ':' and an init rule"))
        return;
    const tb_expr *rule = parse_rule(p, &start);
    tb_init_rule *r = rule ? tb_list_push(p, &p->init) : NULL;
    if (!r)
        return;
    r->pos = start.pos;
    r->rule = rule;
    r->nglobs = (int)p->globs.n;
    r->globs = tb_list_keep(p, &p->globs, 0);
}

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
static void parse_setting(tb_parser *p)
{
    tb_setting s = {.pos = p->tok.pos, .key = p->tok.name};
    if (p->tok.kind != TB_TOKEN_NAME) {
        fail_expected(p, "a setting such as eps = 1e-6");
        return;
    }
    if (tb_lexer_peek(&p->lx) == '(') {
        parse_statement(p);
        return;
    }
    tb_parser_next(p);
    if (!expect(p, '=', "'=' and the value of the setting"))
        return;
    s.value = tb_parse_sum(p);
    if (!s.value)
        return;
    check_setting(p, &s);
    tb_setting *kept = tb_parser_ok(p) ? tb_list_push(p, &p->settings) : NULL;
    if (kept)
        *kept = s;
}

/* --- the text ------------------------------------------------------------- */

/* line = header | statement | init-line | setting */
static void parse_line(tb_parser *p)
{
    if (at_header(p)) {
        parse_header(p);
        return; /* statements may follow on the same line */
    }
    if (p->area == TB_AREA_INIT)
        parse_init_line(p);
    else if (p->tok.kind == TB_TOKEN_NAME && tb_lexer_peek(&p->lx) == ':')
        fail_section(p, &p->tok);
    else if (p->area == TB_AREA_MODEL)
        parse_setting(p);
    else
        parse_statement(p);
    if (!at_line_end(p))
        tb_parser_unexpected(p);
}

/* text = { [ line ] ( newline | ";" ) } */
static void parse_text(tb_parser *p)
{
    tb_parser_next(p);
    while (tb_parser_ok(p) && p->tok.kind != TB_TOKEN_END) {
        if (p->tok.kind != TB_TOKEN_NEWLINE) {
            parse_line(p);
        } else {
            p->lx.words = p->area == TB_AREA_INIT;
            tb_parser_next(p);
        }
    }
    if (tb_parser_ok(p) && p->sections.n + p->defs.n == 0)
        tb_lexer_fail(&p->lx, (tb_pos){0, 0},
                      "the text has no statement; the smallest block is "
                      "x = x + F(norm(x))");
}

static size_t skip_bytes(const char *s, size_t n, const char *set)
{
    size_t i = 0;
    while (i < n && s[i] && strchr(set, s[i]))
        i++;
    return i;
}

/* The comment lines the text starts with, without '#' and one blank. */
static void keep_about(tb_parser *p, const char *s, size_t n)
{
    tb_block *b = p->lx.block;
    char *about = tb_arena_alloc(&b->arena, n + 1);
    size_t used = 0, i = skip_bytes(s, n, " \t\r\n");
    if (!about) {
        p->lx.status = TB_ERR_MEMORY;
        return;
    }
    while (i < n && s[i] == '#') {
        const char *newline = memchr(s + i, '\n', n - i);
        size_t end = newline ? (size_t)(newline - s) : n;
        i += i + 1 < end && s[i + 1] == ' ' ? 2 : 1;
        size_t length = end - i;
        while (length > 0 && strchr(" \t\r", s[i + length - 1]))
            length--;
        if (used > 0)
            about[used++] = '\n';
        memcpy(about + used, s + i, length);
        used += length;
        i = end < n ? end + 1 : n;
        i += skip_bytes(s + i, n - i, " \t");
    }
    if (used > 0)
        b->about = about;
}

static void keep_lists(tb_parser *p)
{
    tb_block *b = p->lx.block;
    const size_t *first = p->first.data;
    size_t nstmts = p->stmts.n;
    b->nsections = (int)p->sections.n;
    b->ndefs = (int)p->defs.n;
    b->ninit = (int)p->init.n;
    b->nsettings = (int)p->settings.n;
    b->nexpect = (int)p->expect.n;
    tb_stmt *stmts = tb_list_keep(p, &p->stmts, 0);
    b->sections = tb_list_keep(p, &p->sections, 0);
    b->defs = tb_list_keep(p, &p->defs, 0);
    b->init = tb_list_keep(p, &p->init, 0);
    b->settings = tb_list_keep(p, &p->settings, 0);
    b->expect = tb_list_keep(p, &p->expect, 0);
    for (int i = 0; tb_parser_ok(p) && i < b->nsections; i++) {
        size_t end = i + 1 < b->nsections ? first[i + 1] : nstmts;
        b->sections[i].stmts = stmts + first[i];
        b->sections[i].nstmts = (int)(end - first[i]);
    }
}

static tb_block *create_block(tb_ctx *ctx, const char *name, const char *text,
                              size_t n)
{
    tb_arena arena;
    tb_arena_init(&arena, ctx);
    tb_block *b = TB_NEW(&arena, tb_block);
    if (!b)
        return NULL;
    b->arena = arena;
    b->source = tb_arena_strndup(&b->arena, text, n);
    b->name = name ? tb_arena_strdup(&b->arena, name) : NULL;
    if (b->source && (b->name || !name))
        return b;
    tb_block_destroy(ctx, b);
    return NULL;
}

static tb_status check_length(tb_ctx *ctx, const char *name, size_t n)
{
    const tb_block nothing = {.name = name};
    if (n <= TB_TEXT_MAX)
        return TB_OK;
    return tb_block_fail(ctx, &nothing, (tb_pos){0, 0},
                         "a text of %zu bytes, at most %d are read", n,
                         TB_TEXT_MAX);
}

tb_status tb_block_parse(tb_ctx *ctx, const char *name, const char *text,
                         size_t n, tb_parse_mode mode, tb_block **out)
{
    *out = NULL;
    if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* byte order mark */
        text += 3;
        n -= 3;
    }
    TB_TRY(check_length(ctx, name, n));
    tb_block *b = create_block(ctx, name, text, n);
    if (!b)
        return TB_ERR_MEMORY;
    tb_parser p = {.mode = mode,
                   .args.size = sizeof(tb_arg),
                   .sections.size = sizeof(tb_section),
                   .first.size = sizeof(size_t),
                   .stmts.size = sizeof(tb_stmt),
                   .defs.size = sizeof(tb_def),
                   .init.size = sizeof(tb_init_rule),
                   .globs.size = sizeof(char *),
                   .settings.size = sizeof(tb_setting),
                   .expect.size = sizeof(char *)};
    tb_lexer_init(&p.lx, ctx, b, n);
    if (tb_parser_ok(&p))
        keep_about(&p, b->source, n);
    if (tb_parser_ok(&p))
        parse_text(&p);
    if (tb_parser_ok(&p))
        keep_lists(&p);
    tb_list *lists[] = {&p.args, &p.sections, &p.first,    &p.stmts, &p.defs,
                        &p.init, &p.globs,    &p.settings, &p.expect};
    for (size_t i = 0; i < TB_LEN(lists); i++)
        tb_free(ctx, lists[i]->data);
    if (!tb_parser_ok(&p)) {
        tb_block_destroy(ctx, b);
        return p.lx.status;
    }
    *out = b;
    return TB_OK;
}

void tb_block_destroy(tb_ctx *ctx, tb_block *b)
{
    (void)ctx;
    if (!b)
        return;
    tb_arena arena = b->arena; /* the block lies inside it */
    tb_arena_clear(&arena);
}
