/* SPDX-License-Identifier: MIT */
/* The formatter, shortest number text and number parsing, against the C
 * library's exact conversions. */
#include "tb_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digits.h"

enum { TEXT_MAX = 1600 };

/* --- formatter ---------------------------------------------------------- */

/* The same literal through both, so the compiler checks the arguments. */
#define SAME_AS_C(T, ...)                                                      \
    do {                                                                       \
        char got_[TEXT_MAX], want_[TEXT_MAX];                                  \
        size_t n_ = tb_format(got_, sizeof got_, __VA_ARGS__);                 \
        snprintf(want_, sizeof want_, __VA_ARGS__);                            \
        TB_STR((T), got_, want_);                                              \
        TB_CHECK((T), n_ == strlen(want_));                                    \
    } while (0)

TB_TEST(format_integers)
{
    SAME_AS_C(T, "%d|%i|%u|%x|%%", -42, 17, 4000000000u, 0xBEEFu);
    SAME_AS_C(T, "%ld %lu %lld %llu %zu", -1L, ~0UL, -9223372036854775807LL - 1,
              ~0ULL, (size_t)0);
    SAME_AS_C(T, "[%5d][%-5d][%05d][%+d][% d]", 42, 42, -42, 42, 42);
    SAME_AS_C(T, "[%.3d][%8.3d][%-8.3d][%08x][%X]", 7, -7, 7, 0xABCu, 0xABCu);
    SAME_AS_C(T, "[%*d][%*d][%.*d]", 6, 1, -6, 2, 4, 3);
    SAME_AS_C(T, "[%.0d][%d]", 0, 0);
    /* past the compiler's check, which warns: a precision ends '0' */
    size_t (*unchecked)(char *, size_t, const char *, ...) = tb_format;
    char s[32];
    unchecked(s, sizeof s, "[%06.2d][%q][%", -7);
    TB_STR(T, s, "[   -07][%q][");
}

TB_TEST(format_strings)
{
    SAME_AS_C(T, "[%s][%10s][%-10s][%.2s][%10.2s]", "abc", "abc", "abc", "abc",
              "abc");
    SAME_AS_C(T, "[%.*s][%c][%3c][%-3c]", 2, "xyz", 'q', 'q', 'q');
    char unterminated[3] = {'a', 'b', 'c'};
    SAME_AS_C(T, "%.*s", 3, unterminated);
}

TB_TEST(format_floats)
{
    static const double v[] = {
        0,     -0.0,    1,        0.5,        1.5,     2.5, 0.125, 1e10,
        1e-10, 123.456, 999.9995, 1e300,      5e-324,  9.5, 0.05,  0.95,
        1e15,  1e-5,    1e-4,     0.00099995, 99999.5, 1e23};
    for (size_t i = 0; i < TB_LEN(v); i++)
        for (int p = 0; p < 20; p++) {
            SAME_AS_C(T, "%.*f|%.*e|%.*g", p, v[i], p, v[i], p, v[i]);
            SAME_AS_C(T, "[%12.*f][%-12.*e][%012.*g]", p, v[i], p, v[i], p,
                      v[i]);
        }
    SAME_AS_C(T, "%f %e [%8.2f] [%08.2f] [%+.1f]", 1.0 / 3, 1.0 / 3, -1.0 / 3,
              -1.0 / 3, 2.0);
    SAME_AS_C(T, "[%6f][%-6f][%06f]", (double)INFINITY, -(double)INFINITY,
              (double)INFINITY);
}

TB_TEST(format_random_floats)
{
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = tb_rng_u64(tb_rng_make(1, T->name), (uint64_t)i);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!tb_isfinite(v))
            continue;
        int p = (int)(bits % 25);
        SAME_AS_C(T, "%.*e %.*g %.*f", p, v, p, v, p, v);
    }
}

TB_TEST(format_truncates)
{
    char s[6];
    TB_CHECK(T, tb_format(s, sizeof s, "%s", "longer") == 6);
    TB_STR(T, s, "longe");
    TB_CHECK(T, tb_format(NULL, 0, "%d", 12345) == 5);
    TB_CHECK(T, tb_format(s, 1, "%d", 12345) == 5);
    TB_STR(T, s, "");
}

