/* SPDX-License-Identifier: MIT */
/* Random blocks: everything that makes a stream of width d of others. */
#ifndef TB_TESTS_RANDOM_FORMS_H
#define TB_TESTS_RANDOM_FORMS_H

#include "random_words.h"

/** How a stream is written. In `text` stand
 *   @    any stream
 *   & $  a stream that has a name, the same wherever it stands in the form
 *   ?    a constant that is not 0
 *   !    a learned scalar, ~ a vector
 *   `    a linear with a name */
typedef struct random_form {
    size_t weight;
    unsigned needs;
    const char *text;
} random_form;

static const random_form random_forms[] = {
    /* sums; what is added twice, what cancels */
    {24, 0, "(@ + @)"},
    {10, 0, "(@ - @)"},
    {3, 0, "(& + &)"},
    {2, 0, "(& - &)"},
    {4, 0, "(& + @ - &)"},
    {3, 0, "(@ + & + $ + &)"},
    /* constants and what is learned, as factors */
    {5, 0, "?*(@)"},
    {5, 0, "!*(@)"},
    {5, 0, "~*(@)"},
    {4, 0, "-(@)"},
    {3, 0, "@/?"},
    {3, 0, "@/!"},
    {3, 0, "(? - @)"},
    {3, 0, "(? + @)"},
    {2, 0, "(@ + 0*@)"},
    {2, 0, "(@ - (-2)*@)"},
    {2, 0, "(@ + (1 - 1)*scalar(1)*&)"},
    {2, 0, "(@ + vector(0)*0*$)"},
    /* gates and quotients */
    {6, 0, "sigmoid(@)*@"},
    {6, 0, "tanh(@)*@"},
    {4, 0, "norm(@)*@"},
    {4, 0, "&*&"},
    {3, 0, "sigmoid(&)*&"},
    {3, 0, "@/(2 + tanh(@))"},
    {3, 0, "&/(2 + &*&)"},
    {2, 0, "&*$*&"},
    /* norms of tokens */
    {12, 0, "norm(@)"},
    {3, 0, "norm(@, eps=1e-3)"},
    {3, 0, "norm(norm(@))"},
    {3, 0, "layernorm(@, eps=0.1)"},
    {3, 0, "layernorm(@, gain=false)"},
    {3, 0, "layernorm(@, bias=false, eps=1/d)"},
    {3, 0, "layernorm(@, eps_mode=outside, unbiased=true, eps=0.1)"},
    {2, 0, "layernorm(@, groups=2, eps=0.05)"},
    {2, 0, "layernorm(@, eps_mode=clamp, eps=0.3)"},
    {2, 0, "layernorm(@, variance=onepass, eps=0.1)"},
    {3, 0, "rmsnorm(@)"},
    {3, 0, "rmsnorm(@, gain=false, eps=1e-6)"},
    {2, 0, "rmsnorm(@, groups=heads, eps=0.01)"},
    {2, 0, "rmsnorm(@, eps_mode=clamp_square, eps=0.2)"},
    {2, 0, "rmsnorm(layernorm(@, eps=0.1), eps_mode=outside, eps=0.2)"},
    {2, 0, "scalenorm(@)"},
    {2, 0, "scalenorm(@, eps_mode=outside, eps=0.3, groups=2)"},
    {2, 0, "l2norm(@, eps=0.1)"},
    {2, 0, "l2norm(@, groups=heads, eps=0.7)"},
    {2, 0, "dyt(@)"},
    {2, 0, "derf(@)"},
    /* over tokens. Two tokens leave such a norm no direction but by eps: with
     * a small one its Jacobian is the rounding of what cancels */
    {2, RANDOM_TOKENS, "batchnorm(@, eps=0.1)"},
    {2, RANDOM_TOKENS, "batchnorm(@, eps=0.2, eps_mode=outside)"},
    {1, RANDOM_TOKENS, "batchnorm(@, eps=0.1, keep=exp(0*sum(&)))"},
    {2, RANDOM_TOKENS, "powernorm(@, eps=0.1)"},
    {2, RANDOM_TOKENS, "powernorm(@, eps=1/d)"},
    /* element by element */
    {2, 0, "relu(@)"},
    {2, 0, "gelu(@)"},
    {2, 0, "gelu_tanh(@)"},
    {2, 0, "silu(@)"},
    {2, 0, "sigmoid(@)"},
    {3, 0, "tanh(@)"},
    {2, 0, "exp(-abs(@))"},
    {2, 0, "exp(tanh(@))"},
    {1, 0, "abs(@)"},
    {2, 0, "softmax(@)"},
    {2, 0, "shift(@, ~)"},
    {2, 0, "shift(@, !)"},
    {2, 0, "headscale(@, vector(0.5, size=h))"},
    {1, RANDOM_STOPS, "maxdiv(@, to=2)"},
    {1, RANDOM_STOPS | RANDOM_TOKENS, "maxdiv(@, whole=true)"},
    {6, RANDOM_STOPS, "stop(@)"},
    {2, RANDOM_STOPS, "stop(&)*&"},
    {2, RANDOM_STOPS, "(& - stop(&) + @)"},
    {3, 0, "drop(@)"},
    {3, 0, "drop(@, 0)"},
    {2, RANDOM_DRAWS, "drop(@, 0.3)"},
    {2, RANDOM_DRAWS, "drop_branch(@, 0.4)"},
    {2, RANDOM_DRAWS, "(drop(&, 0.2) + drop(&, 0.2))"},
    /* products with weights */
    {5, 0, "`(@)"},
    {2, 0, "(`(&) - `($))"},
    {2, 0, "`(`(&))"},
    {3, 0, "project(@, d)"},
    {2, 0, "project(&*&, d, bias=false)"},
    /* side by side */
    {2, 0, "project(concat(@, @), d)"},
    {2, 0, "project(concat(&, &), d)"},
    {2, 0, "project(concat(&, @, &, groups=heads), d, bias=false)"},
    {2, 0, "concat(@)"},
    {2, RANDOM_ROPE, "rope(@)"},
    {2, RANDOM_ROPE, "rope(@, base=3)"},
    /* attention of streams: of one value, of two, of three */
    {3, RANDOM_WHOLE, "mha(@, @, @)"},
    {3, RANDOM_WHOLE, "mha(&, &, &)"},
    {2, RANDOM_WHOLE, "mha(&, &, @)"},
    {2, RANDOM_WHOLE, "mha(&, @, &)"},
    {2, RANDOM_WHOLE, "mha(@, &, &)"},
    {2, RANDOM_WHOLE, "mha(&, $, norm(&), scale=h/d)"},
    {2, RANDOM_WHOLE, "(& + mha(norm(&), norm($), &))"},
    {6, RANDOM_GROUPED, "mha(@, project(@, d/2), project(@, d/2))"},
    {4, RANDOM_GROUPED, "mha(&, project(&, d/2), project(&, d/2), scale=0.4)"},
    {3, RANDOM_MEMORY, "cross(@)"},
    {2, RANDOM_MEMORY | RANDOM_WHOLE, "mha(@, memory, memory)"},
    {2, RANDOM_MEMORY | RANDOM_WHOLE, "mha(&, memory, norm(memory))"},
    {2, RANDOM_MEMORY | RANDOM_WHOLE, "mha(@, memory*memory, memory)"},
    /* weights of streams. A factor for each token stands in a sum: a norm of
     * the product alone would leave nothing of the factor's derivative but
     * rounding */
    {2, 0, "mix(unit(vector(0.5, size=2)), @, @)"},
    {2, 0, "mix(vector(0.5, size=3), &, @, &)"},
    {2, RANDOM_TWO, "mix(vector(onehot(k), size=2), @, @)"},
    {2, RANDOM_TWO, "mix(matrix(3, 2, identity), @, @, row=k)"},
    {2, RANDOM_TWO, "mix(sinkhorn(matrix(2, 2, 0.1), rounds=3), @, @, row=k)"},
    {2, 0, "mix(unit(matrix(2, 2, 0.3), columns=true), @, &, row=2)"},
    {2, 0, "mix(sinkhorn(project(@, 4)/4, rounds=2), @, &, row=2)"},
    {1, 0,
     "mix(sinkhorn(tanh(project(&, 4)), rounds=2, columns_first=true), "
     "&, $)"},
    {2, 0, "mix(tanh(project(@, 2)), @, &)"},
    {3, 0, "(@ + mix(tanh(dot(@, @)/d), tanh(@)))"},
    {3, 0, "(@ + mix(tanh(dot(&, &)/d), sigmoid(&)))"},
    {2, 0, "(@ + mix(tanh(sum(@)/d), $))"},
    {2, 0, "(& - mix(mean(&), tanh(&)))"},
    {2, 0, "(@ - mix(tanh(dot($, &)/d), &))"},
    /* lists */
    {2, 0, "mean(list(@, @))"},
    {2, 0, "sum(list(&, @, &))"},
    {2, 0, "item(list(@, &), 1)"},
    {2, 0, "mix(vector(0.4, size=3), append(list(&, @), $))"},
    {2, 0, "sum(norm(list(&, @)))"},
    {2, 0, "mean(list(&, $)*list(@, &))"},
    {1, 0, "sum(tanh(list(&, &)) - list($, &))"},
    {1, 0, "project(concat(list(&, $)), d)"},
    {1, 0, "(@ + mix(tanh(item(dot(list(&, $), &), 0)/d), $))"},
    {5, RANDOM_PAST, "mean(past)"},
    {5, RANDOM_PAST, "item(past, 0)"},
    {4, RANDOM_PAST, "item(past, size(past) - 1)"},
    {5, RANDOM_PAST, "mix(vector(0.5, size=size(past)), past)"},
    {4, RANDOM_PAST, "sum(norm(past))/size(past)"},
    {3, RANDOM_PAST, "(@ - sum(past*past)/size(past))"},
    /* functions read what they are given more than once */
    {4, RANDOM_FUNCTIONS, "f(@)"},
    {4, RANDOM_FUNCTIONS, "g(@, @)"},
    {3, RANDOM_FUNCTIONS, "g(&, &)"},
    {3, RANDOM_FUNCTIONS, "p(@)"},
    {4, RANDOM_FUNCTIONS | RANDOM_WHOLE, "t(@, @)"},
    {2, RANDOM_FUNCTIONS | RANDOM_WHOLE, "t(&, &)"},
};

