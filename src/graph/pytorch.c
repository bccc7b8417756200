/* SPDX-License-Identifier: MIT */
/* The file: a class per block section, and the model. */
#include "graph/pytorch_parts.h"

/* --- texts that fail once ----------------------------------------------- */

void tb_py_fail(tb_py *py, tb_status s)
{
    if (py->status == TB_OK)
        py->status = s;
}

const char *tb_py_take(tb_py *py, tb_buf *b)
{
    const char *text =
        b->failed ? NULL : tb_arena_strdup(&py->arena, tb_buf_str(b));
    tb_buf_clear(b);
    if (text)
        return text;
    tb_py_fail(py, TB_ERR_MEMORY);
    return "";
}

const char *tb_py_printf(tb_py *py, const char *fmt, ...)
{
    tb_buf b;
    va_list ap;
    tb_buf_init(&b, py->ctx);
    va_start(ap, fmt);
    tb_buf_vprintf(&b, fmt, ap);
    va_end(ap);
    return tb_py_take(py, &b);
}

void *tb_py_alloc(tb_py *py, size_t n, size_t size)
{
    size_t bytes;
    if (py->status != TB_OK)
        return NULL;
    void *p =
        tb_mul(n + 1, size, &bytes) ? tb_arena_alloc(&py->arena, bytes) : NULL;
    if (!p)
        tb_py_fail(py, TB_ERR_MEMORY);
    return p;
}

/* --- one graph
 * ----------------------------------------------------------------- */

/* parts: those of the graph's stack, its stem first. */
static void graph_begin(tb_py_graph *t, tb_py *py, tb_stack stack,
                        const tb_py_part *parts, const tb_graph *g)
{
    *t = (tb_py_graph){
        .py = py, .g = g, .stack = stack, .self = "self", .parts = parts};
    t->consumer = tb_py_alloc(py, (size_t)g->nparams, sizeof *t->consumer);
    t->regions = tb_py_alloc(py, (size_t)g->nregions, sizeof *t->regions);
    if (py->status != TB_OK)
        return;
    for (int i = 0; i < g->nparams; i++)
        t->consumer[i] = -1;
    for (int i = g->nnodes - 1; i >= 0; i--)
        for (int j = 0; j < g->nodes[i].nin; j++) {
            int param = g->nodes[g->nodes[i].in[j]].param;
            if (param >= 0)
                t->consumer[param] = i;
        }
}

/* --- a block section
 * ---------------------------------------------------------- */

static void doc_section(tb_py *py, const tb_section *s, tb_buf *out)
{
    static const char *const words[] = {"block", "stem", "final"};
    tb_buf b;
    tb_buf_init(&b, py->ctx);
    if (s->role)
        tb_buf_printf(&b, "%s ", s->role);
    tb_buf_puts(&b, words[s->kind]);
    if (s->condition) {
        tb_buf_putc(&b, '[');
        tb_expr_print(s->condition, &b);
        tb_buf_putc(&b, ']');
    }
    tb_buf_putc(&b, ':');
    const char *head = tb_py_take(py, &b);
    tb_py_doc(out, 4, head, strlen(head));
    for (int i = 0; i < s->nstmts; i++) {
        tb_buf_init(&b, py->ctx);
        tb_buf_printf(&b, "    %s = ", s->stmts[i].name);
        tb_expr_print(s->stmts[i].value, &b);
        const char *text = tb_py_take(py, &b);
        tb_py_doc(out, 4, text, strlen(text));
    }
}

/* "F is attn, then ffn." */
static void doc_sublayers(const tb_graph *g, tb_buf *out)
{
    int n = 0;
    for (int i = 0; i < g->nregions; i++)
        if (tb_streq(g->regions[i].shown, "F") &&
            (i == 0 || g->regions[i].k != g->regions[i - 1].k))
            tb_buf_printf(out, "%s%s", n++ ? ", then " : "\n    F is ",
                          g->regions[i].name);
    tb_buf_puts(out, n ? ".\n" : "");
}

static const char *block_doc(tb_py_graph *t)
{
    tb_py *py = t->py;
    const tb_block *block = py->stack->block;
    tb_buf b;
    int section = 0;
    const tb_sizes *sizes = py->stack->sizes;
    tb_status s = tb_graph_section(py->ctx, block, sizes, t->stack,
                                   t->layers[0], &section);
    if (s != TB_OK)
        tb_py_fail(py, s);
    tb_buf_init(&b, py->ctx);
    tb_buf_puts(&b, "    \"\"\"One block.\n\n");
    doc_section(py, &block->sections[section], &b);
    doc_sublayers(t->g, &b);
    tb_buf_puts(&b, "    \"\"\"\n");
    return tb_py_take(py, &b);
}

