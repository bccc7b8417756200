/* SPDX-License-Identifier: MIT */
/* Random blocks that mean something: every construct the graph builder takes,
 * well typed, from a seed. The same seed gives the same text. */
#ifndef TB_TESTS_RANDOM_BLOCK_H
#define TB_TESTS_RANDOM_BLOCK_H

#include "tb_test.h"

enum { RANDOM_NAMES = 24 };

/** What a name in scope stands for. */
typedef enum random_kind {
    RANDOM_STREAM,
    RANDOM_SCALAR,
    RANDOM_VECTOR,
    RANDOM_LINEAR, /* from d to d */
    RANDOM_CONST,
    RANDOM_KINDS
} random_kind;

typedef struct random_text {
    tb_buf *out;
    tb_rng rng;
    uint64_t at;
    char name[RANDOM_KINDS][RANDOM_NAMES][8];
    size_t names[RANDOM_KINDS];
    size_t made;        /* locals so far: u1, u2, ... */
    const char *sub[2]; /* sublayers that may be called here, or NULL */
    size_t nsub;        /* how many of them */
    int calls;          /* sublayer calls left in this statement */
    bool functions;     /* f, g and p are defined */
    bool sublayer;      /* inside attn(u) or ffn(u): u is the argument */
} random_text;

static inline size_t random_below(random_text *r, size_t n)
{
    return (size_t)tb_rng_below(r->rng, r->at++, n);
}

static inline bool random_chance(random_text *r, double p)
{
    return tb_rng_uniform(r->rng, r->at++) < p;
}

static inline void random_put(random_text *r, const char *text)
{
    tb_buf_puts(r->out, text);
}

#define RANDOM_ONE_OF(r, list) ((list)[random_below((r), TB_LEN(list))])

static inline void random_bind(random_text *r, random_kind kind,
                               const char *name)
{
    size_t n = r->names[kind];
    for (size_t i = 0; i < n; i++)
        if (tb_streq(r->name[kind][i], name))
            return;
    if (n < RANDOM_NAMES) {
        tb_format(r->name[kind][n], sizeof r->name[kind][n], "%s", name);
        r->names[kind]++;
    }
}

static inline const char *random_name(random_text *r, random_kind kind)
{
    return r->name[kind][random_below(r, r->names[kind])];
}

/* --- constants, scalars, vectors ------------------------------------------ */

/* Never 0, so that it may stand under a division. */
static inline void random_const(random_text *r)
{
    static const char *const some[] = {
        "0.5",          "2",           "1.5",
        "0.25",         "3",           "1/N",
        "sqrt(2)",      "k",           "l",
        "(2*N)^0.25",   "1/sqrt(d)",   "l/N",
        "2^-1",         "h",           "min(N, 3)",
        "log(2*N)/2",   "max(l, 2)/3", "exp(-1)",
        "abs(-0.7)",    "floor(2.5)",  "sqrt(k + 1)",
        "1 - 1/(N + 1)"};
    if (r->names[RANDOM_CONST] && random_chance(r, 0.3)) {
        random_put(r, random_name(r, RANDOM_CONST));
        return;
    }
    tb_buf_printf(r->out, "(%s)", RANDOM_ONE_OF(r, some));
}

/* Positive, so that it may stand under a division. */
static inline void random_scalar(random_text *r)
{
    if (r->names[RANDOM_SCALAR] == 0 || random_chance(r, 0.25)) {
        static const char *const fresh[] = {"scalar(1)",
                                            "scalar(0.5)",
                                            "sigmoid(scalar(0.1))",
                                            "(scalar(1) + scalar(0.5))",
                                            "scalar(1)*scalar(1)",
                                            "(0.5 + scalar(0))",
                                            "scalar(1)/scalar(2)",
                                            "2*scalar(1)"};
        tb_buf_printf(r->out, "(%s)", RANDOM_ONE_OF(r, fresh));
        return;
    }
    random_put(r, random_name(r, RANDOM_SCALAR));
}

static inline void random_vector(random_text *r)
{
    static const char *const fresh[] = {"vector(1)", "vector(0.1)",
                                        "sigmoid(vector(0))", "2*vector(1)",
                                        "tanh(vector(1))"};
    if (r->names[RANDOM_VECTOR] == 0 || random_chance(r, 0.25))
        tb_buf_printf(r->out, "(%s)", RANDOM_ONE_OF(r, fresh));
    else
        random_put(r, random_name(r, RANDOM_VECTOR));
}

