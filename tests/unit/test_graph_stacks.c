/* SPDX-License-Identifier: MIT */
/* An encoder and a decoder that reads its output: which sections serve which,
 * what a decoder block is made of, where memory can be read, padding. */
#include "graph/init_rules.h"
#include "graph_help.h"
#include "tollbooth/lint.h"

static tb_settings two_stacks(size_t n, size_t m)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.stack = TB_STACKS_BOTH;
    s.depth = n;
    s.decoder_depth = m;
    return s;
}

/* The same nodes, whatever the words. */
static void same(tb_test *T, const tb_settings *s, const char *a, const char *b)
{
    gr_case c;
    tb_buf dump;
    tb_buf_init(&dump, T->ctx);
    TB_OKAY(T, gr_open(T->ctx, &c, b, s, GR_LAYER, 1));
    TB_OKAY(T, gr_dump(T->ctx, &c, &dump));
    gr_check(T, a, s, GR_LAYER, 1, gr_dump, tb_buf_str(&dump));
    tb_buf_clear(&dump);
    gr_close(T->ctx, &c);
}

TB_TEST(f_is_attn_cross_ffn_in_a_decoder_with_memory)
{
    tb_settings s = two_stacks(2, 3);
    same(T, &s, "x = x + F(norm(x))",
         "x = x + attn(norm(x)); x = x + cross(norm(x)); x = x + ffn(norm(x))");
    gr_check(T, "x = x + F(norm(x))", &s, GR_LAYER, 1, gr_boundaries,
             "attn cross ffn");
    gr_check(T, "x = x + F(norm(x))", &s, GR_ENCODER_LAYER, 1, gr_boundaries,
             "attn ffn");
    /* side by side, in any order */
    gr_check(T, "n = norm(x); x = x + cross(n) + attn(n) + ffn(n)", &s,
             GR_LAYER, 1, gr_boundaries, "cross+attn+ffn");
    gr_check(T, "x = x + F(x)", &s, GR_LAYER, 1, gr_params,
             "attn.q.weight attn.q.bias attn.k.weight attn.k.bias "
             "attn.v.weight attn.v.bias attn.o.weight attn.o.bias "
             "cross.q.weight cross.q.bias cross.k.weight cross.k.bias "
             "cross.v.weight cross.v.bias cross.o.weight cross.o.bias "
             "ffn.up.weight ffn.up.bias ffn.down.weight ffn.down.bias");
}

TB_TEST(cross_reads_memory)
{
    tb_settings s = two_stacks(2, 2);
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c, "x = x + F(norm(x))", &s, GR_LAYER, 1));
    TB_CHECK(T, c.g->ninputs == 2);
    TB_STR(T, c.g->nodes[c.g->inputs[1]].name, "memory");
    const tb_region *attn = &c.g->regions[0], *cross = &c.g->regions[1];
    TB_STR(T, cross->name, "cross");
    TB_CHECK(T, attn->nin == 1 && cross->nin == 2);
    TB_CHECK(T, cross->in[1] == c.g->inputs[1]);
    for (int i = 0; i < c.g->nnodes; i++) {
        const tb_node *n = &c.g->nodes[i];
        if (n->op == &tb_op_mha)
            TB_CHECK(T, n->attr[TB_ATTR_ATTN_CAUSAL].value ==
                            (n->region == 0 ? 1 : 0));
    }
    gr_close(T->ctx, &c);
    TB_OKAY(T,
            gr_open(T->ctx, &c, "x = x + F(norm(x))", &s, GR_ENCODER_LAYER, 1));
    TB_NEAR(T, gr_attr(T, &c, "mha", TB_ATTR_ATTN_CAUSAL, 1), 0, 0);
    TB_CHECK(T, c.g->ninputs == 1);
    gr_close(T->ctx, &c);
}

