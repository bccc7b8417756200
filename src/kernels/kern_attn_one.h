/* SPDX-License-Identifier: MIT */
/* Part of kern_attn.h: forward of one query, which is how text is generated.
 * Keys and values are read where they are, once: to copy a block of them would
 * take longer than what one query does with it. Sums in the order of the
 * blocks, so without FMA the bits are theirs. */

/* s = q k^T for n keys and, as whole vectors, some more. */
static void FN(one_scores)(size_t n, size_t depth, const REAL *q, const REAL *k,
                           size_t ld, REAL *s)
{
    const size_t deep = depth / FN(VEC) * FN(VEC);
    const FN(vec) zero = {0};
    for (size_t r = 0; r < n; r += FN(VEC), k += FN(VEC) * ld) {
        const size_t rows = FN(least)(FN(VEC), n - r);
        FN(vec) v[FN(VEC)], sum = zero;
        for (size_t i = 0; i < deep; i += FN(VEC)) {
            FN(load_square)(rows, k + i, ld, v);
            FN(transpose_square)(v);
            GEMM_UNROLL
            for (size_t j = 0; j < (size_t)FN(VEC); j++)
                sum += q[i + j] * v[j];
        }
        for (size_t i = deep; i < depth; i++) {
            v[0] = zero;
            for (size_t j = 0; j < rows; j++)
                v[0][j] = k[j * ld + i];
            sum += q[i] * v[0];
        }
        memcpy(s + r, &sum, sizeof sum);
    }
}

/* y (+)= s v over n keys, for some vectors of columns. A key that is hidden is
 * not read. */
TB_INLINE void FN(one_columns)(size_t n, int vecs, const REAL *s, const REAL *v,
                               size_t ld, bool add, REAL *y)
{
    FN(vec) sum[4] = {{0}}, x;
    for (size_t j = 0; j < n; j++, v += ld) {
        if (s[j] == 0)
            continue;
        GEMM_UNROLL
        for (int c = 0; c < vecs; c++) {
            memcpy(&x, v + c * FN(VEC), sizeof x);
            sum[c] += s[j] * x;
        }
    }
    GEMM_UNROLL
    for (int c = 0; c < vecs; c++) {
        memcpy(&x, y + c * FN(VEC), sizeof x);
        sum[c] = add ? x + sum[c] : sum[c];
        memcpy(y + c * FN(VEC), &sum[c], sizeof x);
    }
}

static void FN(one_mix)(size_t n, size_t width, const REAL *s, const REAL *v,
                        size_t ld, bool add, REAL *y)
{
    size_t i = 0;
    for (; i + 4 * FN(VEC) <= width; i += 4 * FN(VEC))
        FN(one_columns)(n, 4, s, v + i, ld, add, y + i);
    for (; i + FN(VEC) <= width; i += FN(VEC))
        FN(one_columns)(n, 1, s, v + i, ld, add, y + i);
    for (; i < width; i++) {
        REAL sum = 0;
        for (size_t j = 0; j < n; j++)
            if (s[j] != 0)
                sum += s[j] * v[j * ld + i];
        y[i] = add ? y[i] + sum : sum;
    }
}

/* The query's blocks: its output so far in w->rows. */
static void FN(one_query)(const tb_k_attn *p, const FN(attn_work) * w)
{
    FN(attn_block) b = {.p = p, .rows = 1};
    FN(attn_copy)(1, 1, p->hd, (REAL)p->scale, p->q, p->ldq, w->q);
    for (; b.c0 < p->keys && FN(attn_start)(p, b.c0) == 0;
         b.c0 += TB_ATTN_KEYS) {
        b.n = FN(least)(TB_ATTN_KEYS, p->keys - b.c0);
        const size_t n = FN(attn_reach)(&b, 0);
        FN(one_scores)
        (n, p->hd, w->q, (const REAL *)p->k + b.c0 * p->ldk, p->ldk, w->s);
        FN(attn_soft)(&b, w, 0, FN(attn_wide)(n));
        FN(attn_drop)(&b, w->s);
        FN(one_mix)
        (n, p->vd, w->s, (const REAL *)p->v + b.c0 * p->ldv, p->ldv, b.c0 > 0,
         w->rows);
    }
}
