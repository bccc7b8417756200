/* SPDX-License-Identifier: MIT */
/* Settings as text: "pre=n post=da", "--decoder-normalize-before",
 * "pre_norm=False, use_rmsnorm=True", with or without what stands around them.
 */
#include "graph/peers.h"

#include "base/number.h"

void tb_peer_defaults(const tb_peer *p, tb_peer_set *set)
{
    *set = (tb_peer_set){{NULL}};
    for (int i = 0; p->keys[i].name; i++)
        set->value[i] = p->keys[i].start;
}

static int key_at(const tb_peer *p, const char *name)
{
    for (int i = 0; p->keys[i].name; i++)
        if (tb_streq(p->keys[i].name, name))
            return i;
    return -1;
}

const char *tb_peer_at(const tb_peer *p, const tb_peer_set *set,
                       const char *name)
{
    return set->value[key_at(p, name)];
}

bool tb_peer_on(const tb_peer *p, const tb_peer_set *set, const char *name)
{
    return tb_streq(tb_peer_at(p, set, name), "true");
}

void tb_peer_put(const tb_peer *p, tb_peer_set *set, const char *name,
                 const char *value)
{
    set->value[key_at(p, name)] = value;
}

/* --- printing ------------------------------------------------------------- */

static const char *shown(const tb_peer *p, const tb_peer_key *k,
                         const char *value)
{
    if (!*value)
        return p->empty;
    if (k->kind != TB_PEER_FLAG)
        return value;
    return tb_streq(value, "true") ? p->yes : p->no;
}

/* `shape` and `flag` hold %s once for the key and once for the value. */
static void put_shape(tb_buf *out, const char *shape, const char *key,
                      const char *value)
{
    const char *next = key;
    for (; *shape; shape++)
        if (shape[0] == '%' && shape[1] == 's') {
            tb_buf_puts(out, next);
            next = value;
            shape++;
        } else {
            tb_buf_putc(out, *shape);
        }
}

void tb_peer_print(const tb_peer *p, const tb_peer_set *set, tb_buf *out)
{
    const char *gap = *p->lead ? p->gap : "";
    tb_buf_puts(out, p->lead);
    for (int i = 0; p->keys[i].name; i++) {
        const tb_peer_key *k = &p->keys[i];
        bool given = !tb_streq(set->value[i], k->start) || k->always;
        bool flag = p->flag && k->kind == TB_PEER_FLAG;
        if (!given || (flag && !tb_streq(set->value[i], "true")))
            continue;
        tb_buf_puts(out, gap);
        put_shape(out, flag ? p->flag : p->shape, k->name,
                  shown(p, k, set->value[i]));
        gap = p->gap;
    }
}

/* --- reading -------------------------------------------------------------- */

typedef struct reader {
    tb_ctx *ctx;
    tb_arena *arena;
    const tb_peer *p;
    const char *at;
} reader;

static bool is_gap(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',';
}

static bool is_word(char c)
{
    return c && !is_gap(c) && !strchr("=:()\"'#", c);
}

static void skip(reader *r, const char *also)
{
    while (is_gap(*r->at) || (*r->at && strchr(also, *r->at)) || *r->at == '#')
        if (*r->at == '#') /* a remark: to the end of its line */
            r->at += strcspn(r->at, "\n");
        else
            r->at++;
}

static char *word(reader *r)
{
    const char *from = r->at;
    if (*from == '"' || *from == '\'') {
        const char *end = strchr(from + 1, *from);
        size_t n = end ? (size_t)(end - from - 1) : strlen(from + 1);
        r->at = end ? end + 1 : from + 1 + n;
        return tb_arena_strndup(r->arena, from + 1, n);
    }
    while (is_word(*r->at))
        r->at++;
    return tb_arena_strndup(r->arena, from, (size_t)(r->at - from));
}

/* Dashes in front go; those inside are as good as underscores. */
static bool same_key(const char *a, const char *b)
{
    a += strspn(a, "-");
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_')))
            return false;
    return !*a && !*b;
}

