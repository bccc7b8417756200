/* SPDX-License-Identifier: MIT */
/* One row per op: its spelling in PyTorch. An op without a row cannot be
 * exported, and a test says so. pytorch_parts.h explains the letters. */
#include "graph/pytorch_parts.h"

/* --- affine: scale * x + offset ----------------------------------------- */

static bool is_number(const tb_attr *a, double v)
{
    return !a->expr && a->value == v;
}

/* The c of a scale that was written x / c, or NULL. */
static const tb_expr *divisor(const tb_attr *a)
{
    const tb_expr *e = a->expr;
    if (!e || a->shown || e->kind != TB_EXPR_BINARY || e->op != '/')
        return NULL;
    const tb_expr *one = e->args[0].value;
    bool is_one = one->kind == TB_EXPR_NUMBER && one->number == 1;
    return is_one ? e->args[1].value : NULL;
}

static tb_py_text scaled(tb_py_body *b, const tb_node *n, tb_py_text x)
{
    const tb_attr *a = &n->attr[TB_ATTR_AFFINE_SCALE];
    const tb_expr *by = divisor(a);
    if (is_number(a, 1))
        return x;
    if (is_number(a, -1))
        return (tb_py_text){
            tb_py_printf(b->py, "-%s", tb_py_brackets(b->py, x, TB_PY_POWER)),
            TB_PY_UNARY};
    const tb_attr quotient = {by, 0, NULL};
    tb_py_text c = tb_py_attr(b, n, by ? &quotient : a);
    const char *s = by ? tb_py_printf(b->py, "%s / %s",
                                      tb_py_brackets(b->py, x, TB_PY_PRODUCT),
                                      tb_py_brackets(b->py, c, TB_PY_UNARY))
                       : tb_py_printf(b->py, "%s * %s",
                                      tb_py_brackets(b->py, c, TB_PY_PRODUCT),
                                      tb_py_brackets(b->py, x, TB_PY_UNARY));
    return (tb_py_text){s, TB_PY_PRODUCT};
}

static tb_py_text write_affine(tb_py_body *b, const tb_node *n,
                               const tb_py_text *in)
{
    const tb_attr *a = &n->attr[TB_ATTR_AFFINE_OFFSET];
    tb_attr offset = *a;
    if (is_number(a, 0))
        return scaled(b, n, in[0]);
    bool minus = a->expr && a->expr->kind == TB_EXPR_NEG && !a->shown;
    if (minus)
        offset.expr = a->expr->args[0].value;
    tb_py_text c = tb_py_attr(b, n, &offset);
    const char *s;
    if (is_number(&n->attr[TB_ATTR_AFFINE_SCALE], -1))
        s = tb_py_printf(
            b->py, "%s%s - %s", minus ? "-" : "",
            tb_py_brackets(b->py, c, minus ? TB_PY_POWER : TB_PY_SUM),
            tb_py_brackets(b->py, in[0], TB_PY_PRODUCT));
    else
        s = tb_py_printf(b->py, "%s %c %s", scaled(b, n, in[0]).s,
                         minus ? '-' : '+',
                         tb_py_brackets(b->py, c, TB_PY_PRODUCT));
    return (tb_py_text){s, TB_PY_SUM};
}

/* --- mha ---------------------------------------------------------------- */

static const char *heads(tb_py *py, double n, size_t setting, const char *name)
{
    return n == (double)setting ? name : tb_py_number(py, n);
}

