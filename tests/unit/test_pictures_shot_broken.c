/* SPDX-License-Identifier: MIT */
/* Every claim of a shot can fail: the engine and the drawing are
 * broken one way at a time, and the claim that it breaks must not hold. The
 * linker puts the __wrap_ functions below in front of the real ones
 * (tests/CMakeLists.txt). */
#include "test_pictures_shot_help.h"

#include "flow/flow_model.h"
#include "tollbooth/eval.h"
#include "tollbooth/explain.h"

typedef enum damage {
    NONE,
    VALUE,    /* every value of eval off by a little, more at each call */
    JACOBIAN, /* one entry of a Jacobian likewise */
    LARGE,    /* the last entry of a Jacobian, by more */
    GRADIENT, /* of eval */
    WIDER,    /* eval: a weight's width, more at each call */
    STATUS,   /* eval refuses for another reason */
    SILENT,   /* eval refuses without a word */
    ZEROS,    /* every value of eval 0 */
    STILL,    /* every gradient 0, of eval and of a model */
    LANE,     /* flow: the lane below the top */
    LANES,    /* flow: all lanes 1 */
    TOTALS,   /* flow: all totals 1 */
    TOTAL,    /* flow: totals of the second stack */
    LOCAL,    /* flow: the top floor's lane */
    INPUT,    /* flow: spread of the input of the second stack */
    SPREAD,   /* flow: all spreads 1 but that of the input */
    ENDLESS,  /* flow: totals that are no numbers */
    PRODUCT,  /* flow: product of tolls */
    SCALE,    /* what a norm says it divided by */
    FLAT,     /* what norms read: zeros */
    GRAPH,    /* norms on the lane, as the graph has them */
    NO_BOX,   /* drawing: without a box, bars, ... */
    NO_BAR,
    NO_SKIP,
    NO_DIAGONAL,
    NO_WAY_BACK,
    NO_FLOOR,
    NO_EDGE,
    NO_TICK_BOX,
    NO_FOCUS,
    NO_TICK,
    NO_CARD,
    SAME, /* of two blocks: whether they are one */
    SHOWN /* what a number reads as */
} damage;

static damage now;
static int calls;

static double a_little(void)
{
    return 1e-3 * ++calls;
}

static void add_to(const tb_eval_value *v, size_t i, double by)
{
    double *data; /* eval gives it as const */
    memcpy(&data, &v->data, sizeof data);
    if (data)
        data[i] += by;
}

static size_t elements(const tb_eval_value *v)
{
    size_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dims[i];
    return n;
}

static void clear(const tb_eval_value *v)
{
    double *data;
    memcpy(&data, &v->data, sizeof data);
    if (data)
        memset(data, 0, elements(v) * sizeof *data);
}

/* --- the engine ----------------------------------------------------------- */

static tb_status refuse(tb_ctx *ctx, tb_status status)
{
    if (now == SILENT)
        tb_error_clear(ctx);
    return now == STATUS && status == TB_ERR_INPUT ? TB_ERR_ARG : status;
}

tb_status __real_tb_eval_run(tb_ctx *ctx, const tb_eval *e,
                             tb_eval_result **out);
tb_status __wrap_tb_eval_run(tb_ctx *ctx, const tb_eval *e,
                             tb_eval_result **out)
{
    tb_status status = __real_tb_eval_run(ctx, e, out);
    if (status != TB_OK)
        return refuse(ctx, status);
    const tb_eval_result *r = *out;
    double by = now == VALUE ? a_little() : 0;
    for (size_t i = 0; i < elements(&r->y) && by > 0; i++)
        add_to(&r->y, i, by * (1 + (double)i));
    if (now == JACOBIAN && r->jacobian.data)
        add_to(&r->jacobian, elements(&r->jacobian) - 2, a_little());
    if (now == LARGE && r->jacobian.data)
        add_to(&r->jacobian, elements(&r->jacobian) - 1, 100 * a_little());
    for (size_t i = 0; i < r->ngrads && now == GRADIENT; i++)
        add_to(&r->grads[i], elements(&r->grads[i]) - 1, a_little());
    calls += now == WIDER;
    for (size_t i = 0; i < r->ngrads && now == WIDER; i++)
        r->grads[i].dims[0] += (size_t)calls;
    if (now == ZEROS)
        clear(&r->y);
    for (size_t i = 0; i < r->ngrads && now == STILL; i++)
        clear(&r->grads[i]);
    return TB_OK;
}

