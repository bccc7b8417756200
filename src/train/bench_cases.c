/* SPDX-License-Identifier: MIT */
/* The kinds of cases, their names taken apart, and the memory of a job. */
#include "train/bench.h"

#include "base/number.h"

static const char *const defaults[] = {
    "norm:8192x768:fwd",         "norm:8192x768:bwd",
    "norm:4096x384:fwd",         "norm:4096x384:bwd",
    "norm:4096x384:tan",         "rmsnorm:4096x384:fwd",
    "rmsnorm:4096x384:bwd",      "addnorm:8192x768:fwd",
    "gemm:3072x384x1536:f32",    "gemm:2048x768x768:f32",
    "attn:12x256x6x64:fwd",      "attn:12x256x6x64:bwd",
    "attn:12x256x6x64:fwdbwd",   "step:L4d64T64B8V65:f32",
    "step:L6d384T256B12V65:f32", "generate:L4d128T128V65:f32",
    "flow:L12d256T64B4:grad",    "jacobian:d64T8:f32",
};

const tb_bench_kind tb_bench_kinds[] = {
    {"norm",
     "norm:RxD:fwd|bwd|tan",
     "layernorm with gain and bias of R rows of D floats; backward, tangent",
     NULL,
     2,
     {"fwd", "bwd", "tan"},
     tb_bench_norm},
    {"rmsnorm",
     "rmsnorm:RxD:fwd|bwd|tan",
     "rmsnorm with gain, the same",
     NULL,
     2,
     {"fwd", "bwd", "tan"},
     tb_bench_rmsnorm},
    {"addnorm",
     "addnorm:RxD:fwd|bwd",
     "s = x + f, then the norm of s; backward joins both gradients of s",
     NULL,
     2,
     {"fwd", "bwd"},
     tb_bench_addnorm},
    {"gelu",
     "gelu:RxD:fwd|bwd",
     "by erf, of R rows of D floats",
     NULL,
     2,
     {"fwd", "bwd"},
     tb_bench_gelu},
    {"gelu_tanh",
     "gelu_tanh:RxD:fwd|bwd",
     "by tanh",
     NULL,
     2,
     {"fwd", "bwd"},
     tb_bench_gelu_tanh},
    {"silu",
     "silu:RxD:fwd|bwd",
     "the same of x sigmoid(x)",
     NULL,
     2,
     {"fwd", "bwd"},
     tb_bench_silu},
    {"swiglu",
     "swiglu:RxD:fwd",
     "silu of a gate times what it lets through",
     NULL,
     2,
     {"fwd"},
     tb_bench_swiglu},
    {"rope",
     "rope:BxTxHxW:fwd|bwd",
     "B rows of T tokens, H heads of width W, turned by their places",
     NULL,
     4,
     {"fwd", "bwd"},
     tb_bench_rope},
    {"softmax",
     "softmax:RxD:fwd|bwd",
     "of each of R rows of D floats",
     NULL,
     2,
     {"fwd", "bwd"},
     tb_bench_softmax},
    {"xent",
     "xent:RxV:fwd|bwd",
     "cross-entropy of R rows of V logits",
     NULL,
     2,
     {"fwd", "bwd"},
     tb_bench_xent},
    {"embed",
     "embed:RxDxV:fwd|bwd",
     "R rows of a table of V rows of D floats; backward adds to it",
     NULL,
     3,
     {"fwd", "bwd"},
     tb_bench_embed},
    {"gemm",
     "gemm:MxKxN:f32|bf16[-nt|-tn][-own|-dnnl|-cblas|-emulated]",
     "C[M,N] = A[M,K] B[K,N]; bf16: A and B are rounded to it; nt: B is stored "
     "[N,K], as a linear's weights; tn: A is stored [K,M]; by tollbooth's own "
     "code or one library",
     NULL,
     3,
     {"f32",     "f32-own",     "f32-dnnl",     "f32-cblas",
      "f32-nt",  "f32-nt-own",  "f32-nt-dnnl",  "f32-nt-cblas",
      "f32-tn",  "f32-tn-own",  "f32-tn-dnnl",  "f32-tn-cblas",
      "bf16",    "bf16-own",    "bf16-dnnl",    "bf16-emulated",
      "bf16-nt", "bf16-nt-own", "bf16-nt-dnnl", "bf16-nt-emulated",
      "bf16-tn", "bf16-tn-own", "bf16-tn-dnnl", "bf16-tn-emulated"},
     tb_bench_product},
    {"attn",
     "attn:BxTxHxW:fwd|bwd|fwdbwd",
     "causal attention of B rows of T tokens, H heads of width W",
     NULL,
     4,
     {"fwd", "bwd", "fwdbwd"},
     tb_bench_attn},
    {"step",
     "step:LldDTtBbVv:f32|bf16",
     "one whole update of a model of pre-LN blocks: depth l, width D, t "
     "tokens, "
     "b rows, v token kinds; products with weights in bf16",
     "LdTBV",
     5,
     {"f32", "bf16"},
     tb_bench_step},
    {"adamw",
     "adamw:RxD:f32",
     "the optimizer's part of an update, of R times D weights",
     NULL,
     2,
     {"f32"},
     tb_bench_adamw},
    {"generate",
     "generate:LldDTtVv:f32",
     "text of such a model, one token after the other until its t tokens are "
     "full",
     "LdTV",
     4,
     {"f32"},
     tb_bench_generate},
    {"flow",
     "flow:LldDTtBb:grad",
     "its gradient flow: every boundary, every weight",
     "LdTB",
     4,
     {"grad"},
     tb_bench_flow},
    {"jacobian",
     "jacobian:dDTt:f32",
     "the dense Jacobian of one block, t tokens of width D",
     "dT",
     2,
     {"f32"},
     tb_bench_jacobian},
};
const size_t tb_bench_nkinds = TB_LEN(tb_bench_kinds);

