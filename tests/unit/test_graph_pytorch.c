/* SPDX-License-Identifier: MIT */
/* The PyTorch printer's table is complete, and what it cannot spell is
 * refused by name. Whether the Python computes the same is the question of
 * tests/parity/export_torch.py. */
#include "tb_test.h"
#include "graph/pytorch_parts.h"

TB_TEST(every_op_has_a_spelling)
{
    for (const tb_op *const *op = tb_ops; *op; op++)
        if (!tb_py_row_of(*op))
            tb_test_fail(T, __FILE__, __LINE__,
                         "%s: no row in src/graph/pytorch_ops.c", (*op)->name);
}

/** A stack of one layer whose weights all start at zero. */
typedef struct hand {
    tb_arena arena;
    tb_block *block;
    tb_sizes sizes;
    tb_graph *graphs[3];
    tb_py_part parts[3];
} hand;

static tb_status graphs_of(tb_ctx *ctx, hand *h)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 1;
    TB_TRY(tb_sizes_resolve(ctx, h->block, &s, &h->sizes));
    TB_TRY(tb_graph_stem(ctx, &h->arena, h->block, &h->sizes,
                         tb_sizes_top(&h->sizes), &h->graphs[0]));
    TB_TRY(tb_graph_layer(ctx, &h->arena, h->block, &h->sizes,
                          tb_sizes_top(&h->sizes), 1, &h->graphs[1]));
    return tb_graph_tail(ctx, &h->arena, h->block, &h->sizes, &h->graphs[2]);
}

static tb_status hand_make(tb_ctx *ctx, hand *h, const char *text)
{
    tb_arena_init(&h->arena, ctx);
    TB_TRY(tb_block_load(ctx, text, &h->block));
    TB_TRY(graphs_of(ctx, h));
    for (int i = 0; i < 3; i++) {
        size_t n = (size_t)h->graphs[i]->nparams;
        tb_py_start *starts =
            tb_arena_alloc(&h->arena, (n + 1) * sizeof *starts);
        for (size_t j = 0; starts && j < n; j++)
            starts[j].rule = "zeros";
        h->parts[i] = (tb_py_part){h->graphs[i], starts};
    }
    return TB_OK;
}

static void hand_drop(tb_ctx *ctx, hand *h)
{
    tb_arena_clear(&h->arena);
    if (h->block)
        tb_block_destroy(ctx, h->block);
}

static tb_status hand_print(tb_ctx *ctx, const hand *h, tb_buf *out)
{
    const tb_py_stack s = {
        .block = h->block, .sizes = &h->sizes, .parts = h->parts};
    return tb_pytorch_print(ctx, &s, out);
}

TB_TEST(op_without_a_spelling_is_refused)
{
    hand h = {0};
    tb_buf out;
    tb_op unknown = tb_op_tanh;
    unknown.name = "cosh";
    tb_buf_init(&out, T->ctx);
    TB_OKAY(T, hand_make(T->ctx, &h, "x = tanh(x) + F(x)"));
    TB_OKAY(T, hand_print(T->ctx, &h, &out));
    TB_CHECK(T, strstr(tb_buf_str(&out), "x = torch.tanh(x) + self.attn(x)"));
    tb_buf_clear(&out);
    for (int i = 0; i < h.graphs[1]->nnodes; i++)
        if (h.graphs[1]->nodes[i].op == &tb_op_tanh)
            h.graphs[1]->nodes[i].op = &unknown;
    TB_CHECK(T, hand_print(T->ctx, &h, &out) == TB_ERR_INPUT);
    TB_CHECK(T, strstr(tb_error(T->ctx), "cosh has no spelling in PyTorch"));
    TB_CHECK(T, out.len == 0);
    tb_buf_clear(&out);
    hand_drop(T->ctx, &h);
}

/* An option that the row does not know must not be lost. */
TB_TEST(unknown_option_is_refused)
{
    hand h = {0};
    tb_buf out;
    tb_buf_init(&out, T->ctx);
    TB_OKAY(T, hand_make(T->ctx, &h, "x = rope(x) + F(x)"));
    for (int i = 0; i < h.graphs[1]->nnodes; i++)
        if (h.graphs[1]->nodes[i].op == &tb_op_rope)
            h.graphs[1]->nodes[i].attr[TB_ATTR_ROPE_INTERLEAVED].value = 1;
    TB_CHECK(T, hand_print(T->ctx, &h, &out) == TB_ERR_INPUT);
    TB_CHECK(T, strstr(tb_error(T->ctx), "rope with interleaved has no"));
    tb_buf_clear(&out);
    hand_drop(T->ctx, &h);
}

/* One name for two modules would make one of them vanish. */
TB_TEST(two_modules_of_one_name_are_refused)
{
    hand h = {0};
    tb_buf out;
    tb_buf_init(&out, T->ctx);
    TB_OKAY(T, hand_make(T->ctx, &h,
                         "norm2 = linear(d, d); "
                         "x = x + norm2(norm(norm(x))); x = x + ffn(x)"));
    TB_CHECK(T, hand_print(T->ctx, &h, &out) == TB_ERR_INPUT);
    TB_CHECK(T, strstr(tb_error(T->ctx), "two things are called norm2"));
    tb_buf_clear(&out);
    hand_drop(T->ctx, &h);
}

TB_TEST(names)
{
    tb_py py = {.ctx = T->ctx};
    tb_arena_init(&py.arena, T->ctx);
    TB_CHECK(T, tb_streq(tb_py_local(&py, "lambda"), "lambda_"));
    TB_CHECK(T, tb_streq(tb_py_local(&py, "self"), "self_"));
    TB_CHECK(T, tb_streq(tb_py_local(&py, "alpha"), "alpha"));
    TB_CHECK(T, tb_streq(tb_py_path(&py, "self", "attn.q.weight", true),
                         "self.attn.q.weight"));
    TB_CHECK(T, tb_streq(tb_py_path(&py, "self", "stem.half", true),
                         "self.stem._parameters[\"half\"]"));
    TB_CHECK(T, tb_streq(tb_py_path(&py, "self", "to.weight", true),
                         "self._modules[\"to\"].weight"));
    tb_arena_clear(&py.arena);
}