static void harm(tb_flow *f)
{
    size_t n = f->nrows - 1;
    tb_flow_row *row = f->rows;
    bool second = ++calls == 2;
    for (size_t k = 0; k < n; k++) {
        row[k].lane *= now == LANE ? 4 : 1;
        row[k].lane = now == LANES ? 1 : row[k].lane;
        row[k].total = now == TOTALS ? 1 : row[k].total;
        row[k].total *= now == TOTAL && second && k < n / 2 ? 100 : 1;
        if (now == ENDLESS)
            row[k].total /= row[n].total - row[n].total;
        if (now == SPREAD)
            row[k + 1].std_x = 1;
    }
    if (now == LOCAL)
        row[n].local_lane = 0;
    row[0].std_x *= now == INPUT && second ? 2 : 1;
    row[0].toll_product *= now == PRODUCT ? 1.01 : 1;
}

tb_status __real_tb_flow_of_model(tb_model *m, const tb_flow_spec *spec,
                                  tb_flow **out);
tb_status __wrap_tb_flow_of_model(tb_model *m, const tb_flow_spec *spec,
                                  tb_flow **out)
{
    TB_TRY(__real_tb_flow_of_model(m, spec, out));
    harm(*out);
    return TB_OK;
}

tb_status __real_tb_flow_measure(tb_ctx *ctx, const tb_block *b,
                                 const tb_flow_spec *spec, tb_flow **out);
tb_status __wrap_tb_flow_measure(tb_ctx *ctx, const tb_block *b,
                                 const tb_flow_spec *spec, tb_flow **out)
{
    TB_TRY(__real_tb_flow_measure(ctx, b, spec, out));
    harm(*out);
    return TB_OK;
}

tb_status __real_tb_model_gradients(tb_model *m, const tb_batch *b,
                                    void *grads);
tb_status __wrap_tb_model_gradients(tb_model *m, const tb_batch *b, void *grads)
{
    TB_TRY(__real_tb_model_gradients(m, b, grads));
    if (now == STILL)
        memset(grads, 0, m->nelements * sizeof(double));
    return TB_OK;
}

tb_status __real_tb_explain_expect(tb_ctx *ctx, const tb_block *b,
                                   const tb_block *wanted,
                                   const tb_settings *settings, tb_expected *e,
                                   tb_out *why);
tb_status __wrap_tb_explain_expect(tb_ctx *ctx, const tb_block *b,
                                   const tb_block *wanted,
                                   const tb_settings *settings, tb_expected *e,
                                   tb_out *why)
{
    TB_TRY(__real_tb_explain_expect(ctx, b, wanted, settings, e, why));
    e->same = e->same != (now == SAME);
    return TB_OK;
}

char *__real_tb_show_number(double v, char out[TB_SHOW_CHARS]);
char *__wrap_tb_show_number(double v, char out[TB_SHOW_CHARS])
{
    return __real_tb_show_number(now == SHOWN ? v + 1 : v, out);
}

bool __real_tb_plan_scale(tb_ctx *ctx, const tb_run *r, int node, size_t row,
                          double *s, double *share);
bool __wrap_tb_plan_scale(tb_ctx *ctx, const tb_run *r, int node, size_t row,
                          double *s, double *share)
{
    bool has = __real_tb_plan_scale(ctx, r, node, row, s, share);
    *s *= now == SCALE ? 1.01 : 1;
    return has;
}

const void *__real_tb_plan_value(const tb_run *r, int node);
const void *__wrap_tb_plan_value(const tb_run *r, int node)
{
    static const double zeros[1 << 18]; /* more than any shot has */
    return now == FLAT ? zeros : __real_tb_plan_value(r, node);
}

tb_status __real_tb_graph_lane(tb_ctx *ctx, const tb_graph *g, tb_arena *arena,
                               tb_lane_info *out);
