/* SPDX-License-Identifier: MIT */
/* Every error with its whole text: position, message, line and caret. */
#include "unit/equation_help.h"

typedef struct bad_text {
    const char *text, *error;
} bad_text;

static void check_all(tb_test *T, const bad_text *bad, size_t n,
                      tb_parse_mode mode)
{
    for (size_t i = 0; i < n; i++) {
        tb_block *b;
        tb_status s = eq_parse(T->ctx, bad[i].text, mode, &b);
        TB_CHECK(T, s == TB_ERR_PARSE && b == NULL);
        if (s == TB_ERR_PARSE)
            TB_STR(T, tb_error(T->ctx), bad[i].error);
        tb_block_destroy(T->ctx, b);
    }
}

TB_TEST(expressions)
{
    static const bad_text bad[] = {
        {"x = x + 2x", "1:10: no operator before 'x'; multiplication is "
                       "written '*'\n"
                       "    x = x + 2x\n"
                       "             ^"},
        {"x = a b", "1:7: no operator before 'b'; multiplication is written "
                    "'*'\n"
                    "    x = a b\n"
                    "          ^"},
        {"x = (x)(y)", "1:8: no operator before '('; multiplication is written "
                       "'*'\n"
                       "    x = (x)(y)\n"
                       "           ^"},
        {"x = f(a b)", "1:9: no operator before 'b'; multiplication is "
                       "written '*'\n"
                       "    x = f(a b)\n"
                       "            ^"},
        {"x = x +", "1:8: expected a value, got the end of the text\n"
                    "    x = x +\n"
                    "           ^"},
        {"x = x +\n F(x)", "1:8: expected a value, got the end of the line; "
                           "only inside brackets a statement goes on in the "
                           "next line\n"
                           "    x = x +\n"
                           "           ^"},
        {"x = ;", "1:5: expected a value, got ';'\n"
                  "    x = ;\n"
                  "        ^"},
        {"x = f(a, )", "1:10: expected a value, got ')'\n"
                       "    x = f(a, )\n"
                       "             ^"},
        {"x = ()", "1:6: expected a value, got ')'\n"
                   "    x = ()\n"
                   "         ^"},
        {"x = +x", "1:5: expected a value, got '+'\n"
                   "    x = +x\n"
                   "        ^"},
        {"x = f(a = 1, b)", "1:14: plain arguments stand before options\n"
                            "    x = f(a = 1, b)\n"
                            "                 ^"},
        {"x = f(a=1, a=2)", "1:12: option 'a' given twice\n"
                            "    x = f(a=1, a=2)\n"
                            "               ^"},
        {"x = f(2=3)", "1:8: expected ')' for the '(' of 1:6, got '='\n"
                       "    x = f(2=3)\n"
                       "           ^"},
        {"x = f((a)=3)", "1:10: expected ')' for the '(' of 1:6, got '='\n"
                         "    x = f((a)=3)\n"
                         "             ^"},
        {"x = x)", "1:6: ')' closes nothing\n"
                   "    x = x)\n"
                   "         ^"},
        {"x = (x", "1:5: '(' is not closed before the end of the text\n"
                   "    x = (x\n"
                   "        ^"},
        {"x = norm(x; y = 2", "1:9: '(' is not closed before ';'\n"
                              "    x = norm(x; y = 2\n"
                              "            ^"},
        {"x = norm(x\nx = ffn(x)", "2:1: expected ')' for the '(' of 1:9, got "
                                   "'x'\n"
                                   "    x = ffn(x)\n"
                                   "    ^"},
        {"x = (x]", "1:7: expected ')' for the '(' of 1:5, got ']'\n"
                    "    x = (x]\n"
                    "          ^"},
        {"x = a < b", "1:7: '<' compares only in the condition of a section, "
                      "as in block[l <= N/4]:\n"
                      "    x = a < b\n"
                      "          ^"},
        {"x = f(a == b)", "1:9: '==' compares only in the condition of a "
                          "section, as in block[l <= N/4]:\n"
                          "    x = f(a == b)\n"
                          "            ^"},
        {"x = y = z", "1:7: expected an operator or the end of the statement, "
                      "got '='\n"
                      "    x = y = z\n"
                      "          ^"},
        {"x = a, b", "1:6: expected an operator or the end of the statement, "
                     "got ','\n"
                     "    x = a, b\n"
                     "         ^"},
    };
    check_all(T, bad, TB_LEN(bad), TB_PARSE_BLOCK);
}

