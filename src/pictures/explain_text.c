/* SPDX-License-Identifier: MIT */
/* explain for a reader: terminal, LaTeX, MathML, scene. */
#include "pictures/diagram_of.h"
#include "pictures/explain_parts.h"
#include "pictures/plot.h"

/* What stands between x in and x out with every branch removed. */
static void lane_words(const tb_lane_info *l, tb_buf *out)
{
    bool one = l->tolls == 1;
    switch (l->kind) {
    case TB_LANE_KIND_CLEAN:
        tb_buf_puts(out, "clean: with the branches removed, x passes "
                         "unchanged");
        break;
    case TB_LANE_KIND_SCALED:
        tb_buf_printf(out,
                      "scaled: with the branches removed, x is multiplied by "
                      "%s a block",
                      l->coefficient);
        break;
    case TB_LANE_KIND_GATED:
        tb_buf_puts(out, "gated: a learned or computed factor stands on it");
        break;
    case TB_LANE_KIND_TOLL:
        tb_buf_printf(out, "toll: %d norm%s a block stand%s on it", l->tolls,
                      one ? "" : "s", one ? "s" : "");
        if (!tb_streq(l->coefficient, "1"))
            tb_buf_printf(out, ", and a factor %s", l->coefficient);
        break;
    case TB_LANE_KIND_NONE:
        tb_buf_puts(out, "none: no path leads around the branches");
        break;
    }
}

static void lane_line(const tb_explained *e, const tb_explained_kind *k,
                      tb_buf *out)
{
    tb_buf_puts(out, "Lane      ");
    if (k->info.kind == TB_LANE_KIND_NONE && k->g->nlists)
        tb_buf_puts(out, "none from x to x: what goes past the branches goes "
                         "by the lists");
    else
        lane_words(&k->info, out);
    if (e->nkinds == 1 && e->final.tolls > 0)
        tb_buf_puts(out, "; one norm after the last block");
}

/* A lane that words do not say: norms and gates on it, or several streams. */
static bool is_formula_worth(const tb_explained_kind *k)
{
    return k->info.kind == TB_LANE_KIND_TOLL ||
           k->info.kind == TB_LANE_KIND_GATED || k->g->nstreams > 1;
}

static void path_words(const tb_lane_path *p, tb_buf *out)
{
    if (p->kind == TB_LANE_KIND_TOLL)
        tb_buf_printf(out, "%zu norms", p->tolls);
    else if (p->kind == TB_LANE_KIND_SCALED)
        tb_buf_printf(out, "%.4g", p->value);
    else
        tb_buf_puts(out, tb_lane_kind_name(p->kind));
}

/* Through all blocks: of one stream, or which streams keep a path. */
static void through_line(const tb_explained *e, tb_buf *out)
{
    const tb_graph *g = tb_model_graph(e->model, e->layers.first);
    int n = g->nstreams;
    tb_buf_printf(out, "%-10s", "");
    if (!e->through) {
        tb_buf_puts(out, "through all blocks: not worked out at this depth\n");
        return;
    }
    tb_buf_printf(out, "through %zu block%s%s: ", e->layers.n,
                  e->layers.n == 1 ? "" : "s", g->nlists ? ", by x alone" : "");
    for (int i = 0; i < n; i++) {
        if (n > 1)
            tb_buf_printf(out, "%s%s ", i ? ", " : "", g->streams[i]);
        path_words(&e->through[i * n + i], out);
    }
    if (e->nkinds > 1 && e->final.tolls > 0)
        tb_buf_puts(out, "; one norm after the last block");
    tb_buf_puts(out, "\n");
}

static const char *shape_text(const tb_view *v, char out[48])
{
    if (v->shape.kind == TB_SHAPE_MATRIX)
        tb_format(out, 48, "%zu x %zu", v->shape.height, v->shape.width);
    else
        tb_format(out, 48, "%zu", v->shape.width);
    return out;
}

/* Block 1 stands for all blocks of its kind. */
static bool is_shown(const tb_view *v)
{
    return v->layer <= 1;
}

