/* SPDX-License-Identifier: MIT */
/* Showing tokens as they come: bytes are joined before they are shown, so a
 * character split over tokens appears once, whole. */
#include "checkpoint/utf8.h"
#include "data/tokenizer.h"

enum { LONGEST = 3 }; /* bytes of a character that is not complete yet */

struct tb_decoder {
    tb_ctx *ctx;
    const tb_tokenizer *t;
    char held[LONGEST];
    size_t held_n;
    tb_buf joined, shown;
};

tb_status tb_decoder_create(tb_ctx *ctx, const tb_tokenizer *t,
                            tb_decoder **out)
{
    *out = tb_alloc(ctx, 1, sizeof(**out));
    if (*out == NULL)
        return TB_ERR_MEMORY;
    (*out)->ctx = ctx;
    (*out)->t = t;
    tb_buf_init(&(*out)->joined, ctx);
    tb_buf_init(&(*out)->shown, ctx);
    return TB_OK;
}

void tb_decoder_destroy(tb_decoder *d)
{
    if (d == NULL)
        return;
    tb_buf_clear(&d->joined);
    tb_buf_clear(&d->shown);
    tb_free(d->ctx, d);
}

/* Move d->joined to d->shown; a partial character at the end stays held,
 * unless this is the end. */
static void show(tb_decoder *d, bool end)
{
    const char *p = tb_buf_str(&d->joined);
    size_t n = d->joined.len;
    for (size_t i = 0; i < n;) {
        tb_utf8 u = tb_utf8_next(p + i, n - i);
        if (u.kind == TB_UTF8_VALID)
            tb_buf_put(&d->shown, p + i, u.len);
        else if (u.kind == TB_UTF8_INVALID || end)
            tb_buf_puts(&d->shown, "\xef\xbf\xbd");
        else {
            memcpy(d->held, p + i, u.len);
            d->held_n = u.len;
        }
        i += u.len;
    }
}

static tb_status next(tb_decoder *d, const char *token, size_t token_n,
                      bool end, const char **text, size_t *n)
{
    d->joined.len = d->shown.len = 0;
    tb_buf_put(&d->joined, d->held, d->held_n);
    tb_buf_put(&d->joined, token, token_n);
    TB_TRY(tb_buf_status(&d->joined));
    d->held_n = 0;
    show(d, end);
    *n = d->shown.len;
    *text = tb_buf_str(&d->shown);
    return tb_buf_status(&d->shown);
}

tb_status tb_decoder_push(tb_decoder *d, int32_t id, const char **text,
                          size_t *n)
{
    size_t token_n;
    const char *token = tb_tokenizer_token(d->t, id, &token_n);
    *text = "";
    *n = 0;
    if (token == NULL)
        return TB_FAIL(d->ctx, TB_ERR_INPUT,
                       "token: got id %d, wanted 0 to %zu", id,
                       tb_tokenizer_size(d->t) - 1);
    return next(d, token, token_n, false, text, n);
}

tb_status tb_decoder_flush(tb_decoder *d, const char **text, size_t *n)
{
    *text = "";
    *n = 0;
    return next(d, "", 0, true, text, n);
}
