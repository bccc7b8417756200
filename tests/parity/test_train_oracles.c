/* SPDX-License-Identifier: MIT */
/* Norms, activations, cross-entropy and the optimizer against numbers that
 * PyTorch computed in float64, and layernorm against ONNX's node tests.
 *
 * Double agrees to 1e-12 of a tensor's largest element. Float is held to an
 * error bound derived from the steps of the computation: u = 2^-24 is what one
 * rounding costs, and sums are in double, so only roundings of single elements
 * count. */
#include "gradients/test_ops_call.h"
#include "tollbooth/checkpoint.h"
#include "train/optimizer.h"

enum { MOST = 2048 }; /* elements of the largest tensor */

static const double U = 0x1p-24;

#define SHARED(name) "data/oracle-torch/" name ".safetensors"

/* --- reading and comparing ------------------------------------------------ */

/** A file, the entry that is looked at, and how many tensors were used. */
typedef struct oracle {
    tb_test *T;
    tb_safetensors *f;
    const char *entry;
    size_t used;
} oracle;

static bool oracle_open(tb_test *T, oracle *o, const char *path)
{
    *o = (oracle){.T = T};
    if (tb_safetensors_open(T->ctx, path, &o->f) == TB_OK)
        return true;
    tb_test_fail(T, __FILE__, __LINE__, "%s", tb_error(T->ctx));
    return false;
}

static const tb_tensor_info *find(const oracle *o, const char *name)
{
    char full[96];
    tb_format(full, sizeof full, "%s%s%s", o->entry ? o->entry : "",
              o->entry ? "." : "", name);
    return tb_safetensors_find(o->f, full);
}

/** Elements of the tensor in out; 0 and a failed test if there is none. */
static size_t get(oracle *o, const char *name, double *out)
{
    const tb_tensor_info *t = find(o, name);
    if (t && t->count <= MOST &&
        tb_safetensors_read(o->T->ctx, o->f, t, 0, t->count, TB_F64, out) ==
            TB_OK) {
        o->used++;
        return t->count;
    }
    tb_test_fail(o->T, __FILE__, __LINE__, "%s.%s: not there, or too large",
                 o->entry ? o->entry : "", name);
    return 0;
}

/* Element i may be off by bound[i]. */
static void within(const oracle *o, const char *what, tb_dtype t,
                   const void *got, const double *want, const double *bound,
                   size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double off = tb_fabs(tb_test_get(t, got, i) - want[i]);
        if (off <= bound[i])
            continue;
        tb_test_fail(o->T, __FILE__, __LINE__,
                     "%s %s[%zu]: got %.17g, wanted %.17g, off by %g, bound %g",
                     o->entry ? o->entry : "", what, i, tb_test_get(t, got, i),
                     want[i], off, bound[i]);
        return;
    }
}

/* Doubles: 1e-12 of the largest element; of 1 where all are PyTorch's rounding
 * noise about a 0 (a constant row). Floats: the bound, in units of u. */
static void compare(const oracle *o, const char *what, tb_dtype t,
                    const void *got, const double *want,
                    const double *roundings, size_t n)
{
    double size = 0, bound[MOST];
    for (size_t i = 0; i < n; i++)
        size = tb_fabs(want[i]) > size ? tb_fabs(want[i]) : size;
    size = size < 1e-9 ? 1 : size;
    for (size_t i = 0; i < n; i++)
        bound[i] = t == TB_F32 ? U * roundings[i] : 1e-12 * size;
    within(o, what, t, got, want, bound, n);
}

/* --- norms ---------------------------------------------------------------- */

/** One norm: what PyTorch was given and gave, and the bounds of ours. */
typedef struct norm_case {
    bool rms;
    size_t rows, d, ngain, nbias; /* the latter 0 or d */
    double eps;
    double x[MOST], gain[MOST], bias[MOST], dy[MOST];
    double y[MOST], dx[MOST], dgain[MOST], dbias[MOST];
    double by[MOST], bdx[MOST], bdgain[MOST], bdbias[MOST];
} norm_case;

static double eps_of(oracle *o)
{
    double eps = -1;
    tb_config *c = NULL;
    const char *json = tb_safetensors_meta(o->f, o->entry);
    tb_status s = tb_config_parse(o->T->ctx, o->entry, json, strlen(json), &c);
    if (s == TB_OK)
        s = tb_config_number(c, "eps", &eps);
    if (s != TB_OK)
        tb_test_fail(o->T, __FILE__, __LINE__, "%s", tb_error(o->T->ctx));
    tb_config_destroy(c);
    return eps;
}

