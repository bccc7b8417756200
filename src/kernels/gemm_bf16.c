/* SPDX-License-Identifier: MIT */
/* Products of operands that are rounded to bf16, with sums in float: by
 * oneDNN, by our own kernel, or emulated in float. */
#include "kernels/gemm_matmul.h"
#include "threads/threads.h"

/* Of the library's operands: 8 MiB each, so that a block of a large one is
 * still in the last cache when it is read. */
enum { COPY = 1 << 22, LONGEST = 4096 };

/** What hangs on a context: the library, and room for its operands. */
typedef struct tb_bf16 {
    tb_matmul *matmul; /* NULL: not to be had */
    uint16_t *a, *b;   /* [COPY] */
    char name[96];
} tb_bf16;

static void drop(tb_ctx *ctx, void *p)
{
    tb_bf16 *s = p;
    tb_matmul_destroy(ctx, s->matmul);
    tb_free(ctx, s->a);
    tb_free(ctx, s->b);
    tb_free(ctx, s);
}

static void open_library(tb_ctx *ctx, tb_bf16 *s)
{
    s->matmul = tb_matmul_create(ctx);
    s->a = s->matmul ? tb_alloc(ctx, COPY, sizeof *s->a) : NULL;
    s->b = s->a ? tb_alloc(ctx, COPY, sizeof *s->b) : NULL;
    if (!s->b) { /* our own code needs nothing */
        tb_matmul_destroy(ctx, s->matmul);
        s->matmul = NULL;
    }
}

/* Made when first needed; what is not there inside tb_parallel stays out of
 * reach there. */
static tb_bf16 *state_of(tb_ctx *ctx)
{
    tb_bf16 *s = tb_ctx_slot(ctx, TB_SLOT_BF16);
    if (s || tb_threads_inside() || !(s = tb_alloc(ctx, 1, sizeof *s)))
        return s;
    if (tb_gemm_bf16_get(tb_ctx_isa_limit(ctx)))
        open_library(ctx, s);
    tb_ctx_slot_set(ctx, TB_SLOT_BF16, s, drop);
    return s;
}

static bool runs_in_hardware(const tb_ctx *ctx)
{
    return !tb_ctx_is_exact(ctx) && tb_gemm_bf16_get(tb_ctx_isa_limit(ctx));
}

const char *tb_gemm_bf16_name(tb_ctx *ctx)
{
    tb_bf16 *s = state_of(ctx);
    if (!s)
        return "tollbooth, bf16";
    if (!runs_in_hardware(ctx))
        tb_format(s->name, sizeof s->name,
                  "tollbooth (%s), bf16 emulated in f32",
                  tb_kern_get(ctx, TB_F32)->isa);
    else if (s->matmul)
        tb_format(s->name, sizeof s->name,
                  "%s (matmul, bf16) and tollbooth (avx512_bf16)",
                  tb_matmul_version(s->matmul));
    else
        tb_format(s->name, sizeof s->name, "tollbooth (avx512_bf16)");
    return s->name;
}

/* --- pieces ----------------------------------------------------------------
 */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** Rows [i, i + m), columns [j, j + n), values [k, k + kc) of the sums. */
typedef struct piece {
    size_t i, m, j, n, k, kc;
} piece;

/* A piece as a product by itself; the first values of k meet C as it is. */
static tb_gemm_args piece_of(const tb_gemm_args *g, const piece *p)
{
    const float *a = g->a, *b = g->b;
    tb_gemm_args part = *g;
    part.a = a + (g->ta ? p->k * g->lda + p->i : p->i * g->lda + p->k);
    part.b = b + (g->tb ? p->j * g->ldb + p->k : p->k * g->ldb + p->j);
    part.c = (float *)g->c + p->i * g->ldc + p->j;
    part.m = p->m, part.n = p->n, part.k = p->kc;
    part.beta = p->k == 0 ? g->beta : 1;
    return part;
}

/** An operand as it is stored. */
typedef struct stored {
    const float *x;
    size_t ld, rows, cols;
} stored;

static stored stored_a(const tb_gemm_args *g)
{
    return (stored){g->a, g->lda, g->ta ? g->k : g->m, g->ta ? g->m : g->k};
}

static stored stored_b(const tb_gemm_args *g)
{
    return (stored){g->b, g->ldb, g->tb ? g->n : g->k, g->tb ? g->k : g->n};
}

/* --- emulated --------------------------------------------------------------
 */

/* Operands are copied in blocks on the stack, rounded, and multiplied by our
 * product in float. Blocks of k are those of the reference product, which
 * gives an exact context its bits. */
enum { ROWS = 96, DEPTH = 256, COLS = 128 };

/** A product whose parts know what multiplies; the first member is what
 * tb_gemm_cut hands around. */
typedef struct emulated {
    tb_gemm_args g;
    const tb_kern *kern;
    tb_gemm_part_fn part;
} emulated;

static void round_block(const tb_kern *kern, stored s, float *out)
{
    for (size_t r = 0; r < s.rows; r++)
        kern->round_bf16(s.cols, s.x + r * s.ld, out + r * s.cols);
}

/* `b`: B's piece, rounded once for all pieces of A. */
static void emulated_piece(const emulated *e, const piece *p, float *b,
                           bool round_b)
{
    float a[ROWS * DEPTH];
    tb_gemm_args part = piece_of(&e->g, p);
    stored sa = stored_a(&part), sb = stored_b(&part);
    round_block(e->kern, sa, a);
    if (round_b)
        round_block(e->kern, sb, b);
    part.bf16 = false;
    part.a = a, part.lda = sa.cols;
    part.b = b, part.ldb = sb.cols;
    e->part(&part, (tb_gemm_part){0, p->m, 0, p->n});
}