static int find_key(const tb_peer *p, const char *name)
{
    for (int i = 0; p->keys[i].name; i++)
        if (same_key(name, p->keys[i].name) ||
            (p->keys[i].alias && same_key(name, p->keys[i].alias)))
            return i;
    return -1;
}

static tb_status unknown_key(reader *r, const char *name)
{
    const char *names[2 * TB_PEER_KEYS];
    size_t n = 0;
    name += strspn(name, "-");
    for (int i = 0; r->p->keys[i].name; i++) {
        names[n++] = r->p->keys[i].name;
        if (r->p->keys[i].alias)
            names[n++] = r->p->keys[i].alias;
    }
    const char *near = tb_nearest(name, names, n);
    return TB_FAIL(r->ctx, TB_ERR_INPUT, "%s: unknown setting '%.60s'%s%s%s",
                   r->p->name, name, near ? "; did you mean '" : "",
                   near ? near : "", near ? "'?" : "");
}

static bool is_listed(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *w = words; w;
         w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL)
        if (!strncmp(w, word, n) && (w[n] == '|' || !w[n]))
            return true;
    return false;
}

static tb_status wanted(reader *r, const tb_peer_key *k, const char *value,
                        const char *what)
{
    return TB_FAIL(r->ctx, TB_ERR_INPUT, "%s: %s: got '%.60s', wanted %s",
                   r->p->name, k->name, value, what);
}

enum { LETTERS = 16 };

static tb_status check_letters(reader *r, const tb_peer_key *k,
                               const char *value)
{
    size_t good = strspn(value, k->words);
    if (!value[good] && good <= LETTERS)
        return TB_OK;
    if (!value[good])
        return TB_FAIL(r->ctx, TB_ERR_INPUT,
                       "%s: %s: got %zu letters, wanted at most %d", r->p->name,
                       k->name, good, LETTERS);
    return TB_FAIL(r->ctx, TB_ERR_INPUT,
                   "%s: %s: got '%c' in '%.60s', wanted letters of '%s'",
                   r->p->name, k->name, value[good], value, k->words);
}

/* The value as it is kept: "true", "false", a word, letters, a number. */
static tb_status check_value(reader *r, const tb_peer_key *k,
                             const char **value)
{
    static const char *const yes[] = {"true", "True", "1", "yes"};
    static const char *const no[] = {"false", "False", "0", "no"};
    const char *v = *value;
    double number;
    switch (k->kind) {
    case TB_PEER_FLAG:
        for (size_t i = 0; i < TB_LEN(yes); i++)
            if (tb_streq(v, yes[i]) || tb_streq(v, no[i])) {
                *value = tb_streq(v, yes[i]) ? "true" : "false";
                return TB_OK;
            }
        return wanted(r, k, v, "true or false");
    case TB_PEER_WORD:
        return is_listed(k->words, v) ? TB_OK : wanted(r, k, v, k->words);
    case TB_PEER_NUMBER:
        return *v && tb_double_parse(v, strlen(v), &number) == strlen(v)
                   ? TB_OK
                   : wanted(r, k, v, "a number");
    case TB_PEER_LETTERS:
        if (tb_streq(v, "none"))
            *value = "";
        return check_letters(r, k, *value);
    }
    return TB_OK;
}

/* key value, key=value, key: value; a flag may stand alone. */
static tb_status one(reader *r, tb_peer_set *set)
{
    const char *name = word(r), *value = "true";
    if (!name)
        return TB_ERR_MEMORY;
    if (!*name)
        return TB_FAIL(r->ctx, TB_ERR_INPUT,
                       "%s: got '%c', wanted the name of a setting", r->p->name,
                       *r->at);
    int i = find_key(r->p, name);
    if (i < 0)
        return unknown_key(r, name);
    const tb_peer_key *k = &r->p->keys[i];
    bool dashed = *name == '-';
    r->at += strspn(r->at, " \t");
    bool says = *r->at == '=' || *r->at == ':';
    r->at += says;
    r->at += strspn(r->at, " \t");
    if (says || (dashed && k->kind != TB_PEER_FLAG))
        value = word(r);
    else if (k->kind != TB_PEER_FLAG)
        return wanted(r, k, "nothing", "a value");
    if (!value)
        return TB_ERR_MEMORY;
    TB_TRY(check_value(r, k, &value));
    set->value[i] = value;
    return TB_OK;
}

