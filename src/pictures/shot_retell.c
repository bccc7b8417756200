/* SPDX-License-Identifier: MIT */
/* RETELL: all of it in plain words, three of them missing, above the three
 * drawings it is told by. */
#include "pictures/shot_drawn.h"
#include "tollbooth/cards.h"

enum { BLANKS = 3, ALSO = 6, WORDS = 256, GUESS = 24 };

/* {1} is the first missing word. */
static const char *const paragraphs[] = {
    "Every floor is a box that rewrites a list of numbers. We do not trust it "
    "with the list: we keep the old one and {1} what the box says. Ask how far "
    "the output moves when the input does, and the answer has two parts: "
    "whatever the box gives, and a guaranteed {2} from the copy that was kept. "
    "That is the road home for the learning signal.",
    "A norm is another box, one that tidies a list to mean 0 and spread 1. The "
    "only question is where it parks. After the plus, the guaranteed 1 has to "
    "squeeze through the {3} on every floor, and how much of it comes out "
    "depends on the data. In the branch, the norm tidies what the box reads "
    "and leaves the road alone."};

/* The word that stands there, and others that are as good. */
static const char *const blanks[BLANKS][ALSO] = {
    {"add"},
    {"1", "one", "identity", "i"},
    {"norm", "layernorm", "booth", "tollbooth", "toll", "layer norm"}};

static const char *const inputs[BLANKS] = {"first", "second", "third"};

typedef struct retelling {
    shot_words_of words;
    const char *guess[BLANKS];
    bool right[BLANKS], uncovered;
} retelling;

/* --- the words ------------------------------------------------------------ */

static bool same_word(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a >= 'A' && *a <= 'Z' ? *a - 'A' + 'a' : *a) != *b)
            return false;
    return *a == *b;
}

static void read_guesses(tb_shot *s, retelling *r)
{
    r->uncovered = shot_on(s, "uncover");
    for (size_t k = 0; k < BLANKS; k++) {
        const char *guess = shot_get(s, inputs[k])->text;
        for (size_t i = 0; i < ALSO && blanks[k][i]; i++)
            r->right[k] = r->right[k] || same_word(guess, blanks[k][i]);
        r->guess[k] = tb_shorten(&s->arena, guess, GUESS);
    }
}

/* A missing word with what follows it up to the next blank. */
static shot_word blank(tb_shot *s, const retelling *r, size_t k,
                       const char *rest)
{
    const char *guess = r->guess[k] ? r->guess[k] : "", *text;
    shot_word w = {.tone = TB_TONE_IN,
                   .bold = true,
                   .role = "blank",
                   .id = shot_text(s, "blank-%zu", k + 1)};
    if (!r->uncovered)
        text = shot_text(s, "[%s]", *guess ? guess : "\xE2\x80\xA6");
    else if (r->right[k])
        text = shot_text(s, "%s (right)", guess);
    else if (*guess)
        text = shot_text(s, "%s (you wrote: %s)", blanks[k][0], guess);
    else
        text = blanks[k][0];
    if (r->uncovered)
        w.tone = r->right[k] ? TB_TONE_LANE : TB_TONE_BAD;
    w.text = shot_text(s, "%s%s", text ? text : "", rest);
    return w;
}

static tb_status write_words(tb_shot *s, retelling *r)
{
    shot_word *w = shot_alloc(s, WORDS, sizeof *w);
    size_t n = 0;
    if (!w)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < TB_LEN(paragraphs); i++) {
        for (const char *p = paragraphs[i]; *p && n + 1 < WORDS; n++) {
            const char *text = shot_next_word(s, &p);
            w[n] = *text == '{' ? blank(s, r, (size_t)(text[1] - '1'), text + 3)
                                : (shot_word){.text = text};
        }
        w[n - 1].ends_line = true;
        w[n++] = (shot_word){.text = "", .ends_line = true};
    }
    r->words = (shot_words_of){w, n - 1}; /* no gap after the last */
    return s->status;
}

/* --- faces ---------------------------------------------------------------- */

static tb_status scene(tb_ctx *ctx, const void *data, tb_scene **out)
{
    return shot_words.scene(ctx, &((const retelling *)data)->words, out);
}

static tb_status term(tb_ctx *ctx, const void *data, const tb_terminal *how,
                      tb_out *out)
{
    return shot_words.term(ctx, &((const retelling *)data)->words, how, out);
}

static void json(const void *data, tb_json *j)
{
    const retelling *r = data;
    tb_json_array(j, "paragraphs");
    for (size_t i = 0; i < TB_LEN(paragraphs); i++)
        tb_json_string(j, NULL, paragraphs[i]);
    tb_json_end(j);
    tb_json_array(j, "blanks");
    for (size_t k = 0; k < BLANKS; k++) {
        tb_json_object(j, NULL);
        tb_json_array(j, "answers");
        for (size_t i = 0; i < ALSO && blanks[k][i]; i++)
            tb_json_string(j, NULL, blanks[k][i]);
        tb_json_end(j);
        tb_json_bool(j, "right", r->right[k]);
        tb_json_end(j);
    }
    tb_json_end(j);
}

static const shot_face face = {"retelling", scene, term, NULL, json};

/* --- shot ----------------------------------------------------------------- */

/* The skip, the booth on the road, the booth in the branch; what the words say
 * of them is asked of their graphs. */
static tb_status draw(tb_shot *s)
{
    int skip, post, pre;
    tb_proof p;
    TB_TRY(shot_draw(s, "x = x + F(x)", "S2: the skip", false, &skip));
    TB_TRY(shot_draw(s, "x = norm(x + F(x))", "S5: the booth on the road", true,
                     &post));
    TB_TRY(shot_draw(s, "x = x + F(norm(x))", "S6: the booth in the branch",
                     false, &pre));
    TB_TRY(tb_card_prove(s->ctx, tb_card_find("recall-jacobian"), &p));
    shot_check_that(s, p.ok && p.n == 1,
                    "the guaranteed 1: a box that gives nothing leaves I");
    shot_check_that(s, post > 0 && !skip && !pre,
                    "norms on the road of a block of two sublayers: %d, %d and "
                    "%d",
                    skip, post, pre);
    return TB_OK;
}

static tb_status build(tb_shot *s)
{
    retelling *r = shot_alloc(s, 1, sizeof *r);
    size_t right = 0;
    if (!r)
        return TB_ERR_MEMORY;
    read_guesses(s, r);
    TB_TRY(write_words(s, r));
    for (size_t k = 0; k < BLANKS; k++)
        right += r->right[k];
    shot_title(s, "Say it back in plain words",
               "The story of the residual and of the norm's two places, with "
               "three words to fill in.");
    shot_below(s, &face, r);
    TB_TRY(draw(s));
    shot_tell(s, "blanks", "missing words", BLANKS);
    shot_tell(s, "right", "of them right", (double)right);
    shot_say(s, r->uncovered
                    ? "{right} of {blanks} as they stand here; another word "
                      "may do."
                    : "{blanks} words are missing. Write them (first, second, "
                      "third), then uncover the text and mark yourself.");
    return TB_OK;
}

#define BLANK_INPUT(name_)                                                     \
    {                                                                          \
        name_, name_ " missing word", TB_SHOT_TEXT, "", 0, 0, .step = 0        \
    }

const shot_row shot_retell = {
    .name = "RETELL",
    .about = "the story in plain words, three of them missing",
    .input = {BLANK_INPUT("first"),
              BLANK_INPUT("second"),
              BLANK_INPUT("third"),
              {"uncover", "uncover the words", TB_SHOT_SWITCH, "0", 0, 1,
               .step = 1}},
    .build = build,
};
