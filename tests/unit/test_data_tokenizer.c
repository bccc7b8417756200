/* SPDX-License-Identifier: MIT */
/* Tokenizers: exact round trips (C109, C110), unknown characters (C113), files
 * and the streaming decoder. */
#include "tollbooth/data.h"
#include "unit/test_checkpoint_tmp.h"

static tb_tokenizer *make(tb_test *T, const char *kind, const char *text,
                          size_t n)
{
    tb_tokenizer *t = NULL;
    tb_status s = tb_tokenizer_make(T->ctx, kind, text, n, &t);
    if (s != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    return t;
}

static const struct {
    const char *bytes;
    size_t n, tokens, vocab; /* of the char tokenizer */
} texts[] = {
    {"a\r\nb\r\n", 6, 6, 4},
    {"a\rb", 3, 3, 3},
    {"\xef\xbb\xbf"
     "a\n",
     5, 3, 3},
    {"\xff\xfe"
     "a",
     3, 3, 3},
    {"\x80", 1, 1, 1},
    {"\xcf\x95", 2, 1, 1},
    {"\xe5\x9c\xb0\xe5\x9c", 5, 3, 3},
    {"a\0b", 3, 3, 3},
    {"\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80", 9, 9, 6}, /* all invalid */
    {"\xf0\x9f\x98\x80", 4, 1, 1},
};

TB_TEST(decode_of_encode_is_the_text)
{
    static const char *const kinds[] = {"byte", "char"};
    for (size_t i = 0; i < TB_LEN(texts); i++)
        for (size_t k = 0; k < 2; k++) {
            tb_tokenizer *t = make(T, kinds[k], texts[i].bytes, texts[i].n);
            TB_REQUIRE(T, t != NULL);
            tb_tokens ids;
            tb_bytes back;
            TB_OKAY(T, tb_tokenizer_encode(T->ctx, t, "x", texts[i].bytes,
                                           texts[i].n, &ids));
            TB_CHECK(T, ids.count == (k ? texts[i].tokens : texts[i].n));
            TB_CHECK(T, tb_tokenizer_size(t) == (k ? texts[i].vocab : 256));
            TB_OKAY(T,
                    tb_tokenizer_decode(T->ctx, t, ids.ids, ids.count, &back));
            TB_CHECK(T, back.len == texts[i].n);
            TB_SAME(T, back.data, texts[i].bytes, texts[i].n);
            tb_tokens_clear(T->ctx, &ids);
            tb_bytes_clear(T->ctx, &back);
            tb_tokenizer_destroy(t);
        }
}

/* Random bytes, and random runs of two- and three-byte beginnings. */
TB_TEST(any_bytes_round_trip)
{
    enum { N = 400 };
    for (int round = 0; round < 200; round++) {
        char text[N];
        for (size_t i = 0; i < N; i++) {
            double u = tb_test_uniform(T);
            unsigned c = (unsigned)(tb_test_uniform(T) * 64);
            text[i] = (char)(u < 0.3 ? 0x80 + c : u < 0.6 ? 0xc0 + c : 2 * c);
        }
        tb_tokenizer *t = make(T, "char", text, N);
        tb_tokens ids;
        tb_bytes back;
        TB_OKAY(T, tb_tokenizer_encode(T->ctx, t, "x", text, N, &ids));
        TB_OKAY(T, tb_tokenizer_decode(T->ctx, t, ids.ids, ids.count, &back));
        TB_CHECK(T, back.len == N && memcmp(back.data, text, N) == 0);
        tb_tokens_clear(T->ctx, &ids);
        tb_bytes_clear(T->ctx, &back);
        tb_tokenizer_destroy(t);
    }
}

TB_TEST(ids_are_sorted)
{
    static const char text[] = "b\xff\xc3\xa9"
                               "a\x80\n";
    static const char *const want[] = {"\n",       "a",    "b",
                                       "\xc3\xa9", "\x80", "\xff"};
    tb_tokenizer *t = make(T, "char", text, sizeof(text) - 1);
    TB_REQUIRE(T, t != NULL && tb_tokenizer_size(t) == TB_LEN(want));
    for (size_t i = 0; i < TB_LEN(want); i++) {
        size_t n;
        const char *p = tb_tokenizer_token(t, (int32_t)i, &n);
        TB_CHECK(T, n == strlen(want[i]) && memcmp(p, want[i], n) == 0);
    }
    size_t n;
    TB_CHECK(T, tb_tokenizer_token(t, -1, &n) == NULL && n == 0);
    TB_CHECK(T, tb_tokenizer_token(t, 6, &n) == NULL);
    TB_STR(T, tb_tokenizer_kind(t), "char");
    tb_tokenizer_destroy(t);
}

TB_TEST(unknown_characters)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"abc", "prompt: character \"c\" (U+0063) at offset 2 is not in the "
                "vocabulary"},
        {"a\xc3\xa9", "character \"\xc3\xa9\" (U+00E9) at offset 1"},
        {"\xf0\x9f\x98\x80", "(U+1F600) at offset 0"},
        {"ab\r", "character U+000D at offset 2"},
        {"ab\xff", "byte 0xFF at offset 2"},
        {"ab\xe5\x9c", "byte 0xE5 at offset 2"},
    };
    tb_tokenizer *t = make(T, "char", "ab\n", 3);
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_tokens ids;
        TB_FAILS(T,
                 tb_tokenizer_encode(T->ctx, t, "prompt", rows[i].text,
                                     strlen(rows[i].text), &ids),
                 TB_ERR_INPUT, rows[i].error);
        TB_CHECK(T, ids.ids == NULL && ids.count == 0);
    }
    tb_tokens ids;
    TB_OKAY(T, tb_tokenizer_encode(T->ctx, t, "prompt", "", 0, &ids));
    TB_CHECK(T, ids.count == 0);
    tb_tokens_clear(T->ctx, &ids);
    tb_tokenizer_destroy(t);
}

