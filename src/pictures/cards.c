/* SPDX-License-Identifier: MIT */
/* The cards: six of the walkthrough's recall, ten questions and eight
 * checklist items of the foundations, with what the engine can say to each. */
#include "pictures/cards_parts.h"

const char *const tb_deck_names[TB_DECKS] = {"recall", "inline", "checklist"};

#define D 8
#define VECTOR(name, values)                                                   \
    {                                                                          \
        name, TB_LEN(values), values                                           \
    }

/* mean 5, variance 4, standard deviation 2: all exact */
static const double z[D] = {2, 4, 4, 4, 5, 5, 7, 9};
static const double far_z[D] = {102, 104, 104, 104, 105, 105, 107, 109};
static const double flat[] = {3, 3, 3, 3};
static const double ones[D] = {1, 1, 1, 1, 1, 1, 1, 1};
static const double four_ones[] = {1, 1, 1, 1};
static const double twos[D] = {2, 2, 2, 2, 2, 2, 2, 2};
static const double fives[D] = {5, 5, 5, 5, 5, 5, 5, 5};
static const double third[D] = {0, 0, 1, 0, 0, 0, 0, 0};
static const double eighth[D] = {0, 0, 0, 0, 0, 0, 0, 1};
static const double one[] = {1};

/* mean over the features of (x - mean)^2, u being ones */
#define VARIANCE "c = x - mix(mean(x), u); "