TB_TEST(format_shortest)
{
    char s[64];
    tb_format(s, sizeof s, "%g|%8g|%-8g|%g", 0.1, 0.25, 1e100, -0.0);
    TB_STR(T, s, "0.1|    0.25|1e100   |-0");
    tb_format(s, sizeof s, "%g %g %.3f", (double)NAN, -(double)INFINITY,
              (double)NAN);
    TB_STR(T, s, "nan -inf nan");
}

/* --- shortest text ------------------------------------------------------ */

TB_TEST(text_known)
{
    static const struct {
        double v;
        const char *text;
    } row[] = {
        {0, "0"},
        {-0.0, "-0"},
        {3, "3"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e23, "1e23"},
        {8.41e21, "8.41e21"},
        {9007199254740993.0, "9.007199254740992e15"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {2.225073858507201e-308, "2.225073858507201e-308"},
        {999999999999999, "999999999999999"},
        {1e15, "1e15"},
        {123456789012345.67, "123456789012345.67"},
        {0.0001, "0.0001"},
        {0.00001, "1e-5"},
        {0x1p-1022, "2.2250738585072014e-308"},
        {0x1p63, "9.223372036854776e18"},
        {4.35, "4.35"},
        {2.0 / 3, "0.6666666666666666"},
        {9.5367431640625e-7, "9.5367431640625e-7"},
        {(double)INFINITY, "inf"},
        {-(double)INFINITY, "-inf"},
        {(double)NAN, "nan"},
    };
    char s[TB_DOUBLE_CHARS];
    for (size_t i = 0; i < TB_LEN(row); i++) {
        TB_CHECK(T, tb_double_text(row[i].v, s) == strlen(s));
        TB_STR(T, s, row[i].text);
    }
}

TB_TEST(text_float)
{
    static const struct {
        float v;
        const char *text;
    } row[] = {
        {0.1f, "0.1"},
        {1e-45f, "1e-45"},
        {3.4028235e38f, "3.4028235e38"},
        {1.17549435e-38f, "1.1754944e-38"},
        {16777216.0f, "16777216"},
        {-0.0f, "-0"},
        {0.3f, "0.3"},
        {INFINITY, "inf"},
    };
    char s[TB_DOUBLE_CHARS];
    for (size_t i = 0; i < TB_LEN(row); i++) {
        tb_float_text(row[i].v, s);
        TB_STR(T, s, row[i].text);
    }
}

/* The first n digits of the exact text of v, the last one raised by `up`. */
static void n_digits(double v, int n, int up, char *out)
{
    char all[TEXT_MAX];
    snprintf(all, sizeof all, "%.60e", v); /* too far to round into n digits */
    char *e = strchr(all, 'e');
    char digits[64];
    digits[0] = all[0];
    memcpy(digits + 1, all + 2, (size_t)n - 1);
    digits[n] = '\0';
    unsigned long long m = strtoull(digits, NULL, 10) + (unsigned)up;
    sprintf(out, "%llue%d", m, atoi(e + 1) - (n - 1));
}

/* v > 0: ours reads back; nothing shorter does; nothing as short is nearer. */
static void check_shortest(tb_test *T, double v, bool single)
{
    char s[TB_DOUBLE_CHARS], other[80];
    tb_digits g, nearest;
    if (single)
        tb_float_text((float)v, s);
    else
        tb_double_text(v, s);
    tb_binary b =
        single ? tb_binary_of_float((float)v) : tb_binary_of_double(v);
    tb_digits_shortest(b, &g);
#define READ(text) (single ? (double)strtof(text, NULL) : strtod(text, NULL))
    if (READ(s) != v)
        tb_test_fail(T, __FILE__, __LINE__, "%.17g prints as %s", v, s);
    for (int up = 0; up <= 1 && g.n > 1; up++) {
        n_digits(v, g.n - 1, up, other);
        if (READ(other) == v)
            tb_test_fail(T, __FILE__, __LINE__, "%s is longer than %s", s,
                         other);
    }
    snprintf(other, sizeof other, "%.*e", g.n - 1, v);
    if (READ(other) != v)
        return;
#undef READ
    tb_digits_exact(tb_binary_of_double(v), &nearest);
    tb_digits_round(&nearest, g.n);
    if (nearest.n != g.n || nearest.point != g.point ||
        memcmp(nearest.d, g.d, (size_t)g.n) != 0)
        tb_test_fail(T, __FILE__, __LINE__, "%s is not the nearest, %s is", s,
                     other);
}

TB_TEST(text_shortest_random)
{
    tb_rng r = tb_rng_make(1, T->name);
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t bits = tb_rng_u64(r, i) >> 1; /* positive */
        double v;
        memcpy(&v, &bits, sizeof v);
        if (tb_isfinite(v) && v > 0)
            check_shortest(T, v, false);
    }
}