/* ", keep, memory_keep": the masks that are there. */
static const char *masks(tb_py *py, const char *const keep[2],
                         const char *value)
{
    tb_buf b;
    tb_buf_init(&b, py->ctx);
    for (int i = 0; i < 2; i++)
        if (keep[i])
            tb_buf_printf(&b, ", %s%s", keep[i], value);
    return tb_py_take(py, &b);
}

/* What a layer takes, "x, y, memory, past": its streams, its memory, and its
 * lists; without the memory it is what it gives back. */
static const char *inputs(tb_py *py, const tb_graph *g, bool memory)
{
    tb_buf b;
    tb_buf_init(&b, py->ctx);
    for (int i = 0; i < g->ninputs; i++) {
        const char *name = g->nodes[g->inputs[i]].name;
        if (strchr(name, '.') || (i >= g->ncarried && !memory))
            continue;
        tb_buf_printf(&b, "%s%s", i ? ", " : "", tb_py_local(py, name));
    }
    for (int i = 0; i < g->nlists; i++)
        tb_buf_printf(&b, ", %s", tb_py_local(py, g->lists[i].name));
    return tb_py_take(py, &b);
}

/* Every input by the name under which it is there. */
static void bind_inputs(tb_py_body *b)
{
    const tb_graph *g = b->t->g;
    for (int i = 0; i < g->ninputs && b->py->status == TB_OK; i++) {
        const char *name = g->nodes[g->inputs[i]].name;
        int mask = tb_py_mask(name);
        if (mask >= 0)
            tb_py_hold(b, b->t->keep[mask], g->inputs[i]);
        else
            tb_py_body_bind(b, tb_py_input(b->py, name), g->inputs[i]);
    }
}

static void wanted_nodes(const tb_graph *g, int *out)
{
    for (int i = 0; i < g->noutputs; i++)
        out[i] = g->outputs[i].node;
}

static const char *block_forward(tb_py_graph *t)
{
    const tb_graph *g = t->g;
    tb_py_body b;
    tb_buf out;
    int *wanted = tb_py_alloc(t->py, (size_t)g->noutputs, sizeof *wanted);
    tb_buf_init(&out, t->py->ctx);
    tb_buf_printf(&out, "\n    def forward(self, %s%s):\n",
                  inputs(t->py, g, true), masks(t->py, t->keep, "=None"));
    if (!wanted)
        return tb_py_take(t->py, &out);
    wanted_nodes(g, wanted);
    tb_py_body_begin(&b, t, -1, wanted, g->noutputs, &out);
    bind_inputs(&b);
    if (t->py->status == TB_OK) {
        tb_py_body_run(&b);
        tb_py_body_leave(&b);
    }
    return tb_py_take(t->py, &out);
}

static const char init_head[] = "\n    def init_weights(self):\n"
                                "        \"\"\"The distributions that "
                                "tollbooth starts from.\"\"\"\n";

/** A printed section, joined to a class when it is known who takes l. */
typedef struct section_text {
    tb_py_graph t;
    const char *doc, *modules, *init, *forward, *name;
} section_text;

static void section_print(section_text *s)
{
    tb_py_graph *t = &s->t;
    tb_buf b;
    tb_py_sublayers(t);
    t->body_l = t->ctor_l = false;
    s->doc = block_doc(t);
    s->forward = block_forward(t);
    tb_buf_init(&b, t->py->ctx);
    tb_py_modules(t, NULL, &b);
    s->modules = tb_py_take(t->py, &b);
    tb_buf_init(&b, t->py->ctx);
    tb_buf_puts(&b, init_head);
    tb_py_starts(t, &b);
    s->init = tb_py_take(t->py, &b);
}

/* --- the stack
 * ------------------------------------------------------------------ */

/** One stack of the model, from its stem to its final or tail. */
typedef struct tower {
    tb_py *py;
    tb_stack which;
    const tb_py_part *parts;
    size_t depth;
    const char *self, *name; /* "self.encoder", "Encoder"; "self", "" */
    const char *count;       /* "N", "M" */
    section_text *sections;
    size_t nsections, *section_of; /* per layer, from 0 */
    bool takes_l;
    const char *keep[2]; /* masks of its tokens and its memory's in the model's
                            methods; NULL: nothing reads it */
    tb_py_graph stem, end;
} tower;

