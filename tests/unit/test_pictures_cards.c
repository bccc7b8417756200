/* SPDX-License-Identifier: MIT */
/* The cards: their number and texts, and that the engine agrees with each
 * answer, and would say so if it did not. */
#include "tb_test.h"

#include "pictures/cards_parts.h"
#include "tollbooth/shot.h"

TB_TEST(decks)
{
    static const size_t want[TB_DECKS] = {6, 10, 8};
    size_t i = 0;
    for (size_t deck = 0; deck < TB_DECKS; deck++)
        for (size_t k = 0; k < want[deck]; k++, i++) {
            TB_REQUIRE(T, i < tb_card_count());
            TB_STR(T, tb_card_at(i)->deck, tb_deck_names[deck]);
            TB_CHECK(T, tb_card_find(tb_card_at(i)->id) == i); /* once */
        }
    TB_CHECK(T, i == tb_card_count());
    TB_CHECK(T, tb_card_find("recall") == tb_card_count());
}

/* What no format may meet inside a text: its separators. */
static void check_text(tb_test *T, const char *s)
{
    static const char *const never[] = {"::", "==", "\t", "\n",
                                        "$",  "{{", "?\n"};
    TB_CHECK(T, s[0] && s[0] != ' ' && s[0] != '#' && s[strlen(s) - 1] != ' ');
    for (size_t i = 0; i < TB_LEN(never); i++)
        if (strstr(s, never[i]))
            tb_test_fail(T, __FILE__, __LINE__, "%s: has %s", s, never[i]);
}

/* The TeX writing is the plain one, but for what stands in \( \). */
static bool same_words(const char *plain, const char *tex)
{
    const char *open = strstr(tex, "\\(");
    size_t n = open ? (size_t)(open - tex) : strlen(tex);
    if (strncmp(plain, tex, n) != 0)
        return false;
    if (!open)
        return plain[n] == '\0';
    const char *close = strstr(open, "\\)");
    for (const char *at = plain + n; close && *at; at++)
        if (same_words(at + 1, close + 2))
            return true;
    return false;
}

TB_TEST(texts)
{
    for (size_t i = 0; i < tb_card_count(); i++) {
        const tb_card *c = tb_card_at(i);
        const char *const all[] = {c->question, c->answer, c->question_tex,
                                   c->answer_tex};
        for (size_t k = 0; k < TB_LEN(all); k++)
            check_text(T, all[k]);
        if (!same_words(c->question, c->question_tex) ||
            !same_words(c->answer, c->answer_tex))
            tb_test_fail(T, __FILE__, __LINE__, "%s: two texts", c->id);
        TB_CHECK(T,
                 strspn(c->id, "abcdefghijklmnopqrstuvwxyz-") == strlen(c->id));
    }
}

/* The picture is there, takes the settings, and its own checks hold. */
TB_TEST(shots)
{
    for (size_t i = 0; i < tb_card_count(); i++) {
        const tb_card *c = tb_card_at(i);
        tb_shot *s;
        TB_OKAY(T, tb_shot_create(T->ctx, c->shot, c->settings, &s));
        if (!tb_shot_ok(s))
            tb_test_fail(T, __FILE__, __LINE__, "%s: %s", c->id, c->shot);
        tb_shot_destroy(s);
    }
}

TB_TEST(proofs)
{
    size_t silent = 0;
    for (size_t i = 0; i < tb_card_count(); i++) {
        tb_proof p;
        TB_OKAY(T, tb_card_prove(T->ctx, i, &p));
        if (!p.ok)
            tb_test_fail(T, __FILE__, __LINE__, "%s: got %.17g",
                         tb_card_at(i)->id, p.value[0]);
        silent += p.n == 0;
        if (p.n) /* a full buffer would have cut it */
            TB_CHECK(T, p.command[0] && strlen(p.command) < TB_PROOF_TEXT - 1);
    }
    TB_CHECK(T, silent == 1); /* warm-up: training, and two opinions */
}

/* Every claim with another number expected, and every refusal with another
 * message, is found wrong. */
