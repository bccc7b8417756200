/* SPDX-License-Identifier: MIT */
/* The tower of any stack: a booth where a norm stands, arrows by the law, lines
 * that are named, zeros that are told; and what it refuses. */
#include "test_pictures_demo.h"

#include "pictures/diagram.h"

enum { MOST = 96 };

static double zero_divide(double v)
{
    volatile double zero = 0;
    return v / zero;
}

typedef struct demo_tower {
    tb_tower_floor floors[MOST];
    double lane[MOST + 1], total[MOST + 1];
    tb_tower tower;
} demo_tower;

/* Norms on the lane of every floor, or inside every branch. */
static void fill(demo_tower *d, size_t n, bool on_lane)
{
    double lane = 1;
    for (size_t k = n + 1; k-- > 0;) {
        d->lane[k] = lane;
        d->total[k] = 1 + 0.01 * (double)(n - k);
        lane *= on_lane ? 0.7 : 1;
    }
    for (size_t k = 0; k < n; k++)
        d->floors[k] = (tb_tower_floor){.name = k % 2 ? "ffn" : "attn",
                                        .k = k + 1,
                                        .toll = 0.7,
                                        .on_lane = on_lane,
                                        .on_branch = !on_lane};
    d->tower = (tb_tower){.title = "a tower",
                          .floors = d->floors,
                          .n = n,
                          .lane = d->lane,
                          .total = d->total};
}

static const tb_item *item_of(const tb_scene *s, const char *id)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i].style.id && tb_streq(s->items[i].style.id, id))
            return &s->items[i];
    return NULL;
}

TB_TEST(every_floor_has_its_parts)
{
    static const size_t sizes[] = {1, 2, 12, 48, 96};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (size_t i = 0; i < 2 * TB_LEN(sizes); i++) {
        size_t n = sizes[i / 2];
        demo_tower d;
        tb_scene *s;
        fill(&d, n, i % 2);
        d.tower.exit = !(i % 2);
        tb_out_reset(out);
        TB_OKAY(T, tb_tower_scene(T->ctx, &d.tower, &s));
        check_figure(T, s, out);
        const char *svg = tb_out_str(out);
        TB_CHECK(T, count(svg, "data-role=\"floor\"") == n);
        TB_CHECK(T, count(svg, "data-role=\"toll\"") == n + d.tower.exit);
        TB_CHECK(T, count(svg, "data-role=\"grad-hw\"") == n);
        TB_CHECK(T, count(svg, "data-role=\"grad-total\"") == n);
        TB_CHECK(T, strstr(svg, ">lane</text>"));
        TB_CHECK(T, strstr(svg, ">total</text>"));
        TB_CHECK(T, s->w <= 760 && s->count < 5000);
        for (size_t k = 1; k <= n; k++) {
            char id[32];
            tb_format(id, sizeof id, "hw-%zu", k);
            const tb_item *it = item_of(s, id);
            TB_REQUIRE(T, it);
            TB_NEAR(T, it->style.line, tb_back_width(d.lane[k - 1]), 0);
        }
        tb_scene_destroy(s);
    }
    tb_out_destroy(out);
}

TB_TEST(tower_faces)
{
    demo_tower d;
    tb_out *out;
    fill(&d, 48, true);
    d.floors[3].toll = zero_divide(0);
    d.floors[5].on_branch = true;
    d.floors[7].on_lane = false;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (size_t width = 40; width <= 200; width += 40) {
        tb_terminal term = {.width = (int)width, .ascii = width == 80};
        tb_out_reset(out);
        TB_OKAY(T, tb_tower_term(T->ctx, &d.tower, &term, out));
        check_terminal(T, tb_out_str(out), width, term.ascii);
        TB_CHECK(T, strstr(tb_out_str(out), "every 2. floor of 48"));
    }
    tb_out_reset(out);
    TB_OKAY(T, tb_tower_table_html(T->ctx, &d.tower, out));
    const char *html = tb_out_str(out);
    TB_CHECK(T, well_formed(html) && count(html, "<tr>") == 49);
    TB_CHECK(T, strstr(html, "lane and branch") && strstr(html, ">none<"));
    tb_out_destroy(out);
}

/* A lane that no floor lets through: crosses, triangles, and the zero told. */
TB_TEST(tower_without_a_lane)
{
    demo_tower d;
    tb_scene *s;
    tb_out *out;
    fill(&d, 4, true);
    for (size_t k = 0; k < 4; k++) {
        d.floors[k] = (tb_tower_floor){
            .name = "ffn", .k = k + 1, .toll = zero_divide(0), .cut = true};
        d.lane[k] = 0;
        d.total[k] = k == 1 ? zero_divide(0) : 0.5;
    }
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_tower_scene(T->ctx, &d.tower, &s));
    check_figure(T, s, out);
    const char *svg = tb_out_str(out);
    TB_CHECK(T, count(svg, "data-role=\"cut\"") >= 4);
    TB_CHECK(T, strstr(svg, ">lane: 0</text>"));
    TB_CHECK(T, count(svg, "data-role=\"toll\"") == 0);
    TB_CHECK(T, !strstr(svg, "\"nan"));
    tb_scene_destroy(s);
    TB_OKAY(T, tb_tower_term(T->ctx, &d.tower, NULL, out));
    d.tower.n = 0;
    TB_FAILS(T, tb_tower_scene(T->ctx, &d.tower, &s), TB_ERR_ARG, "tower");
    TB_FAILS(T, tb_tower_term(T->ctx, &d.tower, NULL, out), TB_ERR_ARG,
             "tower");
    TB_FAILS(T, tb_tower_table_html(T->ctx, &d.tower, out), TB_ERR_ARG,
             "tower");
    tb_out_destroy(out);
}

/* A value that is not on the axis breaks the line. */
TB_TEST(tower_with_a_gap)
{
    demo_tower d;
    tb_scene *s;
    tb_out *out;
    fill(&d, 6, true);
    d.lane[1] = d.lane[3] = 0; /* x0 and x2 stand alone */
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_tower_scene(T->ctx, &d.tower, &s));
    check_figure(T, s, out);
    size_t points = 0, lines = 0, dots = 0;
    for (size_t i = 0; i < s->count; i++) {
        const tb_item *it = &s->items[i];
        if (it->style.role && tb_streq(it->style.role, "grad-hw-line")) {
            points += it->n;
            lines += it->kind == TB_ITEM_PATH;
            dots += it->kind == TB_ITEM_CIRCLE;
        }
    }
    TB_CHECK(T, lines == 1 && points == 3 && dots == 2);
    tb_scene_destroy(s);
    tb_out_destroy(out);
}
