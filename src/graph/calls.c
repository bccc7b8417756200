/* SPDX-License-Identifier: MIT */
/* Functions of the language, by the kinds of equation/names.h: how many
 * arguments and which options each takes, and definitions of the text. */
#include "graph/calls.h"

#include "equation/names.h"

typedef tb_status (*call_fn)(tb_builder *b, const tb_expr *e, tb_val *out);

/** How calls of a kind, or of one name, are built. */
typedef struct call_row {
    const char *name; /* NULL: every name of the kind */
    call_fn build;
    int min, max;     /* arguments without a key; max 0: any number */
    const char *keys; /* options, separated by spaces */
} call_row;

bool tb_call_has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; *p;) {
        const char *end = strchr(p, ' ');
        size_t len = end ? (size_t)(end - p) : strlen(p);
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len + (end != NULL);
    }
    return false;
}

tb_status tb_call_node(tb_val *out, int node)
{
    *out = (tb_val){.kind = TB_VAL_NODE, .node = node};
    return TB_OK;
}

const tb_expr *tb_call_option(const tb_expr *e, const char *key)
{
    for (int i = 0; i < e->nargs; i++)
        if (tb_streq(e->args[i].key, key))
            return e->args[i].value;
    return NULL;
}

tb_status tb_call_constant(tb_builder *b, const tb_expr *e, const char *what,
                           tb_val *v)
{
    TB_TRY(tb_build_expr(b, e, v));
    if (v->kind == TB_VAL_CONST)
        return TB_OK;
    return tb_build_fail(b, e->pos, "%s: got a stream, wanted a constant",
                         what);
}

tb_status tb_call_attr(tb_builder *b, const tb_expr *e, const char *what,
                       tb_attr *attr)
{
    tb_val v;
    TB_TRY(tb_call_constant(b, e, what, &v));
    *attr = (tb_attr){v.expr, 0, v.shown};
    return tb_build_fold(b, v.expr, &attr->value);
}

/* --- options ------------------------------------------------------------- */

tb_status tb_call_flag(tb_builder *b, const tb_expr *e, const char *key,
                       int without, int *flag)
{
    const tb_expr *o = tb_call_option(e, key);
    double v;
    *flag = without;
    if (!o)
        return TB_OK;
    if (o->kind == TB_EXPR_NAME &&
        (tb_streq(o->name, "true") || tb_streq(o->name, "false"))) {
        *flag = tb_streq(o->name, "true");
        return TB_OK;
    }
    TB_TRY(tb_build_fold(b, o, &v));
    if (v != 0 && v != 1)
        return tb_build_fail(b, o->pos, "%s: got %g, wanted true or false", key,
                             v);
    *flag = (int)v;
    return TB_OK;
}

tb_status tb_call_word(tb_builder *b, const tb_expr *e, const char *key,
                       int without, int *word)
{
    const tb_expr *o = tb_call_option(e, key);
    *word = without;
    if (!o)
        return TB_OK;
    *word = o->kind == TB_EXPR_NAME ? tb_setting_word(key, o->name) : -1;
    if (*word < 0)
        return tb_build_fail(b, o->pos, "%s: wanted one of %s", key,
                             tb_setting_kind_find(key)->words);
    return TB_OK;
}

/* --- the tables ---------------------------------------------------------- */

static const call_row by_kind[] = {
    [TB_CALLABLE_NONE] = {NULL, NULL, 0, 0, ""},
    [TB_CALLABLE_SUBLAYER] = {NULL, tb_call_sublayer, 1, 1, ""},
    [TB_CALLABLE_NORM] = {NULL, tb_call_norm, 1, 1,
                          "eps eps_mode variance unbiased groups gain bias"},
    [TB_CALLABLE_ELEMENT] = {NULL, tb_call_op, 1, 1, ""},
    [TB_CALLABLE_STREAM] = {NULL, tb_call_op, 1, 1, ""},
    [TB_CALLABLE_LEARNED] = {NULL, tb_call_learned, 1, 1, ""},
    [TB_CALLABLE_WEIGHT] = {NULL, tb_call_weight, 1, 1, ""},
    [TB_CALLABLE_CONSTANT] = {NULL, tb_call_const_fn, 1, 1, ""},
};