TB_TEST(characters_and_numbers)
{
    static const bad_text bad[] = {
        {"x = 1e400", "1:5: number too large for a double\n"
                      "    x = 1e400\n"
                      "        ^"},
        {"x = 1e-400", "1:5: number too small for a double\n"
                       "    x = 1e-400\n"
                       "        ^"},
        {"x = 0x10", "1:5: hexadecimal numbers are not offered\n"
                     "    x = 0x10\n"
                     "        ^"},
        {"x = 1.2.3", "1:5: not a number: write digits, one point with digits "
                      "after it, an exponent\n"
                      "    x = 1.2.3\n"
                      "        ^"},
        {"x = 5.", "1:5: not a number: write digits, one point with digits "
                   "after it, an exponent\n"
                   "    x = 5.\n"
                   "        ^"},
        {"x = 1_000", "1:5: not a number: write digits, one point with digits "
                      "after it, an exponent\n"
                      "    x = 1_000\n"
                      "        ^"},
        {"x = .5", "1:5: '.' has no meaning here\n"
                   "    x = .5\n"
                   "        ^"},
        {"x = 2e", "1:6: no operator before 'e'; multiplication is written "
                   "'*'\n"
                   "    x = 2e\n"
                   "         ^"},
        {"x = x \xe2\x89\xa4 3", "1:7: character U+2264 is not part of the "
                                 "language; write '<='\n"
                                 "    x = x \xe2\x89\xa4 3\n"
                                 "          ^"},
        {"x = \xce\xb1*x", "1:5: character U+03B1 is not part of the language; "
                           "write 'alpha'\n"
                           "    x = \xce\xb1*x\n"
                           "        ^"},
        {"x =\xc2\xa0x", "1:4: character U+00A0 is not part of the language; "
                         "write a blank\n"
                         "    x =\xc2\xa0x\n"
                         "       ^"},
        {"x = x \xf0\x9f\x98\x80", "1:7: character U+1F600 is not part of the "
                                   "language\n"
                                   "    x = x \xf0\x9f\x98\x80\n"
                                   "          ^"},
        {"x = x @ y", "1:7: '@' has no meaning here\n"
                      "    x = x @ y\n"
                      "          ^"},
        {"x\t= \x1b[2J", "1:5: character U+001B is not part of the language\n"
                         "    x = ?[2J\n"
                         "        ^"},
        {"x = y\rz = 3", "1:6: character U+000D is not part of the language\n"
                         "    x = y?z = 3\n"
                         "         ^"},
        {"x = a_{i}", "1:7: only x takes a subscript: x_i, x_{i}, x_{i+1}, "
                      "x_l, x_{l} or x_{l+1}\n"
                      "    x = a_{i}\n"
                      "          ^"},
        {"x = x_{i+2}", "1:7: only x takes a subscript: x_i, x_{i}, x_{i+1}, "
                        "x_l, x_{l} or x_{l+1}\n"
                        "    x = x_{i+2}\n"
                        "          ^"},
        {"# \xff\nx = x", "1:3: not valid UTF-8: byte ff\n"
                          "    # ?\n"
                          "      ^"},
        {"x = x\n# \xc0\xaf", "2:3: not valid UTF-8: byte c0\n"
                              "    # ??\n"
                              "      ^"},
        {"x = \xed\xa0\x80", "1:5: not valid UTF-8: byte ed\n"
                             "    x = ???\n"
                             "        ^"},
        {"x = \xe2\x89", "1:5: not valid UTF-8: byte e2\n"
                         "    x = ??\n"
                         "        ^"},
        {"# \xc2\x9b\nx = x)", "2:6: ')' closes nothing\n"
                               "    x = x)\n"
                               "         ^"},
    };
    check_all(T, bad, TB_LEN(bad), TB_PARSE_BLOCK);
    tb_block *b;
    TB_CHECK(T, tb_block_parse(T->ctx, "nul.block", "x = x\n\0", 7,
                               TB_PARSE_BLOCK, &b) == TB_ERR_PARSE);
    TB_STR(T, tb_error(T->ctx),
           "nul.block:2:1: a NUL byte in the text\n"
           "    ?\n"
           "    ^");
}