/* --- streams -------------------------------------------------------------- */

static inline void random_stream(random_text *r, int depth);

static inline void random_call(random_text *r, const char *name, int depth,
                               const char *rest)
{
    tb_buf_printf(r->out, "%s(", name);
    random_stream(r, depth);
    tb_buf_printf(r->out, "%s)", rest);
}

static inline void random_norm(random_text *r, int depth)
{
    static const char *const kinds[] = {"norm",      "norm",      "layernorm",
                                        "rmsnorm",   "layernorm", "rmsnorm",
                                        "batchnorm", "powernorm"};
    static const char *const rest[] = {
        "",           "",          ", eps=1e-3",   ", eps=0.1",
        ", eps=1e-6", ", eps=1/d", ", gain=false", ", bias=false"};
    /* Two tokens leave a norm over tokens no direction but by eps: with a small
     * one its Jacobian is the rounding of what cancels. */
    static const char *const over_tokens[] = {
        ", eps=0.01", ", eps=0.1", ", eps=1/d", ", eps=0.2, eps_mode=outside"};
    size_t kind = random_below(r, TB_LEN(kinds));
    random_call(r, kinds[kind], depth,
                kind < 6 ? RANDOM_ONE_OF(r, rest)
                         : RANDOM_ONE_OF(r, over_tokens));
}

static inline void random_element(random_text *r, int depth)
{
    static const char *const kinds[][2] = {
        {"relu", ""},
        {"gelu", ""},
        {"gelu_tanh", ""},
        {"silu", ""},
        {"sigmoid", ""},
        {"tanh", ""},
        {"softmax", ""},
        {"maxdiv", ", to=2"},
        {"maxdiv", ", whole=true"},
        {"shift", ", vector(0.5)"},
        {"shift", ", scalar(0.5)"},
        {"headscale", ", vector(0.5, size=h)"}};
    size_t which = random_below(r, TB_LEN(kinds));
    random_call(r, kinds[which][0], depth, kinds[which][1]);
}

/* l op r */
static inline void random_binary(random_text *r, int depth)
{
    static const char *const ops[] = {" + ", " + ", " + ", " - "};
    random_put(r, "(");
    random_stream(r, depth);
    random_put(r, RANDOM_ONE_OF(r, ops));
    random_stream(r, depth);
    random_put(r, ")");
}

static inline void random_gated(random_text *r, int depth)
{
    static const char *const gates[] = {"sigmoid", "tanh", "sigmoid", "norm"};
    random_call(r, RANDOM_ONE_OF(r, gates), depth, "");
    random_put(r, "*");
    random_stream(r, depth);
}

/* "c*(" by something constant or learned; brackets, since only a stream may
 * stand beside a vector. */
static inline void random_times(random_text *r)
{
    size_t which = random_below(r, 4);
    if (which == 0)
        random_const(r);
    else if (which == 1)
        random_scalar(r);
    else if (which == 2)
        random_vector(r);
    random_put(r, which == 3 ? "-(" : "*(");
}

static inline void random_scaled(random_text *r, int depth)
{
    size_t which = random_below(r, 8);
    if (which == 7) {
        random_stream(r, depth);
        random_put(r, "/(2 + ");
        random_call(r, "tanh", depth, ")");
    } else if (which < 4) {
        random_times(r);
        random_stream(r, depth);
        random_put(r, ")");
    } else if (which < 6) {
        random_stream(r, depth);
        random_put(r, "/");
        (which == 4 ? random_const : random_scalar)(r);
    } else {
        random_put(r, "(");
        random_const(r);
        random_put(r, random_chance(r, 0.5) ? " - " : " + ");
        random_stream(r, depth);
        random_put(r, ")");
    }
}

/* Weights of two streams: a vector or a matrix's row; of one stream: a factor
 * for each token, in a sum, since a norm of the product alone would leave
 * nothing of the factor's derivative but rounding. */
