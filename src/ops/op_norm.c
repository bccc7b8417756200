/* SPDX-License-Identifier: MIT */
/* layernorm (Ba, Kiros, Hinton 2016, arXiv:1607.06450), rmsnorm (Zhang,
 * Sennrich 2019, arXiv:1910.07467), scalenorm (Nguyen, Salazar 2019,
 * arXiv:1910.05895: one learned length) and l2norm (unit length, no parameter)
 * of each row. The usual convention runs in the kernels, any other in
 * norm_rows.c. */
#include "ops/op_norm.h"

/* --- shape -------------------------------------------------------------- */

static bool whole(double a, double most)
{
    return a >= 0 && a <= most && (double)(size_t)a == a;
}

static bool options(const tb_shape *in, tb_norm_family family,
                    const double *attr, const char **why)
{
    double groups = attr[TB_ATTR_NORM_GROUPS];
    if (!(attr[TB_ATTR_NORM_EPS] >= 0) || !tb_isfinite(attr[TB_ATTR_NORM_EPS]))
        return tb_op_no(why, "eps must be a finite number, 0 or more");
    if (!whole(attr[TB_ATTR_NORM_EPS_MODE], TB_EPS_NONE))
        return tb_op_no(why, "there is no such eps mode");
    if (!whole(attr[TB_ATTR_NORM_VARIANCE], TB_VARIANCE_ONEPASS_CLIPPED))
        return tb_op_no(why, "there is no such way to compute a variance");
    if (!whole(groups, 1e9) || (groups > 0 && in[0].width % (size_t)groups))
        return tb_op_no(why, "the groups must divide the width");
    if (attr[TB_ATTR_NORM_UNBIASED] == 0)
        return true;
    if (family != TB_FAMILY_LAYER)
        return tb_op_no(why, "only a variance about the mean has an n-1 form");
    if (in[0].width / (groups > 0 ? (size_t)groups : 1) < 2)
        return tb_op_no(why, "an n-1 variance needs 2 features or more");
    return true;
}

static bool shape_of(const tb_shape *in, int nin, tb_norm_family family,
                     const double *attr, tb_shape *out, const char **why)
{
    if (in[0].kind != TB_SHAPE_STREAM)
        return tb_op_no(why, "a norm applies to a stream");
    if (!options(in, family, attr, why))
        return false;
    double groups = attr[TB_ATTR_NORM_GROUPS];
    size_t width = in[0].width / (groups > 0 ? (size_t)groups : 1);
    if (family == TB_FAMILY_LENGTH && nin > 1 && in[1].kind != TB_SHAPE_SCALAR)
        return tb_op_no(why, "its length must be one scalar");
    for (int i = 1; i < nin && family != TB_FAMILY_LENGTH; i++)
        if (in[i].kind != TB_SHAPE_VECTOR || in[i].width != width)
            return tb_op_no(why, "gain and bias must have the width");
    *out = in[0];
    return true;
}

/* --- passes ------------------------------------------------------------- */

/* Bytes of an array beside which others like it stay in a core's L2. */
enum { NEAR_BYTES = 1 << 18 };

/* The kernel's view of rows [from, to). */
static tb_k_norm rows_of(const tb_opcall *c, const tb_norm_form *f, size_t from,
                         size_t to)
{
    bool rms = f->family == TB_FAMILY_RMS;
    return (tb_k_norm){.kind = rms ? TB_NORM_RMS : TB_NORM_LAYER,
                       .x = tb_op_peek(c, c->in[0], from * f->d),
                       .gain = c->nin > 1 ? c->in[1] : NULL,
                       .bias = c->nin > 2 ? c->in[2] : NULL,
                       .rows = to - from,
                       .d = f->d,
                       .eps = f->eps,
                       .stream = c->stream,
                       .far = tb_op_bytes(c, f->rows * f->d) > NEAR_BYTES};
}

/* saved, of a plain form: mean and rstd of each row */
static double *stat_of(const tb_opcall *c, size_t row)
{
    return (double *)c->saved + 2 * row;
}

static void fwd_part(const tb_opcall *c, tb_norm_family family, size_t from,
                     size_t to, size_t chunk)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    from *= f.groups, to *= f.groups;
    if (!f.plain) {
        tb_norm_rows_fwd(c, &f, from, to, tb_op_part(c, chunk, f.part));
        return;
    }
    tb_k_norm p = rows_of(c, &f, from, to);
    c->k->norm_fwd(&p, tb_op_at(c, c->out, from * p.d), stat_of(c, from));
}

