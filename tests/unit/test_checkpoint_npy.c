/* SPDX-License-Identifier: MIT */
/* .npy files: round trips, the spellings NumPy writes, refusals. */
#include <math.h>

#include "unit/test_checkpoint_tmp.h"

/* A version 1.0 file with this header text and data. */
static const char *npy(const char *name, const char *dict, const void *data,
                       size_t n)
{
    char file[1024];
    size_t d = strlen(dict);
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (char)(d & 255);
    file[9] = (char)(d >> 8);
    memcpy(file + 10, dict, d);
    memcpy(file + 10 + d, data, n);
    return tmp_file(name, file, 10 + d + n);
}

TB_TEST(round_trips)
{
    static const tb_elem elems[] = {TB_ELEM_F32, TB_ELEM_F64, TB_ELEM_I64};
    const double x[] = {1, -2, 3, 4, 5, 6};
    const size_t dims[] = {2, 3};
    for (size_t i = 0; i < TB_LEN(elems); i++)
        for (int rank = 0; rank <= 2; rank++) {
            const char *path = tmp_path("round.npy");
            size_t n = rank == 0 ? 1 : rank == 1 ? 2 : 6;
            tb_array a;
            TB_OKAY(
                T, tb_npy_write(T->ctx, path, elems[i], rank, dims, TB_F64, x));
            TB_OKAY(T, tb_npy_read(T->ctx, path, &a));
            TB_CHECK(T, a.rank == rank && a.count == n);
            TB_SAME(T, a.data, x, n * sizeof(double));
            tb_array_clear(T->ctx, &a);
        }
}

/* Byte for byte what numpy.save writes. */
TB_TEST(header_as_numpy_writes_it)
{
    const float x[] = {1, 2, 3};
    const size_t dims[] = {3};
    const char *path = tmp_path("exact.npy");
    char want[140] = "\x93NUMPY\x01_v_{'descr': '<f4', 'fortran_order': False, "
                     "'shape': (3,), }";
    size_t n = strlen(want);
    memset(want + n, ' ', 127 - n);
    want[7] = 0;
    want[8] = 118;
    want[9] = 0;
    want[127] = '\n';
    memcpy(want + 128, x, sizeof(x));
    TB_OKAY(T, tb_npy_write(T->ctx, path, TB_ELEM_F32, 1, dims, TB_F32, x));
    TB_CHECK(T, tmp_holds(T->ctx, path, want, 140));
}

TB_TEST(spellings)
{
    static const struct {
        const char *dict;
        size_t bytes;
        int rank;
        size_t count;
    } rows[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", 8, 0, 1},
        {"{\"shape\":(1,2),\"fortran_order\":False,\"descr\":\"<f4\"}", 8, 2,
         2},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (8,)}", 8, 1, 8},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 4L)}", 8, 2,
         8},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (0, 5)}", 0, 2, 0},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (4)}", 8, 1, 4},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_array a;
        const char *path =
            npy("spell.npy", rows[i].dict, "\0\0\0\0\0\0\0\0", rows[i].bytes);
        TB_OKAY(T, tb_npy_read(T->ctx, path, &a));
        TB_CHECK(T, a.rank == rows[i].rank && a.count == rows[i].count);
        tb_array_clear(T->ctx, &a);
    }
}

TB_TEST(versions_two_and_three)
{
    static const char dict[] =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}";
    for (char v = 1; v <= 4; v++) {
        char file[256] = "\x93NUMPY";
        const double x = 7;
        size_t at = v == 1 ? 10 : 12;
        file[6] = v;
        file[8] = sizeof(dict) - 1;
        memcpy(file + at, dict, sizeof(dict) - 1);
        memcpy(file + at + sizeof(dict) - 1, &x, 8);
        const char *path = tmp_file("v.npy", file, at + sizeof(dict) - 1 + 8);
        tb_array a;
        if (v == 4) {
            TB_FAILS(T, tb_npy_read(T->ctx, path, &a), TB_ERR_INPUT,
                     "got version 4.0, wanted 1.0 to 3.0");
            continue;
        }
        TB_OKAY(T, tb_npy_read(T->ctx, path, &a));
        TB_NEAR(T, a.data[0], 7, 0);
        tb_array_clear(T->ctx, &a);
    }
}