tb_status __wrap_tb_graph_lane(tb_ctx *ctx, const tb_graph *g, tb_arena *arena,
                               tb_lane_info *out)
{
    TB_TRY(__real_tb_graph_lane(ctx, g, arena, out));
    if (now == GRAPH) {
        bool toll = out->kind == TB_LANE_KIND_TOLL;
        out->kind = toll ? TB_LANE_KIND_CLEAN : TB_LANE_KIND_TOLL;
        out->tolls = toll ? 0 : 1;
    }
    return TB_OK;
}

/* --- the drawing ---------------------------------------------------------- */

static bool left_out(const tb_style *st)
{
    static const struct {
        damage what;
        const char *role;
    } parts[] = {
        {NO_BOX, "box"},       {NO_BAR, "bar"},           {NO_SKIP, "skip"},
        {NO_DIAGONAL, "diag"}, {NO_WAY_BACK, "grad-br"},  {NO_FLOOR, "floor"},
        {NO_EDGE, "edge"},     {NO_TICK_BOX, "tick-box"}, {NO_FOCUS, "focus"},
        {NO_TICK, "tick"},     {NO_CARD, "card"}};
    for (size_t i = 0; i < TB_LEN(parts); i++)
        if (now == parts[i].what && st && st->role &&
            tb_streq(st->role, parts[i].role))
            return true;
    return false;
}

void __real_tb_scene_rect(tb_scene *s, double x, double y, double w, double h,
                          const tb_style *st);
void __wrap_tb_scene_rect(tb_scene *s, double x, double y, double w, double h,
                          const tb_style *st)
{
    if (!left_out(st))
        __real_tb_scene_rect(s, x, y, w, h, st);
}

void __real_tb_scene_arrow(tb_scene *s, const double *xy, size_t n,
                           const tb_style *st);
void __wrap_tb_scene_arrow(tb_scene *s, const double *xy, size_t n,
                           const tb_style *st)
{
    if (!left_out(st))
        __real_tb_scene_arrow(s, xy, n, st);
}

void __real_tb_scene_path(tb_scene *s, const double *xy, size_t n, bool closed,
                          const tb_style *st);
void __wrap_tb_scene_path(tb_scene *s, const double *xy, size_t n, bool closed,
                          const tb_style *st)
{
    if (!left_out(st))
        __real_tb_scene_path(s, xy, n, closed, st);
}

void __real_tb_scene_group(tb_scene *s, const tb_style *st);
void __wrap_tb_scene_group(tb_scene *s, const tb_style *st)
{
    __real_tb_scene_group(s, left_out(st) ? &(tb_style){0} : st);
}

/* --- what each breaks ----------------------------------------------------- */

