/* SPDX-License-Identifier: MIT */
/* Checks of the text itself: names that nobody reads, values of x that are
 * lost, settings and sections without effect. One table of names, walked
 * backwards from the end of each section. */
#include "graph/build.h"
#include "graph/lint.h"

#include "equation/names.h"

typedef struct name_entry {
    const char *name;
    int live;      /* in the walk of this number */
    int def;       /* its definition, -1 */
    bool in_def;   /* a definition reads it from its caller */
    bool in_stem;  /* stem: assigns it */
    bool outside;  /* read outside of stem: */
    bool def_used; /* the definition is called */
} name_entry;

typedef struct lint_names {
    size_t nslots; /* a power of two */
    name_entry *slots;
    int walk;
    int *todo, ntodo; /* definitions whose bodies are still to be read */
} lint_names;

static name_entry *entry(lint_names *t, const char *name)
{
    size_t i = tb_hash(name, strlen(name)) & (t->nslots - 1);
    while (t->slots[i].name && !tb_streq(t->slots[i].name, name))
        i = (i + 1) & (t->nslots - 1);
    if (!t->slots[i].name)
        t->slots[i] = (name_entry){.name = name, .def = -1};
    return &t->slots[i];
}

/* --- filling it ---------------------------------------------------------- */

static size_t count_words(const tb_expr *e)
{
    size_t n = 1;
    for (int i = 0; i < e->nargs; i++)
        n += count_words(e->args[i].value);
    return n;
}

static size_t count_all(const tb_block *b)
{
    size_t n = 8;
    for (int i = 0; i < b->nsections; i++)
        for (int j = 0; j < b->sections[i].nstmts; j++)
            n += 1 + count_words(b->sections[i].stmts[j].value);
    for (int i = 0; i < b->ndefs; i++)
        n += 1 + (size_t)b->defs[i].nparams + count_words(b->defs[i].body);
    return n;
}

static void call_def(lint_names *t, name_entry *n)
{
    if (n->def < 0 || n->def_used)
        return;
    n->def_used = true;
    t->todo[t->ntodo++] = n->def;
}

static void note_calls(lint_names *t, const tb_expr *e)
{
    static const char *const by_f[] = {"attn", "cross", "ffn"};
    if (e->kind == TB_EXPR_CALL)
        call_def(t, entry(t, e->name));
    for (size_t i = 0;
         e->kind == TB_EXPR_CALL && tb_streq(e->name, "F") && i < TB_LEN(by_f);
         i++)
        call_def(t, entry(t, by_f[i]));
    for (int i = 0; i < e->nargs; i++)
        note_calls(t, e->args[i].value);
}

static bool is_param(const tb_def *d, const char *name)
{
    for (int i = 0; i < d->nparams; i++)
        if (tb_streq(d->params[i], name))
            return true;
    return false;
}

static void note_free(lint_names *t, const tb_def *d, const tb_expr *e)
{
    bool named = e->kind == TB_EXPR_NAME || e->kind == TB_EXPR_CALL;
    if (named && !is_param(d, e->name))
        entry(t, e->name)->in_def = true;
    for (int i = 0; i < e->nargs; i++)
        note_free(t, d, e->args[i].value);
}

static void note_outside(lint_names *t, const tb_expr *e)
{
    if (e->kind == TB_EXPR_NAME || e->kind == TB_EXPR_CALL)
        entry(t, e->name)->outside = true;
    for (int i = 0; i < e->nargs; i++)
        note_outside(t, e->args[i].value);
}

static void note_section(lint_names *t, const tb_section *s)
{
    bool stem = s->kind == TB_SECTION_STEM;
    for (int i = 0; i < s->nstmts; i++) {
        if (stem && s->stmts[i].kind == TB_STMT_ASSIGN)
            entry(t, s->stmts[i].name)->in_stem = true;
        if (!stem)
            note_outside(t, s->stmts[i].value);
        note_calls(t, s->stmts[i].value);
    }
}

