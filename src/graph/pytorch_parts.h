/* SPDX-License-Identifier: MIT */
/* Inside the PyTorch printer: spellings of ops (pytorch_ops.c), names
 * (pytorch_names.c), constants (pytorch_const.c), variables (pytorch_vars.c),
 * statements (pytorch_body.c), sublayers (pytorch_sub.c),
 * constructors and initial weights (pytorch_init.c), classes (pytorch.c), and
 * the Python that is the same in every file (pytorch_text.c). */
#ifndef TB_GRAPH_PYTORCH_PARTS_H
#define TB_GRAPH_PYTORCH_PARTS_H

#include "graph/pytorch.h"

enum {
    TB_PY_COLUMNS = 88,
    TB_PY_INDENT = 8, /* of a statement */
    TB_PY_HEADS = 256 /* of the hash table of variables */
};

/** How tight a Python expression binds. */
enum {
    TB_PY_SUM,
    TB_PY_PRODUCT,
    TB_PY_UNARY,
    TB_PY_POWER,
    TB_PY_CALL, /* f(x), self.a, 2.5 */
    TB_PY_NAME  /* a variable */
};

/** An expression; s is never NULL. */
typedef struct tb_py_text {
    const char *s;
    int bind;
} tb_py_text;

/** Parts of the file that are written where something uses them. */
enum {
    TB_PY_USES_MATH = 1,
    TB_PY_USES_LAYERNORM = 2,
    TB_PY_USES_RMSNORM = 4,
    TB_PY_USES_MHA = 8,
    TB_PY_USES_DROPOUT = 16,
    TB_PY_USES_F = 32,
    TB_PY_USES_NORMED = 64, /* norms by any convention */
    TB_PY_USES_SCALENORM = 128,
    TB_PY_USES_DYT = 256,
    TB_PY_USES_DERF = 512,
    TB_PY_USES_ROPE = 1024,
    TB_PY_USES_SKIPDROP = 2048,
    TB_PY_USES_SINUSOID = 4096,
    TB_PY_USES_MIX = 8192,
    TB_PY_USES_ONEHOT = 16384,
    TB_PY_USES_BATCHNORM = 32768,
    TB_PY_USES_POWERNORM = 65536,
    TB_PY_USES_SINKHORN = 1 << 17,
    TB_PY_USES_UNIT = 1 << 18,
    TB_PY_USES_MAXDIV = 1 << 19,
    TB_PY_USES_CONCAT = 1 << 20, /* of parts of the width */
    TB_PY_USES_HEADSCALE = 1 << 21,
    TB_PY_USES_KEEP = 1 << 22 /* attention that does not see padding */
};

/** A class already printed: equal bodies share it. */
typedef struct tb_py_class {
    const char *name, *body;
    int number; /* of its kind, from 1 */
    bool takes_l;
    struct tb_py_class *next;
} tb_py_class;

/** One file. The first failure sticks; texts made after it are "". */
typedef struct tb_py {
    tb_ctx *ctx;
    tb_arena arena;
    const tb_py_stack *stack;
    tb_status status;
    unsigned uses;
    tb_buf classes;
    tb_py_class *known, **last;
} tb_py;

void tb_py_fail(tb_py *py, tb_status s);
/** tb_py_printf - in the arena; "" once anything failed. */
const char *tb_py_printf(tb_py *py, const char *fmt, ...) TB_PRINTF(2, 3);
/** tb_py_take - the text of `b` in the arena; clears b. */
const char *tb_py_take(tb_py *py, tb_buf *b);
void *tb_py_alloc(tb_py *py, size_t n, size_t size); /* NULL: failed */

/* --- names -------------------------------------------------------------- */

/** tb_py_local - a variable's name: `lambda` becomes `lambda_`. */
const char *tb_py_local(tb_py *py, const char *name);
/** tb_py_input - how an input is read: "x", "past[2]" of "past.2". */
const char *tb_py_input(tb_py *py, const char *name);
/** tb_py_list - "past" of the element "past.2"; NULL of what is no element. */
const char *tb_py_list(tb_py *py, const tb_node *n);
/** tb_py_mask - 0 for the input that masks a graph's own tokens, 1 for the
 * memory's, -1 for others; what blocks and sublayers call them. */
int tb_py_mask(const char *input);
extern const char *const tb_py_masks[2];
/** tb_py_same_list - is an earlier one of free[0..i] of the list of free[i]? */
bool tb_py_same_list(const tb_graph *g, const int *free, int i);
/** tb_py_path - "attn.q" below `self` as "self.attn.q". A component that a
 * module cannot have as an attribute goes through _modules, or, last and with
 * `param`, through _parameters: the name in the file stays the same. */
