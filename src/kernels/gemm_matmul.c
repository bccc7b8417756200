/* SPDX-License-Identifier: MIT */
/* oneDNN's matmul primitive through the C interface of its version 2. What it
 * makes for a shape is kept, so that a step makes nothing. */
#include "kernels/gemm_matmul.h"
#include "threads/threads.h"

#if defined(__wasm__)

tb_matmul *tb_matmul_create(tb_ctx *ctx)
{
    (void)ctx;
    return NULL;
}

void tb_matmul_destroy(tb_ctx *ctx, tb_matmul *m)
{
    (void)ctx;
    (void)m;
}

const char *tb_matmul_version(const tb_matmul *m)
{
    (void)m;
    return "";
}

bool tb_matmul_run(tb_ctx *ctx, tb_matmul *m, const tb_gemm_args *g)
{
    (void)ctx;
    (void)m;
    (void)g;
    return false;
}

#else

#    include <dlfcn.h>

/* Handles are pointers, enumerators int, dnnl_dim_t int64_t, 0 is success.
 * Descriptors are filled in by the library (696 and 2800 bytes in 2.6); we hold
 * more than they need. */
typedef void *handle;
typedef union memory_desc {
    max_align_t align;
    char bytes[2048];
} memory_desc;
typedef union matmul_desc {
    max_align_t align;
    char bytes[16384];
} matmul_desc;
typedef struct exec_arg {
    int arg;
    handle memory;
} exec_arg;

enum { CPU = 1, BF16 = 2, F32 = 3, IN_ORDER = 1, QUERY_NAME = 8 };
enum { ARG_A = 1, ARG_C = 17, ARG_B = 33, ARG_BIAS = 41 };

/** Functions of the library, in the order of `names`. */
typedef struct functions {
    int (*engine_create)(handle *, int kind, size_t index);
    int (*engine_destroy)(handle);
    int (*stream_create)(handle *, handle engine, unsigned flags);
    int (*stream_destroy)(handle);
    int (*stream_wait)(handle);
    int (*memory_desc_init)(memory_desc *, int ndims, const int64_t *dims,
                            int type, const int64_t *strides);
    int (*memory_create)(handle *, const memory_desc *, handle engine,
                         void *data);
    int (*memory_destroy)(handle);
    int (*memory_set)(handle, void *data);
    int (*matmul_desc_init)(matmul_desc *, const memory_desc *a,
                            const memory_desc *b, const memory_desc *bias,
                            const memory_desc *c);
    int (*post_ops_create)(handle *);
    int (*post_ops_destroy)(handle);
    int (*post_ops_sum)(handle, float scale);
    int (*attr_create)(handle *);
    int (*attr_destroy)(handle);
    int (*attr_set_post_ops)(handle, handle post_ops);
    int (*desc_create)(handle *, const void *op, handle attr, handle engine,
                       handle hint);
    int (*desc_destroy)(handle);
    int (*desc_query)(handle, int what, int index, void *result);
    int (*primitive_create)(handle *, handle desc);
    int (*primitive_destroy)(handle);
    int (*execute)(handle, handle stream, int nargs, const exec_arg *);
} functions;

static const char *const names[] = {
    "dnnl_engine_create",
    "dnnl_engine_destroy",
    "dnnl_stream_create",
    "dnnl_stream_destroy",
    "dnnl_stream_wait",
    "dnnl_memory_desc_init_by_strides",
    "dnnl_memory_create",
    "dnnl_memory_destroy",
    "dnnl_memory_set_data_handle",
    "dnnl_matmul_desc_init",
    "dnnl_post_ops_create",
    "dnnl_post_ops_destroy",
    "dnnl_post_ops_append_sum",
    "dnnl_primitive_attr_create",
    "dnnl_primitive_attr_destroy",
    "dnnl_primitive_attr_set_post_ops",
    "dnnl_primitive_desc_create",
    "dnnl_primitive_desc_destroy",
    "dnnl_primitive_desc_query",
    "dnnl_primitive_create",
    "dnnl_primitive_destroy",
    "dnnl_primitive_execute",
};

/** What the sum of products goes to: nothing, what C holds, a bias. */
typedef enum onto { ONTO_NOTHING, ONTO_C, ONTO_BIAS } onto;

/** What a primitive was made for; compared as bytes: there is no padding. */
typedef struct key {
    size_t m, n, k, lda, ldb, ldc;
    int threads;
    unsigned char ta, tb, onto, bf16;
} key;
_Static_assert(sizeof(key) == 6 * sizeof(size_t) + sizeof(int) + 4,
               "keys are compared as bytes");

