/* SPDX-License-Identifier: MIT */
/* A text as lines, and what the rest of the parser stands on: lists that
 * grow, and one token of look-ahead. docs/language.md has the whole grammar. */
#include "equation/parser.h"

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

bool tb_parser_of_weights(const tb_parser *p)
{
    return p->area == TB_AREA_INIT || p->area == TB_AREA_AFTER;
}

void tb_parser_next(tb_parser *p)
{
    p->tok = tb_lexer_next(&p->lx);
}

bool tb_parser_at(const tb_parser *p, char op)
{
    return p->tok.kind == TB_TOKEN_OP && p->tok.op == op;
}

void tb_parser_fail_expected(tb_parser *p, const char *wanted)
{
    char got[TB_TOKEN_CHARS];
    tb_lexer_fail(&p->lx, p->tok.pos, "expected %s, got %s", wanted,
                  tb_token_text(&p->tok, got));
}

bool tb_parser_expect(tb_parser *p, char op, const char *what)
{
    if (!tb_parser_at(p, op)) {
        tb_parser_fail_expected(p, what);
        return false;
    }
    tb_parser_next(p);
    return tb_parser_ok(p);
}

bool tb_parser_at_line_end(const tb_parser *p)
{
    return p->tok.kind == TB_TOKEN_NEWLINE || p->tok.kind == TB_TOKEN_END;
}

void tb_parser_reread(tb_parser *p)
{
    p->lx.words = false;
    tb_lexer_seek(&p->lx, &p->tok);
    tb_parser_next(p);
}
/* --- the text ------------------------------------------------------------- */

/* line = header | statement | init-line | setting */
static void parse_line(tb_parser *p)
{
    if (tb_parser_at_header(p)) {
        tb_parse_header(p);
        return; /* statements may follow on the same line */
    }
    if (tb_parser_of_weights(p))
        tb_parse_init_line(p);
    else if (p->tok.kind == TB_TOKEN_NAME && tb_lexer_peek(&p->lx) == ':')
        tb_parser_fail_section(p, &p->tok);
    else if (p->area == TB_AREA_MODEL)
        tb_parse_setting(p);
    else
        tb_parse_statement(p);
    if (!tb_parser_at_line_end(p))
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
            p->lx.words = tb_parser_of_weights(p);
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

static bool is_control(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f;
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
        for (size_t k = 0; k < length; k++) /* it is shown on terminals */
            about[used++] = is_control(s[i + k]) ? ' ' : s[i + k];
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
    b->nafter = (int)p->after.n;
    b->nsettings = (int)p->settings.n;
    b->nexpect = (int)p->expect.n;
    tb_stmt *stmts = tb_list_keep(p, &p->stmts, 0);
    b->sections = tb_list_keep(p, &p->sections, 0);
    b->defs = tb_list_keep(p, &p->defs, 0);
    b->init = tb_list_keep(p, &p->init, 0);
    b->after = tb_list_keep(p, &p->after, 0);
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
                   .after.size = sizeof(tb_init_rule),
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
    tb_list *lists[] = {&p.args, &p.sections, &p.first, &p.stmts,    &p.defs,
                        &p.init, &p.after,    &p.globs, &p.settings, &p.expect};
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
