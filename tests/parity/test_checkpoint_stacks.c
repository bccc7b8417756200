/* SPDX-License-Identifier: MIT */
/* Blocks of both roles, and a whole encoder-decoder of 2 + 2, against what
 * PyTorch computed in float64: outputs, gradients of the inputs and of every
 * parameter, to 1e-12 of the largest number. The encoder layers have padding;
 * memories have a length of their own. */
#include "model/model.h"
#include "tb_test.h"
#include "tollbooth/checkpoint.h"

enum { B = 2, D = 16, H = 32, T_ = 5, S_ = 4, MOST = 5 * D * H };

#define RELU "ffn(x) = down(relu(up(x)))\n"
static const char post_text[] = RELU "x = norm(x + F(x))\n"
                                     "final: x = norm(x)\n";
static const char pre_text[] = RELU "x = x + F(norm(x))\n"
                                    "final: x = norm(x)\n";
static const char post_gelu[] = "x = norm(x + F(x))\n";
static const char pre_gelu[] = "x = x + F(norm(x))\n";

static tb_settings sizes_of(int stack)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.stack = stack;
    s.depth = 2;
    s.width = D;
    s.heads = 4;
    s.ffn = H;
    s.vocab = B * (S_ + T_);
    s.positions = TB_POSITIONS_NONE;
    return s;
}

/* --- the file --------------------------------------------------------------
 */

static tb_status load(tb_ctx *ctx, tb_safetensors *f, const char *name,
                      size_t first, size_t n, double *out)
{
    const tb_tensor_info *t;
    TB_TRY(tb_safetensors_need(ctx, f, name, -1, NULL, &t));
    return tb_safetensors_read(ctx, f, t, first, n, TB_F64, out);
}

/* Ours in their names, where "head" is param. or grad. and what is before the
 * layer: *first is where it begins in a tensor of q, k and v. */
static void their_name(const char *ours, bool cross, const char *head,
                       char out[96], size_t *first)
{
    static const struct {
        const char *ours, *theirs;
        size_t part;
    } rows[] = {
        {"attn.q.", "self_attn.in_proj_", 0},
        {"attn.k.", "self_attn.in_proj_", 1},
        {"attn.v.", "self_attn.in_proj_", 2},
        {"attn.o.", "self_attn.out_proj.", 0},
        {"cross.q.", "multihead_attn.in_proj_", 0},
        {"cross.k.", "multihead_attn.in_proj_", 1},
        {"cross.v.", "multihead_attn.in_proj_", 2},
        {"cross.o.", "multihead_attn.out_proj.", 0},
        {"ffn.up.", "linear1.", 0},
        {"ffn.down.", "linear2.", 0},
        {"attn.norm.", "norm1.", 0},
        {"cross.norm.", "norm2.", 0},
        {"ffn.norm.", NULL, 0},
        {"final.norm.", "norm.", 0},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        size_t n = strlen(rows[i].ours);
        if (strncmp(ours, rows[i].ours, n) != 0)
            continue;
        const char *theirs = rows[i].theirs ? rows[i].theirs
                             : cross        ? "norm3."
                                            : "norm2.";
        bool vector = !tb_streq(ours + n, "weight");
        const char *tail = tb_streq(ours + n, "gain") ? "weight" : ours + n;
        tb_format(out, 96, "%s%s%s", head, theirs, tail);
        *first = rows[i].part * (vector ? D : D * D);
        return;
    }
    tb_format(out, 96, "no name for %s", ours);
}

/* Largest difference over the largest number; pure rounding noise (a key bias
 * has no gradient) counts against 1. */
