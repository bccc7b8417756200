/* SPDX-License-Identifier: MIT */
/* The setting of another system for a block, and the block of a setting. */
#include "graph/peers.h"

const tb_peer *const tb_peers[] = {
    &tb_peer_marian,       &tb_peer_tensor2tensor,  &tb_peer_fairseq,
    &tb_peer_fairseq_both, &tb_peer_x_transformers, NULL};

static bool is_first(size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (tb_streq(tb_peers[i]->name, tb_peers[row]->name))
            return false;
    return true;
}

const char *tb_peer_name(size_t i)
{
    for (size_t n = 0; tb_peers[n]; n++)
        if (is_first(n) && i-- == 0)
            return tb_peers[n]->name;
    return NULL;
}

static tb_status check_name(tb_ctx *ctx, const char *name)
{
    const char *names[16];
    size_t n = 0;
    for (; tb_peer_name(n); n++) {
        names[n] = tb_peer_name(n);
        if (tb_streq(name, names[n]))
            return TB_OK;
    }
    const char *near = tb_nearest(name, names, n);
    return TB_FAIL(ctx, TB_ERR_ARG, "system: got %.60s, wanted %s", name,
                   near ? near
                        : "marian, tensor2tensor, fairseq or "
                          "x-transformers");
}

static const char *const stack_names[] = {"decoder", "encoder",
                                          "encoder-decoder"};

static tb_status find_peer(tb_ctx *ctx, const char *name, int stack,
                           const tb_peer **out)
{
    TB_TRY(check_name(ctx, name));
    for (size_t i = 0; tb_peers[i]; i++)
        if (tb_streq(name, tb_peers[i]->name) &&
            (tb_peers[i]->stacks & 1u << stack)) {
            *out = tb_peers[i];
            return TB_OK;
        }
    return TB_FAIL(ctx, TB_ERR_INPUT,
                   "%s: got --stack %s, which its settings say by other names",
                   name, stack_names[stack]);
}

static tb_status own(tb_ctx *ctx, const tb_buf *b, char **out)
{
    TB_TRY(tb_buf_status(b));
    *out = tb_alloc(ctx, b->len + 1, 1);
    if (!*out)
        return TB_ERR_MEMORY;
    memcpy(*out, tb_buf_str(b), b->len);
    return TB_OK;
}

/* --- a setting as a block ------------------------------------------------- */

static tb_status check_block(tb_ctx *ctx, const tb_peer *p, const tb_block *b)
{
    tb_settings s0 = TB_SETTINGS_UNSET;
    tb_sizes sizes;
    tb_peer_stacks stacks;
    tb_arena a;
    while (!(p->stacks & 1u << s0.stack))
        s0.stack++;
    tb_arena_init(&a, ctx);
    tb_status s = tb_sizes_resolve(ctx, b, &s0, &sizes);
    if (s == TB_OK)
        s = tb_peer_stacks_of(ctx, &a, b, &sizes, TB_PEER_ALL, &stacks);
    tb_arena_clear(&a);
    return s;
}

/* By the row whose keys it has; if by none, what the first says. */
static tb_status parse_setting(tb_ctx *ctx, tb_arena *a, const char *peer,
                               const char *setting, const tb_peer **p,
                               tb_peer_set *set)
{
    const tb_peer *first = NULL;
    TB_TRY(check_name(ctx, peer));
    for (size_t i = 0; tb_peers[i]; i++) {
        if (!tb_streq(peer, tb_peers[i]->name))
            continue;
        first = first ? first : tb_peers[i];
        *p = tb_peers[i];
        tb_status s = tb_peer_parse(ctx, a, *p, setting, set);
        if (s == TB_OK || s == TB_ERR_MEMORY)
            return s;
        tb_error_clear(ctx);
    }
    *p = first;
    return tb_peer_parse(ctx, a, first, setting, set);
}

/* The setting as given stands above the text it means. */
static tb_status read_setting(tb_ctx *ctx, tb_arena *a, const char *peer,
                              const char *setting, tb_buf *out)
{
    const tb_peer *p = NULL;
    tb_peer_set set;
    tb_block *b;
    TB_TRY(parse_setting(ctx, a, peer, setting, &p, &set));
    tb_buf_printf(out, "# %s: ", p->name);
    tb_peer_print(p, &set, out);
    tb_buf_putc(out, '\n');
    TB_TRY(tb_peer_text_of(ctx, p, &set, out));
    TB_TRY(tb_peer_block(ctx, p, &set, &b));
    tb_status s = check_block(ctx, p, b);
    tb_block_destroy(ctx, b);
    return s;
}