static size_t section_with(tower *s, const tb_graph *g)
{
    for (size_t i = 0; i < s->nsections; i++)
        if (s->sections[i].t.g == g)
            return i;
    graph_begin(&s->sections[s->nsections].t, s->py, s->which, s->parts, g);
    return s->nsections++;
}

/* Which layer has which graph. */
static void find_sections(tower *s)
{
    tb_py *py = s->py;
    size_t most = (size_t)py->stack->block->nsections + s->depth;
    s->sections = tb_py_alloc(py, most, sizeof *s->sections);
    s->section_of = tb_py_alloc(py, s->depth, sizeof *s->section_of);
    for (size_t l = 0; l < s->depth && py->status == TB_OK; l++) {
        s->section_of[l] = section_with(s, s->parts[l + 1].graph);
        s->sections[s->section_of[l]].t.nparts++;
    }
    for (size_t i = 0; i < s->nsections && py->status == TB_OK; i++) {
        tb_py_graph *t = &s->sections[i].t;
        t->layers = tb_py_alloc(py, t->nparts, sizeof *t->layers);
        t->nparts = 0;
    }
    for (size_t l = 0; l < s->depth && py->status == TB_OK; l++) {
        tb_py_graph *t = &s->sections[s->section_of[l]].t;
        t->layers[t->nparts++] = l + 1;
    }
}

static void block_classes(tower *s)
{
    tb_py *py = s->py;
    for (size_t i = 0; i < s->nsections && py->status == TB_OK; i++) {
        section_text *x = &s->sections[i];
        section_print(x);
        x->name = s->nsections == 1
                      ? tb_py_printf(py, "%sBlock", s->name)
                      : tb_py_printf(py, "%sBlock%zu", s->name, i + 1);
        s->takes_l = s->takes_l || x->t.body_l || x->t.ctor_l;
    }
    for (size_t i = 0; i < s->nsections && py->status == TB_OK; i++) {
        section_text *x = &s->sections[i];
        tb_buf_printf(&py->classes, "\n\nclass %s(nn.Module):\n%s", x->name,
                      tb_py_class_body(&x->t, x->doc, x->modules, s->takes_l,
                                       x->init, x->forward));
    }
}

/* One section: a comprehension. Several: the classes in runs. */
static void layers_line(tower *s, tb_buf *out)
{
    tb_py *py = s->py;
    size_t n = 0;
    const char *list =
        tb_py_printf(py, "        %s.layers = nn.ModuleList(", s->self);
    if (s->nsections == 1) {
        tb_buf_printf(out, "%s%s", list, s->sections[0].name);
        tb_buf_printf(out,
                      s->takes_l ? "(l) for l in range(1, %s + 1))\n"
                                 : "() for _ in range(%s))\n",
                      s->count);
        return;
    }
    const char **runs = tb_py_alloc(py, s->depth, sizeof *runs);
    for (size_t l = 0, next; runs && l < s->depth; l = next) {
        for (next = l + 1;
             next < s->depth && s->section_of[next] == s->section_of[l];)
            next++;
        const char *name = s->sections[s->section_of[l]].name;
        runs[n++] = next - l == 1
                        ? name
                        : tb_py_printf(py, "*[%s] * %zu", name, next - l);
    }
    tb_buf_puts(out, "        blocks = [\n");
    tb_py_fill(out, 12, runs, n);
    const char *each = s->takes_l
                           ? "block(l) for l, block in enumerate(blocks, 1)"
                           : "block() for block in blocks";
    bool wide = strlen(list) + strlen(each) >= TB_PY_COLUMNS;
    tb_buf_printf(out,
                  wide ? "        ]\n%s\n            %s\n        )\n"
                       : "        ]\n%s%s)\n",
                  list, each);
}

/* --- the model
 * ------------------------------------------------------------------ */

static bool serves(const tb_py *py, const tb_section *s)
{
    const tb_sizes *sizes = py->stack->sizes;
    bool both = sizes->s.stack == TB_STACKS_BOTH;
    return tb_section_serves(py->stack->block, s, sizes, tb_sizes_top(sizes)) ||
           (both &&
            tb_section_serves(py->stack->block, s, sizes, TB_STACK_ENCODER));
}

