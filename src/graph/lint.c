/* SPDX-License-Identifier: MIT */
/* Findings: the stack is built once, every row of lint_table.c looks at it,
 * and what was found is ordered by place. */
#include "graph/lint.h"

#include "graph/init_rules.h"

/* --- the stack ----------------------------------------------------------- */

static tb_status kind_at(tb_lint *L, size_t l, int *kind)
{
    int section;
    *kind = -1;
    if (l == 0)
        return TB_OK;
    TB_TRY(
        tb_graph_section(L->ctx, L->b, &L->sizes, L->at->which, l, &section));
    *kind = L->at->kind_of[section];
    return TB_OK;
}

static tb_status add_kind(tb_lint *L, const tb_section_use *use, int section)
{
    tb_graph *g;
    int below;
    TB_TRY(tb_graph_layer(L->ctx, &L->arena, L->b, &L->sizes, L->at->which,
                          use->first, &g));
    TB_TRY(kind_at(L, use->first - 1, &below));
    L->at->kind_of[section] = L->at->nkinds;
    L->at->kinds[L->at->nkinds++] = (lint_graph){.g = g,
                                                 .first = use->first,
                                                 .count = use->blocks,
                                                 .repeats = use->repeats,
                                                 .below = below};
    return TB_OK;
}

/* The section whose first block is the next one above `l`, -1: none. */
static int next_section(const tb_lint *L, const tb_section_use *use, size_t l)
{
    int next = -1;
    for (int i = 0; i < L->b->nsections; i++)
        if (use[i].blocks && use[i].first > l &&
            (next < 0 || use[i].first < use[next].first))
            next = i;
    return next;
}

/* Each kind of layer once, from the bottom. */
static tb_status build_layers(tb_lint *L)
{
    size_t n = (size_t)L->b->nsections + 1;
    lint_stack *at = L->at;
    tb_section_use *use = tb_arena_alloc(&L->arena, n * sizeof *use);
    at->kinds = tb_arena_alloc(&L->arena, n * sizeof *at->kinds);
    at->kind_of = tb_arena_alloc(&L->arena, n * sizeof *at->kind_of);
    if (!use || !at->kinds || !at->kind_of)
        return TB_ERR_MEMORY;
    TB_TRY(tb_graph_sections(L->ctx, L->b, &L->sizes, at->which, use));
    for (size_t i = 0; i < n; i++)
        at->kind_of[i] = -1;
    for (int i = next_section(L, use, 0); i >= 0;
         i = next_section(L, use, use[i].first))
        TB_TRY(add_kind(L, &use[i], i));
    return kind_at(L, tb_sizes_depth(&L->sizes, at->which), &at->last);
}

static tb_status build_ends(tb_lint *L)
{
    tb_graph *stem, *tail;
    lint_stack *at = L->at;
    bool under = L->nstacks > 1 && at->which == TB_STACK_ENCODER;
    TB_TRY(tb_graph_stem(L->ctx, &L->arena, L->b, &L->sizes, at->which, &stem));
    if (under)
        TB_TRY(tb_graph_memory(L->ctx, &L->arena, L->b, &L->sizes, &tail));
    else
        TB_TRY(tb_graph_tail(L->ctx, &L->arena, L->b, &L->sizes, &tail));
    at->stem = (lint_graph){.g = stem, .below = -1};
    at->tail = (lint_graph){.g = tail, .below = at->last};
    return TB_OK;
}

static tb_status build_graphs(tb_lint *L, tb_stack which)
{
    lint_stack *at = L->at;
    at->which = which;
    TB_TRY(build_layers(L));
    TB_TRY(build_ends(L));
    TB_TRY(lint_look(L, &at->stem));
    for (int i = 0; i < at->nkinds; i++)
        TB_TRY(lint_look(L, &at->kinds[i]));
    return lint_look(L, &at->tail);
}

static tb_status build_stacks(tb_lint *L)
{
    bool both = L->sizes.s.stack == TB_STACKS_BOTH;
    L->nstacks = both ? 2 : 1;
    for (int i = 0; i < L->nstacks; i++) {
        L->at = &L->stacks[i];
        TB_TRY(build_graphs(L, both && i == 0 ? TB_STACK_ENCODER
                                              : tb_sizes_top(&L->sizes)));
    }
    return TB_OK;
}

/* drop(...) vanishes at rate 0; here it has to be seen. */
static tb_status build(tb_lint *L, const tb_settings *settings)
{
    TB_TRY(tb_sizes_resolve(L->ctx, L->b, settings, &L->sizes));
    L->given_drop = L->sizes.s.dropout > 0;
    if (!L->given_drop)
        L->sizes.s.dropout = 0.1;
    TB_TRY(tb_init_extra(L->ctx, &L->sizes.s, &L->extra));
    size_t n = (size_t)L->b->ninit + 1;
    n += L->extra ? (size_t)L->extra->ninit : 0;
    L->rule_hit = tb_arena_alloc(&L->arena, 2 * n * sizeof *L->rule_hit);
    L->glob_hit = tb_arena_alloc(&L->arena, n * sizeof *L->glob_hit);
    if (!L->rule_hit || !L->glob_hit)
        return TB_ERR_MEMORY;
    L->rule_won = L->rule_hit + n;
    return build_stacks(L);
}

