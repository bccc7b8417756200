/* SPDX-License-Identifier: MIT */
/* explain: everything the text alone gives, for a program (JSON) and for a
 * reader (terminal, LaTeX, MathML, SVG). */
#include "model/model.h"
#include "pictures/diagram_of.h"
#include "pictures/scene.h"
#include "tollbooth/explain.h"
#include "tollbooth/lint.h"

/** What every format reads. */
typedef struct explained {
    tb_arena arena;
    const tb_block *block;
    tb_model *model; /* not allocated: names, shapes and init rules only */
    const tb_graph *layer, *tail;
    tb_jacobian jacobian, open, silent;
    tb_lane_info lane, final;
    tb_lint *lint;
} explained;

static tb_status look(tb_ctx *ctx, explained *e, const tb_block *b,
                      const tb_settings *settings)
{
    TB_TRY(tb_model_create(ctx, b, settings, TB_F32, &e->model));
    e->layer = tb_model_graph(e->model, 1);
    e->tail = tb_model_graph(e->model, tb_model_tail(e->model));
    TB_TRY(tb_jacobian_build(ctx, &e->arena, e->layer, TB_JAC_CLOSED,
                             &e->jacobian));
    TB_TRY(tb_jacobian_build(ctx, &e->arena, e->layer, TB_JAC_OPEN, &e->open));
    TB_TRY(
        tb_jacobian_build(ctx, &e->arena, e->layer, TB_JAC_SILENT, &e->silent));
    TB_TRY(tb_lint_create(ctx, b, settings, &e->lint));
    TB_TRY(tb_graph_lane(ctx, e->layer, &e->arena, &e->lane));
    return tb_graph_lane(ctx, e->tail, &e->arena, &e->final);
}

static tb_status explain_begin(tb_ctx *ctx, explained *e, const tb_block *b,
                               const tb_settings *settings)
{
    *e = (explained){.block = b};
    tb_arena_init(&e->arena, ctx);
    return look(ctx, e, b, settings);
}

static void explain_end(explained *e)
{
    tb_lint_destroy(e->lint);
    tb_model_destroy(e->model);
    tb_arena_clear(&e->arena);
}

/* One formula stands for each of several sublayers. */
static bool is_each(tb_ctx *ctx, const explained *e)
{
    return e->jacobian.nfactors > 1 &&
           tb_jacobian_steps(ctx, &e->jacobian) == 1;
}

/* --- JSON --------------------------------------------------------------------
 */

static tb_status formula_json(tb_ctx *ctx, const tb_jacobian *j,
                              tb_notation note, const char *key, tb_json *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_status s = tb_jacobian_print(ctx, j, note, &b);
    tb_json_string(out, key, tb_buf_str(&b));
    tb_buf_clear(&b);
    return s;
}

static tb_status jacobian_json(tb_ctx *ctx, const explained *e, tb_json *j)
{
    tb_json_object(j, "jacobian");
    TB_TRY(formula_json(ctx, &e->jacobian, TB_NOTE_TEXT, "text", j));
    TB_TRY(formula_json(ctx, &e->jacobian, TB_NOTE_LATEX, "latex", j));
    TB_TRY(formula_json(ctx, &e->jacobian, TB_NOTE_MATHML, "mathml", j));
    TB_TRY(formula_json(ctx, &e->open, TB_NOTE_TEXT, "expanded", j));
    tb_json_int(j, "sublayers_per_block", e->jacobian.nfactors);
    tb_json_bool(j, "per_sublayer", is_each(ctx, e));
    tb_json_end(j);
    return TB_OK;
}

/* Layers of one section side by side read the same. */
static tb_status lane_layers(tb_ctx *ctx, const explained *e, tb_json *j)
{
    size_t depth = e->model->sizes.s.depth, from = 1;
    tb_arena a;
    tb_status s = TB_OK;
    tb_arena_init(&a, ctx);
    tb_json_array(j, "layers");
    for (size_t l = 1; l <= depth && s == TB_OK; l++) {
        tb_lane_info lane;
        const tb_graph *g = tb_model_graph(e->model, l);
        if (l < depth && tb_model_graph(e->model, l + 1) == g)
            continue;
        s = tb_graph_lane(ctx, g, &a, &lane);
        if (s != TB_OK)
            break;
        tb_json_object(j, NULL);
        tb_json_int(j, "from", (int64_t)from);
        tb_json_int(j, "to", (int64_t)l);
        tb_json_string(j, "kind", tb_lane_kind_name(lane.kind));
        tb_json_int(j, "tolls", lane.tolls);
        tb_json_end(j);
        from = l + 1;
    }
    tb_json_end(j);
    tb_arena_clear(&a);
    return s;
}