static void norm_read(oracle *o, norm_case *c)
{
    *c = (norm_case){.rms = strncmp(o->entry, "rms.", 4) == 0};
    const tb_tensor_info *x = find(o, "x");
    c->eps = eps_of(o);
    c->d = x ? x->dims[1] : 0;
    c->rows = get(o, "x", c->x) / (c->d ? c->d : 1);
    get(o, "y", c->y);
    get(o, "dy", c->dy);
    get(o, "dx", c->dx);
    if (find(o, "gamma")) {
        c->ngain = get(o, "gamma", c->gain);
        get(o, "dgamma", c->dgain);
    }
    if (find(o, "beta")) {
        c->nbias = get(o, "beta", c->bias);
        get(o, "dbeta", c->dbias);
    }
}

static double gain_at(const norm_case *c, size_t i)
{
    return c->ngain ? c->gain[i] : 1;
}

static void row_stat(const norm_case *c, const double *x, double *mean,
                     double *rstd)
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < c->d && !c->rms; i++)
        sum += x[i] - x[0];
    *mean = c->rms ? 0 : x[0] + sum / (double)c->d;
    for (size_t i = 0; i < c->d; i++)
        square += (x[i] - *mean) * (x[i] - *mean);
    *rstd = 1 / tb_sqrt(square / (double)c->d + c->eps);
}

/* In units of u. xhat = ((x - hi) - lo) r: four roundings of xhat, and hi + lo
 * is the mean to u^2. y: two more, of xhat gain and of y. dx = rstd (h -
 * mean(h) - xhat mean(h xhat)), h = dy gain: three of each h, six of the last
 * product, two of the sum, one of rstd. */
static void bound_row(norm_case *c, size_t row)
{
    const double *x = c->x + row * c->d, *dy = c->dy + row * c->d;
    double mean, rstd, mh = 0, mhx = 0, d = (double)c->d;
    row_stat(c, x, &mean, &rstd);
    for (size_t i = 0; i < c->d; i++) {
        double h = tb_fabs(dy[i] * gain_at(c, i));
        mh += h / d;
        mhx += h * tb_fabs(x[i] - mean) * rstd / d;
    }
    for (size_t i = 0; i < c->d; i++) {
        double xh = tb_fabs(x[i] - mean) * rstd + U * tb_fabs(mean) * rstd;
        double gain = tb_fabs(gain_at(c, i));
        size_t at = row * c->d + i;
        c->by[at] = 6 * xh * gain + 2 * tb_fabs(c->y[at]);
        c->bdx[at] =
            rstd * (6 * tb_fabs(dy[i]) * gain + 6 * mh + 12 * xh * mhx);
        c->bdgain[i] += 5 * tb_fabs(dy[i]) * xh;
        c->bdbias[i] += tb_fabs(dy[i]);
    }
}

static void norm_run(oracle *o, norm_case *c, tb_dtype type)
{
    bed b;
    variant v = {.op = c->rms ? "rmsnorm" : "layernorm",
                 .batch = 1,
                 .time = c->rows,
                 .nin = 1 + (c->ngain > 0) + (c->nbias > 0),
                 .in = {STREAM(c->d), VECTOR(c->d), VECTOR(c->d)},
                 .attr = {[TB_ATTR_NORM_EPS] = c->eps}};
    if (!bed_open(o->T, &b, &v, type))
        return;
    bed_put(&b, b.x[0], c->x, b.n[0]);
    bed_put(&b, b.gy, c->dy, b.nout);
    if (c->ngain)
        bed_put(&b, b.x[1], c->gain, c->d);
    if (c->nbias)
        bed_put(&b, b.x[2], c->bias, c->d);
    bed_fwd(&b);
    bed_bwd(&b, bed_all(&b));
    compare(o, "y", type, b.y, c->y, c->by, b.nout);
    compare(o, "dx", type, b.g[0], c->dx, c->bdx, b.n[0]);
    if (c->ngain)
        compare(o, "dgamma", type, b.g[1], c->dgain, c->bdgain, c->d);
    if (c->nbias)
        compare(o, "dbeta", type, b.g[2], c->dbias, c->bdbias, c->d);
}