static tb_status fill(tb_lint *L, lint_names **out)
{
    const tb_block *b = L->b;
    lint_names *t = TB_NEW(&L->arena, lint_names);
    size_t n = 64, words = count_all(b);
    while (n < 2 * words)
        n *= 2;
    *out = t;
    if (!t)
        return TB_ERR_MEMORY;
    t->nslots = n;
    t->slots = tb_arena_alloc(&L->arena, n * sizeof *t->slots);
    t->todo =
        tb_arena_alloc(&L->arena, ((size_t)b->ndefs + 1) * sizeof *t->todo);
    if (!t->slots || !t->todo)
        return TB_ERR_MEMORY;
    for (int i = 0; i < b->ndefs; i++)
        entry(t, b->defs[i].name)->def = i;
    for (int i = 0; i < b->ndefs; i++)
        note_free(t, &b->defs[i], b->defs[i].body);
    for (int i = 0; i < b->nsections; i++)
        note_section(t, &b->sections[i]);
    while (t->ntodo)
        note_calls(t, b->defs[t->todo[--t->ntodo]].body);
    return TB_OK;
}

static tb_status names_of(tb_lint *L, lint_names **out)
{
    if (!L->names)
        TB_TRY(fill(L, &L->names));
    *out = L->names;
    return TB_OK;
}

/* --- what is never read -------------------------------------------------- */

typedef enum dead_kind { DEAD_NAME, DEAD_PARAMETER, DEAD_X } dead_kind;

static void read_all(lint_names *t, const tb_expr *e)
{
    if (e->kind == TB_EXPR_NAME || e->kind == TB_EXPR_CALL)
        entry(t, e->name)->live = t->walk;
    for (int i = 0; i < e->nargs; i++)
        read_all(t, e->args[i].value);
}

/* x and the streams leave a section; of what stem: names, only what another
 * section reads. */
static bool lives_on(const tb_section *s, const name_entry *n)
{
    if (tb_streq(n->name, "x"))
        return true;
    return n->in_stem && (s->kind == TB_SECTION_BLOCK ||
                          (s->kind == TB_SECTION_STEM && n->outside));
}

static dead_kind kind_of(const tb_stmt *s)
{
    return tb_streq(s->name, "x")  ? DEAD_X
           : tb_declares(s->value) ? DEAD_PARAMETER
                                   : DEAD_NAME;
}

static tb_status say_dead(tb_lint *L, const tb_stmt *s, dead_kind kind)
{
    if (kind == DEAD_X) {
        lint_found(L, s->pos);
        return TB_OK;
    }
    return lint_said(L, s->pos, L->row->say.level,
                     tb_arena_printf(&L->arena,
                                     kind == DEAD_NAME
                                         ? "what '%.60s' is given here is "
                                           "never read"
                                         : "'%.60s' is declared and never "
                                           "used: no weight is made for it",
                                     s->name));
}

/* Backwards: a name is live if something after this reads it. A name last
 * given before the end lives on if it is a stream: `ended` tells whether the
 * walk has met a later assignment. */
static tb_status walk(tb_lint *L, lint_names *t, const tb_section *s,
                      dead_kind want)
{
    int ended = t->walk + 1;
    t->walk += 2; /* live == walk: read; live == ended: given later */
    for (int i = s->nstmts - 1; i >= 0; i--) {
        const tb_stmt *q = &s->stmts[i];
        if (q->kind == TB_STMT_ASSIGN) {
            name_entry *n = entry(t, q->name);
            bool last = n->live != t->walk && n->live != ended;
            bool live =
                n->live == t->walk || n->in_def || (last && lives_on(s, n));
            if (!live && kind_of(q) == want)
                TB_TRY(say_dead(L, q, want));
            n->live = ended;
        }
        read_all(t, q->value);
    }
    return TB_OK;
}

static tb_status walk_sections(tb_lint *L, dead_kind want)
{
    lint_names *t;
    TB_TRY(names_of(L, &t));
    for (int i = 0; i < L->b->nsections; i++)
        TB_TRY(walk(L, t, &L->b->sections[i], want));
    return TB_OK;
}

static bool mentions(const tb_expr *e, const char *name)
{
    if (e->kind == TB_EXPR_NAME && tb_streq(e->name, name))
        return true;
    for (int i = 0; i < e->nargs; i++)
        if (mentions(e->args[i].value, name))
            return true;
    return false;
}

