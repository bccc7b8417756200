/* SPDX-License-Identifier: MIT */
/* Writing safetensors: round trips, order, alignment, refusals, the cap. */
#include "unit/test_checkpoint_tmp.h"

static tb_safetensors_writer *writer(tb_test *T)
{
    tb_safetensors_writer *w;
    return tb_safetensors_writer_create(T->ctx, &w) == TB_OK ? w : NULL;
}

TB_TEST(same_bits_come_back)
{
    enum { N = 5003 }; /* more than one chunk of the converter */
    static float x[N], y[N];
    static double d[N], e[N];
    tb_test_fill_wide(T, TB_F32, x, N);
    tb_test_fill_wide(T, TB_F64, d, N);
    const char *path = tmp_path("bits.safetensors");
    const size_t dims[] = {N}, shape[] = {1, N, 1};
    tb_safetensors_writer *w = writer(T);
    TB_OKAY(T,
            tb_safetensors_writer_add(w, "x", TB_ELEM_F32, 1, dims, TB_F32, x));
    TB_OKAY(
        T, tb_safetensors_writer_add(w, "d", TB_ELEM_F64, 3, shape, TB_F64, d));
    TB_OKAY(T, tb_safetensors_writer_save(w, path));
    tb_safetensors_writer_destroy(w);
    tb_safetensors *f;
    const tb_tensor_info *t;
    TB_OKAY(T, tb_safetensors_open(T->ctx, path, &f));
    TB_OKAY(T, tb_safetensors_need(T->ctx, f, "x", 1, dims, &t));
    TB_OKAY(T, tb_safetensors_read(T->ctx, f, t, 0, N, TB_F32, y));
    TB_SAME(T, y, x, sizeof(x));
    TB_OKAY(T, tb_safetensors_need(T->ctx, f, "d", 3, shape, &t));
    TB_OKAY(T, tb_safetensors_read(T->ctx, f, t, 0, N, TB_F64, e));
    TB_SAME(T, e, d, sizeof(d));
    tb_safetensors_close(f);
}

TB_TEST(conversion_in_chunks)
{
    enum { N = 20011 };
    static float x[N], y[N];
    for (size_t i = 0; i < N; i++)
        x[i] = (float)(i % 256); /* exact in bf16 */
    const char *path = tmp_path("bf16.safetensors");
    const size_t dims[] = {N};
    tb_safetensors_writer *w = writer(T);
    TB_OKAY(
        T, tb_safetensors_writer_add(w, "x", TB_ELEM_BF16, 1, dims, TB_F32, x));
    TB_OKAY(T, tb_safetensors_writer_save(w, path));
    tb_safetensors_writer_destroy(w);
    tb_safetensors *f;
    TB_OKAY(T, tb_safetensors_open(T->ctx, path, &f));
    const tb_tensor_info *t = tb_safetensors_at(f, 0);
    TB_CHECK(T, t->bytes == 2 * N);
    TB_OKAY(T, tb_safetensors_read(T->ctx, f, t, 0, N, TB_F32, y));
    TB_SAME(T, y, x, sizeof(x));
    TB_OKAY(T, tb_safetensors_read(T->ctx, f, t, 9001, 9010, TB_F32, y));
    TB_SAME(T, y, x + 9001, 9010 * sizeof(*x));
    tb_safetensors_close(f);
}

/* Larger elements first, then names; data and header at multiples of 8; the
 * order of the calls leaves no trace. */