static tb_status lane_json(tb_ctx *ctx, const explained *e, tb_json *j)
{
    tb_json_object(j, "lane");
    tb_json_string(j, "kind", tb_lane_kind_name(e->lane.kind));
    tb_json_string(j, "coefficient", e->lane.coefficient);
    if (e->lane.kind == TB_LANE_KIND_NONE)
        tb_json_null(j, "tolls_per_block");
    else
        tb_json_int(j, "tolls_per_block", e->lane.tolls);
    tb_json_bool(j, "final_toll", e->final.tolls > 0);
    TB_TRY(lane_layers(ctx, e, j));
    tb_json_end(j);
    return TB_OK;
}

static tb_status corners_json(tb_ctx *ctx, const explained *e, tb_json *j)
{
    tb_json_object(j, "corners");
    TB_TRY(formula_json(ctx, &e->silent, TB_NOTE_TEXT, "zero_branch", j));
    double eps = e->model->sizes.s.eps;
    tb_json_number(j, "flat_row_gain", 1 / tb_sqrt(eps));
    tb_json_end(j);
    return TB_OK;
}

static void shape_json(const tb_view *v, tb_json *j)
{
    tb_json_array(j, "shape");
    if (v->shape.kind == TB_SHAPE_MATRIX)
        tb_json_int(j, NULL, (int64_t)v->shape.height);
    tb_json_int(j, NULL, (int64_t)v->shape.width);
    tb_json_end(j);
}

/* Parameters, or what is none: running statistics. */
static void views_json(const explained *e, const char *key, bool buffers,
                       tb_json *j)
{
    tb_json_array(j, key);
    for (size_t i = 0; i < e->model->nviews; i++) {
        const tb_view *v = &e->model->views[i];
        if ((v->role == TB_ROLE_BUFFER) != buffers)
            continue;
        tb_json_object(j, NULL);
        tb_json_string(j, "name", v->name);
        shape_json(v, j);
        tb_json_string(j, "init", v->rule);
        tb_json_string(j, "role", tb_role_name(v->role));
        tb_json_end(j);
    }
    tb_json_end(j);
}

static bool has_buffers(const explained *e)
{
    for (size_t i = 0; i < e->model->nviews; i++)
        if (e->model->views[i].role == TB_ROLE_BUFFER)
            return true;
    return false;
}

static void parameters_json(const explained *e, tb_json *j)
{
    views_json(e, "parameters", false, j);
    if (has_buffers(e))
        views_json(e, "buffers", true, j);
    tb_json_int(j, "parameter_count", (int64_t)e->model->nparameters);
}

static const char *origin_name(tb_origin o)
{
    static const char *const names[] = {"default", "config", "model section",
                                        "option", "text"};
    return names[o];
}

static void norm_json(const explained *e, tb_json *j)
{
    const tb_sizes *s = &e->model->sizes;
    tb_json_object(j, "norm");
    tb_json_string(j, "kind", s->s.norm);
    tb_json_string(j, "kind_from", origin_name(s->norm_from));
    tb_json_number(j, "eps", s->s.eps);
    tb_json_string(j, "eps_from", origin_name(s->eps_from));
    tb_json_end(j);
}

static tb_status block_json(tb_ctx *ctx, const tb_block *b, tb_json *j)
{
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_block_print(b, &text);
    tb_json_object(j, "block");
    tb_json_string(j, "name", b->name);
    tb_json_string(j, "text", tb_buf_str(&text));
    tb_json_end(j);
    tb_status s = tb_buf_status(&text);
    tb_buf_clear(&text);
    return s;
}

static void numeric_json(const tb_numeric *n, tb_json *j)
{
    tb_json_object(j, "numeric");
    tb_json_number(j, "error", n->error);
    tb_json_object(j, "against");
    tb_json_number(j, "tangent", n->tangent);
    tb_json_number(j, "backward", n->backward);
    tb_json_number(j, "difference", n->difference);
    tb_json_end(j);
    tb_json_int(j, "width", (int64_t)n->width);
    tb_json_int(j, "tokens", (int64_t)n->tokens);
    tb_json_end(j);
}

