/* SPDX-License-Identifier: MIT */
/* What the pictures tests share: demo numbers, golden files (TB_GOLDEN=write
 * rewrites them), and checks every figure must pass. */
#ifndef TEST_PICTURES_DEMO_H
#define TEST_PICTURES_DEMO_H

#include <stdio.h>
#include <stdlib.h>

#include "pictures/plot.h"
#include "tb_test.h"

#define UNUSED __attribute__((unused))

/* --- golden files ------------------------------------------------------- */

static UNUSED void golden(tb_test *T, const char *name, const char *got)
{
    char path[512];
    const char *mode = getenv("TB_GOLDEN");
    tb_format(path, sizeof path, "%s/tests/golden/pictures/%s", TB_SOURCE_DIR,
              name);
    if (mode && tb_streq(mode, "write")) {
        FILE *f = fopen(path, "wb");
        TB_CHECK(T, f && fputs(got, f) >= 0);
        if (f)
            fclose(f);
        return;
    }
    FILE *f = fopen(path, "rb");
    size_t n = strlen(got), read = 0;
    char *want = malloc(n + 2);
    if (f && want) {
        read = fread(want, 1, n + 1, f);
        want[read] = 0;
    }
    if (!f || !want || read != n || memcmp(want, got, n) != 0) {
        size_t at = 0;
        while (f && want && at < read && at < n && want[at] == got[at])
            at++;
        tb_test_fail(T, __FILE__, __LINE__,
                     "%s differs at byte %zu: \"%.40s\", wanted \"%.40s\"; "
                     "TB_GOLDEN=write rewrites it",
                     name, at, got + at, f && want ? want + at : "no file");
    }
    if (f)
        fclose(f);
    free(want);
}

/* --- looking into text -------------------------------------------------- */

static UNUSED size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* Tags close in order, attributes are quoted, & starts an entity, < is never
 * bare. Enough of XML to catch a printer's mistakes. */
static UNUSED bool well_formed(const char *s)
{
    const char *open[64];
    size_t length[64], depth = 0;
    while (*s) {
        if (*s == '&') {
            size_t n = strcspn(s, ";< ");
            if (s[n] != ';' || n > 7)
                return false;
        }
        if (*s != '<') {
            s++;
            continue;
        }
        bool closing = *++s == '/';
        s += closing;
        size_t n = strcspn(s, " />\n");
        const char *name = s;
        for (s += n; *s && *s != '>'; s++)
            if (*s == '"') {
                size_t v = strcspn(s + 1, "\"<");
                if (s[1 + v] != '"')
                    return false;
                s += 1 + v;
            }
        if (!*s || n == 0)
            return false;
        bool empty = s[-1] == '/';
        s++;
        if (closing) {
            if (!depth || length[depth - 1] != n ||
                memcmp(open[depth - 1], name, n) != 0)
                return false;
            depth--;
        } else if (!empty) {
            if (depth == 64)
                return false;
            open[depth] = name;
            length[depth++] = n;
        }
    }
    return depth == 0;
}

/* No nan or inf inside a tag (they may stand in text). */
static UNUSED bool finite_coordinates(const char *svg)
{
    bool tag = false;
    for (const char *p = svg; *p; p++) {
        if (*p == '<')
            tag = true;
        else if (*p == '>')
            tag = false;
        else if (tag &&
                 (memcmp(p, "\"nan", 4) == 0 || memcmp(p, " nan", 4) == 0 ||
                  memcmp(p, "\"inf", 4) == 0 || memcmp(p, "-inf", 4) == 0))
            return false;
    }
    return true;
}

/* Labels inside the picture, none on another. */
static UNUSED void check_labels(tb_test *T, const tb_scene *s)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->items[i].kind != TB_ITEM_TEXT)
            continue;
        tb_box a = tb_item_text_box(&s->items[i]);
        if (a.x < 0 || a.y < 0 || a.x + a.w > s->w || a.y + a.h > s->h)
            tb_test_fail(T, __FILE__, __LINE__, "\"%s\" is clipped: %g %g %g",
                         s->items[i].text, a.x, a.x + a.w, s->w);
        for (size_t k = 0; k < i; k++)
            if (s->items[k].kind == TB_ITEM_TEXT &&
                tb_box_meets(a, tb_item_text_box(&s->items[k])))
                tb_test_fail(T, __FILE__, __LINE__, "\"%s\" meets \"%s\"",
                             s->items[i].text, s->items[k].text);
    }
}

/* Everything a figure owes; the SVG is left in `out`. */
static UNUSED void check_figure(tb_test *T, const tb_scene *s, tb_out *out)
{
    tb_out_reset(out);
    TB_OKAY(T, tb_scene_svg(s, NULL, out));
    const char *svg = tb_out_str(out);
    TB_CHECK(T, strstr(svg, "role=\"img\""));
    TB_CHECK(T, strstr(svg, "aria-labelledby=\"fig-title fig-desc\""));
    TB_CHECK(T, strstr(svg, "<title id=\"fig-title\">"));
    TB_CHECK(T, strstr(svg, "<desc id=\"fig-desc\">"));
    TB_CHECK(T, strstr(svg, "prefers-color-scheme:dark"));
    TB_CHECK(T, well_formed(svg));
    TB_CHECK(T, finite_coordinates(svg));
    check_labels(T, s);
}

