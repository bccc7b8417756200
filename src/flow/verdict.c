/* SPDX-License-Identifier: MIT */
/* Findings in words. One row per code: what is measured, two limits, where
 * the limits come from. Limits without an outside source say "ours". */
#include "flow/verdict.h"

typedef tb_flow_finding finding;
typedef finding (*measure_fn)(const tb_flow *f, size_t nonfinite);

enum { LEVELS = 3 };

typedef struct verdict_row {
    const char *code;
    measure_fn measure;
    bool low;             /* low values are bad */
    double limit[LEVELS]; /* one for each level that is not OK */
    tb_level level[LEVELS];
    const char *bad, *good;
    const char *source;
} verdict_row;

#define NONE __builtin_nan("")

/* The first value on its way up; of gradients alone the first on its way
 * down. */
static finding count_nonfinite(const tb_flow *f, size_t nonfinite)
{
    const tb_flow_row *at = NULL;
    for (size_t i = 0; nonfinite && i < f->nrows; i++)
        if (f->rows[i].nonfinite)
            at = &f->rows[i];
    for (size_t i = f->nrows; nonfinite && i-- > 0;)
        if (f->rows[i].nonfinite_x)
            at = &f->rows[i];
    return (finding){.value = (double)nonfinite, .at = at, .applies = true};
}

static finding smallest_total(const tb_flow *f, size_t nonfinite)
{
    const tb_flow_row *at = f->rows;
    for (size_t i = 0; i < f->nrows; i++)
        if (f->rows[i].total < at->total)
            at = &f->rows[i];
    return (finding){.value = at->total, .at = at, .applies = nonfinite == 0};
}

static finding largest_total(const tb_flow *f, size_t nonfinite)
{
    const tb_flow_row *at = f->rows;
    for (size_t i = 0; i < f->nrows; i++)
        if (f->rows[i].total > at->total)
            at = &f->rows[i];
    return (finding){.value = at->total, .at = at, .applies = nonfinite == 0};
}

/* Without a lane there are no tolls, and nothing is added to it. */
static bool has_lane(const tb_flow *f)
{
    if (f->lists)
        return f->rows[0].lane > 0;
    for (size_t i = 1; i < f->nrows; i++)
        if (f->rows[i].local_lane == 0)
            return false;
    return true;
}

static finding lane_at_bottom(const tb_flow *f, size_t nonfinite)
{
    return (finding){.value = f->rows[0].lane,
                     .at = &f->rows[0],
                     .applies = nonfinite == 0 && has_lane(f)};
}

