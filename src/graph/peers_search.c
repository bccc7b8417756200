/* SPDX-License-Identifier: MIT */
/* The setting that comes nearest to a block: from a few known placements, one
 * change of one key at a time, by how far the graphs are from each other. */
#include "graph/peers.h"

tb_status tb_peer_block(tb_ctx *ctx, const tb_peer *p, const tb_peer_set *set,
                        tb_block **out)
{
    tb_buf text;
    tb_buf_init(&text, ctx);
    tb_status s = tb_peer_text_of(ctx, p, set, &text);
    if (s == TB_OK)
        s = tb_block_parse(ctx, NULL, tb_buf_str(&text), text.len,
                           TB_PARSE_BLOCK, out);
    tb_buf_clear(&text);
    return s;
}

tb_settings tb_peer_settings(const tb_sizes *sizes)
{
    tb_settings s = sizes->s;
    s.norm = NULL;
    s.eps = -1;
    s.init = NULL;
    s.positions = -1;
    return s;
}

/* --- the search ----------------------------------------------------------- */

enum { FAR = 1 << 28, NUMBERS = 8, LONGEST = 4 };

typedef struct search {
    tb_ctx *ctx;
    tb_arena *arena;
    const tb_peer *p;
    const tb_sizes *sizes;
    const tb_peer_stacks *want;
    const char *numbers[NUMBERS];
    int nnumbers;
    tb_peer_set set, step, best; /* now, one change further, found so far */
    int far[3], step_far[3];     /* block, stem, final */
    int best_far;
} search;

static void measure(const search *w, const tb_peer_stacks *got, unsigned parts,
                    int far[3])
{
    for (int i = 0; i < 3; i++)
        far[i] = parts & (1u << i) ? 0 : far[i];
    for (int i = 0; i < w->want->n; i++) {
        const tb_peer_stack *a = &got->at[i], *b = &w->want->at[i];
        if (parts & TB_PEER_BLOCK)
            far[0] += tb_peer_layers_far(a, b);
        if (parts & TB_PEER_STEM)
            far[1] += tb_peer_far(&a->stem, &b->stem);
        if (parts & TB_PEER_FINAL)
            far[2] += tb_peer_far(&a->final, &b->final);
    }
}

static tb_status try_block(search *w, const tb_block *b, unsigned parts,
                           int far[3])
{
    tb_settings settings = tb_peer_settings(w->sizes);
    tb_sizes sizes;
    tb_peer_stacks got;
    tb_arena a;
    tb_arena_init(&a, w->ctx);
    tb_status s = tb_sizes_resolve(w->ctx, b, &settings, &sizes);
    if (s == TB_OK)
        s = tb_peer_stacks_of(w->ctx, &a, b, &sizes, parts, &got);
    if (s == TB_OK)
        measure(w, &got, parts, far);
    tb_arena_clear(&a);
    return s;
}

/* How far w->set is, where its `parts` have changed; what the system refuses
 * or a block cannot say is as far as can be. */
static tb_status try_set(search *w, unsigned parts, int far[3])
{
    tb_block *b;
    tb_status s = tb_peer_block(w->ctx, w->p, &w->set, &b);
    if (s == TB_OK) {
        s = try_block(w, b, parts, far);
        tb_block_destroy(w->ctx, b);
    }
    if (s == TB_ERR_MEMORY || s == TB_OK)
        return s;
    tb_error_clear(w->ctx);
    far[0] = far[1] = far[2] = FAR;
    return TB_OK;
}

static int total(const int far[3])
{
    return far[0] + far[1] + far[2];
}

/* One value of one key: the next step if it comes nearer than the others. */
static tb_status try_value(search *w, int key, const char *value)
{
    const char *before = w->set.value[key];
    int far[3] = {w->far[0], w->far[1], w->far[2]};
    if (!value)
        return TB_ERR_MEMORY;
    w->set.value[key] = value;
    tb_status s = try_set(w, w->p->keys[key].parts, far);
    if (s == TB_OK && total(far) < total(w->step_far)) {
        memcpy(w->step_far, far, sizeof far);
        w->step = w->set;
    }
    w->set.value[key] = before;
    return s;
}

/* The dropout that a sublayer's output has anyway: before it is added. */
static const char *with_drop(search *w, const tb_peer_key *k, const char *word)
{
    size_t at = strcspn(word, "ahz");
    if (!strchr(k->start, 'd'))
        return tb_arena_strdup(w->arena, word);
    return tb_arena_printf(w->arena, "%.*sd%s", (int)at, word, word + at);
}

