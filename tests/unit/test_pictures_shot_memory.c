/* SPDX-License-Identifier: MIT */
/* Shots that run models, graphs and cards give everything back wherever memory
 * ends, and say that it did. */
#include "test_pictures_shot_help.h"

static tb_status attempt(tb_test *T, const char *name, const char *set,
                         size_t n)
{
    tb_shot *s = NULL;
    tb_out *out = NULL;
    tb_ctx_fail_alloc_at(T->ctx, n);
    tb_status status = tb_shot_create(T->ctx, name, set, &s);
    if (status == TB_OK)
        status = tb_out_create(T->ctx, &out);
    if (status == TB_OK)
        status = tb_shot_svg(s, NULL, out);
    if (status == TB_OK)
        status = tb_shot_term(s, NULL, out);
    if (status == TB_OK)
        status = tb_shot_html(s, out);
    tb_ctx_fail_alloc_at(T->ctx, 0);
    tb_out_destroy(out);
    tb_shot_destroy(s);
    return status;
}

TB_TEST(every_allocation_may_fail)
{
    static const char *const shots[][2] = {
        {"S5", "N=1,d=4,T=1"},
        {"S6", "N=2,d=4,T=1,open=1,branch=linear"},
        {"SUM", "N=1,d=4,T=1,size=a4"},
        {"S7", "card=a,z=[1,2,4],N=1"},
        {"S7", "card=b,sigma=0,eps=0"},
        {"S7", "card=c,N=1,d=4,T=1"},
        {"S7", "card=d,N=1,d=4,T=1"},
        {"S7", "card=e,z=[1,2,4]"},
        {"S7", "card=f,N=1,cut=1,d=4,T=1"},
        {"F6", "order=sandwich"},
        {"F-MAP", "done=[1]"},
        {"CHECK", "test=1,guess=[1]"},
        {"CHECK", "test=4"},
        {"CHECK", "test=6"},
        {"CHECK", "test=8,reveal=1"},
        {"CHECK", "test=2"},
        {"CHECK", "test=3"},
        {"CHECK", "test=5"},
        {"CHECK", "test=7"},
        {"F6", "equation=x = x + attn(norm(x)) + ffn(x)"},
        {"RETELL", "first=add&second=x&uncover=1"},
        {"RECALL", "card=2,reveal=1"},
        {"N1", "T=2"},
        {"N2", "T=2,heads=2"},
        {"N3", "T=2,d=2"},
        {"N4", "T=2"},
        {"N5", "N=1"},
        {"N7", "N=1"},
        {"workbench", "depth=1&width=8&tokens=2&block=x = F(norm(x))"}};
    for (size_t i = 0; i < TB_LEN(shots); i++) {
        /* what a context keeps (product library) is there after one */
        TB_OKAY(T, attempt(T, shots[i][0], shots[i][1], 0));
        size_t blocks = tb_ctx_blocks(T->ctx), n = 1;
        tb_status status = TB_ERR_MEMORY;
        for (; n < 20000 && status == TB_ERR_MEMORY; n++) {
            status = attempt(T, shots[i][0], shots[i][1], n);
            if (tb_ctx_blocks(T->ctx) != blocks)
                tb_test_fail(T, __FILE__, __LINE__,
                             "%s %s, allocation %zu: %zu blocks, wanted %zu",
                             shots[i][0], shots[i][1], n, tb_ctx_blocks(T->ctx),
                             blocks);
            blocks = tb_ctx_blocks(T->ctx);
        }
        TB_OKAY(T, status);
    }
}
