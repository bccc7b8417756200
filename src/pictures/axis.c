/* SPDX-License-Identifier: MIT */
/* Axes: limits, ticks and the place of a value. A log axis ends at whole
 * decades of the data, never at a made-up floor, and spans at most 60. */
#include "pictures/plot.h"

#define LOG_2 0.30102999566398120
#define LOG_5 0.69897000433601880

/* --- ticks -------------------------------------------------------------- */

static void add_tick(tb_axis *a, double unit)
{
    double slack = 1e-9 * (a->hi - a->lo);
    if (a->n_ticks < TB_TICKS && unit >= a->lo - slack && unit <= a->hi + slack)
        a->tick[a->n_ticks++] = unit;
}

/* 1, 2 or 5 times a power of ten, at least `least`. */
static double nice_step(double least)
{
    double unit = tb_pow10(tb_floor(tb_log10(least)));
    double m = least / unit;
    return unit * (m <= 1.0000001 ? 1 : m <= 2.0000001 ? 2 : m <= 5 ? 5 : 10);
}

static void log_ticks(tb_axis *a)
{
    double span = a->hi - a->lo;
    double step = span <= 9 ? 1 : tb_ceil(span / 8);
    if (span > 16)
        step = step <= 5 ? 5 : 10;
    bool minor = span <= 2.01;
    for (double d = tb_floor(a->lo); d <= a->hi; d += 1) {
        if (tb_floor(d / step) * step == d)
            add_tick(a, d);
        if (minor) {
            add_tick(a, d + LOG_2);
            add_tick(a, d + LOG_5);
        }
    }
}

static void linear_ticks(tb_axis *a, bool tight)
{
    a->step = nice_step((a->hi - a->lo) / 6);
    if (a->whole && a->step < 1)
        a->step = 1;
    double first = tb_floor(a->lo / a->step + (tight ? 1 - 1e-9 : 1e-9));
    double last = tight ? tb_floor(a->hi / a->step + 1e-9)
                        : tb_ceil(a->hi / a->step - 1e-9);
    if (!tight) {
        a->lo = first * a->step;
        a->hi = last * a->step;
    }
    for (double k = first; k <= last && a->n_ticks < TB_TICKS; k += 1)
        add_tick(a, k * a->step);
}

/* --- limits ------------------------------------------------------------- */

/* The next 1, 2 or 5 times a power of ten; the next power if not `few`. */
static double round_log(double x, bool few, bool up)
{
    const double parts[] = {0, LOG_2, LOG_5, 1};
    double decade = tb_floor(x), rest = x - decade;
    if (!few)
        return up ? tb_ceil(x) : decade;
    if (up) {
        int i = 0;
        while (parts[i] < rest - 1e-9)
            i++;
        return decade + parts[i];
    }
    int i = 3;
    while (parts[i] > rest + 1e-9)
        i--;
    return decade + parts[i];
}

static void fit_log(tb_axis *a, double min, double max, bool tight)
{
    a->lo = tb_log10(min);
    a->hi = tb_log10(max);
    if (a->hi - a->lo < 1e-9) { /* one value: the decade around it */
        a->lo = tb_floor(a->lo);
        a->hi = tb_ceil(a->hi);
        if (a->lo == a->hi) {
            a->lo -= 0.5;
            a->hi += 0.5;
        }
    } else if (!tight) {
        bool few = a->hi - a->lo < 4;
        a->lo = round_log(a->lo, few, false);
        a->hi = round_log(a->hi, few, true);
    }
    if (a->hi - a->lo > TB_DECADES) {
        a->lo = a->hi - TB_DECADES;
        a->below = true;
    }
    log_ticks(a);
}

static void fit_linear(tb_axis *a, double min, double max, bool tight)
{
    a->lo = min;
    a->hi = max;
    double size = tb_max2(tb_fabs(min), tb_fabs(max));
    if (max - min <= 1e-12 * size || max == min) {
        double half = size > 0 ? size / 2 : 0.5;
        if (tight)
            half = 0.5;
        a->lo -= half;
        a->hi += half;
        tight = false;
    }
    linear_ticks(a, tight);
}

void tb_axis_fit(tb_axis *a, bool log, double min, double max, bool tight)
{
    *a = (tb_axis){.log = log, .whole = a->whole};
    a->empty = !(min <= max) || (log && !(max > 0));
    if (a->empty) {
        a->lo = 0;
        a->hi = 1;
    } else if (log) {
        fit_log(a, min, max, tight);
    } else {
        fit_linear(a, min, max, tight);
    }
}