TB_TEST(wrong_claims)
{
    for (size_t i = 0; i < tb_card_rows_count; i++) {
        claim c = tb_card_rows[i].claim;
        tb_proof p;
        if (!c.read)
            continue;
        c.expected[c.n - 1] += 1e-3;
        TB_OKAY(T, claim_prove(T->ctx, &c, &p));
        TB_CHECK(T, !p.ok);
        c = tb_card_rows[i].claim;
        if (!c.says)
            continue;
        c.says = "no such message";
        TB_OKAY(T, claim_prove(T->ctx, &c, &p));
        TB_CHECK(T, !p.ok);
    }
}

/* C.3 of the shot list: 1/sqrt(eps) */
TB_TEST(gain_of_a_flat_vector)
{
    static const struct {
        const char *text;
        double gain;
    } rows[] = {{"layernorm(x, eps=1e-5)", 316.2278},
                {"layernorm(x, eps=1e-6)", 1000},
                {"layernorm(x, eps=1e-12)", 1e6}};
    claim c = tb_card_rows[tb_card_find("recall-eps")].claim;
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_proof p;
        c.text = rows[i].text;
        TB_OKAY(T, claim_prove(T->ctx, &c, &p));
        TB_NEAR(T, p.value[0], rows[i].gain, 1e-6);
    }
}

static size_t longest_line(const char *s)
{
    size_t most = 0, n = 0;
    for (; *s; s++) {
        n = *s == '\n' ? 0 : n + (((unsigned char)*s & 0xC0) != 0x80);
        most = n > most ? n : most;
    }
    return most;
}

TB_TEST(lines_fit)
{
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (int w = 40; w <= 200; w += 40)
        for (size_t i = 0; i < 2 * tb_card_count(); i++) {
            const tb_terminal term = {.width = w, .ascii = i % 2};
            const tb_card *c = tb_card_at(i / 2);
            tb_out_reset(out);
            TB_OKAY(T, tb_text_term(c->question, 4, &term, out));
            TB_OKAY(T, tb_text_term(c->answer, 4, &term, out));
            TB_CHECK(T, longest_line(tb_out_str(out)) <= (size_t)w);
            for (const char *s = tb_out_str(out); term.ascii && *s; s++)
                TB_CHECK(T, *s == '\n' || (*s >= ' ' && *s <= '~'));
        }
    tb_out_reset(out);
    const tb_terminal term = {.width = 80, .ascii = true};
    TB_OKAY(T, tb_text_term("√(σ² + ε), γ⊙ẑ", 0, &term, out));
    TB_STR(T, tb_out_str(out), "sqrt(sigma^2 + eps), gamma(*)z\n");
    tb_out_destroy(out);
}

TB_TEST(wrong_proof_says_what_was_wanted)
{
    const tb_terminal term = {.width = 80};
    claim c = tb_card_rows[tb_card_find("check-mean-variance")].claim;
    tb_proof p;
    tb_out *out;
    c.expected[1] = 3;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, claim_prove(T->ctx, &c, &p));
    TB_OKAY(T, tb_proof_term(T->ctx, "x: ", &p, 0, &term, out));
    TB_STR(T, tb_out_str(out),
           "x: μ and σ² of (2,4,4,4,5,5,7,9): 5, 4; wanted 5, 3\n");
    tb_out_destroy(out);
}

TB_TEST(no_memory)
{
    size_t blocks = tb_ctx_blocks(T->ctx);
    static const char *const ids[] = {"recall-eps", "recall-post-ln",
                                      "inline-eps-zero"};
    for (size_t i = 0; i < TB_LEN(ids); i++) {
        tb_status status = TB_ERR_MEMORY;
        for (size_t n = 1; n < 20000 && status == TB_ERR_MEMORY; n++) {
            tb_proof p;
            tb_ctx_fail_alloc_at(T->ctx, n);
            status = tb_card_prove(T->ctx, tb_card_find(ids[i]), &p);
            tb_ctx_fail_alloc_at(T->ctx, 0);
            TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
        }
        TB_OKAY(T, status);
    }
}
