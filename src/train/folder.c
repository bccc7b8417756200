/* SPDX-License-Identifier: MIT */
/* The folder of a run: who may write it, and the files that never change
 * (see tollbooth/checkpoint.h for the protocol). */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "equation/equation.h"
#include "train/trainer.h"

/* --- lock -------------------------------------------------------------------
 */

tb_status tb_folder_open(tb_ctx *ctx, const char *dir, tb_folder *out)
{
    *out = (tb_folder){ctx, dir, -1};
    if (!dir)
        return TB_OK;
    TB_TRY(tb_dir_make(ctx, dir));
    out->lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->lock < 0)
        return tb_fail_errno(ctx, dir, "cannot open the folder", errno);
    if (flock(out->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return TB_OK; /* file systems without locks do without */
    tb_folder_close(out);
    return TB_FAIL(ctx, TB_ERR_IO, "%s: another process is training there",
                   dir);
}

void tb_folder_close(tb_folder *f)
{
    if (f->dir && f->lock >= 0)
        close(f->lock);
    f->lock = -1;
}

/* --- files ------------------------------------------------------------------
 */

tb_status tb_folder_path(tb_ctx *ctx, tb_arena *a, const char *dir,
                         const char *name, const char **out)
{
    tb_bytes b;
    TB_TRY(tb_path_join(ctx, dir, name, &b));
    *out = tb_arena_strdup(a, b.data);
    tb_bytes_clear(ctx, &b);
    return *out ? TB_OK : TB_ERR_MEMORY;
}

tb_status tb_folder_read(tb_ctx *ctx, tb_arena *a, const char *dir,
                         const char *name, tb_bytes *out)
{
    const char *path;
    TB_TRY(tb_folder_path(ctx, a, dir, name, &path));
    return tb_file_read(ctx, path, (size_t)1 << 30, out);
}

bool tb_folder_has(tb_ctx *ctx, tb_arena *a, const char *dir, const char *name)
{
    const char *path;
    return tb_folder_path(ctx, a, dir, name, &path) == TB_OK &&
           tb_file_exists(path);
}

static tb_status write_file(tb_ctx *ctx, tb_arena *a, const char *dir,
                            const char *name, const char *text, size_t n)
{
    const char *path;
    TB_TRY(tb_folder_path(ctx, a, dir, name, &path));
    return tb_file_write_atomic(ctx, path, text, n);
}

/* --- a new run --------------------------------------------------------------
 */

static bool holds_our_config(tb_ctx *ctx, tb_arena *a, const char *dir)
{
    tb_record r;
    tb_bytes b;
    if (tb_folder_read(ctx, a, dir, TB_DIR_CONFIG, &b) != TB_OK)
        return false;
    tb_status s = tb_record_read(ctx, a, TB_DIR_CONFIG, b.data, b.len, &r);
    tb_bytes_clear(ctx, &b);
    tb_error_clear(ctx);
    return s == TB_OK;
}

tb_status tb_folder_fresh(tb_ctx *ctx, tb_arena *a, const char *dir)
{
    static const char *const kept[] = {TB_DIR_STATE, TB_DIR_MODEL};
    static const char *const made[] = {TB_DIR_CONFIG, TB_DIR_BLOCK,
                                       TB_DIR_TOKENIZER};
    for (size_t i = 0; i < TB_LEN(kept); i++)
        if (tb_folder_has(ctx, a, dir, kept[i]))
            return TB_FAIL(ctx, TB_ERR_INPUT,
                           "%s: already holds %s; resume it, or choose another "
                           "folder",
                           dir, kept[i]);
    if (holds_our_config(ctx, a, dir)) /* started, never saved */
        return TB_OK;
    for (size_t i = 0; i < TB_LEN(made); i++)
        if (tb_folder_has(ctx, a, dir, made[i]))
            return TB_FAIL(ctx, TB_ERR_INPUT,
                           "%s: holds a %s that is not of a training run; "
                           "choose another folder",
                           dir, made[i]);
    return TB_OK;
}

static tb_status write_config(tb_ctx *ctx, tb_arena *a, const char *dir,
                              const tb_record *r)
{
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_status s = tb_record_text(ctx, r, true, &text);
    tb_buf_putc(&text, '\n');
    if (s == TB_OK)
        s = write_file(ctx, a, dir, TB_DIR_CONFIG, tb_buf_str(&text), text.len);
    tb_buf_clear(&text);
    return s;
}

static tb_status write_tokenizer(tb_ctx *ctx, tb_arena *a, const char *dir,
                                 const tb_tokenizer *t)
{
    tb_bytes b;
    TB_TRY(tb_tokenizer_save(ctx, t, &b));
    tb_status s = write_file(ctx, a, dir, TB_DIR_TOKENIZER, b.data, b.len);
    tb_bytes_clear(ctx, &b);
    return s;
}

tb_status tb_folder_start(tb_ctx *ctx, tb_arena *a, const char *dir,
                          const tb_record *r, const tb_tokenizer *t)
{
    TB_TRY(write_config(ctx, a, dir, r));
    TB_TRY(write_file(ctx, a, dir, TB_DIR_BLOCK, r->block_text,
                      strlen(r->block_text)));
    return write_tokenizer(ctx, a, dir, t);
}

/* --- an old one -------------------------------------------------------------
 */

tb_status tb_folder_record(tb_ctx *ctx, tb_arena *a, const char *dir,
                           tb_record *out)
{
    tb_bytes b;
    const char *path;
    TB_TRY(tb_folder_path(ctx, a, dir, TB_DIR_CONFIG, &path));
    TB_TRY(tb_folder_read(ctx, a, dir, TB_DIR_CONFIG, &b));
    tb_status s = tb_record_read(ctx, a, path, b.data, b.len, out);
    tb_bytes_clear(ctx, &b);
    return s;
}

tb_status tb_record_block(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                          tb_record *r)
{
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_block_print(b, &text);
    tb_status s = tb_buf_status(&text);
    r->block_text = tb_arena_strdup(a, tb_buf_str(&text));
    tb_buf_clear(&text);
    return r->block_text ? s : TB_ERR_MEMORY;
}

tb_status tb_folder_block(tb_ctx *ctx, tb_arena *a, const char *dir,
                          tb_record *r, tb_block **out)
{
    tb_bytes b;
    const char *name = r->block_name ? r->block_name : TB_DIR_BLOCK;
    *out = NULL;
    TB_TRY(tb_folder_read(ctx, a, dir, TB_DIR_BLOCK, &b));
    tb_status s = tb_block_parse(ctx, name, b.data, b.len, TB_PARSE_BLOCK, out);
    tb_bytes_clear(ctx, &b);
    if (s == TB_OK)
        s = tb_record_block(ctx, a, *out, r);
    if (s == TB_OK || !*out)
        return s;
    tb_block_destroy(ctx, *out);
    *out = NULL;
    return s;
}

tb_status tb_folder_tokenizer(tb_ctx *ctx, tb_arena *a, const char *dir,
                              tb_tokenizer **out)
{
    tb_bytes b;
    const char *path;
    *out = NULL;
    TB_TRY(tb_folder_path(ctx, a, dir, TB_DIR_TOKENIZER, &path));
    TB_TRY(tb_file_read(ctx, path, 0, &b));
    tb_status s = tb_tokenizer_load(ctx, path, b.data, b.len, out);
    tb_bytes_clear(ctx, &b);
    return s;
}

/* --- two texts of one block -------------------------------------------------
 */

static size_t line_length(const char *s)
{
    return strcspn(s, "\n");
}

tb_status tb_block_differs(tb_ctx *ctx, const char *what, const char *got,
                           const char *wanted)
{
    size_t line = 1;
    for (;; line++) {
        size_t a = line_length(got), b = line_length(wanted);
        bool same = a == b && memcmp(got, wanted, a) == 0;
        if (!same || (!got[a] && !wanted[b]))
            return TB_FAIL(ctx, TB_ERR_INPUT,
                           "%s: the block differs at line %zu\n"
                           "  got    %.*s\n"
                           "  wanted %.*s",
                           what, line, a < 200 ? (int)a : 200, got,
                           b < 200 ? (int)b : 200, wanted);
        got += got[a] ? a + 1 : a;
        wanted += wanted[b] ? b + 1 : b;
    }
}
