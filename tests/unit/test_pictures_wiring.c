/* SPDX-License-Identifier: MIT */
/* Diagrams of every built-in block and every op: each node stands in them
 * once, each stream has its lane, nothing overlaps or leaves the picture. */
#include "test_pictures_demo.h"

#include "pictures/explain_parts.h"
#include "pictures/wiring.h"

/* --- what there is to draw, counted from the graph alone ------------------ */

enum { NODES = 4096 };

static bool is_op_alias(const tb_op *op)
{
    return op == &tb_op_identity || op == &tb_op_branch;
}

/* Bit 0: depends on what enters; bit 1: something that leaves reads it. */
static void look(const tb_graph *g, const int *ends, int n, unsigned char *bits)
{
    memset(bits, 0, NODES);
    for (int i = 0; i < g->nnodes; i++) {
        const tb_node *at = &g->nodes[i];
        bits[i] = at->op == &tb_op_input && !strstr(at->name, ".keep");
        for (int k = 0; k < at->nin; k++)
            bits[i] |= bits[at->in[k]] & 1;
    }
    for (int i = 0; i < n; i++)
        bits[ends[i]] |= 2;
    for (int i = g->nnodes - 1; i >= 0; i--)
        for (int k = 0; (bits[i] & 2) && k < g->nodes[i].nin; k++)
            bits[g->nodes[i].in[k]] |= 2;
}

/* Sublayers, and nodes outside of them. */
static int drawable(const tb_graph *g, const int *ends, int n)
{
    static unsigned char bits[NODES];
    int count = 0;
    look(g, ends, n, bits);
    for (int i = 0; i < g->nnodes; i++)
        if (bits[i] == 3 && g->nodes[i].region < 0 &&
            g->nodes[i].op != &tb_op_input && !is_op_alias(g->nodes[i].op))
            count++;
    for (int i = 0; i < g->nregions; i++)
        count += bits[g->regions[i].out] == 3 &&
                 (g->nodes[g->regions[i].out].region == i);
    return count;
}

/* Streams, and what else is read, also from inside of a sublayer. */
static int entering(const tb_graph *g, const int *ends, int n)
{
    static unsigned char bits[NODES];
    int count = g->ncarried;
    look(g, ends, n, bits);
    for (int i = g->ncarried; i < g->ninputs; i++)
        count += bits[g->inputs[i]] == 3;
    return count;
}

static int drawn(const struct tb_wiring *w, tb_wired_part part)
{
    int n = 0;
    for (int i = 0; i < w->n; i++)
        n += w->nodes[i].part == part && w->nodes[i].kind != TB_WIRED_IN &&
             w->nodes[i].kind != TB_WIRED_OUT;
    return n;
}

/* --- layouts -------------------------------------------------------------- */

static bool between(int lo, int hi, int row)
{
    return lo <= row && row <= hi;
}

static void check_layout(tb_test *T, const struct tb_wiring *w, bool single)
{
    tb_arena a;
    tb_laid l;
    tb_arena_init(&a, T->ctx);
    TB_OKAY(T, tb_wiring_lay(&a, w, single, &l));
    for (int i = 0; i < l.n; i++) {
        const tb_placed *p = &l.places[i];
        TB_CHECK(T, p->row < l.rows && p->rank < l.ranks);
        for (int k = 0; k < p->n; k++)
            TB_CHECK(T, l.places[p->in[k]].rank < p->rank &&
                            l.places[p->in[k]].last >= p->rank &&
                            between(p->lo, p->hi, l.places[p->in[k]].row));
        for (int k = 0; k < i; k++) {
            const tb_placed *q = &l.places[k];
            TB_CHECK(T, p->rank != q->rank || p->lo > q->hi || q->lo > p->hi);
            /* where one value ends in a row the next may begin */
            TB_CHECK(T, p->row != q->row || p->rank >= q->last ||
                            q->rank >= p->last);
        }
    }
    for (int s = 0; s < w->nstreams; s++) {
        int in = 0, out = 0;
        for (int i = 0; i < l.n; i++) {
            const tb_wired *n = l.places[i].what;
            bool own = n && n->stream == s && n->part == TB_WIRED_BLOCK;
            bool enters = (own && n->kind == TB_WIRED_IN) ||
                          (n && n->stream == s && n->part == TB_WIRED_STEM &&
                           n->kind == TB_WIRED_OUT);
            bool leaves = own && n->kind == TB_WIRED_OUT;
            TB_CHECK(T, !(enters || leaves) || l.places[i].row == s);
            in += enters;
            out += leaves;
        }
        TB_CHECK(T, in == 1 && out == 1);
    }
    tb_arena_clear(&a);
}

