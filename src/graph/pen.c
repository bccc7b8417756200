/* SPDX-License-Identifier: MIT */
/* The marks of three notations, and constants as the text spells them. */
#include "graph/pen.h"

enum { PEN_DEPTH = 60 };

/* --- marks ---------------------------------------------------------------- */

static const char *pick(const tb_pen *p, const char *text, const char *latex,
                        const char *mathml)
{
    return p->note == TB_NOTE_TEXT    ? text
           : p->note == TB_NOTE_LATEX ? latex
                                      : mathml;
}

void tb_pen_put(tb_pen *p, const char *text, const char *latex,
                const char *mathml)
{
    tb_buf_puts(p->out, pick(p, text, latex, mathml));
}

void tb_pen_plus(tb_pen *p)
{
    tb_pen_put(p, " + ", " + ", "<mo>+</mo>");
}

void tb_pen_minus(tb_pen *p)
{
    tb_pen_put(p, " - ", " - ", "<mo>&#8722;</mo>");
}

void tb_pen_times(tb_pen *p)
{
    tb_pen_put(p, "\xc2\xb7", "\\,", "<mo>&#183;</mo>");
}

void tb_pen_open(tb_pen *p)
{
    tb_pen_put(p, "(", "(", "<mo stretchy=\"false\">(</mo>");
}

void tb_pen_close(tb_pen *p)
{
    tb_pen_put(p, ")", ")", "<mo stretchy=\"false\">)</mo>");
}

void tb_pen_number(tb_pen *p, double v)
{
    char text[40];
    size_t n = tb_format(text, sizeof text, "%g", v);
    const char *e = strchr(text, 'e');
    if (e && p->note != TB_NOTE_TEXT) {
        tb_pen_put(p, "", "", "<mn>");
        tb_buf_put(p->out, text, (size_t)(e - text));
        tb_pen_put(p, "", " \\cdot 10^{",
                   "</mn><mo>&#183;</mo><msup><mn>10</mn><mn>");
        tb_buf_puts(p->out, e + 1);
        tb_pen_put(p, "", "}", "</mn></msup>");
        return;
    }
    tb_pen_put(p, "", "", "<mn>");
    tb_buf_put(p->out, text, n);
    tb_pen_put(p, "", "", "</mn>");
}

static void latex_word(tb_pen *p, const char *word)
{
    for (const char *c = word; *c; c++)
        tb_buf_printf(p->out, *c == '_' ? "\\_" : "%c", *c);
}

/* Greek letters have glyphs of their own outside text. */
static const char *const greek[][2] = {
    {"alpha", "&#945;"},  {"beta", "&#946;"},  {"gamma", "&#947;"},
    {"delta", "&#948;"},  {"eps", "&#949;"},   {"zeta", "&#950;"},
    {"eta", "&#951;"},    {"theta", "&#952;"}, {"kappa", "&#954;"},
    {"lambda", "&#955;"}, {"mu", "&#956;"},    {"nu", "&#957;"},
    {"rho", "&#961;"},    {"sigma", "&#963;"}, {"tau", "&#964;"},
    {"phi", "&#966;"},    {"omega", "&#969;"},
};

static const char *greek_mathml(const char *name)
{
    for (size_t i = 0; i < TB_LEN(greek); i++)
        if (tb_streq(greek[i][0], name))
            return greek[i][1];
    return NULL;
}

/* A word set upright: LN, attn, gelu. One letter stays italic. */
void tb_pen_word(tb_pen *p, const char *name)
{
    const char *letter = greek_mathml(name);
    if (p->note == TB_NOTE_TEXT) {
        tb_buf_puts(p->out, name);
    } else if (p->note == TB_NOTE_MATHML) {
        tb_buf_printf(p->out, "<mi>%s</mi>", letter ? letter : name);
    } else if (letter) {
        tb_buf_printf(p->out, "\\%s ",
                      tb_streq(name, "eps") ? "varepsilon" : name);
    } else {
        tb_buf_puts(p->out, name[1] ? "\\mathrm{" : "");
        latex_word(p, name);
        tb_buf_puts(p->out, name[1] ? "}" : "");
    }
}

/* A part of a name in a subscript; LaTeX sets words upright. */
static void subword(tb_pen *p, const char *name)
{
    if (p->note == TB_NOTE_LATEX) {
        tb_buf_puts(p->out, name[1] ? "\\mathrm{" : "");
        latex_word(p, name);
        tb_buf_puts(p->out, name[1] ? "}" : "");
    } else {
        tb_buf_puts(p->out, name);
    }
}

void tb_pen_subscript(tb_pen *p, const char *letter, const char *name)
{
    tb_pen_put(p, "", "", "<msub><mi>");
    tb_buf_puts(p->out, letter);
    tb_pen_put(p, "_", "_{", "</mi><mi>");
    subword(p, name);
    tb_pen_put(p, "", "}", "</mi></msub>");
}