static tb_py_text write_mha(tb_py_body *b, const tb_node *n,
                            const tb_py_text *in)
{
    tb_py *py = b->py;
    const tb_settings *s = &py->stack->sizes->s;
    const tb_attr *a = n->attr;
    double h = a[TB_ATTR_ATTN_HEADS].value, kv = a[TB_ATTR_ATTN_KV_HEADS].value,
           drop = a[TB_ATTR_ATTN_DROP].value;
    const char *kv_text =
        kv == h
            ? ""
            : tb_py_printf(py, ", %s", heads(py, kv, s->kv_heads, "KV_HEADS"));
    const char *mask =
        a[TB_ATTR_ATTN_CAUSAL].value != 0 ? "" : ", causal=False";
    const char *rate = drop == s->dropout ? "DROPOUT" : tb_py_number(py, drop);
    const char *drop_text =
        drop == 0
            ? ""
            : tb_py_printf(py, ", dropout=%s if self.training else 0.0", rate);
    const tb_attr *scale = &a[TB_ATTR_ATTN_SCALE];
    const char *scale_text =
        is_number(scale, 0)
            ? ""
            : tb_py_printf(py, ", scale=%s", tb_py_attr(b, n, scale).s);
    py->uses |= drop > 0 ? TB_PY_USES_DROPOUT : 0;
    const char *keep_text =
        n->nin > 3 ? tb_py_printf(py, ", keep=%s", in[3].s) : "";
    py->uses |= n->nin > 3 ? TB_PY_USES_KEEP : 0;
    return (tb_py_text){tb_py_printf(py, "mha(%s, %s, %s, %s%s%s%s%s%s)",
                                     in[0].s, in[1].s, in[2].s,
                                     heads(py, h, s->heads, "h"), kv_text, mask,
                                     drop_text, scale_text, keep_text),
                        TB_PY_CALL};
}

/* --- norms without parameters: no module -----------------------------------
 */

static tb_py_text write_normed(tb_py_body *b, const tb_node *n,
                               const tb_py_text *in)
{
    const char *eps = tb_py_attr(b, n, &n->attr[TB_ATTR_NORM_EPS]).s;
    bool length = n->op == &tb_op_l2norm;
    bool given = n->attr[TB_ATTR_NORM_EPS_MODE].value != TB_EPS_DEFAULT;
    const char *kind = length                      ? "length"
                       : n->op == &tb_op_layernorm ? "layer"
                                                   : "rms";
    return (tb_py_text){
        tb_py_printf(b->py, "normed(%s, %s, \"%s\"%s%s).flatten(-2)", in[0].s,
                     eps, kind, given || !length ? "" : ", mode=\"clamp\"",
                     tb_py_norm_options(b->t, n)),
        TB_PY_CALL};
}

/* --- rope, concat ----------------------------------------------------------
 */

static tb_py_text write_rope(tb_py_body *b, const tb_node *n,
                             const tb_py_text *in)
{
    const tb_settings *s = &b->py->stack->sizes->s;
    const tb_attr *base = &n->attr[TB_ATTR_ROPE_BASE];
    double h = n->attr[TB_ATTR_ROPE_HEADS].value;
    const char *heads_text =
        h == (double)s->heads ? "h" : heads(b->py, h, s->kv_heads, "KV_HEADS");
    const char *base_text =
        is_number(base, 0)
            ? ""
            : tb_py_printf(b->py, ", base=%s", tb_py_attr(b, n, base).s);
    return (tb_py_text){
        tb_py_printf(b->py, "rope(%s, %s%s)", in[0].s, heads_text, base_text),
        TB_PY_CALL};
}

/* How many of in[0..n-1] are elements of one list in a row: "past[2]",
 * "past[3]", ... */
static int run_of(const tb_py_text *in, int n, size_t *name, long *first)
{
    const char *open = strchr(in[0].s, '[');
    char next[200];
    int count = 0;
    if (!open || !(open[1] >= '0' && open[1] <= '9'))
        return 1;
    *name = (size_t)(open - in[0].s);
    *first = 0;
    for (const char *p = open + 1; *p >= '0' && *p <= '9'; p++)
        *first = 10 * *first + (*p - '0');
    do {
        count++;
        tb_format(next, sizeof next, "%.*s[%ld]", (int)*name, in[0].s,
                  *first + count);
    } while (count < n && tb_streq(in[count].s, next));
    return count;
}

