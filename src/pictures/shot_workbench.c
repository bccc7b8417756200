/* SPDX-License-Identifier: MIT */
/* Any block that one can write: its diagram, its Jacobian, what lint says, and
 * where its gradient goes. */
#include "pictures/shot_drawn.h"
#include "tollbooth/flow.h"

typedef struct bench {
    tb_block *block;
    tb_flow_spec spec;
    tb_lane_kind lane; /* of all blocks; TOLL where they differ */
} bench;

static tb_status read_spec(tb_shot *s, bench *b)
{
    tb_settings set = TB_SETTINGS_UNSET;
    set.depth = shot_whole(s, "depth");
    set.width = shot_whole(s, "width");
    set.heads = shot_whole(s, "heads");
    set.context = shot_whole(s, "tokens");
    b->spec =
        (tb_flow_spec){.settings = set,
                       .seed = shot_whole(s, "seed"),
                       .dtype = TB_F64,
                       .cotangent = (tb_cotangent)shot_choice(s, "signal")};
    return tb_block_load(s->ctx, shot_get(s, "block")->text, &b->block);
}

static const char *name_of(tb_shot *s, const bench *b)
{
    return shot_text(s, "%s", b->block->name ? b->block->name : "your block");
}

/* --- what its text says --------------------------------------------------- */

enum { PIECES = 16 }; /* of a formula; the rest of it stands in explain */

/* The label and the formula in pieces between blanks, as one line of words. */
static tb_status add_formula(tb_shot *s, const char *label,
                             const tb_jacobian *j, shot_word *w, size_t *n)
{
    tb_buf b;
    tb_buf_init(&b, s->ctx);
    tb_status status = tb_jacobian_print(s->ctx, j, TB_NOTE_TEXT, &b);
    size_t most = *n + PIECES;
    w[(*n)++] = (shot_word){.text = label, .tone = TB_TONE_MUTED};
    for (const char *p = tb_buf_str(&b); *p; ++*n) {
        const char *text = shot_next_word(s, &p);
        bool one = tb_streq(text, "I");
        w[*n] = (shot_word){.text = text,
                            .tone = one ? TB_TONE_LANE : TB_TONE_INK,
                            .bold = one};
        if (*n == most) {
            w[(*n)++].text = "\xE2\x80\xA6";
            break;
        }
    }
    w[*n - 1].ends_line = true;
    tb_buf_clear(&b);
    return status;
}

/* How x moves with the x below it, with the branches and without. */
static tb_status formulas(tb_shot *s, const tb_explained_kind *k)
{
    shot_words_of *all = shot_alloc(s, 1, sizeof *all);
    shot_word *w = shot_alloc(s, 2 * (PIECES + 2), sizeof *w);
    size_t n = 0;
    if (!all || !w)
        return TB_ERR_MEMORY;
    TB_TRY(add_formula(s, "Jacobian:", &k->closed, w, &n));
    TB_TRY(add_formula(s, "where F = 0:", &k->silent, w, &n));
    *all = (shot_words_of){w, n};
    shot_below(s, &shot_words, all);
    return TB_OK;
}

/* "no-final-norm (warn)", one after the other. */
static tb_status say_lint(tb_shot *s, const tb_lint *l)
{
    const char *all = "";
    size_t n = tb_lint_count(l);
    for (size_t i = 0; i < n && all; i++) {
        const tb_finding *f = tb_lint_at(l, i);
        all = shot_text(s, "%s%s%s (%s)", all, i ? ", " : "", f->code,
                        tb_lint_level_name(f->level));
    }
    shot_tell(s, "lint", "findings of lint", (double)n);
    shot_say(s, n ? shot_text(s, "Lint: %s.", all ? all : "")
                  : "Lint finds nothing.");
    return s->status;
}

/* Every kind of block in the stack. */
static tb_status diagrams(tb_shot *s, const bench *b, const tb_explained *e)
{
    tb_diagram *d = shot_alloc(s, e->nkinds, sizeof *d);
    if (!d)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < e->nkinds; i++) {
        TB_TRY(tb_explained_diagram(s->ctx, &s->arena, e, &e->kinds[i], &d[i]));
        if (e->nkinds == 1)
            d->title = name_of(s, b);
        shot_below(s, &shot_diagram, &d[i]);
    }
    return TB_OK;
}

static tb_status explained(tb_shot *s, bench *b, const tb_explained *e)
{
    char *lane;
    TB_TRY(diagrams(s, b, e));
    TB_TRY(formulas(s, &e->kinds[0]));
    TB_TRY(tb_lane_text(s->ctx, b->block, &lane));
    shot_say(s, shot_text(s, "The text alone says of the lane: %s.", lane));
    tb_text_free(s->ctx, lane);
    TB_TRY(say_lint(s, e->lint));
    b->lane = e->kinds[0].info.kind;
    for (size_t i = 1; i < e->nkinds; i++)
        if (e->kinds[i].info.kind != b->lane)
            b->lane = TB_LANE_KIND_TOLL;
    return s->status;
}

static tb_status explain(tb_shot *s, bench *b)
{
    tb_explained e;
    tb_status status =
        tb_explained_open(s->ctx, &e, b->block, &b->spec.settings);
    if (status == TB_OK)
        status = explained(s, b, &e);
    tb_explained_close(&e);
    return status;
}

/* --- the flow ------------------------------------------------------------- */

