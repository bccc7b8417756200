/* SPDX-License-Identifier: MIT */
/* One PyTorch encoder layer in float64: output, input gradient and every
 * parameter's gradient, Post-LN and Pre-LN, ReLU and GELU.
 *
 * The second sentence's last two tokens are padding: no key, but queries with
 * outputs of their own. So queries `a` and keys `m` are written as two
 * streams, and that sentence runs as two rows of three queries (3, 4 and 4
 * again, without a cotangent) over the same three keys. */
#include "tb_test.h"
#include "tollbooth/checkpoint.h"
#include "tollbooth/eval.h"

enum { D = 16, H = 32, T5 = 5 };

static const char *const file_names[] = {"post_relu", "post_gelu", "pre_relu",
                                         "pre_gelu"};

#define WEIGHTS                                                                \
    "wq = linear(d, d); wk = linear(d, d); wv = linear(d, d); "                \
    "wo = linear(d, d); w1 = linear(d, 2*d); w2 = linear(2*d, d); "

static const char *const texts[] = {
    WEIGHTS "y = norm(a + wo(mha(wq(a), wk(m), wv(m)))); "
            "norm(y + w2(relu(w1(y))))",
    WEIGHTS "y = norm(a + wo(mha(wq(a), wk(m), wv(m)))); "
            "norm(y + w2(gelu(w1(y))))",
    WEIGHTS "n = norm(m); y = a + wo(mha(wq(norm(a)), wk(n), wv(n))); "
            "y + w2(relu(w1(norm(y))))",
    WEIGHTS "n = norm(m); y = a + wo(mha(wq(norm(a)), wk(n), wv(n))); "
            "y + w2(gelu(w1(norm(y))))",
};

/** One of our parameters in PyTorch's names. */
typedef struct tb_map {
    const char *ours, *theirs;
    size_t first; /* element of theirs where ours begins */
    int rank;
    size_t dims[2];
} tb_map;

#define IN_W "self_attn.in_proj_weight"
#define IN_B "self_attn.in_proj_bias"
static const tb_map common[] = {
    {"wq.weight", IN_W, 0, 2, {D, D}},
    {"wk.weight", IN_W, D *D, 2, {D, D}},
    {"wv.weight", IN_W, 2 * D *D, 2, {D, D}},
    {"wq.bias", IN_B, 0, 1, {D}},
    {"wk.bias", IN_B, D, 1, {D}},
    {"wv.bias", IN_B, 2 * D, 1, {D}},
    {"wo.weight", "self_attn.out_proj.weight", 0, 2, {D, D}},
    {"wo.bias", "self_attn.out_proj.bias", 0, 1, {D}},
    {"w1.weight", "linear1.weight", 0, 2, {H, D}},
    {"w1.bias", "linear1.bias", 0, 1, {H}},
    {"w2.weight", "linear2.weight", 0, 2, {D, H}},
    {"w2.bias", "linear2.bias", 0, 1, {D}},
};
static const tb_map norms_post[] = {
    {"norm.gain", "norm1.weight", 0, 1, {D}},
    {"norm.bias", "norm1.bias", 0, 1, {D}},
    {"norm2.gain", "norm2.weight", 0, 1, {D}},
    {"norm2.bias", "norm2.bias", 0, 1, {D}},
};
/* Pre-LN norms a and m with one norm, written as two with equal weights. */
static const tb_map norms_pre[] = {
    {"norm.gain", "norm1.weight", 0, 1, {D}},
    {"norm.bias", "norm1.bias", 0, 1, {D}},
    {"norm2.gain", "norm1.weight", 0, 1, {D}},
    {"norm2.bias", "norm1.bias", 0, 1, {D}},
    {"norm3.gain", "norm2.weight", 0, 1, {D}},
    {"norm3.bias", "norm2.bias", 0, 1, {D}},
};

enum { MAPS = TB_LEN(common) + TB_LEN(norms_pre) };