/* A cross of one's own; memory may be normed, and read elsewhere. */
TB_TEST(memory_is_a_name)
{
    tb_settings s = two_stacks(2, 2);
    same(T, &s, "x = x + F(x)",
         "cross(x) = o(mha(q(x), k(memory), v(memory))); x = x + F(x)");
    gr_check(T, "x = x + cross(x)\ncross(x) = mha(x, norm(memory), memory)", &s,
             GR_LAYER, 1, gr_ops, "layernorm mha branch add");
    gr_check(T, "m = 2*memory; x = x + mha(x, m, m)", &s, GR_LAYER, 1, gr_ops,
             "affine mha add");
}

TB_TEST(where_memory_cannot_be_read)
{
    tb_settings s = two_stacks(2, 2);
    gr_refused(T, "x = x + memory", &s, GR_LAYER,
               "1:7: add: the rows of memory are other tokens; only mha brings "
               "them together\n"
               "    x = x + memory\n"
               "          ^");
    gr_refused(T, "x = memory", &s, GR_LAYER,
               "x leaves with the rows of memory");
    gr_refused(T, "x = x + mha(x, memory, x)", &s, GR_LAYER,
               "1:9: mha: keys and values must both be memory's, or neither\n"
               "    x = x + mha(x, memory, x)\n"
               "            ^");
    gr_refused(T, "x = x + mha(x, memory, memory)", &s, GR_ENCODER_LAYER,
               "1:16: memory: an encoder reads no memory, its output is one\n"
               "    x = x + mha(x, memory, memory)\n"
               "                   ^");
    gr_refused(T, "x = x + cross(x)", &s, GR_ENCODER_LAYER,
               "1:9: cross: an encoder reads no memory, its output is one\n"
               "    x = x + cross(x)\n"
               "            ^");
    gr_refused(T, "x = x + F(x)\nfinal: x = mha(x, memory, memory)", &s,
               GR_TAIL,
               "2:19: memory belongs in decoder blocks, not in final\n"
               "    final: x = mha(x, memory, memory)\n"
               "                      ^");
    s = (tb_settings)TB_SETTINGS_UNSET;
    gr_refused(T, "x = x + cross(x)", &s, GR_LAYER,
               "1:9: cross: needs an encoder: --stack encoder-decoder\n"
               "    x = x + cross(x)\n"
               "            ^");
    gr_refused(T, "memory = x", &s, GR_LAYER,
               "1:1: 'memory' is the encoder's output; choose another name\n"
               "    memory = x\n"
               "    ^");
}

/* --- sections by role ------------------------------------------------------
 */

static const char three[] = "encoder: x = norm(x + F(x))\n"
                            "decoder: x = x + F(norm(x))\n"
                            "block: x = x + F(x)\n";

TB_TEST(sections_serve_roles)
{
    tb_settings both = two_stacks(2, 2), one = TB_SETTINGS_UNSET;
    gr_check(T, three, &both, GR_ENCODER_LAYER, 1, gr_lane, "toll 2 1");
    gr_check(T, three, &both, GR_LAYER, 1, gr_lane, "clean 0 1");
    gr_check(T, three, &one, GR_LAYER, 1, gr_ops,
             "linear linear linear mha linear branch add linear gelu linear "
             "branch add");
    one.stack = TB_STACKS_ENCODER;
    gr_check(T, three, &one, GR_LAYER, 1, gr_lane, "clean 0 1");
    /* without one that is for all, a single stack has its role's */
    gr_check(T, "encoder: x = norm(x + F(x))\ndecoder: x = x + F(norm(x))",
             &one, GR_LAYER, 1, gr_lane, "toll 2 1");
    one.stack = TB_STACKS_DECODER;
    gr_check(T, "encoder: x = norm(x + F(x))\ndecoder: x = x + F(norm(x))",
             &one, GR_LAYER, 1, gr_lane, "clean 0 1");
    gr_refused(T, "encoder: x = F(x)", &one, GR_LAYER,
               "block: it has no block section, wanted one");
    gr_refused(T, "encoder: x = F(x)", &both, GR_LAYER,
               "block: it has no decoder block section, wanted one");
    gr_refused(
        T, "encoder: x = F(x)\nblock[l > 5]: x = F(x)", &both, GR_LAYER,
        "block: no block section holds for decoder block l = 1 of M = 2");
}

