/* SPDX-License-Identifier: MIT */
/* docs/placements.md against blocks/: each row has a file or a reason, each
 * file one row, and what the table says of a lane is what is computed. Then
 * the constants of the papers as they come out of the graphs. */
#include "unit/graph_help.h"

#include <stdio.h>

/* --- the table ------------------------------------------------------------ */

enum { ROW_CHARS = 400, CELLS = 5 };

/** The cells of one line of a table, without blanks around. */
typedef struct tb_row {
    char text[ROW_CHARS];
    const char *cell[CELLS];
} tb_row;

static char *trimmed(char *s)
{
    char *end = s + strlen(s);
    while (end > s && strchr(" \n", end[-1]))
        *--end = '\0';
    return s + strspn(s, " ");
}

/* "| a | b |": false for lines that are no row of five cells. */
static bool row_of(const char *line, tb_row *row)
{
    int n = 0;
    if (line[0] != '|' || line[1] == '-' || strlen(line) >= ROW_CHARS)
        return false;
    strcpy(row->text, line + 1);
    for (char *p = row->text, *bar; n < CELLS && (bar = strchr(p, '|'));
         p = bar + 1) {
        *bar = '\0';
        row->cell[n++] = trimmed(p);
    }
    return n == CELLS && !tb_streq(row->cell[0], "row");
}

/* The lanes of blocks 1 to 8, runs joined: "toll, then clean". */
static void lanes_of(tb_test *T, const char *name, char out[64])
{
    tb_settings s = TB_SETTINGS_UNSET;
    const char *before = "";
    s.depth = 8;
    out[0] = '\0';
    for (size_t l = 1; l <= s.depth; l++) {
        gr_case c;
        tb_lane_info lane;
        TB_OKAY(T, gr_open(T->ctx, &c, name, &s, GR_LAYER, l));
        TB_OKAY(T, tb_graph_lane(T->ctx, c.g, &c.arena, &lane));
        const char *kind = tb_lane_kind_name(lane.kind);
        if (!tb_streq(kind, before)) {
            size_t n = strlen(out);
            tb_format(out + n, 64 - n, "%s%s", n ? ", then " : "", kind);
        }
        before = kind;
        gr_close(T->ctx, &c);
    }
}

static void check_file(tb_test *T, const char *name, const char *lane,
                       int *seen)
{
    char got[64];
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        if (!tb_streq(tb_builtin_name(i), name))
            continue;
        seen[i]++;
        lanes_of(T, name, got);
        if (!tb_streq(got, lane))
            tb_test_fail(T, __FILE__, __LINE__,
                         "%s: the table says %s, its lane is %s", name, lane,
                         got);
        return;
    }
    tb_test_fail(T, __FILE__, __LINE__, "%s: no such block", name);
}

/* `a` `b`: each a file; anything else is a reason, which has no lane. */
static void check_row(tb_test *T, tb_row *row, int *seen)
{
    char files[ROW_CHARS];
    strcpy(files, row->cell[2]);
    TB_CHECK(T, *row->cell[1] && *row->cell[2] && *row->cell[4]);
    if (files[0] != '`') {
        TB_STR(T, row->cell[3], "");
        return;
    }
    for (char *p = files; (p = strchr(p, '`'));) {
        char *end = strchr(p + 1, '`');
        TB_REQUIRE(T, end);
        *end = '\0';
        check_file(T, p + 1, row->cell[3], seen);
        p = end + 1;
    }
}

TB_TEST(the_table_is_what_is_there)
{
    enum { ONE_STREAM = 48, SEVERAL = 19 };
    FILE *f = fopen(TB_SOURCE_DIR "/docs/placements.md", "rb");
    int *seen = tb_alloc(T->ctx, tb_builtin_count(), sizeof *seen), rows = 0;
    char line[2 * ROW_CHARS], number[16];
    tb_row row;
    TB_REQUIRE(T, f && seen);
    while (fgets(line, sizeof line, f)) {
        if (!row_of(line, &row))
            continue;
        check_row(T, &row, seen);
        if (tb_streq(row.cell[0], "-"))
            continue;
        rows++;
        bool one = rows <= ONE_STREAM;
        tb_format(number, sizeof number, "%s%d", one ? "" : "m",
                  one ? rows : rows - ONE_STREAM);
        TB_STR(T, row.cell[0], number);
    }
    (void)fclose(f);
    TB_CHECK(T, rows == ONE_STREAM + SEVERAL);
    for (size_t i = 0; i < tb_builtin_count(); i++)
        if (seen[i] != 1)
            tb_test_fail(T, __FILE__, __LINE__, "%s: %d rows, wanted one",
                         tb_builtin_name(i), seen[i]);
    tb_free(T->ctx, seen);
}

/* --- every file builds ---------------------------------------------------- */