static void same(tb_test *T, const char *file, const char *what,
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

static void same_as(tb_test *T, tb_safetensors *f, const char *file,
                    const char *name, size_t first, size_t n, const double *got)
{
    double want[MOST];
    if (n > MOST || load(T->ctx, f, name, first, n, want) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", file, tb_error(T->ctx));
    else
        same(T, file, name, got, want, n);
}

/* --- one layer -------------------------------------------------------------
 */

/** A layer's graph with the file's numbers. */
typedef struct layer {
    tb_test *T;
    tb_arena a;
    tb_safetensors *f;
    const char *file;
    tb_graph *g;
    tb_plan *plan;
    tb_run run;
    bool cross;
} layer;

static void *take(layer *l, size_t n)
{
    void *p = tb_arena_alloc(&l->a, n * sizeof(double) + 64);
    TB_CHECK(l->T, p != NULL);
    return p ? (char *)p + (64 - (uintptr_t)p % 64) % 64 : NULL;
}

/* What the file has for an input; the mask of the second sentence's last two
 * tokens is not in it. */
static tb_status layer_input(layer *l, const char *name, double *out)
{
    if (tb_streq(name, "x.keep")) {
        for (size_t i = 0; i < B * T_; i++)
            out[i] = i < 8;
        return TB_OK;
    }
    return load(l->T->ctx, l->f, name, 0,
                (size_t)B * D * (tb_streq(name, "memory") ? S_ : T_), out);
}

static tb_status layer_data(layer *l)
{
    size_t n = (size_t)(l->g->ninputs + l->g->nparams + l->g->noutputs);
    const void **in = take(l, n + 1), **params = take(l, n + 1);
    void **out = take(l, n + 1);
    char name[96];
    size_t first = 0;
    for (int i = 0; i < l->g->ninputs; i++) {
        double *v = take(l, B * T_ * D);
        TB_TRY(layer_input(l, l->g->nodes[l->g->inputs[i]].name, v));
        in[i] = v;
    }
    for (int i = 0; i < l->g->nparams; i++) {
        const tb_param *p = &l->g->params[i];
        double *v = take(l, MOST);
        their_name(p->name, l->cross, "param.", name, &first);
        TB_TRY(load(l->T->ctx, l->f, name, first,
                    tb_shape_count(p->shape, 1, 1), v));
        params[i] = v;
    }
    out[0] = take(l, B * T_ * D);
    l->run = (tb_run){.plan = l->plan,
                      .saved = take(l, tb_plan_saved_bytes(l->plan) / 8 + 1),
                      .work = take(l, tb_plan_work_bytes(l->plan) / 8 + 1),
                      .inputs = in,
                      .outputs = out,
                      .params = params};
    return TB_OK;
}

static tb_status layer_run(layer *l)
{
    double dy[B * T_ * D], *grad[4] = {0};
    const void *gout[1] = {dy};
    void **gparams = take(l, (size_t)l->g->nparams + 1);
    char name[96];
    size_t first = 0;
    for (int i = 0; i < l->g->ninputs && i < 4; i++)
        grad[i] = take(l, B * T_ * D);
    for (int i = 0; i < l->g->nparams; i++) {
        gparams[i] = take(l, MOST);
        memset(gparams[i], 0, MOST * sizeof(double));
    }
    void *const gin[4] = {grad[0], grad[1], grad[2], grad[3]};
    const tb_bwd w = {.hi = -1,
                      .lo = -1,
                      .gout = gout,
                      .gin = gin,
                      .gparams = (void *const *)gparams};
    TB_TRY(load(l->T->ctx, l->f, "dy", 0, B * T_ * D, dy));
    TB_TRY(tb_plan_forward(l->T->ctx, &l->run));
    TB_TRY(tb_plan_backward(l->T->ctx, &l->run, &w));
    same_as(l->T, l->f, l->file, "y", 0, B * T_ * D, l->run.outputs[0]);
    same_as(l->T, l->f, l->file, "dx", 0, B * T_ * D, grad[0]);
    if (l->cross)
        same_as(l->T, l->f, l->file, "dmemory", 0, B * S_ * D, grad[1]);
    for (int i = 0; i < l->g->nparams; i++) {
        const tb_param *p = &l->g->params[i];
        their_name(p->name, l->cross, "grad.", name, &first);
        same_as(l->T, l->f, l->file, name, first,
                tb_shape_count(p->shape, 1, 1), gparams[i]);
    }
    return TB_OK;
}

static tb_status layer_check(layer *l, const char *path, const char *text)
{
    tb_ctx *ctx = l->T->ctx;
    tb_settings s = sizes_of(l->cross ? TB_STACKS_BOTH : TB_STACKS_ENCODER);
    tb_block *b;
    tb_sizes sizes;
    const size_t times[] = {T_, l->cross ? S_ : T_};
    s.padding = !l->cross;
    TB_TRY(tb_safetensors_open(ctx, path, &l->f));
    TB_TRY(
        tb_block_parse(ctx, "torch", text, strlen(text), TB_PARSE_BLOCK, &b));
    tb_status status = tb_sizes_resolve(ctx, b, &s, &sizes);
    if (status == TB_OK)
        status = tb_graph_layer(ctx, &l->a, b, &sizes, tb_sizes_top(&sizes), 1,
                                &l->g);
    tb_plan_spec spec = {.graph = l->g,
                         .batch = B,
                         .time = T_,
                         .input_time = times,
                         .dtype = TB_F64,
                         .passes = TB_PASS_BWD,
                         .name = "torch"};
    if (status == TB_OK)
        status = tb_plan_create(ctx, &spec, &l->plan);
    if (status == TB_OK)
        status = layer_data(l);
    if (status == TB_OK)
        status = layer_run(l);
    tb_block_destroy(ctx, b);
    return status;
}

static void check_layer(tb_test *T, const char *file, bool cross,
                        const char *text)
{
    char name[96];
    tb_format(name, sizeof name, "data/oracle-torch/%s.safetensors", file);
    const char *path = tb_test_shared(T, name);
    layer l = {.T = T, .file = file, .cross = cross};
    if (!path)
        TB_SKIP(T, "shared data is not here");
    tb_arena_init(&l.a, T->ctx);
    if (layer_check(&l, path, text) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", file, tb_error(T->ctx));
    if (l.plan)
        tb_plan_destroy(T->ctx, l.plan);
    tb_safetensors_close(l.f);
    tb_arena_clear(&l.a);
}

TB_TEST(decoder_layers)
{
    check_layer(T, "decoder_layer_post", true, post_text);
    check_layer(T, "decoder_layer_pre", true, pre_text);
}

TB_TEST(encoder_layers_with_padding)
{
    check_layer(T, "encoder_layer_post_relu", false, post_text);
    check_layer(T, "encoder_layer_pre_relu", false, pre_text);
    check_layer(T, "encoder_layer_post_gelu", false, post_gelu);
    check_layer(T, "encoder_layer_pre_gelu", false, pre_gelu);
}

/* --- 2 + 2 blocks ----------------------------------------------------------
 */

/* Every token of the two texts has a word of its own, so that the embeddings
 * are the inputs. */
typedef struct whole {
    tb_test *T;
    tb_safetensors *f;
    const char *file;
    tb_block *block;
    tb_model *m;
    int32_t source[B * S_], tokens[B * T_];
    tb_batch batch;
    double *grads;
    double (*g)[B * T_ * D]; /* gradient of every value */
    bool *has;
} whole;

/* "encoder.layers.0.attn.q.weight": head becomes "param.encoder.layers.0." */
static void model_name(const tb_view *v, const char *head, char out[96],
                       size_t *first)
{
    char before[64];
    size_t side = (size_t)(strchr(v->name, '.') + 1 - v->name), n = side;
    if (v->layer)
        n += strlen("layers.0.");
    tb_format(before, sizeof before, "%s%.*s", head, (int)n, v->name);
    their_name(v->name + n, v->name[0] == 'd', before, out, first);
}

static bool is_input(const tb_view *v)
{
    return tb_streq(v->name, "embed.token.weight");
}

static bool is_theirs(const tb_view *v)
{
    return !is_input(v) && !tb_streq(v->name, "head.weight");
}

static tb_status whole_load(whole *w)
{
    tb_ctx *ctx = w->T->ctx;
    double *p = w->m->params;
    char name[96];
    size_t first = 0;
    for (size_t i = 0; i < w->m->nviews; i++) {
        const tb_view *v = &w->m->views[i];
        double *to = p + v->offset;
        if (is_input(v)) {
            TB_TRY(load(ctx, w->f, "src", 0, B * S_ * D, to));
            TB_TRY(load(ctx, w->f, "tgt", 0, B * T_ * D, to + B * S_ * D));
        } else if (is_theirs(v)) {
            model_name(v, "param.", name, &first);
            TB_TRY(load(ctx, w->f, name, first, v->count, to));
        }
    }
    return TB_OK;
}

/* A part's whole backward pass, from and to the gradients of values; of the
 * tail, from its final value. */
static tb_status whole_part(whole *w, size_t p, const double *dy)
{
    const tb_graph *g = tb_model_graph(w->m, p);
    bool tail = p == tb_model_tail(w->m), adds[4] = {false};
    const void *gout[4] = {dy};
    void *gin[4] = {NULL};
    tb_run r;
    TB_TRY(tb_model_run(w->m, p, &w->batch, &r));
    for (int o = 0; o < g->noutputs && !tail; o++)
        gout[o] = w->g[tb_model_out_value(w->m, p, (size_t)o)];
    for (int i = 0; i < g->ninputs; i++) {
        int v = tb_model_in_value(w->m, p, (size_t)i);
        if (v < 0)
            continue;
        gin[i] = w->g[v];
        adds[i] = w->has[v];
        w->has[v] = true;
    }
    tb_bwd b = {.hi = tail ? 1 : -1,
                .lo = tail ? 0 : -1,
                .gout = gout,
                .gin = gin,
                .adds = tail ? NULL : adds,
                .gparams = tb_model_gparams(w->m, p, w->grads)};
    return tb_plan_backward(w->T->ctx, &r, &b);
}

static tb_status whole_run(whole *w)
{
    double dy[B * T_ * D], loss;
    tb_run r;
    size_t tail = tb_model_tail(w->m);
    TB_TRY(load(w->T->ctx, w->f, "dy", 0, B * T_ * D, dy));
    TB_TRY(tb_model_forward(w->m, &w->batch, &loss));
    TB_TRY(tb_model_run(w->m, tail, &w->batch, &r));
    const void *y =
        tb_plan_value(&r, tb_model_graph(w->m, tail)->boundaries[1].node);
    same_as(w->T, w->f, w->file, "y", 0, B * T_ * D, y);
    for (size_t p = w->m->nparts; p-- > 0;)
        TB_TRY(whole_part(w, p, dy));
    return TB_OK;
}

static void whole_compare(whole *w)
{
    char name[96];
    size_t first = 0;
    for (size_t i = 0; i < w->m->nviews; i++) {
        const tb_view *v = &w->m->views[i];
        const double *g = w->grads + v->offset;
        if (is_input(v)) {
            same_as(w->T, w->f, w->file, "dsrc", 0, B * S_ * D, g);
            same_as(w->T, w->f, w->file, "dtgt", 0, B * T_ * D, g + B * S_ * D);
        } else if (is_theirs(v)) {
            model_name(v, "grad.", name, &first);
            same_as(w->T, w->f, w->file, name, first, v->count, g);
        }
    }
}

static tb_status whole_check(whole *w, const char *path, const char *text)
{
    tb_ctx *ctx = w->T->ctx;
    const tb_settings s = sizes_of(TB_STACKS_BOTH);
    TB_TRY(tb_safetensors_open(ctx, path, &w->f));
    TB_TRY(tb_block_load(ctx, text, &w->block));
    TB_TRY(tb_model_create(ctx, w->block, &s, TB_F64, &w->m));
    TB_TRY(tb_model_bind_source(w->m, B, T_, S_, TB_PASS_BWD | TB_PASS_KEEP));
    TB_TRY(whole_load(w));
    w->grads = tb_alloc(ctx, w->m->nelements, sizeof *w->grads);
    w->g = tb_alloc(ctx, w->m->nvalues, sizeof *w->g);
    w->has = tb_alloc(ctx, w->m->nvalues, sizeof *w->has);
    if (!w->grads || !w->g || !w->has)
        return TB_ERR_MEMORY;
    for (int i = 0; i < B * S_; i++)
        w->source[i] = i;
    for (int i = 0; i < B * T_; i++)
        w->tokens[i] = B * S_ + i;
    w->batch = (tb_batch){.tokens = w->tokens, .source = w->source};
    TB_TRY(whole_run(w));
    whole_compare(w);
    return TB_OK;
}

static void check_whole(tb_test *T, const char *file, const char *text)
{
    char name[96];
    tb_format(name, sizeof name, "data/oracle-torch/%s.safetensors", file);
    const char *path = tb_test_shared(T, name);
    whole w = {.T = T, .file = file};
    if (!path)
        TB_SKIP(T, "shared data is not here");
    if (whole_check(&w, path, text) != TB_OK)
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s", file, tb_error(T->ctx));
    tb_free(T->ctx, w.has);
    tb_free(T->ctx, w.g);
    tb_free(T->ctx, w.grads);
    tb_model_destroy(w.m);
    if (w.block)
        tb_block_destroy(T->ctx, w.block);
    tb_safetensors_close(w.f);
}

TB_TEST(transformers_of_2_and_2_blocks)
{
    check_whole(T, "transformer_2x2_post", post_text);
    check_whole(T, "transformer_2x2_pre", pre_text);
}
