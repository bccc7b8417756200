/* SPDX-License-Identifier: MIT */
/* S4: LayerNorm slides a list to mean 0 and squeezes it to spread 1; gain and
 * bias stretch and shift it again. Its Jacobian divides by the spread. */
#include "pictures/shot_box.h"
#include "pictures/shot_norm.h"
#include "pictures/shot_panels.h"

enum { LIST, SUBTRACT, DIVIDE, SCALE, SHIFT };

/* --- reading -------------------------------------------------------------- */

static tb_status read(tb_shot *s, shot_norm_of *n)
{
    const double *z;
    *n = (shot_norm_of){.name = shot_get(s, "norm")->text,
                        .centred = shot_choice(s, "norm") == 0,
                        .eps = shot_num(s, "eps")};
    TB_TRY(shot_list_read(s, "z", &z, &n->d));
    double *wild = shot_alloc(s, n->d, sizeof *wild);
    if (!wild)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < n->d; i++)
        wild[i] = z[i] * shot_num(s, "wild") + shot_num(s, "offset");
    n->z = wild;
    TB_TRY(shot_list_over(s, "gain", n->d, &n->gain));
    return shot_list_over(s, "bias", n->d, &n->bias);
}

/* --- numbers -------------------------------------------------------------- */

static void tell(tb_shot *s, const shot_norm_of *n)
{
    shot_tell(s, "E1.mu", "mean of z", n->mu);
    shot_tell(s, "E1.var", n->centred ? "variance of z" : "mean of z squared",
              n->var);
    shot_tell(s, "E1.sigma", "spread of z", n->sigma);
    shot_tell(s, "E1.s", "what is divided by", n->s);
    shot_tell(s, "out.mean", "mean after the division",
              shot_mean(n->hat, n->d));
    shot_tell(s, "out.std", "spread after the division",
              shot_std(n->hat, n->d));
    shot_tell(s, "E3.flat", "1/s", 1 / n->s);
    shot_tell(s, "E3.radial", "eps/s^3", n->eps / (n->s * n->s * n->s));
    shot_tell(s, "E3.largest", "largest gain of J", n->singular[0]);
    shot_tell(s, "E3.frobenius", "size of J, Frobenius",
              shot_norm(n->jacobian, n->d * n->d));
    shot_list_tell(s, "z", n->z, n->d);
    shot_list_tell(s, "hat", n->hat, n->d);
    shot_list_tell(s, "out", n->out, n->d);
    shot_say(s, n->centred
                    ? "The mean is {E1.mu} and the spread {E1.sigma}. Taking "
                      "the mean away slides the list to 0; dividing by "
                      "{E1.s} makes its spread {out.std}."
                    : "RMSNorm does not take the mean away: it divides by "
                      "{E1.s}, and the mean {E1.mu} becomes {out.mean}.");
    shot_say(s, "J passes on at most {E3.largest}; 1/s is {E3.flat}, and "
                "along the squeezed list only {E3.radial} (eps/s^3) is left.");
    if (n->centred)
        shot_say(s, "Adding the same to all numbers changes nothing, so that "
                    "direction passes on 0.");
}

/* --- checks --------------------------------------------------------------- */

/* E2: diag(gain) (I - 11'/d - hat hat'/d) / s, without 11' for RMSNorm. */
static double formula_error(const shot_norm_of *n)
{
    double far = 0, d = (double)n->d;
    for (size_t i = 0; i < n->d; i++)
        for (size_t j = 0; j < n->d; j++) {
            double one =
                (i == j) - (n->centred ? 1 / d : 0) - n->hat[i] * n->hat[j] / d;
            far = tb_max2(far, tb_fabs(n->gain[i] * one / n->s -
                                       n->jacobian[i * n->d + j]));
        }
    return far;
}

/* 1e-12, and more where numbers far from 0 lie close together: `moved` is
 * added to them and the sum is rounded. */
static double rounding(const shot_norm_of *n, double moved)
{
    return 1e-12 * (1 + (shot_far(n->z, NULL, n->d) + moved) / n->s);
}