static tb_status curve(tb_shot *s, const bench *b, const tb_flow *f,
                       tb_flow_curve *c)
{
    double *y = shot_alloc(s, 3 * f->nrows, sizeof *y);
    const char **names = shot_alloc(s, f->nrows, sizeof *names);
    if (!y || !names)
        return TB_ERR_MEMORY;
    *c = (tb_flow_curve){.block = name_of(s, b),
                         .depth = f->depth,
                         .n = f->nrows,
                         .lane = y,
                         .total = y + f->nrows,
                         .branch = y + 2 * f->nrows,
                         .names = names};
    for (size_t k = 0; k < f->nrows; k++) {
        y[k] = f->rows[k].lane;
        y[f->nrows + k] = f->rows[k].total;
        y[2 * f->nrows + k] = f->rows[k].branch;
        names[k] = shot_text(s, "%s", f->rows[k].name);
    }
    return c->block ? TB_OK : TB_ERR_MEMORY;
}

static void tell(tb_shot *s, const tb_flow *f)
{
    double least = 1, most = 1;
    for (size_t k = 0; k < f->nrows; k++) {
        least = tb_min2(least, f->rows[k].total);
        most = tb_max2(most, f->rows[k].total);
    }
    shot_tell(s, "N", "blocks", (double)f->depth);
    shot_tell(s, "K", "sublayers", (double)f->nrows - 1);
    shot_tell(s, "E6.lane", "lane at the input, relative to the top",
              f->rows[0].lane);
    shot_tell(s, "E7.total", "total at the input, relative to the top",
              f->rows[0].total);
    shot_tell(s, "E7.least", "least total on the way", least);
    shot_tell(s, "E7.most", "largest total on the way", most);
    shot_tell(s, "E12.std", "spread of x at the top",
              f->rows[f->nrows - 1].std_x);
    shot_tell(s, "loss", "loss before any training", f->loss);
    shot_say(s, "Lane: with every branch cut, {E6.lane} of the signal at the "
                "top reaches the input of {N} blocks.");
    shot_say(s, "Total: the true gradient there is {E7.total} of the one at "
                "the top; on the way it is between {E7.least} and {E7.most}.");
    shot_say(s, "The spread of x is {E12.std} after the last block.");
}

/* What the text alone says of the lane, against what was measured. Gates may
 * start anywhere, and lists lead x around its block. */
static void check(tb_shot *s, const bench *b, const tb_flow *f)
{
    bool finite = true;
    double lane = f->rows[0].lane;
    for (size_t k = 0; k < f->nrows; k++)
        finite = finite && f->rows[k].total - f->rows[k].total == 0;
    shot_check_that(s, finite, "every gradient is a finite number");
    if (b->lane == TB_LANE_KIND_CLEAN)
        shot_check_that(s, lane == 1,
                        "the text says that the lane is clean; measured it is "
                        "exactly 1");
    else if (b->lane == TB_LANE_KIND_NONE && !f->lists)
        shot_check_that(s, lane == 0,
                        "the text says that there is no lane; nothing passes");
    else if (b->lane == TB_LANE_KIND_TOLL && !f->lists)
        shot_check_that(s, lane != 1,
                        "the text says that norms stand on the lane; measured "
                        "it is not 1");
}

static tb_status measured(tb_shot *s, const bench *b, const tb_flow *f)
{
    tb_flow_curve *c = shot_alloc(s, 1, sizeof *c);
    tb_flow_figure *figure = shot_alloc(s, 1, sizeof *figure);
    if (!c || !figure)
        return TB_ERR_MEMORY;
    TB_TRY(curve(s, b, f, c));
    *figure = (tb_flow_figure){.runs = c, .count = 1};
    shot_below(s, &shot_flow, figure);
    tell(s, f);
    check(s, b, f);
    shot_title(s, "Your block",
               shot_text(s,
                         "%zu blocks: the lane keeps %.3g of the signal from "
                         "the top, the total gradient is %.3g of it.",
                         f->depth, f->rows[0].lane, f->rows[0].total));
    return TB_OK;
}

static tb_status build(tb_shot *s)
{
    bench b = {0};
    tb_flow *f = NULL;
    tb_status status = read_spec(s, &b);
    if (status == TB_OK)
        status = explain(s, &b);
    if (status == TB_OK)
        status = tb_flow_measure(s->ctx, b.block, &b.spec, &f);
    if (status == TB_OK)
        status = measured(s, &b, f);
    if (f)
        tb_flow_free(s->ctx, f);
    if (b.block)
        tb_block_destroy(s->ctx, b.block);
    return status;
}

const shot_row shot_workbench = {
    .name = "workbench",
    .about = "any block: its diagram, Jacobian, lint and gradient flow",
    .input = {{.name = "block",
               .label = "block",
               .kind = TB_SHOT_TEXT,
               .own = "x = x + F(norm(x)); final: x = norm(x)"},
              {"depth", "blocks", TB_SHOT_NUMBER, "12", 1, 96, .step = 1,
               .whole = true},
              {"width", "width d", TB_SHOT_NUMBER, "64", 8, 128, .step = 8,
               .whole = true},
              {"heads", "heads", TB_SHOT_NUMBER, "4", 1, 16, .step = 1,
               .whole = true},
              {"tokens", "tokens", TB_SHOT_NUMBER, "32", 1, 64, .step = 1,
               .whole = true},
              {"signal", "signal from the top", TB_SHOT_CHOICE, "loss",
               .choices = "loss|random|coherent"},
              {"seed", "seed", TB_SHOT_NUMBER, "1", 0, 9999, .step = 1,
               .whole = true}},
    .build = build,
};