TB_TEST(same_content_same_file)
{
    static const struct {
        const char *name;
        tb_elem elem;
    } rows[] = {{"b", TB_ELEM_BF16}, {"a", TB_ELEM_F32}, {"c", TB_ELEM_F32},
                {"i", TB_ELEM_I64},  {"z", TB_ELEM_F64}, {"y", TB_ELEM_U8}};
    static const char *const order[] = {"z", "i", "a", "c", "b", "y"};
    const double x[] = {1, 2, 3};
    const size_t dims[] = {3};
    tb_bytes files[2];
    for (size_t turn = 0; turn < 2; turn++) {
        const char *path = tmp_path("order.safetensors");
        tb_safetensors_writer *w = writer(T);
        for (size_t i = 0; i < TB_LEN(rows); i++) {
            size_t k = turn ? TB_LEN(rows) - 1 - i : i;
            TB_OKAY(T, tb_safetensors_writer_add(w, rows[k].name, rows[k].elem,
                                                 1, dims, TB_F64, x));
        }
        TB_OKAY(T, tb_safetensors_writer_meta(w, turn ? "k" : "l",
                                              "v\"\n\xc3\xa9"));
        TB_OKAY(T, tb_safetensors_writer_meta(w, turn ? "l" : "k", "old"));
        TB_OKAY(T, tb_safetensors_writer_meta(w, turn ? "l" : "k",
                                              "v\"\n\xc3\xa9"));
        TB_OKAY(T, tb_safetensors_writer_save(w, path));
        TB_OKAY(T, tb_safetensors_writer_save(w, path));
        tb_safetensors_writer_destroy(w);
        tb_safetensors *f;
        TB_OKAY(T, tb_safetensors_open(T->ctx, path, &f));
        for (size_t i = 0; i < TB_LEN(order); i++) {
            const tb_tensor_info *t = tb_safetensors_at(f, i);
            TB_STR(T, t->name, order[i]);
            TB_CHECK(T, t->at % tb_elem_size(t->elem) == 0);
        }
        TB_STR(T, tb_safetensors_meta(f, "l"), "v\"\n\xc3\xa9");
        TB_CHECK(T, tb_safetensors_meta(f, "none") == NULL);
        TB_CHECK(T, tb_safetensors_meta_count(f) == 2);
        tb_safetensors_close(f);
        TB_OKAY(T, tb_file_read(T->ctx, path, 0, &files[turn]));
        TB_CHECK(T, (unsigned char)files[turn].data[0] % 8 == 0);
    }
    TB_CHECK(T, files[0].len == files[1].len &&
                    memcmp(files[0].data, files[1].data, files[0].len) == 0);
    tb_bytes_clear(T->ctx, &files[0]);
    tb_bytes_clear(T->ctx, &files[1]);
}

/* Whatever the names, the data starts at a multiple of 8. */
TB_TEST(header_is_padded)
{
    const char *path = tmp_path("padded.safetensors");
    const double x = 1;
    char name[10] = "";
    for (size_t n = 0; n < 9; n++) {
        name[n] = 'n';
        tb_bytes b;
        tb_safetensors_writer *w = writer(T);
        TB_OKAY(T, tb_safetensors_writer_add(w, name, TB_ELEM_F64, 0, NULL,
                                             TB_F64, &x));
        TB_OKAY(T, tb_safetensors_writer_save(w, path));
        tb_safetensors_writer_destroy(w);
        TB_OKAY(T, tb_file_read(T->ctx, path, 0, &b));
        TB_CHECK(T, b.data[0] % 8 == 0 && b.data[8] == '{');
        TB_CHECK(T, b.len % 8 == 0);
        tb_bytes_clear(T->ctx, &b);
    }
}

TB_TEST(empty_file_scalar_and_empty_tensor)
{
    const char *path = tmp_path("empty.safetensors");
    const float one = 1.5f;
    const size_t none[] = {0, 3};
    tb_safetensors *f;
    tb_safetensors_writer *w = writer(T);
    TB_OKAY(T, tb_safetensors_writer_save(w, path));
    TB_OKAY(T, tb_safetensors_open(T->ctx, path, &f));
    TB_CHECK(T, tb_safetensors_count(f) == 0);
    tb_safetensors_close(f);
    TB_OKAY(T, tb_safetensors_writer_add(w, "s", TB_ELEM_F32, 0, NULL, TB_F32,
                                         &one));
    TB_OKAY(T, tb_safetensors_writer_add(w, "e", TB_ELEM_F32, 2, none, TB_F32,
                                         NULL));
    TB_OKAY(T, tb_safetensors_writer_save(w, path));
    tb_safetensors_writer_destroy(w);
    tb_array a;
    TB_OKAY(T, tb_array_read_tensor(T->ctx, path, "s", &a));
    TB_CHECK(T, a.rank == 0 && a.count == 1);
    TB_NEAR(T, a.data[0], 1.5, 0);
    tb_array_clear(T->ctx, &a);
    TB_OKAY(T, tb_array_read_tensor(T->ctx, path, "e", &a));
    TB_CHECK(T, a.rank == 2 && a.count == 0 && a.dims[1] == 3);
    tb_array_clear(T->ctx, &a);
}