static void check_values(tb_shot *s, const shot_norm_of *n)
{
    double far = 0, mean = shot_mean(n->hat, n->d);
    for (size_t i = 0; i < n->d; i++)
        far = tb_max2(far, tb_fabs(n->hat[i] - n->slid[i] / n->s));
    shot_check_that(s, far <= rounding(n, 0),
                    "the bars of panel 3 are those of panel 2 over s");
    if (n->centred) {
        shot_check_that(s, tb_fabs(mean) < rounding(n, 0),
                        "after the division the mean is 0, within 1e-12");
        shot_check_that(s,
                        tb_fabs(shot_std(n->hat, n->d) - n->sigma / n->s) <=
                            rounding(n, 0),
                        "and the spread sigma/s, within 1e-12");
    } else {
        shot_check_that(s, tb_fabs(mean - n->mu / n->s) <= rounding(n, 0),
                        "RMSNorm keeps the mean: it is divided like the rest");
    }
    double most = shot_far(n->gain, NULL, n->d) / n->s;
    shot_check_that(s, formula_error(n) <= most * rounding(n, 0),
                    "J is gain (I%s - hat hat'/d) / s, within 1e-12",
                    n->centred ? " - 11'/d" : "");
}

/* Another constant, another size, by the engine. */
static tb_status check_moved(tb_shot *s, const shot_norm_of *n)
{
    size_t d = n->d;
    double *z = shot_alloc(s, 2 * d + d * d, sizeof *z), *y = z + d, *j = y + d;
    if (!z)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < d; i++)
        z[i] = n->z[i] + 3;
    if (n->centred) {
        TB_TRY(shot_norm_value(s, n, z, n->eps, true, y));
        shot_check_that(s, shot_far(y, n->hat, d) <= rounding(n, 3),
                        "3 added to every number changes nothing");
    }
    for (size_t i = 0; i < d; i++)
        z[i] = n->z[i] * 10;
    TB_TRY(shot_norm_value(s, n, z, n->eps, true, y));
    double bound = n->var > 0 ? n->eps / n->var : 0;
    shot_check_that(s,
                    shot_far(y, n->hat, d) <=
                        shot_far(y, NULL, d) * bound / 2 + rounding(n, 0),
                    "10 z gives what z gives, but for eps");
    TB_TRY(shot_norm_jacobian(s, n, z, 100 * n->eps, j));
    for (size_t i = 0; i < d * d; i++)
        j[i] *= 10;
    double most = shot_far(n->gain, NULL, d) / n->s;
    shot_check_that(s, shot_far(j, n->jacobian, d * d) <= most * rounding(n, 0),
                    "10 z, and 100 eps, divide J by 10");
    return TB_OK;
}

static void check_spectrum(tb_shot *s, const shot_norm_of *n)
{
    double radial = n->eps / (n->s * n->s * n->s), far = 0;
    for (size_t i = 0; i < n->d; i++)
        if (n->gain[i] != 1)
            return;
    if (!n->centred || !(n->var > 0)) /* a flat list has no direction */
        return;
    for (size_t i = 0; i < n->d; i++) {
        double want = i + 2 < n->d ? 1 / n->s : i + 2 == n->d ? radial : 0;
        far = tb_max2(far, tb_fabs(n->singular[i] - want));
    }
    shot_check_that(s, far <= 1e-9 / n->s,
                    "J passes 1/s on %zu times, eps/s^3 once, 0 once",
                    n->d - 2);
}

/* --- panels --------------------------------------------------------------- */

static const char *number_text(tb_shot *s, double v)
{
    char text[TB_SHOW_CHARS];
    return shot_text(s, "%s", tb_show_number(v, text));
}

static const char *gain_text(tb_shot *s, const double *v, size_t d,
                             const char *name)
{
    for (size_t i = 1; i < d; i++)
        if (v[i] != v[0])
            return name;
    return number_text(s, v[0]);
}

#define MU    "\xCE\xBC"
#define SIGMA "\xCF\x83\xC2\xB2"
#define GAMMA "\xCE\xB3"
#define BETA  "\xCE\xB2"
#define EPS   "\xCE\xB5"
#define ROOT  "\xE2\x88\x9A"
#define DOT   "\xE2\x8A\x99"
#define MINUS "\xE2\x88\x92"

/* The formula twice: in letters, then with its numbers; the part that the
 * chosen step adds is bold. */