const card_row tb_card_rows[] = {
    /* --- recall ---------------------------------------------------------- */
    {.card = {.id = "recall-jacobian",
              .deck = "recall",
              .question = "In y = x + F(x), what is the Jacobian, and why does "
                          "it help?",
              .question_tex = "In \\(y = x + F(x)\\), what is the Jacobian, "
                              "and why does it help?",
              .answer = "I + ∂F/∂x. The I comes from the skip and never "
                        "vanishes: however small the box's part is, a "
                        "full-strength gradient flows back along the skip. "
                        "(That is a promise about the path: the sum of both "
                        "parts is small where the box's part points the other "
                        "way.)",
              .answer_tex = "\\(I + \\partial F/\\partial x\\). The \\(I\\) "
                            "comes from the skip and never vanishes: however "
                            "small the box's part is, a full-strength gradient "
                            "flows back along the skip. (That is a promise "
                            "about the path: the sum of both parts is small "
                            "where the box's part points the other way.)",
              .shot = "S3",
              .settings = "scale=0"},
     .claim = {.read = claim_identity,
               .what = "largest entry of |J - I| where F = 0",
               .text = "x + ffn(x)",
               .set = {VECTOR("x", z)},
               .init = "*: zeros",
               .jacobian = "x",
               .n = 1}},
    {.card = {.id = "recall-post-ln",
              .deck = "recall",
              .question = "Where does Post-LN place LayerNorm relative to the "
                          "add?",
              .question_tex = "Where does Post-LN place LayerNorm relative to "
                              "the add?",
              .answer = "After the residual add: LayerNorm wraps x_i + F(x_i) "
                        "and so stands on the highway, one toll for each "
                        "sublayer.",
              .answer_tex = "After the residual add: LayerNorm wraps \\(x_i + "
                            "F(x_i)\\) and so stands on the highway, one toll "
                            "for each sublayer.",
              .shot = "S5",
              .settings = ""},
     .claim = {.read = claim_tolls,
               .what = "norms on the lane of one block (attention and "
                       "feed-forward)",
               .text = "post-ln",
               .n = 1,
               .expected = {2}}},
    {.card = {.id = "recall-pre-ln",
              .deck = "recall",
              .question = "Where does Pre-LN place LayerNorm?",
              .question_tex = "Where does Pre-LN place LayerNorm?",
              .answer = "Before the sublayer, inside the branch; the raw x_i "
                        "is added back un-normalized.",
              .answer_tex = "Before the sublayer, inside the branch; the raw "
                            "\\(x_i\\) is added back un-normalized.",
              .shot = "S6",
              .settings = ""},
     .claim = {.read = claim_tolls,
               .what = "norms on the lane of one block",
               .text = "pre-ln",
               .n = 1,
               .expected = {0}}},
    {.card = {.id = "recall-uniform",
              .deck = "recall",
              .question = "Why does Pre-LN give more uniform gradients across "
                          "depth?",
              .question_tex = "Why does Pre-LN give more uniform gradients "
                              "across depth?",
              .answer =
                  "Its backward Jacobian is I + ∂F·J_LN: the I stands "
                  "alone, so LayerNorm is never a bottleneck of the "
                  "residual highway. The lane's gain is exactly 1 at "
                  "every depth; the total gradient is the lane and the "
                  "branches together, and at initial values grows towards "
                  "the input.",
              .answer_tex = "Its backward Jacobian is \\(I + \\partial F "
                            "J_{\\mathrm{LN}}\\): the \\(I\\) stands alone, so "
                            "LayerNorm is never a bottleneck of the residual "
                            "highway. The lane's gain is exactly 1 at every "
                            "depth; the total gradient is the lane and the "
                            "branches together, and at initial values grows "
                            "towards the input.",
              .shot = "S6",
              .settings = "N=12"},
     .claim = {.read = claim_lane,
               .what = "least and largest gain of the lane, 12 blocks",
               .text = "pre-ln",
               .n = 2,
               .expected = {1, 1}}},
    {.card = {.id = "recall-eps",
              .deck = "recall",
              .question = "What is the tiny ε inside LayerNorm for?",
              .question_tex = "What is the tiny \\(\\epsilon\\) inside "
                              "LayerNorm for?",
              .answer = "It keeps √(σ² + ε) above zero when the variance σ² "
                        "goes to 0, so that nothing is divided by zero: the "
                        "largest gain of LayerNorm ends at 1/√ε, 316.23 where "
                        "ε = 1e-5.",
              .answer_tex = "It keeps \\(\\sqrt{\\sigma^2 + \\epsilon}\\) "
                            "above zero when the variance \\(\\sigma^2\\) goes "
                            "to 0, so that nothing is divided by zero: the "
                            "largest gain of LayerNorm ends at "
                            "\\(1/\\sqrt{\\epsilon}\\), 316.23 where "
                            "\\(\\epsilon = 10^{-5}\\).",
              .shot = "S7",
              .settings = "card=b;sigma=0;eps=1e-5"},
     .claim = {.read = claim_gain,
               .what = "largest gain of J_LN where σ = 0, ε = 1e-5",
               .text = "layernorm(x, eps=1e-5)",
               .set = {VECTOR("x", flat)},
               .jacobian = "x",
               .n = 1,
               .expected = {316.22776601683796},
               .tolerance = 1e-12}},
    {.card = {.id = "recall-warmup",
              .deck = "recall",
              .question = "Does Pre-LN eliminate learning-rate warm-up?",
              .question_tex = "Does Pre-LN eliminate learning-rate warm-up?",
              .answer = "Two positions. The walkthrough: no, it forgives more, "
                        "but large models still warm up. Xiong et al. 2020 "
                        "(arXiv 2002.04745): in their experiments it could go; "
                        "Pre-LN without warm-up came as far as Post-LN with "
                        "it, about 34 BLEU on IWSLT14 De-En, where Post-LN "
                        "without it stopped at 8.45.",
              .answer_tex = "Two positions. The walkthrough: no, it forgives "
                            "more, but large models still warm up. Xiong et "
                            "al. 2020 (arXiv 2002.04745): in their experiments "
                            "it could go; Pre-LN without warm-up came as far "
                            "as Post-LN with it, about 34 BLEU on IWSLT14 "
                            "De-En, where Post-LN without it stopped at 8.45.",
              .shot = "N7",
              .settings = ""}},
    /* --- inline ---------------------------------------------------------- */
    {.card = {.id = "inline-subscript-j",
              .deck = "inline",
              .question = "What does the subscript in x_j pick out?",
              .question_tex = "What does the subscript in \\(x_j\\) pick out?",
              .answer = "The value on dial number j inside one vector.",
              .answer_tex = "The value on dial number \\(j\\) inside one "
                            "vector.",
              .shot = "F1",
              .settings = ""},
     .claim = {.read = claim_value,
               .what = "x_3 of (2,4,4,4,5,5,7,9)",
               .text = "dot(x, e)",
               .set = {VECTOR("x", z), VECTOR("e", third)},
               .n = 1,
               .expected = {4}}},
    {.card = {.id = "inline-width",
              .deck = "inline",
              .question = "What is d?",
              .question_tex = "What is \\(d\\)?",
              .answer = "How many features (dials) the vector has: the width "
                        "of the model.",
              .answer_tex = "How many features (dials) the vector has: the "
                            "width of the model.",
              .shot = "F1",
              .settings = ""},
     .claim = {.read = claim_value,
               .what = "features of (2,4,4,4,5,5,7,9), counted as ones",
               .text = "sum(x/x)",
               .set = {VECTOR("x", z)},
               .n = 1,
               .expected = {8}}},
    {.card = {.id = "inline-same-length",
              .deck = "inline",
              .question = "Why can we write x + F(x) at all?",
              .question_tex = "Why can we write \\(x + F(x)\\) at all?",
              .answer = "Because F returns a vector of the same length d as x. "
                        "A box that returns d + 1 numbers is refused.",
              .answer_tex = "Because \\(F\\) returns a vector of the same "
                            "length \\(d\\) as \\(x\\). A box that returns "
                            "\\(d + 1\\) numbers is refused.",
              .shot = "F2",
              .settings = "wrong=1"},
     .claim = {.read = claim_refused,
               .what = "exit code where F returns d + 1 numbers (3: refused)",
               .text = "w = linear(d, d + 1); x + w(x)",
               .says = "widths differ: 8 and 1*d + 1 = 9",
               .set = {VECTOR("x", z)},
               .n = 1,
               .expected = {3}}},
    {.card = {.id = "inline-skip",
              .deck = "inline",
              .question = "What does the word “skip” refer to?",
              .question_tex = "What does the word “skip” refer to?",
              .answer = "The copy of x that goes around F instead of through "
                        "it.",
              .answer_tex = "The copy of \\(x\\) that goes around \\(F\\) "
                            "instead of through it.",
              .shot = "F3",
              .settings = "broken=1"},
     .claim = {.read = claim_passed,
               .what = "largest |gradient in - gradient out|, the road through "
                       "F broken",
               .text = "x + stop(ffn(x))",
               .set = {VECTOR("x", z)},
               .cotangent = z,
               .ncotangent = D,
               .n = 1}},
    {.card = {.id = "inline-variance",
              .deck = "inline",
              .question = "Why is μ subtracted inside the variance?",
              .question_tex = "Why is \\(\\mu\\) subtracted inside the "
                              "variance?",
              .answer = "To measure spread relative to the centre, not "
                        "relative to zero: 100 more on every dial changes "
                        "nothing.",
              .answer_tex = "To measure spread relative to the centre, not "
                            "relative to zero: 100 more on every dial changes "
                            "nothing.",
              .shot = "F4",
              .settings = ""},
     .claim = {.read = claim_value,
               .what = "σ² of (102,104,104,104,105,105,107,109), and the mean "
                       "of its squares",
               .text = VARIANCE "concat(mean(c*c), mean(x*x))",
               .set = {VECTOR("x", far_z), VECTOR("u", ones)},
               .n = 2,
               .expected = {4, 11029}}},
    {.card = {.id = "inline-sigma",
              .deck = "inline",
              .question = "What does σ tell you, in one phrase?",
              .question_tex = "What does \\(\\sigma\\) tell you, in one "
                              "phrase?",
              .answer = "The typical size of a feature's deviation from the "
                        "mean.",
              .answer_tex = "The typical size of a feature's deviation from "
                            "the mean.",
              .shot = "F4",
              .settings = ""},
     .claim = {.read = claim_value,
               .what = "σ of (2,4,4,4,5,5,7,9)",
               .text = "mean(x*layernorm(x, eps=0))",
               .set = {VECTOR("x", z)},
               .n = 1,
               .expected = {2},
               .tolerance = 1e-12}},
    {.card = {.id = "inline-gain-bias",
              .deck = "inline",
              .question = "What do γ and β let the model do after "
                          "standardizing?",
              .question_tex = "What do \\(\\gamma\\) and \\(\\beta\\) let the "
                              "model do after standardizing?",
              .answer = "Re-stretch (γ) and re-shift (β) each feature, so that "
                        "the norm does not force mean 0 and spread 1 on a "
                        "model that prefers otherwise. γ = σ and β = μ undo "
                        "it.",
              .answer_tex = "Re-stretch (\\(\\gamma\\)) and re-shift "
                            "(\\(\\beta\\)) each feature, so that the norm "
                            "does not force mean 0 and spread 1 on a model "
                            "that prefers otherwise. \\(\\gamma = \\sigma\\) "
                            "and \\(\\beta = \\mu\\) undo it.",
              .shot = "F5",
              .settings = "undo=1"},
     .claim = {.read = claim_same,
               .what = "largest |y - x| where γ = 2 = σ and β = 5 = μ",
               .text = "layernorm(x, eps=0)",
               .set = {VECTOR("x", z), VECTOR("layernorm.gain", twos),
                       VECTOR("layernorm.bias", fives)},
               .n = 1,
               .tolerance = 1e-12}},
    {.card = {.id = "inline-eps-zero",
              .deck = "inline",
              .question = "What breaks if ε = 0 and all features are equal?",
              .question_tex = "What breaks if \\(\\epsilon = 0\\) and all "
                              "features are equal?",
              .answer = "Division by zero, because σ = 0: there is no value, "
                        "and tollbooth says so instead of printing one.",
              .answer_tex = "Division by zero, because \\(\\sigma = 0\\): "
                            "there is no value, and tollbooth says so instead "
                            "of printing one.",
              .shot = "S7",
              .settings = "card=b;sigma=0;eps=0"},
     .claim = {.read = claim_refused,
               .what = "exit code where σ = 0, ε = 0 (3: refused)",
               .text = "layernorm(x, eps=0)",
               .says = "zero variance with eps = 0",
               .set = {VECTOR("x", flat)},
               .n = 1,
               .expected = {3}}},
    {.card = {.id = "inline-stream",
              .deck = "inline",
              .question = "In Pre-LN, is the residual stream x_i ever "
                          "normalized?",
              .question_tex = "In Pre-LN, is the residual stream \\(x_i\\) "
                              "ever normalized?",
              .answer = "No: LayerNorm sits only inside the branch, so the "
                        "highway is untouched. (One final norm follows the "
                        "last block.)",
              .answer_tex = "No: LayerNorm sits only inside the branch, so the "
                            "highway is untouched. (One final norm follows the "
                            "last block.)",
              .shot = "S6",
              .settings = ""},
     .claim = {.read = claim_same,
               .what = "largest |y - x| where the box gives nothing",
               .text = "x + ffn(norm(x))",
               .set = {VECTOR("x", z)},
               .init = "ffn.*: zeros",
               .n = 1}},
    {.card = {.id = "inline-subscript-i",
              .deck = "inline",
              .question = "What does the subscript i in x_i mean?",
              .question_tex = "What does the subscript \\(i\\) in \\(x_i\\) "
                              "mean?",
              .answer = "Which layer (floor of the tower) we are on: x_i is a "
                        "whole vector, not a single feature.",
              .answer_tex = "Which layer (floor of the tower) we are on: "
                            "\\(x_i\\) is a whole vector, not a single "
                            "feature.",
              .shot = "F6",
              .settings = ""},
     .claim = {.read = claim_floors,
               .what = "streams x_0, ..., x_24 of 12 blocks of two sublayers",
               .text = "pre-ln",
               .n = 1,
               .expected = {25}}},
    /* --- checklist ------------------------------------------------------- */
    {.card = {.id = "check-bars",
              .deck = "checklist",
              .question = "I can read x = (x_1, …, x_d) as a bar chart of d "
                          "dials.",
              .question_tex = "I can read \\(x = (x_1, \\dots, x_d)\\) as a "
                              "bar chart of \\(d\\) dials.",
              .answer = "Yes: each x_j is one dial's height.",
              .answer_tex = "Yes: each \\(x_j\\) is one dial's height.",
              .shot = "F1",
              .settings = "j=8"},
     .claim = {.read = claim_value,
               .what = "height of bar 8 of (2,4,4,4,5,5,7,9)",
               .text = "dot(x, e)",
               .set = {VECTOR("x", z), VECTOR("e", eighth)},
               .n = 1,
               .expected = {9}}},
    {.card = {.id = "check-gradient",
              .deck = "checklist",
              .question = "I can say in one line what the “learning signal / "
                          "gradient” is.",
              .question_tex = "I can say in one line what the “learning signal "
                              "/ gradient” is.",
              .answer = "A little arrow per dial that says turn up or down and "
                        "by how much, passed backward down the tower.",
              .answer_tex = "A little arrow per dial that says turn up or down "
                            "and by how much, passed backward down the tower.",
              .shot = "F3",
              .settings = ""},
     .claim = {.read = claim_gradient,
               .what = "gradient of x_1² + … + x_8² at (2,4,4,4,5,5,7,9)",
               .text = "dot(x, x)",
               .set = {VECTOR("x", z)},
               .cotangent = one,
               .ncotangent = 1,
               .n = 8,
               .expected = {4, 8, 8, 8, 10, 10, 14, 18}}},
    {.card = {.id = "check-same-length",
              .deck = "checklist",
              .question = "I know why x + F(x) is even allowed.",
              .question_tex = "I know why \\(x + F(x)\\) is even allowed.",
              .answer = "Because F returns a same-length vector, so addition "
                        "makes sense.",
              .answer_tex = "Because \\(F\\) returns a same-length vector, so "
                            "addition makes sense.",
              .shot = "F2",
              .settings = ""},
     .claim = {.read = claim_value,
               .what = "features of F(x), x having 8, counted as ones",
               .text = "y = ffn(x); sum(y/y)",
               .set = {VECTOR("x", z)},
               .n = 1,
               .expected = {8}}},
    {.card = {.id = "check-mean-variance",
              .deck = "checklist",
              .question = "I can compute μ and σ² of a small vector by hand.",
              .question_tex = "I can compute \\(\\mu\\) and \\(\\sigma^2\\) of "
                              "a small vector by hand.",
              .answer = "Mean: the average of the features. Variance: the "
                        "average squared distance from the mean. Of "
                        "(2,4,4,4,5,5,7,9): μ = 40/8 = 5, σ² = 32/8 = 4.",
              .answer_tex = "Mean: the average of the features. Variance: the "
                            "average squared distance from the mean. Of "
                            "\\((2,4,4,4,5,5,7,9)\\): \\(\\mu = 40/8 = 5\\), "
                            "\\(\\sigma^2 = 32/8 = 4\\).",
              .shot = "F4",
              .settings = ""},
     .claim = {.read = claim_value,
               .what = "μ and σ² of (2,4,4,4,5,5,7,9)",
               .text = VARIANCE "concat(mean(x), mean(c*c))",
               .set = {VECTOR("x", z), VECTOR("u", ones)},
               .n = 2,
               .expected = {5, 4}}},
    {.card = {.id = "check-symbols",
              .deck = "checklist",
              .question = "I can state what γ, β, ε and ⊙ each do in "
                          "LayerNorm.",
              .question_tex = "I can state what \\(\\gamma\\), \\(\\beta\\), "
                              "\\(\\epsilon\\) and \\(\\odot\\) each do in "
                              "LayerNorm.",
              .answer = "Scale, shift, guard against division by zero, "
                        "multiply element by element: dial j times γ_j, no "
                        "mixing.",
              .answer_tex = "Scale, shift, guard against division by zero, "
                            "multiply element by element: dial \\(j\\) times "
                            "\\(\\gamma_j\\), no mixing.",
              .shot = "F5",
              .settings = ""},
     .claim = {.read = claim_beside,
               .what = "largest entry beside the diagonal of ∂(γ⊙ẑ)/∂γ",
               .text = "gamma*layernorm(x)",
               .set = {VECTOR("x", z), VECTOR("gamma", twos)},
               .jacobian = "gamma",
               .n = 1}},
    {.card = {.id = "check-placement",
              .deck = "checklist",
              .question = "I can tell Post-LN from Pre-LN by looking at where "
                          "LayerNorm sits.",
              .question_tex = "I can tell Post-LN from Pre-LN by looking at "
                              "where LayerNorm sits.",
              .answer = "Post-LN wraps the whole sum; Pre-LN wraps only the "
                        "input to F and leaves the skip road clean.",
              .answer_tex = "Post-LN wraps the whole sum; Pre-LN wraps only "
                            "the input to \\(F\\) and leaves the skip road "
                            "clean.",
              .shot = "F6",
              .settings = ""},
     .claim = {.read = claim_tolls,
               .what = "norms on the lane of one block, Post-LN and Pre-LN",
               .text = "post-ln pre-ln",
               .n = 2,
               .expected = {2, 0}}},
    {.card = {.id = "check-subscripts",
              .deck = "checklist",
              .question = "I know the difference between x_j (a feature) and "
                          "x_i (a whole layer's vector).",
              .question_tex = "I know the difference between \\(x_j\\) (a "
                              "feature) and \\(x_i\\) (a whole layer's "
                              "vector).",
              .answer = "x_j is one dial inside a vector; x_i is the entire "
                        "vector at floor i.",
              .answer_tex = "\\(x_j\\) is one dial inside a vector; \\(x_i\\) "
                            "is the entire vector at floor \\(i\\).",
              .shot = "F6",
              .settings = ""},
     .claim = {.read = claim_value,
               .what = "one dial of (2,4,4,4,5,5,7,9), x_3, and how many the "
                       "vector has",
               .text = "concat(dot(x, e), sum(x/x))",
               .set = {VECTOR("x", z), VECTOR("e", third)},
               .n = 2,
               .expected = {4, 8}}},
    {.card = {.id = "check-flat",
              .deck = "checklist",
              .question = "I know the failure case that forces ε > 0.",
              .question_tex = "I know the failure case that forces "
                              "\\(\\epsilon > 0\\).",
              .answer = "A flat vector: every feature is equal, so σ = 0.",
              .answer_tex = "A flat vector: every feature is equal, so "
                            "\\(\\sigma = 0\\).",
              .shot = "S7",
              .settings = "card=b;sigma=0;eps=1e-5"},
     .claim = {.read = claim_value,
               .what = "σ² of (3,3,3,3)",
               .text = VARIANCE "mean(c*c)",
               .set = {VECTOR("x", flat), VECTOR("u", four_ones)},
               .n = 1}},
};

const size_t tb_card_rows_count = TB_LEN(tb_card_rows);

size_t tb_card_count(void)
{
    return tb_card_rows_count;
}

const tb_card *tb_card_at(size_t i)
{
    return &tb_card_rows[i].card;
}

size_t tb_card_find(const char *id)
{
    size_t i = 0;
    while (i < tb_card_rows_count && !tb_streq(tb_card_rows[i].card.id, id))
        i++;
    return i;
}

void tb_cards_shuffle(uint64_t seed, size_t *cards, size_t n)
{
    tb_rng r = tb_rng_make(seed, "cards");
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)tb_rng_below(r, i, i);
        size_t t = cards[i - 1];
        cards[i - 1] = cards[k];
        cards[k] = t;
    }
}
