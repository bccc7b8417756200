/* SPDX-License-Identifier: MIT */
/* Settings of other systems: what is exported reads back as the same graph,
 * every string of letters is a block or an error, and what differs is said. */
#include "graph/peers.h"

#include "graph_help.h"

static const tb_settings unset = TB_SETTINGS_UNSET;

/* --- graphs --------------------------------------------------------------- */

/* All dumps of a stack with one eps, so that only graphs differ. */
static void dump_all(tb_test *T, const char *what, tb_buf *out)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.eps = 1e-5;
    const gr_part parts[] = {GR_STEM, GR_LAYER, GR_TAIL};
    for (size_t i = 0; i < TB_LEN(parts); i++) {
        gr_case c;
        if (gr_open(T->ctx, &c, what, &s, parts[i], 1) != TB_OK) {
            tb_test_fail(T, __FILE__, __LINE__, "%s: %s", what,
                         tb_error(T->ctx));
            return;
        }
        tb_graph_dump(c.g, out);
        gr_close(T->ctx, &c);
    }
}

static void same_dumps(tb_test *T, const char *a, const char *b)
{
    tb_buf x, y;
    tb_buf_init(&x, T->ctx);
    tb_buf_init(&y, T->ctx);
    dump_all(T, a, &x);
    dump_all(T, b, &y);
    if (!tb_streq(tb_buf_str(&x), tb_buf_str(&y)))
        tb_test_fail(T, __FILE__, __LINE__, "%s\nand\n%s\ngive\n%s\nand\n%s", a,
                     b, tb_buf_str(&x), tb_buf_str(&y));
    tb_buf_clear(&x);
    tb_buf_clear(&y);
}

/* The placements of the papers, there and back: dumps are equal to the letter.
 */
TB_TEST(peers_give_equal_dumps)
{
    static const char *const rows[][2] = {
        {"marian", "block: x = norm(x + F(x))"},
        {"marian", "block: x = x + F(norm(x))\nfinal: x = norm(x)"},
        {"marian", "block: x = x + norm(F(x))"},
        {"marian", "block: x = x + norm(F(norm(x)))\nfinal: x = norm(x)"},
        {"marian", "block: x = norm(x + F(norm(x)))"},
        {"marian", "stem:\n e = x\nblock:\n x = x + F(norm(x))\n"
                   "final:\n x = norm(e + x)"},
        {"marian", "highway"},
        {"tensor2tensor", "block: x = norm(x + F(x))"},
        {"tensor2tensor", "block: x = x + F(norm(x))\nfinal: x = norm(x)"},
        {"tensor2tensor", "block: x = x + scalar(0)*F(x)"},
        {"fairseq", "block: x = norm(x + F(x))"},
        {"fairseq", "block: x = x + F(norm(x))"},
        {"fairseq",
         "attn(x) = headscale(o(mha(q(x), k(x), v(x))), vector(1, size=h))\n"
         "ffn(x) = down(norm(gelu(up(x))))\n"
         "block:\n x = x + norm(attn(norm(x)))\n x = x + ffn(norm(x))\n"
         "final:\n x = norm(x)"},
        {"x-transformers", "block: x = x + F(norm(x))\nfinal: x = norm(x)"},
        {"x-transformers", "block: x = norm(x + F(norm(x)))"},
        {"x-transformers", "value-residual"},
        {"x-transformers", "block: x = x + vector(1e-4)*F(norm(x))\n"
                           "final: x = norm(x)"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_block *b;
        tb_peer_answer *a;
        TB_OKAY(T, tb_block_load(T->ctx, rows[i][1], &b));
        TB_OKAY(T, tb_peer_find(T->ctx, b, &unset, rows[i][0], &a));
        if (a->exact)
            same_dumps(T, rows[i][1], a->text);
        else
            tb_test_fail(T, __FILE__, __LINE__, "%s: %s: %s", rows[i][0],
                         rows[i][1], a->nhere ? a->here[0] : a->there[0]);
        tb_peer_free(T->ctx, a);
        tb_block_destroy(T->ctx, b);
    }
}

/* --- every built-in block ------------------------------------------------- */

/* What is found for the text of a setting is that setting. */
static void check_back(tb_test *T, const char *peer, const tb_peer_answer *a)
{
    char *text;
    tb_block *b;
    tb_peer_answer *again;
    if (tb_peer_read(T->ctx, peer, a->setting, &text) != TB_OK) {
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s: %s", peer, a->setting,
                     tb_error(T->ctx));
        return;
    }
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    TB_OKAY(T, tb_peer_find(T->ctx, b, &unset, peer, &again));
    if (!again->exact || !tb_streq(again->setting, a->setting))
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s comes back as %s", peer,
                     a->setting, again->setting);
    tb_peer_free(T->ctx, again);
    tb_block_destroy(T->ctx, b);
    tb_text_free(T->ctx, text);
}

