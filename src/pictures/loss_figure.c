/* SPDX-License-Identifier: MIT */
/* Loss against step for many runs: training as a line, validation dashed with
 * marks, a cross where a run diverged. */
#include "pictures/plot.h"

#define LOSS_TITLE "Loss by update"

/* Two series per run in one tone; the validation marks tell runs apart. On a
 * terminal only the training line is drawn and validation is a number. */
static tb_status build(tb_arena *a, const tb_loss_figure *f, bool text,
                       tb_chart *c)
{
    tb_series *all = tb_arena_alloc(a, (2 * f->count + 1) * sizeof *all);
    if (!all)
        return TB_ERR_MEMORY;
    size_t n = 0;
    for (size_t i = 0; i < f->count; i++) {
        const tb_loss_curve *r = &f->runs[i];
        const char *label = r->label ? r->label : "run";
        tb_series s = {.label = label,
                       .x = r->step,
                       .y = r->loss,
                       .n = r->n,
                       .tone = tb_series_tone(i),
                       .marker = r->val_n ? TB_MARK_NONE : tb_series_marker(i),
                       .dash = (tb_dash)(i / 6 % 4),
                       .line = r->diverged ? 2.6 : 1.6,
                       .role = "loss-train",
                       .stop = r->diverged_at,
                       .stopped = r->diverged};
        if (text && r->val_n) {
            char last[TB_SHOW_CHARS];
            tb_show_number(r->val_loss[r->val_n - 1], last);
            s.label = tb_arena_printf(a, "%s, validation %s", label, last);
            s.marker = tb_series_marker(i);
        } else if (r->val_n) {
            s.label = tb_arena_printf(a, "%s, training", label);
        }
        if (!s.label)
            return TB_ERR_MEMORY;
        all[n++] = s;
        if (!r->val_n || text)
            continue;
        s.label = tb_arena_printf(a, "%s, validation", label);
        s.x = r->val_step;
        s.y = r->val_loss;
        s.n = r->val_n;
        s.dash = TB_DASHED;
        s.marker = tb_series_marker(i);
        s.role = "loss-val";
        s.stopped = false;
        if (!s.label)
            return TB_ERR_MEMORY;
        all[n++] = s;
    }
    *c = (tb_chart){.title = f->title ? f->title : LOSS_TITLE,
                    .x_label = "update",
                    .y_label = text ? "training loss, nats per token"
                                    : "loss, nats per token",
                    .series = all,
                    .count = n,
                    .width = f->width,
                    .height = f->height > 0 ? f->height : 400};
    return TB_OK;
}

/* A diverged run may reach 1e30: the scale follows the runs that did not, and
 * the first loss of those that did; higher values are marked at the edge. */
static void limits(const tb_loss_figure *f, tb_chart *c)
{
    double min = 1, max = 0;
    bool diverged = false;
    for (size_t i = 0; i < f->count; i++) {
        const tb_loss_curve *r = &f->runs[i];
        diverged = diverged || r->diverged;
        for (size_t k = 0; k < r->n + r->val_n; k++) {
            double v = k < r->n ? r->loss[k] : r->val_loss[k - r->n];
            bool counts = !r->diverged || k == 0;
            bool first = min > max;
            if (!(tb_fabs(v) <= 1e300))
                continue;
            if (first || v < min)
                min = v;
            if (counts && (first || v > max))
                max = v;
            else if (first)
                max = v;
        }
    }
    if (diverged && min < max) {
        c->y_min = min;
        c->y_max = max + 0.25 * (max - min);
    }
}

tb_status tb_loss_scene(tb_ctx *ctx, const tb_loss_figure *f, tb_scene **out)
{
    *out = NULL;
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_chart c;
    tb_status s = build(&a, f, false, &c);
    if (s == TB_OK) {
        limits(f, &c);
        s = tb_chart_scene(ctx, &c, out);
    }
    tb_arena_clear(&a);
    return s;
}

tb_status tb_loss_term(tb_ctx *ctx, const tb_loss_figure *f,
                       const tb_terminal *term, tb_out *out)
{
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_chart c;
    tb_status s = build(&a, f, true, &c);
    if (s == TB_OK) {
        limits(f, &c);
        s = tb_chart_term(ctx, &c, term, out);
    }
    tb_arena_clear(&a);
    return s;
}

tb_status tb_loss_table_html(tb_ctx *ctx, const tb_loss_figure *f, tb_out *out)
{
    tb_arena a;
    tb_arena_init(&a, ctx);
    tb_chart c;
    tb_status s = build(&a, f, false, &c);
    if (s == TB_OK)
        s = tb_chart_table_html(ctx, &c, out);
    tb_arena_clear(&a);
    return s;
}
