/* SPDX-License-Identifier: MIT */
/* Ops whose row parts run together give the bits of ops that run one by one,
 * with all built-in blocks. Sums over rows too: their pieces are the same. Nor
 * does it show that gradients are written over values, or over old ones. */
#include "model/model.h"
#include "tb_test.h"

/* 96 rows: several pieces. */
enum { ROWS = 3, TIME = 32, VOCAB = 11 };

static tb_status settle(tb_test *T, const char *what, size_t width,
                        tb_block **b, tb_model **m)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 2;
    s.width = width;
    s.heads = 2;
    s.ffn = 2 * width;
    s.vocab = VOCAB;
    s.context = TIME;
    s.dropout = 0.2;
    TB_TRY(tb_block_load(T->ctx, what, b));
    TB_TRY(tb_model_create(T->ctx, *b, &s, TB_F32, m));
    return tb_model_init(*m, 1);
}

/* Loss and gradients of one step. */
static tb_status step(tb_model *m, unsigned passes, double *loss, float *grads)
{
    int32_t tokens[ROWS * TIME], targets[ROWS * TIME];
    for (size_t i = 0; i < ROWS * TIME; i++) {
        tokens[i] = (int32_t)(i * i % VOCAB);
        targets[i] = (int32_t)((i * 7 + 3) % VOCAB);
    }
    tb_batch b = {.tokens = tokens, .targets = targets, .seed = 5, .step = 1};
    memset(grads, passes & TB_PASS_ONCE ? 0xff : 0,
           m->nelements * sizeof *grads);
    TB_TRY(tb_model_bind(m, ROWS, TIME, passes));
    TB_TRY(tb_model_forward(m, &b, loss));
    if (passes & TB_PASS_ONCE)
        return tb_model_gradients(m, &b, grads);
    return passes & TB_PASS_BWD ? tb_model_backward(m, &b, grads) : TB_OK;
}

/* Between views may stand what nobody reads; -0 is 0. */
static bool same_gradients(const tb_model *m, const float *a, const float *b)
{
    for (size_t v = 0; v < m->nviews; v++) {
        const tb_view *w = &m->views[v];
        for (size_t i = w->offset;
             w->role != TB_ROLE_BUFFER && i < w->offset + w->count; i++)
            if (!(a[i] == b[i]))
                return false;
    }
    return true;
}

static void same(tb_test *T, const char *what, size_t width)
{
    tb_block *b = NULL;
    tb_model *m = NULL;
    double loss[4];
    if (settle(T, what, width, &b, &m) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what, tb_error(T->ctx));
        return;
    }
    float *g = tb_test_guarded(T, m->nelements * sizeof *g);
    float *alone = tb_test_guarded(T, m->nelements * sizeof *g);
    float *once = tb_test_guarded(T, m->nelements * sizeof *g);
    TB_OKAY(T, step(m, 0, &loss[0], g));
    TB_OKAY(T, step(m, TB_PASS_BWD, &loss[1], g));
    TB_OKAY(T, step(m, TB_PASS_BWD | TB_PASS_ALONE, &loss[2], alone));
    TB_CHECK(T, loss[0] == loss[2] && loss[1] == loss[2]);
    TB_OKAY(T, step(m, TB_PASS_BWD | TB_PASS_ONCE, &loss[3], once));
    TB_CHECK(T, loss[3] == loss[2]);
    if (!same_gradients(m, g, once))
        tb_test_fail(T, __FILE__, __LINE__, "%s: other over values", what);
    if (!same_gradients(m, g, alone))
        tb_test_fail(T, __FILE__, __LINE__, "%s: other gradients", what);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(all_blocks_together_as_alone)
{
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < tb_builtin_count(); i++)
        same(T, tb_builtin_name(i), 24);
    tb_ctx_exact(T->ctx, false);
}

/* Segments longer than one holds, values read across them, gates, scalars. */
TB_TEST(long_sums_together_as_alone)
{
    tb_ctx_exact(T->ctx, true);
    same(T,
         "x = x + 0.5*silu(F(norm(x))) - 0.1*tanh(x) + 0.2*gelu(x) - "
         "0.3*sigmoid(x)*x + 0.1*norm(2*x + 1) - 0.2*silu(x) + "
         "0.1*gelu(norm(x))*x + drop(x, 0.1)",
         24);
    tb_ctx_exact(T->ctx, false);
}

/* So wide that a piece is several tiles. */
TB_TEST(tiles_together_as_alone)
{
    static const char *const blocks[] = {
        "pre-ln", "llama", "sandwich", "rezero",
        "x = x + 0.5*drop(norm(F(norm(x)))) + 0.1*silu(2*norm(x) + 1)"};
    tb_ctx_exact(T->ctx, true);
    for (size_t i = 0; i < TB_LEN(blocks); i++)
        same(T, blocks[i], 460);
    tb_ctx_exact(T->ctx, false);
}