TB_TEST(refusals)
{
    tb_tokenizer *t;
    TB_FAILS(T, tb_tokenizer_char(T->ctx, "", 0, &t), TB_ERR_INPUT,
             "empty text");
    TB_FAILS(T, tb_tokenizer_make(T->ctx, "word", "a", 1, &t), TB_ERR_ARG,
             "got 'word', wanted char or byte");
    TB_OKAY(T, tb_tokenizer_byte(T->ctx, &t));
    const int32_t ids[] = {65, 256, -1};
    tb_bytes b;
    TB_FAILS(T, tb_tokenizer_decode(T->ctx, t, ids, 3, &b), TB_ERR_INPUT,
             "token 1: got id 256, wanted 0 to 255");
    tb_tokenizer_destroy(t);
}

/* --- files
 * ----------------------------------------------------------------------------
 */

TB_TEST(saved_and_loaded)
{
    static const char *const kinds[] = {"byte", "char"};
    for (size_t i = 0; i < TB_LEN(texts); i++)
        for (size_t k = 0; k < 2; k++) {
            tb_tokenizer *t = make(T, kinds[k], texts[i].bytes, texts[i].n), *u;
            tb_bytes a, b;
            tb_tokens x, y;
            TB_OKAY(T, tb_tokenizer_save(T->ctx, t, &a));
            TB_OKAY(T, tb_tokenizer_load(T->ctx, "t.json", a.data, a.len, &u));
            TB_OKAY(T, tb_tokenizer_save(T->ctx, u, &b));
            TB_STR(T, b.data, a.data);
            TB_OKAY(T, tb_tokenizer_encode(T->ctx, t, "x", texts[i].bytes,
                                           texts[i].n, &x));
            TB_OKAY(T, tb_tokenizer_encode(T->ctx, u, "x", texts[i].bytes,
                                           texts[i].n, &y));
            TB_CHECK(T, x.count == y.count);
            TB_SAME(T, y.ids, x.ids, x.count * sizeof(*x.ids));
            tb_tokens_clear(T->ctx, &x);
            tb_tokens_clear(T->ctx, &y);
            tb_bytes_clear(T->ctx, &a);
            tb_bytes_clear(T->ctx, &b);
            tb_tokenizer_destroy(t);
            tb_tokenizer_destroy(u);
        }
}