static tb_status write_json(tb_ctx *ctx, const explained *e,
                            const tb_numeric *numeric, tb_json *j,
                            const char *key)
{
    tb_json_object(j, key);
    if (!key)
        tb_json_string(j, "tollbooth", TB_VERSION);
    TB_TRY(block_json(ctx, e->block, j));
    TB_TRY(jacobian_json(ctx, e, j));
    TB_TRY(lane_json(ctx, e, j));
    tb_json_array(j, "lint");
    tb_lint_json(e->lint, j, false, NULL);
    tb_json_end(j);
    TB_TRY(corners_json(ctx, e, j));
    if (numeric)
        numeric_json(numeric, j);
    norm_json(e, j);
    parameters_json(e, j);
    tb_json_end(j);
    return TB_OK;
}

tb_status tb_explain_json(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings,
                          const tb_numeric *numeric, tb_json *j,
                          const char *key)
{
    explained e;
    tb_status s = explain_begin(ctx, &e, b, settings);
    if (s == TB_OK)
        s = write_json(ctx, &e, numeric, j, key);
    explain_end(&e);
    return s;
}

/* --- text --------------------------------------------------------------------
 */

static void lane_line(const explained *e, tb_buf *out)
{
    const tb_lane_info *l = &e->lane;
    tb_buf_printf(out, "Lane      %s", tb_lane_kind_name(l->kind));
    switch (l->kind) {
    case TB_LANE_KIND_CLEAN:
        tb_buf_puts(out, ": with the branches removed, x passes unchanged");
        break;
    case TB_LANE_KIND_SCALED:
        tb_buf_printf(out,
                      ": with the branches removed, x is multiplied by "
                      "%s a block",
                      l->coefficient);
        break;
    case TB_LANE_KIND_GATED:
        tb_buf_puts(out, ": a learned or computed factor stands on it");
        break;
    case TB_LANE_KIND_TOLL:
        tb_buf_printf(out, ": %d norm%s a block stand%s on it", l->tolls,
                      l->tolls == 1 ? "" : "s", l->tolls == 1 ? "s" : "");
        if (!tb_streq(l->coefficient, "1"))
            tb_buf_printf(out, ", and a factor %s", l->coefficient);
        break;
    case TB_LANE_KIND_NONE:
        tb_buf_puts(out, ": no path leads around the branches");
        break;
    }
    if (e->final.tolls > 0)
        tb_buf_puts(out, "; one norm after the last block");
    tb_buf_puts(out, "\n");
}