/* Names that are called otherwise than their kind. */
static const call_row by_name[] = {
    {"drop", tb_call_drop, 1, 2, ""},
    {"drop_branch", tb_call_drop, 2, 2, ""},
    {"exp", tb_call_either, 1, 1, ""},
    {"abs", tb_call_either, 1, 1, ""},
    {"concat", tb_call_concat, 1, 0, "groups"},
    {"sum", tb_call_total, 1, 1, ""},
    {"mean", tb_call_total, 1, 1, ""},
    {"list", tb_call_list, 0, 0, ""},
    {"append", tb_call_append, 2, 0, ""},
    {"item", tb_call_item, 2, 2, ""},
    {"size", tb_call_size, 1, 1, ""},
    {"batchnorm", tb_call_norm, 1, 1, "eps eps_mode momentum keep"},
    {"powernorm", tb_call_norm, 1, 1,
     "eps eps_mode momentum back_momentum warmup keep"},
    {"rope", tb_call_rope, 1, 1, "base"},
    {"mha", tb_call_mha, 3, 3, "scale keep hide"},
    {"mix", tb_call_mix, 2, 0, "row"},
    {"dot", tb_call_pair, 2, 2, ""},
    {"headscale", tb_call_pair, 2, 2, ""},
    {"shift", tb_call_pair, 2, 2, ""},
    {"sinkhorn", tb_call_options, 1, 1, "rounds columns_first"},
    {"unit", tb_call_options, 1, 1, "eps columns"},
    {"maxdiv", tb_call_options, 1, 1, "to whole"},
    {"vector", tb_call_learned, 1, 1, "size"},
    {"matrix", tb_call_learned, 3, 3, ""},
    {"linear", tb_call_linear, 2, 2, "bias"},
    {"project", tb_call_project, 2, 2, "bias"},
    {"min", tb_call_const_fn, 2, 0, ""},
    {"max", tb_call_const_fn, 2, 0, ""},
};

static const call_row *find_call(const char *name)
{
    for (size_t i = 0; i < TB_LEN(by_name); i++)
        if (tb_streq(by_name[i].name, name))
            return &by_name[i];
    const call_row *row = &by_kind[tb_callable_find(name)];
    return row->build ? row : NULL;
}

static tb_status wrong_count(tb_builder *b, const tb_expr *e, int got, int min,
                             int max)
{
    char wanted[48];
    if (min == max)
        tb_format(wanted, sizeof wanted, "%d", min);
    else if (max)
        tb_format(wanted, sizeof wanted, "%d to %d", min, max);
    else
        tb_format(wanted, sizeof wanted, "%d or more", min);
    return tb_build_fail(b, e->pos, "%s: got %d argument%s, wanted %s", e->name,
                         got, got == 1 ? "" : "s", wanted);
}

static tb_status check_args(tb_builder *b, const tb_expr *e, int min, int max,
                            const char *keys)
{
    int plain = 0;
    for (int i = 0; i < e->nargs; i++) {
        const tb_arg *a = &e->args[i];
        if (a->key && !tb_call_has_word(keys, a->key))
            return tb_build_fail(b, a->key_pos, "%s: unknown option %s%s%s",
                                 e->name, a->key, *keys ? ", wanted " : "",
                                 keys);
        plain += !a->key;
    }
    if (plain < min || (max && plain > max))
        return wrong_count(b, e, plain, min, max);
    return TB_OK;
}

/* Ruling 2: a named declaration is made once per block. In the stem and the
 * tail, which share the model's top level, its name says which. */
