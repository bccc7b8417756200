/* SPDX-License-Identifier: MIT */
/* From a graph to wires: what depends on the streams is drawn, what does not
 * (weights, constants) stands in the label of what reads it, a sublayer is one
 * box with all that it reads from outside. */
#include "pictures/diagram_of.h"
#include "pictures/wiring.h"

typedef struct wirer {
    tb_ctx *ctx;
    tb_arena *a;
    const tb_graph *g;
    struct tb_wiring *w;
    int *at;                       /* per graph node: wired node, -1 */
    int *top;                      /* per graph node: outermost sublayer, -1 */
    unsigned char *moves, *wanted; /* depends on data; something drawn reads */
    tb_wired_part part;
    bool open; /* sublayers have their own names */
} wirer;

/* --- what is drawn -------------------------------------------------------- */

static bool is_mask(const tb_node *n)
{
    const char *dot = n->op == &tb_op_input ? strrchr(n->name, '.') : NULL;
    return dot && tb_streq(dot, ".keep");
}

static bool is_leaf(const tb_node *n)
{
    return n->op == &tb_op_input || n->op == &tb_op_tokens;
}

/* Regions are in order; an outer one comes before those inside it or ends
 * behind them. */
static void find_regions(wirer *r)
{
    for (int i = 0; i < r->g->nnodes; i++)
        r->top[i] = -1;
    for (int k = 0; k < r->g->nregions; k++) {
        const tb_region *in = &r->g->regions[k];
        for (int i = in->first; i <= in->out && i < r->g->nnodes; i++) {
            int old = r->top[i];
            bool inside = old >= 0 && r->g->regions[old].out >= in->out &&
                          r->g->regions[old].first <= in->first;
            if (!inside && r->g->nodes[i].region >= 0 &&
                !is_leaf(&r->g->nodes[i])) /* an element enters where it is
                                              read first */
                r->top[i] = k;
        }
    }
}

static void find_moving(wirer *r)
{
    for (int i = 0; i < r->g->nnodes; i++) {
        const tb_node *n = &r->g->nodes[i];
        r->moves[i] = is_leaf(n) && !is_mask(n);
        for (int k = 0; k < n->nin && !r->moves[i]; k++)
            r->moves[i] = r->moves[n->in[k]];
    }
}

/* Past aliases, and from inside a sublayer to its end. */
static int drawn(const wirer *r, int node)
{
    for (;;) {
        const tb_node *n = &r->g->nodes[node];
        if (r->top[node] >= 0)
            return r->g->regions[r->top[node]].out;
        if (n->op != &tb_op_identity && n->op != &tb_op_branch)
            return node;
        node = n->in[0];
    }
}

/* The streams that a drawn node reads, as drawn nodes, the main one first. */
static int inputs_of(const wirer *r, int node, int *out, int most)
{
    const tb_graph *g = r->g;
    int region = r->top[node], n = 0;
    int first = region >= 0 ? g->regions[region].first : node;
    if (region >= 0 && r->moves[g->regions[region].in[0]])
        out[n++] = drawn(r, g->regions[region].in[0]);
    for (int i = first; i <= node; i++) {
        bool inside = region >= 0 ? r->top[i] == region : i == node;
        for (int k = 0; inside && k < g->nodes[i].nin; k++) {
            int from = g->nodes[i].in[k];
            if (!r->moves[from] || (region >= 0 && r->top[from] == region))
                continue;
            from = drawn(r, from);
            bool known = false;
            for (int j = 0; region >= 0 && j < n; j++)
                known = known || out[j] == from;
            if (!known && n < most)
                out[n++] = from;
        }
    }
    return n;
}

enum { MOST = 64 }; /* streams that one drawn node reads */

/* From the marked nodes down to all that they read. */
static void want_below(wirer *r)
{
    int in[MOST];
    for (int i = r->g->nnodes - 1; i >= 0; i--) {
        int n = r->wanted[i] ? inputs_of(r, i, in, MOST) : 0;
        for (int k = 0; k < n; k++)
            r->wanted[in[k]] = 1;
    }
}

/* --- kinds and labels ----------------------------------------------------- */

