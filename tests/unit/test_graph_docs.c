/* SPDX-License-Identifier: MIT */
/* The examples of docs/language.md as graphs: what is shown as a block can be
 * built, what is shown as an error fails at a place. */
#include "unit/graph_help.h"

#include <stdio.h>

static void part_builds(tb_test *T, const char *text, const tb_settings *s,
                        gr_part part)
{
    bool layer = part == GR_LAYER || part == GR_ENCODER_LAYER;
    for (size_t l = 1; l <= (layer ? 8 : 1); l++) {
        gr_case c;
        if (gr_open(T->ctx, &c, text, s, part, l) == TB_OK)
            gr_close(T->ctx, &c);
        else
            tb_test_fail(T, __FILE__, __LINE__, "%s\n%s", text,
                         tb_error(T->ctx));
    }
}

/* In every kind of stack. */
static void builds(tb_test *T, const char *text)
{
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 8;
    for (int stack = 0; stack <= TB_STACKS_BOTH; stack++) {
        s.stack = stack;
        int parts = stack == TB_STACKS_BOTH ? GR_PARTS : GR_ENCODER_LAYER;
        for (int part = 0; part < parts; part++)
            part_builds(T, text, &s, (gr_part)part);
    }
}

static void fails_at_a_place(tb_test *T, const char *text)
{
    for (int part = 0; part < 3; part++) {
        gr_case c;
        if (gr_open(T->ctx, &c, text, NULL, (gr_part)part, 1) != TB_OK) {
            TB_CHECK(T, strchr("123456789", tb_error(T->ctx)[0]));
            TB_CHECK(T, strchr(tb_error(T->ctx), '^'));
            return;
        }
        gr_close(T->ctx, &c);
    }
    tb_test_fail(T, __FILE__, __LINE__, "%s\nbuilt", text);
}

TB_TEST(examples)
{
    enum { MOST = 1 << 20 };
    int good = 0, bad = 0;
    FILE *f = fopen(TB_SOURCE_DIR "/docs/language.md", "rb");
    char *text = tb_alloc(T->ctx, MOST + 1, 1);
    TB_REQUIRE(T, f && text);
    text[fread(text, 1, MOST, f)] = '\0';
    (void)fclose(f);
    for (char *at = text; (at = strstr(at, "\n```block"));) {
        char *kind = at + strlen("\n```"), *start = strchr(kind, '\n') + 1;
        char *end = strstr(start, "\n```");
        TB_REQUIRE(T, end);
        end[1] = '\0'; /* keep a newline: it makes any text a text */
        if (!strncmp(kind, "block\n", 6)) {
            builds(T, start);
            good++;
        } else if (!strncmp(kind, "block-error\n", 12)) {
            fails_at_a_place(T, start);
            bad++;
        }
        at = end + 2;
    }
    tb_free(T->ctx, text);
    TB_CHECK(T, good >= 10 && bad >= 5);
}