/* --- pictures ------------------------------------------------------------- */

static void check_point(tb_test *T, const tb_scene *s, double x, double y)
{
    if (x < 0 || y < 0 || x > s->w || y > s->h)
        tb_test_fail(T, __FILE__, __LINE__, "%g %g outside of %g x %g", x, y,
                     s->w, s->h);
}

static void check_inside(tb_test *T, const tb_scene *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const tb_item *it = &s->items[i];
        double r = it->kind == TB_ITEM_CIRCLE ? it->w : 0;
        for (size_t k = 0; k < it->n && it->kind == TB_ITEM_PATH; k++)
            check_point(T, s, it->xy[2 * k], it->xy[2 * k + 1]);
        if (it->kind != TB_ITEM_CIRCLE && it->kind != TB_ITEM_RECT)
            continue;
        check_point(T, s, it->x - r, it->y - r);
        check_point(T, s, it->x + (r > 0 ? r : it->w),
                    it->y + (r > 0 ? r : it->h));
    }
}

static void check_svg(tb_test *T, const tb_diagram *d, tb_out *out)
{
    tb_scene *s;
    static const char *const parts[] = {"stem", "node", "after"};
    char id[40];
    TB_OKAY(T, tb_diagram_scene(T->ctx, d, &s));
    check_figure(T, s, out);
    check_inside(T, s);
    TB_CHECK(T, s->w <= 760);
    for (int i = 0; d->wired && i < d->wiring->n; i++) {
        tb_format(id, sizeof id, "id=\"fig-%s-%d\"",
                  parts[d->wiring->nodes[i].part], i);
        TB_CHECK(T, count(tb_out_str(out), id) == 1);
    }
    TB_CHECK(T,
             (count(tb_out_str(out), ">stem<") == 1) == (d->wiring->stem > 0));
    TB_CHECK(T, (count(tb_out_str(out), ">embedding<") > 0) ==
                    (d->wiring->stem > 0));
    tb_scene_destroy(s);
}

/* A line for each node, in the order of the wiring from below. */
static void check_lines(tb_test *T, const struct tb_wiring *w, const char *text)
{
    const char *end = strchr(text, '\n') + 1;
    int lines = 0;
    for (const char *p = end; *p; p++)
        lines += *p == '\n';
    TB_CHECK(T, lines >= w->n);
}

static void check_terminals(tb_test *T, const tb_diagram *d, tb_out *out)
{
    static const int widths[] = {40, 80, 200};
    for (size_t i = 0; i < 2 * TB_LEN(widths); i++) {
        tb_terminal term = {widths[i / 2], i % 2};
        tb_out_reset(out);
        TB_OKAY(T, tb_diagram_term(T->ctx, d, &term, out));
        check_terminal(T, tb_out_str(out), (size_t)widths[i / 2], i % 2);
        if (d->wired)
            check_lines(T, d->wiring, tb_out_str(out));
    }
}

/* --- blocks --------------------------------------------------------------- */

/* The stem of the first blocks is drawn once: what it does, and what leaves. */
static void check_stem(tb_test *T, const tb_explained *e,
                       const tb_explained_kind *k, const struct tb_wiring *w)
{
    const tb_model *m = e->model;
    const tb_graph *g = NULL;
    tb_arena a;
    int ends[TB_STREAMS_MOST + 600], leaving = 0;
    tb_arena_init(&a, T->ctx);
    if (tb_model_role(m, k->part - 1) == TB_PART_STEM)
        TB_OKAY(T, tb_stem_of(&a, tb_model_graph(m, k->part - 1), &g));
    for (int i = 0; i < w->stem; i++)
        leaving += w->nodes[i].kind == TB_WIRED_OUT;
    for (int i = 0; g && i < g->noutputs; i++)
        ends[i] = g->outputs[i].node;
    TB_CHECK(T, leaving == (g ? g->noutputs : 0));
    TB_CHECK(T, drawn(w, TB_WIRED_STEM) ==
                    (g ? drawable(g, ends, g->noutputs) : 0));
    tb_arena_clear(&a);
}