tb_status tb_peer_parse(tb_ctx *ctx, tb_arena *a, const tb_peer *p,
                        const char *text, tb_peer_set *out)
{
    reader r = {ctx, a, p, text};
    size_t lead = strlen(p->lead);
    tb_peer_defaults(p, out);
    skip(&r, "()");
    if (lead && !strncmp(r.at, p->lead, lead))
        r.at += lead;
    for (skip(&r, "()"); *r.at; skip(&r, "()"))
        TB_TRY(one(&r, out));
    return p->check ? p->check(ctx, out) : TB_OK;
}

/* --- the text ------------------------------------------------------------- */

enum { SECTIONS = 7 };

/* Every section of a text, in the order they are printed. */
static void bufs(tb_peer_text *t, tb_buf *out[SECTIONS])
{
    tb_buf *const all[] = {&t->defs,  &t->stem, &t->headed, &t->block,
                           &t->final, &t->init, &t->model};
    memcpy(out, all, sizeof all);
}

static tb_status put_together(tb_peer_text *t, tb_buf *const all[SECTIONS],
                              tb_buf *out)
{
    static const char *const heads[] = {
        "", "stem:\n", "", "block:\n", "final:\n", "init:\n", "model:\n"};
    for (size_t i = 0; i < SECTIONS; i++) {
        TB_TRY(tb_buf_status(all[i]));
        if (all[i]->len)
            tb_buf_printf(out, "%s%s", heads[i], tb_buf_str(all[i]));
    }
    return t->failed ? TB_ERR_MEMORY : tb_buf_status(out);
}

tb_status tb_peer_text_of(tb_ctx *ctx, const tb_peer *p, const tb_peer_set *set,
                          tb_buf *out)
{
    tb_peer_text t = {.ctx = ctx};
    tb_buf *all[SECTIONS];
    bufs(&t, all);
    tb_arena_init(&t.arena, ctx);
    for (size_t i = 0; i < SECTIONS; i++)
        tb_buf_init(all[i], ctx);
    tb_status s = p->write(&t, set);
    if (s == TB_OK)
        s = put_together(&t, all, out);
    for (size_t i = 0; i < SECTIONS; i++)
        tb_buf_clear(all[i]);
    tb_arena_clear(&t.arena);
    return s;
}

const char *tb_peer_of(tb_peer_text *t, const char *fmt, ...)
{
    tb_buf b;
    va_list ap;
    tb_buf_init(&b, t->ctx);
    va_start(ap, fmt);
    tb_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    const char *text =
        b.failed ? NULL : tb_arena_strdup(&t->arena, tb_buf_str(&b));
    tb_buf_clear(&b);
    t->failed |= !text;
    return text ? text : "";
}

const char *tb_peer_norm(tb_peer_text *t, const char *word, const char *e)
{
    bool bare = t->bare && (!*t->bare || tb_streq(t->bare, word));
    t->norms = true;
    return tb_peer_of(t, "%s(%s%s)", word, e, bare ? ", gain=false" : "");
}

void tb_peer_activation(tb_peer_text *t, const char *word)
{
    if (*word && !tb_streq(word, "gelu"))
        tb_buf_printf(&t->defs, "ffn(x) = down(%s(up(x)))\n", word);
}

const char *tb_peer_mapped(const char *const pairs[][2], const char *word,
                           int from)
{
    for (int i = 0; pairs[i][0]; i++)
        if (tb_streq(pairs[i][from], word))
            return pairs[i][1 - from];
    return NULL;
}