TB_TEST(norms)
{
    static norm_case c;
    const char *path = tb_test_shared(T, SHARED("norms")), *value;
    oracle o;
    if (!path)
        TB_SKIP(T, "shared data is not here");
    if (!oracle_open(T, &o, path))
        return;
    for (size_t i = 0; i < tb_safetensors_meta_count(o.f); i++) {
        tb_safetensors_meta_at(o.f, i, &o.entry, &value);
        if (!strchr(o.entry, '.'))
            continue; /* "made_with" */
        norm_read(&o, &c);
        for (size_t r = 0; r < c.rows; r++)
            bound_row(&c, r);
        norm_run(&o, &c, TB_F64);
        norm_run(&o, &c, TB_F32);
    }
    TB_CHECK(T, o.used == tb_safetensors_count(o.f)); /* every entry */
    tb_safetensors_close(o.f);
}

/* --- activations ---------------------------------------------------------- */

/* f(x) = x P(x), P in [0, 1] with four roundings or less: 4 |x| and one of the
 * product. f'(x) = P + x P': P' of the tanh form is (1 - t^2)/2 times the
 * slope s of its argument, 1 - t^2 as badly off as t: 4 |x| s. */
static void activation_bounds(const double *x, size_t n, double *by,
                              double *bdy)
{
    for (size_t i = 0; i < n; i++) {
        double a = tb_fabs(x[i]), slope = 0.8 * (1 + 3 * 0.045 * a * a);
        by[i] = 5 * a;
        bdy[i] = 5 + 4 * a * (1 + slope);
    }
}

static void activation_run(oracle *o, const char *op, const char *theirs,
                           tb_dtype type)
{
    bed b;
    double x[MOST], y[MOST], dydx[MOST], by[MOST], bdy[MOST];
    o->entry = NULL;
    size_t n = get(o, "act.x", x);
    o->entry = theirs;
    variant v = {.op = op, .batch = 1, .time = 1, .nin = 1, .in = {STREAM(n)}};
    if (get(o, "y", y) != n || get(o, "dydx", dydx) != n ||
        !bed_open(o->T, &b, &v, type))
        return;
    activation_bounds(x, n, by, bdy);
    bed_put(&b, b.x[0], x, n);
    bed_set_all(&b, b.gy, n, 1);
    bed_fwd(&b);
    bed_bwd(&b, bed_all(&b));
    compare(o, "y", type, b.y, y, by, n);
    compare(o, "dydx", type, b.g[0], dydx, bdy, n);
}

TB_TEST(activations)
{
    static const char *const ops[][2] = {
        {"gelu", "gelu_erf"}, {"gelu_tanh", "gelu_tanh"}, {"silu", "silu"}};
    const char *path = tb_test_shared(T, SHARED("losses_activations"));
    oracle o;
    if (!path)
        TB_SKIP(T, "shared data is not here");
    if (!oracle_open(T, &o, path))
        return;
    for (size_t i = 0; i < TB_LEN(ops); i++) {
        activation_run(&o, ops[i][0], ops[i][1], TB_F64);
        activation_run(&o, ops[i][0], ops[i][1], TB_F32);
    }
    tb_safetensors_close(o.f);
}

/* --- cross-entropy -------------------------------------------------------- */

/* range = max - min of the logits: exp of a rounded difference is off by range
 * roundings and four of its own; lse is as far off. Gradients are at most
 * 1/count. */
static void entropy_bounds(const double *z, size_t n, double loss, size_t count,
                           double *bloss, double *bz)
{
    double low = z[0], high = z[0];
    for (size_t i = 0; i < n; i++) {
        low = z[i] < low ? z[i] : low;
        high = z[i] > high ? z[i] : high;
    }
    *bloss = high - low + 4 + tb_fabs(loss);
    for (size_t i = 0; i < n; i++)
        bz[i] = (2 * (high - low) + 8) / (double)count;
}

/* The loss with smoothing e, which the file calls `name`. */
static void entropy_run(oracle *o, const char *name, double e, tb_dtype type)
{
    bed b;
    double z[MOST], target[MOST], loss, dz[MOST], bloss, bz[MOST];
    o->entry = NULL;
    size_t n = get(o, "logits", z), rows = get(o, "target", target), count = 0;
    variant v = {.op = "xent",
                 .batch = 1,
                 .time = rows,
                 .nin = 2,
                 .in = {STREAM(n / (rows ? rows : 1)), TOKENS},
                 .attr = {[TB_ATTR_XENT_SMOOTH] = e},
                 .vocab = 1};
    o->entry = name;
    if (get(o, "loss", &loss) != 1 || get(o, "dlogits", dz) != n ||
        !bed_open(o->T, &b, &v, type))
        return;
    for (size_t i = 0; i < rows; i++) {
        ((int32_t *)b.x[1])[i] = (int32_t)target[i];
        count += target[i] >= 0;
    }
    TB_CHECK(o->T, count < rows); /* ignore_index is in it */
    entropy_bounds(z, n, loss, count, &bloss, bz);
    bed_put(&b, b.x[0], z, n);
    bed_set_all(&b, b.gy, 1, 1);
    bed_fwd(&b);
    bed_bwd(&b, bed_all(&b));
    compare(o, "loss", type, b.y, &loss, &bloss, 1);
    compare(o, "dlogits", type, b.g[0], dz, bz, n);
}

