/* SPDX-License-Identifier: MIT */
/* Inside the comparison with other systems. A system is a table of keys; a
 * setting gives some of them a value; what a setting means is written as the
 * text of a block. peers.c answers, peers_search.c searches, peers_set.c reads
 * and prints settings, peers_shape.c compares graphs, peers_words.c says how
 * they differ; peers_letters.c, peers_fairseq.c and peers_xtransformers.c are
 * the systems. */
#ifndef TB_GRAPH_PEERS_H
#define TB_GRAPH_PEERS_H

#include "graph/graph.h"
#include "tollbooth/export.h"

enum { TB_PEER_KEYS = 24 };

/** Parts of a stack that a key may change, as bits. */
enum {
    TB_PEER_BLOCK = 1,
    TB_PEER_STEM = 2,
    TB_PEER_FINAL = 4,
    TB_PEER_ALL = 7
};

typedef enum tb_peer_kind {
    TB_PEER_FLAG,    /* false, true */
    TB_PEER_WORD,    /* one of `words` */
    TB_PEER_LETTERS, /* of `words`, each an operation */
    TB_PEER_NUMBER
} tb_peer_kind;

typedef struct tb_peer_key {
    const char *name;  /* as the system spells it */
    const char *alias; /* shorter, or NULL */
    tb_peer_kind kind;
    const char *words; /* WORD: with | between; LETTERS: the legal ones */
    const char *start; /* the value that is not printed */
    unsigned parts;    /* TB_PEER_*; 0: no placement, set by `finish` */
    bool always;       /* printed even so */
} tb_peer_key;

/** A setting: the text of each key's value. */
typedef struct tb_peer_set {
    const char *value[TB_PEER_KEYS];
} tb_peer_set;

/** The sections of a text being written; expressions live in the arena. */
typedef struct tb_peer_text {
    tb_ctx *ctx;
    tb_arena arena;
    tb_buf defs, stem, block, final, init, model;
    tb_buf headed; /* sections of a role or of some blocks, with their heads */
    bool norms;    /* a norm was written: eps means something */
    const char *bare; /* word of the norms without a gain; "": all */
    bool failed;      /* memory ran out */
} tb_peer_text;

/** What the search and `finish` know of a block. */
typedef struct tb_peer_look {
    const char *activation; /* of ffn: "gelu"; NULL: none or several */
    double eps;             /* of all norms; NaN: none or several */
    int eps_mode;           /* tb_eps_mode of the first norm */
    bool depth_init;        /* every matrix: xavier(1/sqrt(l)) */
    bool layernorm, bias;   /* layernorms, linears have biases */
    double alpha;           /* start of dyt's alpha; NaN: no dyt */
    bool by_depth;          /* factors or start values follow the depth */
    size_t head;            /* width of a head */
} tb_peer_look;

typedef struct tb_peer tb_peer;
struct tb_peer {
    const char *name;
    const char *lead;  /* before the keys: "--arch transformer_lm" */
    const char *shape; /* one key and value: "--%s %s", "%s=%s" */
    const char *flag;  /* a true FLAG: "--%s"; NULL: as a word */
    const char *yes, *no, *gap, *empty; /* words of a FLAG; between keys; "" */
    const tb_peer_key *keys;
    const char *const *starts; /* settings the search begins at, NULL ends */
    /* what only a setting that was read is refused for; may be NULL */
    tb_status (*check)(tb_ctx *ctx, const tb_peer_set *set);
    /* TB_ERR_INPUT for a setting the system refuses */
    tb_status (*write)(tb_peer_text *t, const tb_peer_set *set);
    /* the values of keys that are no placement, from the block */
    void (*finish)(tb_arena *a, const tb_peer_look *look, tb_peer_set *set);
    unsigned stacks;         /* that its keys are for: bits of tb_stacks */
    const char *eps_note;    /* said where its eps differs, or NULL */
    const char *activations; /* of its ffn that can be had, with | between */
    /* more that is no placement and differs; NULL: nothing */
    const char *(*remark)(const tb_peer_look *look, const tb_peer_set *set,
                          int i);
};

/** Options of a command line. */
#define TB_PEER_OPTIONS                                                        \
    .shape = "--%s %s", .flag = "--%s", .yes = "true", .no = "false",          \
    .gap = " ", .empty = "\"\""

extern const tb_peer tb_peer_marian, tb_peer_tensor2tensor, tb_peer_fairseq,
    tb_peer_fairseq_both, tb_peer_x_transformers;
/* A system with other keys for other stacks has several rows. */
extern const tb_peer *const tb_peers[]; /* NULL ends */

/* settings (peers_set.c) */