typedef struct made {
    key key;
    handle primitive, a, b, c, bias;
} made;

enum { KEPT = 128 }; /* some 30 shapes in a training step */

struct tb_matmul {
    functions f;
    handle engine, stream;
    char version[32];
    made made[KEPT];
    size_t count, next; /* next: to be replaced once all are used */
};

/* --- the library -----------------------------------------------------------
 */

_Static_assert(sizeof(functions) == TB_LEN(names) * sizeof(void *),
               "a name for each function");

static bool load_functions(void *lib, functions *f)
{
    for (size_t i = 0; i < TB_LEN(names); i++) {
        void *symbol = dlsym(lib, names[i]);
        if (!symbol)
            return false;
        memcpy((char *)f + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return true;
}

void *tb_library_open(const char *const *files, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *lib = *files[i] ? dlopen(files[i], RTLD_NOW | RTLD_LOCAL) : NULL;
        if (lib)
            return lib;
    }
    return NULL;
}

void *tb_dnnl_open(tb_dnnl_version *v)
{
    const char *const files[] = {TB_DNNL_PATH, "libdnnl.so.2", "libdnnl.so.3"};
    const tb_dnnl_version *(*version)(void) = NULL;
    void *lib = tb_library_open(files, TB_LEN(files));
    void *symbol = lib ? dlsym(lib, "dnnl_version") : NULL;
    memcpy(&version, &symbol, sizeof version);
    *v = version ? *version() : (tb_dnnl_version){0, 0, 0};
    return lib;
}

static bool start(tb_ctx *ctx, tb_matmul *m, void *lib, tb_dnnl_version v)
{
    tb_format(m->version, sizeof m->version, "oneDNN %d.%d.%d", v.major,
              v.minor, v.patch);
    if (v.major == 2 && load_functions(lib, &m->f))
        return m->f.engine_create(&m->engine, CPU, 0) == 0 &&
               m->f.stream_create(&m->stream, m->engine, IN_ORDER) == 0;
    tb_say(ctx, TB_LOG_WARN,
           "%s: its matmul has another interface than version 2, the one we "
           "know: our own product runs instead",
           m->version);
    return false;
}

/* The library stays open: its OpenMP threads outlive any context. */
tb_matmul *tb_matmul_create(tb_ctx *ctx)
{
    if (!tb_streq(tb_threads_backend(), "openmp") || tb_threads_inside())
        return NULL;
    tb_dnnl_version v;
    void *lib = tb_dnnl_open(&v);
    tb_matmul *m = lib ? tb_alloc(ctx, 1, sizeof *m) : NULL;
    if (!m || start(ctx, m, lib, v))
        return m;
    tb_matmul_destroy(ctx, m);
    return NULL;
}

static void forget(const functions *f, made *p)
{
    if (p->primitive)
        f->primitive_destroy(p->primitive);
    handle memory[] = {p->a, p->b, p->c, p->bias};
    for (size_t i = 0; i < TB_LEN(memory); i++)
        if (memory[i])
            f->memory_destroy(memory[i]);
    *p = (made){0};
}

void tb_matmul_destroy(tb_ctx *ctx, tb_matmul *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++)
        forget(&m->f, &m->made[i]);
    if (m->stream)
        m->f.stream_destroy(m->stream);
    if (m->engine)
        m->f.engine_destroy(m->engine);
    tb_free(ctx, m);
}

const char *tb_matmul_version(const tb_matmul *m)
{
    return m->version;
}

/* --- a primitive -----------------------------------------------------------
 */

static key key_of(const tb_ctx *ctx, const tb_gemm_args *g)
{
    return (key){
        .m = g->m,
        .n = g->n,
        .k = g->k,
        .lda = g->lda,
        .ldb = g->ldb,
        .ldc = g->ldc,
        .threads = tb_threads_count(ctx), /* its work is cut for so many */
        .ta = g->ta,
        .tb = g->tb,
        .onto = g->bias        ? ONTO_BIAS
                : g->beta != 0 ? ONTO_C
                               : ONTO_NOTHING,
        .bf16 = g->bf16,
    };
}

/* A matrix, or the transpose of one that is stored. */
static bool describe(const functions *f, memory_desc *d, int type, bool turned,
                     size_t rows, size_t cols, size_t ld)
{
    const int64_t dims[] = {(int64_t)rows, (int64_t)cols};
    const int64_t strides[] = {turned ? 1 : (int64_t)ld,
                               turned ? (int64_t)ld : 1};
    return f->memory_desc_init(d, 2, dims, type, strides) == 0;
}

