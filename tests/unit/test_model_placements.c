/* SPDX-License-Identifier: MIT */
/* Initial weights of the placements against the papers' constants: what a
 * model of each depth says it starts with, over the plain Xavier start. */
#include "model_help.h"
#include "model/parts.h"

static const size_t depths[] = {6, 12, 18, 24, 48, 100};

typedef struct tb_pair {
    tb_block *b;
    tb_model *m;
} tb_pair;

static tb_status open_pair(tb_test *T, const char *what, size_t depth,
                           tb_pair *p)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = depth;
    s.width = 8;
    s.heads = 2;
    s.ffn = 24;
    *p = (tb_pair){0};
    TB_TRY(tb_block_load(T->ctx, what, &p->b));
    return tb_model_create(T->ctx, p->b, &s, TB_F32, &p->m);
}

static void close_pair(tb_test *T, tb_pair *p)
{
    tb_model_destroy(p->m);
    if (p->b)
        tb_block_destroy(T->ctx, p->b);
}

/* Standard deviation or value of a view's start. */
static double start(tb_test *T, const tb_model *m, const char *name)
{
    const tb_view *v = tb_model_view(m, name);
    if (v)
        return m->starts[v - m->views].value;
    tb_test_fail(T, __FILE__, __LINE__, "no %s", name);
    return __builtin_nan("");
}

static double xavier(size_t in, size_t out)
{
    return tb_sqrt(2.0 / (double)(in + out));
}

/* Xavier gains of the matrices of the first and last block: `wide` where a
 * paper scales, 1 on queries and keys. */
static void gains(tb_test *T, const char *what, size_t depth, double want,
                  double tolerance)
{
    static const struct {
        const char *name;
        size_t in, out;
        bool scaled;
    } rows[] = {{"attn.q", 8, 8, false}, {"attn.k", 8, 8, false},
                {"attn.v", 8, 8, true},  {"attn.o", 8, 8, true},
                {"ffn.up", 8, 24, true}, {"ffn.down", 24, 8, true}};
    const size_t layers[] = {0, depth - 1};
    tb_pair p;
    TB_OKAY(T, open_pair(T, what, depth, &p));
    for (size_t i = 0; i < 2 * TB_LEN(rows); i++) {
        size_t r = i / 2;
        char name[64];
        tb_format(name, sizeof name, "layers.%zu.%s.weight", layers[i % 2],
                  rows[r].name);
        TB_NEAR(T, start(T, p.m, name) / xavier(rows[r].in, rows[r].out),
                rows[r].scaled ? want : 1, tolerance);
    }
    close_pair(T, &p);
}

static void gains_by_depth(tb_test *T, const char *what, const double want[6])
{
    for (size_t i = 0; i < TB_LEN(depths); i++)
        gains(T, what, depths[i], want[i], 1e-6);
}

#define RULE(gain)                                                             \
    "x = norm(x + F(x))\ninit: ffn.*, attn.v, attn.o: xavier(" gain ")"

/* Wang et al. 2022; torchscale's encoder has 1.15 for the paper's 0.87. */
TB_TEST(deepnorm_beta)
{
    static const double only[] = {0.379918, 0.319472, 0.288675,
                                  0.268642, 0.225901, 0.188030};
    static const double encoder[] = {0.496989, 0.400198, 0.352571,
                                     0.322258, 0.259496, 0.206310};
    static const double torchscale[] = {0.656940, 0.528998, 0.466042,
                                        0.425973, 0.343013, 0.272708};
    static const double decoder[] = {0.343295, 0.288675, 0.260847,
                                     0.242746, 0.204124, 0.169904};
    gains_by_depth(T, "deepnorm", only);
    gains_by_depth(T, RULE("0.87*(N^4*M)^(-1/16)"), encoder);
    gains_by_depth(T, RULE("1.15*(N^4*M)^(-1/16)"), torchscale);
    gains_by_depth(T, RULE("(12*M)^-0.25"), decoder);
    gains(T, "deepnorm", 500, 0.125743, 1e-6);
}

/* Wang H. et al. 2022 */
TB_TEST(sub_ln_gain)
{
    static const double only[] = {1.576359, 1.782710, 1.893018,
                                  1.967537, 2.136434, 2.301807};
    static const double decoder[] = {1.700109, 1.893018, 1.997244,
                                     2.068010, 2.229308, 2.388259};
    static const struct {
        size_t depth;
        double gain;
    } encoder[] = {{6, 1.547288}, {12, 1.948385}, {24, 2.349172}};
    gains_by_depth(T, "sub-ln", only);
    gains_by_depth(T, RULE("sqrt(log(3*M))"), decoder);
    for (size_t i = 0; i < TB_LEN(encoder); i++)
        gains(T, RULE("sqrt(log(3*M)*log(2*N)/3)"), encoder[i].depth,
              encoder[i].gain, 1e-6);
}