static tb_status parameter_table(tb_ctx *ctx, const tb_explained *e,
                                 const tb_terminal *term, tb_out *out)
{
    static const tb_column columns[] = {
        {"parameter", TB_LEFT, 0, false},
        {"shape", TB_RIGHT, 1, false},
        {"role", TB_LEFT, 3, false},
        {"starts as", TB_LEFT, 2, true},
    };
    size_t n = 0;
    tb_arena a;
    tb_arena_init(&a, ctx);
    const char **cells =
        tb_arena_alloc(&a, e->model->nviews * 4 * sizeof *cells);
    tb_status s = cells ? TB_OK : TB_ERR_MEMORY;
    for (size_t i = 0; i < e->model->nviews && s == TB_OK; i++) {
        const tb_view *v = &e->model->views[i];
        char shape[48];
        if (!is_shown(v))
            continue;
        cells[4 * n] = v->name;
        cells[4 * n + 1] = tb_arena_strdup(&a, shape_text(v, shape));
        cells[4 * n + 2] = tb_role_name(v->role);
        cells[4 * n + 3] = v->rule;
        if (!cells[4 * n++ + 1])
            s = TB_ERR_MEMORY;
    }
    tb_table t = {.columns = columns,
                  .n_columns = TB_LEN(columns),
                  .cells = cells,
                  .n_rows = n};
    if (s == TB_OK)
        s = tb_table_term(ctx, &t, term, out);
    tb_arena_clear(&a);
    return s;
}

/* Each line by itself; what goes over is set under it, `hang` deeper than it
 * begins. */
static void wrap_lines(const tb_terminal *term, int hang, char *lines,
                       tb_out *out)
{
    for (char *at = lines, *end; at && *at; at = end + 1) {
        end = at + strcspn(at, "\n");
        bool last = *end == '\0';
        *end = '\0';
        tb_term_wrap(&out->buf, term, (int)strspn(at, " ") + hang, at);
        if (last)
            return;
    }
}

static tb_status head(const tb_explained *e, const tb_terminal *term,
                      tb_out *out)
{
    tb_buf b;
    tb_buf_init(&b, e->arena.ctx);
    if (e->block->name)
        tb_buf_printf(&b, "%s", e->block->name);
    if (e->block->about)
        tb_buf_printf(&b, "%s%s", e->block->name ? ": " : "", e->block->about);
    tb_status s = tb_buf_status(&b);
    if (b.len) {
        wrap_lines(term, 0, b.data, out);
        tb_buf_puts(&out->buf, "\n");
    }
    tb_buf_clear(&b);
    tb_buf_init(&b, e->arena.ctx);
    tb_block_print(e->block, &b);
    if (s == TB_OK)
        s = tb_buf_status(&b);
    if (s == TB_OK && b.len)
        wrap_lines(term, 4, b.data, out);
    tb_buf_puts(&out->buf, "\n");
    tb_buf_clear(&b);
    return s;
}

/* One line each; lint shows the place too. */
static void findings(const tb_explained *e, tb_buf *out)
{
    for (size_t i = 0; i < tb_lint_count(e->lint); i++) {
        const tb_finding *f = tb_lint_at(e->lint, i);
        tb_buf_printf(out, "%-9s %s at %d:%d: %s", tb_lint_level_name(f->level),
                      f->code, f->line, f->column, f->message);
        if (f->fix)
            tb_buf_printf(out, "; %s", f->fix);
        tb_buf_puts(out, "\n");
    }
}

/* Each line wrapped under its label; formulas are never broken. */
static void prose(const tb_terminal *term, tb_buf *lines, tb_out *out)
{
    for (char *at = lines->data, *end; at && *at; at = end + 1) {
        end = strchr(at, '\n');
        *end = '\0';
        tb_term_wrap(&out->buf, term, 10, at);
    }
}

/* The Jacobian of one kind of block, and what is left of it without its
 * branches; a heading where there are several kinds. */
static tb_status element_lines(tb_ctx *ctx, tb_explained *e,
                               const tb_explained_kind *k,
                               const tb_terminal *term, tb_buf *b)
{
    tb_explained_element all[TB_ELEMENTS_MOST];
    int n;
    TB_TRY(tb_explained_elements(e, k, all, &n));
    for (int i = 0; i < n; i++)
        TB_TRY(tb_explain_formula(ctx, term, all[i].name, &all[i].jacobian, b));
    return TB_OK;
}

static tb_status kind_formulas(tb_ctx *ctx, tb_explained *e,
                               const tb_explained_kind *k,
                               const tb_terminal *term, bool expand, tb_buf *b)
{
    const tb_jacobian *j = expand ? &k->open : &k->closed;
    if (e->nkinds > 1)
        tb_buf_printf(b, "%s%s:\n", k == e->kinds ? "" : "\n", k->blocks);
    TB_TRY(tb_explain_formula(ctx, term, "Jacobian", j, b));
    if (tb_explained_each(ctx, j)) {
        char text[100];
        tb_format(text, sizeof text,
                  "          for each of its %d sublayers F, multiplied last "
                  "to first",
                  j->nfactors);
        tb_term_wrap(b, term, 10, text);
    }
    if (k->has_memory)
        TB_TRY(tb_explain_formula(ctx, term, "by memory",
                                  expand ? &k->memory_open : &k->memory, b));
    TB_TRY(element_lines(ctx, e, k, term, b));
    TB_TRY(tb_explain_formula(ctx, term, "F = 0", &k->silent, b));
    tb_buf words;
    tb_buf_init(&words, ctx);
    lane_line(e, k, &words);
    tb_status s = tb_buf_status(&words);
    if (s == TB_OK)
        tb_term_wrap(b, term, 10, tb_buf_str(&words));
    tb_buf_clear(&words);
    if (s == TB_OK && is_formula_worth(k))
        s = tb_explain_formula(ctx, term, "", &k->lane, b);
    return s;
}