static void build_all(tb_test *T, const char *name, const tb_settings *s)
{
    gr_case c;
    for (int part = GR_STEM; part <= GR_TAIL; part++) {
        TB_OKAY(T, gr_open(T->ctx, &c, name, s, (gr_part)part, 1));
        gr_close(T->ctx, &c);
    }
    for (size_t l = 1; l <= s->depth; l++) {
        TB_OKAY(T, gr_open(T->ctx, &c, name, s, GR_LAYER, l));
        TB_CHECK(T, c.g->nregions == 2);
        gr_attr(T, &c, "branch", 0, l); /* folds them all */
        gr_close(T->ctx, &c);
    }
}

TB_TEST(every_file_builds)
{
    static const size_t depths[] = {1, 2, 3, 6, 12, 24, 100};
    for (size_t i = 0; i < tb_builtin_count(); i++)
        for (size_t j = 0; j < TB_LEN(depths); j++) {
            tb_settings s = TB_SETTINGS_UNSET;
            s.depth = depths[j];
            build_all(T, tb_builtin_name(i), &s);
            s.width = 96;
            s.heads = 6;
            s.ffn = 200;
            s.bias = 0;
            if (depths[j] < 10)
                build_all(T, tb_builtin_name(i), &s);
        }
}

TB_TEST(print_is_a_fixed_point)
{
    for (size_t i = 0; i < tb_builtin_count(); i++) {
        tb_block *b;
        char *first, *second;
        TB_OKAY(T, tb_block_load(T->ctx, tb_builtin_name(i), &b));
        TB_OKAY(T, tb_block_text(T->ctx, b, &first));
        tb_block_destroy(T->ctx, b);
        TB_OKAY(T, tb_block_load(T->ctx, first, &b));
        TB_OKAY(T, tb_block_text(T->ctx, b, &second));
        TB_STR(T, second, first);
        tb_block_destroy(T->ctx, b);
        tb_text_free(T->ctx, first);
        tb_text_free(T->ctx, second);
    }
}

/* --- how many norms ------------------------------------------------------- */

static int norms_in(tb_test *T, const char *name, const tb_settings *s,
                    gr_part part, size_t l)
{
    gr_case c;
    int n = 0;
    if (gr_open(T->ctx, &c, name, s, part, l) != TB_OK)
        return -1000;
    for (int i = 0; i < c.g->nnodes; i++)
        n += c.g->nodes[i].op->lane == TB_LANE_TOLL;
    gr_close(T->ctx, &c);
    return n;
}

/* a*L + b norms at depth L */
TB_TEST(counts_of_norms)
{
    static const struct {
        const char *name;
        int per_block, more;
    } rows[] = {
        {"admin", 2, 0},
        {"altup", 6, 1},
        {"b2t", 2, 0},
        {"branch-scaled", 2, 1},
        {"completep", 2, 1},
        {"deep-delta", 4, 1},
        {"deepnorm", 2, 0},
        {"deepscalelm", 2, 1},
        {"depth-mup", 2, 1},
        {"derf", 2, 1},
        {"ds-init", 2, 0},
        {"dssn", 4, 1},
        {"dynamic-hyper-connections", 10, 1},
        {"dyt", 2, 1},
        {"fixnorm", 2, 1},
        {"fixup", 0, 0},
        {"gated-residual", 8, 1},
        {"gemma-2", 4, 1},
        {"gemma-4", 4, 1},
        {"glm-130b", 2, 1},
        {"gpas", 2, 1},
        {"gpt-2", 2, 1},
        {"gtrxl", 2, 0},
        {"highway", 0, 0},
        {"hybridnorm", 4, 1},
        {"hybridnorm-star", 4, 2}, /* one more in block 1 */
        {"hyper-connections", 2, 1},
        {"keel", 4, -1}, /* the first attention has no outer norm */
        {"laurel", 5, 1},
        {"layerscale", 2, 1},
        {"llama", 2, 1},
        {"lns", 2, 1},
        {"mhc", 4, 1},
        {"mhc-deepseek-v4", 4, 2},
        {"minimax", 2, 1},
        {"mix-ln", 2, 1},
        {"ngpt", 6, 1},
        {"no-skip", 0, 0},
        {"normformer", 4, 1},
        {"olmo-2", 4, 1},
        {"orthogonal", 2, 1},
        {"output-norm", 2, 1},
        {"parallel", 1, 1},
        {"parallel-two-norms", 2, 1},
        {"peri-ln", 4, 1},
        {"plain", 0, 0},
        {"post-ln", 2, 0},
        {"pre-ln", 2, 1},
        {"pre-ln-no-final", 2, 0},
        {"residual", 2, 1},
        {"revnet", 2, 1},
        {"rezero", 0, 0},
        {"sandwich", 4, 1},
        {"scalenorm", 2, 1},
        {"siamesenorm", 6, 3},
        {"skipinit", 0, 0},
        {"stochastic-depth", 2, 1},
        {"sub-ln", 4, 1},
        {"swin-v2", 4, 1},
        {"t-fixup", 0, 0},
        {"value-residual", 2, 1},
        {"vit-22b", 3, 1},
    };
    tb_settings s = TB_SETTINGS_UNSET;
    s.depth = 9;
    TB_CHECK(T, tb_builtin_count() >= TB_LEN(rows));
    for (size_t i = 0; i < TB_LEN(rows); i++) {
        int n = norms_in(T, rows[i].name, &s, GR_STEM, 1) +
                norms_in(T, rows[i].name, &s, GR_TAIL, 1);
        for (size_t l = 1; l <= s.depth; l++)
            n += norms_in(T, rows[i].name, &s, GR_LAYER, l);
        if (n != 9 * rows[i].per_block + rows[i].more)
            tb_test_fail(T, __FILE__, __LINE__, "%s: %d norms, wanted %d*9%+d",
                         rows[i].name, n, rows[i].per_block, rows[i].more);
    }
}

