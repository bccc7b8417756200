/* SPDX-License-Identifier: MIT */
/* Updates by hand: clipping (C052, C056), decay by role (C118), sizes of
 * updates (C130), and the same bits for any number of threads (C123). */
#include "tb_test.h"
#include "train/optimizer.h"

enum { N = 256 }; /* flat elements of the small cases */

/* One vector of n elements as the whole model. */
typedef struct one {
    float w[N];
    tb_view view;
    tb_optimizer *o;
} one;

static const tb_adam plain = {0.9, 0.999, 1e-8, 0, 0};

static tb_status one_make(tb_test *T, one *c, size_t n, double start)
{
    *c = (one){.view = {.name = "w",
                        .role = TB_ROLE_VECTOR,
                        .shape = {TB_SHAPE_VECTOR, n, 1},
                        .count = n}};
    for (size_t i = 0; i < n; i++)
        c->w[i] = (float)start;
    return tb_optimizer_create(T->ctx, TB_F32, &c->view, 1, N, c->w, &c->o);
}

static void gradient(const one *c, size_t i, double g)
{
    ((float *)c->o->grads)[i] = (float)g;
}

/* C052 */
TB_TEST(clips_to_the_norm)
{
    one c;
    tb_update u;
    tb_adam p = plain;
    p.clip = 1;
    TB_OKAY(T, one_make(T, &c, 2, 0));
    gradient(&c, 0, 3);
    gradient(&c, 1, 4);
    TB_OKAY(T, tb_optimizer_step(c.o, &p, 1, 1e-3, &u));
    TB_CHECK(T, u.grad_norm == 5 && u.clipped);
    TB_NEAR(T, u.factor, 1 / (5 + 1e-6), 1e-15);
    TB_NEAR(T, u.grad_norm_after, 0.9999998, 1e-9);
    /* m = 0.1 g after one update: what was clipped is what was used */
    TB_NEAR(T, (double)((float *)c.o->m)[0] * 10, 0.59999988, 1e-6);
    TB_NEAR(T, (double)((float *)c.o->m)[1] * 10, 0.79999984, 1e-6);
    TB_CHECK(T, ((float *)c.o->grads)[0] == 3 && ((float *)c.o->grads)[1] == 4);
    tb_optimizer_destroy(c.o);
}

TB_TEST(does_not_clip_below_it_or_without_one)
{
    for (int with = 0; with < 2; with++) {
        one c;
        tb_update u;
        tb_adam p = plain;
        p.clip = with ? 6 : 0;
        TB_OKAY(T, one_make(T, &c, 2, 0));
        gradient(&c, 0, 3);
        gradient(&c, 1, 4);
        TB_OKAY(T, tb_optimizer_step(c.o, &p, 1, 1e-3, &u));
        TB_CHECK(T, !u.clipped && u.factor == 1);
        TB_CHECK(T, u.grad_norm_after == u.grad_norm);
        tb_optimizer_destroy(c.o);
    }
}

/* C056 A, B, D: squares that overflow floats, and nothing at all */
TB_TEST(clips_huge_gradients)
{
    static const struct {
        size_t n;
        double g, clip, norm, after;
    } cases[] = {{100, 1e20, 1, 1e21, 0.1},
                 {128, 1e19, 2, 1.1313708e20, 2 / 11.313708499},
                 {100, 0, 1, 0, 0}};
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        one c;
        tb_update u;
        tb_adam p = plain;
        p.clip = cases[i].clip;
        TB_OKAY(T, one_make(T, &c, cases[i].n, 0));
        for (size_t j = 0; j < cases[i].n; j++)
            gradient(&c, j, cases[i].g);
        TB_OKAY(T, tb_optimizer_step(c.o, &p, 1, 1e-3, &u));
        if (cases[i].norm > 0)
            TB_NEAR(T, u.grad_norm / cases[i].norm, 1, 1e-6);
        else
            TB_CHECK(T, u.grad_norm == 0 && !u.clipped);
        TB_NEAR(T, (double)((float *)c.o->m)[0] * 10, cases[i].after, 1e-6);
        tb_optimizer_destroy(c.o);
    }
}

