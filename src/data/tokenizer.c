/* SPDX-License-Identifier: MIT */
/* What all tokenizers share: tables, decoding, saving and loading; and the
 * byte tokenizer, which is nothing more than that. */
#include "data/tokenizer.h"

static const tb_token_kind *const kinds[] = {&tb_token_byte, &tb_token_char};

/* --- making
 * ------------------------------------------------------------------- */

tb_status tb_tokenizer_new(tb_ctx *ctx, const tb_token_kind *kind,
                           tb_tokenizer **out)
{
    *out = tb_alloc(ctx, 1, sizeof(**out));
    if (*out == NULL)
        return TB_ERR_MEMORY;
    (*out)->ctx = ctx;
    (*out)->kind = kind;
    for (size_t i = 0; i < TB_SPECIALS; i++)
        (*out)->special[i] = -1;
    return TB_OK;
}

void tb_tokenizer_destroy(tb_tokenizer *t)
{
    if (t == NULL)
        return;
    tb_free(t->ctx, t->bytes);
    tb_free(t->ctx, t->at);
    tb_free(t->ctx, t->map);
    tb_free(t->ctx, t);
}

tb_status tb_tokenizer_room(tb_tokenizer *t, size_t size, size_t bytes)
{
    t->bytes = tb_alloc(t->ctx, bytes, 1);
    t->at = t->bytes ? tb_alloc(t->ctx, size + 1, sizeof(*t->at)) : NULL;
    t->size = t->plain = t->at ? size : 0;
    return t->at ? TB_OK : TB_ERR_MEMORY;
}

static tb_status build(tb_ctx *ctx, const tb_token_kind *kind,
                       const tb_span *texts, size_t count, tb_tokenizer **out)
{
    tb_tokenizer *t;
    *out = NULL;
    TB_TRY(tb_tokenizer_new(ctx, kind, &t));
    tb_status s = kind->build(t, texts, count);
    if (s == TB_OK)
        *out = t;
    else
        tb_tokenizer_destroy(t);
    return s;
}

tb_status tb_tokenizer_byte(tb_ctx *ctx, tb_tokenizer **out)
{
    return build(ctx, &tb_token_byte, NULL, 0, out);
}

tb_status tb_tokenizer_char(tb_ctx *ctx, const void *data, size_t n,
                            tb_tokenizer **out)
{
    const tb_span text = {data, n};
    return build(ctx, &tb_token_char, &text, 1, out);
}

static const tb_token_kind *kind_named(const char *name)
{
    for (size_t i = 0; i < TB_LEN(kinds); i++)
        if (tb_streq(kinds[i]->name, name))
            return kinds[i];
    return NULL;
}

tb_status tb_tokenizer_make_of(tb_ctx *ctx, const char *kind,
                               const tb_span *texts, size_t count,
                               tb_tokenizer **out)
{
    const tb_token_kind *k = kind_named(kind);
    *out = NULL;
    if (k == NULL)
        return TB_FAIL(ctx, TB_ERR_ARG,
                       "tokenizer: got '%s', wanted char or byte", kind);
    return build(ctx, k, texts, count, out);
}

tb_status tb_tokenizer_make(tb_ctx *ctx, const char *kind, const void *data,
                            size_t n, tb_tokenizer **out)
{
    const tb_span text = {data, n};
    return tb_tokenizer_make_of(ctx, kind, &text, 1, out);
}

/* --- special tokens: of no bytes, so that decoding needs no case for them ---
 */

static const char *const special_names[TB_SPECIALS] = {"pad", "start", "end",
                                                       "mask"};

tb_status tb_tokenizer_special_add(tb_tokenizer *t, unsigned bits)
{
    size_t *at = tb_alloc(t->ctx, t->plain + TB_SPECIALS + 1, sizeof *at);
    if (at == NULL)
        return TB_ERR_MEMORY;
    memcpy(at, t->at, (t->plain + 1) * sizeof *at);
    tb_free(t->ctx, t->at);
    t->at = at;
    t->size = t->plain;
    for (size_t i = 0; i < TB_SPECIALS; i++) {
        bool has = bits >> i & 1;
        t->special[i] = has ? (int32_t)t->size : -1;
        t->size += has;
        at[t->size] = at[t->plain];
    }
    return TB_OK;
}

