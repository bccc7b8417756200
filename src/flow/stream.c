/* SPDX-License-Identifier: MIT */
/* What single tokens and single numbers of a vector do: the shortest and the
 * longest gradient of a token, outliers of the stream, how far a sublayer turns
 * each token. Pieces are cut by size alone. */
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

/* --- outliers ------------------------------------------------------------ */

static double magnitude(tb_dtype t, const void *x, size_t i)
{
    return tb_fabs(t == TB_F64 ? ((const double *)x)[i]
                               : (double)((const float *)x)[i]);
}

/* The three largest magnitudes; what is not finite is the verdict's. */
void tb_flow_top(tb_dtype t, size_t n, const void *x, double top[3], size_t *at)
{
    top[0] = top[1] = top[2] = 0;
    *at = 0;
    for (size_t i = 0; i < n; i++) {
        double v = magnitude(t, x, i);
        if (!(v > top[2]) || !tb_isfinite(v))
            continue;
        if (v > top[0])
            *at = i;
        top[2] = v > top[1] ? top[1] : v;
        if (v > top[1]) {
            top[1] = v > top[0] ? top[0] : v;
            top[0] = v > top[0] ? v : top[0];
        }
    }
}

static uint64_t key_of(tb_dtype t, const void *x, size_t i)
{
    double v = magnitude(t, x, i);
    uint64_t key;
    memcpy(&key, &v, sizeof key);
    return key; /* magnitudes order like their bits */
}

/* The one in the middle (of an even number the upper), 12 bits at a time. */
tb_status tb_flow_middle(tb_ctx *ctx, tb_dtype t, size_t n, const void *x,
                         double *out)
{
    enum { BITS = 12, WAYS = 1 << BITS, FLOAT_END = 16 };
    int end = t == TB_F64 ? -BITS : FLOAT_END; /* a float's other bits are 0 */
    size_t *count = tb_alloc(ctx, WAYS, sizeof *count), below = n / 2;
    uint64_t found = 0, mask = 0;
    if (!count)
        return TB_ERR_MEMORY;
    for (int shift = 52; shift > end; shift -= BITS) {
        int by = shift < 0 ? 0 : shift, bits = shift < 0 ? BITS + shift : BITS;
        uint64_t way = ((uint64_t)1 << bits) - 1;
        memset(count, 0, WAYS * sizeof *count);
        for (size_t i = 0; i < n; i++) {
            uint64_t key = key_of(t, x, i);
            count[key >> by & way] += (key & mask) == found;
        }
        uint64_t w = 0;
        for (; below >= count[w]; w++)
            below -= count[w];
        found |= w << by;
        mask |= way << by;
    }
    memcpy(out, &found, sizeof found);
    tb_free(ctx, count);
    return TB_OK;
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
    tb_flow_top(w->m->dtype, w->nx, x, row->top_x, &at);
    row->top_token = at / d + 1;
    row->top_channel = at % d + 1;
    return tb_flow_middle(w->ctx, w->m->dtype, w->nx, x, &row->median_x);
}
