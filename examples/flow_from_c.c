/* SPDX-License-Identifier: MIT */
/* The smallest program around libtollbooth: read a block, print its canonical
 * text and its lane, measure its gradient flow at initial values.
 *
 *   cc flow_from_c.c $(pkg-config --cflags --libs tollbooth) -o flow_from_c
 *   ./flow_from_c pre-ln
 */
#include <stdio.h>
#include <tollbooth/block.h>
#include <tollbooth/flow.h>

static tb_status print_block(tb_ctx *ctx, const tb_block *b)
{
    char *text = NULL, *lane = NULL;
    tb_status s = tb_block_text(ctx, b, &text);
    if (s == TB_OK)
        s = tb_lane_text(ctx, b, &lane);
    if (s == TB_OK)
        printf("%s\nlane of one block: %s\n\n", text, lane);
    tb_text_free(ctx, text);
    tb_text_free(ctx, lane);
    return s;
}

static tb_status print_flow(tb_ctx *ctx, const tb_block *b)
{
    tb_flow *f;
    tb_flow_spec spec = {.settings = TB_SETTINGS_UNSET, .seed = 1};
    spec.settings.depth = 12; /* the rest is what tollbooth flow takes */
    tb_status s = tb_flow_measure(ctx, b, &spec, &f);
    if (s != TB_OK)
        return s;
    printf("%4s  %-5s  %10s  %10s\n", "k", "", "lane", "total");
    for (size_t i = 0; i < f->nrows; i++)
        printf("%4zu  %-5s  %10.3g  %10.3g\n", f->rows[i].k, f->rows[i].name,
               f->rows[i].lane, f->rows[i].total);
    for (size_t i = 0; i < f->nverdicts; i++)
        printf("%s %s: %s\n", tb_level_name(f->verdicts[i].level),
               f->verdicts[i].code, f->verdicts[i].sentence);
    tb_flow_free(ctx, f);
    return TB_OK;
}

int main(int argc, char **argv)
{
    tb_ctx *ctx;
    tb_block *b;
    if (tb_ctx_create(&ctx) != TB_OK)
        return tb_status_exit(TB_ERR_MEMORY);
    tb_status s = tb_block_load(ctx, argc > 1 ? argv[1] : "post-ln", &b);
    if (s == TB_OK) {
        s = print_block(ctx, b);
        if (s == TB_OK)
            s = print_flow(ctx, b);
        tb_block_destroy(ctx, b);
    }
    if (s != TB_OK)
        fprintf(stderr, "%s\n", tb_error(ctx));
    tb_ctx_destroy(ctx);
    return tb_status_exit(s);
}