size_t tb_bench_count(void)
{
    return TB_LEN(defaults);
}

const char *tb_bench_name(size_t i)
{
    return i < TB_LEN(defaults) ? defaults[i] : NULL;
}

bool tb_bench_form(size_t i, const char **form, const char **what)
{
    if (i >= tb_bench_nkinds)
        return false;
    *form = tb_bench_kinds[i].form;
    *what = tb_bench_kinds[i].text;
    return true;
}

/* --- names ------------------------------------------------------------------
 */

/** A name taken apart. */
typedef struct parsed {
    const tb_bench_kind *kind;
    size_t size[TB_BENCH_SIZES], what;
} parsed;

/* One size, 1 to 2^20; the text after it, or NULL. */
static const char *number(const char *p, size_t *out)
{
    const char *start = p;
    for (*out = 0; *p >= '0' && *p <= '9' && *out <= 1U << 20; p++)
        *out = 10 * *out + (size_t)(*p - '0');
    return p > start && *out >= 1 && *out <= 1U << 20 ? p : NULL;
}

/* sizes = [key] number {("x" | key) number}; the text after them, or NULL */
static const char *sizes(const tb_bench_kind *k, const char *p, size_t *size)
{
    double product = 1;
    for (size_t i = 0; i < k->nsizes && p; i++) {
        char key = k->keys ? k->keys[i] : 'x';
        if ((k->keys || i > 0) && *p++ != key)
            return NULL;
        p = number(p, &size[i]);
        product *= (double)size[i];
    }
    return product <= 0x1p40 ? p : NULL;
}

static tb_status no_kind(tb_ctx *ctx, const char *name, size_t n)
{
    const char *names[TB_LEN(tb_bench_kinds)], *near;
    char word[TB_BENCH_NAME], list[256];
    size_t used = 0;
    tb_format(word, sizeof word, "%.*s", (int)n, name);
    for (size_t i = 0; i < tb_bench_nkinds; i++) {
        names[i] = tb_bench_kinds[i].name;
        tb_format(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                  names[i]);
        used = strlen(list);
    }
    near = tb_nearest(word, names, tb_bench_nkinds);
    if (near)
        return TB_FAIL(ctx, TB_ERR_USAGE,
                       "bench: unknown case %s; did you mean %s%s?", name, near,
                       name[n] ? name + n : ":...");
    return TB_FAIL(ctx, TB_ERR_USAGE, "bench: unknown case %s; there are %s",
                   name, list);
}

static tb_status no_what(tb_ctx *ctx, const char *name, const char *what,
                         const tb_bench_kind *k)
{
    size_t n = 0;
    while (n < TB_LEN(k->whats) && k->whats[n])
        n++;
    const char *near = tb_nearest(what, k->whats, n);
    near = near ? near : k->whats[0];
    return TB_FAIL(ctx, TB_ERR_USAGE,
                   "bench: unknown case %s; did you mean %.*s%s?", name,
                   (int)(what - name), name, near);
}

/* case = kind ":" sizes ":" what */
static tb_status parse(tb_ctx *ctx, const char *name, parsed *out)
{
    size_t n = strcspn(name, ":");
    *out = (parsed){0};
    for (size_t i = 0; i < tb_bench_nkinds && !out->kind; i++)
        if (strlen(tb_bench_kinds[i].name) == n &&
            memcmp(tb_bench_kinds[i].name, name, n) == 0)
            out->kind = &tb_bench_kinds[i];
    if (!out->kind || strlen(name) >= TB_BENCH_NAME)
        return no_kind(ctx, name, n);
    const char *p = name[n] ? sizes(out->kind, name + n + 1, out->size) : NULL;
    if (!p || *p != ':')
        return TB_FAIL(ctx, TB_ERR_USAGE,
                       "bench: case: got %s, wanted %s with sizes from 1 to "
                       "1048576, not too many together",
                       name, out->kind->form);
    for (; out->what < TB_LEN(out->kind->whats); out->what++)
        if (out->kind->whats[out->what] &&
            tb_streq(out->kind->whats[out->what], p + 1))
            return TB_OK;
    return no_what(ctx, name, p + 1, out->kind);
}

tb_status tb_bench_check(tb_ctx *ctx, const char *name)
{
    parsed p;
    return parse(ctx, name, &p);
}

/* --- jobs -------------------------------------------------------------------
 */

tb_status tb_bench_open(tb_ctx *ctx, const char *name, tb_bench_job *j)
{
    parsed p;
    j->ctx = ctx;
    TB_TRY(parse(ctx, name, &p));
    return p.kind->open(j, p.size, p.what);
}

void tb_bench_close(tb_bench_job *j)
{
    if (j->close && j->state)
        j->close(j);
    while (j->nmemory > 0)
        tb_free(j->ctx, j->memory[--j->nmemory]);
}

void *tb_bench_memory(tb_bench_job *j, size_t n, size_t size)
{
    if (j->nmemory == TB_BENCH_MEMORY)
        return NULL;
    void *p = tb_alloc(j->ctx, n, size);
    if (p)
        j->memory[j->nmemory++] = p;
    return p;
}

float *tb_bench_normals(tb_bench_job *j, size_t n)
{
    enum { PERIOD = 4099 };
    tb_rng rng = tb_rng_make(1, "bench");
    float *x = tb_bench_memory(j, n, sizeof *x);
    for (size_t i = 0; x && i < n; i++)
        x[i] = i < PERIOD ? (float)tb_rng_normal(rng, i) : x[i - PERIOD];
    return x;
}