TB_TEST(broken_files)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "t.json: not JSON"},
        {"[]", "t.json: tokenizer: got nothing"},
        {"{\"tokenizer\":\"word\"}", "got \"word\", wanted \"char\""},
        {"{\"tokenizer\":\"char\"}", "codepoints: got nothing, wanted a list"},
        {"{\"tokenizer\":\"char\",\"codepoints\":[],\"bytes\":[]}",
         "got no characters"},
        {"{\"tokenizer\":\"char\",\"codepoints\":[98,97],\"bytes\":[]}",
         "codepoints[1]: got 97 after 98"},
        {"{\"tokenizer\":\"char\",\"codepoints\":[55296],\"bytes\":[]}",
         "codepoints[0]: got 55296"},
        {"{\"tokenizer\":\"char\",\"codepoints\":[1114112],\"bytes\":[]}",
         "codepoints[0]: got 1114112"},
        {"{\"tokenizer\":\"char\",\"codepoints\":[-1],\"bytes\":[]}",
         "codepoints[0]: got -1"},
        {"{\"tokenizer\":\"char\",\"codepoints\":[97],\"bytes\":[256]}",
         "bytes[0]: got 256"},
        {"{\"tokenizer\":\"char\",\"codepoints\":[\"a\"],\"bytes\":[]}",
         "t.json: codepoints[0]: got string \"a\", wanted an integer"},
        {"{\"tokenizer\":\"byte\",\"special\":[\"stop\"]}",
         "special: got \"stop\", wanted pad, start, end and mask"},
        {"{\"tokenizer\":\"byte\",\"special\":[\"end\",\"pad\"]}",
         "special: got \"pad\""},
        {"{\"tokenizer\":\"byte\",\"special\":[\"pad\",\"pad\"]}",
         "special: got \"pad\""},
        {"{\"tokenizer\":\"byte\",\"special\":\"pad\"}", "wanted a list"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_tokenizer *t;
        TB_FAILS(T,
                 tb_tokenizer_load(T->ctx, "t.json", rows[i].text,
                                   strlen(rows[i].text), &t),
                 TB_ERR_INPUT, rows[i].error);
        TB_CHECK(T, t == NULL);
    }
}

TB_TEST(each_allocation_may_fail)
{
    tb_tokenizer *t = NULL, *u;
    tb_bytes b;
    tb_tokens ids;
    TMP_EACH_ALLOC(T, tb_tokenizer_char(T->ctx, "ab", 2, &t), (void)0);
    TMP_EACH_ALLOC(T, tb_tokenizer_encode(T->ctx, t, "x", "ab", 2, &ids),
                   (void)0);
    TMP_EACH_ALLOC(T, tb_tokenizer_decode(T->ctx, t, ids.ids, 2, &b),
                   tb_bytes_clear(T->ctx, &b));
    TMP_EACH_ALLOC(T, tb_tokenizer_save(T->ctx, t, &b), (void)0);
    TMP_EACH_ALLOC(T, tb_tokenizer_load(T->ctx, "t", b.data, b.len, &u),
                   tb_tokenizer_destroy(u));
    tb_bytes_clear(T->ctx, &b);
    tb_tokens_clear(T->ctx, &ids);
    tb_tokenizer_destroy(t);
}

/* --- special tokens
 * ---------------------------------------------------------------------- */

enum {
    PAD = 1 << TB_SPECIAL_PAD,
    START = 1 << TB_SPECIAL_START,
    END = 1 << TB_SPECIAL_END,
    MASK = 1 << TB_SPECIAL_MASK
};

static int32_t special(const tb_tokenizer *t, tb_special s)
{
    return tb_tokenizer_special(t, s);
}

TB_TEST(special_tokens_come_last)
{
    tb_tokenizer *t = make(T, "char", "abc", 3);
    TB_CHECK(T, special(t, TB_SPECIAL_PAD) == -1);
    TB_OKAY(T, tb_tokenizer_special_add(t, PAD | MASK));
    TB_CHECK(T, tb_tokenizer_size(t) == 5 && tb_tokenizer_plain(t) == 3);
    TB_CHECK(T, special(t, TB_SPECIAL_PAD) == 3);
    TB_CHECK(T, special(t, TB_SPECIAL_START) == -1);
    TB_CHECK(T, special(t, TB_SPECIAL_END) == -1);
    TB_CHECK(T, special(t, TB_SPECIAL_MASK) == 4);
    tb_tokenizer_destroy(t);
}