/* --- findings ------------------------------------------------------------ */

static bool is_expected(const tb_block *b, const char *code)
{
    for (int i = 0; i < b->nexpect; i++)
        if (tb_streq(b->expect[i], code))
            return true;
    return false;
}

static bool is_known(const tb_lint *L, const char *code, tb_pos pos)
{
    for (int i = 0; i < L->n; i++)
        if (tb_streq(L->found[i].code, code) && L->found[i].line == pos.line &&
            L->found[i].column == pos.column)
            return true;
    return false;
}

static void found(tb_lint *L, tb_pos pos, tb_lint_level level,
                  const char *message)
{
    const tb_lint_code *say = &L->row->say;
    pos = pos.line > 0 ? pos : (tb_pos){1, 1};
    if (L->n == LINT_FINDINGS || is_known(L, say->code, pos))
        return;
    if (is_expected(L->b, say->code))
        level = TB_LINT_NOTE;
    L->found[L->n++] = (tb_finding){say->code,   level,    message,   say->fix,
                                    say->source, pos.line, pos.column};
}

void lint_found(tb_lint *L, tb_pos pos)
{
    found(L, pos, L->row->say.level, L->row->say.message);
}

tb_status lint_said(tb_lint *L, tb_pos pos, tb_lint_level level,
                    const char *message)
{
    if (!message)
        return TB_ERR_MEMORY;
    found(L, pos, level, message);
    return TB_OK;
}

tb_pos lint_pos(const lint_graph *g, int node)
{
    const tb_node *n = &g->g->nodes[node];
    return n->param >= 0 ? g->g->params[n->param].pos : n->pos;
}

static tb_status check_row(tb_lint *L, const lint_row *row)
{
    bool each = row->scope == LINT_EACH;
    L->row = row;
    if (!row->check)
        return TB_OK;
    if (row->scope == LINT_STACK)
        return row->check(L, NULL);
    if (each)
        TB_TRY(row->check(L, &L->at->stem));
    for (int i = 0; i < L->at->nkinds; i++)
        TB_TRY(row->check(L, &L->at->kinds[i]));
    return each ? row->check(L, &L->at->tail) : TB_OK;
}

/* --- expect -------------------------------------------------------------- */

/* Column of `word` in line[0..n), from 1; 0: it is not there. */
static int column_of(const char *line, size_t n, const char *word)
{
    size_t k = strlen(word);
    for (size_t i = 0; i + k <= n; i++)
        if (!memcmp(line + i, word, k))
            return (int)i + 1;
    return 0;
}

/* Where a code of expect: stands: the tree keeps no place of them. */
static tb_pos expect_pos(const tb_lint *L, const char *code)
{
    static const char word[] = "expect";
    const char *s = L->b->source;
    for (int line = 1; s; line++) {
        const char *end = strchr(s, '\n');
        size_t n = end ? (size_t)(end - s) : strlen(s);
        size_t blank = strspn(s, " \t");
        bool here = !strncmp(s + blank, word, sizeof word - 1);
        int column = here ? column_of(s, n, code) : 0;
        if (column)
            return (tb_pos){line, column};
        s = end ? end + 1 : NULL;
    }
    return (tb_pos){1, 1};
}

static const char *unmet_text(tb_lint *L, const char *code)
{
    const char **codes = tb_arena_alloc(&L->arena, lint_nrows * sizeof *codes);
    for (size_t i = 0; codes && i < lint_nrows; i++) {
        codes[i] = lint_rows[i].say.code;
        if (tb_streq(codes[i], code))
            return tb_arena_printf(&L->arena,
                                   "%.60s is expected and was not found", code);
    }
    const char *near = codes ? tb_nearest(code, codes, lint_nrows) : NULL;
    if (near)
        return tb_arena_printf(&L->arena, "%.60s is no code; did you mean %s?",
                               code, near);
    return tb_arena_printf(&L->arena, "%.60s is no code", code);
}

static tb_status check_expected(tb_lint *L)
{
    while (!tb_streq(L->row->say.code, "expect-unmet"))
        L->row++;
    int n = L->n;
    for (int i = 0; i < L->b->nexpect && i < LINT_FINDINGS; i++) {
        const char *code = L->b->expect[i];
        bool met = false;
        for (int j = 0; j < n; j++)
            met |= tb_streq(L->found[j].code, code);
        if (!met)
            TB_TRY(lint_said(L, expect_pos(L, code), TB_LINT_NOTE,
                             unmet_text(L, code)));
    }
    return TB_OK;
}

static bool is_before(const tb_finding *a, const tb_finding *b)
{
    return a->line != b->line ? a->line < b->line : a->column < b->column;
}