static inline void random_mix(random_text *r, int depth)
{
    static const char *const weights[] = {
        "unit(vector(0.5, size=2)), ", "vector(onehot(k), size=2), ",
        "matrix(3, 2, identity), ", "sinkhorn(matrix(2, 2, 0.1), rounds=3), "};
    size_t which = random_below(r, 6);
    random_put(r, which < 4 ? "mix(" : "(");
    if (which < 4)
        random_put(r, weights[which]);
    random_stream(r, depth);
    random_put(r, which < 4 ? ", " : " + mix(tanh(dot(");
    random_stream(r, depth - 1);
    if (which > 3) {
        random_put(r, ", ");
        random_stream(r, depth - 1);
        random_put(r, which == 4 ? ")/d), tanh(" : ")/d), sigmoid(");
        random_stream(r, depth - 1);
        random_put(r, "))");
    }
    random_put(r, which == 2 || which == 3 ? ", row=k)" : ")");
}

static inline void random_function(random_text *r, int depth)
{
    size_t which = random_below(r, 3);
    if (which == 1) {
        random_put(r, "g(");
        random_stream(r, depth);
        random_put(r, ", ");
        random_stream(r, depth);
        random_put(r, ")");
    } else {
        random_call(r, which ? "p" : "f", depth, "");
    }
}

static inline void random_sublayer(random_text *r, int depth)
{
    const char *name = r->sub[random_below(r, r->nsub)];
    size_t nsub = r->nsub;
    r->calls--;
    r->nsub = 0; /* sublayers do not nest */
    if (random_chance(r, 0.5))
        depth = 0;
    tb_buf_printf(r->out, "%s(", name);
    if (random_chance(r, 0.6))
        random_norm(r, depth);
    else
        random_stream(r, depth);
    random_put(r, ")");
    r->nsub = nsub;
}

static inline void random_stream(random_text *r, int depth)
{
    if (depth <= 0 || random_chance(r, 0.12)) {
        random_put(r, random_name(r, RANDOM_STREAM));
        return;
    }
    switch (random_below(r, 14)) {
    case 0:
    case 1:
        random_binary(r, depth - 1);
        return;
    case 2:
    case 3:
        random_scaled(r, depth - 1);
        return;
    case 4:
        random_gated(r, depth - 1);
        return;
    case 5:
    case 6:
        random_norm(r, depth - 1);
        return;
    case 7:
        random_element(r, depth - 1);
        return;
    case 8:
        random_call(r, "stop", depth - 1, "");
        return;
    case 9:
        random_call(r, "drop", depth - 1, random_chance(r, 0.5) ? ", 0" : "");
        return;
    case 10:
        if (r->names[RANDOM_LINEAR])
            random_call(r, random_name(r, RANDOM_LINEAR), depth - 1, "");
        else
            random_element(r, depth - 1);
        return;
    case 11:
        if (r->functions)
            random_function(r, depth - 1);
        else
            random_scaled(r, depth - 1);
        return;
    case 12:
        random_mix(r, depth - 1);
        return;
    default:
        if (r->nsub && r->calls > 0)
            random_sublayer(r, depth - 1);
        else
            random_norm(r, depth - 1);
    }
}

/* --- statements ----------------------------------------------------------- */

/* d to 2d and back, as a function. */
static inline void random_bottle(random_text *r)
{
    char name[8];
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
    char name[8];
    if (kind == RANDOM_LINEAR && random_chance(r, 0.5)) {
        random_bottle(r);
        return;
    }
    tb_format(name, sizeof name, "%s%zu", starts[kind][0], ++r->made);
    tb_buf_printf(r->out, "    %s = %s", name, starts[kind][1]);
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
    tb_buf_printf(r->out, "    %s = ", stream);
    r->calls = 3;
    switch (random_below(r, r->nsub ? 5 : 1)) {
    case 0:
        random_stream(r, 4);
        break;
    case 1:
        random_put(r, "norm(x + ");
        random_sublayer(r, 1);
        random_put(r, ")");
        break;
    case 2:
        random_put(r, "x + ");
        random_scaled(r, 0);
        random_put(r, " + ");
        random_sublayer(r, 1);
        break;
    case 3:
        random_const(r);
        random_put(r, "*x + ");
        random_sublayer(r, 2);
        random_put(r, "*");
        random_scalar(r);
        break;
    default:
        random_put(r, "x + ");
        random_sublayer(r, 2);
    }
    random_put(r, "\n");
}