/** A file's numbers and what we make of them. */
typedef struct tb_layer {
    tb_safetensors *f;
    size_t nmaps;
    tb_map maps[MAPS];
    double weight[MAPS][D * H];
    double x[2 * T5 * D], y[2 * T5 * D], dx[2 * T5 * D], dy[2 * T5 * D];
    double our_y[2 * T5 * D], our_dx[2 * T5 * D], our_grad[MAPS][D * H];
} tb_layer;

static tb_status read_all(tb_ctx *ctx, tb_safetensors *f, const char *head,
                          const char *name, size_t first, size_t n, double *out)
{
    char full[80];
    const tb_tensor_info *t;
    tb_format(full, sizeof full, "%s%s", head, name);
    TB_TRY(tb_safetensors_need(ctx, f, full, -1, NULL, &t));
    return tb_safetensors_read(ctx, f, t, first, n, TB_F64, out);
}

static size_t count_of(const tb_map *m)
{
    return m->dims[0] * (m->rank == 2 ? m->dims[1] : 1);
}

static tb_status load(tb_ctx *ctx, const char *path, bool pre, tb_layer *l)
{
    TB_TRY(tb_safetensors_open(ctx, path, &l->f));
    memcpy(l->maps, common, sizeof common);
    l->nmaps = TB_LEN(common) + (pre ? TB_LEN(norms_pre) : TB_LEN(norms_post));
    memcpy(l->maps + TB_LEN(common), pre ? norms_pre : norms_post,
           (l->nmaps - TB_LEN(common)) * sizeof *l->maps);
    for (size_t i = 0; i < l->nmaps; i++)
        TB_TRY(read_all(ctx, l->f, "param.", l->maps[i].theirs,
                        l->maps[i].first, count_of(&l->maps[i]), l->weight[i]));
    TB_TRY(read_all(ctx, l->f, "", "x", 0, 2 * T5 * D, l->x));
    TB_TRY(read_all(ctx, l->f, "", "y", 0, 2 * T5 * D, l->y));
    TB_TRY(read_all(ctx, l->f, "", "dx", 0, 2 * T5 * D, l->dx));
    return read_all(ctx, l->f, "", "dy", 0, 2 * T5 * D, l->dy);
}

/** Which tokens (of all ten) are queries and keys, in rows of `time`. */
typedef struct tb_part_run {
    size_t batch, time;
    int query[6], key[6];
    int silent; /* query without a cotangent, -1: none */
} tb_part_run;

static const tb_part_run part_runs[] = {
    {1, 5, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, -1},
    {2, 3, {5, 6, 7, 8, 9, 9}, {5, 6, 7, 5, 6, 7}, 5},
};

static const double *grad_of(const tb_eval_result *r, const char *name)
{
    for (size_t i = 0; i < r->ngrads; i++)
        if (tb_streq(r->grads[i].name, name))
            return r->grads[i].data;
    return NULL;
}

static void collect(tb_layer *l, const tb_part_run *p, const tb_eval_result *r)
{
    const double *ga = grad_of(r, "a"), *gm = grad_of(r, "m");
    for (size_t t = 0; t < p->batch * p->time; t++)
        for (size_t c = 0; c < D; c++) {
            l->our_y[(size_t)p->query[t] * D + c] = r->y.data[t * D + c];
            l->our_dx[(size_t)p->query[t] * D + c] += ga[t * D + c];
            l->our_dx[(size_t)p->key[t] * D + c] += gm[t * D + c];
        }
    for (size_t i = 0; i < l->nmaps; i++) {
        const double *g = grad_of(r, l->maps[i].ours);
        for (size_t e = 0; g && e < count_of(&l->maps[i]); e++)
            l->our_grad[i][e] += g[e];
    }
}

