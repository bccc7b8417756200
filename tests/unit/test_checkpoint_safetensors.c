/* SPDX-License-Identifier: MIT */
/* Reading safetensors: the files of C080 to C093 byte by byte, the malformed
 * and odd ones of ../shared, size and memory limits. */
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

#include "unit/test_checkpoint_tmp.h"

enum { ROOM = 4096 };

/* 8 bytes of length, header, data given in hex. Returns the file's size. */
static size_t build(unsigned char out[ROOM], const char *header,
                    size_t header_n, const char *hex)
{
    for (size_t i = 0; i < 8; i++)
        out[i] = (unsigned char)((uint64_t)header_n >> (8 * i));
    memcpy(out + 8, header, header_n);
    size_t n = 8 + header_n;
    for (; hex[0] != 0; hex += 2) {
        unsigned v = 0;
        sscanf(hex, "%2x", &v);
        out[n++] = (unsigned char)v;
    }
    return n;
}

static tb_status try_memory(tb_ctx *ctx, const void *data, size_t n)
{
    tb_safetensors *f;
    tb_status s = tb_safetensors_open_memory(ctx, "w.safetensors", data, n, &f);
    tb_safetensors_close(f);
    return s;
}

static tb_status try_header(tb_ctx *ctx, const char *header, const char *hex)
{
    unsigned char file[ROOM];
    return try_memory(ctx, file, build(file, header, strlen(header), hex));
}

#define W(dtype, shape, range)                                                 \
    "\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape                          \
    ",\"data_offsets\":" range "}"
#define BASE "{" W("F32", "[2]", "[0,8]") "}"

/* --- the appendix ------------------------------------------------------------
 */

static const struct {
    const char *name, *header;
    size_t nuls; /* after the header */
    const char *hex;
    size_t bytes;
    const char *sha;   /* first 16 digits */
    const char *error; /* NULL: must load */
} appendix[] = {
    {"base", BASE, 0, "0000803f00000040", 70, "ec7c158d6647d50c", NULL},
    {"overlap A",
     "{\"k\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"v\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     0, "0000803f00000040", 123, "06b7cdcf76323dfc",
     "tensors 'k' and 'v' overlap"},
    {"overlap B",
     "{\"k\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"v\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     0, "0000803f0000004000000000", 128, "3e19dce9006cb6d6",
     "tensors 'k' and 'v' overlap"},
    {"hole A",
     "{\"k\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"v\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}",
     0, "0000803f00000040000000000000000000000000", 137, "35b7749879aff22f",
     "hole at bytes 8..12"},
    {"trailing B", BASE, 0, "0000803f00000040504b0304", 74, "506b2d9a9008a5be",
     "4 unexpected trailing bytes"},
    {"short C", BASE, 0, "0000803f0000", 68, "61734558fe12dda9",
     "the file ends 2 bytes early"},
    {"overflow A", "{" W("F32", "[4294967296,4294967296]", "[0,0]") "}", 0, "",
     82, "7ef53647347b90e9", "overflow"},
    {"overflow B", "{" W("F32", "[4611686018427387905]", "[0,4]") "}", 0,
     "00000000", 84, "6e2526db4752adbc", "overflow"},
    {"shape too large", "{" W("F32", "[1000,1000]", "[0,4]") "}", 0, "00000000",
     74, "07582eadd24875f6", "needs 4000000 bytes, its range has 4"},
    {"empty dtype", "{" W("", "[]", "[0,0]") "}", 0, "", 58, "9697f75c78c780fa",
     "tensor 'w': dtype \"\" unknown"},
    {"padding A", BASE "  ", 0, "0000803f00000040", 72, "a06ccadd01057a4c",
     NULL},
    {"padding B", BASE "\n\t", 0, "0000803f00000040", 72, "d52992130ef29a99",
     NULL},
    {"padding C", BASE, 2, "0000803f00000040", 72, "1bd2bdab13a5feaa",
     "NUL padding in header"},
    {"zero size",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
     0, "0000c03f", 120, "b7133e66f7e20192", NULL},
};