TB_TEST(statements)
{
    static const bad_text bad[] = {
        {"", "the text has no statement; the smallest block is "
             "x = x + F(norm(x))"},
        {"# only a comment\n;;\n", "the text has no statement; the smallest "
                                   "block is x = x + F(norm(x))"},
        {"norm(x)", "1:1: a statement is name = value, as in "
                    "x = x + F(norm(x))\n"
                    "    norm(x)\n"
                    "    ^"},
        {"2 = x", "1:1: left of '=' stands a name, or a name with parameters\n"
                  "    2 = x\n"
                  "    ^"},
        {"(x) = 2", "1:1: left of '=' stands a name, or a name with "
                    "parameters\n"
                    "    (x) = 2\n"
                    "    ^"},
        {"a + f(x) = 2", "1:1: left of '=' stands a name, or a name with "
                         "parameters\n"
                         "    a + f(x) = 2\n"
                         "    ^"},
        {"h = norm(x)", "1:1: 'h' is the number of heads; choose another name\n"
                        "    h = norm(x)\n"
                        "    ^"},
        {"y = x; memory = x", "1:8: 'memory' is the encoder's output; choose "
                              "another name\n"
                              "    y = x; memory = x\n"
                              "           ^"},
        {"gelu = x", "1:1: 'gelu' is a built-in function; choose another name\n"
                     "    gelu = x\n"
                     "    ^"},
        {"MLP = x", "1:1: 'ffn' is a built-in function; choose another name\n"
                    "    MLP = x\n"
                    "    ^"},
        {"LN(x) = x", "1:1: 'layernorm' is a built-in function; choose another "
                      "name\n"
                      "    LN(x) = x\n"
                      "    ^"},
        {"F(x) = x", "1:1: 'F' is the sublayer; choose another name\n"
                     "    F(x) = x\n"
                     "    ^"},
        {"f(d) = 2*d", "1:3: 'd' is the width of the stream; choose another "
                       "name\n"
                       "    f(d) = 2*d\n"
                       "      ^"},
        {"f(a, b, a) = b", "1:9: parameter 'a' stands twice\n"
                           "    f(a, b, a) = b\n"
                           "            ^"},
        {"f(2*a) = a", "1:4: a parameter is a name\n"
                       "    f(2*a) = a\n"
                       "       ^"},
        {"f(a=1) = a", "1:3: a parameter is a name\n"
                       "    f(a=1) = a\n"
                       "      ^"},
        {"f(a) = a\ng(a) = a\nf(b) = b", "3:1: 'f' is defined at 1:1\n"
                                         "    f(b) = b\n"
                                         "    ^"},
        {"x_{i+1} = 2*x_i; y = x_i", "1:22: x was replaced by x_{i+1} above; "
                                     "give the old value a name first, as in "
                                     "r = x_i\n"
                                     "    x_{i+1} = 2*x_i; y = x_i\n"
                                     "                         ^"},
        {"y = x_{i+1}", "1:5: x_{i+1} is read before it is assigned\n"
                        "    y = x_{i+1}\n"
                        "        ^"},
    };
    static const bad_text eval[] = {
        {"x; y", "1:1: a value without a name stands only in the last place\n"
                 "    x; y\n"
                 "    ^"},
        {"x\ny = 2", "1:1: a value without a name stands only in the last "
                     "place\n"
                     "    x\n"
                     "    ^"},
        {"x +", "1:4: expected a value, got the end of the text\n"
                "    x +\n"
                "       ^"},
    };
    check_all(T, bad, TB_LEN(bad), TB_PARSE_BLOCK);
    check_all(T, eval, TB_LEN(eval), TB_PARSE_EVAL);
}

