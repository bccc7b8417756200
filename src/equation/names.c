/* SPDX-License-Identifier: MIT */
/* Look-ups in the word tables. The tables are short and the texts bounded, so
 * a linear search is fast enough. */
#include "equation/names.h"

static const char *const callable_names[] = {
#define ROW(name, kind) #name,
    TB_CALLABLE_LIST(ROW)
#undef ROW
};
static const tb_callable_kind callable_kinds[] = {
#define ROW(name, kind) TB_CALLABLE_##kind,
    TB_CALLABLE_LIST(ROW)
#undef ROW
};

static const struct {
    const char *name, *what;
} reserved[] = {
#define ROW(name, what) {#name, what},
    TB_RESERVED_LIST(ROW)
#undef ROW
};

static const struct {
    const char *spelling, *name;
} aliases[] = {
    {"LN", "layernorm"},    {"LayerNorm", "layernorm"},
    {"RMSNorm", "rmsnorm"}, {"Sublayer", "F"},
    {"Attn", "attn"},       {"MHA", "attn"},
    {"FFN", "ffn"},         {"MultiHeadAttention", "attn"},
    {"MLP", "ffn"},
};

static const tb_init_kind init_kinds[] = {
#define ROW(name, least, most) {#name, least, most},
    TB_INIT_RULE_LIST(ROW)
#undef ROW
};
static const char *const init_names[] = {
#define ROW(name, least, most) #name,
    TB_INIT_RULE_LIST(ROW)
#undef ROW
};

static const tb_init_kind after_kinds[] = {
#define ROW(name, least, most) {#name, least, most},
    TB_AFTER_RULE_LIST(ROW)
#undef ROW
};
static const char *const after_names[] = {
#define ROW(name, least, most) #name,
    TB_AFTER_RULE_LIST(ROW)
#undef ROW
};

static const tb_setting_kind setting_kinds[] = {
#define ROW(key, words) {#key, words},
    TB_SETTING_LIST(ROW)
#undef ROW
};
static const char *const setting_names[] = {
#define ROW(key, words) #key,
    TB_SETTING_LIST(ROW)
#undef ROW
};

tb_callable_kind tb_callable_find(const char *name)
{
    for (size_t i = 0; i < TB_LEN(callable_names); i++)
        if (!strcmp(callable_names[i], name))
            return callable_kinds[i];
    return TB_CALLABLE_NONE;
}

const char *const *tb_callable_names(size_t *n)
{
    *n = TB_LEN(callable_names);
    return callable_names;
}

/* What people write who come from elsewhere, for suggestions. */
static const struct {
    const char *written, *meant;
} other_words[] = {
    {"ln", "LN"},          {"mlp", "MLP"},      {"mha", "MHA"},
    {"sublayer", "F"},     {"f", "F"},          {"rms", "rmsnorm"},
    {"attention", "attn"}, {"dropout", "drop"}, {"swish", "silu"},
};

const char *tb_callable_near(const char *word, const char *const *own,
                             size_t nown)
{
    enum { OTHER = TB_LEN(other_words), BUILT_IN = TB_LEN(callable_names) };
    const char *words[OTHER + BUILT_IN], *near;
    for (size_t i = 0; i < OTHER; i++)
        words[i] = other_words[i].written;
    for (size_t i = 0; i < BUILT_IN; i++)
        words[OTHER + i] = callable_names[i];
    near = nown ? tb_nearest(word, own, nown) : NULL;
    if (!near)
        near = tb_nearest(word, words, OTHER + BUILT_IN);
    for (size_t i = 0; near && i < OTHER; i++)
        if (near == other_words[i].written)
            return other_words[i].meant;
    return near;
}

const char *tb_reserved_find(const char *name)
{
    for (size_t i = 0; i < TB_LEN(reserved); i++)
        if (!strcmp(reserved[i].name, name))
            return reserved[i].what;
    return NULL;
}

const char *tb_alias_find(const char *s, size_t n)
{
    for (size_t i = 0; i < TB_LEN(aliases); i++)
        if (strlen(aliases[i].spelling) == n &&
            !memcmp(aliases[i].spelling, s, n))
            return aliases[i].name;
    return NULL;
}

const tb_init_kind *tb_init_kind_find(const char *name)
{
    for (size_t i = 0; i < TB_LEN(init_kinds); i++)
        if (!strcmp(init_kinds[i].name, name))
            return &init_kinds[i];
    return NULL;
}

const char *const *tb_init_kind_names(size_t *n)
{
    *n = TB_LEN(init_names);
    return init_names;
}

const tb_init_kind *tb_after_kind_find(const char *name)
{
    for (size_t i = 0; i < TB_LEN(after_kinds); i++)
        if (!strcmp(after_kinds[i].name, name))
            return &after_kinds[i];
    return NULL;
}

const char *const *tb_after_kind_names(size_t *n)
{
    *n = TB_LEN(after_names);
    return after_names;
}

const tb_setting_kind *tb_setting_kind_find(const char *key)
{
    for (size_t i = 0; i < TB_LEN(setting_kinds); i++)
        if (!strcmp(setting_kinds[i].key, key))
            return &setting_kinds[i];
    return NULL;
}

int tb_setting_word(const char *key, const char *word)
{
    const tb_setting_kind *kind = tb_setting_kind_find(key);
    const char *p = kind ? kind->words : "";
    size_t n = strlen(word);
    for (int i = 0; *p; i++) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, word, n) == 0)
            return i;
        p += len + (p[len] == ' ');
    }
    return -1;
}

const char *const *tb_setting_names(size_t *n)
{
    *n = TB_LEN(setting_names);
    return setting_names;
}

void tb_suggest(char out[TB_SUGGEST_CHARS], const char *word,
                const char *const *candidates, size_t n)
{
    /* Far longer than any candidate: nothing is near. */
    const char *near = strlen(word) < TB_SUGGEST_CHARS
                           ? tb_nearest(word, candidates, n)
                           : NULL;
    out[0] = '\0';
    if (near)
        tb_format(out, TB_SUGGEST_CHARS, "; did you mean '%s'?", near);
}