/* Huang et al. 2020; embeddings are normal(d^-0.5) times the factor. */
TB_TEST(t_fixup_factors)
{
    static const double encoder[] = {0.428092, 0.359981, 0.325280,
                                     0.302707, 0.254545, 0.211872};
    static const double decoder[] = {0.368894, 0.310202, 0.280299,
                                     0.260847, 0.219346, 0.182574};
    gains_by_depth(T, "t-fixup", encoder);
    gains_by_depth(T, RULE("(9*M)^-0.25"), decoder);
    for (size_t i = 0; i < TB_LEN(depths); i++) {
        tb_pair p;
        TB_OKAY(T, open_pair(T, "t-fixup", depths[i], &p));
        double std = start(T, p.m, "embed.token.weight");
        TB_NEAR(T, std * tb_sqrt(8), decoder[i], 1e-6);
        close_pair(T, &p);
    }
}

/* --- constants by role ---------------------------------------------------- */

static tb_status open_both(tb_test *T, const char *what, size_t n, size_t m,
                           tb_pair *p)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.stack = TB_STACKS_BOTH;
    s.depth = n;
    s.decoder_depth = m;
    s.width = 8;
    s.heads = 2;
    s.ffn = 24;
    *p = (tb_pair){0};
    TB_TRY(tb_block_load(T->ctx, what, &p->b));
    return tb_model_create(T->ctx, p->b, &s, TB_F32, &p->m);
}

/* Gain of the matrices a paper scales, 1 on queries and keys; `cross` on the
 * values and outputs of cross-attention. */
static void role_gains(tb_test *T, const tb_model *m, const char *side,
                       double want, double cross)
{
    const struct {
        const char *name;
        size_t in, out;
        double gain;
    } rows[] = {{"attn.q", 8, 8, 1},      {"attn.k", 8, 8, 1},
                {"attn.v", 8, 8, want},   {"attn.o", 8, 8, want},
                {"ffn.up", 8, 24, want},  {"ffn.down", 24, 8, want},
                {"cross.q", 8, 8, 1},     {"cross.k", 8, 8, 1},
                {"cross.v", 8, 8, cross}, {"cross.o", 8, 8, cross}};
    size_t n = side[0] == 'd' ? TB_LEN(rows) : 6;
    for (size_t i = 0; i < n; i++) {
        char name[64];
        tb_format(name, sizeof name, "%s.layers.1.%s.weight", side,
                  rows[i].name);
        TB_NEAR(T, start(T, m, name) / xavier(rows[i].in, rows[i].out),
                rows[i].gain, 1e-6);
    }
}

/* The constant on the skip of a side's blocks. */
static double skip_of(const tb_model *m, tb_side side)
{
    for (size_t p = 0; p < m->nparts; p++) {
        const tb_graph *g = tb_model_graph(m, p);
        if (tb_model_role(m, p) != TB_PART_LAYER || tb_model_side(m, p) != side)
            continue;
        for (int i = 0; i < g->nnodes; i++)
            if (g->nodes[i].op == &tb_op_affine)
                return tb_model_attrs(m, p)[i][TB_ATTR_AFFINE_SCALE];
    }
    return __builtin_nan("");
}

/* C045 and placements 4.2: alpha and beta of each role. */
TB_TEST(deepnorm_of_two_stacks)
{
    static const struct {
        size_t n, m;
        double encoder[2], decoder[2];
    } cases[] = {
        {6, 6, {1.4179381, 0.4969892}, {2.0597671, 0.3432945}},
        {12, 12, {1.760878, 0.400198}, {2.449490, 0.288675}},
        {18, 6, {1.8661115, 0.3776302}, {2.0597671, 0.3432945}},
        {6, 18, {1.5187188, 0.4640095}, {2.7108060, 0.2608474}},
        {24, 24, {2.186760, 0.322258}, {2.912951, 0.242746}},
        {48, 48, {2.715644, 0.259496}, {3.464102, 0.204124}},
        {100, 100, {3.415742, 0.206310}, {4.161791, 0.169904}},
    };
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        tb_pair p;
        TB_OKAY(T, open_both(T, "deepnorm", cases[i].n, cases[i].m, &p));
        TB_NEAR(T, skip_of(p.m, TB_SIDE_ENCODER), cases[i].encoder[0], 1e-6);
        TB_NEAR(T, skip_of(p.m, TB_SIDE_DECODER), cases[i].decoder[0], 1e-6);
        role_gains(T, p.m, "encoder", cases[i].encoder[1], 1);
        role_gains(T, p.m, "decoder", cases[i].decoder[1], cases[i].decoder[1]);
        TB_NEAR(T, start(T, p.m, "embed.token.weight"), 1, 0);
        TB_NEAR(T, start(T, p.m, "head.weight"), xavier(8, 256), 1e-12);
        close_pair(T, &p);
    }
}