TB_TEST(refused_files)
{
    static const struct {
        const char *dict, *error;
    } rows[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}",
         "got Fortran order, wanted C order"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}",
         "big-endian type '>f4'"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
         "got the type '<c8'"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
         "got the type '|O'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
         "wanted one simple type"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
         "got 8 bytes of data, wanted 12"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
         "got 8 bytes of data, wanted 4"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
         "wanted sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': "
         "(4294967296,4294967296)}",
         "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': "
         "(99999999999999999999,)}",
         "wanted sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': "
         "(1,1,1,1,1,1,1,1,2)}",
         "more than 8 dimensions"},
        {"{'descr': '<f4', 'shape': (2,)}", "wanted descr, fortran_order"},
        {"{'descr': '<f4', 'descr': '<f4'}", "a key stands twice"},
        {"{'x': 1}", "unknown key"},
        {"{'descr': '<f4", "descr"},
        {"", "wanted '{'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
         "text after"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_array a;
        const char *path = npy("bad.npy", rows[i].dict, "01234567", 8);
        TB_FAILS(T, tb_npy_read(T->ctx, path, &a), TB_ERR_INPUT, rows[i].error);
        TB_CHECK(T, a.data == NULL);
    }
}

TB_TEST(other_and_cut_files)
{
    tb_array a;
    TB_FAILS(T, tb_npy_read(T->ctx, tmp_text("z.npy", "PK\x03\x04 zipped"), &a),
             TB_ERR_INPUT, "not a .npy file: looks like a ZIP");
    TB_FAILS(T, tb_npy_read(T->ctx, tmp_text("t.npy", "hello"), &a),
             TB_ERR_INPUT, "not a .npy file");
    TB_FAILS(T, tb_npy_read(T->ctx, tmp_path("absent.npy"), &a), TB_ERR_INPUT,
             "No such file");
    const char *path = npy(
        "whole.npy", "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}",
        "01234567", 8);
    tb_bytes b;
    TB_OKAY(T, tb_file_read(T->ctx, path, 0, &b));
    for (size_t n = 0; n < b.len; n++)
        TB_CHECK(T, tb_npy_read(T->ctx, tmp_file("cut.npy", b.data, n), &a) ==
                        TB_ERR_INPUT);
    tb_bytes_clear(T->ctx, &b);
}

TB_TEST(in_pieces)
{
    const char *path = tmp_path("pieces.npy");
    const size_t dims[] = {4, 2};
    const float x[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const double want[] = {0, 1, 2, 3, 4, 5, 6, 7};
    tb_npy_writer *w;
    TB_OKAY(T, tb_npy_create(T->ctx, path, TB_ELEM_F32, 2, dims, &w));
    for (size_t i = 0; i < 4; i++)
        TB_OKAY(T, tb_npy_append(w, TB_F32, x + 2 * i, 2));
    TB_CHECK(T, !tb_file_exists(path));
    TB_FAILS(T, tb_npy_append(w, TB_F32, x, 1), TB_ERR_ARG,
             "more than the 8 elements");
    TB_OKAY(T, tb_npy_finish(w));
    tb_array a;
    TB_OKAY(T, tb_npy_read(T->ctx, path, &a));
    TB_SAME(T, a.data, want, sizeof(want));
    tb_array_clear(T->ctx, &a);
}

TB_TEST(too_few_leaves_no_file)
{
    const char *path = tmp_path("few.npy");
    const size_t dims[] = {4};
    const float x[] = {0, 1};
    tb_npy_writer *w;
    TB_OKAY(T, tb_npy_create(T->ctx, path, TB_ELEM_F32, 1, dims, &w));
    TB_OKAY(T, tb_npy_append(w, TB_F32, x, 2));
    TB_FAILS(T, tb_npy_finish(w), TB_ERR_ARG, "got 2 elements, wanted 4");
    TB_CHECK(T,
             !tb_file_exists(path) && !tb_file_exists(tmp_path("few.npy.tmp")));
    TB_FAILS(T, tb_npy_create(T->ctx, path, TB_ELEM_BF16, 1, dims, &w),
             TB_ERR_ARG, "NumPy has no type BF16");
}

TB_TEST(each_allocation_may_fail)
{
    const char *path = tmp_path("alloc.npy");
    const size_t dims[] = {2};
    const double x[] = {1, 2};
    tb_array a;
    TMP_EACH_ALLOC(T,
                   tb_npy_write(T->ctx, path, TB_ELEM_F64, 1, dims, TB_F64, x),
                   (void)0);
    TMP_EACH_ALLOC(T, tb_npy_read(T->ctx, path, &a),
                   tb_array_clear(T->ctx, &a));
}