/* l counts within its role; N is the encoder's depth, M the decoder's. */
TB_TEST(blocks_are_counted_by_role)
{
    tb_settings s = two_stacks(4, 8);
    const char *text = "encoder block[l == N]: x = norm(x)\n"
                       "decoder block[l == M]: x = norm(norm(x))\n"
                       "block: x = F(x)";
    gr_check(T, text, &s, GR_ENCODER_LAYER, 4, gr_lane, "toll 1 1");
    gr_check(T, text, &s, GR_LAYER, 4, gr_lane, "none 0 0");
    gr_check(T, text, &s, GR_LAYER, 8, gr_lane, "toll 2 1");
}

TB_TEST(stems_and_finals_by_role)
{
    tb_settings s = two_stacks(2, 2);
    const char *text = "encoder stem: x = norm(x); y = x\n"
                       "block: x = x + F(x)\n"
                       "encoder final: x = rmsnorm(x + y)\n"
                       "decoder final: x = norm(x)";
    gr_check(T, text, &s, GR_ENCODER_STEM, 1, gr_params,
             "embed.token.weight embed.position.weight stem.norm.gain "
             "stem.norm.bias");
    gr_check(T, text, &s, GR_STEM, 1, gr_params,
             "embed.token.weight embed.position.weight");
    gr_check(T, text, &s, GR_MEMORY, 1, gr_params, "final.norm.gain");
    gr_check(T, text, &s, GR_MEMORY, 1, gr_boundaries, "");
    gr_check(T, text, &s, GR_TAIL, 1, gr_params,
             "final.norm.gain final.norm.bias head.weight");
    gr_case c;
    TB_OKAY(T, gr_open(T->ctx, &c, text, &s, GR_MEMORY, 1));
    TB_CHECK(T, c.g->ninputs == 2 && c.g->noutputs == 1);
    TB_STR(T, c.g->outputs[0].name, "memory");
    gr_close(T->ctx, &c);
    /* without a final the encoder's x is the memory */
    TB_OKAY(T, gr_open(T->ctx, &c, "x = F(x)", &s, GR_MEMORY, 1));
    TB_CHECK(T, c.g->outputs[0].node == c.g->inputs[0]);
    gr_close(T->ctx, &c);
}

TB_TEST(what_the_model_has_once)
{
    tb_settings s = two_stacks(2, 2);
    static const gr_part parts[] = {GR_STEM, GR_ENCODER_STEM, GR_TAIL,
                                    GR_LAYER};
    for (size_t p = 0; p < TB_LEN(parts); p++) {
        gr_case c;
        TB_OKAY(T, gr_open(T->ctx, &c, "pre-ln", &s, parts[p], 1));
        for (int i = 0; i < c.g->nparams; i++) {
            const char *name = c.g->params[i].name;
            TB_CHECK(T, c.g->params[i].shared ==
                            (tb_streq(name, "embed.token.weight") ||
                             tb_streq(name, "head.weight")));
        }
        gr_close(T->ctx, &c);
    }
}

/* --- padding ---------------------------------------------------------------
 */

static void mask_of(tb_test *T, const tb_settings *s, gr_part part, int region,
                    const char *want)
{
    gr_case c;
    const char *got = "none";
    TB_OKAY(T, gr_open(T->ctx, &c, "x = x + F(x)", s, part, 1));
    for (int i = 0; i < c.g->nnodes; i++) {
        const tb_node *n = &c.g->nodes[i];
        if (n->op == &tb_op_mha && n->region == region && n->nin == 4)
            got = c.g->nodes[n->in[3]].name;
    }
    TB_STR(T, got, want);
    gr_close(T->ctx, &c);
}

TB_TEST(attention_does_not_see_padding)
{
    tb_settings s = two_stacks(2, 2);
    mask_of(T, &s, GR_LAYER, 0, "none");
    s.padding = true;
    mask_of(T, &s, GR_LAYER, 0, "x.keep");
    mask_of(T, &s, GR_LAYER, 1, "memory.keep");
    mask_of(T, &s, GR_ENCODER_LAYER, 0, "x.keep");
    s.stack = TB_STACKS_DECODER;
    s.decoder_depth = 0;
    mask_of(T, &s, GR_LAYER, 0, "x.keep");
}

