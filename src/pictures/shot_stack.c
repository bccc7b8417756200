/* SPDX-License-Identifier: MIT */
/* The stacks of S5, S6, S7 and SUM: writes the block, runs it, and reads what
 * each norm got, so that tolls come from two ways: by E3 here, by flow. */
#include "pictures/shot_stack.h"

#include "flow/flow_model.h"
#include "pictures/scene.h"
#include "pictures/shot_box.h"

stack_spec stack_asked(const tb_shot *s, bool post)
{
    return (stack_spec){.post = post,
                        .n = shot_whole(s, "N"),
                        .width = shot_whole(s, "d"),
                        .tokens = shot_whole(s, "T"),
                        .factor = shot_num(s, "v"),
                        .eps = shot_num(s, "eps"),
                        .branch = shot_choice(s, "branch"),
                        .init = shot_choice(s, "init"),
                        .seed = shot_whole(s, "seed")};
}

/* --- the text ------------------------------------------------------------- */

static const char *branch_of(tb_shot *s, const stack_spec *p, const char *name,
                             const char *of)
{
    return p->factor == 1 ? shot_text(s, "%s(%s)", name, of)
                          : shot_text(s, "%g*%s(%s)", p->factor, name, of);
}

static const char *equation(tb_shot *s, const stack_spec *p, const char *name,
                            bool cut)
{
    const char *f = branch_of(s, p, name, p->post ? "x" : "norm(x)");
    const char *skip = cut ? "" : "x + ";
    return f ? shot_text(s, p->post ? "x = norm(%s%s)" : "x = %s%s", skip, f)
             : NULL;
}

/* A section of one statement, and of the linear that it applies. */
static void section(tb_shot *s, const stack_spec *p, tb_buf *b,
                    const char *header, const char *name, bool cut)
{
    const char *line = equation(s, p, name, cut);
    tb_buf_printf(b, "%s\n%s    %s\n", header,
                  tb_streq(name, "w") ? "    w = linear(d, d, bias=false)\n"
                                      : "",
                  line ? line : "");
}

static void init_lines(const stack_spec *p, tb_buf *b)
{
    bool linear = p->branch == STACK_LINEAR, ffn = !linear && p->n > 1;
    static const char *const all[] = {"xavier", "normal(sqrt(2/d))",
                                      "normal(0.02)", "xavier"};
    tb_buf_printf(b, "init:\n    *: %s\n", all[p->init]);
    if (p->init == 1 && ffn)
        tb_buf_puts(b, "    ffn.down: normal(sqrt(2/(4*d)))\n");
    if (p->init == 3) /* N sublayers are 2L */
        tb_buf_printf(b, "    %s: xavier(1/sqrt(N))\n",
                      linear ? "w"
                      : ffn  ? "attn.o, ffn.down"
                             : "attn.o");
}

static const char *block_text(tb_shot *s, const stack_spec *p)
{
    tb_buf b;
    char header[40];
    bool linear = p->branch == STACK_LINEAR;
    tb_buf_init(&b, s->ctx);
    if (!linear && p->n > 1)
        tb_buf_puts(&b, "ffn(x) = down(relu(up(x)))\n");
    if (p->cut) {
        tb_format(header, sizeof header, "block[l == %zu]:", p->cut);
        section(s, p, &b, header,
                linear            ? "w"
                : p->cut % 2 == 0 ? "ffn"
                                  : "attn",
                true);
    }
    if (!linear && p->n > 1)
        section(s, p, &b, "block[l/2 == floor(l/2)]:", "ffn", false);
    section(s, p, &b, "block:", linear ? "w" : "attn", false);
    if (p->final)
        tb_buf_puts(&b, "final:\n    x = norm(x)\n");
    init_lines(p, &b);
    const char *text = b.failed ? NULL : shot_text(s, "%s", tb_buf_str(&b));
    tb_buf_clear(&b);
    return text;
}

const char *stack_formula(bool post)
{
    return post ? "J_LN(x + F(x))\xC2\xB7(I + J_F(x))"
                : "I + J_F(LN(x))\xC2\xB7J_LN(x)";
}

/* --- booths --------------------------------------------------------------- */