/* Operands in a row, "a, *past[:7]"; how many that are to read. */
static int operands(const tb_py_text *in, int n, tb_buf *out)
{
    int items = 0;
    for (int i = 0; i < n; items++) {
        size_t name = 0;
        long first = 0;
        int run = run_of(in + i, n - i, &name, &first);
        tb_buf_puts(out, i ? ", " : "");
        if (run < 3) {
            tb_buf_puts(out, in[i++].s);
            continue;
        }
        tb_buf_printf(out, "*%.*s[", (int)name, in[i].s);
        if (first)
            tb_buf_printf(out, "%ld", first);
        tb_buf_printf(out, ":%ld]", first + run);
        i += run;
    }
    return items;
}

static tb_py_text write_concat(tb_py_body *b, const tb_node *n,
                               const tb_py_text *in)
{
    double groups = n->attr[TB_ATTR_CONCAT_GROUPS].value;
    tb_buf out;
    tb_buf_init(&out, b->py->ctx);
    if (groups > 0) {
        b->py->uses |= TB_PY_USES_CONCAT;
        tb_buf_printf(&out, "concat(%g", groups);
    } else {
        tb_buf_puts(&out, "torch.cat((");
    }
    tb_buf_puts(&out, groups > 0 ? ", " : "");
    int items = operands(in, n->nin, &out);
    tb_buf_puts(&out, groups > 0 ? ")" : items > 1 ? "), -1)" : ",), -1)");
    return (tb_py_text){tb_py_take(b->py, &out), TB_PY_CALL};
}

/* --- mix, dot ------------------------------------------------------------ */

/* row=1 counts from 0 there as here; a row that follows l is computed. */
static const char *row_text(tb_py_body *b, const tb_node *n)
{
    const tb_attr *row = &n->attr[TB_ATTR_MIX_ROW];
    if (is_number(row, 0) || (row->expr && !tb_py_mentions(row->expr, "l") &&
                              tb_py_fold(b->py, row->expr, n->k) == 0))
        return "";
    bool moves = row->expr && tb_py_mentions(row->expr, "l");
    return tb_py_printf(
        b->py, moves ? ", row=int(%s)" : ", row=%s",
        moves       ? tb_py_attr(b, n, row).s
        : row->expr ? tb_py_number(b->py, tb_py_fold(b->py, row->expr, n->k))
                    : tb_py_number(b->py, row->value));
}

static tb_py_text write_mix(tb_py_body *b, const tb_node *n,
                            const tb_py_text *in)
{
    tb_buf out;
    tb_buf_init(&out, b->py->ctx);
    tb_buf_printf(&out, "mix(%s, ", in[n->nin - 1].s);
    operands(in, n->nin - 1, &out);
    tb_buf_puts(&out, row_text(b, n));
    if (n->attr[TB_ATTR_MIX_OF].value > 0)
        tb_buf_printf(&out, ", first=%g, of=%g",
                      n->attr[TB_ATTR_MIX_FIRST].value,
                      n->attr[TB_ATTR_MIX_OF].value);
    tb_buf_putc(&out, ')');
    return (tb_py_text){tb_py_take(b->py, &out), TB_PY_CALL};
}

static tb_py_text write_dot(tb_py_body *b, const tb_node *n,
                            const tb_py_text *in)
{
    (void)n;
    return (tb_py_text){
        tb_py_printf(b->py, "(%s * %s).sum(-1, keepdim=True)",
                     tb_py_brackets(b->py, in[0], TB_PY_PRODUCT),
                     tb_py_brackets(b->py, in[1], TB_PY_UNARY)),
        TB_PY_CALL};
}

/* --- sinkhorn, unit, maxdiv: a function and its options --------------------
 */

static tb_py_text write_options(tb_py_body *b, const tb_node *n,
                                const tb_py_text *in)
{
    const char *number = tb_py_attr(b, n, &n->attr[0]).s;
    if (n->op == &tb_op_sinkhorn && n->attr[0].expr) /* a count */
        number = tb_py_printf(b->py, "int(%s)", number);
    const char *flag = n->attr[1].value != 0 ? tb_py_printf(b->py, ", %s=True",
                                                            n->op->attr_name[1])
                                             : "";
    return (tb_py_text){
        tb_py_printf(b->py, "%s(%s, %s%s)", n->op->name, in[0].s, number, flag),
        TB_PY_CALL};
}

