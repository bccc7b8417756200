/* SPDX-License-Identifier: MIT */
/* Elements as files store them (little-endian, any alignment) to floats and
 * doubles and back. Every path goes through double, which holds all of them
 * but 64-bit integers exactly, so each result is rounded once; f32 to f32 and
 * f32 to bf16 and back keep the bits of a NaN too. */
#include "checkpoint/elem.h"

typedef unsigned char byte;

static uint64_t get_le(const byte *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void put_le(byte *p, size_t n, uint64_t v)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (byte)(v >> (8 * i));
}

static double from_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

static uint64_t to_bits(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(v));
    return bits;
}

/* 2^e as a double, e in -1022..1023. */
static double power2(int e)
{
    return from_bits((uint64_t)(e + 1023) << 52);
}

/* --- 16-bit floats -------------------------------------------------------- */

/* A float format: `exp` exponent bits, `man` stored mantissa bits. */
typedef struct small_float {
    int exp, man;
} small_float;

static const small_float f16 = {5, 10}, bf16 = {8, 7};

static int bias_of(small_float f)
{
    return (1 << (f.exp - 1)) - 1;
}

static double small_decode(small_float f, uint64_t code)
{
    int top = (1 << f.exp) - 1, e = (int)(code >> f.man) & top;
    uint64_t m = code & ((1u << f.man) - 1);
    uint64_t sign = (code >> (f.exp + f.man)) << 63;
    if (e == top) /* infinity, or NaN with its payload */
        return from_bits(sign | 0x7ffull << 52 | m << (52 - f.man));
    uint64_t whole = e == 0 ? m : m + (1u << f.man);
    double v = (double)whole * power2((e == 0 ? 1 : e) - bias_of(f) - f.man);
    return from_bits(to_bits(v) | sign);
}

/* Nearest even, for 0 <= v < 2^52: adding 2^52 leaves no fraction bits. */
static double round_even(double v)
{
    volatile double shifted = v + 0x1p52;
    return shifted - 0x1p52;
}

/* Quantum of the result: 2^(exponent - man), or the subnormal one below. A
 * mantissa that rounds up carries into the exponent by itself, the largest one
 * into infinity. */
static uint64_t small_encode(small_float f, double v)
{
    uint64_t bits = to_bits(v), top = (1u << f.exp) - 1;
    uint64_t sign = (bits >> 63) << (f.exp + f.man), inf = top << f.man;
    if (v != v)
        return sign | inf | 1u << (f.man - 1) | (bits << 12 >> (64 - f.man));
    double a = from_bits(bits << 1 >> 1);
    int e = (int)(bits >> 52 & 0x7ff) - 1023, lowest = 1 - bias_of(f);
    if (e > bias_of(f))
        return sign | inf;
    if (e < lowest)
        e = lowest;
    uint64_t whole = (uint64_t)round_even(a * power2(f.man - e));
    return sign | (((uint64_t)(e - lowest) << f.man) + whole);
}

/* --- one element ---------------------------------------------------------- */

static double get_f64(const byte *p)
{
    return from_bits(get_le(p, 8));
}

static double get_f32(const byte *p)
{
    uint32_t bits = (uint32_t)get_le(p, 4);
    float v;
    memcpy(&v, &bits, sizeof(v));
    return (double)v;
}

static double get_f16(const byte *p)
{
    return small_decode(f16, get_le(p, 2));
}

static double get_bf16(const byte *p)
{
    return small_decode(bf16, get_le(p, 2));
}

static double get_bool(const byte *p)
{
    return p[0] != 0;
}

static void put_f64(byte *p, double v)
{
    put_le(p, 8, to_bits(v));
}

static void put_f32(byte *p, double v)
{
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(f));
    put_le(p, 4, bits);
}

static void put_f16(byte *p, double v)
{
    put_le(p, 2, small_encode(f16, v));
}

static void put_bf16(byte *p, double v)
{
    put_le(p, 2, small_encode(bf16, v));
}

static void put_bool(byte *p, double v)
{
    p[0] = v != 0;
}

/* Nearest even within [low, high); outside, the nearest end; NaN gives 0.
 * `high` is one more than the largest integer, so it is exact. */
static uint64_t to_integer(double v, double low, double high, uint64_t largest)
{
    double a = v < 0 ? -v : v;
    if (v != v)
        return 0;
    if (a < 0x1p52)
        v = v < 0 ? -round_even(a) : round_even(a);
    if (v >= high)
        return largest;
    if (v <= low)
        v = low;
    return v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
}

#define INTEGER(name, type, bits, low, high, largest)                          \
    static double get_##name(const byte *p)                                    \
    {                                                                          \
        return (double)(type)get_le(p, (bits) / 8);                            \
    }                                                                          \
    static void put_##name(byte *p, double v)                                  \
    {                                                                          \
        put_le(p, (bits) / 8, to_integer(v, low, high, largest));              \
    }
