/* SPDX-License-Identifier: MIT */
/* Growing byte strings, and two questions about words: equal, and which
 * candidate was likely meant. */
#include "base/base.h"

void tb_buf_init(tb_buf *b, tb_ctx *ctx)
{
    *b = (tb_buf){.ctx = ctx};
}

void tb_buf_clear(tb_buf *b)
{
    tb_free(b->ctx, b->data);
    tb_buf_init(b, b->ctx);
}

/* Room for n more bytes and the NUL; doubles, so appends are O(1) each. */
static bool reserve(tb_buf *b, size_t n)
{
    size_t need;
    if (b->failed)
        return false;
    if (!tb_add(b->len, n, &need) || !tb_add(need, 1, &need)) {
        (void)TB_FAIL(b->ctx, TB_ERR_MEMORY, "a text of %zu + %zu bytes",
                      b->len, n);
        b->failed = true;
        return false;
    }
    if (need <= b->cap)
        return true;
    size_t cap = b->cap > SIZE_MAX / 2 ? need : 2 * b->cap;
    cap = cap < need ? need : cap;
    cap = cap < 64 ? 64 : cap;
    char *data = tb_realloc(b->ctx, b->data, b->cap, cap);
    b->failed = !data;
    if (!data)
        return false;
    b->data = data;
    b->cap = cap;
    return true;
}

void tb_buf_put(tb_buf *b, const char *s, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->data + b->len, s, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void tb_buf_puts(tb_buf *b, const char *s)
{
    tb_buf_put(b, s, strlen(s));
}

void tb_buf_putc(tb_buf *b, char c)
{
    tb_buf_put(b, &c, 1);
}

void tb_buf_vprintf(tb_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    size_t n = tb_vformat(NULL, 0, fmt, again);
    va_end(again);
    if (!reserve(b, n))
        return;
    tb_vformat(b->data + b->len, n + 1, fmt, ap);
    b->len += n;
}

void tb_buf_printf(tb_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tb_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

const char *tb_buf_str(const tb_buf *b)
{
    return b->data ? b->data : "";
}

tb_status tb_buf_status(const tb_buf *b)
{
    return b->failed ? TB_ERR_MEMORY : TB_OK;
}

/* --- words -------------------------------------------------------------- */

bool tb_streq(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

enum { WORD_MAX = 63 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours ("tahn") that
 * turn a into b: optimal string alignment, three rows of the table. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = before[j] = j;
    for (size_t i = 1; i <= na; i++) {
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t change = last[j - 1] + (a[i - 1] != b[j - 1]);
            now[j] = min3(change, last[j] + 1, now[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[nb];
}

const char *tb_nearest(const char *word, const char *const *candidates,
                       size_t n)
{
    size_t len = strlen(word), best = len / 3 > 1 ? len / 3 : 1;
    const char *found = NULL;
    if (len > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(candidates[i]);
        if (other > WORD_MAX)
            continue;
        size_t d = distance(word, len, candidates[i], other);
        if (d < best || (d == best && !found)) {
            best = d;
            found = candidates[i];
        }
    }
    return found;
}
