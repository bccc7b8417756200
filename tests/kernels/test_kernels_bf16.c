/* SPDX-License-Identifier: MIT */
/* Rounding to bf16: every bf16 comes back as it was, ties go to the even
 * neighbour, what is too large becomes infinity, nan stays nan, subnormals are
 * not lost; on every instruction set. */
#include "tb_test.h"
#include "kernels/kernels.h"

static float of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static uint16_t rounded(const tb_kern *k, uint32_t u)
{
    float f = of_bits(u), back;
    uint16_t h;
    k->to_bf16(1, &f, &h);
    k->round_bf16(1, &f, &back);
    return bits_of(back) == (uint32_t)h << 16 ? h : 0xdead;
}

static bool is_nan16(uint16_t h)
{
    return (h & 0x7fff) > 0x7f80;
}

static void come_back(tb_test *T, const tb_kern *k)
{
    for (uint32_t h = 0; h < 0x10000 && T->failed < 5; h++) {
        uint16_t got = rounded(k, h << 16);
        /* a signalling nan becomes a quiet one */
        TB_CHECK(T, got == (is_nan16((uint16_t)h) ? (h | 0x40) : h));
    }
}

/* Between two neighbours: below the middle, on it, above it; both signs. */
static void neighbours(tb_test *T, const tb_kern *k)
{
    for (uint32_t h = 0; h < 0x8000 && T->failed < 5; h++) {
        if (h >= 0x7f80)
            continue; /* infinity and nan have none */
        for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
            uint32_t low = (h | sign) << 16, up = (h | sign) + 1;
            TB_CHECK(T, rounded(k, low + 1) == (h | sign));
            TB_CHECK(T, rounded(k, low + 0x7fff) == (h | sign));
            TB_CHECK(T, rounded(k, low + 0x8000) == (h % 2 ? up : (h | sign)));
            TB_CHECK(T, rounded(k, low + 0x8001) == up);
            TB_CHECK(T, rounded(k, low + 0xffff) == up);
        }
    }
}

static void nans(tb_test *T, const tb_kern *k)
{
    static const uint32_t some[] = {0x7f800001, 0x7f80ffff, 0x7f810000,
                                    0x7fffffff, 0x7fc00000, 0xff800001,
                                    0xffffffff, 0xff80ffff};
    for (size_t i = 0; i < TB_LEN(some); i++) {
        uint16_t h = rounded(k, some[i]);
        TB_CHECK(T, is_nan16(h) && h >> 15 == some[i] >> 31);
    }
    TB_CHECK(T, rounded(k, 0x7f7fffff) == 0x7f80); /* the largest float */
    TB_CHECK(T, rounded(k, 0xff7fffff) == 0xff80);
    TB_CHECK(T, rounded(k, 0x00000001) == 0); /* subnormal */
    TB_CHECK(T, rounded(k, 0x00008001) == 1); /* kept: 2^-133 */
}

TB_TEST(to_bf16_on_every_isa)
{
    for (size_t i = 0; tb_isas[i]; i++) {
        const tb_kern *k = tb_kern_isa(tb_isas[i], TB_F32);
        if (!k)
            TB_SKIP(T, tb_isas[i]);
        come_back(T, k);
        neighbours(T, k);
        nans(T, k);
        TB_CHECK(T, !tb_kern_isa(tb_isas[i], TB_F64)->to_bf16);
    }
}