static tb_status check_def(tb_lint *L, lint_names *t, const tb_def *d)
{
    tb_lint_level level = L->row->say.level;
    if (!entry(t, d->name)->def_used)
        return lint_said(L, d->pos, level,
                         tb_arena_printf(&L->arena,
                                         "%.60s(...) is defined and never "
                                         "called",
                                         d->name));
    for (int i = 0; i < d->nparams; i++)
        if (!mentions(d->body, d->params[i]))
            TB_TRY(lint_said(L, d->pos, level,
                             tb_arena_printf(&L->arena,
                                             "%.60s(...) never reads its "
                                             "parameter '%.60s'",
                                             d->name, d->params[i])));
    return TB_OK;
}

tb_status lint_unused_name(tb_lint *L, const lint_graph *unused)
{
    lint_names *t;
    (void)unused;
    TB_TRY(walk_sections(L, DEAD_NAME));
    TB_TRY(names_of(L, &t));
    for (int i = 0; i < L->b->ndefs; i++)
        TB_TRY(check_def(L, t, &L->b->defs[i]));
    return TB_OK;
}

tb_status lint_unused_parameter(tb_lint *L, const lint_graph *unused)
{
    (void)unused;
    return walk_sections(L, DEAD_PARAMETER);
}

/* Is x read before the section gives it a value? */
static bool reads_x(lint_names *t, const tb_section *s)
{
    name_entry *x = entry(t, "x");
    for (int i = 0; i < s->nstmts; i++) {
        t->walk++;
        read_all(t, s->stmts[i].value);
        if (x->live == t->walk)
            return true;
        if (s->stmts[i].kind == TB_STMT_ASSIGN &&
            tb_streq(s->stmts[i].name, "x"))
            return false;
    }
    return !s->nstmts || x->in_def;
}

/* What the stack computed may go on in a list. */
static bool has_lists(const tb_block *b)
{
    for (int i = 0; i < b->nsections; i++)
        for (int j = 0; j < b->sections[i].nstmts; j++) {
            const tb_expr *e = b->sections[i].stmts[j].value;
            if (b->sections[i].kind == TB_SECTION_STEM &&
                e->kind == TB_EXPR_CALL && tb_streq(e->name, "list"))
                return true;
        }
    return false;
}

tb_status lint_shadowed_stream(tb_lint *L, const lint_graph *unused)
{
    lint_names *t;
    (void)unused;
    if (has_lists(L->b))
        return TB_OK;
    TB_TRY(walk_sections(L, DEAD_X));
    TB_TRY(names_of(L, &t));
    for (int i = 0; i < L->b->nsections; i++)
        if (!reads_x(t, &L->b->sections[i]) && !entry(t, "x")->in_def)
            TB_TRY(lint_said(L, L->b->sections[i].pos, L->row->say.level,
                             "this section never reads the x that enters: "
                             "what the stack below computed is lost"));
    return TB_OK;
}

/* --- settings and sections ----------------------------------------------- */

/* Does this call, or some part of the model, read the setting? */
typedef bool (*call_fn)(const tb_lint *L, const tb_expr *e, const char *key);
typedef bool (*used_fn)(const tb_lint *L);

static bool any_call(const tb_lint *L, const tb_expr *e, call_fn fn,
                     const char *key)
{
    if (e->kind == TB_EXPR_CALL && fn(L, e, key))
        return true;
    for (int i = 0; i < e->nargs; i++)
        if (any_call(L, e->args[i].value, fn, key))
            return true;
    return false;
}

static bool text_calls(const tb_lint *L, call_fn fn, const char *key)
{
    const tb_block *b = L->b;
    for (int i = 0; i < b->nsections; i++)
        for (int j = 0; j < b->sections[i].nstmts; j++)
            if (any_call(L, b->sections[i].stmts[j].value, fn, key))
                return true;
    for (int i = 0; i < b->ndefs; i++)
        if (any_call(L, b->defs[i].body, fn, key))
            return true;
    return false;
}

static bool says_itself(const tb_expr *e, const char *key)
{
    for (int i = 0; i < e->nargs; i++)
        if (tb_streq(e->args[i].key, key))
            return true;
    return false;
}

static bool is_plain_norm(const tb_lint *L, const tb_expr *e, const char *key)
{
    (void)L;
    (void)key;
    return tb_streq(e->name, "norm");
}

/* A norm of a kind that has such a thing, and is not told by its call. */
static bool takes(const tb_lint *L, const tb_expr *e, const char *key)
{
    if (tb_callable_find(e->name) != TB_CALLABLE_NORM || says_itself(e, key))
        return false;
    bool plain = tb_streq(e->name, "norm");
    const tb_op *op = tb_op_norm(plain ? L->sizes.s.norm : e->name);
    for (int i = 0; op && i < op->nattr + op->noption; i++)
        if (tb_streq(op->attr_name[i], key))
            return true;
    return false;
}