TB_TEST(text_shortest_float_random)
{
    tb_rng r = tb_rng_make(1, T->name);
    for (uint64_t i = 0; i < 100000; i++) {
        uint32_t bits = (uint32_t)(tb_rng_u64(r, i) >> 33);
        float v;
        memcpy(&v, &bits, sizeof v);
        if (tb_isfinite((double)v) && v > 0)
            check_shortest(T, (double)v, true);
    }
}

/* Uneven gaps, and their neighbours; also powers of ten and short numbers. */
TB_TEST(text_shortest_hard)
{
    for (int e = -1074; e <= 1023; e++) {
        double v = __builtin_ldexp(1, e);
        check_shortest(T, v, false);
        check_shortest(T, __builtin_nextafter(v, 0) + 5e-324, false);
        check_shortest(T, __builtin_nextafter(v, 1e308), false);
        if (e >= -149 && e <= 127)
            check_shortest(T, v, true);
    }
    for (int e = -323; e <= 308; e++) {
        char s[16];
        sprintf(s, "1e%d", e);
        check_shortest(T, strtod(s, NULL), false);
    }
    for (int i = 1; i < 1000; i++)
        check_shortest(T, i / 100.0, false);
    check_shortest(T, 9007199254740991.0, false);
    check_shortest(T, 1.7976931348623157e308, false);
}

/* --- parsing ------------------------------------------------------------ */

static void same_as_strtod(tb_test *T, const char *s)
{
    double got = -1, want = strtod(s, NULL);
    size_t n = strlen(s), read = tb_double_parse(s, n, &got);
    if (read != n || memcmp(&got, &want, sizeof got) != 0)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %zu bytes, got %g, wanted %g",
                     s, read, got, want);
}

TB_TEST(parse_known)
{
    static const char *const text[] = {
        "0",
        "-0",
        "1",
        "+1.5",
        "0.1",
        "1e23",
        "8.41e21",
        "9007199254740993",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.47032822920623272e-324",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e309",
        "-1e400",
        "1e-400",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "123456789012345678901234567890",
        "0.000000000000000000000000000001",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e999999999",
        "6929495644600919.5",
        "3.7455744005952583e15",
        "000123.4500e+02",
        "100000000000000016777215",
        "100000000000000016777216",
        "179769313486231580793728971405303415079934132710037826936173778980444"
        "968292764750946649017977587207096330286416692887910946555547851940402"
        "630657488671505820681908902000708383676273854845817711531764475730270"
        "069855571366959622842914819860834936475292719074168444365510704342711"
        "559699508093042880",
    };
    for (size_t i = 0; i < TB_LEN(text); i++)
        same_as_strtod(T, text[i]);
}