/* E14: factor per sublayer of the least-squares line through log total. */
static finding slope(const tb_flow *f, size_t nonfinite)
{
    double n = (double)f->nrows, sx = 0, sy = 0, xx = 0, xy = 0, yy = 0;
    finding out = {.value = 1, .applies = nonfinite == 0 && f->nrows > 4};
    for (size_t i = 0; i < f->nrows && out.applies; i++) {
        double x = (double)i, y = tb_log(f->rows[i].total);
        out.applies = tb_isfinite(y);
        sx += x;
        sy += y;
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    double vx = xx - sx * sx / n, vy = yy - sy * sy / n;
    double cov = xy - sx * sy / n;
    out.applies = out.applies && vy > 0 && cov * cov > 0.9 * vx * vy;
    /* towards the input k falls: the factor of a step down */
    out.value = tb_exp(-cov / vx);
    double away = out.value < 1 ? 1 / out.value : out.value;
    out.value = out.applies ? away : 1;
    return out;
}

/* A sublayer that no path leads around; of an audit also what little of the
 * identity is left (E11) where the gradient drops to less than a fifth. */
static finding no_skip(const tb_flow *f, size_t nonfinite)
{
    finding out = {.value = 1, .applies = nonfinite == 0};
    if (f->lists && f->rows[0].lane > 0)
        return out; /* a list leads around the branches */
    for (size_t i = f->nrows; i-- > 1;)
        if (f->rows[i].local_lane == 0)
            out = (finding){.value = 0, .at = &f->rows[i], .applies = true};
    for (size_t i = 1; i < f->nrows; i++) {
        const tb_flow_row *r = &f->rows[i];
        bool drops = f->rows[i - 1].total < r->total / 5;
        if (r->audited && drops && r->identity_share < out.value) {
            out.value = r->identity_share;
            out.at = r;
        }
    }
    return out;
}

static finding early_big(const tb_flow *f, size_t nonfinite)
{
    bool clean = nonfinite == 0 && f->rows[0].lane > 0;
    for (size_t i = 0; i < f->nrows; i++)
        clean = clean && f->rows[i].norms == 0;
    return (finding){
        .value = f->rows[0].total, .at = &f->rows[0], .applies = clean};
}

/* The smaller of two things that both say how much happens here. */
static double happens(const tb_flow_row *r)
{
    return r->branch_ratio < r->angle ? r->branch_ratio : r->angle;
}

static finding dead_depth(const tb_flow *f, size_t nonfinite)
{
    const tb_flow_row *at = NULL;
    for (size_t i = f->nrows - f->nrows / 3; i < f->nrows; i++)
        if (!at || happens(&f->rows[i]) > happens(at))
            at = &f->rows[i];
    return (finding){.value = at ? happens(at) : 0,
                     .at = at,
                     .applies = nonfinite == 0 && at && has_lane(f)};
}

/* What comes out below a norm on the lane, over what its RMS gain lets expect:
 * J_LN takes a gradient along (1/gain) to nothing, as that of a sum of its
 * outputs. */
static finding zero_sum(const tb_flow *f, size_t nonfinite)
{
    finding out = {.value = 1};
    for (size_t i = f->nrows - 1; i > 0; i--) {
        const tb_flow_row *r = &f->rows[i];
        if (!(r->total > 1e-6))
            break; /* nothing arrives any more */
        if (r->norms == 0 || !(r->toll > 0))
            continue;
        double left = f->rows[i - 1].total / r->total / r->toll;
        out.applies = nonfinite == 0;
        if (left < out.value) {
            out.value = left;
            out.at = r;
        }
    }
    return out;
}

static finding largest_number(const tb_flow *f, size_t nonfinite)
{
    finding out = {.at = f->rows, .applies = nonfinite == 0, .number = true};
    for (size_t i = 0; i < f->nrows; i++) {
        const tb_flow_row *r = &f->rows[i];
        bool gradient = r->top_g > r->top_x[0];
        double most = gradient ? r->top_g : r->top_x[0];
        if (!(most > out.value))
            continue;
        out.value = most;
        out.at = r;
        out.gradient = gradient;
    }
    return out;
}

/* A number above 100 beside the middle one of its row. */
static finding massive(const tb_flow *f, size_t nonfinite)
{
    finding out = {.applies = nonfinite == 0, .number = true};
    for (size_t i = 0; i < f->nrows; i++) {
        const tb_flow_row *r = &f->rows[i];
        double times = r->median_x > 0 ? r->top_x[0] / r->median_x : 0;
        if (r->top_x[0] > 100 && times > out.value) {
            out.value = times;
            out.at = r;
        }
    }
    return out;
}

/* Where a norm divides by little more than the root of its eps. */
static finding eps_works(const tb_flow *f, size_t nonfinite)
{
    finding out = {.applies = false};
    for (size_t i = 0; i < f->nnorms; i++) {
        const tb_flow_norm *n = &f->norms[i];
        bool here =
            n->has_s && n->k >= f->rows[0].k && n->k <= f->rows[f->nrows - 1].k;
        if (!here || (out.norm && !(n->eps_share > out.value)))
            continue;
        out.norm = n;
        out.value = n->eps_share;
        out.applies = nonfinite == 0;
    }
    return out;
}

static const verdict_row table[] = {
    {"NONFINITE",
     count_nonfinite,
     false,
     {0},
     {TB_FAILED},
     "values or gradients are not finite",
     "every number is finite",
     "Hugging Face DebugUnderflowOverflow stops on the first"},
    {"NOSKIP",
     no_skip,
     true,
     {0.1},
     {TB_FAILED},
     "no identity path: none leads around the branch, or little of the "
     "identity is left where the gradient drops to less than a fifth",
     "every sublayer has an identity path",
     "ours; case: entrenar issue 313"},
    {"ZEROSUM",
     zero_sum,
     true,
     {1e-5},
     {TB_FAILED},
     "a norm on the lane gives nothing back: the gradient that arrives is one "
     "it takes to zero, as that of a sum of its outputs",
     "no norm on the lane takes what arrives to zero",
     "algebra of E2; pytorch issue 63541; number ours"},
    {"VANISH",
     smallest_total,
     true,
     {1e-2, 1e-4},
     {TB_WARN, TB_FAILED},
     "the total gradient fades on its way down",
     "the total gradient keeps its size on its way down",
     "ours"},
    {"EXPLODE",
     largest_total,
     false,
     {1e2, 1e4},
     {TB_WARN, TB_FAILED},
     "the total gradient explodes on its way down",
     "the total gradient does not explode",
     "ours"},
    {"TOLL",
     lane_at_bottom,
     true,
     {0.1, 1e-3},
     {TB_NOTE, TB_WARN},
     "the lane alone loses most of the signal to its norms; the total beside "
     "it is what trains",
     "the lane alone carries the signal",
     "ours"},
    {"SLOPE",
     slope,
     false,
     {1.1},
     {TB_NOTE},
     "the total changes by a steady factor per sublayer",
     "no steady factor per sublayer",
     "ours"},
    {"EARLYBIG",
     early_big,
     false,
     {3},
     {TB_NOTE},
     "the total grows toward the input, as known of pre-norm stacks",
     "the total does not grow much toward the input",
     "Megatron-DeepSpeed issue 149; number ours"},
    {"DEADDEPTH",
     dead_depth,
     true,
     {0.01},
     {TB_NOTE},
     "the last third of the sublayers adds almost nothing",
     "the last third of the sublayers still adds to the stream",
     "effect: arXiv:2502.05795; number ours"},
    {"FP16MAX",
     largest_number,
     false,
     {6550.4, 65504},
     {TB_WARN, TB_FAILED},
     "the stream or its gradient comes near the largest number of fp16, or "
     "passes it",
     "the stream and its gradient stay far below the largest number of fp16",
     "IEEE half, 65504; a tenth of it ours"},
    {"MASSIVE",
     massive,
     false,
     {1000},
     {TB_NOTE},
     "a number above 100 is this many times the middle one of its stream",
     "no number above 100 that stands far out of its stream",
     "Sun et al., arXiv:2402.17762"},
    {"IDENTITY",
     tb_find_identity,
     false,
     {1e-4},
     {TB_FAILED},
     "a sum on the lane is not the sum of the stream and its branches",
     "the stream is what it was and what the branches add",
     "idea: TransformerLens issues 1639 and 1648; number ours"},
    {"JACCHECK",
     tb_find_check,
     false,
     {1e-7, 1e-4, 1e-2},
     {TB_NOTE, TB_WARN, TB_FAILED},
     "derivatives in double are not those of central differences",
     "derivatives in double are those of central differences",
     "ladder of the CS231n course notes"},
    {"SINK",
     tb_find_sink,
     false,
     {0.3},
     {TB_NOTE},
     "a head gives the first token much of its attention",
     "no head gives the first token much of its attention",
     "Gu et al., arXiv:2410.10781"},
    {"ALPHA",
     tb_find_alpha_low,
     true,
     {2},
     {TB_NOTE},
     "a weight's spectrum has a small exponent, over-trained by "
     "WeightWatcher's "
     "reading, which is contested",
     "no exponent of a weight's spectrum outside of 2 to 6, WeightWatcher's "
     "reading of a good one, which is contested",
     "WeightWatcher's constant"},
    {"ALPHA",
     tb_find_alpha_high,
     false,
     {6},
     {TB_NOTE},
     "a weight's spectrum has a large exponent, under-trained by "
     "WeightWatcher's reading, which is contested",
     "no exponent of a weight's spectrum is large",
     "WeightWatcher's constant"},
    {"EPS",
     eps_works,
     false,
     {0.1},
     {TB_NOTE},
     "eps is a large share of what a norm divides a token by, squared",
     "eps is small beside what the norms divide by",
     "ours"},
};

static void override_limits(const tb_flow_spec *spec, const char *code,
                            double limit[LEVELS])
{
    for (size_t i = 0; i < spec->nthresholds; i++)
        if (tb_streq(spec->thresholds[i].code, code)) {
            limit[0] = spec->thresholds[i].value;
            limit[1] = limit[2] = NONE;
        }
}

static bool beyond(const verdict_row *row, double v, double limit)
{
    return row->low ? v < limit : v > limit;
}

/* "k 3, attn of block 2", of two stacks "of decoder block 2". */
static const char *place(tb_arena *a, const tb_flow_row *at, const char *role)
{
    const char *of = role ? role : "", *blank = role ? " " : "";
    if (!at)
        return of;
    if (at->layer == 0)
        return tb_arena_printf(a, "k %zu, the %s%sstem", at->k, of, blank);
    return tb_arena_printf(a, "k %zu, %s of %s%sblock %zu", at->k, at->name, of,
                           blank, at->layer);
}

/* "k 3, attn of block 2, head 4; 12 of 48 heads". */
static const char *where_of_head(tb_arena *a, const tb_flow *f,
                                 const finding *x, double limit)
{
    size_t of, n = tb_count_sinks(f, limit, &of);
    const char *at =
        place(a, &f->rows[x->heads->k - f->rows[0].k], x->heads->role);
    return at ? tb_arena_printf(a, "%s, head %zu; %zu of %zu heads", at,
                                x->head + 1, n, of)
              : NULL;
}

/* "layers.0.attn.norm, block 1, token 3" */
static const char *where_of_norm(tb_arena *a, const tb_flow_norm *n,
                                 const char *role)
{
    const char *of = role ? role : "", *blank = role ? " " : "";
    return n->layer ? tb_arena_printf(a, "%s%s%s, block %zu, token %zu", of,
                                      blank, n->name, n->layer, n->eps_token)
                    : tb_arena_printf(a, "%s%s%s, after the stack, token %zu",
                                      of, blank, n->name, n->eps_token);
}

static const char *where(tb_arena *a, const tb_flow *f, const finding *x,
                         const char *role, double limit)
{
    const char *at = place(a, x->at, role);
    if (x->heads)
        return where_of_head(a, f, x, limit);
    if (x->weight)
        return tb_arena_printf(a, "%s; %zu of %zu matrices", x->weight->name,
                               x->count, x->of);
    if (x->check)
        return tb_arena_printf(a, "%s%sblock %zu", role ? role : "",
                               role ? " " : "", x->check->layer);
    if (x->norm)
        return where_of_norm(a, x->norm, role);
    if (!at || !x->number || !x->at)
        return at;
    return x->gradient
               ? tb_arena_printf(a, "%s, gradient of token %zu, channel %zu",
                                 at, x->at->top_g_token, x->at->top_g_channel)
               : tb_arena_printf(a, "%s, token %zu, channel %zu", at,
                                 x->at->top_token, x->at->top_channel);
}

static tb_status judge_row(tb_arena *a, const tb_flow *f,
                           const verdict_row *row, const finding *x,
                           const char *role, const tb_flow_spec *spec,
                           tb_verdict *out)
{
    double limit[LEVELS];
    memcpy(limit, row->limit, sizeof limit);
    override_limits(spec, row->code, limit);
    *out = (tb_verdict){.code = row->code,
                        .level = TB_OK_,
                        .value = x->value,
                        .threshold = limit[0],
                        .sentence = row->good,
                        .source = row->source,
                        .where = where(a, f, x, role, limit[0])};
    for (int i = 0; i < LEVELS; i++)
        if (row->level[i] != TB_OK_ && beyond(row, x->value, limit[i])) {
            out->level = row->level[i];
            out->threshold = limit[i];
            out->sentence = row->bad;
        }
    return out->where ? TB_OK : TB_ERR_MEMORY;
}

/* Worst first; the table's order among equals. */
static void sort_verdicts(tb_verdict *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && v[j].level > v[j - 1].level; j--) {
            tb_verdict t = v[j];
            v[j] = v[j - 1];
            v[j - 1] = t;
        }
}