/* Placements 4.3 and 4.5. */
TB_TEST(sub_ln_and_t_fixup_of_two_stacks)
{
    static const struct {
        size_t depth;
        double sub[2], fixup[2];
    } cases[] = {
        {6, {1.547288, 1.700109}, {0.428092, 0.368894}},
        {12, {1.948385, 1.893018}, {0.359981, 0.310202}},
        {24, {2.349172, 2.068010}, {0.302707, 0.260847}},
    };
    for (size_t i = 0; i < TB_LEN(cases); i++) {
        size_t n = cases[i].depth;
        tb_pair p;
        TB_OKAY(T, open_both(T, "sub-ln", n, n, &p));
        role_gains(T, p.m, "encoder", cases[i].sub[0], 1);
        role_gains(T, p.m, "decoder", cases[i].sub[1], 1);
        close_pair(T, &p);
        TB_OKAY(T, open_both(T, "t-fixup", n, n, &p));
        role_gains(T, p.m, "encoder", cases[i].fixup[0], 1);
        role_gains(T, p.m, "decoder", cases[i].fixup[1], cases[i].fixup[1]);
        TB_NEAR(T, start(T, p.m, "embed.token.weight") * tb_sqrt(8),
                cases[i].fixup[1], 1e-6);
        close_pair(T, &p);
    }
}

TB_TEST(glm_130b_gain)
{
    static const double want[] = {0.288675, 0.204124, 0.166667,
                                  0.144338, 0.102062, 0.0707107};
    gains_by_depth(T, "glm-130b", want);
}

/* Marian's rule: every matrix of block l by 1/sqrt(l), queries and keys too. */
TB_TEST(ds_init_by_block)
{
    tb_pair p;
    TB_OKAY(T, open_pair(T, "ds-init", 9, &p));
    TB_NEAR(T, start(T, p.m, "layers.0.attn.q.weight"), xavier(8, 8), 1e-15);
    TB_NEAR(T, start(T, p.m, "layers.3.attn.q.weight"), xavier(8, 8) / 2,
            1e-15);
    TB_NEAR(T, start(T, p.m, "layers.8.ffn.down.weight"), xavier(8, 24) / 3,
            1e-15);
    close_pair(T, &p);
}

TB_TEST(norms_with_numbers_of_their_own)
{
    static const struct {
        const char *block, *name;
        double want;
    } rows[] = {
        {"scalenorm", "layers.1.attn.norm.length", 2.8284271247461903},
        {"scalenorm", "final.norm.length", 2.8284271247461903},
        {"scalenorm", "layers.0.ffn.up.weight", 0.22360679774997896},
        {"dyt", "layers.0.ffn.norm.alpha", 0.5},
        {"dyt", "final.norm.gain", 1},
        {"derf", "layers.1.attn.norm.alpha", 0.5},
        {"derf", "layers.1.attn.norm.shift", 0},
        {"derf", "final.norm.bias", 0},
        /* the length of a part */
        {"x = x + F(scalenorm(x, groups=2))", "layers.0.attn.norm.length", 2},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_pair p;
        TB_OKAY(T, open_pair(T, rows[i].block, 2, &p));
        TB_NEAR(T, start(T, p.m, rows[i].name), rows[i].want, 1e-15);
        close_pair(T, &p);
    }
}

/* 0.02, and 0.02/sqrt(2N) on the two matrices that write to the stream. */
TB_TEST(scaled_outputs)
{
    static const char *const blocks[] = {"gpt-2", "sandwich", "hybridnorm",
                                         "hybridnorm-star"};
    for (size_t b = 0; b < TB_LEN(blocks); b++)
        for (size_t i = 0; i < TB_LEN(depths); i++) {
            tb_pair p;
            double small = 0.02 / tb_sqrt(2.0 * (double)depths[i]);
            TB_OKAY(T, open_pair(T, blocks[b], depths[i], &p));
            TB_NEAR(T, start(T, p.m, "layers.1.attn.o.weight"), small, 1e-15);
            TB_NEAR(T, start(T, p.m, "layers.1.ffn.down.weight"), small, 1e-15);
            TB_NEAR(T, start(T, p.m, "layers.1.ffn.up.weight"), 0.02, 1e-15);
            TB_NEAR(T, start(T, p.m, "embed.token.weight"), 0.02, 1e-15);
            close_pair(T, &p);
        }
}

