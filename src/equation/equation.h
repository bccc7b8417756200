/* SPDX-License-Identifier: MIT */
/* The text of a block as a tree. Knows lines and columns, nothing of sizes:
 * what a name means is the graph's business. docs/language.md is the grammar.
 */
#ifndef TB_EQUATION_EQUATION_H
#define TB_EQUATION_EQUATION_H

#include "base/base.h"
#include "tollbooth/block.h"

/** 1-based; column counts code points. line 0: no position. */
typedef struct tb_pos {
    int line, column;
} tb_pos;

typedef enum tb_expr_kind {
    TB_EXPR_NUMBER, /* number */
    TB_EXPR_NAME,   /* name */
    TB_EXPR_CALL,   /* name(args, key=args) */
    TB_EXPR_NEG,    /* -arg[0] */
    TB_EXPR_BINARY, /* arg[0] op arg[1], op one of + - * / ^ */
    TB_EXPR_TUPLE,  /* (arg[0], arg[1], ...), two or more */
    TB_EXPR_COMPARE /* arg[0] op arg[1], op one of < > l(<=) g(>=) =(==) */
} tb_expr_kind;

typedef struct tb_expr {
    tb_expr_kind kind;
    tb_pos pos; /* of the name, number or operator */
    double number;
    const char *name; /* canonical: aliases of ruling 11 are gone */
    char op;
    int depth; /* longest path down, 1 for a leaf, at most TB_DEPTH_MAX */
    int nargs;
    struct tb_arg *args;
} tb_expr;

/** One operand; `key` is NULL unless written `key=value` in a call. */
typedef struct tb_arg {
    const char *key;
    tb_pos key_pos;
    const tb_expr *value;
} tb_arg;

typedef enum tb_stmt_kind {
    TB_STMT_ASSIGN, /* name = value */
    TB_STMT_VALUE   /* value, only as the last statement of an EXPR */
} tb_stmt_kind;

typedef struct tb_stmt {
    tb_stmt_kind kind;
    tb_pos pos;
    const char *name;
    const tb_expr *value;
} tb_stmt;

/** name(params) = body, wherever it stands in the text. */
typedef struct tb_def {
    tb_pos pos;
    const char *name;
    int nparams;
    const char **params;
    const tb_expr *body;
} tb_def;

typedef enum tb_section_kind {
    TB_SECTION_BLOCK,
    TB_SECTION_STEM,
    TB_SECTION_FINAL
} tb_section_kind;

/** Statements of one section. `condition` (block[l <= N/4]) is NULL where
 * the section has none; `role` is NULL, "encoder" or "decoder". */
typedef struct tb_section {
    tb_section_kind kind;
    tb_pos pos;
    const char *role;
    const tb_expr *condition;
    int nstmts;
    tb_stmt *stmts;
} tb_section;

/** One line of init: or after:, `glob, glob: rule(args)`. */
typedef struct tb_init_rule {
    tb_pos pos;
    int nglobs;
    const char **globs;
    const tb_expr *rule; /* a name (zeros) or a call (normal(0.02)) */
} tb_init_rule;

/** One line of model: `key = value`; value is a constant expression or a
 * bare word. */
typedef struct tb_setting {
    tb_pos pos;
    const char *key;
    const tb_expr *value;
} tb_setting;

/** A whole text. Lives in its arena and dies with it. */
typedef struct tb_block {
    tb_arena arena;
    const char *name;   /* built-in or file name without folder, or NULL */
    const char *source; /* the text as given, for carets */
    const char *about;  /* the leading comment lines, without '#', or NULL */
    int nsections, ndefs, ninit, nafter, nsettings, nexpect;
    tb_section *sections;
    tb_def *defs;
    tb_init_rule *init, *after;
    tb_setting *settings;
    const char **expect; /* lint codes of `expect: CODE` lines */
} tb_block;

/** How a text is read. */
typedef enum tb_parse_mode {
    TB_PARSE_BLOCK, /* a file or block text: statements assign */
    TB_PARSE_EVAL   /* EXPR of eval: the last statement may be a bare value */
} tb_parse_mode;

enum {
    TB_TEXT_MAX = 1 << 20, /* bytes: longer is an error */
    TB_NESTING_MAX = 200,  /* brackets: deeper is an error */
    TB_DEPTH_MAX = 1000,   /* operations on one path of a tree, also in a chain
                              a + a + ...: recursion over trees is safe */
    TB_DEFS_MAX = 1000,    /* definitions in one text */
    TB_PARAMS_MAX = 64     /* parameters of one definition */
};

/**
 * tb_block_parse - text to tree. `name` is used in errors ("name:1:9: ...")
 * and may be NULL. Bare statements before any section header are the block
 * section. Errors: TB_ERR_PARSE with line, column, the line and a caret, and
 * the likely meant word where there is one; TB_ERR_MEMORY.
 */
tb_status tb_block_parse(tb_ctx *ctx, const char *name, const char *text,
                         size_t n, tb_parse_mode mode, tb_block **out);

/** tb_block_fail - TB_ERR_PARSE at a position of this block's text: message,
 * then the line, then the caret. */
tb_status tb_block_fail(tb_ctx *ctx, const tb_block *b, tb_pos pos,
                        const char *fmt, ...) TB_PRINTF(4, 5);

/** tb_block_caret - the line of a position and a caret under it, two indented
 * lines; of a long line what fits into `columns` (0: 82); nothing where there
 * is no position. */
void tb_block_caret(const tb_block *b, tb_pos pos, size_t columns, tb_buf *out);

/** tb_block_print - the canonical text: parse(print(b)) prints the same. */
void tb_block_print(const tb_block *b, tb_buf *out);
/** tb_expr_print - one expression, canonical, minimal brackets. */
void tb_expr_print(const tb_expr *e, tb_buf *out);

/** Values of the constants for folding: N M l k d h. NaN: not known here. */
typedef struct tb_consts {
    double N, M, l, k, d, h;
} tb_consts;

/** tb_expr_is_const - true if e holds only numbers, constants, + - * / ^ and
 * sqrt log exp min max abs floor. `lookup` resolves other names (a section's
 * constant locals) to their expressions, NULL for not constant. False also for
 * what takes more than some 10^5 steps, such as a name that means itself. */
typedef const tb_expr *(*tb_expr_lookup)(void *user, const char *name);
bool tb_expr_is_const(const tb_expr *e, tb_expr_lookup lookup, void *user);

/** tb_expr_fold - the value; TB_ERR_PARSE (not constant, division by zero,
 * result not finite) at its position in `b`. Comparisons give 1 or 0. */
tb_status tb_expr_fold(tb_ctx *ctx, const tb_block *b, const tb_expr *e,
                       const tb_consts *c, tb_expr_lookup lookup, void *user,
                       double *out);

/* --- what is built in ---------------------------------------------------- */

/** One file of blocks/, embedded at build time. */
typedef struct tb_builtin {
    const char *name, *text;
} tb_builtin;
extern const tb_builtin tb_builtins[]; /* sorted by name; name NULL ends */

/** tb_block_hash - of the canonical text; 0 if memory ran out. */
uint64_t tb_block_hash(const tb_block *b);

#endif
