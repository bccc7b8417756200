/* SPDX-License-Identifier: MIT */
/* The log of a training folder. Lines after the last checkpoint may be lost
 * with a killed run: resuming makes those updates again. */
#include "train_log.h"
#include "tollbooth/checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void say_failed(run_log *l, const char *why)
{
    if (!l->failed)
        complain("tollbooth: %s/" TB_DIR_LOG ": %s; training goes on without\n",
                 l->dir, why);
    l->failed = true;
    if (l->file)
        fclose(l->file);
    l->file = NULL;
}

static size_t number_of(tb_ctx *ctx, const char *line, size_t n,
                        const char *key)
{
    tb_config *c;
    size_t value = 0;
    if (tb_config_parse(ctx, TB_DIR_LOG, line, n, &c) == TB_OK) {
        if (tb_config_size_or(c, key, 0, &value) != TB_OK)
            value = 0;
        tb_config_destroy(c);
    }
    tb_error_clear(ctx); /* a line cut short is no error */
    return value;
}

/* The header, and updates up to `last`; how a run ended is no part of it. */
static tb_status keep_until(tb_ctx *ctx, const char *path, const char *header,
                            size_t last)
{
    tb_bytes old = {0};
    tb_status s = TB_OK;
    if (tb_file_exists(path))
        s = tb_file_read(ctx, path, 0, &old);
    size_t head = old.data ? strcspn(old.data, "\n") : 0;
    char *text = malloc(old.len + strlen(header) + 2), *at = text;
    if (!text)
        s = TB_ERR_MEMORY;
    if (s == TB_OK && head == 0)
        at += sprintf(at, "%s\n", header);
    for (char *line = old.data; s == TB_OK && line && *line;) {
        size_t n = strcspn(line, "\n");
        size_t step = number_of(ctx, line, n, "step");
        if (line == old.data || (step && step <= last)) {
            memcpy(at, line, n);
            at += n;
            *at++ = '\n';
        }
        line += n + (line[n] == '\n');
    }
    if (s == TB_OK)
        s = tb_file_write_atomic(ctx, path, text, (size_t)(at - text));
    free(text);
    tb_bytes_clear(ctx, &old);
    return s;
}

void log_begin(tb_ctx *ctx, run_log *l, const char *header)
{
    tb_bytes path = {0};
    if (!l->dir)
        return;
    size_t last = number_of(ctx, header, strlen(header), "resumed_at");
    tb_status s = tb_path_join(ctx, l->dir, TB_DIR_LOG, &path);
    if (s == TB_OK && last)
        s = keep_until(ctx, path.data, header, last);
    if (s == TB_OK) {
        l->file = fopen(path.data, last ? "ab" : "wb");
        if (!l->file)
            say_failed(l, strerror(errno));
        else if (!last)
            log_line(l, header);
    } else {
        say_failed(l, tb_error(ctx));
        tb_error_clear(ctx);
    }
    tb_bytes_clear(ctx, &path);
}

void log_line(run_log *l, const char *line)
{
    if (l->file && line && fprintf(l->file, "%s\n", line) < 0)
        say_failed(l, strerror(errno));
}

void log_flush(run_log *l)
{
    if (l->file && fflush(l->file) != 0)
        say_failed(l, strerror(errno));
}

void log_end(run_log *l)
{
    FILE *f = l->file;
    l->file = NULL;
    if (f && fclose(f) != 0)
        say_failed(l, strerror(errno));
}