/* The attribute "added to what is there", or none. */
static bool make_attr(const functions *f, bool add, handle *attr)
{
    handle sum = NULL;
    if (!add)
        return true;
    bool fine = f->post_ops_create(&sum) == 0 && f->post_ops_sum(sum, 1) == 0 &&
                f->attr_create(attr) == 0 &&
                f->attr_set_post_ops(*attr, sum) == 0;
    if (sum)
        f->post_ops_destroy(sum);
    return fine;
}

/* Where the library has only its reference code, ours is faster. */
static bool is_reference(const functions *f, handle desc)
{
    const char *name = NULL;
    return f->desc_query(desc, QUERY_NAME, 0, &name) != 0 || !name ||
           strncmp(name, "ref", 3) == 0;
}

static bool make_primitive(const tb_matmul *m, const key *k,
                           const matmul_desc *op, handle *out)
{
    const functions *f = &m->f;
    handle attr = NULL, desc = NULL;
    bool fine = make_attr(f, k->onto == ONTO_C, &attr) &&
                f->desc_create(&desc, op, attr, m->engine, NULL) == 0 &&
                !is_reference(f, desc) && f->primitive_create(out, desc) == 0;
    if (desc)
        f->desc_destroy(desc);
    if (attr)
        f->attr_destroy(attr);
    return fine;
}

static bool make(const tb_matmul *m, made *p)
{
    const functions *f = &m->f;
    const key *k = &p->key;
    int type = k->bf16 ? BF16 : F32;
    bool biased = k->onto == ONTO_BIAS;
    memory_desc a, b, c, bias;
    matmul_desc op;
    return describe(f, &a, type, k->ta, k->m, k->k, k->lda) &&
           describe(f, &b, type, k->tb, k->k, k->n, k->ldb) &&
           describe(f, &c, F32, false, k->m, k->n, k->ldc) &&
           describe(f, &bias, F32, false, 1, k->n, k->n) &&
           f->matmul_desc_init(&op, &a, &b, biased ? &bias : NULL, &c) == 0 &&
           make_primitive(m, k, &op, &p->primitive) &&
           f->memory_create(&p->a, &a, m->engine, NULL) == 0 &&
           f->memory_create(&p->b, &b, m->engine, NULL) == 0 &&
           f->memory_create(&p->c, &c, m->engine, NULL) == 0 &&
           (!biased || f->memory_create(&p->bias, &bias, m->engine, NULL) == 0);
}

/* A shape the library cannot do is kept too, without a primitive. */
static const made *find(tb_matmul *m, const key *k)
{
    for (size_t i = 0; i < m->count; i++)
        if (memcmp(&m->made[i].key, k, sizeof *k) == 0)
            return &m->made[i];
    made *p = &m->made[m->next];
    m->next = (m->next + 1) % KEPT;
    m->count += m->count < KEPT;
    forget(&m->f, p);
    p->key = *k;
    if (!make(m, p)) {
        forget(&m->f, p);
        p->key = *k;
    }
    return p;
}

/* The library does not write to A, B and the bias. */
static void *unlocked(const void *p)
{
    union {
        const void *in;
        void *out;
    } u = {.in = p};
    return u.out;
}

static bool execute(const tb_matmul *m, const made *p, const tb_gemm_args *g)
{
    const functions *f = &m->f;
    const exec_arg args[] = {
        {ARG_A, p->a}, {ARG_B, p->b}, {ARG_C, p->c}, {ARG_BIAS, p->bias}};
    int n = (int)TB_LEN(args) - (p->bias ? 0 : 1);
    return f->memory_set(p->a, unlocked(g->a)) == 0 &&
           f->memory_set(p->b, unlocked(g->b)) == 0 &&
           f->memory_set(p->c, g->c) == 0 &&
           (!p->bias || f->memory_set(p->bias, unlocked(g->bias)) == 0) &&
           f->execute(p->primitive, m->stream, n, args) == 0 &&
           f->stream_wait(m->stream) == 0;
}

bool tb_matmul_run(tb_ctx *ctx, tb_matmul *m, const tb_gemm_args *g)
{
    if (g->dtype != TB_F32 || g->alpha != 1 || g->k == 0 || g->m == 0 ||
        g->n == 0 || (g->beta != 0 && g->beta != 1) ||
        (g->beta != 0 && g->bias) || tb_threads_inside())
        return false;
    key k = key_of(ctx, g);
    int lent = tb_threads_lend(ctx);
    const made *p = find(m, &k);
    bool done = p->primitive && execute(m, p, g);
    tb_threads_return(lent);
    return done;
}

#endif
