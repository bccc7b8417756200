/* SPDX-License-Identifier: MIT */
/* N5, N6: gradient flow through depth with and without a skip, and what scales
 * the branches at the start. */
#include "pictures/shot_panels.h"
#include "tollbooth/flow.h"

enum { LINES = 4, WIDTH = 32, TOKENS = 16 };

/** One block to be measured, and what of it is drawn. */
typedef struct line {
    const char *label, *text;
    tb_tone tone;
    tb_dash dash;
    tb_marker marker;
} line;

typedef struct measured {
    size_t n; /* rows: k = 0..n-1 */
    double *total, *std, *lane;
} measured;

static void keep(tb_shot *s, const tb_flow *f, measured *m)
{
    m->n = f->nrows;
    m->total = shot_alloc(s, m->n, sizeof(double));
    m->std = shot_alloc(s, m->n, sizeof(double));
    m->lane = shot_alloc(s, m->n, sizeof(double));
    for (size_t k = 0; s->status == TB_OK && k < m->n; k++) {
        m->total[k] = f->rows[k].total;
        m->std[k] = f->rows[k].std_x;
        m->lane[k] = f->rows[k].lane;
    }
}

static tb_status measure(tb_shot *s, const line *l, measured *m)
{
    tb_block *block;
    tb_flow *f;
    tb_flow_spec spec = {.settings = TB_SETTINGS_UNSET,
                         .seed = (uint64_t)shot_num(s, "seed"),
                         .dtype = TB_F32,
                         .cotangent = TB_COTANGENT_RANDOM};
    spec.settings.depth = shot_whole(s, "N");
    spec.settings.width = WIDTH;
    spec.settings.context = TOKENS;
    TB_TRY(tb_block_load(s->ctx, l->text, &block));
    tb_status status = tb_flow_measure(s->ctx, block, &spec, &f);
    if (status == TB_OK) {
        keep(s, f, m);
        tb_flow_free(s->ctx, f);
    }
    tb_block_destroy(s->ctx, block);
    return status == TB_OK ? s->status : status;
}

static void chart(tb_shot *s, const char *title, const char *y_label,
                  const line *lines, const measured *m, size_t n,
                  double *const *y)
{
    tb_chart *c = shot_alloc(s, 1, sizeof *c);
    tb_series *all = shot_alloc(s, n, sizeof *all);
    if (!c || !all)
        return;
    for (size_t i = 0; i < n; i++)
        all[i] = (tb_series){.label = lines[i].label,
                             .y = y[i],
                             .n = m[i].n,
                             .tone = lines[i].tone,
                             .dash = lines[i].dash,
                             .marker = lines[i].marker};
    *c = (tb_chart){.title = title,
                    .x_label = "sublayer output k",
                    .y_label = y_label,
                    .series = all,
                    .count = n,
                    .log_y = true,
                    .height = 320};
    shot_below(s, &shot_chart, c);
}

#define DEPTH_INPUTS                                                           \
    {"N", "blocks", TB_SHOT_NUMBER, "12", 1, 48, .step = 1, .whole = true},    \
    {                                                                          \
        "seed", "seed", TB_SHOT_NUMBER, "1", 0, 1e6, .step = 1, .whole = true  \
    }

/* --- N5 ------------------------------------------------------------------- */

static const line depths[] = {
    {"no skip, total", "x = F(x)", TB_TONE_BAD, TB_DASHED, TB_MARK_CROSS},
    {"post-LN, total", "post-ln", TB_TONE_TOLL, TB_SOLID, TB_MARK_DIAMOND},
    {"pre-LN, total", "pre-ln", TB_TONE_LANE, TB_SOLID, TB_MARK_SQUARE},
};
/* Of the last two the lane as well; without a skip there is none. */
static const line lanes[] = {
    {"post-LN, lane alone", NULL, TB_TONE_TOLL, TB_DOTTED, TB_MARK_RING},
    {"pre-LN, lane alone", NULL, TB_TONE_LANE, TB_DOTTED, TB_MARK_TRIANGLE},
};
enum { DEPTHS = TB_LEN(depths), LANES = TB_LEN(lanes) };

static void draw_depth(tb_shot *s, const measured m[DEPTHS])
{
    line of[DEPTHS + LANES];
    measured from[DEPTHS + LANES];
    double *y[DEPTHS + LANES];
    for (size_t i = 0; i < DEPTHS; i++) {
        of[i] = depths[i];
        from[i] = m[i];
        y[i] = m[i].total;
    }
    for (size_t i = DEPTHS; i < DEPTHS + LANES; i++) {
        of[i] = lanes[i - DEPTHS];
        from[i] = m[1 + i - DEPTHS];
        y[i] = from[i].lane;
    }
    chart(s, "Total gradient, and the lane alone",
          "relative to the top, log "
          "axis",
          of, from, DEPTHS + LANES, y);
}

static void say_depth(tb_shot *s)
{
    shot_say(s, "Of a gradient of 1 at the top, {E7.plain} reaches the input "
                "without skips, {E7.post} with post-LN and {E7.pre} with "
                "pre-LN: a skip of either kind keeps the total alive.");
    shot_say(s, "Where the norm stands decides what the lane alone carries: "
                "{E6.post} with post-LN, {E6.pre} with pre-LN.");
}