TB_TEST(appendix_files)
{
    for (size_t i = 0; i < TB_LEN(appendix); i++) {
        unsigned char file[ROOM];
        char header[ROOM] = {0}, sha[65];
        size_t n = strlen(appendix[i].header) + appendix[i].nuls;
        memcpy(header, appendix[i].header, strlen(appendix[i].header));
        n = build(file, header, n, appendix[i].hex);
        tb_sha256_hex(file, n, sha);
        sha[16] = 0;
        TB_STR(T, sha, appendix[i].sha);
        TB_CHECK(T, n == appendix[i].bytes);
        if (appendix[i].error == NULL)
            TB_OKAY(T, try_memory(T->ctx, file, n));
        else
            TB_FAILS(T, try_memory(T->ctx, file, n), TB_ERR_INPUT,
                     appendix[i].error);
    }
}

TB_TEST(base_file_reads_as_one_two)
{
    unsigned char file[ROOM];
    const double want[] = {1, 2};
    size_t n = build(file, BASE, strlen(BASE), "0000803f00000040");
    const char *path = tmp_file("base.safetensors", file, n);
    tb_safetensors *f;
    TB_OKAY(T, tb_safetensors_open(T->ctx, path, &f));
    const tb_tensor_info *t = tb_safetensors_find(f, "w");
    TB_REQUIRE(T, t != NULL && t->rank == 1 && t->count == 2);
    double got[2];
    float one;
    TB_OKAY(T, tb_safetensors_read(T->ctx, f, t, 0, 2, TB_F64, got));
    TB_SAME(T, got, want, sizeof(want));
    TB_OKAY(T, tb_safetensors_read(T->ctx, f, t, 1, 1, TB_F32, &one));
    TB_NEAR(T, (double)one, 2, 0);
    TB_FAILS(T, tb_safetensors_read(T->ctx, f, t, 1, 2, TB_F32, got),
             TB_ERR_ARG, "elements 1..3 of 2");
    tb_safetensors_close(f);
}

/* C091: two empty tensors and a scalar, in any order of the header. */
TB_TEST(zero_size_tensors_share_an_offset)
{
    TB_OKAY(T, try_header(T->ctx,
                          "{\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_"
                          "offsets\":[0,4]},"
                          "\"z\":{\"dtype\":\"I8\",\"shape\":[0],\"data_"
                          "offsets\":[4,4]},"
                          "\"a\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_"
                          "offsets\":[0,0]},"
                          "\"c\":{\"dtype\":\"U8\",\"shape\":[2,0],\"data_"
                          "offsets\":[0,0]}}",
                          "0000c03f"));
    TB_FAILS(T, try_header(T->ctx, "{" W("F32", "[1]", "[0,0]") "}", ""),
             TB_ERR_INPUT, "needs 4 bytes, its range has 0");
}

/* An empty tensor inside another's range is an overlap. */
TB_TEST(empty_tensor_inside_another)
{
    TB_FAILS(T,
             try_header(T->ctx,
                        "{\"e\":{\"dtype\":\"F32\",\"shape\":[0],\"data_"
                        "offsets\":[4,4]}," W("F32", "[2]", "[0,8]") "}",
                        "0000803f00000040"),
             TB_ERR_INPUT, "'w' and 'e' overlap");
}

