/* SPDX-License-Identifier: MIT */
/* Section headers: which section, whose role, under which condition. */
#include "equation/names.h"
#include "equation/parser.h"

static bool token_is(const tb_token *t, const char *word)
{
    return strlen(word) == t->n && !memcmp(word, t->start, t->n);
}

static const char *const section_words[] = {"block", "stem",  "final", "init",
                                            "after", "model", "expect"};
static const char *const role_words[] = {"encoder", "decoder"};
enum { WORD_INIT = 3, WORD_AFTER, WORD_MODEL, WORD_EXPECT };

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

bool tb_parser_at_header(const tb_parser *p)
{
    char after = tb_lexer_peek(&p->lx);
    if (p->tok.kind != TB_TOKEN_NAME && p->tok.kind != TB_TOKEN_WORD)
        return false;
    if (role_word(&p->tok) >= 0)
        return after == ':' || after == '[' || (after >= 'a' && after <= 'z');
    return section_word(&p->tok) >= 0 && (after == ':' || after == '[');
}

void tb_parser_fail_section(tb_parser *p, const tb_token *t)
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

void tb_parser_open_section(tb_parser *p, tb_section_kind kind, tb_pos pos,
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
            tb_parser_fail_expected(p, "a lint code");
            return;
        }
        const char **code = tb_list_push(p, &p->expect);
        if (!code)
            return;
        *code = p->tok.name;
        tb_parser_next(p);
    } while (tb_parser_at(p, ','));
    p->lx.words = false;
    if (!tb_parser_at_line_end(p))
        tb_parser_fail_expected(p, "',' or the end of the line");
}

/* header = [ role ] [ "block" | "stem" | "final" ] [ condition ] ":"
 *        | "init" ":" | "after" ":" | "model" ":" | expect; a role alone means
 * its block */
void tb_parse_header(tb_parser *p)
{
    tb_token start = p->tok;
    const tb_expr *condition = NULL;
    int role = role_word(&p->tok), word = TB_SECTION_BLOCK;
    tb_parser_reread(p);
    if (role >= 0)
        tb_parser_next(p);
    if (role < 0 || p->tok.kind == TB_TOKEN_NAME) {
        tb_token t = p->tok;
        word = section_word(&t);
        if (word < 0)
            tb_parser_fail_section(p, &t);
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
        tb_parser_fail_expected(p, "':'");
        return;
    }
    if (word == WORD_EXPECT) {
        parse_expect(p);
        return;
    }
    p->open = false;
    p->area = word == WORD_INIT    ? TB_AREA_INIT
              : word == WORD_AFTER ? TB_AREA_AFTER
              : word == WORD_MODEL ? TB_AREA_MODEL
                                   : TB_AREA_LINES;
    if (p->area == TB_AREA_LINES)
        tb_parser_open_section(p, (tb_section_kind)word, start.pos, role,
                               condition);
    p->lx.words = tb_parser_of_weights(p);
    tb_parser_next(p);
}