static const char *affine_text(wirer *r, const tb_node *n, bool *times)
{
    const tb_attr *scale = &n->attr[TB_ATTR_AFFINE_SCALE];
    const tb_attr *offset = &n->attr[TB_ATTR_AFFINE_OFFSET];
    bool moved = offset->expr || offset->value != 0;
    bool minus = !scale->expr && scale->value == -1;
    bool plain = !scale->expr && scale->value == 1;
    const char *s = tb_attr_text(r->ctx, r->a, scale);
    const char *o = tb_attr_text(r->ctx, r->a, offset);
    if (!s || !o)
        return NULL;
    *times = !moved;
    if (!moved)
        return s;
    if (minus)
        return tb_arena_printf(r->a, "%s \xE2\x88\x92 \xC2\xB7", o);
    if (plain)
        return tb_arena_printf(r->a, "+ %s", o);
    return tb_arena_printf(r->a, "%s\xC2\xB7 + %s", s, o);
}

/* The name of the weight that is applied: "a_r" of "a_r.weight". */
static const char *weight_text(wirer *r, const tb_node *n)
{
    const char *full = r->g->nodes[n->in[1]].name;
    const char *dot = full ? strchr(full, '.') : NULL;
    if (dot && strchr(dot + 1, '.'))
        full = dot + 1;
    return full ? tb_arena_strndup(r->a, full, strcspn(full, ".")) : "linear";
}

static const char *mix_text(wirer *r, const tb_node *n)
{
    const tb_node *w = &r->g->nodes[n->in[n->nin - 1]];
    const tb_attr *row = &n->attr[TB_ATTR_MIX_ROW];
    double of = n->attr[TB_ATTR_MIX_OF].value;
    size_t columns = of > 0 ? (size_t)of : (size_t)(n->nin - 1);
    const char *what = r->moves[n->in[n->nin - 1]]
                           ? "mix"
                           : tb_arena_printf(r->a, "mix %s",
                                             tb_node_text(r->ctx, r->a, r->g,
                                                          n->in[n->nin - 1]));
    bool rows = w->shape.kind == TB_SHAPE_MATRIX ||
                (w->shape.kind == TB_SHAPE_STREAM && w->shape.width > columns);
    if (!what || !rows)
        return what;
    tb_attr from_1 = {NULL, row->value + 1, NULL};
    if (row->expr)
        from_1 = (tb_attr){row->expr->args[0].value, 0, NULL};
    const char *which = tb_attr_text(r->ctx, r->a, &from_1);
    return which ? tb_arena_printf(r->a, "%s, row %s", what, which) : NULL;
}

/* A pill: the operand that stands still, after the sign. */
static void still(wirer *r, const char *sign, int other, tb_wired *out)
{
    const char *text = tb_node_text(r->ctx, r->a, r->g, other);
    out->kind = TB_WIRED_SCALE;
    out->label = text ? tb_arena_printf(r->a, "%s %s", sign, text) : NULL;
}

static void sum_kind(wirer *r, const tb_node *n, tb_wired *out)
{
    bool minus = n->op->jac == TB_JAC_DIFF;
    const char *sign = minus ? "\xE2\x88\x92" : "+";
    out->kind = TB_WIRED_PLUS;
    out->label = sign;
    if (!r->moves[n->in[1]])
        still(r, sign, n->in[1], out);
    else if (!r->moves[n->in[0]])
        still(r, "+", n->in[0], out);
    else
        out->odd = minus ? 1 : -1;
}

static void product_kind(wirer *r, const tb_node *n, tb_wired *out)
{
    bool over = n->op->jac == TB_JAC_QUOT;
    out->kind = TB_WIRED_TIMES;
    out->label = over ? "\xC3\xB7" : "\xC3\x97";
    if (!r->moves[n->in[1]])
        still(r, over ? "/" : "\xC3\x97", n->in[1], out);
    else if (!r->moves[n->in[0]])
        still(r, "\xC3\x97", n->in[0], out);
    else
        out->odd = over ? 1 : -1;
}

static void mix_kind(wirer *r, const tb_node *n, tb_wired *out)
{
    const tb_node *w = &r->g->nodes[n->in[n->nin - 1]];
    out->kind = TB_WIRED_BOX;
    if (n->nin == 2 && r->moves[n->in[1]] && w->shape.width == 1) {
        out->kind = TB_WIRED_TIMES; /* a factor for each token */
        out->label = "\xC3\x97";
        return;
    }
    out->label = mix_text(r, n);
}