static void model_doc(tb_py *py, tb_buf *out)
{
    const tb_block *b = py->stack->block;
    bool both = py->stack->sizes->s.stack == TB_STACKS_BOTH;
    int n = 0;
    tb_buf_puts(out, both ? "    \"\"\"Embedding, N blocks that read a source, "
                            "M that read them, head."
                          : "    \"\"\"Embedding, N blocks, head.");
    for (int i = 0; i < b->nsections; i++) {
        if (b->sections[i].kind == TB_SECTION_BLOCK ||
            !serves(py, &b->sections[i]))
            continue;
        tb_buf_puts(out, n++ ? "\n" : "\n\n");
        doc_section(py, &b->sections[i], out);
    }
    tb_buf_puts(out, n ? "    \"\"\"\n" : "\"\"\"\n");
}

static void tower_modules(tower *s, tb_buf *out)
{
    if (!tb_streq(s->self, "self"))
        tb_buf_printf(out, "        %s = nn.Module()\n", s->self);
    tb_py_modules(&s->stem, NULL, out);
    layers_line(s, out);
    tb_py_modules(&s->end, NULL, out);
}

static void tower_starts(tower *s, tb_buf *out)
{
    tb_py_starts(&s->stem, out);
    tb_py_starts(&s->end, out);
    tb_buf_printf(out,
                  "        for block in %s.layers:\n"
                  "            block.init_weights()\n",
                  s->self);
}

static bool has_after(const tb_py *py)
{
    return py->stack->unit[0].n + py->stack->unit[1].n > 0;
}

/* UNIT = {name: dimension}: `after:` of the block. */
static void unit_table(tb_py *py, tb_buf *out)
{
    if (!has_after(py))
        return;
    tb_buf_puts(out, "\n# Weights whose rows (1) or columns (0) have length 1; "
                     "* is a layer.\nUNIT = {\n");
    for (int dim = 0; dim < 2; dim++)
        for (size_t i = 0; i < py->stack->unit[dim].n; i++)
            tb_buf_printf(out, "    \"%s\": %d,\n",
                          py->stack->unit[dim].names[i], dim);
    tb_buf_puts(out, "}\n");
}

static const char after_text[] =
    "\n    @torch.no_grad()\n"
    "    def after_step(self):\n"
    "        \"\"\"Call this after every step of the optimizer.\"\"\"\n"
    "        for name, weight in self.named_parameters():\n"
    "            dim = UNIT.get(re.sub(r\"\\d+\", \"*\", name, count=1))\n"
    "            if dim is not None:\n"
    "                length = weight.norm(dim=dim, keepdim=True)\n"
    "                weight /= length.masked_fill(length == 0, 1.0)\n";

static void model_init(tower *towers, size_t n, tb_buf *out)
{
    tb_buf_puts(out, "\n    def __init__(self):\n        super().__init__()\n");
    for (size_t i = 0; i < n; i++)
        tower_modules(&towers[i], out);
    tb_buf_puts(out, "        self.init_weights()\n");
    tb_buf_puts(out, init_head);
    for (size_t i = 0; i < n; i++)
        tower_starts(&towers[i], out);
    if (has_after(towers[0].py))
        tb_buf_printf(out, "        self.after_step()\n%s", after_text);
}

/* `tokens`: the argument that holds them. */
static void stem_lines(tb_py_graph *t, const char *tokens, tb_buf *out)
{
    const tb_graph *g = t->g;
    tb_py_body b;
    int *wanted = tb_py_alloc(t->py, (size_t)g->noutputs, sizeof *wanted);
    if (!wanted)
        return;
    wanted_nodes(g, wanted);
    tb_py_body_begin(&b, t, -1, wanted, g->noutputs, out);
    if (t->py->status != TB_OK)
        return;
    for (int i = 0; i < g->ninputs; i++) {
        int mask = tb_py_mask(g->nodes[g->inputs[i]].name);
        if (mask >= 0)
            tb_py_hold(&b, t->keep[mask], g->inputs[i]);
        else
            tb_py_body_bind(&b, tokens, g->inputs[i]);
    }
    tb_py_body_run(&b);
    tb_py_body_settle(&b);
}

static int output_called(const tb_graph *g, const char *name)
{
    int i = 0;
    while (i + 1 < g->noutputs && !tb_streq(g->outputs[i].name, name))
        i++;
    return g->outputs[i].node;
}