int32_t tb_tokenizer_special(const tb_tokenizer *t, tb_special s)
{
    return t->special[s];
}

size_t tb_tokenizer_plain(const tb_tokenizer *t)
{
    return t->plain;
}

static void save_special(const tb_tokenizer *t, tb_json *j)
{
    if (t->size == t->plain)
        return;
    tb_json_array(j, "special");
    for (size_t i = 0; i < TB_SPECIALS; i++)
        if (t->special[i] >= 0)
            tb_json_string(j, NULL, special_names[i]);
    tb_json_end(j);
}

/* One name of the list: known, and behind those before it. */
static tb_status special_bit(tb_ctx *ctx, const char *name, unsigned *bits)
{
    for (unsigned i = 0; i < TB_SPECIALS; i++)
        if (tb_streq(special_names[i], name) && *bits >> i == 0) {
            *bits |= 1u << i;
            return TB_OK;
        }
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "tokenizer: special: got \"%s\", wanted pad, start, end and "
                   "mask in this order, each at most once",
                   name);
}

static tb_status load_special(tb_tokenizer *t, tb_config *c)
{
    tb_config *list, *item;
    unsigned bits = 0;
    if (tb_config_what(c, "special") == TB_CONFIG_ABSENT)
        return TB_OK;
    TB_TRY(tb_config_array(c, "special", &list));
    for (size_t i = 0; i < tb_config_length(list); i++) {
        const char *name;
        TB_TRY(tb_config_item(list, i, &item));
        TB_TRY(tb_config_string(item, NULL, &name));
        TB_TRY(special_bit(t->ctx, name, &bits));
    }
    return tb_tokenizer_special_add(t, bits);
}

/* --- tokens
 * ------------------------------------------------------------------- */

const char *tb_tokenizer_kind(const tb_tokenizer *t)
{
    return t->kind->name;
}

size_t tb_tokenizer_size(const tb_tokenizer *t)
{
    return t->size;
}

const char *tb_tokenizer_token(const tb_tokenizer *t, int32_t id, size_t *n)
{
    *n = 0;
    if (id < 0 || (size_t)id >= t->size)
        return NULL;
    *n = t->at[id + 1] - t->at[id];
    return t->bytes + t->at[id];
}

tb_status tb_tokens_room(tb_ctx *ctx, size_t n, tb_tokens *out)
{
    *out = (tb_tokens){tb_alloc(ctx, n, sizeof(*out->ids)), 0};
    return out->ids == NULL ? TB_ERR_MEMORY : TB_OK;
}

void tb_tokens_clear(tb_ctx *ctx, tb_tokens *t)
{
    tb_free(ctx, t->ids);
    *t = (tb_tokens){0};
}

tb_status tb_tokenizer_encode(tb_ctx *ctx, const tb_tokenizer *t,
                              const char *what, const void *data, size_t n,
                              tb_tokens *out)
{
    *out = (tb_tokens){0};
    tb_status s = t->kind->encode(ctx, t, what, data, n, out);
    if (s != TB_OK)
        tb_tokens_clear(ctx, out);
    return s;
}

static tb_status decoded_length(tb_ctx *ctx, const tb_tokenizer *t,
                                const int32_t *ids, size_t n, size_t *bytes)
{
    *bytes = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        if (tb_tokenizer_token(t, ids[i], &len) == NULL)
            return TB_FAIL(ctx, TB_ERR_INPUT,
                           "token %zu: got id %d, wanted 0 to %zu", i, ids[i],
                           t->size - 1);
        if (!tb_add(*bytes, len, bytes))
            return TB_FAIL(ctx, TB_ERR_MEMORY, "decoding %zu tokens", n);
    }
    return TB_OK;
}

