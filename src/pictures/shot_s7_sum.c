/* SPDX-License-Identifier: MIT */
/* S7, card e: the sum of what a norm puts out has no gradient. */
#include "pictures/diagram.h"
#include "pictures/shot_s7.h"

typedef struct sum_of {
    const double *z, *g;
    size_t d;
    double most, single; /* of |g|; if the first output alone is the loss */
} sum_of;

static tb_status sum_scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    const sum_of *m = data;
    tb_scene *s;
    char text[TB_SHOW_CHARS];
    tb_style in = {.role = "in-arrow", .stroke = TB_TONE_IN, .line = 3};
    tb_style road = {.role = "fwd", .stroke = TB_TONE_INK, .line = 2.4};
    tb_style name = {.role = "label", .size = 15, .bold = true, .italic = true};
    tb_style label = {.role = "label", .size = 12, .anchor = TB_MIDDLE};
    TB_TRY(tb_scene_create(ctx, 560, 190, "The sum of a norm's outputs",
                           "list, norm, sum", &s));
    double w = tb_back_width(m->most);
    tb_style back = {.role = "grad-hw",
                     .id = "grad-sum",
                     .stroke = TB_TONE_BAD,
                     .dash = TB_DASHED,
                     .line = w};
    tb_style one = {.role = "grad-top", .stroke = TB_TONE_LANE, .line = 10};
    tb_scene_text(s, 18, 75, "x", &name);
    tb_scene_arrow(s, (double[]){36, 70, 196, 70}, 2, &in);
    tb_scene_arrow(s, (double[]){260, 70, 386, 70}, 2, &road);
    tb_scene_arrow(s, (double[]){430, 70, 500, 70}, 2, &road);
    tb_scene_text(s, 508, 75, "L", &name);
    tower_arrow(s, 500, 112, 252, 112, &one);
    tower_arrow(s, 196, 112, 36, 112, &back);
    const tb_diagram_part norm = {.kind = TB_DIAGRAM_NORM, .label = "LN"};
    tb_part_booth(s, &norm, (tb_box){204, 53, 44, 76}, "booth", "");
    tb_part_plus(s, 408, 70, 20);
    tb_scene_text(s, 408, 45, "sum of all features", &label);
    tb_scene_text(s, 380, 140, "1 to every output", &label);
    tb_scene_text(
        s, 116, 140,
        tb_arena_printf(&s->arena, "at most %s", tb_show_number(m->most, text)),
        &label);
    tb_scene_text(
        s, 18, 174,
        "Below: what comes back, 10 px wide where it is 1, 3 px less for each "
        "factor 10.",
        &(tb_style){.role = "note", .fill = TB_TONE_MUTED, .size = 12});
    tb_scene_resize(s, 560, 186);
    return tb_scene_done(s, out);
}

static tb_status sum_term(tb_ctx *ctx, const void *data,
                          const tb_terminal *term, tb_out *out)
{
    const sum_of *m = data;
    char text[TB_SHOW_CHARS], line[120];
    (void)ctx;
    tb_term_wrap(&out->buf, term, 2,
                 "x \xE2\x94\x80\xE2\x94\x80\xE2\x96\xA3\xE2\x94\x80\xE2\x94"
                 "\x80[sum]\xE2\x94\x80\xE2\x96\xBA L");
    tb_format(line, sizeof line,
              "back: 1 to every output of the norm, at most %s to an input",
              tb_show_number(m->most, text));
    tb_term_wrap(&out->buf, term, 2, line);
    return tb_buf_status(&out->buf);
}

static void sum_json(const void *data, tb_json *j)
{
    const sum_of *m = data;
    tb_json_string(j, "title", "The sum of a norm's outputs");
    tb_json_tensor(j, "gradient", TB_F64, m->g, 1, &m->d);
}

static const shot_face sum_face = {"chain", sum_scene, sum_term, NULL,
                                   sum_json};

/* The gradient by x of the outputs times c. */
static tb_status gradient(tb_shot *s, const sum_of *m, const double *c,
                          double *g)
{
    double eps = shot_num(s, "eps");
    const tb_eval_value set = {"x", 1, {m->d}, m->z};
    const tb_eval_value cotangent = {"y", 1, {m->d}, c};
    const tb_eval e = {.text = "layernorm(x)",
                       .sets = &set,
                       .nsets = 1,
                       .cotangent = &cotangent,
                       .eps = &eps};
    tb_eval_result *r;
    TB_TRY(tb_eval_run(s->ctx, &e, &r));
    for (size_t i = 0; i < r->ngrads; i++)
        if (tb_streq(r->grads[i].name, "x"))
            memcpy(g, r->grads[i].data, m->d * sizeof *g);
    tb_eval_free(s->ctx, r);
    return TB_OK;
}

static double largest(const double *g, size_t d)
{
    double most = 0;
    for (size_t i = 0; i < d; i++)
        most = tb_max2(most, tb_fabs(g[i]));
    return most;
}

static tb_status sum_gradients(tb_shot *s, sum_of *m)
{
    double *c = shot_alloc(s, m->d, sizeof *c),
           *g = shot_alloc(s, m->d, sizeof *g);
    if (!c || !g)
        return TB_ERR_MEMORY;
    c[0] = 1;
    TB_TRY(gradient(s, m, c, g));
    m->single = largest(g, m->d);
    for (size_t i = 0; i < m->d; i++)
        c[i] = 1;
    TB_TRY(gradient(s, m, c, g));
    m->g = g;
    m->most = largest(g, m->d);
    return TB_OK;
}

tb_status s7_sum(tb_shot *s)
{
    const shot_value *z = shot_get(s, "z");
    sum_of *m = shot_alloc(s, 1, sizeof *m);
    if (!m)
        return TB_ERR_MEMORY;
    *m = (sum_of){.z = z->data, .d = z->n};
    TB_TRY(sum_gradients(s, m));
    shot_title(s, "The sum of a LayerNorm's outputs has no gradient",
               shot_text(s,
                         "Ones arrive at %zu outputs of a norm; at most %.3g "
                         "goes on to any input.",
                         m->d, m->most));
    shot_below(s, &sum_face, m);
    shot_tell(s, "g", "largest entry of the gradient", m->most);
    shot_tell(s, "g.one", "the same where the loss is one output", m->single);
    shot_say(s, "A norm's outputs sum to the sum of its bias, whatever the "
                "input: a loss that is their sum sends back {g} at most (one "
                "output alone: {g.one}). Reported as a bug of a framework, it "
                "is algebra: "
                "https://github.com/pytorch/pytorch/issues/63541.");
    shot_check_that(s, m->most <= 1e-12 && (m->d < 3 || m->single > 1e-9),
                    "no input gets more than 1e-12: %.3g; one output alone "
                    "sends %.3g",
                    m->most, m->single);
    return TB_OK;
}