/* --- the table ---------------------------------------------------------- */

#define ITSELF(id)                                                             \
    {                                                                          \
        .op = &tb_op_##id, .nin = 1                                            \
    }
#define CALL(id, spelling, flags)                                              \
    {                                                                          \
        .op = &tb_op_##id, .nin = 1, .text = spelling, .bind = TB_PY_CALL,     \
        .uses = flags                                                          \
    }
#define INFIX(id, spelling, tight)                                             \
    {                                                                          \
        .op = &tb_op_##id, .nin = 2, .text = spelling, .bind = tight           \
    }
#define NORM(id, name, flag)                                                   \
    {                                                                          \
        .op = &tb_op_##id, .nin = 3, .nattr = 5, .text = "$M($0)",             \
        .bind = TB_PY_CALL, .uses = flag, .make = name "($w, $A$O)",           \
        .role = TB_ROLE_GAIN, .ready = true, .bare = write_normed              \
    }

#define SQUASH(id, inputs, call, flag)                                         \
    {                                                                          \
        .op = &tb_op_##id, .nin = inputs, .text = "$M($0)",                    \
        .bind = TB_PY_CALL, .uses = flag, .make = call,                        \
        .role = TB_ROLE_SCALAR, .ready = true                                  \
    }

#define OVER_TOKENS(id, name, flag)                                            \
    {                                                                          \
        .op = &tb_op_##id, .nin = 6, .nattr = 6, .text = "$M($0)",             \
        .full = "$M($0, $5)", .bind = TB_PY_CALL, .uses = flag,                \
        .make = name "($w, $A$O)", .role = TB_ROLE_GAIN, .ready = true         \
    }

