/* SPDX-License-Identifier: MIT */
/* Random blocks that mean something: every construct the graph builder takes,
 * well typed, from a seed. The same seed gives the same text. */
#ifndef TB_TESTS_RANDOM_BLOCK_H
#define TB_TESTS_RANDOM_BLOCK_H

#include "random_forms.h"
#include "tollbooth/block.h"

#include <stdlib.h>

typedef struct random_seeds {
    uint64_t from, to;
    bool enough; /* for claims about how many there are of something */
} random_seeds;

/** random_asked - `n` seeds from 1 on; TB_RANDOM_BLOCKS=20000 takes so many,
 * TB_RANDOM_FROM=7 begins with that. */
static inline random_seeds random_asked(uint64_t n)
{
    const char *first = getenv("TB_RANDOM_FROM");
    const char *many = getenv("TB_RANDOM_BLOCKS");
    uint64_t from = first ? strtoull(first, NULL, 10) : 1;
    uint64_t count = many ? strtoull(many, NULL, 10) : n;
    return (random_seeds){from, from + count, count >= n};
}

static inline void worse(double *most, double v)
{
    if (*most == *most && !(v <= *most)) /* keeps a NaN */
        *most = v;
}

/** A text, and the sizes it is meant for. */
typedef struct random_drawn {
    tb_buf text;
    size_t width, heads;
    int stack; /* tb_stacks */
} random_drawn;

/* --- statements ----------------------------------------------------------- */

/* d to 2d and back, as a function. */
static inline void random_bottle(random_text *r)
{
    char name[RANDOM_NAME_CHARS];
    size_t n = ++r->made;
    tb_format(name, sizeof name, "r%zu", n);
    tb_buf_printf(r->out,
                  "    m%zu = linear(d, 2*d)\n"
                  "    n%zu = linear(2*d, d, bias=false)\n"
                  "    r%zu(a) = n%zu(tanh(m%zu(a)))\n",
                  n, n, n, n, n);
    random_bind(r, RANDOM_LINEAR, name);
}

static inline void random_local(random_text *r)
{
    static const char *const starts[][2] = {
        [RANDOM_STREAM] = {"u", ""},
        [RANDOM_SCALAR] = {"s", "scalar(0.5)"},
        [RANDOM_VECTOR] = {"w", "vector(1e-1)"},
        [RANDOM_LINEAR] = {"m", "linear(d, d)"},
        [RANDOM_CONST] = {"c", ""},
    };
    random_kind kind =
        (random_kind)(random_chance(r, 0.5) ? RANDOM_STREAM
                                            : random_below(r, RANDOM_KINDS));
    char name[RANDOM_NAME_CHARS];
    if (kind == RANDOM_LINEAR && random_chance(r, 0.5)) {
        random_bottle(r);
        return;
    }
    tb_format(name, sizeof name, "%s%zu", starts[kind][0], ++r->made);
    tb_buf_printf(r->out, "    %s = %s", name, starts[kind][1]);
    r->forms = 3;
    if (kind == RANDOM_STREAM)
        random_stream(r, 2);
    else if (kind == RANDOM_CONST)
        random_const(r);
    else if (kind == RANDOM_LINEAR && random_chance(r, 0.3))
        r->out->len--, random_put(r, ", bias=false)");
    random_put(r, "\n");
    random_bind(r, kind, name);
}

/* x = lane + branch, in one of the usual forms or in any. */
static inline void random_update(random_text *r, const char *stream)
{
    static const char *const lanes[] = {
        "norm(x + ", "x + (@) + ", "?*x + !*", "x + ", "(x - ", "(x + x) - "};
    tb_buf_printf(r->out, "    %s = ", stream);
    r->calls = 3;
    r->forms = 8;
    size_t which = random_below(r, r->nsub ? TB_LEN(lanes) + 1 : 1);
    if (which == 0) {
        random_stream(r, 4);
    } else {
        const char *lane = lanes[which - 1];
        random_fill(r, lane, 1);
        random_sublayer(r, 2);
        random_put(r, strchr(lane, '(') && !strchr(lane, ')') ? ")" : "");
    }
    random_put(r, "\n");
}

/* The names that outlive a section: streams. */
static inline void random_leave(random_text *r, size_t streams)
{
    memset(r->names, 0, sizeof r->names);
    r->names[RANDOM_STREAM] = streams;
}

static inline void random_locals(random_text *r, size_t most)
{
    for (size_t n = random_below(r, most); n > 0; n--) {
        r->calls = 1;
        random_local(r);
    }
}

static inline void random_append(random_text *r)
{
    tb_buf_printf(r->out, "    past = append(past, %s)\n",
                  random_name(r, RANDOM_STREAM));
}

