/* SPDX-License-Identifier: MIT */
/* The rules of after: which weights, what they do, what is refused. */
#include "model_help.h"
#include "model/parts.h"

static tb_status open_model(tb_test *T, const char *text, tb_dtype dtype,
                            tb_block **b, tb_model **m)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 2;
    s.width = 8;
    s.heads = 2;
    s.context = 6;
    s.vocab = 13;
    *m = NULL;
    TB_TRY(tb_block_load(T->ctx, text, b));
    tb_status status = tb_model_create(T->ctx, *b, &s, dtype, m);
    if (status != TB_OK)
        tb_block_destroy(T->ctx, *b);
    return status;
}

/* Element i of line k of a view. */
static double at(const tb_model *m, const tb_view *v, bool columns, size_t k,
                 size_t i)
{
    size_t e = columns ? i * v->shape.width + k : k * v->shape.width + i;
    return tb_elem_get(m->dtype, m->params, v->offset + e);
}

static double length_of(const tb_model *m, const char *name, bool columns,
                        size_t k)
{
    const tb_view *v = tb_model_view(m, name);
    size_t n = columns ? v->shape.height : v->shape.width;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += at(m, v, columns, k, i) * at(m, v, columns, k, i);
    return tb_sqrt(sum);
}

static const char text[] = "x = x + F(norm(x))\n"
                           "after: attn.*, embed.token: unit_rows\n"
                           " attn.o, layers.1.ffn.down: unit_columns";

TB_TEST(start_values_keep_to_it)
{
    static const tb_dtype dtypes[] = {TB_F32, TB_F64};
    for (size_t d = 0; d < TB_LEN(dtypes); d++) {
        tb_block *b;
        tb_model *m;
        double near = dtypes[d] == TB_F32 ? 1e-6 : 1e-15;
        TB_OKAY(T, open_model(T, text, dtypes[d], &b, &m));
        TB_OKAY(T, tb_model_init(m, 3));
        for (size_t k = 0; k < 8; k++) {
            TB_NEAR(T, length_of(m, "layers.1.attn.v.weight", false, k), 1,
                    near);
            TB_NEAR(T, length_of(m, "embed.token.weight", false, k), 1, near);
            TB_NEAR(T, length_of(m, "layers.0.attn.o.weight", true, k), 1,
                    near);
            TB_CHECK(T,
                     tb_fabs(length_of(m, "layers.0.ffn.down.weight", true, k) -
                             1) > 1e-3); /* of block 2 only */
        }
        TB_NEAR(T, length_of(m, "layers.1.ffn.down.weight", true, 31), 1, near);
        TB_STR(T, tb_model_view(m, "layers.0.attn.q.weight")->rule,
               "xavier(1), unit_rows");
        TB_STR(T, tb_model_view(m, "layers.0.attn.o.weight")->rule,
               "xavier(1), unit_columns"); /* the last match wins */
        TB_STR(T, tb_model_view(m, "layers.0.ffn.down.weight")->rule,
               "xavier(1)");
        tb_model_destroy(m);
        tb_block_destroy(T->ctx, b);
    }
}

/* One view by itself has the values of the whole. */
TB_TEST(one_view_by_itself)
{
    tb_block *b;
    tb_model *m;
    float one[64];
    TB_OKAY(T, open_model(T, text, TB_F32, &b, &m));
    TB_OKAY(T, tb_model_init(m, 3));
    const tb_view *v = tb_model_view(m, "layers.1.attn.k.weight");
    TB_OKAY(T, tb_model_init_view(m, v, 3, one));
    TB_SAME(T, one, (const float *)m->params + v->offset, sizeof one);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

/* What has no direction stays; what has one too long or short for its square
 * does not. */
TB_TEST(lengths_of_every_size)
{
    static const double sizes[] = {0, 1e-300, 1e300, 3};
    tb_block *b;
    tb_model *m;
    TB_OKAY(T, open_model(T, text, TB_F64, &b, &m));
    TB_OKAY(T, tb_model_init(m, 3));
    const tb_view *v = tb_model_view(m, "layers.0.attn.q.weight");
    for (size_t k = 0; k < TB_LEN(sizes); k++)
        for (size_t i = 0; i < 8; i++)
            tb_elem_set(TB_F64, m->params, v->offset + k * 8 + i,
                        i % 2 ? sizes[k] : -sizes[k]);
    tb_model_after(m);
    for (size_t k = 0; k < TB_LEN(sizes); k++)
        TB_NEAR(T, length_of(m, v->name, false, k), sizes[k] > 0, 1e-15);
    TB_CHECK(T, at(m, v, false, 1, 0) < 0 && at(m, v, false, 2, 1) > 0);
    tb_model_destroy(m);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(refused)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"x = x + F(norm(x))\nafter: attn.z: unit_rows",
         "2:8: 'attn.z' matches no weight"},
        {"x = x + F(norm(x))\nafter: attn.q.bias: unit_rows",
         "unit_rows: needs a matrix, layers.0.attn.q.bias is none"},
        {"x = x + F(norm(x))\nafter: attn.q: unit_row",
         "2:16: unknown after rule 'unit_row'; did you mean 'unit_rows'?"},
        {"x = x + F(norm(x))\nafter: attn.q: normal(1)",
         "2:16: unknown after rule 'normal'"},
        {"x = x + F(norm(x))\nafter: attn.q: unit_rows(2)",
         "'unit_rows' takes 0 arguments, got 1"},
        {"x = x + F(norm(x))\nafter: attn.q", "expected ',' or ':'"},
        {"x = x + F(norm(x))\nencoder after: attn.q: unit_rows",
         "'after:' takes no role"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_block *b;
        tb_model *m;
        TB_FAILS(T, open_model(T, rows[i].text, TB_F32, &b, &m), TB_ERR_PARSE,
                 rows[i].message);
    }
}