tb_status tb_peer_read(tb_ctx *ctx, const char *peer, const char *setting,
                       char **text)
{
    tb_arena a;
    tb_buf out;
    *text = NULL;
    tb_arena_init(&a, ctx);
    tb_buf_init(&out, ctx);
    tb_status s = read_setting(ctx, &a, peer, setting, &out);
    if (s == TB_OK)
        s = own(ctx, &out, text);
    tb_buf_clear(&out);
    tb_arena_clear(&a);
    return s;
}

/* --- the answer ----------------------------------------------------------- */

enum { PHRASES = 64, REMARKS = 12 };

typedef struct answer {
    tb_peer_answer pub; /* first: the public pointer is this one */
    tb_arena arena;
    const char *here[PHRASES], *there[PHRASES], *remarks[REMARKS];
} answer;

static const char *keep(tb_arena *a, tb_buf *b, tb_status *s)
{
    const char *text = b->failed ? NULL : tb_arena_strdup(a, tb_buf_str(b));
    tb_buf_clear(b);
    if (!text)
        *s = TB_ERR_MEMORY;
    return text;
}

static tb_status write_answer(tb_ctx *ctx, answer *out, const tb_peer *p,
                              const tb_peer_set *best)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_peer_print(p, best, &b);
    tb_status s = TB_OK;
    out->pub.setting = keep(&out->arena, &b, &s);
    tb_buf_init(&b, ctx);
    tb_status written = tb_peer_text_of(ctx, p, best, &b);
    out->pub.text = keep(&out->arena, &b, &s);
    return s == TB_OK ? written : s;
}

static bool has(const tb_peer_phrase *list, size_t n, const tb_peer_phrase *p,
                bool any_name)
{
    for (size_t i = 0; i < n; i++)
        if (tb_streq(list[i].before, p->before) &&
            tb_streq(list[i].after, p->after) &&
            (tb_streq(list[i].name, p->name) || (any_name && p->name)))
            return true;
    return false;
}

/* What a phrase is about: its own sublayer, or all that it is said of. */
static const char *subject(answer *out, const tb_peer_phrase *list, size_t n,
                           size_t at)
{
    const char *name = list[at].name;
    for (size_t i = at + 1; i < n && name; i++)
        if (has(&list[at], 1, &list[i], true) && list[i].name)
            name =
                tb_arena_printf(&out->arena, "%s and %s", name, list[i].name);
    return name ? name : "";
}

/* Phrases that only `a` has, those of several sublayers in one. */
static tb_status only_in(answer *out, tb_peer_phrase *a, size_t na,
                         const tb_peer_phrase *b, size_t nb, const char **text,
                         size_t *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < na; i++)
        if (!has(b, nb, &a[i], false))
            a[kept++] = a[i];
    for (size_t i = 0; i < kept; i++) {
        if (has(a, i, &a[i], true))
            continue;
        text[*n] = tb_arena_printf(&out->arena, "%s%s%s", a[i].before,
                                   subject(out, a, kept, i), a[i].after);
        if (!text[(*n)++])
            return TB_ERR_MEMORY;
    }
    return TB_OK;
}

static tb_status say_differences(tb_ctx *ctx, answer *out, const tb_block *b,
                                 const tb_block *other,
                                 const tb_settings *settings,
                                 const tb_settings *theirs)
{
    tb_peer_phrase a[PHRASES], c[PHRASES], all[PHRASES];
    size_t na, nc;
    TB_TRY(tb_peer_say(ctx, &out->arena, b, settings, a, PHRASES, &na));
    TB_TRY(tb_peer_say(ctx, &out->arena, other, theirs, c, PHRASES, &nc));
    memcpy(all, a, sizeof all);
    TB_TRY(only_in(out, a, na, c, nc, out->here, &out->pub.nhere));
    TB_TRY(only_in(out, c, nc, all, na, out->there, &out->pub.nthere));
    if (!out->pub.nhere && !out->pub.nthere)
        out->here[out->pub.nhere++] = "the same parts are joined otherwise";
    return TB_OK;
}