/* What goes on beside x. */
static inline void random_others(random_text *r, size_t streams)
{
    static const char *const plain[] = {"    z = x\n    x = y\n    y = z\n",
                                        "    y = x\n", "    x = y\n"};
    if (streams > 1 && random_chance(r, 0.2)) { /* in and out, or one as both */
        random_put(r, RANDOM_ONE_OF(r, plain));
        return;
    }
    for (size_t i = 1; i < streams; i++)
        if (random_chance(r, 0.7)) /* else it passes unchanged */
            random_update(r, r->name[RANDOM_STREAM][i]);
    if ((r->can & RANDOM_PAST) && random_chance(r, 0.8))
        random_append(r);
}

static inline void random_section(random_text *r, size_t streams)
{
    size_t style = random_below(r, 5);
    static const char *const named[] = {"attn", "ffn"};
    unsigned can = r->can;
    r->nsub = style == 0 ? 0 : style < 3 ? 1 : 2;
    r->sub[0] = r->nsub == 1 ? "F" : named[0];
    r->sub[1] = named[1];
    if (r->nsub == 1) /* cross is one of F, and an append would run for each */
        r->can &= ~(unsigned)(RANDOM_MEMORY | RANDOM_PAST);
    if (r->nsub == 2) /* of many calls */
        r->can &= ~(unsigned)RANDOM_TWO;
    r->can |= RANDOM_LAYER;
    random_locals(r, 4);
    for (size_t n = 1 + random_below(r, 2); n > 0; n--) {
        if ((r->can & RANDOM_PAST) && random_chance(r, 0.3))
            random_append(r);
        random_update(r, "x");
    }
    if (r->reads)
        random_put(r, r->nsub == 1 ? "    x = x + F(norm(x))\n"
                                   : "    x = x + cross(norm(x))\n");
    random_others(r, streams);
    r->nsub = 0;
    r->can = can;
    random_leave(r, streams);
}

/* Of stem or final: no layer, no sublayers, no list. */
static inline void random_outside(random_text *r, size_t streams,
                                  const char *header, const char *stream)
{
    unsigned can = r->can;
    r->can &= ~(unsigned)(RANDOM_PAST | RANDOM_MEMORY | RANDOM_TWO);
    random_put(r, header);
    random_locals(r, 2);
    random_update(r, stream);
    r->can = can;
    random_leave(r, streams);
}

/* --- definitions ---------------------------------------------------------- */

/* They read what they are given more than once. */
static inline void random_functions(random_text *r)
{
    if (!random_chance(r, 0.4))
        return;
    r->can |= RANDOM_FUNCTIONS;
    random_put(r, "f(a) = tanh(a) + 0.5*a\n"
                  "g(a, b) = sigmoid(a)*b + (1 - sigmoid(a))*a\n"
                  "p(a) = layernorm(a) - f(a)/3\n");
    if (r->can & RANDOM_WHOLE)
        random_put(r, "t(a, b) = mha(a, b, a) - mha(b, b, b)*a\n");
}

static inline void random_definitions(random_text *r)
{
    static const char *const attns[] = {
        "attn(x) = o(mha(norm(q(x)), norm(k(x)), v(x)))\n",
        "attn(u) = o(norm(mha(q(u), k(u), v(u))))\n",
        "attn(u) = o(sigmoid(q(u))*mha(q(u), k(u), v(u)))\n",
        "attn(u) = o(mha(tanh(q(u)), k(u), 0.5*v(u))) + 0.3*u\n",
        "attn(u) = vector(1)*o(mha(q(u), k(u), v(norm(u))))\n",
        "attn(u) = o(mha(q(u), k(x), v(u))) - 0.1*x\n",
        "attn(u) = o(mha(q(u), norm(k(u)), k(u), scale=h/d))\n",
        "attn(u) = o(mha(norm(q(u), groups=heads), k(u), v(u) - k(u)))\n",
        "attn(u) = o(derf(mha(dyt(q(u)), k(u), v(u))))\n",
        "attn(u) = o(mha(q(u), v(u), v(u)))/scalar(2)\n"};
    static const char *const ffns[] = {
        "ffn(x) = down(silu(gate(x))*up(x))\n",
        "ffn(x) = down(norm(gelu(up(x))))\n",
        "ffn(u) = down(drop(relu(up(u)), 0))\n",
        "ffn(u) = down(sigmoid(gate(u))*up(u)) - u*u\n",
        "ffn(u) = scalar(0.5)*down(gelu_tanh(up(u)))\n",
        "ffn(u) = down(up(u)*up(u))\n",
        "ffn(u) = down(exp(-abs(up(u))) - gate(u))\n",
        "ffn(u) = down(softmax(up(u)) + tanh(up(u))/k)\n"};
    static const char *const stopped[] = {
        "attn(u) = o(mha(q(u), stop(k(u)), v(u)))/scalar(2)\n",
        "ffn(u) = down(stop(sigmoid(gate(u)))*up(u)) - u*u\n",
        "ffn(u) = down(maxdiv(up(u), to=2))\n"};
    static const char *const drawn[] = {
        "attn(u) = drop(o(mha(q(u), k(u), drop(v(u), 0.2))), 0.1)\n",
        "ffn(u) = drop_branch(down(drop(gelu(up(u)), 0.2)), 0.3)\n"};
    size_t special = random_below(r, 6);
    if (special == 0 && (r->can & RANDOM_STOPS))
        random_put(r, RANDOM_ONE_OF(r, stopped));
    else if (special == 1 && (r->can & RANDOM_DRAWS))
        random_put(r, RANDOM_ONE_OF(r, drawn));
    else if (special < 4)
        random_put(r, RANDOM_ONE_OF(r, attns));
    if (special > 2)
        random_put(r, RANDOM_ONE_OF(r, ffns));
    if ((r->can & RANDOM_MEMORY) && random_chance(r, 0.5))
        random_put(r, "cross(u) = o(mha(q(u), norm(k(memory)), v(memory)))"
                      " + 0.2*u\n");
    random_functions(r);
}

