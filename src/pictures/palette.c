/* SPDX-License-Identifier: MIT */
/* The colours: one row per token, contrast at least 4.5:1 for text and 3:1
 * for lines on either background, and the order series take them in. */
#include "pictures/scene.h"

static const tb_tone_row rows[TB_TONE_COUNT] = {
    [TB_TONE_NONE] = {"none", "none", "none"},
    [TB_TONE_INK] = {"ink", "#1B1F24", "#E6EAF0"},
    [TB_TONE_MUTED] = {"muted", "#59636E", "#9DA7B3"},
    [TB_TONE_GRID] = {"grid", "#DFE3E8", "#2C333D"},
    [TB_TONE_PAPER] = {"paper", "#FFFFFF", "#12161C"},
    [TB_TONE_PANEL] = {"panel", "#F5F7F9", "#1A2028"},
    [TB_TONE_IN] = {"in", "#0072B2", "#56B4E9"},
    [TB_TONE_BOX] = {"box", "#C75300", "#F0A04B"},
    [TB_TONE_LANE] = {"hw", "#00795A", "#3FC79A"},
    [TB_TONE_TOLL] = {"toll", "#3D5A98", "#9DB7F0"},
    [TB_TONE_BAD] = {"back-bad", "#B3261E", "#FF8A80"},
    [TB_TONE_TOTAL] = {"total", "#5F6772", "#AEB6C0"},
    [TB_TONE_IN_SOFT] = {"in-soft", "#E0F0F9", "#12303F"},
    [TB_TONE_BOX_SOFT] = {"box-soft", "#FBEADD", "#3B2812"},
    [TB_TONE_LANE_SOFT] = {"hw-soft", "#DDF1EA", "#123429"},
    [TB_TONE_TOLL_SOFT] = {"toll-soft", "#E4EAF6", "#222F4A"},
};

const tb_tone_row *tb_tone_at(tb_tone tone)
{
    size_t i = (size_t)tone;
    return &rows[i < TB_LEN(rows) ? i : 0];
}

static void variables(tb_buf *b, bool dark)
{
    for (size_t i = 1; i < TB_LEN(rows); i++)
        tb_buf_printf(b, "--%s:%s;", rows[i].name,
                      dark ? rows[i].dark : rows[i].light);
}

void tb_palette_css(tb_buf *b, tb_theme theme, const char *selector)
{
    bool dark = theme == TB_THEME_DARK;
    static const char *const scheme[] = {"light dark", "light", "dark"};
    tb_buf_printf(b, "%s{color-scheme:%s;", selector, scheme[theme]);
    variables(b, dark);
    tb_buf_puts(b, "}\n");
    if (theme != TB_THEME_AUTO)
        return;
    tb_buf_printf(b, "@media (prefers-color-scheme:dark){%s{", selector);
    variables(b, true);
    tb_buf_puts(b, "}}\n@media print{");
    tb_buf_printf(b, "%s{color-scheme:light;", selector);
    variables(b, false);
    tb_buf_puts(b, "}}\n");
}

/* The plain value first: renderers without var() keep it. */
static void one_class(tb_buf *b, const tb_tone_row *r, bool dark, bool stroke)
{
    const char *property = stroke ? "stroke" : "fill";
    const char *value = dark ? r->dark : r->light;
    if (r == &rows[TB_TONE_NONE])
        tb_buf_printf(b, ".%c-none{%s:none}\n", property[0], property);
    else
        tb_buf_printf(b, ".%c-%s{%s:%s;%s:var(--%s)}\n", property[0], r->name,
                      property, value, property, r->name);
}

void tb_palette_classes(tb_buf *b, tb_theme theme, uint64_t used)
{
    for (size_t i = 0; i < TB_LEN(rows); i++)
        for (unsigned stroke = 0; stroke < 2; stroke++)
            if (used >> (i + 32 * stroke) & 1)
                one_class(b, &rows[i], theme == TB_THEME_DARK, stroke);
}

tb_status tb_pictures_css(tb_theme theme, tb_out *out)
{
    tb_palette_css(&out->buf, theme, ":root");
    tb_palette_classes(&out->buf, theme, UINT64_MAX);
    return tb_buf_status(&out->buf);
}

/* Neighbours differ in hue, dash and marker; after six the dash moves on, so
 * that 24 series stay distinct without colour alone. */
static const tb_tone series_tones[] = {TB_TONE_IN,   TB_TONE_BOX,
                                       TB_TONE_LANE, TB_TONE_TOLL,
                                       TB_TONE_BAD,  TB_TONE_TOTAL};

tb_tone tb_series_tone(size_t i)
{
    return series_tones[i % TB_LEN(series_tones)];
}

tb_dash tb_series_dash(size_t i)
{
    return (tb_dash)((i + i / TB_LEN(series_tones)) % 4);
}

tb_marker tb_series_marker(size_t i)
{
    return (tb_marker)(1 + i % 6);
}