TB_TEST(cross_entropy)
{
    const char *path = tb_test_shared(T, SHARED("losses_activations"));
    oracle o;
    if (!path)
        TB_SKIP(T, "shared data is not here");
    if (!oracle_open(T, &o, path))
        return;
    for (tb_dtype type = TB_F32; type <= TB_F64; type++) {
        entropy_run(&o, "plain", 0, type);
        entropy_run(&o, "smooth0.1", 0.1, type);
    }
    tb_safetensors_close(o.f);
}

/* --- optimizer ------------------------------------------------------------ */

enum { STEPS = 6, FLAT = 16 };

typedef struct adam_case {
    const char *name, *settings; /* as the file words them */
    tb_adam p;
} adam_case;

static const double adam_lr = 0.01;

static const adam_case adams[] = {
    {"adam",
     "{'lr': 0.01, 'betas': (0.9, 0.98), 'eps': 1e-09, 'weight_decay': 0}",
     {0.9, 0.98, 1e-9, 0, 0}},
    {"adamw",
     "{'lr': 0.01, 'betas': (0.9, 0.999), 'eps': 1e-08, 'weight_decay': 0.1}",
     {0.9, 0.999, 1e-8, 0.1, 0}},
};

/* Step t adds three roundings of w; and of its update lr mhat / sqrt(vhat),
 * whose quotient is below sqrt(t), 3 t of what mhat gathered and 8 more. */
static double adam_roundings(size_t t, double w)
{
    return 3 * tb_fabs(w) + 3 * adam_lr +
           adam_lr * tb_sqrt((double)t) * (3 * (double)t + 8);
}

static void adam_steps(oracle *o, const adam_case *a, tb_optimizer *opt,
                       size_t n)
{
    double grad[MOST], want[MOST], bound[MOST] = {0};
    tb_dtype type = opt->k->dtype;
    for (size_t t = 1; t <= STEPS; t++) {
        char name[16], ours[16];
        tb_update u;
        tb_format(name, sizeof name, "grad.%zu", t);
        tb_format(ours, sizeof ours, "%zu", t);
        o->entry = NULL;
        TB_REQUIRE(o->T, get(o, name, grad) == n);
        for (size_t i = 0; i < n; i++)
            tb_test_set(type, opt->grads, i, grad[i]);
        TB_OKAY(o->T, tb_optimizer_step(opt, &a->p, t, adam_lr, &u));
        o->entry = a->name;
        TB_REQUIRE(o->T, get(o, ours, want) == n);
        for (size_t i = 0; i < n; i++)
            bound[i] += adam_roundings(t, want[i]);
        compare(o, ours, type, opt->params, want, bound, n);
    }
}

static void adam_run(oracle *o, const adam_case *a, tb_dtype type)
{
    double p0[MOST], w[FLAT] = {0};
    tb_optimizer *opt;
    o->entry = NULL;
    size_t n = get(o, "p0", p0);
    TB_REQUIRE(o->T, n > 0 && n <= FLAT);
    TB_STR(o->T, tb_safetensors_meta(o->f, a->name), a->settings);
    tb_view view = {.name = "w",
                    .role = TB_ROLE_MATRIX, /* decayed */
                    .shape = {TB_SHAPE_MATRIX, n, 1},
                    .count = n};
    for (size_t i = 0; i < n; i++)
        tb_test_set(type, w, i, p0[i]);
    TB_OKAY(o->T,
            tb_optimizer_create(o->T->ctx, type, &view, 1, FLAT, w, &opt));
    adam_steps(o, a, opt, n);
    tb_optimizer_destroy(opt);
}

TB_TEST(optimizers)
{
    const char *path = tb_test_shared(T, SHARED("optimisers"));
    oracle o;
    if (!path)
        TB_SKIP(T, "shared data is not here");
    if (!oracle_open(T, &o, path))
        return;
    for (size_t i = 0; i < TB_LEN(adams); i++) {
        adam_run(&o, &adams[i], TB_F64);
        adam_run(&o, &adams[i], TB_F32);
    }
    tb_safetensors_close(o.f);
}