static void check_answer(tb_test *T, const char *what, const char *peer,
                         const tb_peer_answer *a)
{
    if (!*a->text || (a->exact && (a->nhere || a->nthere)) ||
        (!a->exact && !a->nhere && !a->nthere))
        tb_test_fail(T, __FILE__, __LINE__,
                     "%s: %s: exact %d with %zu + %zu "
                     "differences",
                     what, peer, a->exact, a->nhere, a->nthere);
    if (a->exact)
        check_back(T, peer, a);
}

TB_TEST(peers_of_every_builtin)
{
    int exact = 0, n = 0;
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_block *b;
        TB_OKAY(T, tb_block_load(T->ctx, tb_builtin_name(i), &b));
        for (size_t p = 0; tb_peer_name(p); p++) {
            tb_peer_answer *a;
            TB_OKAY(T, tb_peer_find(T->ctx, b, &unset, tb_peer_name(p), &a));
            check_answer(T, tb_builtin_name(i), tb_peer_name(p), a);
            exact += a->exact;
            n++;
            tb_peer_free(T->ctx, a);
        }
        tb_block_destroy(T->ctx, b);
    }
    TB_CHECK(T, exact > 30 && exact < n);
}

/* --- letters -------------------------------------------------------------- */

typedef struct letters {
    const char *peer, *key, *alphabet;
    const char *legal, *once; /* of which each may stand once */
    int good, bad;
} letters;

static bool is_legal(const letters *k, const char *word)
{
    for (const char *c = word; *c; c++)
        if (!strchr(k->legal, *c) || (strchr(k->once, *c) && strchr(c + 1, *c)))
            return false;
    return true;
}

static bool has_twice(const char *word)
{
    for (const char *c = word; *c; c++)
        if (strchr(c + 1, *c))
            return true;
    return false;
}

/* The text of a word without repeats is found again. */
static void find_word(tb_test *T, const char *peer, const char *setting,
                      const char *text)
{
    tb_block *b;
    tb_peer_answer *a;
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    TB_OKAY(T, tb_peer_find(T->ctx, b, &unset, peer, &a));
    if (a->exact)
        check_back(T, peer, a);
    else
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s is not found again: %s",
                     peer, setting, a->nhere ? a->here[0] : a->there[0]);
    tb_peer_free(T->ctx, a);
    tb_block_destroy(T->ctx, b);
}

/* A legal word has a text whose graphs build; searches are few, they take
 * their time. */
static void try_word(tb_test *T, letters *k, const char *word)
{
    char setting[64], *text;
    bool legal = is_legal(k, word);
    tb_format(setting, sizeof setting, "%s=\"%s\"", k->key, word);
    tb_status s = tb_peer_read(T->ctx, k->peer, setting, &text);
    if ((s == TB_OK) != legal || (s != TB_OK && s != TB_ERR_INPUT) ||
        (s != TB_OK && !strstr(tb_error(T->ctx), k->peer)))
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s: %d, %s", k->peer, setting,
                     (int)s, s == TB_OK ? "" : tb_error(T->ctx));
    if (s == TB_OK && k->good++ % 19 == 0 && !has_twice(word))
        find_word(T, k->peer, setting, text);
    k->bad += s != TB_OK;
    tb_text_free(T->ctx, text);
}

static void try_all(tb_test *T, letters *k, char *word, size_t n)
{
    try_word(T, k, word);
    for (const char *c = k->alphabet; *c && n < 4; c++) {
        word[n] = *c;
        try_all(T, k, word, n + 1);
        word[n] = 0;
    }
}