static void emulated_part(const tb_gemm_args *g, tb_gemm_part r)
{
    const emulated *e = (const emulated *)g;
    float b[DEPTH * COLS];
    piece p = {0};
    do { /* once even for an empty sum, which is beta c */
        p.kc = least(DEPTH, g->k - p.k);
        for (p.j = r.j0; p.j < r.j1; p.j += COLS) {
            p.n = least(COLS, r.j1 - p.j);
            for (p.i = r.i0; p.i < r.i1; p.i += ROWS) {
                p.m = least(ROWS, r.i1 - p.i);
                emulated_piece(e, &p, b, p.i == r.i0);
            }
        }
        p.k += p.kc;
    } while (p.k < g->k);
}

void tb_gemm_bf16_emulated(tb_ctx *ctx, const tb_gemm_args *g)
{
    const char *limit = tb_ctx_isa_limit(ctx);
    const emulated e = {*g, tb_kern_get(ctx, TB_F32),
                        tb_gemm_part_get(limit, TB_F32, !tb_ctx_is_exact(ctx))};
    tb_gemm_cut(ctx, &e.g, emulated_part);
}

bool tb_gemm_bf16_own(tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_gemm_part_fn part = tb_gemm_bf16_get(tb_ctx_isa_limit(ctx));
    if (!part)
        return false;
    tb_gemm_cut(ctx, g, part);
    return true;
}

/* --- by the library --------------------------------------------------------
 */

/** An operand on its way to bf16. */
typedef struct copying {
    const tb_kern *kern;
    stored s;
    size_t chunks;
    uint16_t *y;
} copying;

static void copy_chunk(void *arg, size_t chunk)
{
    const copying *c = arg;
    size_t from = tb_chunk_at(c->s.rows, c->chunks, chunk);
    size_t to = tb_chunk_at(c->s.rows, c->chunks, chunk + 1);
    for (size_t r = from; r < to; r++)
        c->kern->to_bf16(c->s.cols, c->s.x + r * c->s.ld, c->y + r * c->s.cols);
}

static void copy(const tb_ctx *ctx, stored s, uint16_t *y)
{
    enum { GRAIN = 1 << 15 }; /* some 10 us */
    copying c = {tb_kern_get(ctx, TB_F32), s, 0, y};
    c.chunks = tb_chunks(s.rows, GRAIN / s.cols + 1);
    tb_parallel(ctx, c.chunks, copy_chunk, &c);
}

/* One piece, of which A may have been copied already. Where the library cannot
 * do it, our own product runs. */
static void library_piece(tb_ctx *ctx, tb_bf16 *s, const tb_gemm_args *g,
                          const piece *p, bool copy_a)
{
    tb_gemm_args f32 = piece_of(g, p), part = f32;
    stored a = stored_a(&part), b = stored_b(&part);
    if (copy_a)
        copy(ctx, a, s->a);
    copy(ctx, b, s->b);
    part.a = s->a, part.lda = a.cols;
    part.b = s->b, part.ldb = b.cols;
    if (!tb_matmul_run(ctx, s->matmul, &part))
        tb_gemm_bf16_own(ctx, &f32);
}

/* The length of equal pieces of n, of at most `most`, a multiple of 64. */
static size_t step_of(size_t n, size_t most)
{
    size_t pieces = (n + most - 1) / most;
    return ((n + pieces - 1) / pieces + 63) / 64 * 64;
}

/* Pieces of which copies fit. */
static void library_pieces(tb_ctx *ctx, tb_bf16 *s, const tb_gemm_args *g)
{
    const size_t depth = step_of(g->k, LONGEST);
    const size_t most = COPY / depth / 64 * 64;
    const size_t rows = step_of(g->m, most), cols = step_of(g->n, most);
    piece p = {0};
    for (p.k = 0; p.k < g->k; p.k += depth) {
        p.kc = least(depth, g->k - p.k);
        for (p.i = 0; p.i < g->m; p.i += rows) {
            p.m = least(rows, g->m - p.i);
            for (p.j = 0; p.j < g->n; p.j += cols) {
                p.n = least(cols, g->n - p.j);
                library_piece(ctx, s, g, &p, p.j == 0);
            }
        }
    }
}

bool tb_gemm_bf16_dnnl(tb_ctx *ctx, const tb_gemm_args *g)
{
    tb_bf16 *s = state_of(ctx);
    if (!s || !s->matmul || g->m == 0 || g->n == 0 || g->k == 0 ||
        g->alpha != 1 || (g->beta != 0 && g->beta != 1) || tb_threads_inside())
        return false;
    library_pieces(ctx, s, g);
    return true;
}

/* --- the live one ----------------------------------------------------------
 */

/* Measured on two cores of a Zen 4, copies included: ours is as fast or some
 * percent faster on what is small and on transposed A (gradients of weights),
 * oneDNN up to 7 % faster on the rest. Tile units (AMX) only it knows. */
static bool ours_is_faster(const tb_gemm_args *g)
{
    double products = (double)g->m * (double)g->n * (double)g->k;
    return products <= 64 * 64 * 64 ||
           (!tb_gemm_has_amx() && (g->ta || products <= 1 << 27));
}

void tb_gemm_bf16(tb_ctx *ctx, const tb_gemm_args *g)
{
    if (!runs_in_hardware(ctx))
        tb_gemm_bf16_emulated(ctx, g);
    else if (ours_is_faster(g) || !tb_gemm_bf16_dnnl(ctx, g))
        tb_gemm_bf16_own(ctx, g);
}