/* What starts at a value of its own. */
TB_TEST(single_starts)
{
    static const struct {
        const char *block, *name;
        double want;
    } rows[] = {
        {"dssn", "layers.0.attn.norm2.gain", 0.2},
        {"dssn", "layers.24.ffn.norm2.gain", 0.2},
        {"dssn", "layers.0.attn.norm.gain", 1},
        {"dssn", "final.norm.gain", 1},
        {"swin-v2", "layers.0.attn.norm.gain", 0},
        {"swin-v2", "layers.0.attn.norm.bias", 0},
        {"swin-v2", "final.norm.gain", 1},
        {"swin-v2", "layers.0.ffn.up.weight", 0.02},
        {"skipinit", "layers.3.ffn.scalar", 0},
        {"rezero", "layers.3.a", 0},
        {"gpas", "layers.3.g", 0},
        {"gemma-4", "layers.3.a", 1},
        {"admin", "layers.3.attn.vector", 1},
        {"layerscale", "layers.3.attn.vector", 1e-5},
        {"mix-ln", "embed.token.weight", 0.63245553203367588},
        {"gtrxl", "layers.3.a_z.bias", -2},
        {"gtrxl", "layers.3.f_z.bias", -2},
        {"gtrxl", "layers.3.a_r.bias", 0},
        {"highway", "layers.3.t_a.bias", -3},
        {"dlcl", "layers.0.a", 1},
        {"dlcl", "layers.3.a", 0.25},
        {"dlcl", "final.a", 1.0 / 26},
        {"attention-residuals", "layers.3.wa.weight", 0},
        {"attention-residuals", "layers.24.wf.weight", 0},
        {"muddformer", "layers.3.ways.weight", 0},
        {"modded-nanogpt", "layers.3.attn.scalar", 1.0488088481701516},
        {"modded-nanogpt", "layers.3.attn.scalar2", 1},
        {"modded-nanogpt", "layers.3.attn.scalar3", 0},
        {"modded-nanogpt", "layers.20.scalar", -1.5},
        {"modded-nanogpt", "layers.3.ffn.down.weight", 0},
        /* sublayer j = 2(l-1)+k-1 from 0 reads stream j mod 4 */
        {"hyper-connections", "layers.0.attn.vector", 1},
        {"hyper-connections", "layers.0.ffn.vector", 2},
        {"hyper-connections", "layers.1.attn.vector", 3},
        {"hyper-connections", "layers.1.ffn.vector", 4},
        {"hyper-connections", "layers.2.attn.vector", 1},
        {"hyper-connections", "layers.7.ffn.vector", 4},
        {"hyper-connections", "layers.7.ffn.vector3", 2},
        {"hyper-connections", "layers.7.ffn.scalar", 1},
        {"dynamic-hyper-connections", "layers.0.vector", 1},
        {"dynamic-hyper-connections", "layers.1.vector6", 4},
        {"dynamic-hyper-connections", "layers.1.b_a", 0.01},
        {"dynamic-hyper-connections", "layers.1.b_wm.weight", 0},
        {"mhc", "layers.1.attn.scalar3", 0.01},
        {"mhc", "layers.1.ffn.vector3", 0},
        {"mhc-deepseek-v4", "final.scalar", 0.01},
        {"altup", "layers.1.predict.weight", 1e-4},
        {"altup", "layers.1.correct.weight", 1e-2},
        /* L = 2 N = 50 branches */
        {"fixup", "layers.3.ffn.down.weight", 0},
        {"fixup", "layers.3.attn.o.weight", 0},
        {"fixup", "layers.3.ffn.up.weight", 0.12247448713915891},
        {"fixup", "layers.3.attn.v.weight", 0.3190464866164631},
        {"fixup", "layers.3.attn.scalar", 1},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_pair p;
        TB_OKAY(T, open_pair(T, rows[i].block, 25, &p));
        double got = start(T, p.m, rows[i].name);
        if (!(tb_fabs(got - rows[i].want) < 1e-15))
            tb_test_fail(T, __FILE__, __LINE__, "%s %s: got %g, wanted %g",
                         rows[i].block, rows[i].name, got, rows[i].want);
        close_pair(T, &p);
    }
}