static tb_status build_depth(tb_shot *s)
{
    measured m[DEPTHS];
    bool one = true;
    for (size_t i = 0; i < DEPTHS; i++)
        TB_TRY(measure(s, &depths[i], &m[i]));
    for (size_t k = 0; k < m[2].n; k++)
        one = one && m[2].lane[k] == 1;
    double plain = m[0].total[0], post = m[1].total[0], pre = m[2].total[0];
    shot_tell(s, "E7.plain", "no skip, at the input", plain);
    shot_tell(s, "E7.post", "post-LN, at the input", post);
    shot_tell(s, "E7.pre", "pre-LN, at the input", pre);
    shot_tell(s, "E6.post", "post-LN, lane at the input", m[1].lane[0]);
    shot_tell(s, "E6.pre", "pre-LN, lane at the input", m[2].lane[0]);
    shot_title(s, "Gradient flow in deep networks: what a skip saves",
               shot_text(s,
                         "Total gradient at the input over that at the top, "
                         "%zu blocks: no skip %.3g, post-LN %.3g, pre-LN %.3g; "
                         "the lane alone: post-LN %.3g, pre-LN %.3g.",
                         shot_whole(s, "N"), plain, post, pre, m[1].lane[0],
                         m[2].lane[0]));
    draw_depth(s, m);
    say_depth(s);
    shot_check_that(s, one, "pre-LN: the lane is exactly 1 at every sublayer");
    shot_check_that(s, m[0].lane[0] == 0, "without skips there is no lane");
    shot_check_that(s, plain < post && plain < pre,
                    "without skips less arrives than with either placement");
    return TB_OK;
}

const shot_row shot_n5 = {
    .name = "N5",
    .about = "gradient flow in deep networks: no skip, post-LN, pre-LN",
    .input = {DEPTH_INPUTS},
    .build = build_depth,
};

/* --- N6 ------------------------------------------------------------------- */

#define PRE "block:\n x = x + F(norm(x))\nfinal:\n x = norm(x)\n"

static const line starts[LINES] = {
    {"Xavier", PRE, TB_TONE_BAD, TB_DASHED, TB_MARK_CROSS},
    {"Xavier, gain sqrt(2)", PRE "init:\n *: xavier(sqrt(2))\n", TB_TONE_BOX,
     TB_DOTTED, TB_MARK_DOT},
    {"Xavier, branch outputs over sqrt(2N)",
     PRE "init:\n attn.o, ffn.down: xavier(1/sqrt(2*N))\n", TB_TONE_TOLL,
     TB_SOLID, TB_MARK_DIAMOND},
    {"branches times 0: ReZero", "rezero", TB_TONE_LANE, TB_SOLID,
     TB_MARK_SQUARE},
};

static tb_status build_start(tb_shot *s)
{
    measured m[LINES];
    double *total[LINES], *std[LINES], top[LINES];
    bool one = true, lane = true;
    for (size_t i = 0; i < LINES; i++) {
        TB_TRY(measure(s, &starts[i], &m[i]));
        total[i] = m[i].total;
        std[i] = m[i].std;
        top[i] = std[i][m[i].n - 1] / std[i][0];
    }
    for (size_t k = 0; k < m[3].n; k++)
        one = one && total[3][k] == 1 && std[3][k] == std[3][0];
    for (size_t i = 0; i < LINES; i++)
        lane = lane && m[i].lane[0] == 1;
    shot_tell(s, "E12.xavier", "growth, Xavier", top[0]);
    shot_tell(s, "E12.scaled", "growth, branches over sqrt(2N)", top[2]);
    shot_tell(s, "E7.xavier", "gradient at the input, Xavier", total[0][0]);
    shot_tell(s, "E7.scaled", "the same, branches over sqrt(2N)", total[2][0]);
    shot_title(s, "Layer scaling and initialization: how loud a branch starts",
               shot_text(s,
                         "The spread of the stream grows %.3g times with "
                         "Xavier, %.3g times with branch outputs over "
                         "sqrt(2N), %.3g times with ReZero.",
                         top[0], top[2], top[3]));
    chart(s, "Spread of the stream by depth", "standard deviation, log axis",
          starts, m, LINES, std);
    chart(s, "Total gradient by depth", "relative to the top, log axis", starts,
          m, LINES, total);
    shot_say(s,
             "All four are pre-LN stacks without tolls on the lane, except "
             "ReZero, which has no norm. Every branch adds to the spread: it "
             "grows {E12.xavier} times with Xavier weights and {E12.scaled} "
             "times once branch outputs are divided by sqrt(2N). The "
             "total gradient at the input goes from {E7.xavier} to "
             "{E7.scaled} times the one at the top.");
    shot_check_that(s, one,
                    "ReZero starts as the identity: spread and "
                    "gradient keep every bit");
    shot_check_that(s, lane, "the lane alone is exactly 1 in all four");
    shot_check_that(s, top[2] < top[0],
                    "scaled branches let the stream grow "
                    "less");
    return TB_OK;
}

const shot_row shot_n6 = {
    .name = "N6",
    .about = "layer scaling and initialization: spread and gradient by depth",
    .input = {DEPTH_INPUTS},
    .build = build_start,
};