INTEGER(i64, int64_t, 64, -0x1p63, 0x1p63, INT64_MAX)
INTEGER(i32, int32_t, 32, -0x1p31, 0x1p31, INT32_MAX)
INTEGER(i16, int16_t, 16, -0x1p15, 0x1p15, INT16_MAX)
INTEGER(i8, int8_t, 8, -0x1p7, 0x1p7, INT8_MAX)
INTEGER(u64, uint64_t, 64, 0, 0x1p64, UINT64_MAX)
INTEGER(u32, uint32_t, 32, 0, 0x1p32, UINT32_MAX)
INTEGER(u16, uint16_t, 16, 0, 0x1p16, UINT16_MAX)
INTEGER(u8, uint8_t, 8, 0, 0x1p8, UINT8_MAX)

typedef struct elem_row {
    const char *name;
    size_t bytes;
    double (*get)(const byte *p); /* NULL: not convertible */
    void (*put)(byte *p, double v);
} elem_row;

static const elem_row rows[TB_ELEM_COUNT] = {
    [TB_ELEM_F64] = {"F64", 8, get_f64, put_f64},
    [TB_ELEM_F32] = {"F32", 4, get_f32, put_f32},
    [TB_ELEM_F16] = {"F16", 2, get_f16, put_f16},
    [TB_ELEM_BF16] = {"BF16", 2, get_bf16, put_bf16},
    [TB_ELEM_I64] = {"I64", 8, get_i64, put_i64},
    [TB_ELEM_I32] = {"I32", 4, get_i32, put_i32},
    [TB_ELEM_I16] = {"I16", 2, get_i16, put_i16},
    [TB_ELEM_I8] = {"I8", 1, get_i8, put_i8},
    [TB_ELEM_U64] = {"U64", 8, get_u64, put_u64},
    [TB_ELEM_U32] = {"U32", 4, get_u32, put_u32},
    [TB_ELEM_U16] = {"U16", 2, get_u16, put_u16},
    [TB_ELEM_U8] = {"U8", 1, get_u8, put_u8},
    [TB_ELEM_BOOL] = {"BOOL", 1, get_bool, put_bool},
    [TB_ELEM_F8_E4M3] = {"F8_E4M3", 1, NULL, NULL},
    [TB_ELEM_F8_E5M2] = {"F8_E5M2", 1, NULL, NULL},
};

size_t tb_elem_size(tb_elem e)
{
    return rows[e].bytes;
}

const char *tb_elem_name(tb_elem e)
{
    return rows[e].name;
}

tb_elem tb_elem_of(tb_dtype t)
{
    return t == TB_F64 ? TB_ELEM_F64 : TB_ELEM_F32;
}

/* --- runs of elements ------------------------------------------------------
 */

/* f32 bits to and from a file's f32 or bf16, NaN bits kept. A bf16 is the top
 * half of an f32; rounding adds half a unit, less one if that ties to even. */
static void decode_bits(tb_elem e, const byte *raw, size_t n, byte *out)
{
    size_t size = tb_elem_size(e);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)get_le(raw + i * size, size);
        if (e == TB_ELEM_BF16)
            bits <<= 16;
        memcpy(out + 4 * i, &bits, sizeof(bits));
    }
}

static uint32_t bf16_round(uint32_t bits)
{
    if ((bits & 0x7fffffff) > 0x7f800000) /* NaN: must not become infinity */
        return bits >> 16 | ((bits & 0x7f0000) == 0 ? 0x40 : 0);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static void encode_bits(tb_elem e, const byte *x, size_t n, byte *raw)
{
    size_t size = tb_elem_size(e);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + 4 * i, sizeof(bits));
        put_le(raw + i * size, size,
               e == TB_ELEM_BF16 ? bf16_round(bits) : bits);
    }
}

/* The file's bytes are the machine's. */
static bool is_copy(tb_elem e, tb_dtype t)
{
    return TB_LITTLE_ENDIAN && e == tb_elem_of(t);
}

static bool is_bits(tb_elem e, tb_dtype t)
{
    return t == TB_F32 && (e == TB_ELEM_F32 || e == TB_ELEM_BF16);
}

bool tb_elem_decode(tb_elem e, const void *raw, size_t n, tb_dtype t, void *out)
{
    const elem_row *r = &rows[e];
    const byte *p = raw;
    if (r->get == NULL)
        return false;
    if (is_copy(e, t))
        memcpy(out, raw, n * r->bytes);
    else if (is_bits(e, t))
        decode_bits(e, p, n, out);
    else if (t == TB_F32)
        for (size_t i = 0; i < n; i++)
            ((float *)out)[i] = (float)r->get(p + i * r->bytes);
    else
        for (size_t i = 0; i < n; i++)
            ((double *)out)[i] = r->get(p + i * r->bytes);
    return true;
}

bool tb_elem_encode(tb_elem e, tb_dtype t, const void *x, size_t n, void *raw)
{
    const elem_row *r = &rows[e];
    byte *p = raw;
    if (r->put == NULL)
        return false;
    if (is_copy(e, t))
        memcpy(raw, x, n * r->bytes);
    else if (is_bits(e, t))
        encode_bits(e, x, n, p);
    else if (t == TB_F32)
        for (size_t i = 0; i < n; i++)
            r->put(p + i * r->bytes, (double)((const float *)x)[i]);
    else
        for (size_t i = 0; i < n; i++)
            r->put(p + i * r->bytes, ((const double *)x)[i]);
    return true;
}