static void formula(tb_shot *s, const shot_norm_of *n, size_t step)
{
    enum { WORDS = 12 };
    shot_words_of *all = shot_alloc(s, 1, sizeof *all);
    shot_word *w = shot_alloc(s, WORDS, sizeof *w);
    if (!all || !w)
        return;
    size_t k = 0;
    for (size_t line = 0; line < 2; line++) {
        const char *mu = line ? number_text(s, tb_fabs(n->mu)) : MU;
        const char *var = line         ? number_text(s, n->var)
                          : n->centred ? SIGMA
                                       : "mean z\xC2\xB2";
        const char *eps = line ? number_text(s, n->eps) : EPS;
        const char *gain = line ? gain_text(s, n->gain, n->d, GAMMA) : GAMMA;
        const char *bias = line ? gain_text(s, n->bias, n->d, BETA) : BETA;
        w[k++] = (shot_word){.text = line         ? "="
                                     : n->centred ? "LN(z) ="
                                                  : "RMS(z) ="};
        w[k++] = (shot_word){.text = shot_text(s, "%s " DOT, gain),
                             .tone = TB_TONE_LANE,
                             .bold = step == SCALE,
                             .id = line ? NULL : "term-gain"};
        w[k++] = (shot_word){
            .text = n->centred ? shot_text(s, "(z %s %s)",
                                           line && n->mu < 0 ? "+" : MINUS, mu)
                               : "z",
            .tone = TB_TONE_IN,
            .bold = step == SUBTRACT,
            .id = line ? NULL : "term-mean"};
        w[k++] =
            (shot_word){.text = shot_text(s, "/ " ROOT "(%s + %s)", var, eps),
                        .tone = TB_TONE_TOLL,
                        .bold = step == DIVIDE,
                        .ends_line = !n->centred && !line,
                        .id = line ? NULL : "term-spread"};
        if (n->centred)
            w[k++] = (shot_word){.text = shot_text(s, "+ %s", bias),
                                 .tone = TB_TONE_BOX,
                                 .bold = step == SHIFT,
                                 .ends_line = !line,
                                 .id = line ? NULL : "term-bias"};
    }
    *all = (shot_words_of){w, k};
    shot_below(s, &shot_words, all);
}

static tb_status build(tb_shot *s)
{
    char mu[TB_SHOW_CHARS], sigma[TB_SHOW_CHARS], most[TB_SHOW_CHARS];
    shot_norm_of *n = shot_alloc(s, 1, sizeof *n);
    shot_norm_panel *p = shot_alloc(s, 1, sizeof *p);
    if (!n || !p)
        return TB_ERR_MEMORY;
    TB_TRY(read(s, n));
    TB_TRY(shot_norm_run(s, n));
    size_t step = shot_choice(s, "step");
    *p = (shot_norm_panel){
        .title = n->centred ? "LayerNorm: slide, squeeze, stretch, shift"
                            : "RMSNorm: squeeze and stretch, without sliding",
        .desc = shot_text(s,
                          "A list of mean %s and spread %s after %s; J passes "
                          "on at most %s.",
                          tb_show_number(n->mu, mu),
                          tb_show_number(n->sigma, sigma), n->name,
                          tb_show_number(n->singular[0], most)),
        .norm = n,
        .step = step == SHIFT ? SHOT_NORM_STEPS - 1 : step};
    shot_title(s, p->title, p->desc);
    formula(s, n, step);
    shot_below(s, &shot_norm_face, p);
    tell(s, n);
    check_values(s, n);
    check_spectrum(s, n);
    return check_moved(s, n);
}

const shot_row shot_s4 = {
    .name = "S4",
    .about = "LayerNorm step by step, and its Jacobian",
    .input = {{"z", "the list z", TB_SHOT_LIST, "[2,4,4,4,5,5,7,9]", -20, 20,
               .step = 0.5, .most = SHOT_LIST_MOST},
              SHOT_INPUT_D("8"),
              {"wild", "wildness: z times", TB_SHOT_NUMBER, "1", 1e-6, 1000,
               .step = 1, .log = true},
              {"offset", "offset: z plus", TB_SHOT_NUMBER, "0", -100, 100,
               .step = 1},
              {"eps", "eps", TB_SHOT_NUMBER, "0", 0, 0.1, .step = 1e-9,
               .log = true},
              {"gain", "gain of each number", TB_SHOT_LIST, "[1]", -10, 10,
               .step = 0.1, .most = SHOT_LIST_MOST},
              {"bias", "bias of each number", TB_SHOT_LIST, "[0]", -10, 10,
               .step = 0.1, .most = SHOT_LIST_MOST},
              {"norm", "which norm", TB_SHOT_CHOICE, "layernorm",
               .choices = "layernorm|rmsnorm"},
              {"step", "step", TB_SHOT_CHOICE, "shift",
               .choices = "list|subtract|divide|scale|shift"}},
    .build = build,
};