static inline void random_stream(random_text *r, int depth);

static inline void random_linear(random_text *r)
{
    /* none yet: an activation may stand there as well */
    random_put(r, r->names[RANDOM_LINEAR] ? random_name(r, RANDOM_LINEAR)
                                          : "gelu");
}

static inline void random_fill(random_text *r, const char *text, int depth)
{
    const char *one = random_name(r, RANDOM_STREAM);
    const char *two = random_name(r, RANDOM_STREAM);
    for (const char *c = text; *c; c++)
        if (*c == '@')
            random_stream(r, depth - 1);
        else if (*c == '&' || *c == '$')
            random_put(r, *c == '&' ? one : two);
        else if (*c == '?')
            random_const(r);
        else if (*c == '!')
            random_scalar(r);
        else if (*c == '~')
            random_vector(r);
        else if (*c == '`')
            random_linear(r);
        else
            tb_buf_printf(r->out, "%c", *c);
}

static inline void random_any_form(random_text *r, int depth)
{
    size_t all = 0, i = 0;
    for (size_t k = 0; k < TB_LEN(random_forms); k++)
        if (!(random_forms[k].needs & ~r->can))
            all += random_forms[k].weight;
    all = random_below(r, all);
    for (;; i++) {
        if (random_forms[i].needs & ~r->can)
            continue;
        if (all < random_forms[i].weight)
            break;
        all -= random_forms[i].weight;
    }
    random_fill(r, random_forms[i].text, depth);
}

static inline void random_sublayer(random_text *r, int depth)
{
    size_t nsub = r->nsub;
    const char *name = r->sub[random_below(r, nsub)];
    r->calls--;
    r->nsub = 0; /* sublayers do not nest */
    if (random_chance(r, 0.5))
        depth = 0;
    tb_buf_printf(r->out, "%s(", name);
    random_fill(r, random_chance(r, 0.6) ? "norm(@)" : "@", depth);
    random_put(r, ")");
    r->nsub = nsub;
}

static inline void random_stream(random_text *r, int depth)
{
    bool calls = r->nsub && r->calls > 0 && random_chance(r, 0.1);
    if (depth <= 0 || r->forms <= 0 || random_chance(r, 0.12)) {
        random_put(r, random_name(r, RANDOM_STREAM));
        return;
    }
    r->forms--;
    if (calls)
        random_sublayer(r, depth - 1);
    else
        random_any_form(r, depth);
}

#endif