/* --- constants on skip and branch ----------------------------------------- */

static const size_t depths[] = {6, 12, 18, 24, 48, 100};

/* The scale of the last affine node of block l at every depth. */
static void scales(tb_test *T, const char *what, size_t l, double tolerance,
                   const double want[6])
{
    for (size_t i = 0; i < TB_LEN(depths); i++) {
        tb_settings s = TB_SETTINGS_UNSET;
        gr_case c;
        s.depth = depths[i];
        TB_OKAY(T, gr_open(T->ctx, &c, what, &s, GR_LAYER, l));
        TB_NEAR(T, gr_attr(T, &c, "affine", TB_ATTR_AFFINE_SCALE, l), want[i],
                tolerance);
        gr_close(T->ctx, &c);
    }
}

/* Wang et al. 2022, table of alpha; N = M in the two with a decoder. */
TB_TEST(deepnorm_alpha)
{
    static const double only[] = {1.861210, 2.213364, 2.449490,
                                  2.632148, 3.130169, 3.760603};
    static const double encoder[] = {1.417938, 1.760878, 1.998746,
                                     2.186760, 2.715644, 3.415742};
    static const double decoder[] = {2.059767, 2.449490, 2.710806,
                                     2.912951, 3.464102, 4.161791};
    scales(T, "deepnorm", 1, 1e-6, only);
    scales(T, "x = norm(0.81*(N^4*M)^(1/16)*x + F(x))", 1, 1e-6, encoder);
    scales(T, "x = norm((3*M)^0.25*x + F(x))", 1, 1e-6, decoder);
}

TB_TEST(other_scales)
{
    static const double keel[] = {12, 24, 36, 48, 96, 200};
    static const double glm[] = {
        3.4641016151377544, 4.8989794855663560, 6,
        6.9282032302755088, 9.7979589711327120, 14.142135623730951};
    static const double mup[] = {
        0.57735026918962573, 0.40824829046386307, 1.0 / 3,
        0.28867513459481292, 0.20412414523193154, 0.14142135623730950};
    static const double completep[] = {1.0 / 3,  1.0 / 6,  1.0 / 9,
                                       1.0 / 12, 1.0 / 24, 0.02};
    static const double branch[] = {
        0.28867513459481287, 0.20412414523193151, 1.0 / 6,
        0.14433756729740643, 0.10206207261596575, 0.070710678118654752};
    static const double lns[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    scales(T, "keel", 2, 1e-15, keel);
    scales(T, "glm-130b", 1, 1e-15, glm);
    scales(T, "depth-mup", 1, 1e-15, mup);
    scales(T, "completep", 1, 1e-15, completep);
    scales(T, "branch-scaled", 1, 1e-15, branch);
    scales(T, "lns", 4, 1e-15, lns);
}

/* The value in the configuration of the model, which has 80 blocks. */
TB_TEST(minimax_alpha)
{
    tb_settings s = TB_SETTINGS_UNSET;
    gr_case c;
    s.depth = 80;
    TB_OKAY(T, gr_open(T->ctx, &c, "minimax", &s, GR_LAYER, 1));
    TB_NEAR(T, gr_attr(T, &c, "affine", TB_ATTR_AFFINE_SCALE, 1),
            3.5565588200778455, 1e-15);
    gr_close(T->ctx, &c);
}

/* Keel's first block: no alpha at all. */
TB_TEST(keel_begins_without_alpha)
{
    gr_check(T, "keel", NULL, GR_LAYER, 1, gr_lane, "toll 1 1");
    gr_check(T, "keel", NULL, GR_LAYER, 2, gr_lane, "toll 2 alpha^2");
    gr_check(T, "gemma-4", NULL, GR_LAYER, 1, gr_lane, "gated 0 1");
    gr_check(T, "deepscalelm", NULL, GR_LAYER, 1, gr_lane, "scaled 0 lambda^2");
}