tb_status tb_tokenizer_decode(tb_ctx *ctx, const tb_tokenizer *t,
                              const int32_t *ids, size_t n, tb_bytes *out)
{
    size_t bytes, len;
    *out = (tb_bytes){0};
    TB_TRY(decoded_length(ctx, t, ids, n, &bytes));
    if (!tb_add(bytes, 1, &len))
        return TB_FAIL(ctx, TB_ERR_MEMORY, "decoding %zu tokens", n);
    out->data = tb_alloc(ctx, len, 1);
    if (out->data == NULL)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const char *token = tb_tokenizer_token(t, ids[i], &len);
        memcpy(out->data + out->len, token, len);
        out->len += len;
    }
    return TB_OK;
}

/* --- files
 * --------------------------------------------------------------------- */

tb_status tb_tokenizer_save(tb_ctx *ctx, const tb_tokenizer *t, tb_bytes *out)
{
    tb_json *j;
    *out = (tb_bytes){0};
    TB_TRY(tb_json_create(ctx, &j));
    tb_json_object(j, NULL);
    tb_json_string(j, "tollbooth", TB_VERSION);
    tb_json_string(j, "tokenizer", t->kind->name);
    t->kind->save(t, j);
    save_special(t, j);
    tb_json_end(j);
    const char *text = tb_json_text(j);
    size_t n = text == NULL ? 0 : strlen(text);
    out->data = text == NULL ? NULL : tb_alloc(ctx, n + 2, 1);
    if (out->data != NULL) {
        memcpy(out->data, text, n);
        out->data[n] = '\n';
        out->len = n + 1;
    }
    tb_json_destroy(j);
    return out->data == NULL ? TB_ERR_MEMORY : TB_OK;
}

static tb_status load(tb_ctx *ctx, const char *name, tb_config *c,
                      tb_tokenizer **out)
{
    const char *kind;
    TB_TRY(tb_config_string(c, "tokenizer", &kind));
    const tb_token_kind *k = kind_named(kind);
    if (k == NULL)
        return TB_FAIL(ctx, TB_ERR_INPUT,
                       "%s: tokenizer: got \"%s\", wanted \"char\" or "
                       "\"byte\"",
                       name, kind);
    TB_TRY(tb_tokenizer_new(ctx, k, out));
    TB_TRY(k->load(*out, c));
    return load_special(*out, c);
}

tb_status tb_tokenizer_load(tb_ctx *ctx, const char *name, const char *text,
                            size_t n, tb_tokenizer **out)
{
    tb_config *c;
    *out = NULL;
    TB_TRY(tb_config_parse(ctx, name, text, n, &c));
    tb_status s = load(ctx, name, c, out);
    tb_config_destroy(c);
    if (s != TB_OK) {
        tb_tokenizer_destroy(*out);
        *out = NULL;
    }
    return s;
}

/* --- byte
 * ------------------------------------------------------------------------ */

static tb_status byte_build(tb_tokenizer *t, const tb_span *texts, size_t count)
{
    (void)texts;
    (void)count;
    TB_TRY(tb_tokenizer_room(t, 256, 256));
    for (size_t i = 0; i <= 256; i++)
        t->at[i] = i;
    for (size_t i = 0; i < 256; i++)
        t->bytes[i] = (char)(unsigned char)i;
    return TB_OK;
}

static tb_status byte_encode(tb_ctx *ctx, const tb_tokenizer *t,
                             const char *what, const char *data, size_t n,
                             tb_tokens *out)
{
    (void)t;
    (void)what;
    TB_TRY(tb_tokens_room(ctx, n, out));
    for (size_t i = 0; i < n; i++)
        out->ids[i] = (unsigned char)data[i];
    out->count = n;
    return TB_OK;
}

static void byte_save(const tb_tokenizer *t, tb_json *j)
{
    (void)t;
    (void)j;
}

static tb_status byte_load(tb_tokenizer *t, tb_config *c)
{
    (void)c;
    return byte_build(t, NULL, 0);
}

const tb_token_kind tb_token_byte = {"byte", byte_encode, byte_build, byte_save,
                                     byte_load};