static tb_status formulas(tb_ctx *ctx, tb_explained *e, const tb_terminal *term,
                          bool expand, tb_out *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_status s = TB_OK;
    for (size_t i = 0; i < e->nkinds && s == TB_OK; i++)
        s = kind_formulas(ctx, e, &e->kinds[i], term, expand, &b);
    tb_buf_put(&out->buf, tb_buf_str(&b), b.len);
    tb_buf_clear(&b);
    if (s != TB_OK)
        return s;
    tb_buf_init(&b, ctx);
    if (e->nkinds > 1)
        tb_buf_puts(&out->buf, "\n");
    through_line(e, &b);
    s = tb_buf_status(&b);
    if (s == TB_OK)
        prose(term, &b, out);
    if (s == TB_OK)
        s = tb_explain_corners(ctx, e, term, &out->buf);
    tb_buf_clear(&b);
    tb_buf_init(&b, ctx);
    findings(e, &b);
    if (s == TB_OK)
        s = tb_buf_status(&b);
    if (s == TB_OK)
        prose(term, &b, out);
    tb_buf_puts(&out->buf, "\n");
    tb_buf_clear(&b);
    return s;
}

static tb_status counts(const tb_explained *e, const tb_terminal *term,
                        tb_out *out)
{
    const tb_settings *s = &e->model->sizes.s;
    char text[280], more[32] = "";
    if (s->stack == TB_STACKS_BOTH)
        tb_format(more, sizeof more, " + %zu", s->decoder_depth);
    tb_format(text, sizeof text,
              "%zu parameters, %zu of norms, in %zu%s blocks of width %zu "
              "(block 1 shown); norm %s (%s), eps %g (%s)",
              e->model->nparameters,
              e->norms[TB_SIDE_DECODER] + e->norms[TB_SIDE_ENCODER], s->depth,
              more, s->width, s->norm,
              tb_origin_name(e->model->sizes.norm_from), s->eps,
              tb_origin_name(e->model->sizes.eps_from));
    tb_buf_puts(&out->buf, "\n");
    tb_term_wrap(&out->buf, term, 0, text);
    return TB_OK;
}

/* What stands above the layers of a stack: its final, or the tail. */
static size_t end_of(const tb_model *m, size_t part)
{
    while (tb_model_role(m, part) == TB_PART_LAYER)
        part++;
    return part;
}

static size_t blocks_of(const tb_model *m, const tb_explained_kind *k)
{
    size_t n = 0;
    for (size_t p = k->part; tb_model_role(m, p) == TB_PART_LAYER; p++)
        if (tb_model_graph(m, p) == k->g)
            n += tb_model_blocks(m, p);
    return n;
}

tb_status tb_explained_diagram(tb_ctx *ctx, tb_arena *arena,
                               const tb_explained *e,
                               const tb_explained_kind *k, tb_diagram *out)
{
    const tb_model *m = e->model;
    const char *name = e->block->name ? e->block->name : "block";
    size_t end = end_of(m, k->part);
    bool last = tb_model_graph(m, end - 1) == k->g;
    bool first = tb_model_role(m, k->part - 1) == TB_PART_STEM;
    TB_TRY(tb_diagram_of(ctx, arena,
                         first ? tb_model_graph(m, k->part - 1) : NULL, k->g,
                         last ? tb_model_graph(m, end) : NULL, out));
    out->title = e->nkinds == 1 ? tb_arena_strdup(arena, name)
                 : e->block->name
                     ? tb_arena_printf(arena, "%s, %s", name, k->blocks)
                     : tb_arena_strdup(arena, k->blocks);
    out->depth = blocks_of(m, k);
    return out->title ? TB_OK : TB_ERR_MEMORY;
}

static tb_status diagrams(tb_ctx *ctx, tb_explained *e, const tb_terminal *term,
                          tb_out *out)
{
    for (size_t i = 0; i < e->nkinds; i++) {
        tb_diagram d;
        TB_TRY(tb_explained_diagram(ctx, &e->arena, e, &e->kinds[i], &d));
        TB_TRY(tb_diagram_term(ctx, &d, term, out));
        tb_buf_put(&out->buf, "\n", 1);
    }
    return TB_OK;
}