static void affine_kind(wirer *r, const tb_node *n, tb_wired *out)
{
    bool times;
    const char *text = affine_text(r, n, &times);
    out->kind = TB_WIRED_SCALE;
    out->label =
        text && times ? tb_arena_printf(r->a, "\xC3\x97 %s", text) : text;
}

static void kind_of(wirer *r, int node, tb_wired *out)
{
    const tb_node *n = &r->g->nodes[node];
    if (r->top[node] >= 0) {
        const tb_region *in = &r->g->regions[r->top[node]];
        out->kind = TB_WIRED_BOX;
        out->label = tb_arena_strdup(r->a, r->open ? in->name : in->shown);
    } else if (n->op->jac == TB_JAC_AFFINE) {
        affine_kind(r, n, out);
    } else if (n->nin > 1 &&
               (n->op->jac == TB_JAC_SUM || n->op->jac == TB_JAC_DIFF)) {
        sum_kind(r, n, out);
    } else if (n->op->jac == TB_JAC_PROD || n->op->jac == TB_JAC_QUOT) {
        product_kind(r, n, out);
    } else if (n->op->jac == TB_JAC_MIX) {
        mix_kind(r, n, out);
    } else {
        bool toll = n->op->lane == TB_LANE_TOLL;
        out->kind = toll ? TB_WIRED_NORM : TB_WIRED_BOX;
        out->label =
            n->op->jac == TB_JAC_WEIGHT ? weight_text(r, n) : n->op->symbol;
    }
}

/* --- nodes of the wiring -------------------------------------------------- */

static int stream_named(const struct tb_wiring *w, const char *name)
{
    for (int i = 0; i < w->nstreams; i++)
        if (tb_streq(w->streams[i], name))
            return i;
    return -1;
}

/* past[2] as formulas write it. */
static const char *outside_name(wirer *r, const char *name)
{
    const char *dot = strchr(name, '.');
    return dot ? tb_arena_printf(r->a, "%.*s[%s]", (int)(dot - name), name,
                                 dot + 1)
               : tb_arena_strdup(r->a, name);
}

static tb_status put(wirer *r, tb_wired one, const int *in)
{
    struct tb_wiring *w = r->w;
    int *kept = tb_arena_alloc(r->a, ((size_t)one.n + 1) * sizeof *kept);
    if (!kept || !one.label)
        return TB_ERR_MEMORY;
    if (one.n)
        memcpy(kept, in, (size_t)one.n * sizeof *kept);
    one.in = kept;
    one.part = r->part;
    w->nodes[w->n++] = one;
    return TB_OK;
}

/* What leaves the part before under this name, or came into it. */
static int known_as(const wirer *r, const char *label)
{
    for (int i = r->w->n - 1; i >= 0 && r->part != TB_WIRED_STEM; i--) {
        const tb_wired *o = &r->w->nodes[i];
        const char *known =
            o->kind == TB_WIRED_OUT ? o->name
            : o->kind == TB_WIRED_IN && o->stream < 0 && o->part != r->part
                ? o->label
                : "";
        if (o->part != r->part && tb_streq(known, label))
            return i;
    }
    return -1;
}

static tb_status put_input(wirer *r, int node)
{
    const char *name = r->g->nodes[node].name;
    const char *label = outside_name(r, name);
    int known = known_as(r, label);
    if (known >= 0) {
        r->at[node] = known;
        return TB_OK;
    }
    r->at[node] = r->w->n;
    tb_wired one = {.kind = TB_WIRED_IN,
                    .label = label,
                    .node = node,
                    .stream = r->part == TB_WIRED_STEM ? 0
                              : r->part == TB_WIRED_AFTER
                                  ? -1
                                  : stream_named(r->w, name),
                    .odd = -1};
    return put(r, one, &node);
}

static tb_status put_node(wirer *r, int node)
{
    const tb_node *n = &r->g->nodes[node];
    int in[MOST];
    tb_wired one = {.stream = -1, .odd = -1};
    kind_of(r, node, &one);
    one.node = node;
    one.n = inputs_of(r, node, in, MOST);
    if (n->name && stream_named(r->w, n->name) < 0 && n->op != &tb_op_branch)
        one.name = tb_arena_strdup(r->a, n->name);
    for (int i = 0; i < one.n; i++)
        in[i] = r->at[in[i]];
    r->at[node] = r->w->n;
    return put(r, one, in);
}