/* C056 C: nothing is touched, the parameter is named */
TB_TEST(refuses_a_gradient_that_is_not_finite)
{
    static const double bad[] = {__builtin_inf(), -__builtin_inf(),
                                 __builtin_nan("")};
    for (size_t i = 0; i < TB_LEN(bad); i++) {
        one c;
        tb_update u;
        float before[N] = {0}, zero[N] = {0};
        TB_OKAY(T, one_make(T, &c, 100, 1.5));
        memcpy(before, c.w, sizeof before);
        gradient(&c, 3, 1);
        gradient(&c, 77, bad[i]);
        TB_FAILS(T, tb_optimizer_step(c.o, &plain, 1, 1e-3, &u),
                 TB_ERR_NONFINITE, "gradient of w");
        TB_CHECK(T, u.bad == &c.view);
        TB_SAME(T, c.w, before, sizeof before);
        TB_SAME(T, c.o->m, zero, sizeof zero);
        TB_SAME(T, c.o->v, zero, sizeof zero);
        tb_optimizer_destroy(c.o);
    }
}

/* C130: the size of the first update does not depend on that of g */
TB_TEST(first_update)
{
    static const double g[] = {1e-3, 1e3, 1e-8, 1e-20, 0, 1};
    static const double want[] = {0.99999, 1, 0.5, 1e-12, 0, 1};
    one c;
    tb_update u;
    TB_OKAY(T, one_make(T, &c, TB_LEN(g), 0));
    for (size_t i = 0; i < TB_LEN(g); i++)
        gradient(&c, i, g[i]);
    TB_OKAY(T, tb_optimizer_step(c.o, &plain, 1, 1e-3, &u));
    double sum = 0;
    for (size_t i = 0; i < TB_LEN(g); i++) {
        TB_NEAR(T, -(double)c.w[i] / 1e-3, want[i], 1e-6);
        sum += want[i] * want[i];
    }
    TB_CHECK(T, c.w[3] != 0); /* 1e-12 of a step is still one */
    TB_NEAR(T, u.update_norm / 1e-3, tb_sqrt(sum), 1e-6);
    TB_NEAR(T, u.weight_norm / 1e-3, tb_sqrt(sum), 1e-6);
    tb_optimizer_destroy(c.o);
}

/* C130: an infinite second moment would freeze the weight without a word */
TB_TEST(refuses_a_square_that_overflows)
{
    one c;
    tb_update u;
    TB_OKAY(T, one_make(T, &c, 100, 1));
    for (size_t i = 0; i < 100; i++)
        gradient(&c, i, 1e19); /* squares of 1e38 are floats */
    TB_OKAY(T, tb_optimizer_step(c.o, &plain, 1, 1e-3, &u));
    float before[N];
    memcpy(before, c.w, sizeof before);
    gradient(&c, 5, 1e20);
    TB_FAILS(T, tb_optimizer_step(c.o, &plain, 2, 1e-3, &u), TB_ERR_NONFINITE,
             "gradient of w");
    TB_SAME(T, c.w, before, sizeof before);
    tb_optimizer_destroy(c.o);
}

/* A weight that leaves the floats is found after the update. */
TB_TEST(reports_a_weight_that_overflows)
{
    one c;
    tb_update u;
    TB_OKAY(T, one_make(T, &c, 4, 1));
    gradient(&c, 2, 1);
    TB_FAILS(T, tb_optimizer_step(c.o, &plain, 1, 1e300, &u), TB_ERR_NONFINITE,
             "w: not finite after the update");
    TB_CHECK(T, u.bad == &c.view && !tb_isfinite(u.weight_norm));
    tb_optimizer_destroy(c.o);
}

