/* SPDX-License-Identifier: MIT */
/* Random blocks, word by word: names in scope, constants, what is learned. */
#ifndef TB_TESTS_RANDOM_WORDS_H
#define TB_TESTS_RANDOM_WORDS_H

#include "base/base.h"
#include "base/number.h"

enum { RANDOM_NAMES = 24, RANDOM_NAME_CHARS = 8 };

/** What a name in scope stands for. */
typedef enum random_kind {
    RANDOM_STREAM,
    RANDOM_SCALAR,
    RANDOM_VECTOR,
    RANDOM_LINEAR, /* from d to d */
    RANDOM_CONST,
    RANDOM_KINDS
} random_kind;

/** What a form needs; a caller may want texts without some of it. */
enum {
    RANDOM_STOPS = 1,      /* values whose derivative is not taken */
    RANDOM_DRAWS = 2,      /* dropped elements and sequences */
    RANDOM_TOKENS = 4,     /* statistics over all tokens of a batch */
    RANDOM_WHOLE = 8,      /* as many heads for keys as for queries */
    RANDOM_ROPE = 16,      /* heads of an even width */
    RANDOM_FUNCTIONS = 32, /* f, g, p and t are defined */
    RANDOM_MEMORY = 64,    /* in a decoder block of two stacks */
    RANDOM_PAST = 128,     /* there is a list from below */
    RANDOM_LAYER = 256,    /* in a block: l and k have a value */
    RANDOM_TWO = 512,      /* k is 1 or 2 */
    RANDOM_GROUPED = 1024  /* two heads of queries share one of keys */
};

typedef struct random_text {
    tb_buf *out;
    tb_rng rng;
    uint64_t at;
    char name[RANDOM_KINDS][RANDOM_NAMES][RANDOM_NAME_CHARS];
    size_t names[RANDOM_KINDS];
    size_t made;        /* locals so far: u1, u2, ... */
    const char *sub[2]; /* sublayers that may be called here, or NULL */
    size_t nsub;        /* how many of them */
    int calls;          /* sublayer calls left in this statement */
    int forms;          /* and forms */
    unsigned can;       /* of what forms need */
    bool reads;         /* the blocks of a decoder, which read a memory */
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
        tb_format(r->name[kind][n], RANDOM_NAME_CHARS, "%s", name);
        r->names[kind]++;
    }
}

/* Rather a late one: it has read the others. */
static inline const char *random_name(random_text *r, random_kind kind)
{
    size_t n = r->names[kind];
    if (kind == RANDOM_STREAM && random_chance(r, 0.3))
        return r->name[kind][n - 1];
    return r->name[kind][random_below(r, n)];
}

/* Never 0, so that it may stand under a division. */
static inline void random_const(random_text *r)
{
    static const char *const everywhere[] = {"0.5",
                                             "2",
                                             "1.5",
                                             "0.25",
                                             "3",
                                             "1/N",
                                             "sqrt(2)",
                                             "(2*N)^0.25",
                                             "1/sqrt(d)",
                                             "2^-1",
                                             "h",
                                             "min(N, 3)",
                                             "log(2*N)/2",
                                             "exp(-1)",
                                             "abs(-0.7)",
                                             "floor(2.5)",
                                             "1 - 1/(N + 1)"};
    static const char *const in_layers[] = {"k", "l", "l/N", "max(l, 2)/3",
                                            "sqrt(k + 1)"};
    if (r->names[RANDOM_CONST] && random_chance(r, 0.3))
        random_put(r, random_name(r, RANDOM_CONST));
    else if ((r->can & RANDOM_LAYER) && random_chance(r, 0.3))
        tb_buf_printf(r->out, "(%s)", RANDOM_ONE_OF(r, in_layers));
    else
        tb_buf_printf(r->out, "(%s)", RANDOM_ONE_OF(r, everywhere));
}

/* Positive, so that it may stand under a division. */
static inline void random_scalar(random_text *r)
{
    static const char *const fresh[] = {"scalar(1)",
                                        "scalar(0.5)",
                                        "sigmoid(scalar(0.1))",
                                        "(scalar(1) + scalar(0.5))",
                                        "scalar(1)*scalar(1)",
                                        "(0.5 + scalar(0))",
                                        "scalar(1)/scalar(2)",
                                        "2*scalar(1)"};
    if (r->names[RANDOM_SCALAR] == 0 || random_chance(r, 0.25)) {
        tb_buf_printf(r->out, "(%s)", RANDOM_ONE_OF(r, fresh));
        return;
    }
    const char *name = random_name(r, RANDOM_SCALAR);
    if (random_chance(r, 0.2))
        tb_buf_printf(r->out, "(%s*%s)", name, name);
    else
        random_put(r, name);
}

static inline void random_vector(random_text *r)
{
    static const char *const fresh[] = {"vector(1)", "vector(0.1)",
                                        "sigmoid(vector(0))", "2*vector(1)",
                                        "tanh(vector(1))"};
    if (r->names[RANDOM_VECTOR] == 0 || random_chance(r, 0.25)) {
        tb_buf_printf(r->out, "(%s)", RANDOM_ONE_OF(r, fresh));
        return;
    }
    random_put(r, random_name(r, RANDOM_VECTOR));
}

#endif