const char *tb_py_path(tb_py *py, const char *self, const char *name,
                       bool param);
/** tb_py_parent - the name without its last component, "" if it has one. */
const char *tb_py_parent(tb_py *py, const char *name);
/** tb_py_below - the rest of a name after "prefix.", or NULL. */
const char *tb_py_below(const char *name, const char *prefix);

/* --- constants ---------------------------------------------------------- */

bool tb_py_mentions(const tb_expr *e, const char *name);
const char *tb_py_number(tb_py *py, double v);
/** tb_py_constant - a constant expression in Python; `l` is how l is read. */
tb_py_text tb_py_constant(tb_py *py, const tb_expr *e, int k, const char *l);
double tb_py_fold(tb_py *py, const tb_expr *e, int k);
/** tb_py_source - the same as the block's text has it, cut where it is long;
 * NULL for a plain number. */
const char *tb_py_source(tb_py *py, const tb_expr *e);
/** tb_py_width - a width: "d", "4 * d", "96". */
const char *tb_py_width(tb_py *py, size_t width, tb_dim dim);
/** tb_py_brackets - `t` in brackets unless it binds at least so tight. */
const char *tb_py_brackets(tb_py *py, tb_py_text t, int least);

/* --- ops ---------------------------------------------------------------- */

typedef struct tb_py_body tb_py_body;

/** How an op is spelled. In `text`: $0 $1 $2 operands in a bracket of their
 * own, <0 and >1 left and right operand of an infix, @0 one that something is
 * called on, $M the module that owns operand 1, $A attribute 0. In `make`: $i
 * $o its weight's two widths, $w the width of its vectors, $x that of
 * its operand or a part of it, $A, $b ", bias=
 * False" where it has none, $O the options of a norm. */
typedef struct tb_py_row {
    const tb_op *op;
    int nin, nattr;   /* inputs and attributes it knows; others are refused */
    const char *text; /* NULL: its operand, or a leaf */
    int bind;
    unsigned uses;
    const char *make;  /* its module; NULL: it has none */
    tb_role role;      /* of the module's first parameter; where another's
                          module owns that, `loose` */
    bool ready;        /* gain and bias start at 1 and 0 */
    const char *hold;  /* names of operands that get a line of their own */
    const char *loose; /* `text` over a parameter of another module */
    const char *full;  /* `text` where all its inputs are given; NULL: text */
    tb_py_text (*write)(tb_py_body *b, const tb_node *n, const tb_py_text *in);
    tb_py_text (*bare)(tb_py_body *b, const tb_node *n, const tb_py_text *in);
    /* of one that would have a module, where it has no parameters */
} tb_py_row;

/** tb_py_row_of - NULL for an op that has no spelling yet. */
const tb_py_row *tb_py_row_of(const tb_op *op);

/* --- one graph ---------------------------------------------------------- */

/** How a sublayer call is written. */
typedef struct tb_py_region {
    const char *cls;    /* class */
    const char *method; /* "" or ".forward2" */
    bool takes_l;
    int nfree, *free; /* what it reads beside its argument and its weights:
                         values, and weights of linears */
} tb_py_region;

typedef struct tb_py_graph {
    tb_py *py;
    const tb_graph *g;
    tb_stack stack;          /* whose graph it is */
    const char *self;        /* "self", of two stacks "self.encoder": where the
                                class around it keeps what is not shared */
    const tb_py_part *parts; /* of its stack: [0] is the stem */
    size_t nparts, *layers;  /* the layers of this graph, from 1; the stem's 0;
                                of a final or the tail one above the last */
    bool is_tail;            /* has the head */
    const char *keep[2];     /* what the masks of its own tokens and of the
                                memory's are called; NULL: not there */
    int *consumer;           /* per param: first node that reads it, or -1 */
    tb_py_region *regions;
    const struct tb_py_graph *before; /* whose parameters are made already */
    bool ctor_l, body_l;              /* the class being printed reads l */
} tb_py_graph;

/** tb_py_self - what a parameter's path starts with in the class around the
 * sublayers. */
const char *tb_py_self(const tb_py_graph *t, int param);
/** tb_py_has - does the class of sublayer `name` own this parameter? name
 * NULL: does the class around the sublayers? */