TB_TEST(sections_and_their_lines)
{
    static const bad_text bad[] = {
        {"blok: x = x", "1:1: unknown section 'blok'; did you mean 'block'?\n"
                        "    blok: x = x\n"
                        "    ^"},
        {"x = x; out: x", "1:8: unknown section 'out'; a last norm is "
                          "final: x = norm(x)\n"
                          "    x = x; out: x\n"
                          "           ^"},
        {"encoder blck: x = x", "1:9: unknown section 'blck'; did you mean "
                                "'block'?\n"
                                "    encoder blck: x = x\n"
                                "            ^"},
        {"encoder init: a: zeros", "1:1: 'init:' takes no role\n"
                                   "    encoder init: a: zeros\n"
                                   "    ^"},
        {"final[l < 2]: x = x", "1:6: 'final:' takes no condition\n"
                                "    final[l < 2]: x = x\n"
                                "         ^"},
        {"block[l]: x = x", "1:8: expected < <= == >= or >, as in "
                            "block[l <= N/4]:, got ']'\n"
                            "    block[l]: x = x\n"
                            "           ^"},
        {"block[1 < l < 3]: x = x", "1:13: a condition compares once\n"
                                    "    block[1 < l < 3]: x = x\n"
                                    "                ^"},
        {"block[l < 2: x = x", "1:12: expected ']' for the '[' of 1:6, got "
                               "':'\n"
                               "    block[l < 2: x = x\n"
                               "               ^"},
        {"block[l < 2] x = x", "1:14: expected ':', got 'x'\n"
                               "    block[l < 2] x = x\n"
                               "                 ^"},
        {"x = x\nblock: x = 2*x", "2:1: never reached: the section at 1:1 "
                                  "comes first and always matches\n"
                                  "    block: x = 2*x\n"
                                  "    ^"},
        {"encoder: x = x; encoder block[l<2]: x = 2*x",
         "1:17: never reached: the section at 1:1 comes first and always "
         "matches\n"
         "    encoder: x = x; encoder block[l<2]: x = 2*x\n"
         "                    ^"},
        {"stem: y = x; decoder stem: y = x",
         "1:14: never reached: the section at 1:1 comes first and always "
         "matches\n"
         "    stem: y = x; decoder stem: y = x\n"
         "                 ^"},
        {"expect:\nx = x", "1:8: expected a lint code, got the end of the "
                           "line\n"
                           "    expect:\n"
                           "           ^"},
        {"expect: A B", "1:11: expected ',' or the end of the line, got 'B'\n"
                        "    expect: A B\n"
                        "              ^"},
        {"init: attn.o: norml(1)", "1:15: unknown init rule 'norml'; did you "
                                   "mean 'normal'?\n"
                                   "    init: attn.o: norml(1)\n"
                                   "                  ^"},
        {"init: attn.o: normal", "1:15: 'normal' takes 1 argument, got 0\n"
                                 "    init: attn.o: normal\n"
                                 "                  ^"},
        {"init: attn.o: xavier(1, 2)", "1:15: 'xavier' takes at most 1 "
                                       "argument, got 2\n"
                                       "    init: attn.o: xavier(1, 2)\n"
                                       "                  ^"},
        {"init: attn.o: zeros(1)", "1:15: 'zeros' takes 0 arguments, got 1\n"
                                   "    init: attn.o: zeros(1)\n"
                                   "                  ^"},
        {"init: attn.o: normal(std=1)", "1:22: init rules take no options\n"
                                        "    init: attn.o: normal(std=1)\n"
                                        "                         ^"},
        {"init: attn.o: normal(x)", "1:22: not a constant expression\n"
                                    "    init: attn.o: normal(x)\n"
                                    "                         ^"},
        {"init: attn.o: 2*normal(1)", "1:15: expected an init rule such as "
                                      "normal(0.02), got '2'\n"
                                      "    init: attn.o: 2*normal(1)\n"
                                      "                  ^"},
        {"init: attn.o: normal(1)*2", "1:24: an init rule is a name with "
                                      "arguments, such as normal(0.02)\n"
                                      "    init: attn.o: normal(1)*2\n"
                                      "                           ^"},
        {"init: attn-o: zeros", "1:11: weight names hold letters, digits, "
                                "'_', '.' and '*'\n"
                                "    init: attn-o: zeros\n"
                                "              ^"},
        {"init: attn.o zeros", "1:14: expected ',' or ':' and an init rule, "
                               "got 'zeros'\n"
                               "    init: attn.o zeros\n"
                               "                 ^"},
        {"init: a, : zeros", "1:10: expected a weight name such as attn.o or "
                             "ffn.*, got ':'\n"
                             "    init: a, : zeros\n"
                             "             ^"},
        {"init: f(x)", "1:7: expected weights: rule, as in attn.o: "
                       "normal(0.02)\n"
                       "    init: f(x)\n"
                       "          ^"},
        {"init:\nfinl:\n x = x", "2:1: unknown section 'finl'; did you mean "
                                 "'final'?\n"
                                 "    finl:\n"
                                 "    ^"},
        {"model: epss = 1", "1:8: unknown setting 'epss'; did you mean 'eps'?\n"
                            "    model: epss = 1\n"
                            "           ^"},
        {"model: eps = 1\neps = 2", "2:1: 'eps' is set at 1:8\n"
                                    "    eps = 2\n"
                                    "    ^"},
        {"model: eps = x", "1:14: 'eps' takes a constant expression\n"
                           "    model: eps = x\n"
                           "                 ^"},
        {"model: tied = 1", "1:15: 'tied' takes one of: true false\n"
                            "    model: tied = 1\n"
                            "                  ^"},
        {"model: eps 1", "1:12: expected '=' and the value of the setting, "
                         "got '1'\n"
                         "    model: eps 1\n"
                         "               ^"},
        {"model: 3", "1:8: expected a setting such as eps = 1e-6, got '3'\n"
                     "    model: 3\n"
                     "           ^"},
        {"model: f(x)", "1:8: expected name = value, as in eps = 1e-6\n"
                        "    model: f(x)\n"
                        "           ^"},
    };
    check_all(T, bad, TB_LEN(bad), TB_PARSE_BLOCK);
}