/* Lines no wider than `width` columns, no blanks at their ends, no bytes that
 * move a cursor; only ASCII if asked. */
static UNUSED void check_terminal(tb_test *T, const char *text, size_t width,
                                  bool ascii)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\n");
        char line[2048];
        tb_format(line, sizeof line, "%.*s", (int)n, p);
        if (tb_columns(line) > width)
            tb_test_fail(T, __FILE__, __LINE__, "%zu columns, wanted %zu: %s",
                         tb_columns(line), width, line);
        if (n && line[n - 1] == ' ')
            tb_test_fail(T, __FILE__, __LINE__, "blank at the end: '%s'", line);
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)line[i] < 0x20 ||
                (ascii && (unsigned char)line[i] > 0x7E))
                tb_test_fail(T, __FILE__, __LINE__, "byte %x in %s",
                             (unsigned)(unsigned char)line[i], line);
        p += n + (p[n] == '\n');
    }
}

/* --- demo numbers ------------------------------------------------------- */

enum { DEMO_K = 25 };

typedef struct demo_flow {
    double post_lane[DEMO_K], post_total[DEMO_K], pre_lane[DEMO_K],
        pre_total[DEMO_K], post_branch[DEMO_K], pre_branch[DEMO_K];
    const char *names[DEMO_K];
    tb_flow_curve runs[2];
    tb_flow_figure figure;
} demo_flow;

/* Post-LN's lane loses a sixth per sublayer while its total stays within
 * 0.4..1; Pre-LN's lane is 1 and its total grows to 3 at the input. */
static UNUSED void demo_flow_fill(demo_flow *d)
{
    static const double wobble[] = {0.02, -0.05, 0.03, 0.06, -0.04, 0.01};
    double lane = 1;
    for (size_t i = DEMO_K; i-- > 0;) {
        double depth = (double)(DEMO_K - 1 - i) / (DEMO_K - 1);
        d->post_lane[i] = lane;
        d->post_total[i] =
            1 - 0.55 * depth + (i < DEMO_K - 1 ? wobble[i % 6] : 0);
        d->pre_lane[i] = 1;
        d->pre_total[i] =
            1 + 2 * depth * depth + (i < DEMO_K - 1 ? 0.5 * wobble[i % 6] : 0);
        d->post_branch[i] = d->post_total[i] * (1 - 0.9 * lane);
        d->pre_branch[i] = 0.05 + 2.6 * depth;
        d->names[i] = i == 0 ? "stem" : i % 2 ? "attn" : "ffn";
        lane *= 0.83;
    }
    d->runs[0] = (tb_flow_curve){.block = "post-ln",
                                 .depth = 12,
                                 .n = DEMO_K,
                                 .lane = d->post_lane,
                                 .total = d->post_total,
                                 .names = d->names};
    d->runs[1] = (tb_flow_curve){.block = "pre-ln",
                                 .depth = 12,
                                 .n = DEMO_K,
                                 .lane = d->pre_lane,
                                 .total = d->pre_total,
                                 .names = d->names};
    d->figure = (tb_flow_figure){.runs = d->runs, .count = 2};
}

enum { DEMO_STEPS = 200 };

typedef struct demo_loss {
    double step[DEMO_STEPS], loss[4][DEMO_STEPS], val_step[10], val[4][10];
    tb_loss_curve runs[4];
    tb_loss_figure figure;
} demo_loss;

static UNUSED void demo_loss_fill(tb_test *T, demo_loss *d)
{
    static const char *const labels[] = {
        "post-ln, no warm-up", "post-ln, warm-up 100", "pre-ln, no warm-up",
        "pre-ln, warm-up 100"};
    volatile double zero = 0;
    static const double ends[] = {3.1, 2.05, 1.95, 1.9};
    for (size_t r = 0; r < 4; r++) {
        for (size_t i = 0; i < DEMO_STEPS; i++) {
            double t = (double)i / DEMO_STEPS;
            d->step[i] = 10.0 * (double)i;
            d->loss[r][i] = ends[r] + (4.17 - ends[r]) / (1 + 14 * t) +
                            0.04 * tb_test_normal(T);
            if (r == 0 && i > 40)
                d->loss[r][i] += 0.002 * (double)((i - 40) * (i - 40));
            if (r == 0 && i > 70)
                d->loss[r][i] = 0.0 / zero;
        }
        for (size_t i = 0; i < 10; i++) {
            d->val_step[i] = 200.0 * (double)i + 100;
            d->val[r][i] = ends[r] + 0.12 +
                           (4.2 - ends[r]) / (1 + 14 * d->val_step[i] / 2000);
        }
        d->runs[r] = (tb_loss_curve){.label = labels[r],
                                     .step = d->step,
                                     .loss = d->loss[r],
                                     .n = DEMO_STEPS,
                                     .val_step = d->val_step,
                                     .val_loss = d->val[r],
                                     .val_n = r == 0 ? 2 : 10,
                                     .diverged = r == 0,
                                     .diverged_at = 710};
    }
    d->figure = (tb_loss_figure){.runs = d->runs, .count = 4};
}

#endif