bool tb_py_has(const tb_py_graph *t, int param, const char *name);

/* --- statements --------------------------------------------------------- */

typedef struct tb_py_var {
    const char *name;
    int node;       /* -1: a constant */
    const char *is; /* the constant's text */
    size_t stamp;   /* statement that last read or wrote it */
    int next;       /* in its hash chain */
} tb_py_var;

struct tb_py_body {
    tb_py_graph *t;
    tb_py *py;
    int region; /* -1: outside all sublayers */
    tb_buf *out;
    int *left; /* per node: uses still to come */
    int *held; /* per node: variable that holds it, or -1 */
    unsigned char *live;
    tb_py_var *vars;
    int nvars, cap_vars, *heads;
    size_t now; /* number of the statement being written */
    int temps;
    size_t room;       /* columns of this statement's right side */
    const char *notes; /* constants of this statement, as the text has them */
};

/** tb_py_body_begin - before the statements that lead to the nodes wanted. */
void tb_py_body_begin(tb_py_body *b, tb_py_graph *t, int region,
                      const int *wanted, int nwanted, tb_buf *out);
/** tb_py_body_bind - an argument: `name` holds the node. */
const char *tb_py_body_bind(tb_py_body *b, const char *name, int node);
/** tb_py_is_free - may `name` be written in the middle of this statement? */
bool tb_py_is_free(const tb_py_body *b, const char *name);
/** tb_py_hold - from here on `name` holds the node. */
void tb_py_hold(tb_py_body *b, const char *name, int node);
/** tb_py_fresh - a name like t3 that nothing has. */
const char *tb_py_fresh(tb_py_body *b, const char *stem);
/** tb_py_keep - `name` is about to be overwritten: a value still to be read
 * moves to another name, the one of a statement `r = x` where there is one. */
void tb_py_keep(tb_py_body *b, const char *name);
/** tb_py_line - "text  # notes". */
void tb_py_line(tb_py_body *b, const char *text);
/** tb_py_body_run - the statements. */
void tb_py_body_run(tb_py_body *b);
/** tb_py_body_return - "return a" (one use). */
void tb_py_body_return(tb_py_body *b, int node);
/** tb_py_body_leave - "return x, past + [f]": what the graph carries on (one
 * use of each output). */
void tb_py_body_leave(tb_py_body *b);
/** tb_py_body_settle - the same into variables of those names. */
void tb_py_body_settle(tb_py_body *b);
/** tb_py_value - an expression for a node; takes one use. */
tb_py_text tb_py_value(tb_py_body *b, int node);
/** tb_py_attr - an attribute; constants with a name become variables. */
tb_py_text tb_py_attr(tb_py_body *b, const tb_node *n, const tb_attr *a);

/** tb_py_norm_options - ", mode=..., groups=h": what a norm does otherwise
 * than usual. */
const char *tb_py_norm_options(tb_py_graph *t, const tb_node *n);

/* --- constructors ------------------------------------------------------- */

/** tb_py_modules - lines of __init__ for the parameters of the class `name`
 * (as tb_py_has). */
void tb_py_modules(tb_py_graph *t, const char *name, tb_buf *out);
/** tb_py_starts - lines of init_weights for all parameters of the graph whose
 * constructor does not already start them so. */
void tb_py_starts(tb_py_graph *t, tb_buf *out);
/** tb_py_fill - items joined by ", ", each line at most TB_PY_COLUMNS wide and
 * indented. */
void tb_py_fill(tb_buf *out, int indent, const char *const *items, size_t n);

/* --- classes
 * ------------------------------------------------------------------ */

/** tb_py_sublayers - the classes of a graph's sublayers, and how they are
 * called. */
void tb_py_sublayers(tb_py_graph *t);
/** tb_py_class_body - the lines of a class below its first; `init` may be
 * NULL. */
const char *tb_py_class_body(tb_py_graph *t, const char *doc,
                             const char *modules, bool takes_l,
                             const char *init, const char *methods);

/* --- texts -------------------------------------------------------------- */

void tb_py_head(tb_py *py, tb_buf *out);    /* docstring to settings */
void tb_py_helpers(tb_py *py, tb_buf *out); /* norms and attention in use */
void tb_py_loader(tb_py *py, tb_buf *out);
/** tb_py_doc - a line of a docstring, indented, broken at blanks where it is
 * too long; control characters, quotes and bad UTF-8 are replaced. */
void tb_py_doc(tb_buf *out, int indent, const char *text, size_t n);

#endif
