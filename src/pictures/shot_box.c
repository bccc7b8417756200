/* SPDX-License-Identifier: MIT */
/* The box F of the first shots by the engine: its equation as text, its
 * values, Jacobian, differences, and the two parts of a cotangent. */
#include "pictures/shot_box.h"

/* --- lists ---------------------------------------------------------------- */

double shot_dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

double shot_norm(const double *v, size_t n)
{
    return tb_sqrt(shot_dot(v, v, n));
}

double shot_far(const double *a, const double *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = tb_max2(most, tb_fabs(b ? a[i] - b[i] : a[i]));
    return most;
}

void shot_arrow(uint64_t seed, size_t n, double *g)
{
    tb_rng r = tb_rng_make(seed, "arrow");
    for (size_t i = 0; i < n; i++)
        g[i] = tb_rng_normal(r, i);
    double length = shot_norm(g, n);
    for (size_t i = 0; i < n; i++)
        g[i] /= length;
}

void shot_list_tell(tb_shot *s, const char *name, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char id[48];
        tb_format(id, sizeof id, "%s.%zu", name, i + 1);
        const char *label = tb_subscript(&s->arena, name, i + 1);
        shot_tell(s, id, label ? label : id, v[i]);
    }
}

/* --- inputs --------------------------------------------------------------- */

tb_status shot_list_over(tb_shot *s, const char *name, size_t d,
                         const double **out)
{
    const shot_value *v = shot_get(s, name);
    double *list = shot_alloc(s, d, sizeof *list);
    if (!list)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < d; i++)
        list[i] = v->data[i % v->n];
    *out = list;
    return TB_OK;
}

tb_status shot_list_read(tb_shot *s, const char *name, const double **out,
                         size_t *d)
{
    const shot_value *x = shot_get(s, name), *length = shot_get(s, "d");
    *d = x->set && !length->set ? x->n : (size_t)length->data[0];
    if (*d < SHOT_LIST_LEAST)
        return TB_FAIL(s->ctx, TB_ERR_SHAPE,
                       "set %s: got %zu number, wanted %d to %d", name, *d,
                       SHOT_LIST_LEAST, SHOT_LIST_MOST);
    return shot_list_over(s, name, *d, out);
}

/* Tokens before the shown one, of its mean and spread. */
static void fill_others(const shot_box *b, double *all)
{
    double mean = 0, square = 0;
    tb_rng r = tb_rng_make(b->seed, "tokens");
    for (size_t i = 0; i < b->d; i++)
        mean += b->x[i] / (double)b->d;
    for (size_t i = 0; i < b->d; i++)
        square += (b->x[i] - mean) * (b->x[i] - mean) / (double)b->d;
    size_t before = (b->tokens - 1) * b->d;
    for (size_t i = 0; i < before; i++)
        all[i] = mean + tb_sqrt(square) * tb_rng_normal(r, i);
    memcpy(all + before, b->x, b->d * sizeof *all);
}

static const char *in_words(tb_shot *s, const shot_box *b)
{
    char scale[TB_SHOW_CHARS];
    const char *what = b->name;
    if (b->kind == SHOT_BOX_ATTENTION)
        what = shot_text(s, "%s over %zu token%s", what, b->tokens,
                         b->tokens == 1 ? "" : "s");
    return b->scale == 1 || !what ? what
                                  : shot_text(s, "%s, times %s", what,
                                              tb_show_number(b->scale, scale));
}

tb_status shot_box_read(tb_shot *s, shot_box *b)
{
    *b = (shot_box){.kind = (shot_box_kind)shot_choice(s, "F"),
                    .name = shot_get(s, "F")->text,
                    .scale = shot_num(s, "scale"),
                    .seed = (uint64_t)shot_num(s, "seed"),
                    .tokens = 1};
    if (b->kind == SHOT_BOX_ATTENTION)
        b->tokens = shot_whole(s, "T");
    b->what = in_words(s, b);
    TB_TRY(shot_list_read(s, "x", &b->x, &b->d));
    double *all = shot_alloc(s, b->tokens * b->d, sizeof *all);
    if (!all)
        return TB_ERR_MEMORY;
    fill_others(b, all);
    b->all = all;
    return TB_OK;
}

/* --- equations ------------------------------------------------------------ */

/* scale * F of the stream `in`, after the stream `lane`; NULL: alone. */
static const char *equation(tb_shot *s, const shot_box *b, const char *lane,
                            const char *in)
{
    static const struct {
        const char *define, *name;
    } boxes[] = {
        [SHOT_BOX_LINEAR] = {"linear_box(x) = project(x, d)\n", "linear_box"},
        [SHOT_BOX_RELU] = {"ffn(x) = down(relu(up(x)))\n", "ffn"},
        [SHOT_BOX_ATTENTION] = {"", "attn"},
        [SHOT_BOX_ZERO] = {"zero_box(x) = 0*x\n", "zero_box"}};
    char scale[TB_DOUBLE_CHARS];
    tb_double_text(b->scale, scale);
    return shot_text(s, "%s%s%s%s*%s(%s)", boxes[b->kind].define,
                     lane ? lane : "", lane ? " + " : "", scale,
                     boxes[b->kind].name, in);
}

static tb_eval_value tokens_of(const shot_box *b, const char *name)
{
    return (tb_eval_value){name, 2, {b->tokens, b->d}, b->all};
}

