/* SPDX-License-Identifier: MIT */
/* What holds of streams whatever the weights: mixing matrices that are doubly
 * stochastic keep the mean of several, and some updates keep a length. */
#include "model/symbolic.h"
#include "tb_test.h"

enum { TOKENS = 3, N = 4 };

static void open_layer(tb_test *T, const char *what, tb_block **b, tb_trial *t)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 2;
    s.width = 8;
    s.heads = 2;
    TB_OKAY(T, tb_block_load(T->ctx, what, b));
    TB_OKAY(T, tb_trial_open(t, T->ctx, *b, &s, 1, TOKENS, 7));
}

/* Rows and columns of each token's matrix at `node` sum to 1. */
static void check_sums(tb_test *T, const tb_trial *t, int node)
{
    const tb_symbolic s = tb_trial_symbolic(t);
    const double *a = tb_symbolic_value(&s, node);
    for (size_t m = 0; m < TOKENS; m++, a += N * N)
        for (size_t i = 0; i < N; i++) {
            double row = 0, column = 0;
            for (size_t k = 0; k < N; k++) {
                row += a[i * N + k];
                column += a[k * N + i];
            }
            TB_NEAR(T, row, 1, 1e-4);
            TB_NEAR(T, column, 1, 1e-4);
        }
}

/* The sum over all rows of what `weights` makes of the streams is their sum. */
static void check_mean(tb_test *T, const tb_trial *t, int weights)
{
    const tb_symbolic s = tb_trial_symbolic(t);
    const tb_graph *g = t->graph;
    double before[TOKENS * 8] = {0}, after[TOKENS * 8] = {0};
    int rows = 0;
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *n = &g->nodes[i];
        if (n->op != &tb_op_mix || n->in[n->nin - 1] != weights)
            continue;
        for (size_t e = 0; e < TOKENS * 8; e++) {
            after[e] += tb_symbolic_value(&s, i)[e];
            for (int k = 0; k < n->nin - 1 && rows == 0; k++)
                before[e] += tb_symbolic_value(&s, n->in[k])[e];
        }
        rows++;
    }
    TB_CHECK(T, rows == N);
    TB_NEAR_N(T, after, before, TOKENS * 8, 1e-3);
}

TB_TEST(mixing_keeps_the_mean)
{
    static const char *const blocks[] = {"mhc", "mhc-deepseek-v4"};
    for (size_t k = 0; k < TB_LEN(blocks); k++) {
        tb_block *b;
        tb_trial t;
        int found = 0;
        open_layer(T, blocks[k], &b, &t);
        for (int i = 0; i < t.graph->nnodes; i++)
            if (t.graph->nodes[i].op == &tb_op_sinkhorn) {
                check_sums(T, &t, i);
                check_mean(T, &t, i);
                found++;
            }
        TB_CHECK(T, found == 2); /* one in each sublayer */
        tb_trial_close(&t);
        tb_block_destroy(T->ctx, b);
    }
}

/* The stream of nGPT has length 1 after every sublayer. */
TB_TEST(streams_of_length_1)
{
    tb_block *b;
    tb_trial t;
    open_layer(T, "ngpt", &b, &t);
    const tb_symbolic s = tb_trial_symbolic(&t);
    TB_CHECK(T, t.graph->nboundaries == 3); /* in, attention, network */
    for (int i = 1; i < t.graph->nboundaries; i++) {
        const double *x = tb_symbolic_value(&s, t.graph->boundaries[i].node);
        for (size_t m = 0; m < TOKENS; m++) {
            double square = 0;
            for (size_t e = m * 8; e < m * 8 + 8; e++)
                square += x[e] * x[e];
            TB_NEAR(T, square, 1, 1e-14);
        }
    }
    tb_trial_close(&t);
    tb_block_destroy(T->ctx, b);
}

/* The part of an orthogonal update along the stream is 0 but for eps. */
TB_TEST(orthogonal_updates)
{
    tb_block *b;
    tb_trial t;
    open_layer(T, "orthogonal", &b, &t);
    const tb_symbolic s = tb_trial_symbolic(&t);
    const double *x = tb_symbolic_value(&s, t.graph->boundaries[0].node);
    const double *y = tb_symbolic_value(&s, t.graph->boundaries[1].node);
    for (size_t m = 0; m < TOKENS; m++) {
        double along = 0;
        for (size_t i = m * 8; i < m * 8 + 8; i++)
            along += x[i] * (y[i] - x[i]);
        TB_NEAR(T, along, 0, 1e-5);
    }
    tb_trial_close(&t);
    tb_block_destroy(T->ctx, b);
}