/* The norm of a part that stands in no sublayer, -1 if there is none. */
static int booth_of(const tb_graph *g)
{
    for (int i = 0; i < g->nnodes; i++)
        if (g->nodes[i].region < 0 && g->nodes[i].op->lane == TB_LANE_TOLL)
            return i;
    return -1;
}

static double element(const stack_run *r, const void *x, size_t i)
{
    return r->spec.f32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static double median_of(double *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && v[k] < v[k - 1]; k--) {
            double t = v[k];
            v[k] = v[k - 1];
            v[k - 1] = t;
        }
    return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

/* E1 and E3 over all tokens: the norm's gains are 1 at the start. */
static void read_booth(const stack_run *r, const void *z, stack_floor *f)
{
    size_t d = r->spec.width, rows = r->spec.tokens;
    double square = 0, eps = r->spec.eps, inverse[STACK_TOKENS];
    f->s = f->tau = f->most = 0;
    f->least = 1e300;
    for (size_t t = 0; t < rows; t++) {
        double mean = 0, var = 0;
        for (size_t i = 0; i < d; i++)
            mean += element(r, z, t * d + i);
        mean /= (double)d;
        for (size_t i = 0; i < d; i++) {
            double c = element(r, z, t * d + i) - mean;
            var += c * c;
        }
        double s2 = var / (double)d + eps, s = tb_sqrt(s2);
        square += ((double)d - 2) / s2 + eps * eps / (s2 * s2 * s2);
        f->s += s / (double)rows;
        inverse[t] = 1 / s;
        f->tau += inverse[t] / (double)rows;
        f->least = tb_min2(f->least, s);
        f->most = tb_max2(f->most, s);
    }
    f->toll = tb_sqrt(square / (double)(rows * d));
    f->median = median_of(inverse, rows);
}

/* Rows of m minus their mean and their part along z, over s: J_LN times m. */
static void pass_booth(stack_run *r, const void *z)
{
    size_t d = r->spec.width;
    stack_matrix *b = &r->booths;
    double *mean = b->m + d * d, *along = mean + d, mu = 0, var = 0;
    for (size_t i = 0; i < d; i++)
        mu += element(r, z, i) / (double)d;
    for (size_t i = 0; i < d; i++) {
        double c = element(r, z, i) - mu;
        var += c * c / (double)d;
    }
    double s2 = var + r->spec.eps, s = tb_sqrt(s2);
    memset(mean, 0, 2 * d * sizeof *mean);
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k < d; k++) {
            mean[k] += b->m[i * d + k] / (double)d;
            along[k] +=
                (element(r, z, i) - mu) * b->m[i * d + k] / (s2 * (double)d);
        }
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k < d; k++)
            b->m[i * d + k] = (b->m[i * d + k] - mean[k] -
                               (element(r, z, i) - mu) * along[k]) /
                              s;
}

static void multiply(tb_shot *s, const tb_run *run, int norm, const void *z,
                     stack_run *r)
{
    double mean = 0, scale, share;
    for (size_t t = 0; t < r->spec.tokens; t++)
        if (tb_plan_scale(s->ctx, run, norm, t, &scale, &share)) {
            mean += 1 / (scale * (double)r->spec.tokens);
            r->booths.first /= t ? 1 : scale;
        }
    r->booths.mean *= mean;
    pass_booth(r, z);
}

/* E8: the root mean square gain, and the largest by iterating m'm; small ones
 * longer, as two values next to each other matter there. */
static void measure_matrix(stack_run *r)
{
    size_t d = r->spec.width, rounds = 40 + 200000 / (d * d);
    stack_matrix *b = &r->booths;
    double *v = b->m + d * d, *w = v + d;
    tb_rng rng = tb_rng_make(r->spec.seed, "booths");
    b->rms = shot_norm(b->m, d * d) / tb_sqrt((double)d);
    for (size_t i = 0; i < d; i++)
        v[i] = tb_rng_normal(rng, i);
    for (size_t round = 0; round < rounds; round++) {
        double size = shot_norm(v, d);
        memset(w, 0, d * sizeof *w);
        for (size_t i = 0; i < d && size > 0; i++)
            for (size_t k = 0; k < d; k++)
                w[i] += b->m[i * d + k] * v[k] / size;
        b->max = shot_norm(w, d);
        memset(v, 0, d * sizeof *v);
        for (size_t i = 0; i < d && b->max > 0; i++)
            for (size_t k = 0; k < d; k++)
                v[k] += b->m[i * d + k] * w[i] / b->max;
    }
}