/* The last token's row of the value. */
static tb_status value_of(tb_shot *s, const shot_box *b, const char *text,
                          double *out)
{
    const tb_eval_value x = tokens_of(b, "x");
    tb_eval e = {.text = text, .sets = &x, .nsets = 1, .seed = b->seed};
    tb_eval_result *r;
    if (!text)
        return TB_ERR_MEMORY;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    memcpy(out, r->y.data + (b->tokens - 1) * b->d, b->d * sizeof *out);
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

tb_status shot_box_values(tb_shot *s, const shot_box *b, double *f, double *y)
{
    if (f)
        TB_TRY(value_of(s, b, equation(s, b, NULL, "x"), f));
    if (y)
        TB_TRY(value_of(s, b, equation(s, b, b->skip ? "x" : NULL, "x"), y));
    return TB_OK;
}

tb_status shot_box_jacobian(tb_shot *s, const shot_box *b, double *j)
{
    const tb_eval_value x = tokens_of(b, "x");
    tb_eval e = {.text = equation(s, b, b->skip ? "x" : NULL, "x"),
                 .sets = &x,
                 .nsets = 1,
                 .seed = b->seed,
                 .jacobian = "x",
                 .jacobian_blocks = true};
    tb_eval_result *r;
    size_t n = b->d * b->d;
    if (!e.text)
        return TB_ERR_MEMORY;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    memcpy(j, r->jacobian.data + (b->tokens - 1) * n, n * sizeof *j);
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

/* --- differences ---------------------------------------------------------- */

static double step_at(const shot_box *b, double h, size_t i)
{
    return h * tb_max2(1, tb_fabs(b->x[i]));
}

/* All nudged lists as one batch: for each step and number up, then down. */
static void nudge_all(const shot_box *b, const double *h, size_t n, double *x)
{
    size_t one = b->tokens * b->d, last = one - b->d;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < b->d; i++)
            for (int sign = 1; sign >= -1; sign -= 2, x += one) {
                memcpy(x, b->all, one * sizeof *x);
                x[last + i] += sign * step_at(b, h[k], i);
            }
}

/* y holds one row of d for every nudged list; x + step is rounded, so the
 * step is what it became. */
static void divide_all(const shot_box *b, const double *h, size_t n,
                       const double *y, double *j)
{
    size_t one = b->tokens * b->d, last = one - b->d;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < b->d; i++, y += 2 * one) {
            double step = step_at(b, h[k], i);
            double wide = (b->x[i] + step) - (b->x[i] - step);
            for (size_t o = 0; o < b->d; o++)
                j[(k * b->d + o) * b->d + i] =
                    wide > 0 ? (y[last + o] - y[one + last + o]) / wide : 0;
        }
}

tb_status shot_box_differences(tb_shot *s, const shot_box *b, const double *h,
                               size_t n, double *j)
{
    size_t lists = 2 * n * b->d, each = b->tokens * b->d;
    double *x = shot_alloc(s, lists * each, sizeof *x);
    if (!x)
        return TB_ERR_MEMORY;
    nudge_all(b, h, n, x);
    const tb_eval_value all = {"x", 3, {lists, b->tokens, b->d}, x};
    tb_eval e = {.text = equation(s, b, b->skip ? "x" : NULL, "x"),
                 .sets = &all,
                 .nsets = 1,
                 .seed = b->seed};
    tb_eval_result *r;
    if (!e.text)
        return TB_ERR_MEMORY;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    divide_all(b, h, n, r->y.data, j);
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

/* --- backward ------------------------------------------------------------- */

/* d x.name of a cotangent that is g at the last token; zeros if the equation
 * has no such stream. */
static tb_status pull(tb_shot *s, const shot_box *b, const char *text,
                      const char *const *names, size_t n, const double *g,
                      double *const *out)
{
    tb_eval_value sets[2];
    size_t last = (b->tokens - 1) * b->d;
    double *full = shot_alloc(s, b->tokens * b->d, sizeof *full);
    if (!full || !text)
        return TB_ERR_MEMORY;
    memset(full, 0, last * sizeof *full);
    memcpy(full + last, g, b->d * sizeof *full);
    for (size_t i = 0; i < n; i++)
        sets[i] = tokens_of(b, names[i]);
    tb_eval_value cotangent = {"y", 2, {b->tokens, b->d}, full};
    tb_eval e = {.text = text,
                 .sets = sets,
                 .nsets = n,
                 .seed = b->seed,
                 .cotangent = &cotangent};
    tb_eval_result *r;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < r->ngrads; k++)
            if (tb_streq(r->grads[k].name, names[i]))
                memcpy(out[i], r->grads[k].data + last, b->d * sizeof *out[i]);
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

/* The same number under two names has two gradients. */
tb_status shot_box_pull(tb_shot *s, const shot_box *b, const double *g,
                        double *skip, double *box, double *both)
{
    static const char *const two[] = {"x", "u"}, *const one[] = {"x"};
    if (b->skip) {
        TB_TRY(pull(s, b, equation(s, b, "x", "u"), two, 2, g,
                    (double *[]){skip, box}));
    } else {
        memset(skip, 0, b->d * sizeof *skip);
        TB_TRY(pull(s, b, equation(s, b, NULL, "x"), one, 1, g,
                    (double *[]){box}));
    }
    return pull(s, b, equation(s, b, b->skip ? "x" : NULL, "x"), one, 1, g,
                (double *[]){both});
}