static bool takes_base(const tb_lint *L, const tb_expr *e, const char *key)
{
    (void)L;
    (void)key;
    return tb_streq(e->name, "rope") && !says_itself(e, "base");
}

/* `positions = rope` turns queries and keys of the attn that is built in. */
static bool turns_positions(const tb_lint *L)
{
    return L->sizes.s.positions == TB_POSITIONS_ROPE &&
           !tb_def_find(L->b, "attn");
}

static bool uses_base(const tb_lint *L)
{
    return turns_positions(L) || text_calls(L, takes_base, NULL);
}

static bool uses_positions(const tb_lint *L)
{
    return L->sizes.s.positions != TB_POSITIONS_ROPE || turns_positions(L);
}

static bool uses_heads(const tb_lint *L)
{
    for (int k = 0; k < L->at->nkinds; k++)
        for (int i = 0; i < L->at->kinds[k].g->nnodes; i++)
            if (L->at->kinds[k].g->nodes[i].op == &tb_op_mha)
                return true;
    return false;
}

static bool uses_ffn(const tb_lint *L)
{
    for (int k = 0; k < L->at->nkinds; k++)
        for (int i = 0; i < L->at->kinds[k].g->nregions; i++)
            if (tb_streq(L->at->kinds[k].g->regions[i].name, "ffn"))
                return true;
    return false;
}

tb_status lint_unused_setting(tb_lint *L, const lint_graph *unused)
{
    static const struct {
        const char *key;
        call_fn read; /* by some call of the text, or */
        used_fn used;
    } rows[] = {{"norm", is_plain_norm, NULL},
                {"eps", takes, NULL},
                {"eps_mode", takes, NULL},
                {"variance", takes, NULL},
                {"heads", NULL, uses_heads},
                {"kv_heads", NULL, uses_heads},
                {"ffn", NULL, uses_ffn},
                {"rope_base", NULL, uses_base},
                {"positions", NULL, uses_positions}};
    (void)unused;
    for (int i = 0; i < L->b->nsettings; i++)
        for (size_t j = 0; j < TB_LEN(rows); j++) {
            const char *key = L->b->settings[i].key;
            if (!tb_streq(key, rows[j].key))
                continue;
            if (!(rows[j].read ? text_calls(L, rows[j].read, key)
                               : rows[j].used(L)))
                lint_found(L, L->b->settings[i].pos);
        }
    return TB_OK;
}

/* A section for single stacks: both roles have their own. */
static bool for_one_stack(const tb_lint *L, const tb_section *s)
{
    unsigned roles = 0;
    for (int i = 0; i < L->b->nsections; i++) {
        const tb_section *t = &L->b->sections[i];
        if (t->kind == s->kind && t->role)
            roles |= tb_streq(t->role, "encoder") ? 1 : 2;
    }
    return L->nstacks > 1 && !s->role && roles == 3;
}

/* Blocks that a section could be of, in all stacks; SIZE_MAX: some are. */
static size_t unused_blocks(const tb_lint *L, int section)
{
    const tb_section *s = &L->b->sections[section];
    size_t n = 0;
    if (for_one_stack(L, s))
        return 0;
    for (int i = 0; i < L->nstacks; i++) {
        const lint_stack *at = &L->stacks[i];
        if (at->kind_of[section] >= 0)
            return SIZE_MAX;
        if (tb_section_serves(L->b, s, &L->sizes, at->which))
            n += tb_sizes_depth(&L->sizes, at->which);
    }
    return n;
}

tb_status lint_unused_section(tb_lint *L, const lint_graph *unused)
{
    (void)unused;
    for (int i = 0; i < L->b->nsections; i++) {
        const tb_section *s = &L->b->sections[i];
        size_t blocks = s->kind == TB_SECTION_BLOCK ? unused_blocks(L, i) : 0;
        if (blocks && blocks != SIZE_MAX)
            TB_TRY(lint_said(L, s->pos, TB_LINT_NOTE,
                             tb_arena_printf(&L->arena,
                                             "none of %zu blocks is of this "
                                             "section",
                                             blocks)));
    }
    return TB_OK;
}