static tb_status run_part(tb_ctx *ctx, tb_layer *l, const char *text,
                          const tb_part_run *p)
{
    double a[6 * D], m[6 * D], dy[6 * D];
    tb_eval_value sets[MAPS + 2], cotangent = {.rank = 3, .data = dy};
    for (size_t t = 0; t < p->batch * p->time; t++) {
        size_t q = (size_t)p->query[t] * D, k = (size_t)p->key[t] * D;
        memcpy(a + t * D, l->x + q, D * sizeof *a);
        memcpy(m + t * D, l->x + k, D * sizeof *m);
        memcpy(dy + t * D, l->dy + q, D * sizeof *dy);
        if ((int)t == p->silent)
            memset(dy + t * D, 0, D * sizeof *dy);
    }
    size_t dims[3] = {p->batch, p->time, D};
    for (size_t i = 0; i < l->nmaps; i++) {
        sets[i] = (tb_eval_value){.name = l->maps[i].ours,
                                  .rank = l->maps[i].rank,
                                  .data = l->weight[i]};
        memcpy(sets[i].dims, l->maps[i].dims, sizeof l->maps[i].dims);
    }
    sets[l->nmaps] = (tb_eval_value){.name = "a", .rank = 3, .data = a};
    sets[l->nmaps + 1] = (tb_eval_value){.name = "m", .rank = 3, .data = m};
    memcpy(sets[l->nmaps].dims, dims, sizeof dims);
    memcpy(sets[l->nmaps + 1].dims, dims, sizeof dims);
    memcpy(cotangent.dims, dims, sizeof dims);
    tb_eval e = {.text = text,
                 .nsets = l->nmaps + 2,
                 .sets = sets,
                 .cotangent = &cotangent,
                 .heads = 4,
                 .mask = TB_EVAL_MASK_NONE};
    tb_eval_result *r;
    TB_TRY(tb_eval_run(ctx, &e, &r));
    collect(l, p, r);
    tb_eval_free(ctx, r);
    return TB_OK;
}

/* Largest difference over the largest reference value; pure rounding noise (a
 * key bias has no gradient) counts against 1. */
static void check(tb_test *T, const char *file, const char *what,
                  const double *got, const double *want, size_t n)
{
    double worst = 0, size = 1;
    for (size_t i = 0; i < n; i++) {
        double d = tb_fabs(got[i] - want[i]);
        worst = d <= worst ? worst : d;
        size = tb_fabs(want[i]) > size ? tb_fabs(want[i]) : size;
    }
    if (!(worst <= 1e-12 * size))
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s off by %g of %g", file,
                     what, worst, size);
}

/* A tensor of theirs against the sum of all of ours that map to it. */
static void check_grad(tb_test *T, const char *file, tb_layer *l, size_t i)
{
    double want[D * H], got[D * H];
    const tb_map *m = &l->maps[i];
    memcpy(got, l->our_grad[i], sizeof got);
    for (size_t j = 0; j < l->nmaps; j++)
        if (j != i && l->maps[j].first == m->first &&
            tb_streq(l->maps[j].theirs, m->theirs))
            for (size_t e = 0; e < count_of(m); e++)
                got[e] += l->our_grad[j][e];
    TB_OKAY(T, read_all(T->ctx, l->f, "grad.", m->theirs, m->first, count_of(m),
                        want));
    check(T, file, m->ours, got, want, count_of(m));
}

static void check_file(tb_test *T, const char *path, size_t n)
{
    static tb_layer l;
    memset(&l, 0, sizeof l);
    tb_status s = load(T->ctx, path, n >= 2, &l);
    for (size_t p = 0; p < TB_LEN(part_runs) && s == TB_OK; p++)
        s = run_part(T->ctx, &l, texts[n], &part_runs[p]);
    if (s != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", file_names[n],
                     tb_error(T->ctx));
    check(T, file_names[n], "y", l.our_y, l.y, 2 * T5 * D);
    check(T, file_names[n], "dx", l.our_dx, l.dx, 2 * T5 * D);
    for (size_t i = 0; i < l.nmaps && s == TB_OK; i++)
        check_grad(T, file_names[n], &l, i);
    tb_safetensors_close(l.f);
}

TB_TEST(encoder_layers)
{
    for (size_t n = 0; n < TB_LEN(file_names); n++) {
        char name[80];
        tb_format(name, sizeof name,
                  "data/oracle-torch/encoder_layer_%s.safetensors",
                  file_names[n]);
        const char *path = tb_test_shared(T, name);
        if (!path)
            TB_SKIP(T, "shared data is not here");
        check_file(T, path, n);
    }
}
