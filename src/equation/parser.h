/* SPDX-License-Identifier: MIT */
/* What the parts of the parser share. parser.c reads a text line by line;
 * header.c, statement.c and init_line.c read the lines, expression.c the
 * expressions in them. After a failure each returns at once. */
#ifndef TB_EQUATION_PARSER_H
#define TB_EQUATION_PARSER_H

#include "equation/lexer.h"

/** Items of one size that grow while a construct is read; it is copied into
 * the arena when its length is known. */
typedef struct tb_list {
    void *data;
    size_t n, cap, size;
} tb_list;

typedef enum tb_area {
    TB_AREA_LINES,
    TB_AREA_INIT,
    TB_AREA_AFTER,
    TB_AREA_MODEL
} tb_area;

typedef struct tb_parser {
    tb_lexer lx;
    tb_token tok; /* the one to look at */
    tb_parse_mode mode;
    tb_area area;       /* what a line without header is now */
    bool open;          /* a section takes statements */
    bool next_assigned; /* x_{i+1} has its value, so x_i is gone */
    int nesting;
    tb_pos value_at;     /* of a bare value: nothing may follow it */
    tb_pos always[3][3]; /* section without condition, by kind and role */
    tb_list args, sections, first, stmts, defs, init, after, globs, settings,
        expect;
} tb_parser;

/** tb_list_push - room for one more zeroed item; NULL after a failure. */
void *tb_list_push(tb_parser *p, tb_list *l);

/** tb_list_keep - items from `from` on, in the arena, and off the list. */
void *tb_list_keep(tb_parser *p, tb_list *l, size_t from);

bool tb_parser_ok(const tb_parser *p);
/** tb_parser_of_weights - is a line of the area "weights: rule"? */
bool tb_parser_of_weights(const tb_parser *p);
void tb_parser_next(tb_parser *p);
bool tb_parser_at(const tb_parser *p, char op);
bool tb_parser_at_line_end(const tb_parser *p);

/** tb_parser_reread - the token again, as a name or operator, not a word. */
void tb_parser_reread(tb_parser *p);

/** tb_parser_expect - over this operator, or fail: expected `what`. */
bool tb_parser_expect(tb_parser *p, char op, const char *what);
void tb_parser_fail_expected(tb_parser *p, const char *wanted);

/** tb_parser_unexpected - fail at the token: why nothing can go on here. */
void tb_parser_unexpected(tb_parser *p);

/** tb_parse_sum - an expression; NULL after a failure. */
tb_expr *tb_parse_sum(tb_parser *p);

/** tb_parse_condition - sum compare sum, of block[...]. */
tb_expr *tb_parse_condition(tb_parser *p);

/* header.c */
bool tb_parser_at_header(const tb_parser *p);
void tb_parse_header(tb_parser *p);
void tb_parser_fail_section(tb_parser *p, const tb_token *t);
void tb_parser_open_section(tb_parser *p, tb_section_kind kind, tb_pos pos,
                            int role, const tb_expr *condition);

/* statement.c, init_line.c */
void tb_parse_statement(tb_parser *p);
void tb_parse_init_line(tb_parser *p);
void tb_parse_setting(tb_parser *p);

#endif