/* By place; findings at one place stay in the table's order. */
static void sort(tb_lint *L)
{
    for (int i = 1; i < L->n; i++) {
        tb_finding f = L->found[i];
        int j = i;
        for (; j > 0 && is_before(&f, &L->found[j - 1]); j--)
            L->found[j] = L->found[j - 1];
        L->found[j] = f;
    }
}

static tb_status run(tb_lint *L, const tb_settings *settings)
{
    TB_TRY(build(L, settings));
    for (int s = 0; s < L->nstacks; s++) {
        L->at = &L->stacks[s];
        for (size_t i = 0; i < lint_nrows; i++)
            TB_TRY(check_row(L, &lint_rows[i]));
    }
    L->row = lint_rows;
    TB_TRY(check_expected(L));
    sort(L);
    return TB_OK;
}

/* --- the public face ----------------------------------------------------- */

tb_status tb_lint_create(tb_ctx *ctx, const tb_block *b,
                         const tb_settings *settings, tb_lint **out)
{
    tb_lint *L = tb_alloc(ctx, 1, sizeof *L);
    *out = NULL;
    if (!L)
        return TB_ERR_MEMORY;
    L->ctx = ctx;
    L->b = b;
    tb_arena_init(&L->arena, ctx);
    tb_status s = run(L, settings);
    if (s == TB_OK)
        *out = L;
    else
        tb_lint_destroy(L);
    return s;
}

void tb_lint_destroy(tb_lint *L)
{
    if (!L)
        return;
    if (L->extra)
        tb_block_destroy(L->ctx, L->extra);
    tb_arena_clear(&L->arena);
    tb_free(L->ctx, L);
}

size_t tb_lint_count(const tb_lint *L)
{
    return (size_t)L->n;
}

const tb_finding *tb_lint_at(const tb_lint *L, size_t i)
{
    return &L->found[i];
}

int tb_lint_worst(const tb_lint *L)
{
    int worst = -1;
    for (int i = 0; i < L->n; i++)
        if ((int)L->found[i].level > worst)
            worst = (int)L->found[i].level;
    return worst;
}

const tb_lint_code *tb_lint_code_at(size_t i)
{
    return i < lint_nrows ? &lint_rows[i].say : NULL;
}

const char *tb_lint_level_name(tb_lint_level level)
{
    static const char *const names[] = {"note", "warn", "fail"};
    return names[level];
}

void tb_lint_json(const tb_lint *L, tb_json *j, bool named, const char *block)
{
    for (int i = 0; i < L->n; i++) {
        const tb_finding *f = &L->found[i];
        tb_json_object(j, NULL);
        tb_json_string(j, "code", f->code);
        tb_json_string(j, "level", tb_lint_level_name(f->level));
        tb_json_string(j, "message", f->message);
        tb_json_int(j, "line", f->line);
        tb_json_int(j, "column", f->column);
        tb_json_string(j, "fix", f->fix);
        tb_json_string(j, "source", f->source);
        if (named)
            tb_json_string(j, "block", block);
        tb_json_end(j);
    }
}

/* Words as they fit into `columns`, indented from the second line on. */
static void put_words(tb_buf *out, const char *text, size_t columns)
{
    size_t at = 0, n;
    for (bool first = true; *(text += strspn(text, " ")); first = false) {
        n = strcspn(text, " ");
        bool wrap = !first && columns && at + 1 + n > columns;
        tb_buf_puts(out, wrap ? "\n    " : first ? "" : " ");
        tb_buf_put(out, text, n);
        at = wrap ? 4 + n : at + n + !first;
        text += n;
    }
    tb_buf_putc(out, '\n');
}

static void print(const tb_lint *L, const tb_finding *f, const char *file,
                  size_t columns, tb_buf *out)
{
    tb_buf line;
    tb_buf_init(&line, L->ctx);
    if (file)
        tb_buf_printf(&line, "%s:", file);
    tb_buf_printf(&line, "%d:%d: %s %s: %s", f->line, f->column,
                  tb_lint_level_name(f->level), f->code, f->message);
    put_words(out, tb_buf_str(&line), columns);
    out->failed |= line.failed;
    tb_buf_clear(&line);
    tb_block_caret(L->b, (tb_pos){f->line, f->column}, columns, out);
    const char *const notes[][2] = {{"fix", f->fix}, {"source", f->source}};
    for (size_t i = 0; i < TB_LEN(notes); i++)
        if (notes[i][1]) {
            tb_buf_printf(out, "    %s: ", notes[i][0]);
            put_words(out, notes[i][1], columns > 12 ? columns - 12 : columns);
        }
}

tb_status tb_lint_text(const tb_lint *L, const char *file, size_t columns,
                       char **out)
{
    tb_buf b;
    *out = NULL;
    tb_buf_init(&b, L->ctx);
    for (int i = 0; i < L->n; i++)
        print(L, &L->found[i], file, columns, &b);
    tb_status s = tb_buf_status(&b);
    if (s == TB_OK)
        *out = tb_alloc(L->ctx, b.len + 1, 1);
    if (*out)
        memcpy(*out, tb_buf_str(&b), b.len);
    tb_buf_clear(&b);
    return *out ? TB_OK : TB_ERR_MEMORY;
}