static tb_status unit_matrix(tb_shot *s, stack_run *r)
{
    size_t d = r->spec.width;
    r->booths = (stack_matrix){.first = 1, .mean = 1};
    if (!r->spec.multiplied)
        return TB_OK;
    r->booths.m = shot_alloc(s, d * (d + 2), sizeof *r->booths.m);
    for (size_t i = 0; r->booths.m && i < d; i++)
        r->booths.m[i * (d + 1)] = 1;
    return r->booths.m ? TB_OK : TB_ERR_MEMORY;
}

/* The value that a node reads: a stream that came in, or one made here. */
static const void *value_of(const tb_run *run, const tb_graph *g, int node)
{
    for (int i = 0; i < g->ninputs; i++)
        if (g->inputs[i] == node)
            return run->inputs[i];
    return tb_plan_value(run, node);
}

static tb_status visit(tb_shot *s, tb_model *m, const tb_batch *batch, size_t p,
                       stack_run *r, stack_floor *f, bool keep)
{
    const tb_graph *g = tb_model_graph(m, p);
    tb_lane_info lane;
    tb_run run;
    int norm = booth_of(g);
    TB_TRY(tb_graph_lane(s->ctx, g, &s->arena, &lane));
    f->lane_norms = lane.kind == TB_LANE_KIND_TOLL ? lane.tolls : 0;
    if (norm < 0)
        return TB_OK;
    TB_TRY(tb_model_run(m, p, batch, &run));
    const void *z = value_of(&run, g, g->nodes[norm].in[0]);
    if (!z)
        return TB_FAIL(s->ctx, TB_ERR_ARG, "floor %zu: its value was not kept",
                       p);
    read_booth(r, z, f);
    if (r->booths.m)
        multiply(s, &run, norm, z, r);
    if (!keep)
        return TB_OK;
    double *copy = shot_alloc(s, r->spec.width, sizeof *copy);
    if (!copy)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < r->spec.width; i++)
        copy[i] = element(r, z, i);
    r->z = copy;
    return TB_OK;
}

static tb_status visit_all(tb_shot *s, tb_model *m, const tb_batch *batch,
                           stack_run *r)
{
    size_t tail = tb_model_tail(m), n = r->spec.n;
    size_t opened = r->spec.opened ? r->spec.opened : n;
    tb_layers layers = tb_model_layers(m, tail);
    stack_floor out = {0};
    TB_TRY(unit_matrix(s, r));
    for (size_t k = 0; k < n; k++)
        TB_TRY(visit(s, m, batch, layers.first + k, r, &r->floor[k],
                     k + 1 == opened));
    if (r->booths.m)
        measure_matrix(r);
    r->booths.m = NULL; /* not of the norm after the last floor */
    TB_TRY(visit(s, m, batch, tail, r, &out, false));
    r->exit_norms = out.lane_norms;
    r->exit_toll = out.toll;
    r->exit_s = out.s;
    return TB_OK;
}

/* --- flow ----------------------------------------------------------------- */

static const char *sublayer(const stack_spec *p, size_t k)
{
    return p->branch == STACK_LINEAR ? "linear" : k % 2 ? "attn" : "ffn";
}

static void copy_flow(const tb_flow *f, stack_run *r)
{
    for (size_t k = 1; k <= r->spec.n; k++) {
        const tb_flow_row *row = &f->rows[k], *below = row - 1;
        stack_floor *out = &r->floor[k - 1];
        out->name = sublayer(&r->spec, k);
        out->lane = below->lane;
        out->total = below->total;
        out->flow_toll = row->toll;
        out->std_x = row->std_x;
        out->local_lane = row->local_lane;
        out->local_branch = row->local_branch;
        out->local_cos = row->local_cos;
        out->branch_ratio = row->branch_ratio;
    }
    r->std_0 = f->rows[0].std_x;
    r->token[0] = f->rows[0].total_min;
    r->token[1] = f->rows[0].total_max;
    r->product = f->rows[0].toll_product;
}