/* Does the block read what leaves the stem? */
static bool is_read(const struct tb_wiring *w, int node)
{
    for (int i = w->stem; i < w->block; i++)
        for (int k = 0; k < w->nodes[i].n; k++)
            if (w->nodes[i].in[k] == node)
                return true;
    return false;
}

static void check_kind(tb_test *T, tb_explained *e, const tb_explained_kind *k,
                       tb_out *out)
{
    tb_diagram d;
    int ends[TB_STREAMS_MOST + 600], n = 0;
    TB_OKAY(T, tb_explained_diagram(T->ctx, &e->arena, e, k, &d));
    const struct tb_wiring *w = d.wiring;
    int leaving = 0;
    for (int i = w->stem; i < w->block; i++)
        leaving += w->nodes[i].kind == TB_WIRED_OUT;
    check_stem(T, e, k, w);
    bool one = w->step; /* ends where it is cut */
    for (int i = 0; i < (one ? k->g->nstreams : k->g->noutputs); i++)
        ends[n++] = one ? k->g->cuts[1].nodes[i] : k->g->outputs[i].node;
    TB_CHECK(T, leaving == n);
    if (drawn(w, TB_WIRED_BLOCK) != drawable(k->g, ends, n))
        tb_test_fail(T, __FILE__, __LINE__, "%d nodes of %d are drawn: %s",
                     drawn(w, TB_WIRED_BLOCK), drawable(k->g, ends, n),
                     d.title);
    int in = 0;
    for (int i = 0; i < w->block; i++)
        in += i < w->stem ? w->nodes[i].kind == TB_WIRED_OUT &&
                                (w->nodes[i].stream >= 0 || is_read(w, i))
                          : w->nodes[i].kind == TB_WIRED_IN;
    TB_CHECK(T, in == entering(k->g, ends, n));
    check_layout(T, w, false);
    check_layout(T, w, true);
    check_svg(T, &d, out);
    check_terminals(T, &d, out);
    d.wired = true; /* the same block as wires, whatever it looks best as */
    check_svg(T, &d, out);
    check_terminals(T, &d, out);
}

static void check_block(tb_test *T, const char *text, tb_stacks stack)
{
    tb_block *b;
    tb_explained e;
    tb_out *out;
    tb_settings s = TB_SETTINGS_UNSET;
    s.stack = (int)stack;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    TB_OKAY(T, tb_explained_open(T->ctx, &e, b, &s));
    for (size_t i = 0; i < e.nkinds; i++)
        check_kind(T, &e, &e.kinds[i], out);
    tb_explained_close(&e);
    tb_block_destroy(T->ctx, b);
    tb_out_destroy(out);
}

TB_TEST(every_block)
{
    for (size_t i = 0; i < tb_builtin_count(); i++)
        check_block(T, tb_builtin_name(i), TB_STACKS_DECODER);
}

TB_TEST(every_block_with_an_encoder)
{
    static const char *const names[] = {"pre-ln", "post-ln", "deepnorm",
                                        "powernorm", "sub-ln"};
    for (size_t i = 0; i < TB_LEN(names); i++)
        check_block(T, names[i], TB_STACKS_BOTH);
}

/* Every block of the language's page. */
TB_TEST(every_block_of_the_docs)
{
    static char page[1 << 16];
    FILE *f = fopen(TB_SOURCE_DIR "/docs/language.md", "rb");
    size_t n = f ? fread(page, 1, sizeof page - 1, f) : 0;
    int found = 0;
    if (f)
        fclose(f);
    TB_CHECK(T, n > 0 && n < sizeof page - 1);
    for (char *at = page; (at = strstr(at, "```block\n")); found++) {
        char *text = at + strlen("```block\n"), *end = strstr(text, "```");
        TB_CHECK(T, end);
        *end = 0;
        check_block(T, text, TB_STACKS_DECODER);
        at = end + 1;
    }
    TB_CHECK(T, found > 20);
}

/* --- ops ------------------------------------------------------------------ */