static tb_status put_output(wirer *r, const char *name, int node)
{
    int in = r->at[drawn(r, node)];
    int stream = stream_named(r->w, name);
    const char *plain = outside_name(r, name);
    const char *label = stream >= 0 && plain && r->part != TB_WIRED_STEM
                            ? tb_arena_printf(r->a, "%s\xE2\x80\xB2", plain)
                            : plain;
    return put(r,
               (tb_wired){.kind = TB_WIRED_OUT,
                          .label = label,
                          .name = plain,
                          .node = node,
                          .stream = stream,
                          .n = 1,
                          .odd = -1},
               &in);
}

/* --- lanes ---------------------------------------------------------------- */

static bool passes(const tb_wired *n, const wirer *r)
{
    if (n->kind == TB_WIRED_IN || n->kind == TB_WIRED_OUT)
        return false;
    return r->top[n->node] < 0 && r->g->nodes[n->node].op->lane != TB_LANE_CUT;
}

/* Nodes on a way from `from` to `out` that meets no branch; where there is
 * none, those that the main inputs lead back to: they stand in the row. */
static tb_status mark_lane(wirer *r, int stream, int from, int out)
{
    struct tb_wiring *w = r->w;
    unsigned char *bits = tb_arena_alloc(r->a, (size_t)w->n + 1);
    if (!bits)
        return TB_ERR_MEMORY;
    bits[from] = 1;
    for (int i = from + 1; i < w->n; i++)
        for (int k = 0; k < w->nodes[i].n && passes(&w->nodes[i], r); k++)
            bits[i] |= bits[w->nodes[i].in[k]] & 1;
    int last = w->nodes[out].in[0];
    bool lane = bits[last] & 1;
    w->nodes[out].lane = lane;
    bits[last] |= 2;
    for (int i = last; i > from; i--) {
        tb_wired *n = &w->nodes[i];
        if (!(bits[i] & 2) || (lane && !(bits[i] & 1)) ||
            n->kind == TB_WIRED_IN || n->kind == TB_WIRED_OUT)
            continue;
        if (n->stream < 0)
            n->stream = stream;
        n->lane = n->lane || lane;
        for (int k = 0; k < n->n && (lane || k == 0); k++)
            bits[n->in[k]] |= 2;
    }
    return TB_OK;
}

/* Does the lane of what leaves begin there? All streams of a stem begin with
 * the embedding, those of a block where they leave the stem, if there is one.
 */
static bool starts(const wirer *r, const tb_wired *n, const tb_wired *out)
{
    if (r->part == TB_WIRED_STEM)
        return n->kind == TB_WIRED_IN;
    bool enters = n->kind == TB_WIRED_IN && n->part == TB_WIRED_BLOCK &&
                  r->part == TB_WIRED_BLOCK;
    bool left = n->kind == TB_WIRED_OUT && n->part + 1 == r->part;
    return (enters || left) && n->stream == out->stream;
}

static tb_status mark_lanes(wirer *r, int first_out)
{
    struct tb_wiring *w = r->w;
    for (int o = first_out; o < w->n; o++) {
        /* x first, which is the last to leave a stem */
        int i = r->part == TB_WIRED_STEM ? w->n - 1 - (o - first_out) : o;
        for (int k = 0; k < first_out && w->nodes[i].stream >= 0; k++) {
            if (!starts(r, &w->nodes[k], &w->nodes[i]))
                continue;
            w->nodes[k].lane = w->nodes[k].lane || r->part != TB_WIRED_AFTER;
            TB_TRY(mark_lane(r, w->nodes[i].stream, k, i));
        }
    }
    return TB_OK;
}

/* --- a graph -------------------------------------------------------------- */

static tb_status begin(wirer *r, const tb_graph *g)
{
    size_t n = (size_t)g->nnodes + 1;
    r->g = g;
    r->at = tb_arena_alloc(r->a, n * sizeof *r->at);
    r->top = tb_arena_alloc(r->a, n * sizeof *r->top);
    r->moves = tb_arena_alloc(r->a, n);
    r->wanted = tb_arena_alloc(r->a, n);
    /* its nodes, and each may leave as well */
    size_t room = (size_t)r->w->n + 2 * n + (size_t)g->noutputs;
    tb_wired *nodes = tb_arena_alloc(r->a, room * sizeof *nodes);
    if (!r->at || !r->top || !r->moves || !r->wanted || !nodes)
        return TB_ERR_MEMORY;
    if (r->w->n)
        memcpy(nodes, r->w->nodes, (size_t)r->w->n * sizeof *nodes);
    r->w->nodes = nodes;
    find_regions(r);
    find_moving(r);
    return TB_OK;
}