static size_t heads_of(size_t width)
{
    return width % 4 == 0 ? 4 : width % 2 == 0 ? 2 : 1;
}

/* Every token another one: T normal vectors of variance 1 enter. */
static tb_status run(tb_shot *s, const tb_block *b, stack_run *r)
{
    const stack_spec *p = &r->spec;
    tb_settings settings = TB_SETTINGS_UNSET;
    settings.depth = p->n;
    settings.width = p->width;
    settings.heads = heads_of(p->width);
    settings.context = p->tokens;
    settings.vocab = p->tokens + 1;
    settings.eps = p->eps;
    settings.positions = TB_POSITIONS_NONE;
    settings.causal = 0;
    int32_t *ids = shot_alloc(s, p->tokens + 1, sizeof *ids);
    if (!ids)
        return TB_ERR_MEMORY;
    for (size_t t = 0; t <= p->tokens; t++)
        ids[t] = (int32_t)t;
    const tb_flow_spec spec = {
        .seed = p->seed, .cotangent = TB_COTANGENT_RANDOM, .ids = ids};
    const tb_batch batch = {.tokens = ids, .targets = ids + 1};
    tb_model *m;
    tb_flow *f = NULL;
    TB_TRY(tb_model_create(s->ctx, b, &settings, p->f32 ? TB_F32 : TB_F64, &m));
    tb_status status = tb_model_init(m, p->seed);
    if (status == TB_OK)
        status = tb_flow_of_model(m, &spec, &f);
    if (status == TB_OK) {
        copy_flow(f, r);
        status = visit_all(s, m, &batch, r);
    }
    tb_flow_free(s->ctx, f);
    tb_model_destroy(m);
    return status;
}

/* Below 1e-30 what is left of the lane is nothing that a float can hold. */
static bool underflows(const stack_run *r)
{
    return r->spec.f32 && !r->spec.cut && r->floor[0].lane < 1e-30;
}

tb_status stack_measure(tb_shot *s, const stack_spec *spec, stack_run *out)
{
    tb_block *b;
    *out = (stack_run){.spec = *spec};
    out->floor = shot_alloc(s, spec->n, sizeof *out->floor);
    out->equation = equation(s, spec, "F", false);
    out->text = block_text(s, spec);
    out->where = spec->branch == STACK_LINEAR
                     ? "F: one d x d matrix"
                     : "F: attention on odd floors, feed-forward (ReLU, 4d) on "
                       "even ones";
    if (!out->text || s->status != TB_OK) /* status: of a line in it */
        return TB_ERR_MEMORY;
    TB_TRY(tb_block_load(s->ctx, out->text, &b));
    tb_status status = run(s, b, out);
    if (status == TB_OK && underflows(out)) {
        out->spec.f32 = false;
        status = run(s, b, out);
    }
    tb_block_destroy(s->ctx, b);
    return status;
}

/* --- reading -------------------------------------------------------------- */

double stack_lane(const stack_run *r, size_t k)
{
    return k == r->spec.n ? 1 : r->floor[k].lane;
}

double stack_total(const stack_run *r, size_t k)
{
    return k == r->spec.n ? 1 : r->floor[k].total;
}

double stack_std(const stack_run *r, size_t k)
{
    return k == 0 ? r->std_0 : r->floor[k - 1].std_x;
}

bool stack_fit(const double *y, size_t n, double *factor, double *r2)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, c = (double)n;
    for (size_t i = 0; i < n; i++) {
        if (!(y[i] > 0))
            return false;
        double x = (double)i, v = tb_log10(y[i]);
        sx += x;
        sy += v;
        sxx += x * x;
        sxy += x * v;
        syy += v * v;
    }
    if (n < 3)
        return false;
    double xx = sxx - sx * sx / c, xy = sxy - sx * sy / c,
           yy = syy - sy * sy / c;
    *factor = tb_pow10(xy / xx);
    *r2 = yy > 1e-20 ? xy * xy / (xx * yy) : 1;
    return true;
}