static const char *const texts[] = {
    "x = x - F(norm(x))",
    "x = F(norm(x)) - x",
    "x = x + x*sigmoid(x)/(exp(x) + 2)",
    "w = linear(d, 1)\nx = x + mix(tanh(w(x)), F(x)) - abs(x)/sqrt(d)",
    "x = x + shift(F(x), vector(0)) + relu(x) + gelu(x) + silu(x)",
    "w = linear(2*d, d)\nx = x + w(concat(F(norm(x)), gelu_tanh(x)))",
    "x = scalenorm(x + l2norm(F(batchnorm(x)), eps=1e-5)) + dyt(x)",
    "x = x + derf(powernorm(x, warmup=0)) + rmsnorm(softmax(x))",
    "x = x + mha(rope(x), x, x) + drop(stop(x), 0.1)",
    "x = x + drop_branch(F(x), 0.2) + headscale(maxdiv(x), vector(1, size=h))",
    "u = mean(x)\nx = x + mix(u + sum(x) + dot(x, x), F(x))",
    "w = linear(d, 4)\nA = sinkhorn(w(x))\nx = x + mix(A, F(x), x, row=2)",
    "B = unit(matrix(2, 2, identity))\nx = mix(B, x, F(x), row=1)",
    "stem: y = x\nblock:\n z = x\n x = y\n y = z + F(z)\nfinal: x = x + y",
    "stem: y = x\nblock:\n x = F(x)\n y = x\nfinal: x = norm(y)",
    "stem: y = x\nblock: x = x + F(x)",
    "x = x",
    "x = x/scalar(2) + vector(1)*norm(x)*(1 - x)",
    "x = x + attn(norm(x))\nx = x + ffn(norm(x))",
    "x = x + ffn(attn(x))",
    "u = norm(x)\nx = x + F(u)*F(u)",
};

/* Nothing to draw: what begins and ends a model. */
static bool elsewhere(const tb_op *op)
{
    return op->lane == TB_LANE_LEAF || op == &tb_op_embed ||
           op == &tb_op_position || op == &tb_op_sinusoid ||
           op == &tb_op_xent || op == &tb_op_unit || is_op_alias(op);
}

static void note_ops(tb_test *T, const char *text, bool *seen)
{
    tb_block *b;
    tb_explained e;
    tb_settings s = TB_SETTINGS_UNSET;
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    TB_OKAY(T, tb_explained_open(T->ctx, &e, b, &s));
    for (size_t k = 0; k < e.nkinds; k++)
        for (int i = 0; i < e.kinds[k].g->nnodes; i++)
            for (size_t op = 0; tb_ops[op]; op++)
                if (e.kinds[k].g->nodes[i].op == tb_ops[op] &&
                    e.kinds[k].g->nodes[i].region < 0)
                    seen[op] = true;
    tb_explained_close(&e);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(every_op)
{
    bool seen[128] = {false};
    for (size_t i = 0; i < TB_LEN(texts); i++) {
        check_block(T, texts[i], TB_STACKS_DECODER);
        note_ops(T, texts[i], seen);
    }
    for (size_t op = 0; tb_ops[op]; op++)
        if (!elsewhere(tb_ops[op]) && !seen[op])
            tb_test_fail(T, __FILE__, __LINE__, "%s is in no text",
                         tb_ops[op]->name);
}

/* --- what the words and signs say ----------------------------------------- */

static void text_of(tb_test *T, const char *block, tb_stacks stack, tb_out *out)
{
    tb_block *b;
    tb_settings s = TB_SETTINGS_UNSET;
    s.stack = (int)stack;
    tb_out_reset(out);
    TB_OKAY(T, tb_block_load(T->ctx, block, &b));
    TB_OKAY(T, tb_explain_text(T->ctx, b, &s, TB_EXPLAIN_TEXT, false, 80, true,
                               out));
    tb_block_destroy(T->ctx, b);
}

/* One lane: what the stem does to it stands below x, in front of the block. */
TB_TEST(stem_on_the_lane)
{
    tb_block *b;
    tb_explained e;
    tb_diagram d;
    tb_out *out;
    tb_settings s = TB_SETTINGS_UNSET;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_block_load(T->ctx,
                             "stem: x = 3*norm(x + tanh(x))\n"
                             "block: x = x + F(norm(x))",
                             &b));
    TB_OKAY(T, tb_explained_open(T->ctx, &e, b, &s));
    TB_OKAY(T, tb_explained_diagram(T->ctx, &e.arena, &e, e.kinds, &d));
    TB_CHECK(T, !d.wired && d.before == 3 && d.count == 4);
    TB_CHECK(T, d.items[0].n == 1 && d.items[3].n == 1);
    TB_CHECK(T, d.items[1].part.kind == TB_DIAGRAM_NORM);
    TB_CHECK(T, d.items[2].part.kind == TB_DIAGRAM_SCALE);
    check_svg(T, &d, out);
    tb_explained_close(&e);
    tb_block_destroy(T->ctx, b);
    text_of(T, "bert", TB_STACKS_ENCODER, out);
    TB_CHECK(T, strstr(tb_out_str(out), "            x ^\n"
                                        "           LN #\n"
                                        "    embedding ^\n"
                                        "from x: 6 blocks\n"));
    tb_out_destroy(out);
}

