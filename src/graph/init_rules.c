/* SPDX-License-Identifier: MIT */
/* Globs of init rules. */
#include "graph/init_rules.h"

/* glob[0..gn) against text[0..tn), backtracking to the last star only. */
static bool wild(const char *g, size_t gn, const char *t, size_t tn)
{
    size_t i = 0, j = 0, star = SIZE_MAX, mark = 0;
    while (j < tn) {
        if (i < gn && g[i] == '*') {
            star = i++;
            mark = j;
        } else if (i < gn && g[i] == t[j]) {
            i++;
            j++;
        } else if (star != SIZE_MAX) {
            i = star + 1;
            j = ++mark;
        } else {
            return false;
        }
    }
    while (i < gn && g[i] == '*')
        i++;
    return i == gn;
}

static bool ends_with(const char *s, size_t n, const char *tail)
{
    size_t k = strlen(tail);
    return n >= k && memcmp(s + n - k, tail, k) == 0;
}

/* Bytes of `s` without a ".weight" at its end. */
static size_t without_weight(const char *s)
{
    size_t n = strlen(s);
    return ends_with(s, n, ".weight") ? n - strlen(".weight") : n;
}

/* The name after "layers.N.", or all of it. */
static const char *inner_name(const char *name)
{
    static const char head[] = "layers.";
    if (strncmp(name, head, sizeof head - 1) != 0)
        return name;
    const char *dot = strchr(name + sizeof head - 1, '.');
    return dot ? dot + 1 : name;
}

/* Does the glob say by its spelling that it means this kind of weight? */
static bool role_meant(const char *glob, tb_role role)
{
    size_t n = strlen(glob);
    switch (role) {
    case TB_ROLE_BIAS:
        return ends_with(glob, n, ".bias");
    case TB_ROLE_GAIN:
        return ends_with(glob, n, ".gain");
    case TB_ROLE_EMBEDDING:
        return *glob != '*';
    case TB_ROLE_SCALAR:
    case TB_ROLE_TABLE:
    case TB_ROLE_VECTOR: {
        const char *dot = strrchr(glob, '.');
        return !strchr(dot ? dot : glob, '*');
    }
    case TB_ROLE_BUFFER:
        return false; /* no weight */
    case TB_ROLE_MATRIX:
        break;
    }
    return true;
}

/* Bytes of "encoder." or "decoder." at the start. */
static size_t side_prefix(const char *name)
{
    static const char *const sides[] = {"encoder.", "decoder."};
    for (size_t i = 0; i < TB_LEN(sides); i++)
        if (strncmp(name, sides[i], strlen(sides[i])) == 0)
            return strlen(sides[i]);
    return 0;
}

bool tb_init_of_side(const char *glob)
{
    return side_prefix(glob) > 0;
}

static bool means(const char *glob, const char *name)
{
    return wild(glob, without_weight(glob), name, without_weight(name));
}

bool tb_init_glob(const char *glob, const char *name, tb_role role)
{
    size_t side = side_prefix(name);
    const char *bare = name + side, *inner = inner_name(bare);
    if (!role_meant(glob, role))
        return false;
    if (side && strncmp(glob, name, side) == 0 && means(glob + side, inner))
        return true;
    return means(glob, inner) || means(glob, bare) || means(glob, name);
}

bool tb_init_of_layer(const char *glob)
{
    return strstr(glob, "layers.") != NULL;
}

tb_pos tb_init_glob_pos(const tb_block *b, const tb_init_rule *line, int g)
{
    tb_pos pos = line->pos;
    const char *p = b->source;
    for (int n = 1; n < pos.line && p; n++)
        p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    for (int column = 1; p && column < pos.column; column++)
        for (p++; ((unsigned char)*p & 0xc0) == 0x80;)
            p++;
    for (int i = 0; i < g && p; i++) {
        const char *next = p + strlen(line->globs[i]);
        next += strspn(next, ", ");
        pos.column += (int)(next - p); /* globs are ASCII */
        p = next;
    }
    return pos;
}

/* settings.init as a text of its own: "init:", each of its lines, and the
 * block without which no text is whole. */
tb_status tb_init_extra(tb_ctx *ctx, const tb_settings *s, tb_block **out)
{
    const char *text = s->init;
    *out = NULL;
    if (!text)
        return TB_OK;
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_buf_puts(&b, "init:\n");
    while (*text) {
        size_t n = strcspn(text, "\n;");
        tb_buf_printf(&b, "    %.*s\n", (int)n, text);
        text += n + (text[n] != '\0');
    }
    tb_buf_puts(&b, "block:\n    x = x\n");
    tb_status status = tb_buf_status(&b);
    if (status == TB_OK)
        status = tb_block_parse(ctx, "--init", tb_buf_str(&b), b.len,
                                TB_PARSE_BLOCK, out);
    tb_buf_clear(&b);
    return status;
}