TB_TEST(long_lines_show_a_window)
{
    enum { N = 500 };
    char text[N + 1];
    tb_block *b;
    memset(text, 'a', N);
    memcpy(text, "x = ", 4);
    text[200] = '@';
    text[N] = '\0';
    TB_CHECK(T, eq_parse(T->ctx, text, TB_PARSE_BLOCK, &b) == TB_ERR_PARSE);
    TB_STR(T, tb_error(T->ctx),
           "1:201: '@' has no meaning here\n"
           "    ...aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@"
           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\n"
           "                                               ^");
}

TB_TEST(other_rooms_fail_at_positions)
{
    tb_block *b;
    TB_OKAY(T, tb_block_parse(T->ctx, "pre.block", "x = lm(x)", 9,
                              TB_PARSE_BLOCK, &b));
    TB_FAILS(T,
             tb_block_fail(T->ctx, b, b->sections[0].stmts[0].value->pos,
                           "unknown '%s'", "lm"),
             TB_ERR_PARSE, "");
    TB_STR(T, tb_error(T->ctx),
           "pre.block:1:5: unknown 'lm'\n"
           "    x = lm(x)\n"
           "        ^");
    TB_FAILS(T, tb_block_fail(T->ctx, b, (tb_pos){0, 0}, "no place"),
             TB_ERR_PARSE, "");
    TB_STR(T, tb_error(T->ctx), "pre.block: no place");
    tb_block_destroy(T->ctx, b);
}