static const tb_py_row rows[] = {
    ITSELF(input),
    ITSELF(param),
    ITSELF(tokens),
    ITSELF(identity),
    ITSELF(branch),
    INFIX(add, "<0 + >1", TB_PY_SUM),
    INFIX(sub, "<0 - >1", TB_PY_SUM),
    INFIX(mul, "<0 * >1", TB_PY_PRODUCT),
    INFIX(div, "<0 / >1", TB_PY_PRODUCT),
    INFIX(shift, "<0 + >1", TB_PY_SUM),
    {.op = &tb_op_affine, .nin = 1, .nattr = 2, .write = write_affine},
    NORM(layernorm, "LayerNorm", TB_PY_USES_LAYERNORM),
    NORM(rmsnorm, "RMSNorm", TB_PY_USES_RMSNORM),
    {.op = &tb_op_scalenorm,
     .nin = 2,
     .nattr = 5,
     .text = "$M($0)",
     .bind = TB_PY_CALL,
     .uses = TB_PY_USES_SCALENORM | TB_PY_USES_NORMED,
     .make = "ScaleNorm($x, $A$O)",
     .role = TB_ROLE_SCALAR,
     .ready = true},
    {.op = &tb_op_l2norm,
     .nin = 1,
     .nattr = 5,
     .uses = TB_PY_USES_NORMED,
     .write = write_normed},
    OVER_TOKENS(batchnorm, "BatchNorm", TB_PY_USES_BATCHNORM),
    OVER_TOKENS(powernorm, "PowerNorm", TB_PY_USES_POWERNORM),
    SQUASH(dyt, 4, "DyT($x)", TB_PY_USES_DYT),
    SQUASH(derf, 5, "Derf($x)", TB_PY_USES_DERF),
    {.op = &tb_op_linear,
     .nin = 3,
     .text = "$M($0)",
     .bind = TB_PY_CALL,
     .make = "nn.Linear($i, $o$b)",
     .role = TB_ROLE_MATRIX,
     .loose = "F.linear($0, $1)"},
    {.op = &tb_op_mha,
     .nin = 4,
     .nattr = 5,
     .uses = TB_PY_USES_MHA,
     .hold = "q k v",
     .write = write_mha},
    {.op = &tb_op_rope,
     .nin = 1,
     .nattr = 2,
     .uses = TB_PY_USES_ROPE,
     .write = write_rope},
    {.op = &tb_op_concat,
     .nin = TB_OP_INPUTS,
     .nattr = 1,
     .write = write_concat},
    {.op = &tb_op_mix,
     .nin = TB_OP_INPUTS,
     .nattr = 3,
     .uses = TB_PY_USES_MIX,
     .write = write_mix},
    {.op = &tb_op_dot, .nin = 2, .write = write_dot},
    {.op = &tb_op_sinkhorn,
     .nin = 1,
     .nattr = 2,
     .uses = TB_PY_USES_SINKHORN,
     .write = write_options},
    {.op = &tb_op_unit,
     .nin = 1,
     .nattr = 2,
     .uses = TB_PY_USES_UNIT,
     .write = write_options},
    {.op = &tb_op_maxdiv,
     .nin = 2,
     .nattr = 2,
     .uses = TB_PY_USES_MAXDIV,
     .write = write_options},
    {.op = &tb_op_headscale,
     .nin = 2,
     .text = "headscale($0, $1)",
     .bind = TB_PY_CALL,
     .uses = TB_PY_USES_HEADSCALE},
    CALL(sum, "@0.sum(-1, keepdim=True)", 0),
    CALL(mean, "@0.mean(-1, keepdim=True)", 0),
    CALL(relu, "F.relu($0)", TB_PY_USES_F),
    CALL(gelu, "F.gelu($0)", TB_PY_USES_F),
    CALL(gelu_tanh, "F.gelu($0, approximate=\"tanh\")", TB_PY_USES_F),
    CALL(silu, "F.silu($0)", TB_PY_USES_F),
    CALL(sigmoid, "torch.sigmoid($0)", 0),
    CALL(tanh, "torch.tanh($0)", 0),
    CALL(softmax, "torch.softmax($0, -1)", 0),
    CALL(stop, "@0.detach()", 0),
    {.op = &tb_op_embed,
     .nin = 2,
     .text = "$M($0)",
     .bind = TB_PY_CALL,
     .make = "nn.Embedding(VOCAB, $w)",
     .role = TB_ROLE_EMBEDDING},
    {.op = &tb_op_position,
     .nin = 2,
     .text = "<0 + $M.weight[: @0.shape[1]]",
     .bind = TB_PY_SUM,
     .make = "nn.Embedding(CONTEXT, $w)",
     .role = TB_ROLE_EMBEDDING,
     .hold = "x"},
    CALL(sinusoid, "sinusoid($0)", TB_PY_USES_SINUSOID),
    {.op = &tb_op_drop,
     .nin = 1,
     .nattr = 1,
     .text = "F.dropout($0, $A, self.training)",
     .bind = TB_PY_CALL,
     .uses = TB_PY_USES_F},
    {.op = &tb_op_skipdrop,
     .nin = 1,
     .nattr = 1,
     .text = "drop_branch($0, $A, self.training)",
     .bind = TB_PY_CALL,
     .uses = TB_PY_USES_SKIPDROP},
    CALL(exp, "torch.exp($0)", 0),
    CALL(abs, "torch.abs($0)", 0),
    {.op = &tb_op_xent,
     .nin = 2,
     .text = "F.cross_entropy(@0.transpose(1, 2), $1, ignore_index=-1)",
     .bind = TB_PY_CALL,
     .uses = TB_PY_USES_F},
};

const tb_py_row *tb_py_row_of(const tb_op *op)
{
    for (size_t i = 0; i < TB_LEN(rows); i++)
        if (rows[i].op == op)
            return &rows[i];
    return NULL;
}