/* In text x2 stays as it is, and x2_1 is x2 of step 1. */
void tb_pen_indexed(tb_pen *p, const char *name, int index)
{
    size_t n = strlen(name), letters = n;
    char base[40], below[40];
    while (letters > 1 && name[letters - 1] >= '0' && name[letters - 1] <= '9')
        letters--;
    bool digits = letters<n, number = index> 0;
    if ((!digits && !number) || n >= sizeof base) {
        tb_pen_word(p, name);
        return;
    }
    if (p->note == TB_NOTE_TEXT) {
        tb_buf_printf(p->out, "%s%s", name, digits && number ? "_" : "");
        if (number)
            tb_buf_printf(p->out, "%d", index);
        return;
    }
    tb_format(base, sizeof base, "%.*s", (int)letters, name);
    if (!number)
        tb_format(below, sizeof below, "%s", name + letters);
    else
        tb_format(below, sizeof below, "%s%s%d", name + letters,
                  digits ? "," : "", index);
    tb_pen_put(p, "", "", "<msub>");
    tb_pen_word(p, base);
    tb_pen_put(p, "", "_{", "<mn>");
    tb_buf_puts(p->out, below);
    tb_pen_put(p, "", "}", "</mn></msub>");
}

bool tb_pen_spent(tb_pen *p)
{
    bool full = p->out->len - p->start >= p->most;
    if (!p->full && !full && p->depth < PEN_DEPTH)
        return false;
    if (!p->full)
        tb_pen_put(p, "...", "\\ldots ", "<mo>&#8230;</mo>");
    p->full = p->full || full;
    return true;
}

/* --- constants ------------------------------------------------------------ */

/* Binding strength: sums, products, minus, powers, values. */
static int strength(const tb_expr *e)
{
    if (e->kind == TB_EXPR_NEG)
        return 3;
    if (e->kind != TB_EXPR_BINARY)
        return 5;
    return e->op == '^' ? 4 : e->op == '*' || e->op == '/' ? 2 : 1;
}

/* base^exponent, raised. */
static void power(tb_pen *p, const tb_expr *e)
{
    tb_pen_put(p, "", "", "<msup><mrow>");
    tb_pen_expr(p, e->args[0].value, 5);
    tb_pen_put(p, "", "^{", "</mrow><mrow>");
    tb_pen_expr(p, e->args[1].value, 0);
    tb_pen_put(p, "", "}", "</mrow></msup>");
}

static void constant_call(tb_pen *p, const tb_expr *e)
{
    bool root = tb_streq(e->name, "sqrt");
    if (root) {
        tb_pen_put(p, "", "\\sqrt{", "<msqrt>");
    } else {
        tb_pen_word(p, e->name);
        tb_pen_open(p);
    }
    for (int i = 0; i < e->nargs; i++) {
        if (i)
            tb_pen_put(p, "", ", ", "<mo>,</mo>");
        tb_pen_expr(p, e->args[i].value, 0);
    }
    if (root)
        tb_pen_put(p, "", "}", "</msqrt>");
    else
        tb_pen_close(p);
}

static void constant_binary(tb_pen *p, const tb_expr *e)
{
    if (e->op == '^') {
        power(p, e);
        return;
    }
    tb_pen_expr(p, e->args[0].value, strength(e));
    if (e->op == '+')
        tb_pen_plus(p);
    else if (e->op == '-')
        tb_pen_minus(p);
    else if (e->op == '*')
        tb_pen_times(p);
    else
        tb_pen_put(p, "/", "/", "<mo>/</mo>");
    tb_pen_expr(p, e->args[1].value, strength(e) + 1);
}

/* A constant in LaTeX and MathML, in brackets where it binds looser than
 * `least`. */
void tb_pen_expr(tb_pen *p, const tb_expr *e, int least)
{
    bool brackets = strength(e) < least;
    if (tb_pen_spent(p))
        return;
    p->depth++;
    if (brackets)
        tb_pen_open(p);
    if (e->kind == TB_EXPR_NUMBER) {
        tb_pen_number(p, e->number);
    } else if (e->kind == TB_EXPR_NAME) {
        tb_pen_word(p, e->name);
    } else if (e->kind == TB_EXPR_CALL) {
        constant_call(p, e);
    } else if (e->kind == TB_EXPR_NEG) {
        tb_pen_put(p, "-", "-", "<mo>&#8722;</mo>");
        tb_pen_expr(p, e->args[0].value, 3);
    } else {
        constant_binary(p, e);
    }
    if (brackets)
        tb_pen_close(p);
    p->depth--;
}

void tb_pen_constant(tb_pen *p, const tb_attr *attr)
{
    if (attr->shown) {
        tb_pen_word(p, attr->shown);
    } else if (!attr->expr) {
        tb_pen_number(p, attr->value);
    } else if (p->note != TB_NOTE_TEXT) {
        tb_pen_expr(p, attr->expr, 4);
    } else {
        bool loose = strength(attr->expr) < 5;
        tb_buf_puts(p->out, loose ? "(" : "");
        tb_expr_print(attr->expr, p->out);
        tb_buf_puts(p->out, loose ? ")" : "");
    }
}

bool tb_pen_is(const tb_attr *a, double v)
{
    if (a->expr)
        return a->expr->kind == TB_EXPR_NUMBER && a->expr->number == v;
    return a->value == v;
}