TB_TEST(optimizer_sgd)
{
    TB_SKIP(T, "sgd_momentum: there is no SGD to compare");
}

/* --- ONNX LayerNormalization ---------------------------------------------- */

/* Axes from `axis` on are normalised together: a row is all they span, as W
 * has it. ONNX's numbers were computed in float, sums too, eight partial sums
 * of d/8 elements each: s = d/8 + 4 roundings of every mean. */
static void onnx_bounds(norm_case *c, size_t row, const double *stat,
                        double *bmean, double *brstd)
{
    const double *x = c->x + row * c->d;
    double size = 0, s = (double)c->d / 8 + 4;
    for (size_t i = 0; i < c->d; i++)
        size += tb_fabs(x[i]) / (double)c->d;
    *bmean = U * s * size;
    *brstd = U * s * stat[1];
    for (size_t i = 0; i < c->d; i++) {
        size_t at = row * c->d + i;
        double scaled = tb_fabs(c->y[at] - c->bias[i]);
        c->by[at] = U * ((s + 4) * scaled + 2 * tb_fabs(c->y[at])) +
                    tb_fabs(c->gain[i]) * stat[1] * *bmean;
    }
}

static void onnx_compare(oracle *o, norm_case *c, const bed *b)
{
    double mean[MOST], rstd[MOST], bmean[MOST], brstd[MOST], ours[2][MOST];
    const double *stat = b->c.saved;
    if (get(o, "Mean", mean) != c->rows || get(o, "InvStdDev", rstd) != c->rows)
        return;
    for (size_t r = 0; r < c->rows; r++) {
        ours[0][r] = stat[2 * r];
        ours[1][r] = stat[2 * r + 1];
        onnx_bounds(c, r, stat + 2 * r, &bmean[r], &brstd[r]);
    }
    within(o, "Mean", TB_F64, ours[0], mean, bmean, c->rows);
    within(o, "InvStdDev", TB_F64, ours[1], rstd, brstd, c->rows);
    within(o, "Y", TB_F64, b->y, c->y, c->by, b->nout);
}

static double epsilon_of(oracle *o, const char *json)
{
    double eps = 1e-5;
    tb_config *c = NULL;
    tb_status s = tb_config_parse(o->T->ctx, o->entry, json, strlen(json), &c);
    if (s == TB_OK)
        s = tb_config_number_or(c, "epsilon", 1e-5, &eps);
    if (s != TB_OK)
        tb_test_fail(o->T, __FILE__, __LINE__, "%s", tb_error(o->T->ctx));
    tb_config_destroy(c);
    return eps;
}

static void onnx_run(oracle *o, norm_case *c, const char *json)
{
    bed b;
    *c = (norm_case){.eps = epsilon_of(o, json)};
    c->ngain = c->d = get(o, "W", c->gain);
    c->nbias = get(o, "B", c->bias);
    TB_REQUIRE(o->T, c->d > 0 && c->nbias == c->d);
    c->rows = get(o, "X", c->x) / c->d;
    TB_REQUIRE(o->T, get(o, "Y", c->y) == c->rows * c->d);
    variant v = {.op = "layernorm",
                 .batch = 1,
                 .time = c->rows,
                 .nin = 3,
                 .in = {STREAM(c->d), VECTOR(c->d), VECTOR(c->d)},
                 .attr = {[TB_ATTR_NORM_EPS] = c->eps}};
    if (!bed_open(o->T, &b, &v, TB_F64))
        return;
    bed_put(&b, b.x[0], c->x, b.n[0]);
    bed_put(&b, b.x[1], c->gain, c->d);
    bed_put(&b, b.x[2], c->bias, c->d);
    bed_fwd(&b);
    onnx_compare(o, c, &b);
}

TB_TEST(onnx_layernorm)
{
    static norm_case c;
    const char *path = tb_test_shared(
        T, "data/onnx-layernorm/onnx_layernorm_vectors.safetensors");
    const char *value;
    oracle o;
    if (!path)
        TB_SKIP(T, "shared data is not here");
    if (!oracle_open(T, &o, path))
        return;
    for (size_t i = 0; i < tb_safetensors_meta_count(o.f); i++) {
        tb_safetensors_meta_at(o.f, i, &o.entry, &value);
        if (value[0] == '{')
            onnx_run(&o, &c, value);
    }
    TB_CHECK(T, o.used == tb_safetensors_count(o.f)); /* every entry */
    tb_safetensors_close(o.f);
}
