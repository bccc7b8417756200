/* SPDX-License-Identifier: MIT */
/* For tests of the model room: number lists as text, and an eval in a line. */
#ifndef TB_TESTS_MODEL_HELP_H
#define TB_TESTS_MODEL_HELP_H

#include "tb_test.h"
#include "model/model.h"
#include "tollbooth/eval.h"

enum { HELP_NUMBERS = 4096, HELP_SETS = 16 };

/** Numbers of one case; zero it, then add. */
typedef struct tb_case {
    tb_eval e;
    tb_eval_value sets[HELP_SETS], tangents[HELP_SETS], cotangent;
    double numbers[HELP_NUMBERS];
    size_t used;
    double eps;
} tb_case;

static inline double help_number(const char **p)
{
    static const struct {
        const char *word;
        double v;
    } words[] = {{"nan", __builtin_nan("")},
                 {"inf", __builtin_inf()},
                 {"-inf", -__builtin_inf()}};
    double v = 0;
    for (size_t i = 0; i < TB_LEN(words); i++)
        if (strncmp(*p, words[i].word, strlen(words[i].word)) == 0) {
            *p += strlen(words[i].word);
            return words[i].v;
        }
    *p += tb_double_parse(*p, strlen(*p), &v);
    return v;
}

/** "[[1,2],[3,4]]": rank from the opening brackets, dims from counting. */
static inline tb_eval_value help_list(tb_case *c, const char *name,
                                      const char *text)
{
    tb_eval_value v = {.name = name, .data = c->numbers + c->used};
    size_t closes[4] = {0}, count = 0;
    int depth = 0;
    while (text[v.rank] == '[')
        v.rank++;
    for (const char *p = text; *p;) {
        if (*p == '[') {
            depth++;
            p++;
        } else if (*p == ']') {
            closes[depth--]++;
            p++;
        } else if (*p == ',' || *p == ' ') {
            p++;
        } else {
            c->numbers[c->used++] = help_number(&p);
            count++;
        }
    }
    size_t outer = 1;
    for (int i = 0; i < v.rank; i++) {
        size_t lists = i + 1 < v.rank ? closes[i + 2] : count;
        v.dims[i] = lists / outer;
        outer = lists;
    }
    return v;
}

static inline void help_set(tb_case *c, const char *name, const char *text)
{
    c->sets[c->e.nsets++] = help_list(c, name, text);
    c->e.sets = c->sets;
}

static inline void help_tangent(tb_case *c, const char *name, const char *text)
{
    c->tangents[c->e.ntangents++] = help_list(c, name, text);
    c->e.tangents = c->tangents;
}

static inline void help_cotangent(tb_case *c, const char *text)
{
    c->cotangent = help_list(c, "cotangent", text);
    c->e.cotangent = &c->cotangent;
}

/** "x=[1,2]; norm.gain=[1,1]" */
static inline void help_sets(tb_case *c, char *copy, const char *text)
{
    size_t n = strlen(text);
    memcpy(copy, text, n + 1);
    for (char *p = copy; *p;) {
        p += strspn(p, " ;");
        char *eq = strchr(p, '='), *end = p + strcspn(p, ";");
        if (!eq)
            return;
        *eq = '\0';
        char stop = *end;
        *end = '\0';
        help_set(c, p, eq + 1);
        p = stop ? end + 1 : end;
    }
}

static inline const tb_eval_value *help_grad(const tb_eval_result *r,
                                             const char *name)
{
    for (size_t i = 0; i < r->ngrads; i++)
        if (tb_streq(r->grads[i].name, name))
            return &r->grads[i];
    return NULL;
}

static inline size_t help_count(const tb_eval_value *v)
{
    size_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dims[i];
    return n;
}

#endif
