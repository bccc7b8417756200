/* SPDX-License-Identifier: MIT */
/* Arrays that options name: NAME=JSON, NAME=FILE.npy and
 * NAME=FILE.safetensors:TENSOR. */
#include "named.h"
#include "tollbooth/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void named_clear(tb_ctx *ctx, named *n)
{
    for (size_t i = 0; i < n->count; i++) {
        tb_array_clear(ctx, &n->arrays[i]);
        free(n->names[i]);
    }
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), k = strlen(tail);
    return n > k && strcmp(s + n - k, tail) == 0;
}

/* FILE.safetensors:TENSOR, cut at the colon after the extension. */
static char *tensor_colon(char *text)
{
    char *ext = strstr(text, ".safetensors:");
    return ext ? ext + strlen(".safetensors") : NULL;
}

static tb_status read_value(tb_ctx *ctx, char *text, const char *what,
                            tb_array *out)
{
    char *colon = tensor_colon(text);
    if (ends_with(text, ".npy"))
        return tb_npy_read(ctx, text, out);
    if (!colon && ends_with(text, ".safetensors")) {
        complain("tollbooth: %s: got %s, wanted %s:TENSOR with the tensor's "
                 "name\n",
                 what, text, text);
        return TB_ERR_INPUT;
    }
    if (!colon)
        return tb_json_parse_tensor(ctx, text, what, out);
    *colon = '\0';
    return tb_array_read_tensor(ctx, text, colon + 1, out);
}

static void describe(named *n, size_t i)
{
    tb_array *a = &n->arrays[i];
    tb_eval_value *v = &n->values[i];
    v->name = n->names[i];
    v->rank = a->rank;
    v->data = a->data;
    for (int k = 0; k < a->rank && k < TB_EVAL_RANK; k++)
        v->dims[k] = a->dims[k];
}

int named_add(tb_ctx *ctx, named *n, const char *option, const char *item)
{
    char *text = strdup(item), what[100];
    char *equals = text ? strchr(text, '=') : NULL;
    if (!text)
        return die(ctx, TB_ERR_MEMORY);
    if (!equals || equals == text) {
        free(text);
        return usage_error(n->command, "--%s: got %s, wanted NAME=VALUE",
                           option, item);
    }
    *equals = '\0';
    size_t i = n->count++;
    n->names[i] = text;
    snprintf(what, sizeof what, "--%s %s", option, text);
    tb_status s = read_value(ctx, equals + 1, what, &n->arrays[i]);
    if (s != TB_OK) /* said above where the library has nothing to say */
        return *tb_error(ctx) ? die(ctx, s) : tb_status_exit(s);
    if (n->arrays[i].rank > TB_EVAL_RANK) {
        complain("tollbooth: %s: got %d lists deep, wanted at most %d\n", what,
                 n->arrays[i].rank, TB_EVAL_RANK);
        return tb_status_exit(TB_ERR_SHAPE);
    }
    describe(n, i);
    return 0;
}

int named_add_all(tb_ctx *ctx, named *n, const char *option,
                  const opt_many *items)
{
    int code = 0;
    for (size_t i = 0; i < items->count && code == 0; i++)
        code = named_add(ctx, n, option, items->items[i]);
    return code;
}
