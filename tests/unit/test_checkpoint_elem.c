/* SPDX-License-Identifier: MIT */
/* Element conversion: bf16 and f16 both ways (C094), integers, every dtype. */
#include <math.h>

#include "tb_test.h"
#include "tollbooth/checkpoint.h"

static float from_bits32(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static void put16(unsigned char *p, unsigned v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static unsigned get16(const unsigned char *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

TB_TEST(bf16_reads)
{
    static const struct {
        unsigned code;
        double want;
    } rows[] = {{0x3f80, 1.0},
                {0x4049, 3.140625},
                {0x0001, 0x1p-133},
                {0x7f7f, 0x1.fep127},
                {0xff80, -(double)INFINITY},
                {0x7fc0, (double)NAN},
                {0x8000, -0.0}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        unsigned char raw[2];
        float f;
        double d;
        put16(raw, rows[i].code);
        TB_CHECK(T, tb_elem_decode(TB_ELEM_BF16, raw, 1, TB_F32, &f));
        TB_CHECK(T, tb_elem_decode(TB_ELEM_BF16, raw, 1, TB_F64, &d));
        float want = (float)rows[i].want;
        TB_SAME(T, &d, &rows[i].want, sizeof(d));
        TB_SAME(T, &f, &want, sizeof(f));
    }
}

TB_TEST(bf16_writes_nearest_even)
{
    static const struct {
        uint32_t bits;
        unsigned want;
    } rows[] = {{0, 0},
                {0x322bcc77, 0x322c}, /* 1e-8 */
                {0x4048f5c3, 0x4049}, /* 3.14 */
                {0x3f808000, 0x3f80},
                {0x3f818000, 0x3f82},
                {0x3f808001, 0x3f81},
                {0x7f7fffff, 0x7f80},
                {0xff7fffff, 0xff80},
                {0x7f800000, 0x7f80}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        float f = from_bits32(rows[i].bits);
        double d = (double)f;
        unsigned char raw[2];
        TB_CHECK(T, tb_elem_encode(TB_ELEM_BF16, TB_F32, &f, 1, raw));
        TB_CHECK(T, get16(raw) == rows[i].want);
        TB_CHECK(T, tb_elem_encode(TB_ELEM_BF16, TB_F64, &d, 1, raw));
        TB_CHECK(T, get16(raw) == rows[i].want);
    }
}

TB_TEST(bf16_nan_stays_nan)
{
    static const uint32_t nans[] = {0x7f800001, 0xff800001, 0x7fffffff,
                                    0x7f80ffff, 0x7fc00000};
    for (size_t i = 0; i < TB_LEN(nans); i++) {
        float f = from_bits32(nans[i]);
        double d = (double)f;
        unsigned char a[2], b[2];
        tb_elem_encode(TB_ELEM_BF16, TB_F32, &f, 1, a);
        tb_elem_encode(TB_ELEM_BF16, TB_F64, &d, 1, b);
        TB_CHECK(T, (get16(a) & 0x7fff) > 0x7f80);
        TB_CHECK(T, (get16(b) & 0x7fff) > 0x7f80);
        TB_CHECK(T, get16(a) >> 15 == nans[i] >> 31);
    }
}

/* A double between two bf16 must not be rounded to float on the way: the
 * float would be the tie 0x3f808000, and the tie would go to even, down. */
TB_TEST(bf16_rounds_doubles_once)
{
    double d = (double)from_bits32(0x3f808000) * (1 + 0x1p-40);
    unsigned char raw[2];
    tb_elem_encode(TB_ELEM_BF16, TB_F64, &d, 1, raw);
    TB_CHECK(T, get16(raw) == 0x3f81);
}

static bool is_nan16(tb_elem e, unsigned code)
{
    unsigned inf = e == TB_ELEM_BF16 ? 0x7f80 : 0x7c00;
    return (code & 0x7fff) > inf;
}

/* bf16 through f32 keeps even the bits of a NaN. */
TB_TEST(all_16_bit_patterns_round_trip)
{
    static const tb_elem elems[] = {TB_ELEM_BF16, TB_ELEM_F16};
    for (unsigned code = 0; code < 0x10000; code++)
        for (size_t k = 0; k < 4; k++) {
            tb_elem e = elems[k / 2];
            tb_dtype t = k % 2 ? TB_F64 : TB_F32;
            unsigned char raw[2], back[2];
            double room;
            put16(raw, code);
            tb_elem_decode(e, raw, 1, t, &room);
            tb_elem_encode(e, t, &room, 1, back);
            bool same = get16(back) == code;
            if (is_nan16(e, code) && !(e == TB_ELEM_BF16 && t == TB_F32))
                same = is_nan16(e, get16(back));
            if (!same)
                tb_test_fail(T, __FILE__, __LINE__, "%s %x gives %x",
                             tb_elem_name(e), code, get16(back));
        }
}

TB_TEST(f16_corners)
{
    static const struct {
        unsigned code;
        double want;
    } rows[] = {{0x0001, 0x1p-24},          {0x03ff, 0x1.ff8p-15},
                {0x0400, 0x1p-14},          {0x7bff, 65504},
                {0x7c00, (double)INFINITY}, {0xc000, -2},
                {0x3555, 0x1.554p-2}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        unsigned char raw[2];
        double d;
        put16(raw, rows[i].code);
        tb_elem_decode(TB_ELEM_F16, raw, 1, TB_F64, &d);
        TB_SAME(T, &d, &rows[i].want, sizeof(d));
    }
}

TB_TEST(f16_writes)
{
    static const struct {
        double v;
        unsigned want;
    } rows[] = {{65519, 0x7bff},   {65520, 0x7c00},      {1e300, 0x7c00},
                {-1e300, 0xfc00},  {0x1p-25, 0},         {0x1.8p-25, 1},
                {0x1p-24, 1},      {0x1.8p-24, 2},       {1e-300, 0},
                {-1e-300, 0x8000}, {0x1.ffcp-15, 0x400}, {2049, 0x6800},
                {2051, 0x6802}};
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        unsigned char raw[2];
        tb_elem_encode(TB_ELEM_F16, TB_F64, &rows[i].v, 1, raw);
        if (get16(raw) != rows[i].want)
            tb_test_fail(T, __FILE__, __LINE__, "%g: got %x, wanted %x",
                         rows[i].v, get16(raw), rows[i].want);
    }
}

TB_TEST(integers_round_and_saturate)
{
    static const double in[] = {2.5, 3.5, -2.5, 1e30, -1e30, (double)NAN};
    static const double i8[] = {2, 4, -2, 127, -128, 0};
    static const double u8[] = {2, 4, 0, 255, 0, 0};
    static const double i64[] = {2, 4, -2, 0x1p63, -0x1p63, 0};
    static const struct {
        tb_elem e;
        const double *want;
    } rows[] = {{TB_ELEM_I8, i8}, {TB_ELEM_U8, u8}, {TB_ELEM_I64, i64}};
    for (size_t r = 0; r < TB_LEN(rows); r++)
        for (size_t i = 0; i < TB_LEN(in); i++) {
            unsigned char raw[8];
            double back;
            tb_elem_encode(rows[r].e, TB_F64, &in[i], 1, raw);
            tb_elem_decode(rows[r].e, raw, 1, TB_F64, &back);
            TB_NEAR(T, back, rows[r].want[i], 0);
        }
}

TB_TEST(integers_in_little_endian)
{
    static const double v[] = {-2, 258};
    unsigned char raw[4];
    tb_elem_encode(TB_ELEM_I16, TB_F64, v, 2, raw);
    TB_SAME(T, raw, "\xfe\xff\x02\x01", 4);
}

/* Small integers, one third, odd addresses: every type, both dtypes. */
TB_TEST(every_type_at_any_address)
{
    for (int e = 0; e < TB_ELEM_F8_E4M3; e++) {
        unsigned char raw[64];
        const float f[] = {0, 1, 1};
        double back[3], d[3] = {0, 1, 1};
        TB_CHECK(T, tb_elem_encode((tb_elem)e, TB_F32, f, 3, raw + 1));
        TB_CHECK(T, tb_elem_decode((tb_elem)e, raw + 1, 3, TB_F64, back));
        TB_SAME(T, back, d, sizeof(d));
    }
}

TB_TEST(f8_is_not_converted)
{
    unsigned char raw[1] = {0x38};
    float f = 7;
    TB_CHECK(T, !tb_elem_decode(TB_ELEM_F8_E4M3, raw, 1, TB_F32, &f));
    TB_CHECK(T, !tb_elem_encode(TB_ELEM_F8_E5M2, TB_F32, &f, 1, raw));
    TB_NEAR(T, (double)f, 7, 0);
}