/* DenseFormer's own output counts 1, all before it 0. */
TB_TEST(dense_starts)
{
    tb_pair p;
    TB_OKAY(T, open_pair(T, "denseformer", 25, &p));
    for (size_t l = 1; l <= 25; l++) {
        char name[32];
        tb_format(name, sizeof name, "layers.%zu.a", l - 1);
        const tb_view *v = tb_model_view(p.m, name);
        TB_REQUIRE(T, v && v->count == l + 1);
        TB_CHECK(T, p.m->starts[v - p.m->views].kind == TB_START_ONEHOT);
        TB_NEAR(T, start(T, p.m, name), (double)v->count, 0);
    }
    close_pair(T, &p);
}

/* --- what is known without a paper ---------------------------------------- */

/* Logits of a block on fixed tokens, all weights drawn from one seed. */
static void logits_of(tb_test *T, const char *what, const char *init,
                      size_t depth, double *out)
{
    enum { TIME = 7 };
    static const int32_t tokens[TIME] = {3, 1, 4, 1, 5, 9, 2};
    tb_settings s = TB_SETTINGS_UNSET;
    tb_block *b;
    tb_model *m;
    double loss;
    s.depth = depth;
    s.width = 8;
    s.heads = 2;
    s.context = TIME;
    s.vocab = 11;
    s.eps = 1e-5;
    s.norm = "layernorm";
    s.init = init;
    TB_OKAY(T, tb_block_load(T->ctx, what, &b));
    TB_OKAY(T, tb_model_create(T->ctx, b, &s, TB_F64, &m));
    TB_OKAY(T, tb_model_init(m, 6));
    TB_OKAY(T, tb_model_bind(m, 1, TIME, 0));
    const tb_batch batch = {.tokens = tokens};
    TB_OKAY(T, tb_model_forward(m, &batch, &loss));
    memcpy(out, tb_model_logits(m), TIME * s.vocab * sizeof *out);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

/* Two blocks that must be the same function at a given start. */
TB_TEST(the_same_function)
{
    enum { N = 7 * 11 };
    static const char pre[] = "pre-ln";
    static const struct {
        const char *a, *init, *b;
        size_t depth;
        double tolerance;
    } rows[] = {
        {"gpas", NULL, pre, 5, 0},        /* gate 0 */
        {"denseformer", NULL, pre, 9, 0}, /* each output itself */
        {"muddformer", NULL, pre, 9, 0},
        {"lns", NULL, pre, 1, 1e-14},                /* l = 1 */
        {"mix-ln", "embed.*: normal(1)", pre, 3, 0}, /* no block is Post-LN */
        {"hyper-connections", NULL, pre, 5, 1e-5},   /* but for the last eps */
        {"dynamic-hyper-connections", "attn.o, ffn.down: xavier", pre, 5, 1e-5},
        {"mhc", "*.scalar, *.scalar2, *.scalar3: zeros", pre, 5, 1e-4},
        {"fixup", NULL, "x = x + 0*F(x)\nmodel: bias = false", 4, 0},
        {"completep", NULL, pre, 2, 0}, /* at the base depth */
        {"depth-mup", NULL, pre, 2, 0},
        {"peri-ln", NULL, "x = x + norm(F(norm(x)))\nfinal: x = norm(x)", 4, 0},
        {"gemma-4", NULL, "gemma-2", 4, 0}, /* scalar 1 */
        {"layerscale", "*.vector: ones", pre, 4, 0},
        {"skipinit", "*.scalar: ones", "plain", 4, 0},
        {"admin", "*.vector: ones", "post-ln", 4, 0},
        /* blocks that start as the identity */
        {"skipinit", NULL, "x = x + 0*F(x)", 4, 0},
        {"rezero", NULL, "x = x + 0*F(x)", 4, 0},
        {"swin-v2", "*, embed.*: xavier",
         "x = x + 0*F(x)\nfinal: x = norm(x)\n"
         "init: *, embed.*: xavier",
         4, 0},
    };
    double a[N], b[N];
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        logits_of(T, rows[i].a, rows[i].init, rows[i].depth, a);
        logits_of(T, rows[i].b, NULL, rows[i].depth, b);
        int before = T->failed;
        TB_NEAR_N(T, a, b, N, rows[i].tolerance);
        if (T->failed > before)
            tb_test_fail(T, __FILE__, __LINE__, "%s is not %s", rows[i].a,
                         rows[i].b);
    }
}