TB_TEST(peers_every_word)
{
    letters keys[] = {
        {"marian", "pre", "adhnrz", "dnr", "nr", 0, 0},
        {"marian", "post", "adhnrz", "dahnr", "nrh", 0, 0},
        {"marian", "emb", "adhnrz", "dnr", "nr", 0, 0},
        {"marian", "top", "adhnrz", "dahnr", "nrh", 0, 0},
        {"tensor2tensor", "pre", "adnzh", "nd", "", 0, 0},
        {"tensor2tensor", "post", "adnzh", "andz", "", 0, 0},
    };
    for (size_t i = 0; i < TB_LEN(keys); i++) {
        char word[8] = {0};
        try_all(T, &keys[i], word, 0);
        TB_CHECK(T, keys[i].good > 15 && keys[i].bad > 100);
    }
}

/* --- what is said --------------------------------------------------------- */

static void check_said(tb_test *T, const char *peer, const char *text,
                       const char *here, const char *there)
{
    tb_block *b;
    tb_peer_answer *a;
    TB_OKAY(T, tb_block_load(T->ctx, text, &b));
    TB_OKAY(T, tb_peer_find(T->ctx, b, &unset, peer, &a));
    TB_CHECK(T, !a->exact);
    TB_STR(T, a->nhere ? a->here[0] : "", here);
    TB_STR(T, a->nthere ? a->there[0] : "", there);
    tb_peer_free(T->ctx, a);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(peers_say_what_differs)
{
    check_said(T, "marian", "block: x = 2*x + F(norm(x))\nfinal: x = norm(x)",
               "the skip around attn and ffn is multiplied by 2",
               "the lane of a block is clean");
    check_said(T, "tensor2tensor", "block: x = x + F(norm(x))", "",
               "behind the last block stands layernorm");
    check_said(T, "fairseq",
               "block[l == 1]: x = norm(x + F(x))\nblock: x = x + F(norm(x))",
               "the blocks are of 2 kinds", "");
    check_said(T, "x-transformers",
               "block:\n x = x + attn(norm(x))\n x = x + 0.5*ffn(norm(x))\n"
               "final: x = norm(x)",
               "the branch of ffn is multiplied by 0.5", "");
    check_said(T, "x-transformers", /* the like in other blocks */
               "attn(u) = o(mha(q(u), k(u), 0.5*v1 + 0.5*y))\n"
               "stem: y = x\n"
               "block[l <= 2]:\n w = linear(d, d)\n n = norm(x)\n v1 = w(n)\n"
               " y = v1\n x = x + attn(n)\n x = x + ffn(norm(x))\n"
               "block:\n w = linear(d, d)\n n = norm(x)\n v1 = w(n)\n"
               " x = x + attn(n)\n x = x + ffn(norm(x))\n"
               "final: x = norm(x)",
               "the same parts are joined otherwise", "");
    check_said(T, "marian", "block: x = norm(x + F(x)/sqrt(l))",
               "the branch of attn and ffn is multiplied by a factor that "
               "changes from block to block",
               "");
}

TB_TEST(peers_unknown)
{
    tb_block *b;
    tb_peer_answer *a;
    char *text;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    TB_CHECK(T, tb_peer_find(T->ctx, b, &unset, "marain", &a) == TB_ERR_ARG);
    TB_STR(T, tb_error(T->ctx), "system: got marain, wanted marian");
    TB_CHECK(T, tb_peer_read(T->ctx, "trax", "", &text) == TB_ERR_ARG);
    tb_block_destroy(T->ctx, b);
}

/* No failed allocation leaks, or passes unseen. */
TB_TEST(peers_without_memory)
{
    tb_block *b;
    TB_OKAY(T, tb_block_load(T->ctx, "x = x + 2*F(norm(x))", &b));
    size_t before = tb_ctx_blocks(T->ctx);
    for (size_t n = 1; n < 200000; n += n < 200 ? 1 : n / 7) {
        tb_peer_answer *a;
        tb_ctx_fail_alloc_at(T->ctx, n);
        tb_status s = tb_peer_find(T->ctx, b, &unset, "fairseq", &a);
        tb_ctx_fail_alloc_at(T->ctx, 0);
        if (s == TB_OK) {
            tb_peer_free(T->ctx, a);
            break;
        }
        TB_CHECK(T, s == TB_ERR_MEMORY);
        TB_CHECK(T, !a);
    }
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == before);
    tb_error_clear(T->ctx);
    tb_block_destroy(T->ctx, b);
}