static tb_status put_all(wirer *r)
{
    want_below(r);
    for (int leaves = 1; leaves >= 0; leaves--)
        for (int i = 0; i < r->g->nnodes; i++)
            if (r->wanted[i] && is_leaf(&r->g->nodes[i]) == leaves)
                TB_TRY(leaves ? put_input(r, i) : put_node(r, i));
    return TB_OK;
}

/* Does a sublayer read more than its argument, or does something beside the
 * streams go through? Then every step is drawn. */
static bool is_alike(wirer *r)
{
    int in[MOST];
    const tb_graph *g = r->g;
    if (g->nlists || g->nstreams != g->ncarried || g->ncuts < 3)
        return false;
    for (int k = 0; k < g->nregions; k++)
        if (inputs_of(r, g->regions[k].out, in, MOST) > 1)
            return false;
    return true;
}

static tb_status name_streams(wirer *r, const tb_graph *g)
{
    const char **names =
        tb_arena_alloc(r->a, ((size_t)g->ncarried + 1) * sizeof *names);
    for (int i = 0; names && i < g->ncarried; i++)
        names[i] = tb_arena_strdup(r->a, g->outputs[i].name);
    r->w->streams = names;
    r->w->nstreams = g->ncarried;
    return names ? TB_OK : TB_ERR_MEMORY;
}

static tb_status wire_stem(wirer *r, const tb_graph *g)
{
    r->part = TB_WIRED_STEM;
    TB_TRY(begin(r, g));
    r->wanted[g->inputs[0]] = 1;
    for (int i = 0; i < g->noutputs; i++)
        r->wanted[drawn(r, g->outputs[i].node)] = 1;
    TB_TRY(put_all(r));
    int first_out = r->w->n;
    for (int i = g->noutputs - 1; i >= 0; i--) /* x leaves its row last */
        TB_TRY(put_output(r, g->outputs[i].name, g->outputs[i].node));
    r->w->stem = r->w->n;
    return mark_lanes(r, first_out);
}

static tb_status wire_block(wirer *r, const tb_graph *g)
{
    tb_jacobian j;
    r->part = TB_WIRED_BLOCK;
    TB_TRY(begin(r, g));
    TB_TRY(tb_jacobian_build(r->ctx, r->a, g, TB_JAC_CLOSED, &j));
    bool one = is_alike(r) && tb_jacobian_steps(r->ctx, &j) == 1;
    int n = one ? g->nstreams : g->noutputs;
    for (int i = 0; i < g->ncarried; i++) /* also one that nobody reads */
        r->wanted[g->inputs[i]] = 1;
    r->open = !one;
    r->w->step = one;
    for (int i = 0; i < n; i++)
        r->wanted[drawn(r, one ? g->cuts[1].nodes[i] : g->outputs[i].node)] = 1;
    TB_TRY(put_all(r));
    int first_out = r->w->n;
    for (int k = 0; k < n; k++) { /* elements of lists are out of the way */
        int i = (k + g->ncarried) % n;
        TB_TRY(put_output(r, g->outputs[i].name,
                          one ? g->cuts[1].nodes[i] : g->outputs[i].node));
    }
    r->w->block = r->w->n;
    return mark_lanes(r, first_out);
}

static tb_status wire_tail(wirer *r, const tb_graph *g)
{
    if (g->nboundaries < 2)
        return TB_OK;
    int last = g->boundaries[g->nboundaries - 1].node;
    r->part = TB_WIRED_AFTER;
    TB_TRY(begin(r, g));
    if (g->nodes[drawn(r, last)].op == &tb_op_input)
        return TB_OK;
    r->wanted[drawn(r, last)] = 1;
    TB_TRY(put_all(r));
    int first_out = r->w->n, in = r->at[drawn(r, last)];
    bool memory = tb_streq(g->outputs[0].name, "memory");
    TB_TRY(put(r,
               (tb_wired){.kind = TB_WIRED_OUT,
                          .label = memory ? "memory" : "to the head",
                          .node = last,
                          .stream = 0,
                          .n = 1,
                          .odd = -1},
               &in));
    return mark_lanes(r, first_out);
}