/* Whatever the text, a special token is never in it. */
TB_TEST(special_tokens_are_no_text)
{
    static const char *const kinds[] = {"byte", "char"};
    char all[256];
    for (size_t i = 0; i < 256; i++)
        all[i] = (char)(unsigned char)i;
    for (size_t k = 0; k < 2; k++) {
        tb_tokenizer *t = make(T, kinds[k], all, 256);
        tb_tokens ids;
        tb_bytes b;
        size_t n = 9;
        TB_OKAY(T, tb_tokenizer_special_add(t, PAD | START | END | MASK));
        TB_OKAY(T, tb_tokenizer_encode(T->ctx, t, "all", all, 256, &ids));
        for (size_t i = 0; i < ids.count; i++)
            TB_CHECK(T, (size_t)ids.ids[i] < tb_tokenizer_plain(t));
        tb_tokens_clear(T->ctx, &ids);
        const int32_t row[] = {special(t, TB_SPECIAL_START), 65,
                               special(t, TB_SPECIAL_END),
                               special(t, TB_SPECIAL_PAD)};
        TB_OKAY(T, tb_tokenizer_decode(T->ctx, t, row, 4, &b));
        TB_STR(T, b.data, "A");
        tb_bytes_clear(T->ctx, &b);
        TB_CHECK(T, tb_tokenizer_token(t, row[0], &n) != NULL && n == 0);
        const int32_t beyond = (int32_t)tb_tokenizer_size(t);
        TB_FAILS(T, tb_tokenizer_decode(T->ctx, t, &beyond, 1, &b),
                 TB_ERR_INPUT, "token 0: got id");
        tb_tokenizer_destroy(t);
    }
}

TB_TEST(special_tokens_are_saved)
{
    tb_tokenizer *t = make(T, "char", "abc", 3), *u;
    tb_bytes a, b;
    TB_OKAY(T, tb_tokenizer_special_add(t, PAD | START | END));
    TB_OKAY(T, tb_tokenizer_save(T->ctx, t, &a));
    TB_CHECK(T, strstr(a.data, "\"special\":[\"pad\",\"start\",\"end\"]"));
    TB_OKAY(T, tb_tokenizer_load(T->ctx, "t.json", a.data, a.len, &u));
    TB_OKAY(T, tb_tokenizer_save(T->ctx, u, &b));
    TB_STR(T, b.data, a.data);
    TB_CHECK(T, tb_tokenizer_size(u) == 6 && tb_tokenizer_plain(u) == 3);
    TB_CHECK(T, special(u, TB_SPECIAL_END) == 5);
    tb_bytes_clear(T->ctx, &a);
    tb_bytes_clear(T->ctx, &b);
    TMP_EACH_ALLOC(T, tb_tokenizer_special_add(u, MASK), (void)0);
    TB_CHECK(T, special(u, TB_SPECIAL_MASK) == 3);
    tb_tokenizer_destroy(t);
    tb_tokenizer_destroy(u);
}

/* Source and target share one vocabulary. */
TB_TEST(one_vocabulary_of_several_texts)
{
    const tb_span parts[] = {{"ba", 2}, {"", 0}, {"cb", 2}};
    tb_tokenizer *t;
    size_t n;
    TB_OKAY(T, tb_tokenizer_make_of(T->ctx, "char", parts, 3, &t));
    TB_CHECK(T, tb_tokenizer_size(t) == 3);
    TB_CHECK(T, *tb_tokenizer_token(t, 2, &n) == 'c' && n == 1);
    tb_tokenizer_destroy(t);
    TB_FAILS(T, tb_tokenizer_make_of(T->ctx, "char", parts + 1, 1, &t),
             TB_ERR_INPUT, "empty text");
    /* half a character of one and half of the next are not one */
    const tb_span halves[] = {{"\xcf", 1}, {"\x95", 1}};
    TB_OKAY(T, tb_tokenizer_make_of(T->ctx, "char", halves, 2, &t));
    TB_CHECK(T, tb_tokenizer_size(t) == 2);
    tb_tokenizer_destroy(t);
}

/* --- showing tokens
 * ---------------------------------------------------------------------- */