/* C118 */
TB_TEST(decays_matrices_only)
{
    static const struct {
        const char *name;
        tb_role role;
        tb_shape_kind kind;
        size_t height, width;
    } rows[] = {
        {"w", TB_ROLE_MATRIX, TB_SHAPE_MATRIX, 3, 4},
        {"ln_1.weight", TB_ROLE_GAIN, TB_SHAPE_VECTOR, 1, 4},
        {"model.norm.weight", TB_ROLE_GAIN, TB_SHAPE_VECTOR, 1, 4},
        {"LayerNorm.weight", TB_ROLE_GAIN, TB_SHAPE_VECTOR, 1, 4},
        {"bias", TB_ROLE_BIAS, TB_SHAPE_VECTOR, 1, 4},
        {"rezero.a", TB_ROLE_SCALAR, TB_SHAPE_SCALAR, 1, 1},
        {"scalenorm.g", TB_ROLE_SCALAR, TB_SHAPE_SCALAR, 1, 1},
        {"layerscale.s", TB_ROLE_VECTOR, TB_SHAPE_VECTOR, 1, 4},
        {"row", TB_ROLE_MATRIX, TB_SHAPE_MATRIX, 1, 5},
        {"normal.weight", TB_ROLE_MATRIX, TB_SHAPE_MATRIX, 2, 2},
        {"embed.token", TB_ROLE_EMBEDDING, TB_SHAPE_MATRIX, 2, 4},
    };
    enum { ROWS = TB_LEN(rows) };
    tb_view views[ROWS];
    float w[ROWS * 16] = {0};
    tb_optimizer *o;
    tb_update u;
    const tb_adam p = {0.9, 0.999, 1e-8, 0.1, 1};
    for (size_t i = 0; i < ROWS; i++) {
        size_t n = rows[i].height * rows[i].width;
        views[i] =
            (tb_view){.name = rows[i].name,
                      .role = rows[i].role,
                      .shape = {rows[i].kind, rows[i].width, rows[i].height},
                      .offset = 16 * i,
                      .count = n};
        for (size_t j = 0; j < n; j++)
            w[16 * i + j] = 1;
    }
    TB_OKAY(T,
            tb_optimizer_create(T->ctx, TB_F32, views, ROWS, ROWS * 16, w, &o));
    TB_OKAY(T, tb_optimizer_step(o, &p, 1, 1, &u));
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < views[i].count; j++)
            TB_CHECK(T, w[16 * i + j] ==
                            (rows[i].role == TB_ROLE_MATRIX ? 1 - 0.1F : 1));
    TB_CHECK(T, u.ngroups == 6);
    for (size_t i = 0; i < u.ngroups; i++)
        TB_CHECK(T,
                 u.groups[i].decayed == tb_streq(u.groups[i].name, "matrix"));
    TB_CHECK(T, u.groups[0].tensors == 3 && u.groups[0].elements == 21);
    tb_optimizer_destroy(o);
}

/* In doubles too no square may overflow. */
TB_TEST(doubles_of_any_size)
{
    double w[16] = {0};
    tb_view view = {.name = "w",
                    .role = TB_ROLE_VECTOR,
                    .shape = {TB_SHAPE_VECTOR, 9, 1},
                    .count = 9};
    tb_optimizer *o;
    tb_update u;
    tb_adam p = plain;
    p.clip = 1;
    TB_OKAY(T, tb_optimizer_create(T->ctx, TB_F64, &view, 1, 16, w, &o));
    for (size_t i = 0; i < 9; i++)
        ((double *)o->grads)[i] = 1e300;
    TB_OKAY(T, tb_optimizer_step(o, &p, 1, 1e-3, &u));
    TB_NEAR(T, u.grad_norm / 3e300, 1, 1e-12);
    TB_NEAR(T, ((double *)o->m)[0] * 10, 1.0 / 3, 1e-12);
    ((double *)o->grads)[4] = 1e300;
    TB_FAILS(T, tb_optimizer_step(o, &plain, 2, 1e-3, &u), TB_ERR_NONFINITE,
             "gradient of w");
    tb_optimizer_destroy(o);
}

