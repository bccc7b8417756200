/* SPDX-License-Identifier: MIT */
/* S7, card d: what reaches the input of ever deeper stacks. */
#include "pictures/shot_s7.h"

enum { DEPTHS = 9 };

typedef struct depths {
    double n[DEPTHS], y[4][DEPTHS]; /* Post lane, total; Pre lane, total */
    size_t count;
    tb_series line[4];
    tb_chart chart;
} depths;

static tb_status fill_depths(tb_shot *s, depths *p)
{
    static const size_t all[] = {1, 2, 4, 8, 16, 24, 48, 96};
    size_t most = shot_whole(s, "N");
    for (size_t i = 0; i <= TB_LEN(all); i++) {
        size_t n = i < TB_LEN(all) && all[i] < most ? all[i] : most;
        for (size_t post = 0; post < 2; post++) {
            stack_spec spec = stack_asked(s, post == 0);
            stack_run r;
            spec.n = n;
            spec.f32 = true;
            TB_TRY(stack_measure(s, &spec, &r));
            p->y[2 * post][p->count] = stack_lane(&r, 0);
            p->y[2 * post + 1][p->count] = stack_total(&r, 0);
        }
        p->n[p->count++] = (double)n;
        if (n == most)
            break;
    }
    return TB_OK;
}

static void depth_chart(depths *p)
{
    static const tb_series looks[] = {{.label = "Post-LN, lane (E6)",
                                       .tone = TB_TONE_BAD,
                                       .dash = TB_DASHED,
                                       .marker = TB_MARK_SQUARE,
                                       .line = 4,
                                       .role = "grad-hw"},
                                      {.label = "Post-LN, total (E7)",
                                       .tone = TB_TONE_TOTAL,
                                       .marker = TB_MARK_DOT,
                                       .role = "grad-total"},
                                      {.label = "Pre-LN, lane (E6)",
                                       .tone = TB_TONE_LANE,
                                       .marker = TB_MARK_DIAMOND,
                                       .line = 4,
                                       .role = "grad-hw"},
                                      {.label = "Pre-LN, total (E7)",
                                       .tone = TB_TONE_TOTAL,
                                       .dash = TB_DOTTED,
                                       .marker = TB_MARK_TRIANGLE,
                                       .role = "grad-total"}};
    for (size_t i = 0; i < 4; i++) {
        p->line[i] = looks[i];
        p->line[i].x = p->n;
        p->line[i].y = p->y[i];
        p->line[i].n = p->count;
    }
    p->chart = (tb_chart){.title = "What reaches the input, by depth",
                          .x_label = "floors N",
                          .y_label = "gain, relative to the top",
                          .series = p->line,
                          .count = 4,
                          .log_y = true,
                          .width = 740,
                          .height = 380};
}

static bool strictly_falls(const double *y, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!(y[i] < y[i - 1]))
            return false;
    return true;
}

tb_status s7_depth(tb_shot *s)
{
    depths *p = shot_alloc(s, 1, sizeof *p);
    if (!p)
        return TB_ERR_MEMORY;
    TB_TRY(fill_depths(s, p));
    depth_chart(p);
    shot_below(s, &shot_chart, &p->chart);
    size_t last = p->count - 1;
    bool flat = true, falling = strictly_falls(p->y[0], p->count);
    for (size_t i = 0; i < p->count; i++)
        flat = flat && p->y[2][i] == 1;
    shot_tell(s, "N", "floors, at most", p->n[last]);
    shot_tell(s, "E6.post", "Post-LN: lane at the input", p->y[0][last]);
    shot_tell(s, "E7.post", "Post-LN: total at the input", p->y[1][last]);
    shot_tell(s, "E6.pre", "Pre-LN: lane at the input", p->y[2][last]);
    shot_tell(s, "E7.pre", "Pre-LN: total at the input", p->y[3][last]);
    shot_title(s, "A very deep stack",
               shot_text(s,
                         "%zu stacks of 1 to %g floors: the lane of Post-LN "
                         "ends at %.3g, that of Pre-LN at %.3g.",
                         p->count, p->n[last], p->y[0][last], p->y[2][last]));
    shot_say(s, "Lane: with {N} floors {E6.post} is left in Post-LN, {E6.pre} "
                "in Pre-LN, which only adds I to I.");
    shot_say(s, "Total: {E7.post} and {E7.pre}. It does not follow the lane.");
    shot_check_that(s, flat, "Pre-LN's lane is 1 at every depth");
    /* a narrow list, or one token, can have a spread below 1 by chance */
    if (shot_choice(s, "init") < 2 && shot_num(s, "v") >= 0.5 &&
        shot_whole(s, "d") >= 64 && shot_whole(s, "T") >= 4)
        shot_check_that(s, falling, "Post-LN's lane falls with every depth");
    return TB_OK;
}
