/* SPDX-License-Identifier: MIT */
/* Texts from files: plain or gzip, bytes kept as they are, line ends and
 * invalid UTF-8 counted rather than changed. */
#include "checkpoint/utf8.h"
#include "tollbooth/data.h"

static const size_t default_max = SIZE_MAX > 0xffffffffu ? (size_t)1 << 16 << 16
                                                         : SIZE_MAX / 2;

static void count_line_ends(const char *p, size_t n, tb_text_stats *s)
{
    for (size_t i = 0; i < n; i++) {
        bool pair = p[i] == '\r' && i + 1 < n && p[i + 1] == '\n';
        s->crlf += pair;
        s->cr += p[i] == '\r' && !pair;
        s->lf += p[i] == '\n' && !pair;
        s->nul += p[i] == 0;
        i += pair;
    }
}

static void count_codes(const char *p, size_t n, tb_text_stats *s)
{
    for (size_t i = 0; i < n;) {
        tb_utf8 u = tb_utf8_next(p + i, n - i);
        if (u.kind == TB_UTF8_VALID)
            s->codepoints++;
        else
            s->invalid += u.len;
        i += u.len;
    }
}

tb_text_stats tb_text_count(const void *data, size_t n)
{
    tb_text_stats s = {.bytes = n};
    const char *p = data;
    count_line_ends(p, n, &s);
    count_codes(p, n, &s);
    s.bom = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0;
    return s;
}

static bool is_gzip(const tb_bytes *b)
{
    return b->len >= 2 && memcmp(b->data, "\x1f\x8b", 2) == 0;
}

/* Replace the gzip bytes of `t` by what they hold. */
static tb_status expand(tb_ctx *ctx, const char *name, size_t max, tb_text *t)
{
    tb_bytes packed = t->bytes;
    t->gzip = true;
    t->bytes = (tb_bytes){0};
    tb_status s =
        tb_text_gunzip(ctx, name, packed.data, packed.len, max, &t->bytes);
    tb_bytes_clear(ctx, &packed);
    return s;
}

static void strip_bom(tb_text *t)
{
    if (!t->stats.bom)
        return;
    t->bytes.len -= 3;
    memmove(t->bytes.data, t->bytes.data + 3, t->bytes.len + 1);
}

tb_status tb_text_load(tb_ctx *ctx, const char *path,
                       const tb_text_options *opt, tb_text *out)
{
    const tb_text_options o = opt ? *opt : (tb_text_options){0};
    size_t max = o.max == 0 ? default_max : o.max;
    *out = (tb_text){0};
    tb_status s = tb_file_read(ctx, path, max, &out->bytes);
    if (s == TB_OK && is_gzip(&out->bytes))
        s = expand(ctx, path, max, out);
    if (s != TB_OK) {
        tb_text_clear(ctx, out);
        return s;
    }
    out->stats = tb_text_count(out->bytes.data, out->bytes.len);
    if (o.strip_bom)
        strip_bom(out);
    return TB_OK;
}

void tb_text_clear(tb_ctx *ctx, tb_text *t)
{
    tb_bytes_clear(ctx, &t->bytes);
    *t = (tb_text){0};
}