TB_TEST(wrong_types_and_shapes)
{
    static const struct {
        const char *header, *error;
    } rows[] = {
        {"{" W("F16", "[1000,1000]", "[0,4]") "}", "needs 2000000 bytes"},
        {"{" W("F64", "[1000,1000]", "[0,4]") "}", "needs 8000000 bytes"},
        {"{" W("F32\\u0000", "[1]", "[0,4]") "}", "dtype"},
        {"{" W("f32", "[1]", "[0,4]") "}", "dtype \"f32\" unknown"},
        {"{" W("F32", "[1]", "[4,0]") "}", "run backwards"},
        {"{" W("F32", "[1.0]", "[0,4]") "}", "shape: got number 1"},
        {"{" W("F32", "[true]", "[0,4]") "}", "shape: got true"},
        {"{" W("F32", "1", "[0,4]") "}", "wanted a list of sizes"},
        {"{" W("F32", "[1]", "[0,4,8]") "}", "wanted [begin, end]"},
        {"{" W("F32", "[-1]", "[0,4]") "}", "shape: got number -1"},
        {"{" W("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", "9 dimensions"},
        {"{\"w\":7}", "tensor 'w': entry: got number 7"},
        {"{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}",
         "dtype: got nothing"},
        {"{\"__metadata__\":{\"a\":1}}", "'__metadata__': a: got number 1"},
        {"{\"__metadata__\":[]}", "wanted an object"},
        {"{\"w\":1,\"w\":2}", "duplicate"},
        {"{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "duplicate"},
        {"[]", "must begin with '{'"},
        {"{} {}", "not JSON"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++)
        TB_FAILS(T, try_header(T->ctx, rows[i].header, "00000000"),
                 TB_ERR_INPUT, rows[i].error);
}

/* [2^63,4,0] overflows on the way, as in the reference; [0,...] does not. */
TB_TEST(overflow_before_a_zero)
{
    TB_FAILS(T,
             try_header(T->ctx,
                        "{" W("U8", "[9223372036854775807,4,0]", "[0,0]") "}",
                        ""),
             TB_ERR_INPUT, "overflow");
    TB_OKAY(T, try_header(T->ctx,
                          "{" W("U8", "[0,9223372036854775807,4]", "[0,0]") "}",
                          ""));
}

/* --- lengths (C080, C081)
 * ------------------------------------------------------ */

TB_TEST(tiny_files)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *error;
    } rows[] = {
        {"", 0, "too short: got 0 bytes"},
        {"\x08\0\0\0\0\0\0", 7, "too short: got 7 bytes"},
        {"\x3c\0\0\0\0\0\0\0", 8, "header longer than the file"},
        {"\0\0\0\0\0\0\0\0", 8, "not JSON"},
        {"\x02\0\0\0\0\0\0\0{}", 10, NULL},
        {"\x03\0\0\0\0\0\0\0{}", 10,
         "header length 3, the file has 2 bytes after it"},
        {"\x01\0\0\0\0\0\0\0\xff", 9, "not UTF-8"},
        {"\x01\0\0\0\0\0\0\0{", 9, "not JSON"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++)
        if (rows[i].error == NULL)
            TB_OKAY(T, try_memory(T->ctx, rows[i].bytes, rows[i].n));
        else
            TB_FAILS(T, try_memory(T->ctx, rows[i].bytes, rows[i].n),
                     TB_ERR_INPUT, rows[i].error);
}

static long peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* On a sparse file of 8 GiB: refused at once and in no memory. */
TB_TEST(absurd_lengths)
{
    static const struct {
        unsigned char length[8];
        const char *error;
    } rows[] = {
        {{0x3c, 0, 0, 0, 0, 0xff, 0xff, 0xff},
         "header length 18446742974197923900 exceeds the limit"},
        {{0x01, 0xe1, 0xf5, 0x05}, "header length 100000001 exceeds"},
        {{0x40, 0x9d, 0xdf, 0x07}, "132095296 exceeds the limit of 100000000"},
        {{255, 255, 255, 255, 255, 255, 255, 255}, "18446744073709551615"},
        {{0, 0, 0, 0, 0, 0, 0, 0x80}, "9223372036854775808"},
        {{0x00, 0xe1, 0xf5, 0x05}, "not JSON: must begin with '{'"},
    };
    const char *path = tmp_path("sparse.safetensors");
    long before = peak_kib();
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        TB_REQUIRE(T, fd >= 0 && write(fd, rows[i].length, 8) == 8);
        bool sparse = ftruncate(fd, (off_t)8 << 30) == 0;
        close(fd);
        if (!sparse)
            TB_SKIP(T, "no sparse file of 8 GiB here");
        tb_safetensors *f;
        double start = seconds();
        TB_FAILS(T, tb_safetensors_open(T->ctx, path, &f), TB_ERR_INPUT,
                 rows[i].error);
        TB_CHECK(T, seconds() - start < 0.05);
    }
    TB_CHECK(T, peak_kib() - before < 10 << 10);
    remove(path);
}

/* --- what it is instead (C093)
 * ---------------------------------------------------- */

TB_TEST(other_files_are_named)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *error;
    } rows[] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:"
         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
         "size 548105171\n",
         0, "a Git LFS pointer (the real file has 548105171 bytes"},
        {"<!DOCTYPE html>\n<html>404</html>", 0, "HTML"},
        {"<html><body>Not Found</body>", 0, "HTML"},
        {"<HTML><BODY>Not Found</BODY>", 0, "HTML"},
        {"\x1f\x8b\x08\0\0\0\0\0\0\x03xx", 12, "gzip"},
        {"PK\x03\x04\0\0\0\0\0\0\0\0", 12, "a ZIP, perhaps a PyTorch"},
        {"\x80\x02\x8a\x0alllllll", 11, "pickle"},
        {"GGUF\x03\0\0\0\0\0\0\0", 12, "GGUF"},
        {"\x89HDF\r\n\x1a\n....", 12, "HDF5"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        size_t n = rows[i].n ? rows[i].n : strlen(rows[i].bytes);
        TB_FAILS(T, try_memory(T->ctx, rows[i].bytes, n), TB_ERR_INPUT,
                 rows[i].error);
    }
}