/* Dropout of the embedding belongs to it, that of the text is drawn. */
TB_TEST(stem_that_drops)
{
    static const char *const stems[] = {"", "stem: x = drop(x, 0.5)\n"};
    for (size_t i = 0; i < TB_LEN(stems); i++) {
        tb_block *b;
        tb_explained e;
        tb_diagram d;
        tb_settings s = TB_SETTINGS_UNSET;
        char text[80];
        s.dropout = 0.1;
        snprintf(text, sizeof text, "%sblock: x = x + F(norm(x))", stems[i]);
        TB_OKAY(T, tb_block_load(T->ctx, text, &b));
        TB_OKAY(T, tb_explained_open(T->ctx, &e, b, &s));
        TB_OKAY(T, tb_explained_diagram(T->ctx, &e.arena, &e, e.kinds, &d));
        TB_CHECK(T, !d.wired && d.before == i && d.count == i + 1);
        tb_explained_close(&e);
        tb_block_destroy(T->ctx, b);
    }
}

/* The second sublayer reads what the first was added to: no parallel pair. */
TB_TEST(sums_in_turn)
{
    tb_block *b;
    tb_explained e;
    tb_diagram d;
    tb_settings s = TB_SETTINGS_UNSET;
    TB_OKAY(T, tb_block_load(
                   T->ctx, "x = x + attn(norm(x)); x = x + ffn(norm(x))", &b));
    TB_OKAY(T, tb_explained_open(T->ctx, &e, b, &s));
    TB_OKAY(T, tb_explained_diagram(T->ctx, &e.arena, &e, e.kinds, &d));
    TB_CHECK(T, !d.wired && d.count == 2);
    TB_CHECK(T, d.items[0].n == 1 && d.items[1].n == 1);
    tb_explained_close(&e);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(wires_golden)
{
    static const char *const names[] = {"revnet", "highway", "ngpt",
                                        "muddformer", "hyper-connections"};
    tb_out *out;
    char file[64];
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (size_t i = 0; i < TB_LEN(names); i++) {
        tb_block *b;
        tb_scene *scene;
        tb_settings s = TB_SETTINGS_UNSET;
        TB_OKAY(T, tb_block_load(T->ctx, names[i], &b));
        TB_OKAY(T, tb_explain_scene(T->ctx, b, &s, &scene));
        check_figure(T, scene, out);
        tb_format(file, sizeof file, "wires_%s.svg", names[i]);
        if (i < 2)
            golden(T, file, tb_out_str(out));
        tb_scene_destroy(scene);
        tb_block_destroy(T->ctx, b);
    }
    text_of(T, "post-ln", TB_STACKS_BOTH, out);
    TB_CHECK(T, strstr(tb_out_str(out), "memory"));
    TB_CHECK(T, strstr(tb_out_str(out), "cross"));
    text_of(T, "mix-ln", TB_STACKS_DECODER, out);
    TB_CHECK(T, strstr(tb_out_str(out), "mix-ln, block 1\n"));
    TB_CHECK(T, strstr(tb_out_str(out), "mix-ln, blocks 2-6\n"));
    tb_out_destroy(out);
}