TB_TEST(refused_tensors)
{
    const float x[] = {1, 2};
    const size_t dims[] = {2}, huge[] = {SIZE_MAX / 2, 8};
    tb_safetensors_writer *w = writer(T);
    TB_FAILS(T,
             tb_safetensors_writer_add(w, "", TB_ELEM_F32, 1, dims, TB_F32, x),
             TB_ERR_ARG, "tensor name \"\"");
    TB_FAILS(T,
             tb_safetensors_writer_add(w, "__metadata__", TB_ELEM_F32, 1, dims,
                                       TB_F32, x),
             TB_ERR_ARG, "__metadata__");
    TB_FAILS(
        T,
        tb_safetensors_writer_add(w, "a\xff", TB_ELEM_F32, 1, dims, TB_F32, x),
        TB_ERR_ARG, "not UTF-8");
    TB_FAILS(
        T,
        tb_safetensors_writer_add(w, "w", TB_ELEM_F8_E4M3, 1, dims, TB_F32, x),
        TB_ERR_ARG, "F8_E4M3 cannot be written");
    TB_FAILS(T,
             tb_safetensors_writer_add(w, "w", TB_ELEM_F32, 2, huge, TB_F32, x),
             TB_ERR_ARG, "overflow");
    TB_FAILS(T,
             tb_safetensors_writer_add(w, "w", TB_ELEM_F32, 9, dims, TB_F32, x),
             TB_ERR_ARG, "9 dimensions");
    TB_FAILS(T, tb_safetensors_writer_meta(w, "k", "\xc0\x80"), TB_ERR_ARG,
             "not UTF-8");
    TB_OKAY(T,
            tb_safetensors_writer_add(w, "w", TB_ELEM_F32, 1, dims, TB_F32, x));
    TB_OKAY(T,
            tb_safetensors_writer_add(w, "w", TB_ELEM_F32, 1, dims, TB_F32, x));
    const char *path = tmp_path("twice.safetensors");
    TB_FAILS(T, tb_safetensors_writer_save(w, path), TB_ERR_ARG,
             "two tensors are named 'w'");
    TB_CHECK(T, !tb_file_exists(path));
    tb_safetensors_writer_destroy(w);
}

/* C080: what no reader would accept is not written. */
TB_TEST(header_above_the_cap)
{
    char *big = malloc((size_t)TB_SAFETENSORS_HEADER_MAX + 1);
    TB_REQUIRE(T, big != NULL);
    memset(big, 'x', TB_SAFETENSORS_HEADER_MAX);
    big[TB_SAFETENSORS_HEADER_MAX] = 0;
    const char *path = tmp_text("cap.safetensors", "old");
    tb_safetensors_writer *w = writer(T);
    TB_OKAY(T, tb_safetensors_writer_meta(w, "k", big));
    TB_FAILS(T, tb_safetensors_writer_save(w, path), TB_ERR_INPUT,
             "exceeds the limit of 100000000 bytes");
    TB_CHECK(T, tmp_holds(T->ctx, path, "old", 3));
    tb_safetensors_writer_destroy(w);
    free(big);
}

static tb_status save_one(tb_ctx *ctx, const char *path)
{
    tb_safetensors_writer *w;
    const float x[] = {1, 2};
    const size_t dims[] = {2};
    TB_TRY(tb_safetensors_writer_create(ctx, &w));
    tb_status s = tb_safetensors_writer_meta(w, "k", "v");
    if (s == TB_OK)
        s = tb_safetensors_writer_add(w, "w", TB_ELEM_F32, 1, dims, TB_F32, x);
    if (s == TB_OK)
        s = tb_safetensors_writer_save(w, path);
    tb_safetensors_writer_destroy(w);
    return s;
}

TB_TEST(each_allocation_may_fail)
{
    const char *path = tmp_text("alloc.safetensors", "old");
    for (size_t n = 1;; n++) {
        tb_ctx_fail_alloc_at(T->ctx, n);
        tb_status s = save_one(T->ctx, path);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        if (s == TB_OK)
            break;
        TB_REQUIRE(T, s == TB_ERR_MEMORY);
    }
    tb_array a;
    TB_OKAY(T, tb_array_read_tensor(T->ctx, path, "w", &a));
    tb_array_clear(T->ctx, &a);
}