void tb_peer_defaults(const tb_peer *p, tb_peer_set *set);
/** tb_peer_at - a key's value by name. */
const char *tb_peer_at(const tb_peer *p, const tb_peer_set *set,
                       const char *name);
bool tb_peer_on(const tb_peer *p, const tb_peer_set *set, const char *name);
void tb_peer_put(const tb_peer *p, tb_peer_set *set, const char *name,
                 const char *value);
tb_status tb_peer_parse(tb_ctx *ctx, tb_arena *a, const tb_peer *p,
                        const char *text, tb_peer_set *out);
void tb_peer_print(const tb_peer *p, const tb_peer_set *set, tb_buf *out);
/** tb_peer_text_of - the whole text of a setting. */
tb_status tb_peer_text_of(tb_ctx *ctx, const tb_peer *p, const tb_peer_set *set,
                          tb_buf *out);
/** tb_peer_of - a formatted expression, in the text's arena; "" if memory ran
 * out, which tb_peer_text_of finds. */
const char *tb_peer_of(tb_peer_text *t, const char *fmt, ...) TB_PRINTF(2, 3);
/** tb_peer_norm - the norm of an expression. */
const char *tb_peer_norm(tb_peer_text *t, const char *word, const char *e);
/** tb_peer_activation - ffn with another function than ours, where `word` is
 * one of ours; "": as it is. */
void tb_peer_activation(tb_peer_text *t, const char *word);
/** tb_peer_mapped - the word beside `word` in pairs (ours, theirs), NULL ends;
 * NULL if it is none of them. */
const char *tb_peer_mapped(const char *const pairs[][2], const char *word,
                           int from);

/* shapes (peers_shape.c) */

/** A graph without names, sizes, eps, biases and dropout: sorted hashes of
 * nodes with all below them, and of nodes with their direct inputs. */
typedef struct tb_peer_shape {
    uint64_t out;
    int nnodes, nedges;
    uint64_t *nodes, *edges;
} tb_peer_shape;

/** What a stack looks like; layers of one shape once. */
typedef struct tb_peer_stack {
    tb_peer_shape stem, final, *layers;
    int nlayers;
    uint64_t order; /* which of them each block has, as a hash */
} tb_peer_stack;

/** The stack under the head, and its encoder where there is one. */
typedef struct tb_peer_stacks {
    tb_peer_stack at[2];
    int n;
} tb_peer_stacks;

/** tb_peer_numbers - factors and start values in the blocks, other than 1; at
 * most cap, the count in *n. */
tb_status tb_peer_numbers(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                          const tb_sizes *sizes, double *out, int cap, int *n);
/** tb_peer_stacks_of - the parts (bits) of a block's stacks. */
tb_status tb_peer_stacks_of(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                            const tb_sizes *sizes, unsigned parts,
                            tb_peer_stacks *out);
/** tb_peer_far - 0 only for equal shapes; else how many nodes and edges only
 * one of them has, plus one. */
int tb_peer_far(const tb_peer_shape *a, const tb_peer_shape *b);
/** tb_peer_layers_far - the same of all blocks: 0 only if each has its like. */
int tb_peer_layers_far(const tb_peer_stack *a, const tb_peer_stack *b);

/* the search (peers_search.c) */

/** tb_peer_block - a setting's text, parsed. */
tb_status tb_peer_block(tb_ctx *ctx, const tb_peer *p, const tb_peer_set *set,
                        tb_block **out);
/** tb_peer_settings - a block's sizes for the text of a setting, which says
 * itself what its norms are. */
tb_settings tb_peer_settings(const tb_sizes *sizes);
/** tb_peer_search - the setting nearest to a block, and whether all graphs are
 * the same. */
tb_status tb_peer_search(tb_ctx *ctx, tb_arena *a, const tb_peer *p,
                         const tb_block *b, const tb_sizes *sizes,
                         tb_peer_set *best, bool *exact);

/* words (peers_words.c) */

/** What a stack does: "the output of ", "attn", " goes through rmsnorm". Of the
 * whole stack: `name` is NULL and all of it stands in `before`. */
typedef struct tb_peer_phrase {
    const char *before, *name, *after;
} tb_peer_phrase;

/** tb_peer_say - phrases of a stack, the most telling first, at most cap; *n is
 * their count. */
tb_status tb_peer_say(tb_ctx *ctx, tb_arena *a, const tb_block *b,
                      const tb_settings *settings, tb_peer_phrase *out,
                      size_t cap, size_t *n);
/** tb_peer_look_at - what `finish` and remarks ask for. */
tb_status tb_peer_look_at(tb_ctx *ctx, const tb_block *b,
                          const tb_settings *settings, tb_peer_look *out);

#endif
