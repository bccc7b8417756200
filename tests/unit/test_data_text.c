/* SPDX-License-Identifier: MIT */
/* Texts: line ends and BOMs counted and kept (C109), gzip by its magic, cut
 * and damaged archives, limits. */
#include <zlib.h>

#include "tollbooth/data.h"
#include "unit/test_checkpoint_tmp.h"

TB_TEST(line_ends_are_counted_and_kept)
{
    static const struct {
        const char *bytes;
        size_t n;
        tb_text_stats want;
    } rows[] = {
        {"a\r\nb\r\n", 6, {6, 6, 0, 0, 2, 0, 0, false}},
        {"a\rb", 3, {3, 3, 1, 0, 0, 0, 0, false}},
        {"\xef\xbb\xbf"
         "a\n",
         5,
         {5, 3, 0, 1, 0, 0, 0, true}},
        {"\n\r\n\r", 4, {4, 4, 1, 1, 1, 0, 0, false}},
        {"\r\r\n\n", 4, {4, 4, 1, 1, 1, 0, 0, false}},
        {"a\0b", 3, {3, 3, 0, 0, 0, 1, 0, false}},
        {"\xff\xfe"
         "a",
         3,
         {3, 1, 0, 0, 0, 0, 2, false}},
        {"\xe5\x9c", 2, {2, 0, 0, 0, 0, 0, 2, false}},
        {"\xef\xbb", 2, {2, 0, 0, 0, 0, 0, 2, false}},
        {"", 0, {0, 0, 0, 0, 0, 0, 0, false}},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_text t;
        const char *path = tmp_file("t.txt", rows[i].bytes, rows[i].n);
        TB_OKAY(T, tb_text_load(T->ctx, path, NULL, &t));
        const tb_text_stats *s = &t.stats, *w = &rows[i].want;
        TB_CHECK(T, s->bytes == w->bytes && s->codepoints == w->codepoints);
        TB_CHECK(T, s->cr == w->cr && s->lf == w->lf && s->crlf == w->crlf);
        TB_CHECK(T, s->nul == w->nul && s->invalid == w->invalid &&
                        s->bom == w->bom);
        TB_CHECK(T, !t.gzip && t.bytes.len == rows[i].n);
        TB_SAME(T, t.bytes.data, rows[i].bytes, rows[i].n);
        tb_text_clear(T->ctx, &t);
    }
}

TB_TEST(bom_only_goes_when_asked)
{
    static const char text[] = "\xef\xbb\xbf"
                               "a\xef\xbb\xbf\r\n";
    const char *path = tmp_text("bom.txt", text);
    const tb_text_options strip = {.strip_bom = true};
    tb_text t;
    TB_OKAY(T, tb_text_load(T->ctx, path, &strip, &t));
    TB_STR(T, t.bytes.data, text + 3);
    TB_CHECK(T, t.bytes.len == sizeof(text) - 4 && t.stats.bom);
    TB_CHECK(T, t.stats.bytes == sizeof(text) - 1);
    tb_text_clear(T->ctx, &t);
    TB_OKAY(T, tb_text_load(T->ctx, tmp_text("none.txt", "abc"), &strip, &t));
    TB_STR(T, t.bytes.data, "abc");
    tb_text_clear(T->ctx, &t);
}

TB_TEST(absent_and_too_long)
{
    tb_text t;
    const tb_text_options few = {.max = 5};
    TB_FAILS(T, tb_text_load(T->ctx, tmp_path("absent.txt"), NULL, &t),
             TB_ERR_INPUT, "absent.txt: cannot open");
    TB_FAILS(T, tb_text_load(T->ctx, tmp_text("six.txt", "123456"), &few, &t),
             TB_ERR_INPUT, "longer than the limit of 5 bytes");
    TB_OKAY(T, tb_text_load(T->ctx, tmp_text("five.txt", "12345"), &few, &t));
    tb_text_clear(T->ctx, &t);
}

/* --- gzip
 * -------------------------------------------------------------------------- */