/* The residual sum and its norm: rows of the sum are not read back. */
static bool fwd_sum(const tb_opcall *c, const tb_opcall *sum,
                    tb_norm_family family, size_t from, size_t to)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    from *= f.groups, to *= f.groups;
    if (!f.plain)
        return false;
    const size_t at = from * f.d;
    const tb_k_sum s = {.r = tb_op_peek(c, sum->in[1], at),
                        .cx = 1,
                        .cr = 1,
                        .sum = tb_op_at(c, sum->out, at)};
    tb_k_norm p = rows_of(c, &f, from, to);
    p.x = tb_op_peek(c, sum->in[0], at);
    p.stream = c->stream && sum->stream;
    c->k->addnorm_fwd(&p, &s, tb_op_at(c, c->out, at), stat_of(c, from));
    return true;
}

/* A chunk's doubles, of a plain form: the full spans of gain and bias, then
 * the last one, in the table's type. */
static tb_k_span span_of(const tb_opcall *c, const tb_norm_form *f, int in,
                         size_t chunk)
{
    const size_t at = (size_t)(in - 1) * f->d;
    double *part = tb_op_part(c, chunk, f->part);
    if (c->nin <= in || !c->gin[in])
        return (tb_k_span){.part = NULL};
    return (tb_k_span){.part = tb_op_at(c, part + 2 * f->d, at),
                       .full = part + at};
}

static size_t first_row(const tb_opcall *c, size_t chunk)
{
    size_t rows = tb_op_row_count(c);
    return tb_chunk_at(rows, tb_op_row_pieces(rows), chunk);
}

static void bwd_any_form(const tb_opcall *c, const tb_norm_form *f, size_t from,
                         size_t to, size_t chunk)
{
    double *part = tb_op_part(c, chunk, f->part);
    if (from == first_row(c, chunk) * f->groups)
        memset(part, 0, 2 * f->d * sizeof *part);
    if (c->gin[0] && c->gin[0] != c->gbase[0])
        tb_op_copy(c, (to - from) * f->d,
                   tb_op_peek(c, c->gbase[0], from * f->d),
                   tb_op_at(c, c->gin[0], from * f->d));
    tb_norm_rows_bwd(c, f, from, to, part);
}

/* Each chunk sums its gain and bias gradients by itself. */
static void bwd_part(const tb_opcall *c, tb_norm_family family, size_t from,
                     size_t to, size_t chunk)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    from *= f.groups, to *= f.groups;
    if (!f.plain) {
        bwd_any_form(c, &f, from, to, chunk);
        return;
    }
    tb_k_norm p = rows_of(c, &f, from, to);
    const tb_k_spans sums = {.row = from - first_row(c, chunk) * f.groups,
                             .gain = span_of(c, &f, 1, chunk),
                             .bias = span_of(c, &f, 2, chunk)};
    c->k->norm_bwd(&p, stat_of(c, from), tb_op_peek(c, c->gout, from * p.d),
                   tb_op_peek(c, c->gbase[0], from * p.d),
                   tb_op_at(c, c->gin[0], from * p.d), &sums);
}

static void tan_part(const tb_opcall *c, tb_norm_family family, size_t from,
                     size_t to, size_t chunk)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    from *= f.groups, to *= f.groups;
    if (!f.plain) {
        tb_norm_rows_tan(c, &f, from, to, tb_op_part(c, chunk, f.part));
        return;
    }
    tb_k_norm p = rows_of(c, &f, from, to);
    c->k->norm_tan(&p, stat_of(c, from), tb_op_peek(c, c->tin[0], from * p.d),
                   c->nin > 1 ? c->tin[1] : NULL, c->nin > 2 ? c->tin[2] : NULL,
                   tb_op_at(c, c->tout, from * p.d));
}

static void join_spans(const tb_opcall *c, const tb_norm_form *f, int in,
                       size_t pieces)
{
    tb_k_span span[TB_CHUNKS_MAX];
    const size_t rows = tb_op_row_count(c);
    if (pieces == 0)
        return;
    const size_t some = rows / pieces, longer = rows % pieces;
    for (size_t p = 0; p < pieces; p++) {
        span[p] = span_of(c, f, in, p);
        if ((some + (p < longer ? 1 : 0)) * f->groups <= TB_NORM_SPAN)
            span[p].full = NULL;
    }
    c->k->span_join(f->d, pieces, span, c->gin[in]);
}

static void join_parts(const tb_opcall *c, tb_norm_family family, size_t pieces)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    for (int i = 1; i < c->nin; i++)
        if (c->gin[i] && f.plain)
            join_spans(c, &f, i, pieces);
        else
            tb_op_join(c, pieces, f.part, (size_t)(i - 1) * f.d,
                       c->in_shape[i].width, c->gin[i]);
}

static size_t saved_of(const tb_opcall *c, tb_norm_family family)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    return tb_op_part_bytes(f.rows, f.nstat);
}

/* --- rows without a value ----------------------------------------------- */

