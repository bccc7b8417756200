/* SPDX-License-Identifier: MIT */
/* Names of a block as names of Python: keywords, what a module already has as
 * an attribute, what a method uses itself. */
#include "graph/pytorch_parts.h"

static const char *const keywords[] = {
    "False",  "None",   "True",    "and",      "as",       "assert", "async",
    "await",  "break",  "class",   "continue", "def",      "del",    "elif",
    "else",   "except", "finally", "for",      "from",     "global", "if",
    "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
    "pass",   "raise",  "return",  "try",      "while",    "with",   "yield",
};

/* Attributes of nn.Module in some version, and of our own classes. A parameter
 * cannot have these names the ordinary way. */
static const char *const attributes[] = {
    "T_destination",
    "add_module",
    "apply",
    "bfloat16",
    "buffers",
    "call_super_init",
    "children",
    "compile",
    "cpu",
    "cuda",
    "double",
    "dump_patches",
    "eval",
    "extra_repr",
    "float",
    "forward",
    "get_buffer",
    "get_extra_state",
    "get_parameter",
    "get_submodule",
    "half",
    "init_weights",
    "ipu",
    "load_state_dict",
    "modules",
    "mtia",
    "named_buffers",
    "named_children",
    "named_modules",
    "named_parameters",
    "parameters",
    "register_backward_hook",
    "register_buffer",
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook",
    "register_module",
    "register_parameter",
    "register_state_dict_post_hook",
    "register_state_dict_pre_hook",
    "requires_grad_",
    "set_extra_state",
    "set_submodule",
    "share_memory",
    "state_dict",
    "to",
    "to_empty",
    "train",
    "training",
    "type",
    "xpu",
    "zero_grad",
};

/* What methods read beside the block's own values. */
static const char *const globals[] = {
    "CONTEXT", "DROPOUT", "EPS",         "F",           "KV_HEADS", "M",
    "N",       "VOCAB",   "abs",         "block",       "d",        "h",
    "keep",    "math",    "max",         "memory_keep", "mha",      "min",
    "nn",      "self",    "source_keep", "super",       "torch",
};

#define IS_ONE_OF(list, word) is_one_of(list, TB_LEN(list), word)
static bool is_one_of(const char *const *list, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (tb_streq(list[i], word))
            return true;
    return false;
}

const char *tb_py_local(tb_py *py, const char *name)
{
    if (IS_ONE_OF(keywords, name) || IS_ONE_OF(globals, name))
        return tb_py_printf(py, "%s_", name);
    return name;
}

const char *tb_py_input(tb_py *py, const char *name)
{
    const char *dot = strchr(name, '.');
    if (!dot)
        return tb_py_local(py, name);
    const char *list = tb_py_printf(py, "%.*s", (int)(dot - name), name);
    return tb_py_printf(py, "%s[%s]", tb_py_local(py, list), dot + 1);
}

const char *const tb_py_masks[2] = {"keep", "memory_keep"};

int tb_py_mask(const char *input)
{
    static const char *const names[2] = {"x.keep", "memory.keep"};
    for (int i = 0; i < 2; i++)
        if (tb_streq(input, names[i]))
            return i;
    return -1;
}

/* Length of the list's name in that of an element, 0 of anything else: a mask
 * is "x.keep". */
static size_t list_length(const tb_node *n)
{
    const char *dot = n->op == &tb_op_input ? strchr(n->name, '.') : NULL;
    return dot && dot[1] <= '9' ? (size_t)(dot - n->name) : 0;
}

const char *tb_py_list(tb_py *py, const tb_node *n)
{
    size_t length = list_length(n);
    if (!length)
        return NULL;
    return tb_py_local(py, tb_py_printf(py, "%.*s", (int)length, n->name));
}

bool tb_py_same_list(const tb_graph *g, const int *free, int i)
{
    const tb_node *n = &g->nodes[free[i]];
    size_t length = list_length(n);
    for (int j = 0; length && j < i; j++) {
        const tb_node *m = &g->nodes[free[j]];
        if (list_length(m) == length && !memcmp(m->name, n->name, length))
            return true;
    }
    return false;
}

/* A leading _ could be an attribute of the module's own. */
static bool is_plain(const char *word)
{
    return *word != '_' && !IS_ONE_OF(keywords, word) &&
           !IS_ONE_OF(attributes, word);
}

const char *tb_py_path(tb_py *py, const char *self, const char *name,
                       bool param)
{
    tb_buf b;
    tb_buf_init(&b, py->ctx);
    tb_buf_puts(&b, self);
    while (*name) {
        size_t n = strcspn(name, ".");
        bool last = name[n] == '\0';
        const char *word = tb_py_printf(py, "%.*s", (int)n, name);
        if (is_plain(word))
            tb_buf_printf(&b, ".%s", word);
        else
            tb_buf_printf(&b, "._%s[\"%s\"]",
                          last && param ? "parameters" : "modules", word);
        name += n + !last;
    }
    return tb_py_take(py, &b);
}

const char *tb_py_parent(tb_py *py, const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? tb_py_printf(py, "%.*s", (int)(dot - name), name) : "";
}

const char *tb_py_below(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    if (strncmp(name, prefix, n) != 0 || name[n] != '.')
        return NULL;
    return name + n + 1;
}
