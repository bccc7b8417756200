/* SPDX-License-Identifier: MIT */
/* Outputs and gradients of single ops against PyTorch's, as stored in
 * tests/golden/ops by tools/make_goldens.py (which gives the format). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "test_ops_call.h"

enum { NUMBERS_MAX = 512, WORD = 64 };

typedef struct golden {
    variant v;
    char op[WORD];
    double in[TB_OP_INPUTS][NUMBERS_MAX], grad[TB_OP_INPUTS][NUMBERS_MAX];
    double out[NUMBERS_MAX], gout[NUMBERS_MAX];
    double state[TB_OP_INPUTS][NUMBERS_MAX];
    bool has_grad[TB_OP_INPUTS], has_state[TB_OP_INPUTS];
} golden;

/* --- reading ------------------------------------------------------------ */

/* Numbers up to the end of the line; how many, or -1 if there are too many. */
static int read_numbers(FILE *f, double *x)
{
    int n = 0;
    for (char c; fscanf(f, "%c", &c) == 1 && c != '\n';) {
        if (c == ' ')
            continue;
        ungetc(c, f);
        if (n == NUMBERS_MAX || fscanf(f, "%lf", &x[n++]) != 1)
            return -1;
    }
    return n;
}

static tb_shape_kind kind_of(const char *word)
{
    static const char *const names[] = {"stream", "vector", "scalar", "matrix",
                                        "tokens"};
    for (int i = 0; i < 5; i++)
        if (tb_streq(word, names[i]))
            return (tb_shape_kind)i;
    return TB_SHAPE_SCALAR;
}

static bool read_op(FILE *f, golden *g)
{
    double attr[NUMBERS_MAX];
    if (fscanf(f, "%63s %zu %zu", g->op, &g->v.batch, &g->v.time) != 3)
        return false;
    int n = read_numbers(f, attr);
    for (int i = 0; i < n && i < TB_OP_ATTRS; i++)
        g->v.attr[i] = attr[i];
    g->v.op = g->op;
    return n >= 0 && n <= TB_OP_ATTRS;
}

static bool read_in(FILE *f, golden *g)
{
    char kind[WORD];
    tb_shape s;
    int i = g->v.nin++;
    if (i >= TB_OP_INPUTS ||
        fscanf(f, "%63s %zu %zu ", kind, &s.height, &s.width) != 3)
        return false;
    s.kind = kind_of(kind);
    g->v.in[i] = s;
    size_t time = g->v.in_time[i] ? g->v.in_time[i] : g->v.time;
    return read_numbers(f, g->in[i]) ==
           (int)tb_shape_count(s, g->v.batch, time);
}

static bool read_grad(FILE *f, golden *g)
{
    int i;
    if (fscanf(f, "%d ", &i) != 1 || i < 0 || i >= g->v.nin)
        return false;
    g->has_grad[i] = true;
    return read_numbers(f, g->grad[i]) > 0;
}

static bool read_state(FILE *f, golden *g)
{
    int i;
    if (fscanf(f, "%d ", &i) != 1 || i < 0 || i >= g->v.nin)
        return false;
    g->has_state[i] = true;
    return read_numbers(f, g->state[i]) > 0;
}

static bool read_item(FILE *f, const char *word, golden *g)
{
    if (word[0] == '#')
        return fscanf(f, "%*[^\n]") == 0;
    if (tb_streq(word, "op"))
        return read_op(f, g);
    if (tb_streq(word, "time"))
        return g->v.nin < TB_OP_INPUTS &&
               fscanf(f, "%zu", &g->v.in_time[g->v.nin]) == 1;
    if (tb_streq(word, "in"))
        return read_in(f, g);
    if (tb_streq(word, "grad"))
        return read_grad(f, g);
    if (tb_streq(word, "state"))
        return read_state(f, g);
    double *to = tb_streq(word, "out")    ? g->out
                 : tb_streq(word, "gout") ? g->gout
                                          : NULL;
    return to && fscanf(f, " ") == 0 && read_numbers(f, to) > 0;
}

static bool read_golden(const char *name, golden *g)
{
    char path[1024], word[WORD];
    bool good = true;
    *g = (golden){.v.vocab = 1};
    snprintf(path, sizeof path, "%s/tests/golden/ops/%s", TB_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    while (good && fscanf(f, "%63s", word) == 1)
        good = read_item(f, word, g);
    fclose(f);
    return good && g->v.nin > 0;
}

/* --- comparing ---------------------------------------------------------- */

static void put_inputs(const golden *g, bed *b)
{
    for (int i = 0; i < b->c.nin; i++)
        for (size_t j = 0; j < b->n[i]; j++)
            if (b->c.in_shape[i].kind == TB_SHAPE_TOKENS)
                ((int32_t *)b->x[i])[j] = (int32_t)g->in[i][j];
            else
                tb_test_set(b->type, b->x[i], j, g->in[i][j]);
    bed_put(b, b->gy, g->gout, b->nout);
}

/* PyTorch's own tolerance for float, rounding for double. */
static void near_golden(tb_test *T, const bed *b, const void *got,
                        const double *want, size_t n)
{
    bool wide = b->type == TB_F64;
    double rtol = wide ? 1e-12 : 1.3e-6, atol = wide ? 1e-13 : 1e-5;
    for (size_t i = 0; i < n; i++) {
        double v = bed_get(b, got, i);
        if (!(tb_fabs(v - want[i]) <= atol + rtol * tb_fabs(want[i])))
            tb_test_fail(T, __FILE__, __LINE__, "%s, element %zu: %g, not %g",
                         b->op->name, i, v, want[i]);
    }
}

/* Running statistics after the step. */
static void compare_state(tb_test *T, const golden *g, bed *b)
{
    tb_opcall c = b->c;
    for (int i = 0; i < c.nin; i++)
        c.state[i] = b->x[i];
    if (b->op->update)
        b->op->update(&c);
    for (int i = 0; i < c.nin; i++)
        if (g->has_state[i])
            near_golden(T, b, b->x[i], g->state[i], b->n[i]);
}

static void compare(tb_test *T, const golden *g, tb_dtype type)
{
    bed b;
    if (!bed_open(T, &b, &g->v, type))
        return;
    put_inputs(g, &b);
    bed_fwd(&b);
    bed_bwd(&b, bed_all(&b));
    near_golden(T, &b, b.y, g->out, b.nout);
    for (int i = 0; i < b.c.nin; i++) {
        TB_CHECK(T, g->has_grad[i] == bed_moves(&b, i));
        if (bed_moves(&b, i))
            near_golden(T, &b, b.g[i], g->grad[i], b.n[i]);
    }
    compare_state(T, g, &b);
}

static bool is_golden(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && tb_streq(name + n - 4, ".txt");
}

TB_TEST(ops_against_pytorch)
{
    static golden g;
    int files = 0;
    DIR *dir = opendir(TB_SOURCE_DIR "/tests/golden/ops");
    TB_REQUIRE(T, dir != NULL);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (!is_golden(e->d_name))
            continue;
        files++;
        if (!read_golden(e->d_name, &g))
            tb_test_fail(T, __FILE__, __LINE__, "cannot read %s", e->d_name);
        compare(T, &g, TB_F64);
        compare(T, &g, TB_F32);
    }
    closedir(dir);
    TB_CHECK(T, files >= 15);
}