tb_status tb_wiring_of(tb_ctx *ctx, tb_arena *arena, const tb_graph *stem,
                       const tb_graph *g, const tb_graph *tail,
                       struct tb_wiring *out)
{
    wirer r = {.ctx = ctx, .a = arena, .w = out};
    *out = (struct tb_wiring){0};
    TB_TRY(name_streams(&r, g));
    if (stem)
        TB_TRY(wire_stem(&r, stem));
    TB_TRY(wire_block(&r, g));
    return tail ? wire_tail(&r, tail) : TB_OK;
}

const char *tb_wired_text(tb_arena *a, const tb_wired *w)
{
    static const char *const words[][2] = {
        [TB_WIRED_TIMES] = {"times", "divide"},
        [TB_WIRED_PLUS] = {"add", "subtract"}};
    bool joins = w->kind == TB_WIRED_TIMES || w->kind == TB_WIRED_PLUS;
    const char *what = joins ? words[w->kind][w->odd >= 0] : w->label;
    return w->name && w->kind != TB_WIRED_OUT && w->kind != TB_WIRED_IN
               ? tb_arena_printf(a, "%s = %s", w->name, what)
               : what;
}

enum { TOLD = 40 }; /* nodes that the words name */

const char *tb_wiring_describe(tb_arena *a, const struct tb_wiring *w)
{
    tb_buf b;
    int told = 0, norms = 0, on_lane = 0, all = 0;
    tb_buf_init(&b, a->ctx);
    for (int i = 0; i < w->nstreams; i++)
        tb_buf_printf(&b, "%s%s",
                      i                 ? ", "
                      : w->nstreams > 1 ? "Streams "
                                        : "",
                      w->streams[i]);
    for (int i = 0; i < w->n; i++) {
        const tb_wired *n = &w->nodes[i];
        norms += n->kind == TB_WIRED_NORM;
        on_lane += n->kind == TB_WIRED_NORM && n->lane;
        if (n->kind == TB_WIRED_IN || n->kind == TB_WIRED_OUT)
            continue;
        if (all++ < TOLD)
            tb_buf_printf(&b, "%s%s", told++ ? ", " : ": ",
                          tb_wired_text(a, n));
    }
    if (all > told)
        tb_buf_printf(&b, " and %d more", all - told);
    tb_buf_printf(&b, "; %d norm%s, %d of them on a lane.", norms,
                  norms == 1 ? "" : "s", on_lane);
    const char *out = b.failed ? NULL : tb_arena_strndup(a, b.data, b.len);
    tb_buf_clear(&b);
    return out;
}

static void node_json(const tb_wired *n, tb_json *j)
{
    static const char *const kinds[] = {
        [TB_WIRED_IN] = "in",       [TB_WIRED_OUT] = "out",
        [TB_WIRED_BOX] = "box",     [TB_WIRED_NORM] = "norm",
        [TB_WIRED_SCALE] = "scale", [TB_WIRED_TIMES] = "times",
        [TB_WIRED_PLUS] = "plus"};
    tb_json_object(j, NULL);
    tb_json_string(j, "kind", kinds[n->kind]);
    tb_json_string(j, "label", n->label);
    tb_json_bool(j, "lane", n->lane);
    tb_json_bool(j, "before", n->part == TB_WIRED_STEM);
    tb_json_bool(j, "after", n->part == TB_WIRED_AFTER);
    tb_json_array(j, "inputs");
    for (int i = 0; i < n->n; i++)
        tb_json_int(j, NULL, n->in[i]);
    tb_json_end(j);
    tb_json_end(j);
}

void tb_wiring_json(const struct tb_wiring *w, tb_json *j)
{
    tb_json_array(j, "streams");
    for (int i = 0; i < w->nstreams; i++)
        tb_json_string(j, NULL, w->streams[i]);
    tb_json_end(j);
    tb_json_array(j, "nodes");
    for (int i = 0; i < w->n; i++)
        node_json(&w->nodes[i], j);
    tb_json_end(j);
}
