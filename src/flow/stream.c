/* SPDX-License-Identifier: MIT */
/* What single tokens do: the shortest and the longest gradient of a token, how
 * far a sublayer turns each token. Pieces are cut by size alone. */
#include "flow/walk.h"

enum { GRAIN = 16384 };

/* --- gradients, token by token ------------------------------------------- */

typedef struct range {
    double low, high;
} range;

typedef struct token_sweep {
    const tb_kern *k;
    size_t n, d, streams, pieces; /* n tokens */
    const char *x;
    range out[TB_CHUNKS_MAX];
} token_sweep;

/* All streams of token t together. */
static double token_length(const token_sweep *w, size_t t)
{
    size_t one = tb_dtype_size(w->k->dtype);
    double scale = 0, square = 0;
    if (w->streams == 1)
        return w->k->norm2(w->d, w->x + t * w->d * one);
    for (size_t s = 0; s < w->streams; s++) {
        double l = w->k->norm2(w->d, w->x + (s * w->n + t) * w->d * one);
        if (l > scale) {
            square = 1 + square * (scale / l) * (scale / l);
            scale = l;
        } else if (scale > 0) {
            square += (l / scale) * (l / scale);
        }
    }
    return scale * tb_sqrt(square);
}

static void token_piece(void *arg, size_t piece)
{
    token_sweep *w = arg;
    size_t t = tb_chunk_at(w->n, w->pieces, piece);
    size_t end = tb_chunk_at(w->n, w->pieces, piece + 1);
    double first = token_length(w, t);
    range r = {first, first};
    for (t++; t < end; t++) {
        double l = token_length(w, t);
        r.low = l < r.low || l != l ? l : r.low;
        r.high = l > r.high || l != l ? l : r.high;
    }
    w->out[piece] = r;
}

void tb_flow_tokens(const tb_ctx *ctx, const tb_kern *k, size_t tokens,
                    size_t d, size_t streams, const void *x, double *low,
                    double *high)
{
    token_sweep w = {.k = k, .n = tokens, .d = d, .streams = streams, .x = x};
    w.pieces = tb_chunks(tokens, GRAIN / d + 1);
    tb_parallel(ctx, w.pieces, token_piece, &w);
    *low = w.out[0].low;
    *high = w.out[0].high;
    for (size_t i = 1; i < w.pieces; i++) {
        const range *r = &w.out[i];
        *low = r->low < *low || r->low != r->low ? r->low : *low;
        *high = r->high > *high || r->high != r->high ? r->high : *high;
    }
}

/* --- how far a token turns ----------------------------------------------- */

/* asin of 0 <= h <= 1/sqrt(2), where Newton's steps double the digits. */
static double asin_of(double h)
{
    double a = h + h * h * h / 6;
    for (int i = 0; i < 4; i++)
        a -= (tb_sin(a) - h) / tb_cos(a);
    return a;
}

double tb_flow_angle(double cos)
{
    static const double quarter = 1.5707963267948966;
    double c = cos < -1 ? -1 : cos > 1 ? 1 : cos;
    double s = tb_sqrt((1 - c) / 2), t = tb_sqrt((1 + c) / 2);
    double half = s <= t ? asin_of(s) : quarter - asin_of(t);
    return half / quarter;
}

typedef struct stream_sweep {
    const tb_kern *k;
    size_t tokens, d, pieces;
    const char *before, *x; /* before: NULL at the stem */
    double turned[TB_CHUNKS_MAX], square[TB_CHUNKS_MAX];
} stream_sweep;

static void stream_piece(void *arg, size_t piece)
{
    stream_sweep *w = arg;
    size_t row = w->d * tb_dtype_size(w->k->dtype);
    size_t t = tb_chunk_at(w->tokens, w->pieces, piece);
    size_t end = tb_chunk_at(w->tokens, w->pieces, piece + 1);
    double turned = 0, square = 0;
    for (; t < end; t++) {
        const char *a = w->before ? w->before + t * row : NULL;
        const char *b = w->x + t * row;
        double lb = w->k->norm2(w->d, b);
        double la = a ? w->k->norm2(w->d, a) : 0;
        square += lb * lb;
        if (la > 0 && lb > 0)
            turned += tb_flow_angle(w->k->dot(w->d, a, b) / la / lb);
    }
    w->turned[piece] = turned;
    w->square[piece] = square;
}

/* --- a row --------------------------------------------------------------- */

/* Standard deviation over the first token of every row of T. */
static double first_tokens(const tb_walk *w, const void *x)
{
    size_t d = w->m->sizes.s.width, T = w->m->sizes.s.context;
    size_t one = tb_dtype_size(w->m->dtype), rows = w->nx / (d * T);
    double sum = 0, square = 0, n = (double)(rows * d);
    for (size_t r = 0; r < rows; r++)
        sum += w->k->sum(d, (const char *)x + r * T * d * one);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < d; i++) {
            size_t at = r * T * d + i;
            double v = w->m->dtype == TB_F64 ? ((const double *)x)[at]
                                             : (double)((const float *)x)[at];
            square += (v - sum / n) * (v - sum / n);
        }
    return tb_sqrt(square / n);
}

tb_status tb_walk_stream(tb_walk *w, const void *before, const void *x,
                         tb_flow_row *row)
{
    size_t d = w->m->sizes.s.width, at;
    stream_sweep s = {
        .k = w->k, .tokens = w->nx / d, .d = d, .before = before, .x = x};
    double turned = 0, square = 0;
    s.pieces = tb_chunks(s.tokens, GRAIN / d + 1);
    tb_parallel(w->ctx, s.pieces, stream_piece, &s);
    for (size_t i = 0; i < s.pieces; i++) {
        turned += s.turned[i];
        square += s.square[i];
    }
    row->angle = turned / (double)s.tokens;
    row->norm_x = tb_sqrt(square / (double)s.tokens);
    row->std_first = first_tokens(w, x);
    TB_TRY(tb_flow_outliers(w->ctx, w->m->dtype, w->nx, x, row->top_x, &at,
                            &row->median_x));
    row->top_token = at / d + 1;
    row->top_channel = at % d + 1;
    return TB_OK;
}