TB_TEST(parse_extent)
{
    static const struct {
        const char *s;
        size_t read;
    } row[] = {
        {"", 0},      {"-", 0},    {".5", 0},     {"e5", 0},   {"nan", 0},
        {"inf", 0},   {" 1", 0},   {"5.", 1},     {"5.x", 1},  {"1e", 1},
        {"1e+", 1},   {"1e+x", 1}, {"1.5e3z", 5}, {"1,5", 1},  {"0x10", 1},
        {"1.2.3", 3}, {"--1", 0},  {"1E5", 3},    {"12 3", 2},
    };
    for (size_t i = 0; i < TB_LEN(row); i++) {
        double v = 77;
        size_t read = tb_double_parse(row[i].s, strlen(row[i].s), &v);
        if (read != row[i].read)
            tb_test_fail(T, __FILE__, __LINE__, "'%s': read %zu", row[i].s,
                         read);
        TB_CHECK(T, row[i].read > 0 || v == 77);
    }
    double v;
    TB_CHECK(T, tb_double_parse("12345", 3, &v) == 3 && v == 123);
    TB_CHECK(T, tb_double_parse("1e5", 2, &v) == 1 && v == 1);
}

TB_TEST(parse_random)
{
    for (int i = 0; i < 100000; i++) {
        char s[128];
        int n = 1 + (int)(tb_test_uniform(T) * 40), len = 0;
        int dot = (int)(tb_test_uniform(T) * (n + 4));
        for (int k = 0; k < n; k++) {
            if (k == dot && k > 0)
                s[len++] = '.';
            s[len++] = (char)('0' + (int)(tb_test_uniform(T) * 10));
        }
        int wide = i % 2 ? 350 : 25;
        sprintf(s + len, "e%d", (int)((tb_test_uniform(T) * 2 - 1) * wide));
        same_as_strtod(T, s);
    }
}

/* Our own text of random bits must come back to the same bits. */
TB_TEST(parse_round_trip)
{
    tb_rng r = tb_rng_make(1, T->name);
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t bits = tb_rng_u64(r, i);
        char s[TB_DOUBLE_CHARS];
        double v, back;
        memcpy(&v, &bits, sizeof v);
        if (!tb_isfinite(v))
            continue;
        size_t n = tb_double_text(v, s);
        TB_CHECK(T, tb_double_parse(s, n, &back) == n);
        if (memcmp(&v, &back, sizeof v) != 0)
            tb_test_fail(T, __FILE__, __LINE__, "%s came back as %g", s, back);
    }
}

/* Exact midpoints of neighbours (up to 768 digits), and a hair off each way:
 * a far digit, and the last digit lowered. long double holds a midpoint. */
static void check_midpoint(tb_test *T, double v)
{
    char s[TEXT_MAX], t[2 * TEXT_MAX];
    long double up = (long double)__builtin_nextafter(v, (double)INFINITY);
    if (!tb_isfinite((double)up))
        return;
    snprintf(s, sizeof s, "%.780Le", ((long double)v + up) / 2);
    char *e = strchr(s, 'e');
    int digits = (int)(e - s);
    same_as_strtod(T, s);
    sprintf(t, "%.*s%0400d1%s", digits, s, 0, e);
    same_as_strtod(T, t);
    int last = digits - 1;
    while (s[last] == '0')
        last--;
    s[last]--;
    sprintf(t, "%.*s99999%s", last + 1, s, e);
    same_as_strtod(T, t);
}

TB_TEST(parse_midpoints)
{
    tb_rng r = tb_rng_make(1, T->name);
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t bits = tb_rng_u64(r, i) >> 1;
        double v;
        if (i % 4 == 0) /* subnormals and their edge */
            bits >>= 11;
        memcpy(&v, &bits, sizeof v);
        if (tb_isfinite(v))
            check_midpoint(T, v);
    }
    check_midpoint(T, 0);
    check_midpoint(T, 2.2250738585072009e-308);
}

TB_TEST(parse_huge_input)
{
    enum { N = 100000 };
    char *s = tb_alloc(T->ctx, N + 1, 1);
    double v;
    TB_REQUIRE(T, s);
    memset(s, '0', N);
    s[1] = '.';
    s[N - 1] = '3';
    TB_CHECK(T, tb_double_parse(s, N, &v) == N && v == 0);
    memset(s, '7', N);
    TB_CHECK(T, tb_double_parse(s, N, &v) == N && !tb_isfinite(v));
    memcpy(s + N - 7, "e-99990", 7);
    same_as_strtod(T, s);
    tb_free(T->ctx, s);
}