static void remark(answer *out, const char *text)
{
    if (text && out->pub.nremarks < REMARKS)
        out->remarks[out->pub.nremarks++] = text;
}

static void say_eps(answer *out, const tb_peer *p, const tb_peer_look *here,
                    const tb_peer_look *there)
{
    static const char *const modes[] = {"inside", "inside",       "outside",
                                        "clamp",  "clamp_square", "dtype",
                                        "none"};
    tb_arena *a = &out->arena;
    if (there->eps == there->eps && here->eps != there->eps)
        remark(out,
               tb_arena_printf(a, "eps: %g here, %g there%s%s%s", here->eps,
                               there->eps, p->eps_note ? " (" : "",
                               p->eps_note ? p->eps_note : "",
                               p->eps_note ? ")" : ""));
    if (there->eps == there->eps && here->eps_mode != there->eps_mode)
        remark(out,
               tb_arena_printf(a, "eps_mode: %s here, %s there",
                               modes[here->eps_mode], modes[there->eps_mode]));
}

static bool is_among(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *w = words; *w; w += strcspn(w, "|"), w += *w == '|')
        if (!strncmp(w, word, n) && (w[n] == '|' || !w[n]))
            return true;
    return false;
}

static void say_remarks(answer *out, const tb_peer *p, const tb_peer_set *best,
                        const tb_block *b, const tb_peer_look *here,
                        const tb_peer_look *there)
{
    say_eps(out, p, here, there);
    if (here->activation && !is_among(p->activations, here->activation))
        remark(out,
               tb_arena_printf(&out->arena, "activation: %s here, %s there",
                               here->activation, p->activations));
    for (int i = 0; p->remark; i++) {
        const char *text = p->remark(here, best, i);
        if (!text)
            break;
        remark(out, text);
    }
    if (b->ninit && !(here->depth_init && there->depth_init))
        remark(out, "init: is not part of the setting");
}

static tb_status compare(tb_ctx *ctx, answer *out, const tb_peer *p,
                         tb_peer_set *best, const tb_sizes *sizes,
                         const tb_block *b, const tb_settings *settings)
{
    tb_settings theirs = tb_peer_settings(sizes);
    tb_peer_look here, there;
    tb_block *other;
    TB_TRY(tb_peer_look_at(ctx, b, settings, &here));
    p->finish(&out->arena, &here, best);
    TB_TRY(tb_peer_block(ctx, p, best, &other));
    tb_status s = tb_peer_look_at(ctx, other, &theirs, &there);
    if (s == TB_OK && !out->pub.exact)
        s = say_differences(ctx, out, b, other, settings, &theirs);
    if (s == TB_OK)
        say_remarks(out, p, best, b, &here, &there);
    tb_block_destroy(ctx, other);
    return s == TB_OK ? write_answer(ctx, out, p, best) : s;
}

static tb_status find(tb_ctx *ctx, answer *out, const tb_block *b,
                      const tb_settings *settings, const char *peer)
{
    const tb_peer *p = NULL;
    tb_sizes sizes;
    tb_peer_set best;
    TB_TRY(tb_sizes_resolve(ctx, b, settings, &sizes));
    TB_TRY(find_peer(ctx, peer, sizes.s.stack, &p));
    TB_TRY(
        tb_peer_search(ctx, &out->arena, p, b, &sizes, &best, &out->pub.exact));
    return compare(ctx, out, p, &best, &sizes, b, settings);
}

tb_status tb_peer_find(tb_ctx *ctx, const tb_block *block,
                       const tb_settings *settings, const char *peer,
                       tb_peer_answer **out)
{
    *out = NULL;
    TB_TRY(check_name(ctx, peer));
    answer *a = tb_alloc(ctx, 1, sizeof *a);
    if (!a)
        return TB_ERR_MEMORY;
    tb_arena_init(&a->arena, ctx);
    a->pub.here = a->here;
    a->pub.there = a->there;
    a->pub.remarks = a->remarks;
    tb_status s = find(ctx, a, block, settings, peer);
    if (s == TB_OK)
        *out = &a->pub;
    else
        tb_peer_free(ctx, &a->pub);
    return s;
}

void tb_peer_free(tb_ctx *ctx, tb_peer_answer *pub)
{
    answer *a = (answer *)pub;
    if (!a)
        return;
    tb_arena_clear(&a->arena);
    tb_free(ctx, a);
}
