/* SPDX-License-Identifier: MIT */
/* Constants. What holds no l is folded, with the block's own spelling in a
 * comment; what differs from layer to layer is computed by the Python. */
#include "graph/pytorch_parts.h"

#include "base/number.h"

enum { SOURCE_MAX = 60 }; /* characters of a comment */

bool tb_py_mentions(const tb_expr *e, const char *name)
{
    if (e->kind == TB_EXPR_NAME)
        return tb_streq(e->name, name);
    for (int i = 0; i < e->nargs; i++)
        if (tb_py_mentions(e->args[i].value, name))
            return true;
    return false;
}

const char *tb_py_number(tb_py *py, double v)
{
    char text[TB_DOUBLE_CHARS];
    tb_double_text(v, text);
    return tb_py_printf(py, "%s", text);
}

/* --- expressions -------------------------------------------------------- */

static int binding(const tb_expr *e)
{
    if (e->kind == TB_EXPR_NEG || (e->kind == TB_EXPR_NUMBER && e->number < 0))
        return TB_PY_UNARY;
    if (e->kind != TB_EXPR_BINARY)
        return TB_PY_CALL;
    return e->op == '^'                   ? TB_PY_POWER
           : e->op == '*' || e->op == '/' ? TB_PY_PRODUCT
                                          : TB_PY_SUM;
}

typedef struct pen {
    tb_py *py;
    tb_buf *out;
    int k;
    const char *l;
} pen;

/* k is known where a node stands; M is N in a single stack. */
static void name(pen *p, const char *word)
{
    bool one = p->py->stack->sizes->s.stack != TB_STACKS_BOTH;
    if (tb_streq(word, "l"))
        tb_buf_puts(p->out, p->l);
    else if (tb_streq(word, "k"))
        tb_buf_printf(p->out, "%d", p->k);
    else
        tb_buf_puts(p->out, one && tb_streq(word, "M") ? "N" : word);
}

static void function(pen *p, const char *word)
{
    static const char *const builtin[] = {"min", "max", "abs"};
    for (size_t i = 0; i < TB_LEN(builtin); i++)
        if (tb_streq(builtin[i], word)) {
            tb_buf_puts(p->out, word);
            return;
        }
    p->py->uses |= TB_PY_USES_MATH;
    tb_buf_printf(p->out, "math.%s", word);
}

static void print(pen *p, const tb_expr *e, int least);

static void binary(pen *p, const tb_expr *e)
{
    int here = binding(e);
    bool power = here == TB_PY_POWER;
    print(p, e->args[0].value, power ? TB_PY_CALL : here);
    if (power)
        tb_buf_puts(p->out, " ** ");
    else
        tb_buf_printf(p->out, " %c ", e->op);
    print(p, e->args[1].value, power ? TB_PY_UNARY : here + 1);
}

static void call(pen *p, const tb_expr *e)
{
    function(p, e->name);
    tb_buf_putc(p->out, '(');
    for (int i = 0; i < e->nargs; i++) {
        tb_buf_puts(p->out, i ? ", " : "");
        print(p, e->args[i].value, TB_PY_SUM);
    }
    tb_buf_putc(p->out, ')');
}

static void print(pen *p, const tb_expr *e, int least)
{
    bool brackets = binding(e) < least;
    tb_buf_puts(p->out, brackets ? "(" : "");
    switch (e->kind) {
    case TB_EXPR_NUMBER:
        tb_buf_puts(p->out, tb_py_number(p->py, e->number));
        break;
    case TB_EXPR_NAME:
        name(p, e->name);
        break;
    case TB_EXPR_CALL:
        call(p, e);
        break;
    case TB_EXPR_NEG:
        tb_buf_putc(p->out, '-');
        print(p, e->args[0].value, TB_PY_POWER);
        break;
    case TB_EXPR_BINARY:
        binary(p, e);
        break;
    case TB_EXPR_TUPLE:
    case TB_EXPR_COMPARE:
        break; /* never constants */
    }
    tb_buf_puts(p->out, brackets ? ")" : "");
}

tb_py_text tb_py_constant(tb_py *py, const tb_expr *e, int k, const char *l)
{
    tb_buf b;
    tb_buf_init(&b, py->ctx);
    pen p = {py, &b, k, l};
    print(&p, e, TB_PY_SUM);
    return (tb_py_text){tb_py_take(py, &b), binding(e)};
}

/* --- values ------------------------------------------------------------- */

double tb_py_fold(tb_py *py, const tb_expr *e, int k)
{
    const tb_sizes *s = py->stack->sizes;
    tb_consts c = {
        s->N, s->M, 1, (double)k, (double)s->s.width, (double)s->s.heads};
    double v = 0;
    tb_status status =
        tb_expr_fold(py->ctx, py->stack->block, e, &c, NULL, NULL, &v);
    if (status != TB_OK)
        tb_py_fail(py, status);
    return v;
}

const char *tb_py_source(tb_py *py, const tb_expr *e)
{
    tb_buf b;
    while (e->kind == TB_EXPR_NEG)
        e = e->args[0].value;
    if (e->kind == TB_EXPR_NUMBER)
        return NULL;
    tb_buf_init(&b, py->ctx);
    tb_expr_print(e, &b);
    const char *text = tb_py_take(py, &b);
    if (strlen(text) <= SOURCE_MAX)
        return text;
    int n = SOURCE_MAX;
    while (n && text[n - 1] == ' ')
        n--;
    return tb_py_printf(py, "%.*s...", n, text);
}

static bool is_whole(double v)
{
    return v >= 0 && v < 1e9 && v == (double)(size_t)v;
}

const char *tb_py_width(tb_py *py, size_t width, tb_dim dim)
{
    if (dim.per_d == 0 || !is_whole(dim.per_d) || !is_whole(dim.fixed))
        return tb_py_printf(py, "%zu", width);
    const char *plus =
        dim.fixed == 0 ? "" : tb_py_printf(py, " + %g", dim.fixed);
    if (dim.per_d == 1)
        return tb_py_printf(py, "d%s", plus);
    return tb_py_printf(py, "%g * d%s", dim.per_d, plus);
}

const char *tb_py_brackets(tb_py *py, tb_py_text t, int least)
{
    return t.bind >= least ? t.s : tb_py_printf(py, "(%s)", t.s);
}