/* A row with a NaN or infinity has another trouble. */
static bool finite_row(const tb_opcall *c, size_t at, size_t d)
{
    for (size_t i = 0; i < d; i++)
        if (!tb_isfinite(tb_op_get(c, c->in[0], at + i)))
            return false;
    return true;
}

/* No variance (RMS: no length), or so little that it is lost below the
 * smallest double; or a one-pass variance that came out negative. */
static const char *check_rows(const tb_opcall *c, tb_norm_family family,
                              size_t *row)
{
    tb_norm_form f = tb_norm_form_of(c, family);
    if (f.eps > 0 && f.variance != TB_VARIANCE_ONEPASS)
        return NULL;
    for (size_t r = 0; r < f.rows; r++) {
        double rstd = ((const double *)c->saved)[f.nstat * r + 1];
        if (tb_isfinite(rstd) || !finite_row(c, r * f.d, f.d))
            continue;
        *row = r / f.groups;
        return f.eps > 0 ? "one-pass variance below 0"
                         : "zero variance with eps = 0";
    }
    return NULL;
}

/* --- rows of the table -------------------------------------------------- */

/* `least`, `most`: inputs */
#define NORM(label, family, sign, least, most)                                 \
    static bool label##_shape(const tb_shape *in, int nin, const double *attr, \
                              tb_shape *out, const char **why)                 \
    {                                                                          \
        return shape_of(in, nin, family, attr, out, why);                      \
    }                                                                          \
    static void label##_fwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        fwd_part(c, family, from, to, chunk);                                  \
    }                                                                          \
    static bool label##_fwd_sum(const tb_opcall *c, const tb_opcall *sum,      \
                                size_t from, size_t to)                        \
    {                                                                          \
        return fwd_sum(c, sum, family, from, to);                              \
    }                                                                          \
    static void label##_bwd_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        bwd_part(c, family, from, to, chunk);                                  \
    }                                                                          \
    static void label##_tan_range(const tb_opcall *c, size_t from, size_t to,  \
                                  size_t chunk)                                \
    {                                                                          \
        tan_part(c, family, from, to, chunk);                                  \
    }                                                                          \
    static void label##_join(const tb_opcall *c, size_t pieces)                \
    {                                                                          \
        join_parts(c, family, pieces);                                         \
    }                                                                          \
    static size_t label##_saved(const tb_opcall *c)                            \
    {                                                                          \
        return saved_of(c, family);                                            \
    }                                                                          \
    static size_t label##_part(const tb_opcall *c)                             \
    {                                                                          \
        return tb_norm_form_of(c, family).part;                                \
    }                                                                          \
    static void label##_gain(const tb_opcall *c, double *rms, double *max)     \
    {                                                                          \
        tb_op_norm_gain(c, family, rms, max);                                  \
    }                                                                          \
    static bool label##_scale(const tb_opcall *c, size_t row, double *s,       \
                              double *eps_share)                               \
    {                                                                          \
        return tb_op_norm_scale(c, family, row, s, eps_share);                 \
    }                                                                          \
    static const char *label##_check(const tb_opcall *c, size_t *row)          \
    {                                                                          \
        return check_rows(c, family, row);                                     \
    }                                                                          \
    const tb_op tb_op_##label = {                                              \
        .name = #label,                                                        \
        .symbol = sign,                                                        \
        .min_in = least,                                                       \
        .max_in = most,                                                        \
        .nattr = 1,                                                            \
        .noption = 4,                                                          \
        .attr_name = {"eps", "eps_mode", "variance", "unbiased", "groups"},    \
        .lane = TB_LANE_TOLL,                                                  \
        .jac = TB_JAC_SYMBOL,                                                  \
        .needs = TB_NEED_IN(0) | TB_NEED_IN(1),                                \
        .shape = label##_shape,                                                \
        .saved = label##_saved,                                                \
        .fwd_rows = label##_fwd_range,                                         \
        .fwd_sum_rows = label##_fwd_sum,                                       \
        .bwd_rows = label##_bwd_range,                                         \
        .tan_rows = label##_tan_range,                                         \
        .part = label##_part,                                                  \
        .part_open = true,                                                     \
        .join = label##_join,                                                  \
        .bases = TB_NEED_IN(0),                                                \
        .gain = label##_gain,                                                  \
        .scale = label##_scale,                                                \
        .check = label##_check,                                                \
    };

NORM(layernorm, TB_FAMILY_LAYER, "LN", 1, 3)
NORM(rmsnorm, TB_FAMILY_RMS, "RMS", 1, 3)
NORM(scalenorm, TB_FAMILY_LENGTH, "SN", 2, 2)
NORM(l2norm, TB_FAMILY_LENGTH, "L2", 1, 1)
