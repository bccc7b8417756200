/* SPDX-License-Identifier: MIT */
/* Cards for Anki and Obsidian: what is written, that it reads back to the
 * same bytes, and what is said about files that do not fit. */
#include "tb_test.h"

#include <stdio.h>

#include "tollbooth/cards.h"

static tb_status read_text(tb_test *T, const char *text, tb_notes **out)
{
    return tb_notes_read(T->ctx, "f", text, strlen(text), out);
}

static void all_cards(tb_test *T, tb_notes **out)
{
    size_t places[100];
    for (size_t i = 0; i < tb_card_count(); i++)
        places[i] = i;
    TB_OKAY(T, tb_notes_of_cards(T->ctx, places, tb_card_count(), out));
}

/* Written, read, written again: the same bytes, and the same notes. */
static void check_round(tb_test *T, const tb_notes *notes,
                        tb_notes_format format, bool two_way)
{
    tb_out *first, *second;
    tb_notes *back;
    TB_OKAY(T, tb_out_create(T->ctx, &first));
    TB_OKAY(T, tb_out_create(T->ctx, &second));
    TB_OKAY(T, tb_notes_write(T->ctx, notes, format, two_way, first));
    TB_OKAY(T, read_text(T, tb_out_str(first), &back));
    TB_CHECK(T, back->format == format && back->two_way == two_way);
    TB_REQUIRE(T, back->n == notes->n);
    for (size_t i = 0; i < back->n; i++) {
        TB_STR(T, back->notes[i].id, notes->notes[i].id);
        TB_STR(T, back->notes[i].deck, notes->notes[i].deck);
        TB_STR(T, back->notes[i].question, notes->notes[i].question);
        TB_STR(T, back->notes[i].answer, notes->notes[i].answer);
    }
    TB_OKAY(T, tb_notes_write(T->ctx, back, format, two_way, second));
    TB_STR(T, tb_out_str(second), tb_out_str(first));
    tb_notes_free(T->ctx, back);
    tb_out_destroy(first);
    tb_out_destroy(second);
}

TB_TEST(round_trips)
{
    tb_notes *notes;
    all_cards(T, &notes);
    for (int format = 0; format < 2; format++)
        for (int two_way = 0; two_way < 2; two_way++)
            check_round(T, notes, (tb_notes_format)format, two_way);
    tb_notes_free(T->ctx, notes);
}

/* All that Anki's format has to quote or escape. */
TB_TEST(anki_escapes)
{
    tb_note hard[] = {
        {"a", "", "tab\there", "\"quoted\"", 0},
        {"b", "d\te", "two\nlines", "a < b & c > d &lt; \\(x < y\\)", 0},
        {"", "", "#no comment", "costs $5", 0}};
    const tb_notes notes = {.n = TB_LEN(hard), .notes = hard};
    tb_out *out;
    check_round(T, &notes, TB_NOTES_ANKI, false);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_OKAY(T, tb_notes_write(T->ctx, &notes, TB_NOTES_ANKI, true, out));
    TB_STR(T, tb_out_str(out),
           "#separator:tab\n#html:true\n"
           "#notetype:Basic (and reversed card)\n"
           "#deck:tollbooth::residual\n"
           "#columns:Front\tBack\tGUID\tTags\n"
           "#guid column:3\n#tags column:4\n#if matches:update current\n"
           "\"tab\there\"\t\"\"\"quoted\"\"\"\ta\t\n"
           "\"two\nlines\"\ta &lt; b &amp; c &gt; d &amp;lt; "
           "\\(x &lt; y\\)\tb\t\"tollbooth::d\te\"\n"
           "\"#no comment\"\tcosts $5\t\t\n");
    tb_out_destroy(out);
}