/* Every word of different letters, at most LONGEST long. */
static tb_status try_words(search *w, int key, char *word, size_t n)
{
    const tb_peer_key *k = &w->p->keys[key];
    TB_TRY(try_value(w, key, with_drop(w, k, word)));
    for (const char *c = k->words; *c && n < LONGEST; c++) {
        if (*c == 'd' || strchr(word, *c))
            continue;
        word[n] = *c;
        TB_TRY(try_words(w, key, word, n + 1));
        word[n] = 0;
    }
    return TB_OK;
}

static tb_status try_listed(search *w, int key)
{
    const char *words = w->p->keys[key].words;
    for (size_t n; *words; words += n + (words[n] == '|')) {
        n = strcspn(words, "|");
        TB_TRY(try_value(w, key, tb_arena_strndup(w->arena, words, n)));
    }
    return TB_OK;
}

static tb_status try_key(search *w, int key)
{
    const tb_peer_key *k = &w->p->keys[key];
    char word[LONGEST + 2] = {0};
    if (k->kind == TB_PEER_LETTERS)
        return try_words(w, key, word, 0);
    if (k->kind == TB_PEER_WORD)
        return try_listed(w, key);
    if (k->kind == TB_PEER_FLAG)
        return try_value(
            w, key, tb_streq(w->set.value[key], "true") ? "false" : "true");
    for (int i = 0; i < w->nnumbers; i++)
        TB_TRY(try_value(w, key, w->numbers[i]));
    return try_value(w, key, k->start);
}

/* From one start, each time the change that comes nearest, until none does. */
static tb_status descend(search *w, const char *start)
{
    int before = 4 * FAR;
    TB_TRY(tb_peer_parse(w->ctx, w->arena, w->p, start, &w->set));
    TB_TRY(try_set(w, TB_PEER_ALL, w->far));
    while (total(w->far) > 0 && total(w->far) < before) {
        before = total(w->far);
        w->step = w->set;
        memcpy(w->step_far, w->far, sizeof w->far);
        for (int key = 0; w->p->keys[key].name; key++)
            if (w->p->keys[key].parts && total(w->step_far) > 0)
                TB_TRY(try_key(w, key));
        w->set = w->step;
        memcpy(w->far, w->step_far, sizeof w->far);
    }
    if (total(w->far) < w->best_far) {
        w->best_far = total(w->far);
        w->best = w->set;
    }
    return TB_OK;
}

/* The start that comes nearest of those not yet tried, -1: none is left. */
static tb_status nearest_start(search *w, unsigned tried, int *best)
{
    int least = 4 * FAR;
    *best = -1;
    for (int i = 0; w->p->starts[i]; i++) {
        if (tried & 1u << i)
            continue;
        TB_TRY(tb_peer_parse(w->ctx, w->arena, w->p, w->p->starts[i], &w->set));
        TB_TRY(try_set(w, TB_PEER_ALL, w->far));
        if (total(w->far) < least) {
            least = total(w->far);
            *best = i;
        }
    }
    return TB_OK;
}

/* From the two starts that come nearest. */
static tb_status find_best(search *w, const tb_block *b)
{
    double v[NUMBERS];
    unsigned tried = 0;
    TB_TRY(tb_peer_numbers(w->ctx, w->arena, b, w->sizes, v, NUMBERS,
                           &w->nnumbers));
    for (int i = 0; i < w->nnumbers; i++)
        w->numbers[i] = tb_arena_printf(w->arena, "%g", v[i]);
    w->best_far = 4 * FAR;
    for (int i = 0, start; i < 2 && w->best_far > 0; i++) {
        TB_TRY(nearest_start(w, tried, &start));
        tried |= 1u << start;
        TB_TRY(descend(w, w->p->starts[start]));
    }
    return TB_OK;
}

tb_status tb_peer_search(tb_ctx *ctx, tb_arena *a, const tb_peer *p,
                         const tb_block *b, const tb_sizes *sizes,
                         tb_peer_set *best, bool *exact)
{
    tb_peer_stacks want;
    search w = {.ctx = ctx, .arena = a, .p = p, .sizes = sizes, .want = &want};
    TB_TRY(tb_peer_stacks_of(ctx, a, b, sizes, TB_PEER_ALL, &want));
    TB_TRY(find_best(&w, b));
    *best = w.best;
    *exact = w.best_far == 0;
    return TB_OK;
}