tb_status tb_build_declare(tb_builder *b, const char *name, const tb_expr *e)
{
    bool linear = tb_streq(e->name, "linear");
    const char *base =
        b->place ? tb_arena_printf(b->arena, "%s.%s", b->place, name) : name;
    const call_row *row = find_call(e->name);
    tb_binding *bind;
    TB_TRY(check_args(b, e, row->min, row->max, row->keys));
    TB_TRY(tb_scope_put(b, name, &bind));
    if (!base)
        return TB_ERR_MEMORY;
    if (bind->declared && bind->declared != e)
        return tb_build_fail(b, e->pos, "%s is declared twice", name);
    if (!bind->declared) {
        tb_lin lin = {-1, -1};
        int node = -1;
        if (linear)
            TB_TRY(tb_linear_declare(b, base, e, &lin));
        else
            TB_TRY(tb_learned_build(b, e, base, &node));
        if (!linear)
            b->g->nodes[node].name = name;
        bind->lin = lin;
        bind->learned = (tb_val){.kind = TB_VAL_NODE, .node = node};
    }
    bind->declared = e;
    bind->val = bind->learned;
    bind->is_value = !linear;
    bind->is_linear = linear;
    return TB_OK;
}

static tb_status def_args(tb_builder *b, const tb_expr *e, const tb_def *def,
                          tb_val **vals)
{
    TB_TRY(check_args(b, e, 0, 0, ""));
    if (e->nargs != def->nparams)
        return wrong_count(b, e, e->nargs, def->nparams, def->nparams);
    *vals = tb_arena_alloc(b->arena, (size_t)e->nargs * sizeof **vals + 1);
    if (!*vals)
        return TB_ERR_MEMORY;
    for (int i = 0; i < e->nargs; i++)
        TB_TRY(tb_build_expr(b, e->args[i].value, &(*vals)[i]));
    return TB_OK;
}

static tb_status call_def(tb_builder *b, const tb_expr *e, const tb_def *def,
                          tb_val *out)
{
    tb_val *vals;
    TB_TRY(def_args(b, e, def, &vals));
    return tb_call_expand(b, e, def, vals, out);
}

tb_status tb_build_tuple_args(tb_builder *b, const tb_expr **e,
                              struct tb_args *args)
{
    tb_val *vals;
    if ((*e)->kind != TB_EXPR_CALL)
        return TB_OK;
    const tb_def *def = tb_def_find(b->block, (*e)->name);
    if (!def || def->body->kind != TB_EXPR_TUPLE)
        return TB_OK;
    TB_TRY(def_args(b, *e, def, &vals));
    *args = (struct tb_args){def, vals, b->args};
    *e = def->body;
    return TB_OK;
}

static tb_status call_named_linear(tb_builder *b, const tb_expr *e, tb_lin lin,
                                   tb_val *out)
{
    tb_each each;
    TB_TRY(check_args(b, e, 1, 1, ""));
    TB_TRY(tb_build_each(b, e->args[0].value, &each));
    for (int i = 0; i < each.n; i++)
        TB_TRY(tb_build_apply(b, lin, each.nodes[i], e->name, e->pos,
                              &each.nodes[i]));
    return tb_build_each_value(b, &each, out);
}

static tb_status unknown_call(tb_builder *b, const tb_expr *e)
{
    size_t n = (size_t)b->block->ndefs;
    const char **own = tb_arena_alloc(b->arena, (n + 1) * sizeof *own);
    if (!own)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        own[i] = b->block->defs[i].name;
    const char *near = tb_callable_near(e->name, own, n);
    return tb_build_fail(b, e->pos, "unknown function %s%s%s%s", e->name,
                         near ? "; did you mean " : "", near ? near : "",
                         near ? "?" : "");
}

/* Attn, cross and ffn are called as sublayers also where a text defines them;
 * no other built-in name can be defined. */
tb_status tb_build_call(tb_builder *b, const tb_expr *e, tb_val *out)
{
    const call_row *row = find_call(e->name);
    if (row) {
        TB_TRY(check_args(b, e, row->min, row->max, row->keys));
        return row->build(b, e, out);
    }
    const tb_def *def = tb_def_find(b->block, e->name);
    if (def)
        return call_def(b, e, def, out);
    tb_binding *bind = tb_scope_find(&b->scope, e->name);
    if (bind && bind->is_linear)
        return call_named_linear(b, e, bind->lin, out);
    if (bind && bind->is_value)
        return tb_build_fail(b, e->pos,
                             "%s is a value, not a function: write %s * (...)",
                             e->name, e->name);
    return unknown_call(b, e);
}