/* Adam's first update moves every weight with a gradient by lr. */
TB_TEST(rows_of_layers)
{
    enum { EACH = 16 };
    static const char *const name[] = {"layers.0.a", "layers.0.b", "layers.1.a",
                                       "head"};
    float w[4 * EACH];
    tb_view view[4];
    tb_train_layer rows[4];
    tb_optimizer *o;
    tb_update u;
    for (size_t i = 0; i < 4; i++)
        view[i] = (tb_view){.name = name[i],
                            .role = TB_ROLE_VECTOR,
                            .shape = {TB_SHAPE_VECTOR, EACH, 1},
                            .offset = i * EACH,
                            .count = EACH,
                            .layer = (size_t[]){1, 1, 2, 0}[i]};
    for (size_t i = 0; i < 4 * EACH; i++)
        w[i] = (float)(1 + i / EACH);
    TB_OKAY(T, tb_optimizer_create(T->ctx, TB_F32, view, 4, 4 * EACH, w, &o));
    for (size_t i = 0; i < 3 * EACH; i++) /* none for the head */
        ((float *)o->grads)[i] = i / EACH == 1 ? 2 : 1;
    TB_OKAY(T, tb_optimizer_step(o, &plain, 1, 1e-3, &u));
    TB_CHECK(T, tb_optimizer_layers(o, rows) == 3);
    TB_CHECK(T, rows[0].layer == 1 && rows[1].layer == 2 && !rows[2].layer);
    TB_CHECK(T, strcmp(rows[0].weight, "layers.0.b") == 0);
    TB_NEAR(T, rows[0].grad_norm, 8, 1e-12);
    /* of 16 weights of 1 and 16 of 2, less what they moved */
    TB_NEAR(T, rows[0].update_ratio / (1e-3 * tb_sqrt(2) / tb_sqrt(4.994002)),
            1, 1e-4);
    TB_NEAR(T, rows[1].update_ratio / (1e-3 / 2.999), 1, 1e-4);
    TB_CHECK(T, rows[2].update_ratio == 0);
    tb_optimizer_destroy(o);
}

/* Many pieces, as many threads as you like. */
TB_TEST(same_bits_for_any_number_of_threads)
{
    enum { BIG = 200000 };
    tb_view view = {.name = "w",
                    .role = TB_ROLE_MATRIX,
                    .shape = {TB_SHAPE_MATRIX, 400, 500},
                    .count = BIG};
    float *g = tb_alloc(T->ctx, BIG, sizeof *g);
    float *first = tb_alloc(T->ctx, BIG, sizeof *first);
    float *w = tb_alloc(T->ctx, BIG, sizeof *w);
    const tb_adam p = {0.9, 0.95, 1e-8, 0.1, 1};
    tb_update u, u1 = {0};
    tb_test_fill_wide(T, TB_F32, g, BIG);
    for (int threads = 1; threads <= 8; threads++) {
        tb_optimizer *o;
        tb_ctx_threads(T->ctx, threads);
        for (size_t i = 0; i < BIG; i++)
            w[i] = (float)i * 1e-5F;
        TB_OKAY(T, tb_optimizer_create(T->ctx, TB_F32, &view, 1, BIG, w, &o));
        memcpy(o->grads, g, BIG * sizeof *g);
        TB_OKAY(T, tb_optimizer_step(o, &p, 1, 1e-2, &u));
        if (threads == 1) {
            memcpy(first, w, BIG * sizeof *w);
            u1 = u;
        }
        TB_SAME(T, w, first, BIG * sizeof *w);
        TB_SAME(T, &u.grad_norm, &u1.grad_norm, sizeof(double));
        TB_SAME(T, &u.update_norm, &u1.update_norm, sizeof(double));
        TB_SAME(T, &u.weight_norm, &u1.weight_norm, sizeof(double));
        tb_optimizer_destroy(o);
    }
    tb_ctx_threads(T->ctx, 0);
    tb_free(T->ctx, g);
    tb_free(T->ctx, first);
    tb_free(T->ctx, w);
}