/* --- init: and lint --------------------------------------------------------
 */

TB_TEST(globs_with_and_without_a_role)
{
    static const struct {
        const char *glob, *name;
        tb_role role;
        bool means;
    } cases[] = {
        {"attn.q", "encoder.layers.0.attn.q.weight", TB_ROLE_MATRIX, true},
        {"attn.q", "decoder.layers.3.attn.q.weight", TB_ROLE_MATRIX, true},
        {"encoder.attn.q", "encoder.layers.0.attn.q.weight", TB_ROLE_MATRIX,
         true},
        {"encoder.attn.q", "decoder.layers.0.attn.q.weight", TB_ROLE_MATRIX,
         false},
        {"encoder.attn.q", "layers.0.attn.q.weight", TB_ROLE_MATRIX, false},
        {"decoder.*", "decoder.layers.1.cross.v.weight", TB_ROLE_MATRIX, true},
        {"decoder.*", "head.weight", TB_ROLE_MATRIX, false},
        {"decoder.*.v", "decoder.layers.1.cross.v.weight", TB_ROLE_MATRIX,
         true},
        {"*", "encoder.layers.0.attn.q.weight", TB_ROLE_MATRIX, true},
        {"*", "encoder.embed.position.weight", TB_ROLE_EMBEDDING, false},
        {"embed.*", "encoder.embed.position.weight", TB_ROLE_EMBEDDING, true},
        {"encoder.embed.*", "encoder.embed.position.weight", TB_ROLE_EMBEDDING,
         true},
        {"final.norm.gain", "encoder.final.norm.gain", TB_ROLE_GAIN, true},
        {"encoder.layers.0.attn.q", "encoder.layers.0.attn.q.weight",
         TB_ROLE_MATRIX, true},
        {"layers.0.attn.q", "encoder.layers.0.attn.q.weight", TB_ROLE_MATRIX,
         true},
    };
    for (size_t i = 0; i < TB_LEN(cases); i++)
        if (tb_init_glob(cases[i].glob, cases[i].name, cases[i].role) !=
            cases[i].means)
            tb_test_fail(T, __FILE__, __LINE__, "%s and %s", cases[i].glob,
                         cases[i].name);
    TB_CHECK(T, tb_init_of_side("decoder.cross.*") && !tb_init_of_side("*"));
}

/* "code code", by place */
static void lint(tb_test *T, const char *text, const tb_settings *s,
                 const char *want)
{
    tb_block *b;
    tb_lint *L;
    tb_buf got;
    tb_buf_init(&got, T->ctx);
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    TB_OKAY(T, tb_lint_create(T->ctx, b, s, &L));
    for (size_t i = 0; i < tb_lint_count(L); i++)
        tb_buf_printf(&got, "%s%s", i ? " " : "", tb_lint_at(L, i)->code);
    TB_STR(T, tb_buf_str(&got), want);
    tb_buf_clear(&got);
    tb_lint_destroy(L);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(lint_looks_at_both_stacks)
{
    tb_settings both = two_stacks(4, 6), one = TB_SETTINGS_UNSET;
    const char *pre_without_final = "encoder: x = x + F(norm(x))\n"
                                    "decoder: x = norm(x + F(x))\n"
                                    "decoder final: x = x";
    lint(T, "block: x = x + F(norm(x))\nfinal: x = norm(x)", &both, "");
    lint(T, pre_without_final, &both, "no-final-norm roles-differ");
    /* sections of the other kind of model are no findings */
    lint(T,
         "decoder block[l > 5]: x = x + F(norm(x))\n"
         "block: x = x + F(norm(x))\nfinal: x = norm(x)",
         &both, "");
    lint(T,
         "decoder block[l > 6]: x = x + F(norm(x))\n"
         "block: x = x + F(norm(x))\nfinal: x = norm(x)",
         &both, "unused-section");
    lint(T,
         "decoder block[l > 6]: x = x + F(norm(x))\n"
         "block: x = x + F(norm(x))\nfinal: x = norm(x)",
         &one, "");
}