/* ascii: the product's dot is written '*'. */
static tb_status line(tb_ctx *ctx, const char *label, const tb_jacobian *j,
                      bool ascii, tb_buf *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_status s = tb_jacobian_print(ctx, j, TB_NOTE_TEXT, &b);
    tb_buf_printf(out, "%-10s", label);
    for (const char *c = tb_buf_str(&b); *c; c++)
        if (!ascii || !(*c & 0x80))
            tb_buf_putc(out, *c);
        else if ((*c & 0xc0) == 0xc0)
            tb_buf_putc(out, '*');
    tb_buf_puts(out, "\n");
    tb_buf_clear(&b);
    return s;
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

static tb_status parameter_table(tb_ctx *ctx, const explained *e,
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

static tb_status head(const explained *e, tb_out *out)
{
    tb_buf b;
    tb_buf_init(&b, e->arena.ctx);
    if (e->block->name)
        tb_buf_printf(&b, "%s", e->block->name);
    if (e->block->about)
        tb_buf_printf(&b, "%s%s", e->block->name ? ": " : "", e->block->about);
    if (b.len)
        tb_buf_puts(&b, "\n\n");
    tb_block_print(e->block, &b);
    tb_buf_puts(&b, "\n");
    tb_status s = tb_buf_status(&b);
    tb_buf_put(&out->buf, tb_buf_str(&b), b.len);
    tb_buf_clear(&b);
    return s;
}

/* One line each; lint shows the place too. */
static void findings(const explained *e, tb_buf *out)
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

static tb_status formulas(tb_ctx *ctx, const explained *e,
                          const tb_terminal *term, tb_out *out)
{
    tb_buf b;
    bool ascii = term->ascii;
    tb_buf_init(&b, ctx);
    tb_status s = line(ctx, "Jacobian", &e->jacobian, ascii, &b);
    if (s == TB_OK && is_each(ctx, e))
        tb_buf_printf(&b,
                      "          for each of its %d sublayers F, "
                      "multiplied last to first\n",
                      e->jacobian.nfactors);
    if (s == TB_OK)
        s = line(ctx, "F = 0", &e->silent, ascii, &b);
    tb_buf_put(&out->buf, tb_buf_str(&b), b.len);
    tb_status formed = tb_buf_status(&b);
    tb_buf_clear(&b);
    tb_buf_init(&b, ctx);
    lane_line(e, &b);
    findings(e, &b);
    if (s == TB_OK)
        s = formed != TB_OK ? formed : tb_buf_status(&b);
    if (s == TB_OK)
        prose(term, &b, out);
    tb_buf_puts(&out->buf, "\n");
    tb_buf_clear(&b);
    return s;
}

static tb_status counts(const explained *e, tb_out *out)
{
    const tb_settings *s = &e->model->sizes.s;
    char text[200];
    size_t n = tb_format(text, sizeof text,
                         "\n%zu parameters in %zu blocks of width %zu (block "
                         "1 shown); norm %s (%s), eps %g (%s)\n",
                         e->model->nparameters, s->depth, s->width, s->norm,
                         origin_name(e->model->sizes.norm_from), s->eps,
                         origin_name(e->model->sizes.eps_from));
    tb_buf_put(&out->buf, text, n < sizeof text ? n : sizeof text - 1);
    return TB_OK;
}

static tb_status explain_terminal(tb_ctx *ctx, explained *e,
                                  const tb_terminal *term, tb_out *out)
{
    tb_diagram d;
    TB_TRY(head(e, out));
    TB_TRY(tb_diagram_of(ctx, &e->arena, e->layer, e->tail, &d));
    if (e->block->name)
        d.title = e->block->name;
    d.depth = e->model->sizes.s.depth;
    TB_TRY(tb_diagram_term(ctx, &d, term, out));
    tb_buf_put(&out->buf, "\n", 1);
    TB_TRY(formulas(ctx, e, term, out));
    TB_TRY(parameter_table(ctx, e, term, out));
    return counts(e, out);
}

static tb_status explain_svg(tb_ctx *ctx, explained *e, tb_out *out)
{
    tb_diagram d;
    tb_scene *scene;
    tb_buf formula;
    TB_TRY(tb_diagram_of(ctx, &e->arena, e->layer, e->tail, &d));
    tb_buf_init(&formula, ctx);
    tb_status s = tb_jacobian_print(ctx, &e->jacobian, TB_NOTE_TEXT, &formula);
    for (int i = 0; i < e->layer->nregions && is_each(ctx, e); i++)
        tb_buf_printf(&formula, "%s%s",
                      i ? ", " : "   for F = ", e->layer->regions[i].name);
    d.title = e->block->name ? e->block->name : "block";
    d.formula = tb_buf_str(&formula);
    d.depth = e->model->sizes.s.depth;
    if (s == TB_OK)
        s = tb_diagram_scene(ctx, &d, &scene);
    tb_buf_clear(&formula);
    if (s != TB_OK)
        return s;
    s = tb_scene_svg(scene, NULL, out);
    tb_scene_destroy(scene);
    return s;
}

static tb_status explain_formula(tb_ctx *ctx, const explained *e,
                                 tb_notation note, tb_out *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_status s = tb_jacobian_print(ctx, &e->jacobian, note, &b);
    tb_buf_puts(&b, "\n");
    tb_buf_put(&out->buf, tb_buf_str(&b), b.len);
    tb_buf_clear(&b);
    return s;
}

tb_status tb_explain_text(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings, tb_explain_format format,
                          int columns, bool ascii, tb_out *out)
{
    explained e;
    tb_terminal term = {columns, ascii};
    tb_status s = explain_begin(ctx, &e, b, settings);
    if (s == TB_OK)
        s = format == TB_EXPLAIN_TEXT ? explain_terminal(ctx, &e, &term, out)
            : format == TB_EXPLAIN_SVG
                ? explain_svg(ctx, &e, out)
                : explain_formula(ctx, &e,
                                  format == TB_EXPLAIN_LATEX ? TB_NOTE_LATEX
                                                             : TB_NOTE_MATHML,
                                  out);
    explain_end(&e);
    return s;
}
