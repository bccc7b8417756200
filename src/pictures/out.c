/* SPDX-License-Identifier: MIT */
/* The growing output of the pictures room, numbers as figures show them, and
 * the few functions of a double that drawing needs. */
#include "pictures/scene.h"

tb_status tb_out_create(tb_ctx *ctx, tb_out **out)
{
    *out = tb_alloc(ctx, 1, sizeof(tb_out));
    if (!*out)
        return TB_ERR_MEMORY;
    (*out)->ctx = ctx;
    tb_buf_init(&(*out)->buf, ctx);
    return TB_OK;
}

void tb_out_destroy(tb_out *o)
{
    if (!o)
        return;
    tb_buf_clear(&o->buf);
    tb_free(o->ctx, o);
}

void tb_out_reset(tb_out *o)
{
    tb_buf_clear(&o->buf);
    tb_buf_init(&o->buf, o->ctx);
}

const char *tb_out_str(const tb_out *o)
{
    return tb_buf_str(&o->buf);
}

size_t tb_out_len(const tb_out *o)
{
    return o->buf.len;
}

tb_status tb_out_put(tb_out *o, const char *text)
{
    tb_buf_puts(&o->buf, text);
    return tb_buf_status(&o->buf);
}

tb_status tb_text_term(const char *text, int indent, const tb_terminal *term,
                       tb_out *out)
{
    tb_term_wrap(&out->buf, term, indent, text);
    return tb_buf_status(&out->buf);
}

/* --- numbers as shown --------------------------------------------------- */

/* "12.50" -> "12.5", "3.00" -> "3" */
static void trim_zeros(char *s)
{
    size_t n = strlen(s);
    if (!memchr(s, '.', n))
        return;
    while (s[n - 1] == '0')
        s[--n] = 0;
    if (s[n - 1] == '.')
        s[n - 1] = 0;
}

/* C writes 1.30e-05; figures say 1.3e-5. */
static void show_exponent(double v, char out[TB_SHOW_CHARS])
{
    char text[64];
    tb_format(text, sizeof text, "%.2e", v);
    char *e = strchr(text, 'e');
    if (!e)
        return;
    *e++ = 0;
    trim_zeros(text);
    const char *sign = *e == '-' ? "-" : "";
    while (*e == '-' || *e == '+' || *e == '0')
        e++;
    tb_format(out, TB_SHOW_CHARS, "%se%s%s", text, sign, *e ? e : "0");
}

char *tb_show_number(double v, char out[TB_SHOW_CHARS])
{
    double a = tb_fabs(v);
    if (!tb_isfinite(v)) {
        tb_format(out, TB_SHOW_CHARS, "%s",
                  v != v ? "nan" : (v < 0 ? "-inf" : "inf"));
        return out;
    }
    if (a < 9.995e-4 || a >= 999999.5) {
        show_exponent(v, out);
        if (a == 0)
            tb_format(out, TB_SHOW_CHARS, "0");
        return out;
    }
    int decimals = a < 9.995e-3   ? 5
                   : a < 9.995e-2 ? 4
                   : a < 0.9995   ? 3
                   : a < 9.995    ? 2
                   : a < 99.95    ? 1
                                  : 0;
    tb_format(out, TB_SHOW_CHARS, "%.*f", decimals, v);
    trim_zeros(out);
    return out;
}

void tb_px(tb_buf *b, double v)
{
    double a = tb_fabs(v);
    if (!(a < 1e7)) /* the scene refuses what is not finite */
        a = 1e7;
    long hundredths = (long)(a * 100 + 0.5);
    if (v < 0 && hundredths)
        tb_buf_putc(b, '-');
    tb_buf_printf(b, "%ld", hundredths / 100);
    long rest = hundredths % 100;
    if (rest) {
        tb_buf_putc(b, '.');
        tb_buf_putc(b, (char)('0' + rest / 10));
        if (rest % 10)
            tb_buf_putc(b, (char)('0' + rest % 10));
    }
}

/* --- functions ---------------------------------------------------------- */

double tb_floor(double x)
{
    if (!(tb_fabs(x) < 4503599627370496.0))
        return x;
    double t = (double)(int64_t)x;
    return t > x ? t - 1 : t;
}

double tb_ceil(double x)
{
    return -tb_floor(-x);
}

double tb_log10(double v)
{
    double x = tb_log(v) * 0.43429448190325182765;
    double whole = tb_floor(x + 0.5);
    return tb_fabs(x - whole) < 1e-12 * (1 + tb_fabs(whole)) ? whole : x;
}

double tb_pow10(double x)
{
    double whole = tb_floor(x);
    double v = x == whole ? 1 : tb_exp((x - whole) * 2.302585092994045684);
    char text[16];
    double scale;
    size_t n = tb_format(text, sizeof text, "1e%d", (int)whole);
    return tb_double_parse(text, n, &scale) ? v * scale : 0;
}