static tb_status explain_terminal(tb_ctx *ctx, tb_explained *e,
                                  const tb_terminal *term, bool expand,
                                  tb_out *out)
{
    TB_TRY(head(e, term, out));
    TB_TRY(diagrams(ctx, e, term, out));
    TB_TRY(formulas(ctx, e, term, expand, out));
    TB_TRY(parameter_table(ctx, e, term, out));
    return counts(e, term, out);
}

static tb_status kind_scene(tb_ctx *ctx, tb_explained *e,
                            const tb_explained_kind *k, tb_scene **out)
{
    tb_diagram d;
    tb_buf formula;
    TB_TRY(tb_explained_diagram(ctx, &e->arena, e, k, &d));
    tb_buf_init(&formula, ctx);
    if (k->g->nlists)
        tb_buf_puts(&formula, "By x alone: ");
    tb_status s = tb_jacobian_print(ctx, &k->closed, TB_NOTE_TEXT, &formula);
    for (int i = 0; i < k->g->nregions && tb_explained_each(ctx, &k->closed);
         i++)
        tb_buf_printf(&formula, "%s%s",
                      i ? ", " : "   for F = ", k->g->regions[i].name);
    d.formula = tb_buf_str(&formula);
    if (s == TB_OK)
        s = tb_diagram_scene(ctx, &d, out);
    tb_buf_clear(&formula);
    return s;
}

/* All kinds, one below the other; what each shows goes into the words. */
static tb_status kind_scenes(tb_ctx *ctx, tb_explained *e, tb_scene *all)
{
    double w = 0, h = 0;
    tb_buf words;
    tb_buf_init(&words, ctx);
    tb_status s = TB_OK;
    for (size_t i = 0; i < e->nkinds && s == TB_OK; i++) {
        tb_scene *one;
        s = kind_scene(ctx, e, &e->kinds[i], &one);
        if (s != TB_OK)
            break;
        tb_scene_place(all, one, tb_arena_printf(&e->arena, "kind-%zu", i), 0,
                       h);
        tb_buf_printf(&words, "%s%s: %s", i ? " " : "", one->title, one->desc);
        w = tb_max2(w, one->w);
        h += one->h;
        tb_scene_destroy(one);
    }
    tb_scene_resize(all, w, h);
    tb_scene_describe(all, tb_buf_str(&words));
    tb_buf_clear(&words);
    return s;
}

static tb_status explain_scene(tb_ctx *ctx, tb_explained *e, tb_scene **out)
{
    tb_scene *all;
    if (e->nkinds == 1)
        return kind_scene(ctx, e, e->kinds, out);
    const char *name = e->block->name ? e->block->name : "block";
    TB_TRY(tb_scene_create(ctx, 100, 100, name, "kinds of blocks", &all));
    tb_status s = kind_scenes(ctx, e, all);
    if (s != TB_OK)
        tb_scene_fail(all, s);
    return tb_scene_done(all, out);
}

static tb_status explain_svg(tb_ctx *ctx, tb_explained *e, tb_out *out)
{
    tb_scene *scene;
    TB_TRY(explain_scene(ctx, e, &scene));
    tb_status s = tb_scene_svg(scene, NULL, out);
    tb_scene_destroy(scene);
    return s;
}

static tb_status explain_formula(tb_ctx *ctx, const tb_explained *e,
                                 tb_notation note, bool expand, tb_out *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_status s = tb_jacobian_print(
        ctx, expand ? &e->kinds[0].open : &e->kinds[0].closed, note, &b);
    tb_buf_puts(&b, "\n");
    tb_buf_put(&out->buf, tb_buf_str(&b), b.len);
    tb_buf_clear(&b);
    return s;
}

tb_status tb_explain_text(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings, tb_explain_format format,
                          bool expand, int columns, bool ascii, tb_out *out)
{
    tb_explained e;
    tb_terminal term = {columns, ascii};
    tb_status s = tb_explained_open(ctx, &e, b, settings);
    if (s == TB_OK)
        s = format == TB_EXPLAIN_TEXT
                ? explain_terminal(ctx, &e, &term, expand, out)
            : format == TB_EXPLAIN_SVG
                ? explain_svg(ctx, &e, out)
                : explain_formula(ctx, &e,
                                  format == TB_EXPLAIN_LATEX ? TB_NOTE_LATEX
                                                             : TB_NOTE_MATHML,
                                  expand, out);
    tb_explained_close(&e);
    return s;
}

tb_status tb_explain_scene(tb_ctx *ctx, const tb_block *b,
                           const tb_settings *settings, tb_scene **out)
{
    tb_explained e;
    *out = NULL;
    tb_status s = tb_explained_open(ctx, &e, b, settings);
    if (s == TB_OK)
        s = explain_scene(ctx, &e, out);
    tb_explained_close(&e);
    return s;
}