/* On a linear axis, values above 1e300 would overflow the range. */
static bool usable(double v, bool log)
{
    return tb_isfinite(v) && (log ? v > 0 : tb_fabs(v) <= 1e300);
}

void tb_axis_of_y(tb_axis *a, const tb_chart *c)
{
    double min = 1, max = 0;
    a->whole = false;
    for (size_t i = 0; i < c->count; i++) {
        const tb_series *s = &c->series[i];
        const double *all[] = {s->y, s->low, s->high};
        for (size_t k = 0; k < 3 * s->n; k++) {
            const double *one = all[k / s->n];
            if (!one || !usable(one[k % s->n], c->log_y))
                continue;
            double v = one[k % s->n];
            bool first = min > max;
            min = first || v < min ? v : min;
            max = first || v > max ? v : max;
        }
    }
    bool data = min <= max;
    if (c->has_ref && data && usable(c->ref, c->log_y)) {
        min = tb_min2(min, c->ref);
        max = tb_max2(max, c->ref);
    }
    double data_min = min, data_max = max;
    bool given = c->y_min < c->y_max && data;
    if (given) {
        min = c->y_min;
        max = c->y_max;
    }
    tb_axis_fit(a, c->log_y, min, max, false);
    if (given && !a->empty) {
        double lo = a->log ? tb_log10(data_min) : data_min;
        double hi = a->log ? tb_log10(data_max) : data_max;
        a->below = a->below || lo < a->lo;
        a->above = hi > a->hi;
    }
}

void tb_axis_of_x(tb_axis *a, const tb_chart *c)
{
    double min = 1, max = 0;
    a->whole = true;
    for (size_t i = 0; i < c->count; i++) {
        tb_series s = tb_series_of(c, i);
        for (size_t k = 0; k < s.n; k++) {
            double v = tb_series_x(&s, k);
            if (!usable(v, false))
                continue;
            a->whole = a->whole && v == tb_floor(v);
            bool first = min > max;
            min = first || v < min ? v : min;
            max = first || v > max ? v : max;
        }
    }
    tb_axis_fit(a, false, min, max, true);
}

/* --- a value on the axis ------------------------------------------------ */

tb_state tb_axis_state(const tb_axis *a, double v)
{
    if (a->log && v <= 0 && tb_isfinite(v))
        return TB_FLOOR;
    if (!usable(v, a->log))
        return TB_GAP;
    double u = a->log ? tb_log10(v) : v;
    double slack = 1e-9 * (a->hi - a->lo);
    if (u < a->lo - slack)
        return TB_BELOW;
    return u > a->hi + slack ? TB_ABOVE : TB_DRAWN;
}

double tb_axis_unit(const tb_axis *a, double v)
{
    double u = a->log ? tb_log10(v) : v;
    return tb_max2(a->lo, tb_min2(a->hi, u));
}

double tb_axis_unit_px(const tb_axis *a, double unit)
{
    return a->p_lo + (unit - a->lo) / (a->hi - a->lo) * (a->p_hi - a->p_lo);
}

double tb_axis_px(const tb_axis *a, double v)
{
    return tb_axis_unit_px(a, tb_axis_unit(a, v));
}

/* 0.001 as "1e-3", but 0.1, 1, 10, 100 plain. */
static char *log_label(double unit, char out[TB_SHOW_CHARS])
{
    double decade = tb_floor(unit + 1e-9);
    int lead = unit - decade < 0.1 ? 1 : unit - decade < 0.5 ? 2 : 5;
    int d = (int)decade;
    if (d >= -1 && d <= 2)
        return tb_show_number(lead * tb_pow10(decade), out);
    tb_format(out, TB_SHOW_CHARS, "%de%d", lead, d);
    return out;
}

char *tb_axis_label(const tb_axis *a, size_t i, char out[TB_SHOW_CHARS])
{
    double v = a->tick[i];
    if (a->log)
        return log_label(v, out);
    double top = tb_max2(tb_fabs(a->lo), tb_fabs(a->hi));
    if (a->step < 1e-4 || top >= 1e7)
        return tb_show_number(tb_fabs(v) < a->step / 2 ? 0 : v, out);
    int decimals = (int)tb_max2(0, -tb_floor(tb_log10(a->step) + 1e-9));
    if (tb_fabs(v) < a->step / 2)
        v = 0;
    tb_format(out, TB_SHOW_CHARS, "%.*f", decimals, v);
    return out;
}