/* The lines of a final or the tail, which return its `what`. */
static void end_lines(tb_py_graph *t, const char *what, tb_buf *out)
{
    const tb_graph *g = t->g;
    tb_py_body b;
    int value = output_called(g, what);
    tb_py_body_begin(&b, t, -1, &value, 1, out);
    bind_inputs(&b);
    if (t->py->status != TB_OK)
        return;
    tb_py_body_run(&b);
    tb_py_body_return(&b, value);
}

/* The loss of the tail's graph, with the model's call for its logits. */
static void loss_method(tb_py_graph *t, const char *const keep[2], tb_buf *out)
{
    const tb_graph *g = t->g;
    tb_py_body b;
    int loss = output_called(g, "loss"), logits = output_called(g, "logits");
    const char *source = t->stack == TB_STACK_CROSS ? "source, " : "";
    tb_buf_printf(out,
                  "\n    def loss(self, %stokens, targets%s):\n"
                  "        \"\"\"Mean cross-entropy per token; a target -1 "
                  "does not count.\"\"\"\n"
                  "        logits = self(%stokens%s)\n",
                  source, masks(t->py, keep, "=None"), source,
                  masks(t->py, keep, ""));
    tb_py_body_begin(&b, t, -1, &loss, 1, out);
    if (t->py->status != TB_OK)
        return;
    tb_py_body_bind(&b, "logits", logits);
    for (int i = 0; i < g->ninputs; i++)
        if (g->nodes[g->inputs[i]].op == &tb_op_tokens)
            tb_py_body_bind(&b, "targets", g->inputs[i]);
    tb_py_body_return(&b, loss);
}

/* Up the stack, from its tokens to what its end gives. */
static void tower_lines(tower *s, const char *tokens, const char *what,
                        tb_buf *out)
{
    const tb_graph *g = s->sections[0].t.g;
    stem_lines(&s->stem, tokens, out);
    tb_buf_printf(out,
                  "        for block in %s.layers:\n"
                  "            %s = block(%s%s)\n",
                  s->self, inputs(s->py, g, false), inputs(s->py, g, true),
                  masks(s->py, s->keep, ""));
    end_lines(&s->end, what, out);
}

/* Masks come as [B, T]; streams of width 1 are what is read. */
static void mask_lines(const char *const keep[2], tb_buf *out)
{
    for (int i = 0; i < 2; i++)
        if (keep[i])
            tb_buf_printf(out,
                          "        if %s is not None:\n"
                          "            %s = %s.unsqueeze(-1)\n",
                          keep[i], keep[i], keep[i]);
}

/* encode(source), of two stacks; its memory in the model's forward. */
static void encode_method(tower *s, tb_buf *out)
{
    const char *given = masks(s->py, s->keep, "=None");
    tb_buf_printf(out,
                  "\n    def encode(self, source%s):\n"
                  "        \"\"\"The memory [B, S, d] of source tokens "
                  "[B, S].\"\"\"\n",
                  given);
    mask_lines(s->keep, out);
    tower_lines(s, "source", "memory", out);
}

static void model_class(tower *towers, size_t n, tb_buf *out)
{
    tower *top = &towers[n - 1];
    tb_py *py = top->py;
    const char *source = n > 1 ? towers[0].keep[0] : NULL;
    /* the source's and the tokens': what either stack reads */
    const char *keep[2] = {source ? source : top->keep[1], top->keep[0]};
    const char *given = masks(py, keep, "=None");
    tb_buf_puts(out, "\n\nclass Model(nn.Module):\n");
    model_doc(py, out);
    model_init(towers, n, out);
    if (n > 1)
        encode_method(&towers[0], out);
    tb_buf_printf(out,
                  "\n    def forward(self, %stokens%s):\n"
                  "        \"\"\"Logits [B, T, VOCAB] of tokens [B, T]%s.",
                  n > 1 ? "source, " : "", given,
                  n > 1 ? " after a source [B, S]" : "");
    tb_buf_puts(out, *given ? "\n\n        A keep is 1 at a token and 0 at "
                              "padding, [B, T] as its tokens.\n        \"\"\"\n"
                            : "\"\"\"\n");
    if (n > 1)
        tb_buf_printf(out, "        memory = self.encode(source%s)\n",
                      masks(py, towers[0].keep, ""));
    mask_lines(top->keep, out);
    tower_lines(top, "tokens", "logits", out);
    loss_method(&top->end, keep, out);
}

/* --- the file
 * ------------------------------------------------------------------- */

