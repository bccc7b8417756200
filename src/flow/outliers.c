/* SPDX-License-Identifier: MIT */
/* The largest numbers of a vector and the one in the middle. A magnitude is
 * looked at as a key: its bits without the sign order like it. Pieces are cut
 * by size alone. */
#include "flow/walk.h"

enum {
    GRAIN = 16384,
    BITS = 11, /* a digit of a key; the first is the exponent of a double */
    WAYS = 1 << BITS,
    FIRST = 63 - BITS,
    APART = 4,
    LIST = 256
};

/** What one piece found; its keys are fewer than 2^32. */
typedef struct found {
    uint32_t count[WAYS]; /* keys by their first digit */
    uint64_t top[3];      /* finite ones, falling */
    size_t at, from;      /* of the first; of the piece among those kept */
} found;

typedef struct sweep {
    tb_dtype t;
    size_t n, pieces;
    const void *x;
    found *out;
    uint64_t digit, *kept; /* keys with this first digit, piece by piece */
} sweep;

/* A float's bits stand above 32 zeros. */
static inline uint64_t key_at(tb_dtype t, const void *x, size_t i)
{
    uint64_t wide;
    uint32_t narrow;
    if (t == TB_F64) {
        memcpy(&wide, (const double *)x + i, sizeof wide);
        return wide << 1 >> 1;
    }
    memcpy(&narrow, (const float *)x + i, sizeof narrow);
    return (uint64_t)narrow << 33 >> 1;
}

static double value_of(tb_dtype t, uint64_t key)
{
    double d;
    float f;
    uint32_t narrow = (uint32_t)(key >> 32);
    memcpy(&d, &key, sizeof d);
    memcpy(&f, &narrow, sizeof f);
    return t == TB_F64 ? d : (double)f;
}

/* --- pieces -------------------------------------------------------------- */

/* `key` is above the last of the three. */
static void rank(found *f, uint64_t key, size_t at)
{
    int i = 2;
    if (key > f->top[0])
        f->at = at;
    for (; i > 0 && key > f->top[i - 1]; i--)
        f->top[i] = f->top[i - 1];
    f->top[i] = key;
}

/* Neighbours are counted apart: a counter that was just stored is not there to
 * be loaded yet. */
static void count_piece(void *arg, size_t piece)
{
    const sweep *w = arg;
    found *f = &w->out[piece];
    uint32_t count[WAYS][APART] = {{0}};
    size_t i = tb_chunk_at(w->n, w->pieces, piece);
    size_t end = tb_chunk_at(w->n, w->pieces, piece + 1);
    const uint64_t infinite = (uint64_t)(w->t == TB_F64 ? 0x7ff0 : 0x7f80)
                              << 48;
    uint64_t third = 0;
    while (i < end)
        for (int j = 0; j < APART && i < end; i++, j++) {
            uint64_t key = key_at(w->t, w->x, i);
            count[key >> FIRST][j]++;
            if (key <= third || key >= infinite)
                continue;
            rank(f, key, i);
            third = f->top[2];
        }
    for (size_t d = 0; d < WAYS; d++)
        for (int j = 0; j < APART; j++)
            f->count[d] += count[d][j];
}

/* By way of a short list, where one too many does no harm: no branch could
 * foresee which are kept. */
static void keep_piece(void *arg, size_t piece)
{
    const sweep *w = arg;
    size_t i = tb_chunk_at(w->n, w->pieces, piece);
    size_t end = tb_chunk_at(w->n, w->pieces, piece + 1);
    uint64_t *to = w->kept + w->out[piece].from, list[LIST];
    while (i < end) {
        size_t stop = end - i < LIST ? end : i + LIST, n = 0;
        for (; i < stop; i++) {
            list[n] = key_at(w->t, w->x, i);
            n += list[n] >> FIRST == w->digit;
        }
        memcpy(to, list, n * sizeof *to);
        to += n;
    }
}

/* --- all of them --------------------------------------------------------- */

static void find_top(const sweep *w, double top[3], size_t *at)
{
    found all = w->out[0];
    for (size_t p = 1; p < w->pieces; p++)
        for (int i = 0; i < 3; i++)
            if (w->out[p].top[i] > all.top[2])
                rank(&all, w->out[p].top[i], w->out[p].at);
    for (int i = 0; i < 3; i++)
        top[i] = value_of(w->t, all.top[i]);
    *at = all.at;
}

/* The digit of number *below, which then counts from the first with it. */
static uint64_t digit_of(const size_t *count, size_t *below)
{
    uint64_t digit = 0;
    for (; *below >= count[digit]; digit++)
        *below -= count[digit];
    return digit;
}

/* How many keys share the first digit of number *below. */
static size_t choose(sweep *w, size_t *below)
{
    size_t all[WAYS] = {0}, n = 0;
    for (size_t p = 0; p < w->pieces; p++)
        for (size_t i = 0; i < WAYS; i++)
            all[i] += w->out[p].count[i];
    w->digit = digit_of(all, below);
    for (size_t p = 0; p < w->pieces; p++) {
        w->out[p].from = n;
        n += w->out[p].count[w->digit];
    }
    return n;
}

/* Number `below` of keys that agree above bit FIRST. */
static uint64_t number(uint64_t *key, size_t n, size_t below)
{
    for (int shift = FIRST; n > 1 && shift > 0;) {
        size_t count[WAYS] = {0}, left = 0;
        shift = shift > BITS ? shift - BITS : 0;
        for (size_t i = 0; i < n; i++)
            count[key[i] >> shift & (WAYS - 1)]++;
        uint64_t digit = digit_of(count, &below);
        for (size_t i = 0; i < n; i++)
            if ((key[i] >> shift & (WAYS - 1)) == digit)
                key[left++] = key[i];
        n = left;
    }
    return key[0];
}

tb_status tb_flow_outliers(tb_ctx *ctx, tb_dtype t, size_t n, const void *x,
                           double top[3], size_t *at, double *middle)
{
    sweep w = {.t = t, .n = n, .x = x, .pieces = tb_chunks(n, GRAIN)};
    size_t below = n / 2;
    w.out = tb_alloc(ctx, w.pieces, sizeof *w.out);
    if (!w.out)
        return TB_ERR_MEMORY;
    tb_parallel(ctx, w.pieces, count_piece, &w);
    find_top(&w, top, at);
    size_t kept = choose(&w, &below);
    w.kept = tb_alloc(ctx, kept, sizeof *w.kept);
    if (w.kept) {
        tb_parallel(ctx, w.pieces, keep_piece, &w);
        *middle = value_of(t, number(w.kept, kept, below));
    }
    tb_free(ctx, w.kept);
    tb_free(ctx, w.out);
    return w.kept ? TB_OK : TB_ERR_MEMORY;
}