static inline void random_model(random_text *r)
{
    random_put(r, "model:\n    ffn = 2*d + 1\n");
    if (random_chance(r, 0.4))
        random_put(r, "    norm = rmsnorm\n");
    if (!(r->can & RANDOM_WHOLE))
        random_put(r, "    kv_heads = h/2\n");
    if (random_chance(r, 0.2))
        random_put(r, "    positions = sinusoidal\n");
    if (random_chance(r, 0.3))
        random_put(r, "    bias = false\n");
    if (random_chance(r, 0.3))
        random_put(r, "    eps = 1e-2\n");
}

/* --- the text ------------------------------------------------------------- */

/* Sizes, and what forms may need. */
static inline void random_sizes(random_text *r, random_drawn *d,
                                unsigned without)
{
    static const size_t widths[] = {4, 4, 6, 8};
    d->width = RANDOM_ONE_OF(r, widths);
    d->heads = 2;
    d->stack = TB_STACKS_DECODER;
    r->can = RANDOM_STOPS | RANDOM_DRAWS | RANDOM_TOKENS | RANDOM_TWO;
    if (d->width % 4 == 0)
        r->can |= RANDOM_ROPE;
    r->can |= random_chance(r, 0.75) ? RANDOM_WHOLE : RANDOM_GROUPED;
    if (random_chance(r, 0.12)) {
        r->can |= RANDOM_MEMORY;
        d->stack = TB_STACKS_BOTH;
    } else if (random_chance(r, 0.1)) {
        d->stack = TB_STACKS_ENCODER;
    }
    if (d->stack == TB_STACKS_BOTH || random_chance(r, 0.1))
        r->can &= ~(unsigned)RANDOM_TWO; /* cross is the second of three */
    r->can &= ~without;
    if (!(r->can & RANDOM_MEMORY) && d->stack == TB_STACKS_BOTH)
        d->stack = TB_STACKS_DECODER;
    r->reads = d->stack == TB_STACKS_BOTH;
}

static inline size_t random_stem(random_text *r)
{
    size_t streams = 1;
    bool past = !(r->can & RANDOM_MEMORY) && random_chance(r, 0.2);
    if (random_chance(r, 0.2)) {
        streams = 2;
        random_outside(r, 1, "stem:\n", "y");
        random_bind(r, RANDOM_STREAM, "y");
    }
    if (past) {
        random_put(r, streams > 1 ? "" : "stem:\n");
        random_put(r, "    past = list(x)\n");
        r->can |= RANDOM_PAST;
    }
    return streams;
}

/** random_equation - a text for eval over the streams x and y, of width 4. */
static inline void random_equation(tb_ctx *ctx, uint64_t seed, tb_buf *out)
{
    random_text r = {.out = out,
                     .rng = tb_rng_make(seed, "equation"),
                     .can = RANDOM_STOPS | RANDOM_TOKENS | RANDOM_ROPE |
                            RANDOM_WHOLE};
    tb_buf_init(out, ctx);
    random_bind(&r, RANDOM_STREAM, "x");
    random_bind(&r, RANDOM_STREAM, "y");
    random_functions(&r);
    random_locals(&r, 4);
    r.forms = 8;
    random_stream(&r, 4);
    random_put(&r, " - x*y/3"); /* what is given must be read */
}

/** random_block - a block's text, none of whose forms need what `without`
 * names; its buffer is the caller's to clear. */
static inline void random_block(tb_ctx *ctx, uint64_t seed, unsigned without,
                                random_drawn *d)
{
    random_text r = {.out = &d->text, .rng = tb_rng_make(seed, "block")};
    tb_buf_init(&d->text, ctx);
    random_bind(&r, RANDOM_STREAM, "x");
    random_sizes(&r, d, without);
    random_definitions(&r);
    size_t streams = random_stem(&r);
    if (r.reads)
        random_put(&r, "encoder block:\n    x = x + F(norm(x))\n");
    if (random_chance(&r, 0.25)) {
        random_put(&r, r.reads ? "decoder block[l <= N/2]:\n"
                               : "block[l <= N/2]:\n");
        random_section(&r, streams);
    }
    random_put(&r, r.reads ? "decoder block:\n" : "block:\n");
    random_section(&r, streams);
    if (random_chance(&r, 0.3))
        random_outside(&r, streams, "final:\n", "x");
    random_model(&r);
}

#endif