/* Stem and end; their layers are [0] and one above the last. */
static void tower_ends(tower *s, const tb_py_graph *before)
{
    tb_py *py = s->py;
    tb_py_graph *ends[] = {&s->stem, &s->end};
    const size_t at[] = {0, s->depth + 1};
    for (size_t i = 0; i < TB_LEN(ends); i++) {
        graph_begin(ends[i], py, s->which, s->parts, s->parts[at[i]].graph);
        ends[i]->layers = tb_py_alloc(py, 1, sizeof *ends[i]->layers);
        if (!ends[i]->layers)
            return;
        ends[i]->layers[0] = at[i];
        ends[i]->nparts = 1;
        ends[i]->self = s->self;
        ends[i]->before = i ? &s->stem : before;
    }
    s->end.is_tail = s->which == tb_sizes_top(py->stack->sizes);
}

static void find_masks(tower *s, const tb_graph *g, const char *const names[2])
{
    for (int i = 0; i < g->ninputs; i++) {
        int mask = tb_py_mask(g->nodes[g->inputs[i]].name);
        if (mask >= 0)
            s->keep[mask] = names[mask];
    }
}

/* What masks the stack reads. All of its blocks are called alike, and take
 * those of each other. */
static void name_masks(tower *s, bool both)
{
    const char *own =
        both && s->which == TB_STACK_ENCODER ? "source_keep" : "keep";
    const char *const names[2] = {own, "source_keep"};
    find_masks(s, s->stem.g, names);
    find_masks(s, s->end.g, names);
    for (size_t i = 0; i < s->nsections; i++)
        find_masks(s, s->sections[i].t.g, names);
    for (int mask = 0; mask < 2; mask++) {
        s->stem.keep[mask] = s->end.keep[mask] = s->keep[mask];
        for (size_t i = 0; i < s->nsections && s->keep[mask]; i++)
            s->sections[i].t.keep[mask] = tb_py_masks[mask];
    }
}

/* The stacks of the model in running order; their number. */
static size_t make_towers(tb_py *py, tower towers[2])
{
    const tb_sizes *sizes = py->stack->sizes;
    const tb_py_part *parts = py->stack->parts;
    bool both = sizes->s.stack == TB_STACKS_BOTH;
    size_t n = 0;
    if (both)
        towers[n++] = (tower){.which = TB_STACK_ENCODER,
                              .self = "self.encoder",
                              .name = "Encoder"};
    towers[n++] = (tower){.which = tb_sizes_top(sizes),
                          .self = both ? "self.decoder" : "self",
                          .name = both ? "Decoder" : ""};
    for (size_t i = 0; i < n && py->status == TB_OK; i++) {
        tower *s = &towers[i];
        s->py = py;
        s->depth = tb_sizes_depth(sizes, s->which);
        s->count = s->which == TB_STACK_CROSS ? "M" : "N";
        s->parts = parts;
        parts += s->depth + 2;
        tower_ends(s, i ? &towers[i - 1].stem : NULL);
        find_sections(s);
        if (py->status == TB_OK)
            name_masks(s, both);
    }
    return n;
}

static void print(tb_py *py, tb_buf *out)
{
    tower towers[2];
    tb_buf model;
    tb_buf_init(&model, py->ctx);
    size_t n = make_towers(py, towers);
    for (size_t i = 0; i < n && py->status == TB_OK; i++)
        block_classes(&towers[i]);
    if (py->status == TB_OK)
        model_class(towers, n, &model);
    if (py->status == TB_OK) {
        tb_py_head(py, out);
        unit_table(py, out);
        tb_py_helpers(py, out);
        tb_buf_put(out, tb_buf_str(&py->classes), py->classes.len);
        tb_buf_put(out, tb_buf_str(&model), model.len);
        tb_py_loader(py, out);
    }
    if (model.failed || py->classes.failed || out->failed)
        tb_py_fail(py, TB_ERR_MEMORY);
    tb_buf_clear(&model);
}

tb_status tb_pytorch_print(tb_ctx *ctx, const tb_py_stack *s, tb_buf *out)
{
    tb_py py = {.ctx = ctx, .stack = s};
    tb_arena_init(&py.arena, ctx);
    tb_buf_init(&py.classes, ctx);
    py.last = &py.known;
    print(&py, out);
    tb_buf_clear(&py.classes);
    tb_arena_clear(&py.arena);
    return py.status;
}
