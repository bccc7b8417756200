/* SPDX-License-Identifier: MIT */
/* The tower of a shot's stack: drawn as every tower; its table and its JSON
 * hold what the shot knows beyond that. */
#include "pictures/shot_tower.h"

static const tb_tower_floor *floors_of(tb_shot *s, const stack_run *r)
{
    tb_tower_floor *out = shot_alloc(s, r->spec.n, sizeof *out);
    for (size_t k = 0; out && k < r->spec.n; k++)
        out[k] = (tb_tower_floor){.name = r->floor[k].name,
                                  .k = k + 1,
                                  .toll = r->floor[k].toll,
                                  .on_lane = r->spec.post,
                                  .on_branch = !r->spec.post,
                                  .cut = k + 1 == r->spec.cut};
    return out;
}

shot_tower_of *shot_tower_make(tb_shot *s, const char *title,
                               const stack_run *r)
{
    size_t n = r->spec.n;
    shot_tower_of *t = shot_alloc(s, 1, sizeof *t);
    double *lane = shot_alloc(s, n + 1, sizeof *lane);
    double *total = shot_alloc(s, n + 1, sizeof *total);
    double *std = shot_alloc(s, n + 1, sizeof *std);
    const tb_tower_floor *floors = floors_of(s, r);
    if (!t || !lane || !total || !std || !floors)
        return NULL;
    for (size_t k = 0; k <= n; k++) {
        lane[k] = stack_lane(r, k);
        total[k] = stack_total(r, k);
        std[k] = stack_std(r, k);
    }
    *t = (shot_tower_of){.run = r,
                         .tower = {.title = title,
                                   .block = r->equation,
                                   .floors = floors,
                                   .n = n,
                                   .lane = lane,
                                   .total = total,
                                   .std = std,
                                   .exit = r->exit_norms > 0,
                                   .exit_toll = r->exit_toll}};
    return t;
}

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    return tb_tower_scene(ctx, &((const shot_tower_of *)data)->tower, out);
}

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *t,
                      tb_out *out)
{
    return tb_tower_term(ctx, &((const shot_tower_of *)data)->tower, t, out);
}

/* --- table ---------------------------------------------------------------- */

static tb_status html_in(tb_arena *a, const void *data, tb_grid *g)
{
    static const tb_column columns[] = {
        {.head = "floor", .align = TB_RIGHT},
        {.head = "sublayer"},
        {.head = "s", .align = TB_RIGHT},
        {.head = "toll (RMS)", .align = TB_RIGHT},
        {.head = "1/s", .align = TB_RIGHT},
        {.head = "lane below", .align = TB_RIGHT},
        {.head = "total below", .align = TB_RIGHT},
        {.head = "std of x above", .align = TB_RIGHT}};
    const shot_tower_of *t = data;
    const stack_run *r = t->run;
    TB_TRY(tb_grid_init(g, a, t->tower.title, columns, TB_LEN(columns),
                        r->spec.n));
    for (size_t k = r->spec.n; k > 0; k--) {
        const stack_floor *f = &r->floor[k - 1];
        tb_grid_number(g, (double)k);
        tb_grid_text(g, f->name);
        tb_grid_number(g, f->s);
        tb_grid_number(g, f->toll);
        tb_grid_number(g, f->tau);
        tb_grid_number(g, f->lane);
        tb_grid_number(g, f->total);
        tb_grid_number(g, f->std_x);
    }
    return TB_OK;
}

SHOT_GRID_HTML(html, html_in)

/* --- JSON ----------------------------------------------------------------- */

static void json(const void *data, tb_json *j)
{
    const shot_tower_of *t = data;
    const stack_run *r = t->run;
    tb_json_string(j, "title", t->tower.title);
    tb_json_string(j, "equation", r->equation);
    tb_json_string(j, "block", r->text);
    tb_json_string(j, "booths", r->spec.post ? "lane" : "branch");
    tb_json_bool(j, "exit", r->exit_norms > 0);
    tb_json_array(j, "floors");
    for (size_t k = 1; k <= r->spec.n; k++) {
        const stack_floor *f = &r->floor[k - 1];
        tb_json_object(j, NULL);
        tb_json_int(j, "floor", (int64_t)k);
        tb_json_string(j, "sublayer", f->name);
        tb_json_number(j, "s", f->s);
        tb_json_number(j, "toll", f->toll);
        tb_json_number(j, "tau", f->tau);
        tb_json_number(j, "lane", f->lane);
        tb_json_number(j, "total", f->total);
        tb_json_number(j, "std_x", f->std_x);
        tb_json_end(j);
    }
    tb_json_end(j);
}

const shot_face shot_tower = {"tower", scene, term, html, json};