/* A header of 0x8b1f bytes begins like gzip and is none. */
TB_TEST(a_length_that_looks_like_gzip)
{
    enum { HEADER = 0x8b1f };
    char *file = calloc(1, 8 + HEADER);
    TB_REQUIRE(T, file != NULL);
    memset(file + 8, ' ', HEADER);
    file[0] = 0x1f;
    file[1] = (char)0x8b;
    memcpy(file + 8, "{}", 2);
    TB_OKAY(T, try_memory(T->ctx, file, 8 + HEADER));
    file[8 + HEADER - 1] = 'x';
    TB_FAILS(T, try_memory(T->ctx, file, 8 + HEADER), TB_ERR_INPUT,
             "not JSON: line 1");
    free(file);
}

TB_TEST(absent_file_and_folder)
{
    tb_safetensors *f;
    TB_FAILS(T, tb_safetensors_open(T->ctx, tmp_path("none"), &f), TB_ERR_INPUT,
             "none: cannot open: No such file");
    TB_FAILS(T, tb_safetensors_open(T->ctx, tmp_dir, &f), TB_ERR_INPUT,
             "cannot open: Is a directory");
    TB_FAILS(T, tb_safetensors_open(T->ctx, "/dev/null", &f), TB_ERR_INPUT,
             "pipe or device");
}

/* --- limits
 * ------------------------------------------------------------------------ */

TB_TEST(nested_brackets)
{
    enum { DEEP = 20000 };
    static char header[2 * DEEP + 16];
    tb_buf b;
    tb_buf_init(&b, T->ctx);
    uint64_t n = 2 * DEEP + 7;
    for (size_t i = 0; i < 8; i++)
        tb_buf_putc(&b, (char)(n >> (8 * i) & 0xff));
    memset(header, '[', DEEP);
    memset(header + DEEP, ']', DEEP);
    tb_buf_printf(&b, "{\"a\": %s}", header);
    TB_FAILS(T, try_memory(T->ctx, b.data, b.len), TB_ERR_INPUT,
             "nested too deeply");
    tb_buf_clear(&b);
}

/* A name of 1 MB loads; its error message stays short. */
TB_TEST(a_name_of_one_megabyte)
{
    enum { LONG = 1 << 20 };
    char *name = calloc(1, LONG + 1);
    TB_REQUIRE(T, name != NULL);
    memset(name, 'n', LONG);
    for (int bad = 0; bad < 2; bad++) {
        tb_buf b;
        tb_buf_init(&b, T->ctx);
        uint64_t n = LONG + strlen(BASE) - 1;
        for (size_t i = 0; i < 8; i++)
            tb_buf_putc(&b, (char)(n >> (8 * i) & 0xff));
        tb_buf_printf(&b, "{\"%s\"%s", name, &BASE[4]);
        tb_buf_puts(&b, "01234567");
        if (bad)
            b.len -= 1;
        if (bad)
            TB_FAILS(T, try_memory(T->ctx, b.data, b.len), TB_ERR_INPUT,
                     "1 bytes early");
        else
            TB_OKAY(T, try_memory(T->ctx, b.data, b.len));
        TB_CHECK(T, strlen(tb_error(T->ctx)) < 1000);
        tb_buf_clear(&b);
    }
    free(name);
}

TB_TEST(a_hundred_thousand_tensors)
{
    enum { MANY = 100000 };
    tb_buf b;
    tb_buf_init(&b, T->ctx);
    tb_buf_puts(&b, "01234567{");
    for (int i = 0; i < MANY; i++)
        tb_buf_printf(&b,
                      "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_"
                      "offsets\":[%d,%d]}",
                      i ? "," : "", i, i, i + 1);
    tb_buf_puts(&b, "}");
    for (size_t i = 0; i < 8; i++)
        b.data[i] = (char)((uint64_t)(b.len - 8) >> (8 * i) & 0xff);
    for (int i = 0; i < MANY; i++)
        tb_buf_putc(&b, (char)(i % 100));
    TB_REQUIRE(T, !b.failed);
    tb_safetensors *f;
    TB_OKAY(T, tb_safetensors_open_memory(T->ctx, "many", b.data, b.len, &f));
    TB_CHECK(T, tb_safetensors_count(f) == MANY);
    const tb_tensor_info *t;
    double v;
    TB_OKAY(T, tb_safetensors_need(T->ctx, f, "t99998", -1, NULL, &t));
    TB_OKAY(T, tb_safetensors_read(T->ctx, f, t, 0, 1, TB_F64, &v));
    TB_NEAR(T, v, 98, 0);
    tb_safetensors_close(f);
    tb_buf_clear(&b);
}