/* A gzip member as dictzip and gzip -N write them: extra field and name. */
static size_t pack(const char *data, size_t n, bool fields, char *out,
                   size_t cap)
{
    unsigned char extra[] = "RA\x02\0\x01\0";
    unsigned char name[] = "x.dict";
    gz_header h = {
        .extra = extra, .extra_len = sizeof(extra) - 1, .name = name};
    z_stream z = {0};
    char *in = malloc(n + 1);
    if (in == NULL ||
        deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    memcpy(in, data, n);
    if (fields)
        deflateSetHeader(&z, &h);
    z.next_in = (unsigned char *)in;
    z.avail_in = (unsigned)n;
    z.next_out = (unsigned char *)out;
    z.avail_out = (unsigned)cap;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    deflateEnd(&z);
    free(in);
    return cap - z.avail_out;
}

enum { WORDS = 100000 };

static const char *many_words(void)
{
    static char text[WORDS + 1];
    for (size_t i = 0; i < WORDS; i++)
        text[i] = (char)('a' + (i * i / 7) % 26);
    return text;
}

TB_TEST(gzip_by_magic_not_by_name)
{
    static char file[WORDS + 4096];
    const char *text = many_words();
    for (int fields = 0; fields < 2; fields++) {
        size_t n = pack(text, WORDS, fields, file, sizeof(file));
        tb_text t;
        const char *path = tmp_file(fields ? "x.dict.dz" : "x.txt", file, n);
        TB_OKAY(T, tb_text_load(T->ctx, path, NULL, &t));
        TB_CHECK(T, t.gzip && t.bytes.len == WORDS);
        TB_SAME(T, t.bytes.data, text, WORDS);
        tb_text_clear(T->ctx, &t);
    }
    tb_text t;
    TB_OKAY(T, tb_text_load(T->ctx, tmp_text("plain.gz", "plain"), NULL, &t));
    TB_STR(T, t.bytes.data, "plain");
    tb_text_clear(T->ctx, &t);
}

TB_TEST(members_are_joined)
{
    char file[512];
    size_t n = pack("one ", 4, false, file, sizeof(file));
    n += pack("", 0, false, file + n, sizeof(file) - n);
    n += pack("two", 3, true, file + n, sizeof(file) - n);
    memset(file + n, 0, 20);
    for (size_t pad = 0; pad <= 20; pad += 20) {
        tb_bytes b;
        TB_OKAY(T, tb_text_gunzip(T->ctx, "m", file, n + pad, 0, &b));
        TB_STR(T, b.data, "one two");
        tb_bytes_clear(T->ctx, &b);
    }
    tb_bytes b;
    memcpy(file + n, "junk", 4);
    TB_FAILS(T, tb_text_gunzip(T->ctx, "m", file, n + 4, 0, &b), TB_ERR_INPUT,
             "m: gzip: unexpected bytes after");
}

/* Every proper prefix is an error, whatever it cuts. */
TB_TEST(truncated_gzip)
{
    char file[512];
    tb_bytes b;
    size_t n = pack("The quick brown fox", 19, true, file, sizeof(file));
    for (size_t k = 0; k < n; k++)
        TB_FAILS(T, tb_text_gunzip(T->ctx, "x.gz", file, k, 0, &b),
                 TB_ERR_INPUT, "x.gz: gzip: truncated");
    size_t two = n + pack("next", 4, false, file + n, sizeof(file) - n);
    for (size_t k = n + 2; k < two; k++)
        TB_FAILS(T, tb_text_gunzip(T->ctx, "x.gz", file, k, 0, &b),
                 TB_ERR_INPUT, "truncated");
}

TB_TEST(damaged_gzip)
{
    char file[512];
    tb_bytes b;
    tb_text t;
    size_t n = pack("The quick brown fox", 19, false, file, sizeof(file));
    file[n - 5] ^= 1; /* in the check sum */
    TB_FAILS(T, tb_text_gunzip(T->ctx, "x.gz", file, n, 0, &b), TB_ERR_INPUT,
             "gzip: incorrect data check");
    TB_FAILS(T, tb_text_load(T->ctx, tmp_file("x.gz", file, n), NULL, &t),
             TB_ERR_INPUT, "x.gz: gzip:");
    TB_CHECK(T, t.bytes.data == NULL);
}

/* A few hundred bytes that would grow to a megabyte. */
TB_TEST(gzip_beyond_the_limit)
{
    static char zeros[1 << 20], file[1 << 14];
    tb_bytes b;
    size_t n = pack(zeros, sizeof(zeros), false, file, sizeof(file));
    TB_FAILS(T, tb_text_gunzip(T->ctx, "z", file, n, 1000, &b), TB_ERR_INPUT,
             "longer than the limit of 1000 bytes");
    TB_OKAY(T, tb_text_gunzip(T->ctx, "z", file, n, sizeof(zeros), &b));
    TB_CHECK(T, b.len == sizeof(zeros));
    tb_bytes_clear(T->ctx, &b);
}

TB_TEST(each_allocation_may_fail)
{
    static char file[WORDS + 4096];
    size_t n = pack(many_words(), WORDS, false, file, sizeof(file));
    const char *path = tmp_file("alloc.gz", file, n);
    tb_text t;
    TMP_EACH_ALLOC(T, tb_text_load(T->ctx, path, NULL, &t),
                   tb_text_clear(T->ctx, &t));
}

/* --- ../shared
 * ------------------------------------------------------------------------ */

TB_TEST(real_texts)
{
    static const struct {
        const char *file;
        size_t bytes, crlf;
        bool bom, gzip;
    } rows[] = {
        {"data/text/tinyshakespeare.txt", 1115394, 0, false, false},
        {"data/parallel/multi30k/val.en.gz", 63297, 0, false, true},
        {"data/text/botchan.txt", 278779, 4288, true, false},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        const char *path = tb_test_shared(T, rows[i].file);
        if (path == NULL)
            TB_SKIP(T, "no ../shared/data/text");
        tb_text t;
        TB_OKAY(T, tb_text_load(T->ctx, path, NULL, &t));
        if (t.stats.bytes != rows[i].bytes || t.stats.crlf != rows[i].crlf)
            tb_test_fail(T, __FILE__, __LINE__, "%s: %zu bytes, %zu CRLF",
                         rows[i].file, t.stats.bytes, t.stats.crlf);
        TB_CHECK(T, t.stats.bom == rows[i].bom && t.gzip == rows[i].gzip);
        TB_CHECK(T, t.stats.invalid == 0);
        tb_text_clear(T->ctx, &t);
    }
}