TB_TEST(obsidian_text)
{
    tb_note some[] = {{"a-1", "one", "is \\(x\\)", "yes", 0},
                      {"a-2", "one", "costs $5", "`a::b` no", 0},
                      {"", "two", "q", "a", 0}};
    tb_notes notes = {.n = TB_LEN(some), .notes = some};
    tb_out *out;
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    TB_FAILS(T, tb_notes_write(T->ctx, &notes, TB_NOTES_OBSIDIAN, false, out),
             TB_ERR_INPUT, "card a-2: got '::' in its text");
    some[1].answer = "two\nlines";
    TB_FAILS(T, tb_notes_write(T->ctx, &notes, TB_NOTES_OBSIDIAN, false, out),
             TB_ERR_INPUT, "card a-2: got a line break");
    some[1].answer = "no";
    tb_out_reset(out);
    TB_OKAY(T, tb_notes_write(T->ctx, &notes, TB_NOTES_OBSIDIAN, false, out));
    TB_STR(T, tb_out_str(out),
           "#flashcards/tollbooth/one\n\nis $x$::yes ^a-1\n\n"
           "costs \\$5::no ^a-2\n\n#flashcards/tollbooth/two\n\nq::a\n");
    check_round(T, &notes, TB_NOTES_OBSIDIAN, true);
    some[0].id = "k<:[}x"; /* as Anki makes them: no block id */
    tb_out_reset(out);
    notes.n = 1;
    TB_OKAY(T, tb_notes_write(T->ctx, &notes, TB_NOTES_OBSIDIAN, false, out));
    TB_STR(T, tb_out_str(out), "#flashcards/tollbooth/one\n\nis $x$::yes\n");
    tb_out_destroy(out);
}

/* A user's note: schedules, prose, CRLF, both separators, code. */
TB_TEST(obsidian_of_a_user)
{
    static const char text[] =
        "\xEF\xBB\xBF# my note\r\n#flashcards/ml\r\n"
        "what is `a::b` ::: a pair  ^x-1\r\n"
        "<!--SR:!2026-12-01,3,250-->\r\nprose: no card\r\n"
        "$d$ ::width\r\n<!--SR:!2026-12-02,4,250!2026-12-03,4,230-->\r\n";
    tb_notes *notes;
    TB_OKAY(T, tb_notes_read(T->ctx, "f", text, sizeof text - 1, &notes));
    TB_REQUIRE(T, notes->n == 2);
    TB_CHECK(T, notes->schedules == 2 && notes->two_way);
    TB_STR(T, notes->notes[0].question, "what is `a::b`");
    TB_STR(T, notes->notes[0].answer, "a pair");
    TB_STR(T, notes->notes[0].id, "x-1");
    TB_STR(T, notes->notes[0].deck, "ml");
    TB_CHECK(T, notes->notes[0].line == 3 && notes->notes[1].line == 6);
    TB_STR(T, notes->notes[1].question, "\\(d\\)");
    tb_notes_free(T->ctx, notes);
}

/* Other separators, no header, comments, fields in another order. */
TB_TEST(anki_of_a_user)
{
    static const char
        semicolons
            [] = "#separator:Semicolon\n",
  semi[] =
        "#separator:semicolon\n#html:false\n"
        "#guid column:1\n#tags column:2\nid;tag;\"a;b\";\"&lt;\"\r\n# no\n\n";
    tb_notes *notes;
    TB_FAILS(T, read_text(T, semicolons, &notes), TB_ERR_INPUT,
             "f:1: got a separator of another name");
    TB_OKAY(T, read_text(T, semi, &notes));
    TB_REQUIRE(T, notes->n == 1);
    TB_STR(T, notes->notes[0].id, "id");
    TB_STR(T, notes->notes[0].deck, "tag");
    TB_STR(T, notes->notes[0].question, "a;b");
    TB_STR(T, notes->notes[0].answer, "&lt;");
    tb_notes_free(T->ctx, notes);
    TB_OKAY(T, read_text(T, "q\ta\nr\tb", &notes));
    TB_CHECK(T, notes->n == 2 && notes->format == TB_NOTES_ANKI);
    tb_notes_free(T->ctx, notes);
}

TB_TEST(refused)
{
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "f: got no card"},
        {"prose\n", "f: got no card"},
        {"#separator:tab\nq\ta\n\"q\ta\n",
         "f:3: got a quote that does not end"},
        {"#separator:tab\nq\n", "f:2: got fewer columns"},
        {"#separator:tab\n#guid column:3\nq\ta\n", "f:3: got fewer columns"},
        {"#separator:tab\n\ta\n", "f:2: got fewer columns"},
        {"#guid column:17\n", "f:1: got a column of another number"},
        {"#guid column:x\n", "f:1: got a column"},
        {"#html:true\n0\t1\t2\t3\t4\t5\t6\t7\t8\t9\t0\t1\t2\t3\t4\t5\t6\n",
         "f:2: got more columns, wanted at most 16"},
        {"#guid column:1\nx\tq\ta\ny\tq\ta\nx\tr\tb\n",
         "f:4: got the id x of line 2 again, wanted one card for each id"},
        {"a::b\nc::d::e\n", "f:2: got a second separator in the line"},
        {"a::::b\n", "f:1: got more than three colons"},
        {"::b\n", "f:1: got no question"},
        {"\na:: \n", "f:2: got no answer"},
        {"a::$b\n", "f:1: got a formula that does not end"},
    };
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        tb_notes *notes;
        TB_FAILS(T, read_text(T, rows[i].text, &notes), TB_ERR_INPUT,
                 rows[i].message);
        TB_CHECK(T, !notes);
    }
}