TB_TEST(need_names_the_nearest)
{
    unsigned char file[ROOM];
    const char *header =
        "{\"layers.0.attn.q.weight\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_"
        "offsets\":[0,8]}}";
    size_t n = build(file, header, strlen(header), "0000803f00000040");
    tb_safetensors *f;
    const tb_tensor_info *t;
    const size_t square[] = {2, 2}, right[] = {2, 1};
    TB_OKAY(T, tb_safetensors_open_memory(T->ctx, "m", file, n, &f));
    TB_FAILS(
        T,
        tb_safetensors_need(T->ctx, f, "layers.0.attn.k.weight", -1, NULL, &t),
        TB_ERR_INPUT, "did you mean 'layers.0.attn.q.weight'?");
    TB_FAILS(
        T,
        tb_safetensors_need(T->ctx, f, "layers.0.attn.q.weight", 2, square, &t),
        TB_ERR_INPUT, "got shape [2,1], wanted [2,2]");
    TB_OKAY(T, tb_safetensors_need(T->ctx, f, "layers.0.attn.q.weight", 2,
                                   right, &t));
    tb_safetensors_close(f);
}

/* A file cut after it was opened is an error, not a signal. */
TB_TEST(file_that_shrinks)
{
    unsigned char file[ROOM];
    size_t n = build(file, BASE, strlen(BASE), "0000803f00000040");
    const char *path = tmp_file("shrink.safetensors", file, n);
    tb_safetensors *f;
    float x[2];
    TB_OKAY(T, tb_safetensors_open(T->ctx, path, &f));
    TB_REQUIRE(T, truncate(path, (off_t)n - 2) == 0);
    TB_FAILS(T,
             tb_safetensors_read(T->ctx, f, tb_safetensors_at(f, 0), 0, 2,
                                 TB_F32, x),
             TB_ERR_INPUT, "ends 2 bytes early");
    tb_safetensors_close(f);
}

TB_TEST(each_allocation_may_fail)
{
    unsigned char file[ROOM];
    const char *header =
        "{\"__metadata__\":{\"format\":\"pt\"}," W("F32", "[2]", "[0,8]") "}";
    size_t n = build(file, header, strlen(header), "0000803f00000040");
    const char *path = tmp_file("alloc.safetensors", file, n);
    tb_safetensors *f = NULL;
    TMP_EACH_ALLOC(T, tb_safetensors_open(T->ctx, path, &f),
                   tb_safetensors_close(f));
    tb_array a;
    TMP_EACH_ALLOC(T, tb_array_read_tensor(T->ctx, path, "w", &a),
                   tb_array_clear(T->ctx, &a));
}

/* Every prefix and every changed byte: an answer, never a crash. */
TB_TEST(prefixes_and_changed_bytes)
{
    unsigned char file[ROOM];
    const char *header =
        "{\"__metadata__\":{\"a\":\"b\"}," W("F32", "[2]", "[0,8]") "}  ";
    size_t n = build(file, header, strlen(header), "0000803f00000040");
    for (size_t k = 0; k < n; k++) {
        unsigned char *cut = tb_test_guarded(T, k);
        memcpy(cut, file, k);
        TB_CHECK(T, try_memory(T->ctx, cut, k) == TB_ERR_INPUT);
    }
    for (size_t k = 0; k < n; k++)
        for (int v = 0; v < 256; v += 3) {
            unsigned char old = file[k];
            file[k] = (unsigned char)v;
            tb_status s = try_memory(T->ctx, file, n);
            TB_CHECK(T, s == TB_OK || s == TB_ERR_INPUT);
            file[k] = old;
        }
}

/* --- ../shared
 * ----------------------------------------------------------------------- */