/* The names that outlive a section: streams. */
static inline void random_leave(random_text *r, size_t streams)
{
    memset(r->names, 0, sizeof r->names);
    r->names[RANDOM_STREAM] = streams;
}

static inline void random_section(random_text *r, size_t streams)
{
    size_t style = random_below(r, 5);
    static const char *const named[] = {"attn", "ffn"};
    r->nsub = style == 0 ? 0 : style < 3 ? 1 : 2;
    r->sub[0] = r->nsub == 1 ? "F" : named[0];
    r->sub[1] = named[1];
    for (size_t n = random_below(r, 4); n > 0; n--) {
        r->calls = 1;
        random_local(r);
    }
    for (size_t n = 1 + random_below(r, 2); n > 0; n--)
        random_update(r, "x");
    for (size_t i = 1; i < streams; i++)
        if (random_chance(r, 0.7)) /* else it passes unchanged */
            random_update(r, r->name[RANDOM_STREAM][i]);
    r->nsub = 0;
    random_leave(r, streams);
}

/* --- definitions ---------------------------------------------------------- */

static inline void random_definitions(random_text *r)
{
    static const char *const attns[] = {
        "attn(x) = o(mha(norm(q(x)), norm(k(x)), v(x)))\n",
        "attn(u) = o(norm(mha(q(u), k(u), v(u))))\n",
        "attn(u) = o(sigmoid(q(u))*mha(q(u), k(u), v(u)))\n",
        "attn(u) = o(mha(tanh(q(u)), k(u), 0.5*v(u))) + 0.3*u\n",
        "attn(u) = vector(1)*o(mha(q(u), k(u), v(norm(u))))\n",
        "attn(u) = o(mha(q(u), stop(k(u)), v(u)))/scalar(2)\n",
        "attn(u) = o(mha(q(u), k(x), v(u))) - 0.1*x\n"};
    static const char *const ffns[] = {
        "ffn(x) = down(silu(gate(x))*up(x))\n",
        "ffn(x) = down(norm(gelu(up(x))))\n",
        "ffn(u) = down(drop(relu(up(u)), 0))\n",
        "ffn(u) = down(stop(sigmoid(gate(u)))*up(u)) - u*u\n",
        "ffn(u) = scalar(0.5)*down(gelu_tanh(up(u)))\n",
        "ffn(u) = down(softmax(up(u)) + tanh(up(u))/k)\n"};
    if (random_chance(r, 0.5))
        random_put(r, RANDOM_ONE_OF(r, attns));
    if (random_chance(r, 0.5))
        random_put(r, RANDOM_ONE_OF(r, ffns));
    r->functions = random_chance(r, 0.4);
    if (r->functions)
        random_put(r, "f(a) = tanh(a) + 0.5*a\n"
                      "g(a, b) = sigmoid(a)*b + (1 - sigmoid(a))*a\n"
                      "p(a) = layernorm(a) - f(a)/(k + 1)\n");
}

static inline void random_model(random_text *r)
{
    random_put(r, "model:\n    ffn = 2*d + 1\n");
    if (random_chance(r, 0.4))
        random_put(r, "    norm = rmsnorm\n");
    if (random_chance(r, 0.3))
        random_put(r, "    kv_heads = h/2\n");
    if (random_chance(r, 0.3))
        random_put(r, "    bias = false\n");
    if (random_chance(r, 0.3))
        random_put(r, "    eps = 1e-2\n");
}

/** random_block - a block's text. */
static inline void random_block(uint64_t seed, tb_buf *out)
{
    static random_text zero;
    random_text r = zero;
    size_t streams = 1;
    r.out = out;
    r.rng = tb_rng_make(seed, "block");
    random_bind(&r, RANDOM_STREAM, "x");
    random_definitions(&r);
    if (random_chance(&r, 0.15)) {
        random_put(&r, "stem:\n    y = 0.5*x\n");
        random_bind(&r, RANDOM_STREAM, "y");
        streams = 2;
    }
    if (random_chance(&r, 0.25)) {
        random_put(&r, "block[l <= N/2]:\n");
        random_section(&r, streams);
    }
    random_put(&r, "block:\n");
    random_section(&r, streams);
    if (random_chance(&r, 0.3))
        random_put(&r, "final:\n    x = norm(x)\n");
    random_model(&r);
}

#endif