/* The pages that the cards are from: one card a line in the foundations, a
 * paragraph of six in the walkthrough, which is refused. */
TB_TEST(pages)
{
    static const char *const names[] = {"seeds/004_6ed0d55c7fd94638.txt",
                                        "seeds/000_4bcb009538189f0c.txt"};
    static char text[20000];
    tb_notes *notes;
    for (size_t i = 0; i < TB_LEN(names); i++) {
        const char *path = tb_test_shared(T, names[i]);
        if (!path)
            TB_SKIP(T, "the pages are not here");
        FILE *f = fopen(path, "rb");
        TB_REQUIRE(T, f);
        size_t n = fread(text, 1, sizeof text, f);
        fclose(f);
        tb_status s = tb_notes_read(T->ctx, "f", text, n, &notes);
        if (i == 0) {
            TB_OKAY(T, s);
            TB_CHECK(T, notes->n == 18 && notes->two_way);
            tb_notes_free(T->ctx, notes);
        } else
            TB_FAILS(T, s, TB_ERR_INPUT, "a second separator in the line");
    }
}

/* Bytes changed, lost and doubled: notes or an error, and no leak. */
TB_TEST(mutations)
{
    tb_notes *notes, *back;
    tb_out *out;
    all_cards(T, &notes);
    TB_OKAY(T, tb_out_create(T->ctx, &out));
    for (int format = 0; format < 2; format++) {
        tb_out_reset(out);
        TB_OKAY(T, tb_notes_write(T->ctx, notes, (tb_notes_format)format, false,
                                  out));
        size_t n = tb_out_len(out), blocks = tb_ctx_blocks(T->ctx);
        char *text = tb_test_guarded(T, n);
        for (int round = 0; round < 2000; round++) {
            memcpy(text, tb_out_str(out), n);
            for (int k = 0; k < 4; k++)
                text[(size_t)(tb_test_uniform(T) * (double)n)] =
                    "\t\n\"$:^#\\x\0"[(size_t)(tb_test_uniform(T) * 10)];
            size_t cut = (size_t)(tb_test_uniform(T) * (double)n);
            if (tb_notes_read(T->ctx, "f", text + cut, n - cut, &back) == TB_OK)
                tb_notes_free(T->ctx, back);
            TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
        }
    }
    tb_notes_free(T->ctx, notes);
    tb_out_destroy(out);
}

TB_TEST(no_memory)
{
    static const char *const texts[] = {"#separator:tab\nq\ta &lt;\n",
                                        "#flashcards/x\n\n$q$::a ^i\n"};
    size_t blocks = tb_ctx_blocks(T->ctx);
    for (size_t i = 0; i < TB_LEN(texts); i++) {
        tb_status status = TB_ERR_MEMORY;
        for (size_t n = 1; n < 1000 && status == TB_ERR_MEMORY; n++) {
            tb_notes *notes;
            tb_ctx_fail_alloc_at(T->ctx, n);
            status = read_text(T, texts[i], &notes);
            tb_ctx_fail_alloc_at(T->ctx, 0);
            tb_notes_free(T->ctx, notes);
            TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
        }
        TB_OKAY(T, status);
    }
}

TB_TEST(shuffled)
{
    size_t a[24], b[24], seen[24] = {0}, moved = 0;
    for (size_t i = 0; i < 24; i++)
        a[i] = b[i] = i;
    tb_cards_shuffle(1, a, 24);
    tb_cards_shuffle(1, b, 24);
    for (size_t i = 0; i < 24; i++) {
        TB_CHECK(T, a[i] == b[i] && seen[a[i]]++ == 0);
        moved += a[i] != i;
    }
    TB_CHECK(T, moved > 12);
    tb_cards_shuffle(2, b, 24);
    TB_CHECK(T, memcmp(a, b, sizeof a) != 0);
}
