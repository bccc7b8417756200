/* SPDX-License-Identifier: MIT */
/* A text as lines. CR LF ends one as LF does, so that files from elsewhere
 * align; a CR anywhere else belongs to its line. */
#include "base/base.h"
#include "tollbooth/data.h"

/* Length of the line at p, its end left out; *next: where the next one starts.
 */
static size_t line_at(const char *p, size_t n, size_t *next)
{
    const char *lf = memchr(p, '\n', n);
    size_t len = lf == NULL ? n : (size_t)(lf - p);
    *next = lf == NULL ? n : len + 1;
    return lf != NULL && len > 0 && p[len - 1] == '\r' ? len - 1 : len;
}

static size_t count_lines(const char *p, size_t n)
{
    size_t count = 0, next;
    for (; n > 0; p += next, n -= next) {
        (void)line_at(p, n, &next);
        count++;
    }
    return count;
}

tb_status tb_lines_split(tb_ctx *ctx, const void *data, size_t n, tb_lines *out)
{
    const char *p = data;
    size_t next;
    *out = (tb_lines){0};
    out->line = tb_alloc(ctx, count_lines(p, n) + 1, sizeof *out->line);
    if (out->line == NULL)
        return TB_ERR_MEMORY;
    for (; n > 0; p += next, n -= next)
        out->line[out->count++] = (tb_span){p, line_at(p, n, &next)};
    return TB_OK;
}

void tb_lines_clear(tb_ctx *ctx, tb_lines *l)
{
    tb_free(ctx, l->line);
    *l = (tb_lines){0};
}