/* Push the bytes one token each; '|' in `want` separates what each push and
 * the flush show. */
static void check_stream(tb_test *T, const char *bytes, const char *want)
{
    tb_tokenizer *t;
    tb_decoder *d;
    tb_buf got;
    const char *text;
    size_t n;
    tb_buf_init(&got, T->ctx);
    TB_OKAY(T, tb_tokenizer_byte(T->ctx, &t));
    TB_OKAY(T, tb_decoder_create(T->ctx, t, &d));
    for (; *bytes != 0; bytes++) {
        TB_OKAY(T, tb_decoder_push(d, (unsigned char)*bytes, &text, &n));
        tb_buf_put(&got, text, n);
        tb_buf_putc(&got, '|');
    }
    TB_OKAY(T, tb_decoder_flush(d, &text, &n));
    tb_buf_put(&got, text, n);
    TB_STR(T, tb_buf_str(&got), want);
    TB_FAILS(T, tb_decoder_push(d, 256, &text, &n), TB_ERR_INPUT,
             "got id 256, wanted 0 to 255");
    tb_decoder_destroy(d);
    tb_tokenizer_destroy(t);
    tb_buf_clear(&got);
}

#define FFFD "\xef\xbf\xbd"

TB_TEST(stream_holds_back_halves)
{
    check_stream(T, "ab", "a|b|");
    check_stream(T, "\xcf\x95", "|\xcf\x95|");
    check_stream(T, "\xe5\x9c\xb0", "||\xe5\x9c\xb0|");
    check_stream(T, "\xe5\x9c", "||" FFFD);
    check_stream(T,
                 "\xff\xfe"
                 "a",
                 FFFD "|" FFFD "|a|");
    check_stream(T, "\x80", FFFD "|");
    check_stream(T,
                 "\xe5\x9c"
                 "a",
                 "||" FFFD "a|");
    check_stream(T, "\xf0\x9f\x98\x80", "|||\xf0\x9f\x98\x80|");
    check_stream(T, "\xf0\x9f\xcf\x95", "||" FFFD "|\xcf\x95|");
    check_stream(T, "\xe0\x80", "|" FFFD FFFD "|");
    check_stream(T, "\xed\xa0\x80", "|" FFFD FFFD "|" FFFD "|");
}

TB_TEST(stream_allocations_may_fail)
{
    tb_tokenizer *t;
    tb_decoder *d = NULL;
    const char *text;
    size_t n;
    TB_OKAY(T, tb_tokenizer_byte(T->ctx, &t));
    TMP_EACH_ALLOC(T, tb_decoder_create(T->ctx, t, &d), (void)0);
    tb_ctx_fail_alloc_at(T->ctx, 1);
    tb_status s = tb_decoder_push(d, 65, &text, &n);
    tb_ctx_fail_alloc_at(T->ctx, 0);
    TB_CHECK(T, s == TB_ERR_MEMORY);
    tb_decoder_destroy(d);
    tb_tokenizer_destroy(t);
}

/* --- ../shared
 * ------------------------------------------------------------------------------
 */

TB_TEST(real_text)
{
    const char *path = tb_test_shared(T, "data/text/tinyshakespeare.txt");
    if (path == NULL)
        TB_SKIP(T, "no ../shared/data/text");
    tb_text text;
    tb_tokens ids;
    tb_bytes back;
    TB_OKAY(T, tb_text_load(T->ctx, path, NULL, &text));
    tb_tokenizer *t = make(T, "char", text.bytes.data, text.bytes.len);
    TB_CHECK(T, tb_tokenizer_size(t) == 65);
    TB_OKAY(T, tb_tokenizer_encode(T->ctx, t, path, text.bytes.data,
                                   text.bytes.len, &ids));
    TB_CHECK(T, ids.count == 1115394 && ids.ids[0] == 18);
    TB_OKAY(T, tb_tokenizer_decode(T->ctx, t, ids.ids, ids.count, &back));
    TB_CHECK(T, back.len == text.bytes.len);
    TB_SAME(T, back.data, text.bytes.data, back.len);
    tb_bytes_clear(T->ctx, &back);
    tb_tokens_clear(T->ctx, &ids);
    tb_text_clear(T->ctx, &text);
    tb_tokenizer_destroy(t);
}