static tb_status check_codes(tb_ctx *ctx, const tb_flow_spec *spec)
{
    const char *codes[TB_LEN(table)];
    for (size_t i = 0; i < TB_LEN(table); i++)
        codes[i] = table[i].code;
    for (size_t i = 0; i < spec->nthresholds; i++) {
        const char *code = spec->thresholds[i].code, *near;
        bool known = false;
        for (size_t j = 0; j < TB_LEN(table); j++)
            known = known || tb_streq(codes[j], code);
        near = known ? NULL : tb_nearest(code, codes, TB_LEN(table));
        if (!known)
            return TB_FAIL(ctx, TB_ERR_ARG, "threshold: unknown code %s%s%s",
                           code, near ? "; did you mean " : "",
                           near ? near : "");
    }
    return TB_OK;
}

static tb_status judge_stack(tb_flow_box *box, size_t stack, size_t nonfinite,
                             const tb_flow_spec *spec)
{
    tb_flow *f = &box->flow, one = *f;
    const tb_flow_stack *s = &f->stacks[stack];
    one.rows = f->rows + s->first;
    one.nrows = s->nrows;
    for (size_t i = 0; i < TB_LEN(table); i++) {
        finding x = table[i].measure(&one, nonfinite);
        if (x.applies)
            TB_TRY(judge_row(&box->arena, &one, &table[i], &x, s->role, spec,
                             &f->verdicts[f->nverdicts++]));
    }
    return TB_OK;
}

tb_status tb_flow_judge(tb_ctx *ctx, tb_flow *f, const size_t *nonfinite,
                        const tb_flow_spec *spec)
{
    tb_flow_box *box = (tb_flow_box *)f;
    TB_TRY(check_codes(ctx, spec));
    f->verdicts = tb_arena_alloc(&box->arena, f->nstacks * TB_LEN(table) *
                                                  sizeof *f->verdicts);
    if (!f->verdicts)
        return TB_ERR_MEMORY;
    for (size_t i = 0; i < f->nstacks; i++)
        TB_TRY(judge_stack(box, i, nonfinite[i], spec));
    sort_verdicts(f->verdicts, f->nverdicts);
    return TB_OK;
}