/* The names of the reference implementation in our words. */
static const struct {
    const char *name, *ours[4];
} words[] = {
    {"HeaderTooSmall", {"too short"}},
    {"HeaderTooLarge or InvalidHeaderLength", {"looks like a ZIP"}},
    {"HeaderTooLarge", {"exceeds the limit", "looks like"}},
    {"InvalidHeaderLength", {"header longer than the file"}},
    {"InvalidHeaderDeserialization", {"header: "}},
    {"InvalidHeader", {"not UTF-8"}},
    {"InvalidOffset", {"overlap", "hole at", "run backwards"}},
    {"TensorInvalidInfo", {"needs"}},
    {"ValidationOverflow", {"overflow"}},
    {"MetadataIncompleteBuffer", {"bytes early", "trailing bytes"}},
    {"reject", {"duplicate"}},
};

static bool as_expected(const char *expect, const char *got)
{
    for (size_t i = 0; i < TB_LEN(words); i++) {
        if (strncmp(expect, words[i].name, strlen(words[i].name)) != 0)
            continue;
        for (size_t k = 0; k < 4 && words[i].ours[k] != NULL; k++)
            if (strstr(got, words[i].ours[k]) != NULL)
                return true;
        return false;
    }
    return false;
}

static void check_entry(tb_test *T, tb_config *e)
{
    const char *file, *expect;
    char relative[256];
    tb_safetensors *f;
    TB_OKAY(T, tb_config_string(e, "file", &file));
    TB_OKAY(T, tb_config_string(e, "expect", &expect));
    snprintf(relative, sizeof(relative), "data/safetensors/%s", file);
    const char *path = tb_test_shared(T, relative);
    TB_REQUIRE(T, path != NULL);
    tb_error_clear(T->ctx);
    tb_status s = tb_safetensors_open(T->ctx, path, &f);
    tb_safetensors_close(f);
    bool right =
        strncmp(expect, "ok", 2) == 0
            ? s == TB_OK
            : s == TB_ERR_INPUT && as_expected(expect, tb_error(T->ctx));
    if (!right)
        tb_test_fail(T, __FILE__, __LINE__, "%s: wanted %s, got %s", file,
                     expect, tb_error(T->ctx));
}

TB_TEST(manifest)
{
    const char *path = tb_test_shared(T, "data/safetensors/manifest.json");
    if (path == NULL)
        TB_SKIP(T, "no ../shared/data/safetensors");
    tb_config *list, *e;
    TB_OKAY(T, tb_config_open(T->ctx, path, &list));
    TB_CHECK(T, tb_config_length(list) == 64);
    for (size_t i = 0; i < tb_config_length(list); i++) {
        TB_OKAY(T, tb_config_item(list, i, &e));
        check_entry(T, e);
    }
    tb_config_destroy(list);
}

static void check_values(tb_test *T, const char *file, const char *name,
                         size_t n, const double *want)
{
    char relative[256];
    tb_array a;
    snprintf(relative, sizeof(relative), "data/safetensors/valid/%s", file);
    TB_OKAY(
        T, tb_array_read_tensor(T->ctx, tb_test_shared(T, relative), name, &a));
    TB_CHECK(T, a.count == n);
    TB_NEAR_N(T, a.data, want, n, 1e-8);
    tb_array_clear(T->ctx, &a);
}

TB_TEST(manifest_values)
{
    if (tb_test_shared(T, "data/safetensors/manifest.json") == NULL)
        TB_SKIP(T, "no ../shared/data/safetensors");
    static const struct {
        const char *file, *name;
        size_t n;
        double want[2];
    } rows[] = {
        {"own_unsorted_header.safetensors", "a", 2, {1, 2}},
        {"own_unsorted_header.safetensors", "z", 2, {3, 4}},
        {"own_unaligned_f32.safetensors", "f32", 2, {1.25, -3}},
        {"own_mixed_dtypes.safetensors", "f64", 1, {3.141592653589793}},
        {"own_mixed_dtypes.safetensors", "i64", 1, {-7}},
        {"own_mixed_dtypes.safetensors", "f32", 1, {1.5}},
        {"own_mixed_dtypes.safetensors", "bf16", 2, {1, -2}},
        {"own_mixed_dtypes.safetensors", "f16", 2, {1, -2}},
        {"own_mixed_dtypes.safetensors", "i8", 1, {-123}},
        {"own_mixed_dtypes.safetensors", "u8", 1, {200}},
        {"own_mixed_dtypes.safetensors", "bool", 2, {1, 0}},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++)
        check_values(T, rows[i].file, rows[i].name, rows[i].n, rows[i].want);
}