static const struct {
    const char *shot, *set;
    damage by;
    const char *claim; /* part of its text */
} rows[] = {
    {"S1", NULL, VALUE, "times 0"},
    {"S1", "F=zero", VALUE, "the zero box"},
    {"S1", NULL, NO_BOX, "one box"},
    {"S1", NULL, NO_BAR, "bars in"},
    {"S2", NULL, VALUE, "y is x"},
    {"S2", NULL, VALUE, "add up to y"},
    {"S2", "skip=0", VALUE, "no skip: y is 0"},
    {"S2", NULL, NO_SKIP, "into the plus"},
    {"S3", NULL, JACOBIAN, "J is I + dF/dx"},
    {"S3", NULL, JACOBIAN, "F times 0: J is I"},
    {"S3", NULL, JACOBIAN, "J by differences"},
    {"S3", NULL, GRADIENT, "hands the gradient back"},
    {"S3", NULL, GRADIENT, "both roads add up"},
    {"S3", NULL, GRADIENT, "is that at y"},
    {"S3", NULL, VALUE, "what nudging"},
    {"S3", "F=attention", VALUE, "differences are closest"},
    {"S3", NULL, NO_DIAGONAL, "outlined"},
    {"S3", NULL, NO_WAY_BACK, "through the box"},
    {"S4", NULL, VALUE, "panel 3"},
    {"S4", NULL, VALUE, "the mean is 0"},
    {"S4", NULL, VALUE, "spread sigma/s"},
    {"S4", NULL, VALUE, "3 added"},
    {"S4", NULL, VALUE, "10 z gives"},
    {"S4", NULL, JACOBIAN, "J is gain"},
    {"S4", NULL, JACOBIAN, "J passes 1/s"},
    {"S4", NULL, JACOBIAN, "divide J by 10"},
    {"S4", "norm=rmsnorm", VALUE, "keeps the mean"},
    {"S5", "N=4,d=8,T=4", GRAPH, "one on every floor"},
    {"S5", "N=4,d=8,T=4", SCALE, "mean 1/s"},
    {"S5", "N=4,d=8,T=4", PRODUCT, "RMS tolls"},
    {"S5", "N=4,d=8,T=4", SCALE, "the product of its 1/s"},
    {"S5", "N=4,d=8,T=4", LANE, "largest 1/s"},
    {"S5", "N=4,d=8,T=4,branch=linear", FLAT, "mean 1/s"},
    {"S5", "N=1,d=256,T=64,branch=linear", FLAT, "sqrt(1 + v^2)"},
    {"S6", "N=4,d=8,T=4", GRAPH, "booths on the lane"},
    {"S6", "N=4,d=8,T=4", LANE, "exactly 1"},
    {"S6", "N=4,d=8,T=4", LANE, "equally wide"},
    {"S6", "N=4,d=8,T=4", TOTALS, "the total varies"},
    {"S6", "N=4,d=8,T=4", GRAPH, "final norm"},
    {"S7", "N=4,d=8,T=4", LANE, "every lane arrow"},
    {"S7", "N=4,d=8,T=4", INPUT, "the same numbers"},
    {"S7", "card=a", LARGE, "rank d - 2"},
    {"S7", "card=a", LARGE, "let pass what one does"},
    {"S7", "card=a", LARGE, "exactly I"},
    {"S7", "sigma=1", LARGE, "is 1/s"},
    {"S7", "sigma=1", LARGE, "only grows"},
    {"S7", "sigma=1", LARGE, "ends at 1/sqrt(eps)"},
    {"S7", "sigma=1", STATUS, "typed error"},
    {"S7", "card=c,N=4,d=8,T=4", FLAT, "median toll falls"},
    {"S7", "card=c,N=4,d=8,T=4", LANE, "stays exactly 1"},
    {"S7", "card=d,N=4,d=8,T=4", LANE, "1 at every depth"},
    {"S7", "card=d,N=4,d=64,T=4", LANES, "falls with every depth"},
    {"S7", "card=e", GRADIENT, "no input gets"},
    {"S7", "card=f,N=4,d=8,T=4", LOCAL, "found by its lane"},
    {"S7", "card=f,N=4,d=8,T=4", TOTAL, "the branch's alone"},
    {"S7", "card=f,N=4,d=8,T=4", TOTAL, "less than comes"},
    {"SUM", "N=4,d=8,T=4", LANE, "exactly 1"},
    {"SUM", "N=4,d=8,T=4", GRAPH, "on the lane of every floor"},
    {"SUM", "N=4,d=8,T=4", INPUT, "the same numbers"},
    {"F1", NULL, SHOWN, "the label says"},
    {"F1", NULL, NO_BAR, "one of them in focus"},
    {"F1", NULL, NO_FOCUS, "one of them in focus"},
    {"F1", NULL, VALUE, "gives it alone"},
    {"F2", NULL, SAME, "x + Sublayer(x) are one block"},
    {"F2", NULL, SAME, "then x + FFN(x)"},
    {"F2", NULL, VALUE, "change no bit"},
    {"F2", NULL, SILENT, "is refused"},
    {"F2", NULL, NO_BOX, "one box on each"},
    {"F2", NULL, NO_FLOOR, "one box on each"},
    {"F3", NULL, GRADIENT, "untouched"},
    {"F3", NULL, GRADIENT, "two roads add up"},
    {"F3", NULL, GRADIENT, "both F roads broken"},
    {"F4", NULL, VALUE, "add up to 0"},
    {"F4", NULL, VALUE, "divides by d"},
    {"F4", NULL, VALUE, "d - 1"},
    {"F5", NULL, VALUE, "give the list back"},
    {"F5", NULL, VALUE, "alone"},
    {"F5", NULL, VALUE, "are LayerNorm"},
    {"F5", "use_dot=0", ZEROS, "moves all"},
    {"F5", "use_gamma=0,use_beta=0", VALUE, "changes nothing"},
    {"F6", NULL, SAME, "the same graph"},
    {"F6", NULL, GRAPH, "the graph's norms"},
    {"F-MAP", NULL, NO_EDGE, "to an earlier section"},
    {"F-MAP", NULL, NO_EDGE, "leans on all"},
    {"F-MAP", "done=[1]", NO_TICK, "a tick on each"},
    {"CHECK", NULL, VALUE, "what the answers say"},
    {"CHECK", NULL, NO_TICK_BOX, "boxes"},
    {"RECALL", NULL, JACOBIAN, "what the answers say"},
    {"RECALL", NULL, NO_CARD, "all 6 cards"},
    {"RETELL", NULL, JACOBIAN, "leaves I"},
    {"RETELL", NULL, GRAPH, "norms on the road"},
    {"N1", NULL, VALUE, "sums to 1"},
    {"N1", NULL, VALUE, "nobody sees"},
    {"N1", NULL, VALUE, "the softmax of"},
    {"N1", NULL, VALUE, "have the same weights"},
    {"N1", "turn=1", ZEROS, "have other weights"},
    {"N2", NULL, VALUE, "sums to 1"},
    {"N2", NULL, VALUE, "change no bit"},
    {"N2", NULL, WIDER, "as many weights"},
    {"N3", NULL, VALUE, "on the distance alone"},
    {"N3", NULL, VALUE, "keeps the length"},
    {"N4", NULL, VALUE, "sums to 1"},
    {"N4", NULL, ZEROS, "is hidden"},
    {"N4", NULL, STILL, "gets a gradient"},
    {"N5", "N=2", LANE, "exactly 1"},
    {"N5", "N=2", LANES, "there is no lane"},
    {"N5", "N=2", TOTALS, "less arrives"},
    {"N6", "N=2", SPREAD, "starts as the identity"},
    {"N6", "N=2", LANE, "in all four"},
    {"N6", "N=2", SPREAD, "grow less"},
    {"N7", "N=1", STILL, "as the gradient says"},
    {"N7", "N=1", STILL, "some step"},
    {"batchnorm", NULL, VALUE, "no bit of batchnorm"},
    {"batchnorm", NULL, VALUE, "no bit of layernorm"},
    {"workbench", "depth=2", ENDLESS, "finite"},
    {"workbench", "depth=2", LANE, "exactly 1"},
    {"workbench", "depth=2&block=post-ln", LANES, "not 1"},
    {"workbench", "depth=2&block=x = F(x)", LANES, "nothing passes"},
};

static const shot_check *claim_of(const tb_shot *s, const char *text)
{
    for (size_t k = 0; k < s->checks.n; k++)
        if (strstr(SHOT_AT(s->checks, shot_check, k).text, text))
            return &SHOT_AT(s->checks, shot_check, k);
    return NULL;
}

TB_TEST(claims_fail_where_they_are_broken)
{
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        now = NONE; /* sound, every claim holds */
        tb_shot_destroy(make_shot(T, rows[i].shot, rows[i].set));
        tb_shot *s = NULL;
        now = rows[i].by;
        calls = 0;
        TB_OKAY(T, tb_shot_create(T->ctx, rows[i].shot, rows[i].set, &s));
        const shot_check *c = s ? claim_of(s, rows[i].claim) : NULL;
        if (!c || c->ok || tb_shot_ok(s))
            tb_test_fail(T, __FILE__, __LINE__, "%s %s: \"%s\" %s",
                         rows[i].shot, rows[i].set ? rows[i].set : "",
                         rows[i].claim, c ? "holds all the same" : "not there");
        now = NONE;
        tb_shot_destroy(s);
    }
}
