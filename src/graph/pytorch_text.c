/* SPDX-License-Identifier: MIT */
/* The Python that does not depend on the graphs: docstring, sizes, norms,
 * attention, and the reader of our checkpoints. */
#include "graph/pytorch_parts.h"

/* --- docstrings
 * --------------------------------------------------------------- */

/* Bytes of the UTF-8 sequence at s, 0 if there is none. */
static size_t sequence(const char *s, size_t n)
{
    unsigned char c = (unsigned char)s[0];
    size_t len = c < 0x80   ? 1
                 : c < 0xc2 ? 0
                 : c < 0xe0 ? 2
                 : c < 0xf0 ? 3
                 : c < 0xf5 ? 4
                            : 0;
    if (len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
    unsigned char second = len > 2 ? (unsigned char)s[1] : 0x90;
    bool overlong =
        (c == 0xe0 && second < 0xa0) || (c == 0xf0 && second < 0x90);
    bool beyond =
        (c == 0xed && second >= 0xa0) || (c == 0xf4 && second >= 0x90);
    return overlong || beyond ? 0 : len;
}

/* One word; what a docstring cannot hold is replaced. */
static void doc_word(tb_buf *out, const char *s, size_t n)
{
    while (n) {
        size_t len = sequence(s, n);
        unsigned char c = (unsigned char)*s;
        if (!len || c < 0x20 || c == 0x7f)
            tb_buf_putc(out, '?');
        else if (c == '"')
            tb_buf_putc(out, '\'');
        else if (c == '\\')
            tb_buf_puts(out, "\\\\");
        else
            tb_buf_put(out, s, len);
        s += len ? len : 1;
        n -= len ? len : 1;
    }
}

/* Columns of a word: a backslash takes two. */
static size_t width_of(const char *s, size_t n)
{
    size_t width = n;
    for (size_t i = 0; i < n; i++)
        width += s[i] == '\\';
    return width;
}

/* `taken`: columns before the text on its first line. */
static void doc_after(tb_buf *out, int indent, size_t taken, const char *text,
                      size_t n)
{
    size_t lead = 0;
    while (lead < n && text[lead] == ' ')
        lead++;
    int more = indent + (int)lead;
    size_t column = taken + (size_t)more;
    tb_buf_printf(out, "%*s", lead < n ? more : 0, "");
    for (size_t i = lead, len, words = 0; i < n; i += len, words++) {
        len = 0;
        while (i + len < n && text[i + len] != ' ')
            len++;
        size_t width = width_of(text + i, len);
        if (words && column + 1 + width > TB_PY_COLUMNS) {
            tb_buf_printf(out, "\n%*s", more + 4, "");
            column = (size_t)more + 4;
        } else if (words) {
            tb_buf_putc(out, ' ');
            column++;
        }
        doc_word(out, text + i, len);
        column += width;
        while (i + len < n && text[i + len] == ' ')
            len++;
    }
    tb_buf_putc(out, '\n');
}

void tb_py_doc(tb_buf *out, int indent, const char *text, size_t n)
{
    doc_after(out, indent, 0, text, n);
}

static void doc_lines(tb_buf *out, int indent, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        tb_py_doc(out, indent, text, n);
        text += n + (text[n] != '\0');
    }
}

/* --- head
 * ----------------------------------------------------------------------- */

static void docstring(tb_py *py, tb_buf *out)
{
    const tb_block *b = py->stack->block;
    tb_buf text;
    tb_buf_init(&text, py->ctx);
    tb_buf_puts(out, "\"\"\"");
    tb_buf_printf(&text, "%s", b->name ? b->name : "A Transformer");
    if (b->about && b->name)
        tb_buf_puts(&text, ": ");
    else if (b->about)
        tb_buf_puts(&text, ".\n");
    tb_buf_printf(&text, "%s", b->about ? b->about : ".");
    const char *all = tb_py_take(py, &text), *rest = strchr(all, '\n');
    doc_after(out, 0, 3, all, rest ? (size_t)(rest - all) : strlen(all));
    tb_buf_puts(out, rest ? "\n" : "");
    doc_lines(out, 0, rest ? rest + 1 : "");
    tb_buf_puts(
        out, "\nThe block is the text BLOCK below. The names of the state "
             "dict are those of\ntollbooth's checkpoints: "
             "load_tollbooth(path) reads one. Written by\ntollbooth " TB_VERSION
             "; the sizes are constants: to change one, export again.\n"
             "\"\"\"\n\n");
}

static void imports(tb_py *py, tb_buf *out)
{
    tb_buf_puts(out, "import json\n");
    if (py->uses & (TB_PY_USES_MATH | TB_PY_USES_MHA))
        tb_buf_puts(out, "import math\n");
    if (py->stack->unit[0].n + py->stack->unit[1].n > 0)
        tb_buf_puts(out, "import re\n");
    tb_buf_puts(out, "import struct\n\nimport torch\nfrom torch import nn\n");
    bool plain =
        py->uses & TB_PY_USES_LAYERNORM && !(py->uses & TB_PY_USES_NORMED);
    if (plain || py->uses & (TB_PY_USES_F | TB_PY_USES_MHA))
        tb_buf_puts(out, "from torch.nn import functional as F\n");
}

static void sizes(tb_py *py, tb_buf *out)
{
    const tb_settings *s = &py->stack->sizes->s;
    static const char *const flag[] = {"False", "True"};
    static const char *const positions[] = {"False", "True", "\"sinusoidal\"",
                                            "\"rope\""};
    bool both = s->stack == TB_STACKS_BOTH;
    tb_buf_printf(out, "\nN = %zu  # %sblocks\n", s->depth,
                  both ? "encoder " : "");
    if (both)
        tb_buf_printf(out, "M = %zu  # decoder blocks\n", s->decoder_depth);
    tb_buf_printf(out,
                  "d = %zu  # width\nh = %zu  # heads\n"
                  "KV_HEADS = %zu\nVOCAB = %zu\nCONTEXT = %zu\nEPS = %s\n",
                  s->width, s->heads, s->kv_heads, s->vocab, s->context,
                  tb_py_number(py, s->eps));
    if (py->uses & TB_PY_USES_DROPOUT)
        tb_buf_printf(out, "DROPOUT = %s\n", tb_py_number(py, s->dropout));
    tb_buf_puts(out, "\nSETTINGS = {\n");
    if (s->stack != TB_STACKS_DECODER)
        tb_buf_printf(out, "    \"kind\": \"%s\",\n", tb_stack_names[s->stack]);
    tb_buf_puts(out, "    \"depth\": N,\n");
    if (both)
        tb_buf_puts(out, "    \"decoder_depth\": M,\n");
    tb_buf_printf(
        out,
        "    \"width\": d,\n"
        "    \"heads\": h,\n    \"kv_heads\": KV_HEADS,\n    \"ffn\": %zu,\n"
        "    \"context\": CONTEXT,\n    \"vocab\": VOCAB,\n"
        "    \"norm\": \"%s\",\n    \"eps\": EPS,\n    \"bias\": %s,\n"
        "    \"tied\": %s,\n    \"causal\": %s,\n    \"positions\": %s,\n}\n",
        s->ffn, s->norm, flag[s->bias != 0], flag[s->tied != 0],
        flag[s->causal != 0], positions[s->positions]);
}

/* The canonical text, byte for byte: long lines are continued. */
static void block_text(tb_py *py, tb_buf *out)
{
    tb_buf text;
    size_t column = 0;
    tb_buf_init(&text, py->ctx);
    tb_block_print(py->stack->block, &text);
    tb_buf_puts(out, "\nBLOCK = \"\"\"\\\n");
    for (const char *c = tb_py_take(py, &text); *c; c++) {
        if (column >= TB_PY_COLUMNS - 1 && *c != '\n') {
            tb_buf_puts(out, "\\\n");
            column = 0;
        }
        if (*c == '"' || *c == '\\')
            tb_buf_putc(out, '\\');
        tb_buf_putc(out, *c);
        column = *c == '\n' ? 0 : column + 1;
    }
    tb_buf_puts(out, "\"\"\"\n");
}

void tb_py_head(tb_py *py, tb_buf *out)
{
    docstring(py, out);
    imports(py, out);
    sizes(py, out);
    block_text(py, out);
}

/* --- helpers
 * -------------------------------------------------------------------- */

static const char layernorm_text[] =
    "\n\nclass LayerNorm(nn.Module):\n"
    "    \"\"\"gain * (x - mean) / sqrt(var + eps) + bias\"\"\"\n\n"
    "    def __init__(self, width, eps):\n"
    "        super().__init__()\n"
    "        self.gain = nn.Parameter(torch.ones(width))\n"
    "        self.bias = nn.Parameter(torch.zeros(width))\n"
    "        self.eps = eps\n\n"
    "    def forward(self, x):\n"
    "        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, "
    "self.eps)\n";

static const char rmsnorm_text[] =
    "\n\nclass RMSNorm(nn.Module):\n"
    "    \"\"\"gain * x / sqrt(mean(x^2) + eps)\"\"\"\n\n"
    "    def __init__(self, width, eps):\n"
    "        super().__init__()\n"
    "        self.gain = nn.Parameter(torch.ones(width))\n"
    "        self.eps = eps\n\n"
    "    def forward(self, x):\n"
    "        mean_square = x.square().mean(-1, keepdim=True)\n"
    "        return self.gain * x * torch.rsqrt(mean_square + self.eps)\n";

/* The same two where some norm of the file has options. */
static const char normed_text[] =
    "\n\ndef normed(\n"
    "    x, eps, kind, mode=\"inside\", variance=\"twopass\", unbiased=False, "
    "groups=1\n"
    "):\n"
    "    \"\"\"x without its mean over its length, for each part of the "
    "width.\n\n"
    "    Before gain and bias; [..., groups, width of a part]. `mode` says "
    "where eps stands.\n"
    "    \"\"\"\n"
    "    x = x.unflatten(-1, (groups, -1))\n"
    "    width = x.shape[-1]\n"
    "    n = {\"layer\": width - unbiased, \"rms\": width, \"length\": "
    "1}[kind]\n"
    "    mean = x.mean(-1, keepdim=True) if kind == \"layer\" else 0.0\n"
    "    c = x - mean\n"
    "    if variance == \"twopass\":\n"
    "        square = c.square().sum(-1, keepdim=True)\n"
    "    else:\n"
    "        square = x.square().sum(-1, keepdim=True) - width * mean**2\n"
    "    if variance == \"onepass_clipped\":\n"
    "        square = square.clamp(min=0.0)\n"
    "    tiny = torch.finfo(x.dtype).tiny  # a root has no slope at 0\n"
    "    if mode == \"outside\":\n"
    "        return c / ((square / n).clamp(min=tiny).sqrt() + eps)\n"
    "    if mode == \"clamp\":\n"
    "        return n**0.5 * c / square.clamp(min=max(eps**2, tiny)).sqrt()\n"
    "    if mode == \"clamp_square\":\n"
    "        return n**0.5 * c / square.clamp(min=eps).sqrt()\n"
    "    eps = {\"dtype\": torch.finfo(x.dtype).eps, \"none\": 0.0}.get(mode, "
    "eps)\n"
    "    return c * torch.rsqrt(square / n + eps)\n";

static const char layernorm_options_text[] =
    "\n\nclass LayerNorm(nn.Module):\n"
    "    \"\"\"gain * (x - mean) / sqrt(var + eps) + bias\"\"\"\n\n"
    "    def __init__(self, width, eps, bias=True, **options):\n"
    "        super().__init__()\n"
    "        self.gain = nn.Parameter(torch.ones(width))\n"
    "        self.bias = nn.Parameter(torch.zeros(width)) if bias else None\n"
    "        self.eps, self.options = eps, options\n\n"
    "    def forward(self, x):\n"
    "        y = self.gain * normed(x, self.eps, \"layer\", **self.options)\n"
    "        return (y if self.bias is None else y + self.bias).flatten(-2)\n";

static const char rmsnorm_options_text[] =
    "\n\nclass RMSNorm(nn.Module):\n"
    "    \"\"\"gain * x / sqrt(mean(x^2) + eps)\"\"\"\n\n"
    "    def __init__(self, width, eps, **options):\n"
    "        super().__init__()\n"
    "        self.gain = nn.Parameter(torch.ones(width))\n"
    "        self.eps, self.options = eps, options\n\n"
    "    def forward(self, x):\n"
    "        y = normed(x, self.eps, \"rms\", **self.options)\n"
    "        return (self.gain * y).flatten(-2)\n";

static const char scalenorm_text[] =
    "\n\nclass ScaleNorm(nn.Module):\n"
    "    \"\"\"length * x / max(|x|, eps)\"\"\"\n\n"
    "    def __init__(self, width, eps, mode=\"clamp\", **options):\n"
    "        super().__init__()\n"
    "        self.length = nn.Parameter(torch.full((1,), width**0.5))\n"
    "        self.eps, self.mode, self.options = eps, mode, options\n\n"
    "    def forward(self, x):\n"
    "        y = normed(x, self.eps, \"length\", self.mode, **self.options)\n"
    "        return (self.length * y).flatten(-2)\n";

static const char given_text[] =
    "\n\ndef over_root(c, square, eps, mode):\n"
    "    \"\"\"c over the root of a mean square of each feature.\"\"\"\n"
    "    if mode == \"outside\":\n"
    "        tiny = torch.finfo(c.dtype).tiny  # a root has no slope at 0\n"
    "        return c / (square.clamp(min=tiny).sqrt() + eps)\n"
    "    eps = {\"dtype\": torch.finfo(c.dtype).eps, \"none\": 0.0}.get(mode, "
    "eps)\n"
    "    return c * torch.rsqrt(square + eps)\n"
    "\n\ndef real_tokens(x, keep):\n"
    "    \"\"\"The tokens that `keep` [B, T, 1] has at 1, or all of "
    "them.\"\"\"\n"
    "    return x.flatten(0, -2) if keep is None else x[keep[..., 0] > 0]\n"
    "\n\ndef hidden(y, keep):\n"
    "    return y if keep is None else torch.where(keep > 0, y, 0.0 * y)\n";

static const char batchnorm_text[] =
    "\n\nclass BatchNorm(nn.Module):\n"
    "    \"\"\"gain * (x - mean) / sqrt(var + eps) + bias, for each "
    "feature.\n\n"
    "    Mean and variance of this batch's tokens in training, running ones in "
    "eval.\n"
    "    \"\"\"\n\n"
    "    def __init__(self, width, eps, mode=\"inside\", momentum=0.1):\n"
    "        super().__init__()\n"
    "        self.gain = nn.Parameter(torch.ones(width))\n"
    "        self.bias = nn.Parameter(torch.zeros(width))\n"
    "        self.register_buffer(\"mean\", torch.zeros(width))\n"
    "        self.register_buffer(\"var\", torch.ones(width))\n"
    "        self.eps, self.mode, self.momentum = eps, mode, momentum\n\n"
    "    def forward(self, x, keep=None):\n"
    "        mean, var = self.mean, self.var\n"
    "        if self.training:\n"
    "            real = real_tokens(x, keep)\n"
    "            var, mean = torch.var_mean(real, 0, unbiased=False)\n"
    "            self.follow(mean.detach(), var.detach(), len(real))\n"
    "        y = over_root(x - mean, var, self.eps, self.mode)\n"
    "        return hidden(self.gain * y + self.bias, keep)\n\n"
    "    def follow(self, mean, var, n):\n"
    "        \"\"\"The running variance divides by n - 1.\"\"\"\n"
    "        self.mean.lerp_(mean, self.momentum)\n"
    "        if n > 1:\n"
    "            self.var.lerp_(var * (n / (n - 1)), self.momentum)\n";

static const char powernorm_text[] =
    "\n\nclass GivenScale(torch.autograd.Function):\n"
    "    \"\"\"n = r * x with the approximate gradient r * (g - nu * "
    "n).\"\"\"\n\n"
    "    @staticmethod\n"
    "    def forward(ctx, x, r, nu):\n"
    "        ctx.save_for_backward(r * x, r, nu)\n"
    "        return r * x\n\n"
    "    @staticmethod\n"
    "    def backward(ctx, g):\n"
    "        n, r, nu = ctx.saved_tensors\n"
    "        return r * (g - nu * n), None, None\n"
    "\n\nclass PowerNorm(nn.Module):\n"
    "    \"\"\"gain * x / sqrt(square + eps) + bias, for each feature "
    "(arXiv:2003.07845).\n\n"
    "    Mean squares of this batch's tokens in the first `warmup` training "
    "steps, then\n"
    "    running ones. `steps` is not in the state dict: set it to resume.\n"
    "    \"\"\"\n\n"
    "    def __init__(\n"
    "        self, width, eps, mode=\"inside\", momentum=0.1, "
    "back_momentum=0.1, warmup=0\n"
    "    ):\n"
    "        super().__init__()\n"
    "        self.gain = nn.Parameter(torch.ones(width))\n"
    "        self.bias = nn.Parameter(torch.zeros(width))\n"
    "        self.register_buffer(\"square\", torch.ones(width))\n"
    "        self.register_buffer(\"nu\", torch.zeros(width))\n"
    "        self.eps, self.mode = eps, mode\n"
    "        self.momentum, self.back_momentum = momentum, back_momentum\n"
    "        self.warmup, self.steps = warmup, 0\n\n"
    "    def forward(self, x, keep=None):\n"
    "        if not self.training:\n"
    "            n = over_root(x, self.square, self.eps, self.mode)\n"
    "            return hidden(self.gain * n + self.bias, keep)\n"
    "        self.steps += 1\n"
    "        x = hidden(x, keep)\n"
    "        square = real_tokens(x, keep).square().mean(0)\n"
    "        if self.steps <= self.warmup:\n"
    "            n = over_root(x, square, self.eps, self.mode)\n"
    "        else:\n"
    "            r = over_root(torch.ones_like(square), self.square, self.eps, "
    "self.mode)\n"
    "            n = GivenScale.apply(x, r, self.nu.clone())\n"
    "        self.square.lerp_(square.detach(), self.momentum)\n"
    "        if n.requires_grad:\n"
    "            n.register_hook(lambda g: self.follow(g, n.detach(), keep))\n"
    "        return hidden(self.gain * n + self.bias, keep)\n\n"
    "    def follow(self, g, n, keep):\n"
    "        along = real_tokens(g * n, keep).mean(0)\n"
    "        length = real_tokens(n * n, keep).mean(0)\n"
    "        self.nu += self.back_momentum * (along - length * self.nu)\n";

static const char dyt_text[] =
    "\n\nclass DyT(nn.Module):\n"
    "    \"\"\"gain * tanh(alpha * x) + bias\"\"\"\n\n"
    "    def __init__(self, width):\n"
    "        super().__init__()\n"
    "        self.alpha = nn.Parameter(torch.full((1,), 0.5))\n"
    "        self.gain = nn.Parameter(torch.ones(width))\n"
    "        self.bias = nn.Parameter(torch.zeros(width))\n\n"
    "    def forward(self, x):\n"
    "        return self.gain * torch.tanh(self.alpha * x) + self.bias\n";

static const char derf_text[] =
    "\n\nclass Derf(nn.Module):\n"
    "    \"\"\"gain * erf(alpha * x + shift) + bias\"\"\"\n\n"
    "    def __init__(self, width):\n"
    "        super().__init__()\n"
    "        self.alpha = nn.Parameter(torch.full((1,), 0.5))\n"
    "        self.shift = nn.Parameter(torch.zeros(1))\n"
    "        self.gain = nn.Parameter(torch.ones(width))\n"
    "        self.bias = nn.Parameter(torch.zeros(width))\n\n"
    "    def forward(self, x):\n"
    "        return self.gain * torch.erf(self.alpha * x + self.shift) + "
    "self.bias\n";

static const char mha_text[] =
    "    \"\"\"softmax(q k^T / sqrt(head width)) v for every head.\"\"\"\n"
    "    kv_heads = kv_heads or heads\n"
    "    q = q.unflatten(-1, (heads, -1)).transpose(1, 2)  # [B, heads, T, "
    "width]\n"
    "    k = k.unflatten(-1, (kv_heads, -1)).transpose(1, 2)\n"
    "    v = v.unflatten(-1, (kv_heads, -1)).transpose(1, 2)\n"
    "    if kv_heads != heads:  # several query heads share one\n"
    "        k = k.repeat_interleave(heads // kv_heads, dim=1)\n"
    "        v = v.repeat_interleave(heads // kv_heads, dim=1)\n"
    "    scale = scale or 1 / math.sqrt(q.shape[-1])\n"
    "    scores = q @ k.transpose(-2, -1) * scale\n";

static const char causal_text[] =
    "    if causal:\n"
    "        later = torch.ones_like(scores, dtype=torch.bool).triu(1)\n"
    "        scores = scores.masked_fill(later, -math.inf)\n"
    "    p = F.dropout(scores.softmax(-1), dropout)\n";

static const char keep_text[] =
    "    hide = torch.zeros_like(scores, dtype=torch.bool)\n"
    "    if causal:\n"
    "        hide = (~hide).triu(1)\n"
    "    if keep is not None:  # [B, keys, 1]: 0 at padding, which nobody "
    "sees\n"
    "        hide = hide | (keep.unsqueeze(1).transpose(-2, -1) <= 0)\n"
    "    least = torch.finfo(scores.dtype).min\n"
    "    p = scores.masked_fill(hide, least).softmax(-1).masked_fill(hide, "
    "0.0)\n"
    "    p = F.dropout(p, dropout)\n";

static void mha_helper(unsigned uses, tb_buf *out)
{
    static const char arguments[] = "q, k, v, heads, kv_heads=None, "
                                    "causal=True, dropout=0.0, scale=None";
    bool keep = uses & TB_PY_USES_KEEP;
    tb_buf_printf(out,
                  keep ? "\n\ndef mha(\n    %s, keep=None\n):\n"
                       : "\n\ndef mha(%s):\n",
                  arguments);
    tb_buf_printf(out, "%s%s    return (p @ v).transpose(1, 2).flatten(-2)\n",
                  mha_text, keep ? keep_text : causal_text);
}

static const char rope_text[] =
    "\n\ndef rope(x, heads, base=10000.0):\n"
    "    \"\"\"Pairs (i, i + width/2) of each head turned by t * base^(-2i / "
    "width).\"\"\"\n"
    "    x = x.unflatten(-1, (heads, -1))  # [B, T, heads, width]\n"
    "    half = x.shape[-1] // 2\n"
    "    pair = torch.arange(half, dtype=torch.float64, device=x.device)\n"
    "    time = torch.arange(x.shape[1], dtype=torch.float64, "
    "device=x.device)\n"
    "    angle = torch.outer(time, base ** (-pair / half))[:, None]\n"
    "    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)\n"
    "    a, b = x[..., :half], x[..., half:]\n"
    "    return torch.cat((a * cos - b * sin, a * sin + b * cos), "
    "-1).flatten(-2)\n";

static const char sinusoid_text[] =
    "\n\ndef sinusoid(x):\n"
    "    \"\"\"Adds sin and cos of t * 10000^(-2i / width) at elements 2i and "
    "2i + 1.\"\"\"\n"
    "    length, width = x.shape[-2:]\n"
    "    pair = torch.arange(0, width, 2, dtype=torch.float64, "
    "device=x.device)\n"
    "    time = torch.arange(length, dtype=torch.float64, device=x.device)\n"
    "    angle = torch.outer(time, 10000.0 ** (-pair / width))\n"
    "    waves = torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)\n"
    "    return x + waves[:, :width].to(x.dtype)\n";

static const char skipdrop_text[] =
    "\n\ndef drop_branch(x, p, training):\n"
    "    \"\"\"All of a sequence is dropped with probability p, in training."
    "\"\"\"\n"
    "    if not training or p == 0:\n"
    "        return x\n"
    "    kept = torch.rand(x.shape[0], 1, 1, device=x.device) >= p\n"
    "    return x * kept.to(x.dtype) / (1 - p)\n";

static const char concat_text[] =
    "\n\ndef concat(groups, *streams):\n"
    "    \"\"\"Streams side by side in each of so many parts of the "
    "width.\"\"\"\n"
    "    parts = [x.unflatten(-1, (groups, -1)) for x in streams]\n"
    "    return torch.cat(parts, -1).flatten(-2)\n";

static const char mix_text[] =
    "\n\ndef mix(w, *streams, row=0, first=0, of=0):\n"
    "    \"\"\"The sum of streams weighted by a vector, a matrix's row, or "
    "tokens;\n"
    "    by the weights from `first` on where a row has more.\"\"\"\n"
    "    n = of or len(streams)\n"
    "    w = w[row] if w.dim() == 2 else w[..., row * n : (row + 1) * n]\n"
    "    return sum(w[..., i : i + 1] * x for i, x in enumerate(streams, "
    "first))"
    "\n";

static const char onehot_text[] =
    "\n\n@torch.no_grad()\n"
    "def onehot_(w, i):\n"
    "    \"\"\"1 at element i, counted from 1; else 0.\"\"\"\n"
    "    w.zero_()[i - 1] = 1.0\n";

static const char sinkhorn_text[] =
    "\n\ndef sinkhorn(a, rounds, columns_first=False):\n"
    "    \"\"\"exp(a), then rows and columns divided by their sums, `rounds` "
    "times.\n\n"
    "    A stream holds a square matrix for each token.\n"
    "    \"\"\"\n"
    "    if a.dim() == 2:\n"
    "        y = a\n"
    "    else:\n"
    "        y = a.unflatten(-1, (round(a.shape[-1] ** 0.5), -1))\n"
    "    for _ in range(rounds):\n"
    "        for dim in (-2, -1) if columns_first else (-1, -2):\n"
    "            y = y - y.logsumexp(dim, keepdim=True)\n"
    "    return y.exp().reshape(a.shape)\n";

static const char unit_text[] =
    "\n\ndef unit(w, eps=0.0, columns=False):\n"
    "    \"\"\"Rows, or columns, of length 1.\"\"\"\n"
    "    length = w.norm(dim=0 if columns else -1, keepdim=True)\n"
    "    return w / length.clamp(min=eps)\n";

static const char headscale_text[] =
    "\n\ndef headscale(x, w):\n"
    "    \"\"\"Each head times its factor.\"\"\"\n"
    "    return (x.unflatten(-1, (len(w), -1)) * w[:, None]).flatten(-2)\n";

static const char maxdiv_text[] =
    "\n\ndef maxdiv(x, to, whole=False):\n"
    "    \"\"\"x scaled to a largest element of `to`; no gradient through "
    "that.\"\"\"\n"
    "    most = x.detach().abs()\n"
    "    most = most.max() if whole else most.amax(-1, keepdim=True)\n"
    "    return x * torch.where(most > 0, to / most, torch.ones_like(most))\n";

void tb_py_helpers(tb_py *py, tb_buf *out)
{
    bool any = (py->uses & TB_PY_USES_NORMED) != 0;
    if (any)
        tb_buf_puts(out, normed_text);
    if (py->uses & TB_PY_USES_LAYERNORM)
        tb_buf_puts(out, any ? layernorm_options_text : layernorm_text);
    if (py->uses & TB_PY_USES_RMSNORM)
        tb_buf_puts(out, any ? rmsnorm_options_text : rmsnorm_text);
    if (py->uses & TB_PY_USES_SCALENORM)
        tb_buf_puts(out, scalenorm_text);
    if (py->uses & (TB_PY_USES_BATCHNORM | TB_PY_USES_POWERNORM))
        tb_buf_puts(out, given_text);
    if (py->uses & TB_PY_USES_BATCHNORM)
        tb_buf_puts(out, batchnorm_text);
    if (py->uses & TB_PY_USES_POWERNORM)
        tb_buf_puts(out, powernorm_text);
    if (py->uses & TB_PY_USES_DYT)
        tb_buf_puts(out, dyt_text);
    if (py->uses & TB_PY_USES_DERF)
        tb_buf_puts(out, derf_text);
    if (py->uses & TB_PY_USES_CONCAT)
        tb_buf_puts(out, concat_text);
    if (py->uses & TB_PY_USES_MIX)
        tb_buf_puts(out, mix_text);
    if (py->uses & TB_PY_USES_SINKHORN)
        tb_buf_puts(out, sinkhorn_text);
    if (py->uses & TB_PY_USES_UNIT)
        tb_buf_puts(out, unit_text);
    if (py->uses & TB_PY_USES_HEADSCALE)
        tb_buf_puts(out, headscale_text);
    if (py->uses & TB_PY_USES_MAXDIV)
        tb_buf_puts(out, maxdiv_text);
    if (py->uses & TB_PY_USES_ONEHOT)
        tb_buf_puts(out, onehot_text);
    if (py->uses & TB_PY_USES_SKIPDROP)
        tb_buf_puts(out, skipdrop_text);
    if (py->uses & TB_PY_USES_ROPE)
        tb_buf_puts(out, rope_text);
    if (py->uses & TB_PY_USES_SINUSOID)
        tb_buf_puts(out, sinusoid_text);
    if (py->uses & TB_PY_USES_MHA)
        mha_helper(py->uses, out);
}

/* --- loader
 * --------------------------------------------------------------------- */

static const char loader_text[] =
    "\n\ndef read_safetensors(path):\n"
    "    \"\"\"Tensors by name, and the metadata, of a file.\"\"\"\n"
    "    dtypes = {\n"
    "        \"F64\": torch.float64,\n"
    "        \"F32\": torch.float32,\n"
    "        \"F16\": torch.float16,\n"
    "        \"BF16\": torch.bfloat16,\n"
    "    }\n"
    "    with open(path, \"rb\") as file:\n"
    "        (size,) = struct.unpack(\"<Q\", file.read(8))\n"
    "        header = json.loads(file.read(size))\n"
    "        data = bytearray(file.read())\n"
    "    metadata = header.pop(\"__metadata__\", {})\n"
    "    tensors = {}\n"
    "    for name, entry in header.items():\n"
    "        begin, end = entry[\"data_offsets\"]\n"
    "        flat = torch.frombuffer(data[begin:end], "
    "dtype=dtypes[entry[\"dtype\"]])\n"
    "        tensors[name] = flat.reshape(entry[\"shape\"])\n"
    "    return tensors, metadata\n"
    "\n\ndef load_tollbooth(path):\n"
    "    \"\"\"The model with the weights of a model.safetensors, in eval mode."
    "\n\n"
    "    A file of another block or other settings is refused: many of them, "
    "such as eps\n"
    "    and the number of heads, do not show in the shapes.\n"
    "    \"\"\"\n"
    "    tensors, metadata = read_safetensors(path)\n"
    "    block = metadata.get(\"block\", BLOCK)\n"
    "    if block != BLOCK:\n"
    "        raise ValueError(f\"{path}: its block is another "
    "one:\\n{block}\")\n"
    "    settings = json.loads(metadata.get(\"settings\", \"{}\"))\n"
    "    for key, want in SETTINGS.items():\n"
    "        got = settings.get(key, want)\n"
    "        if got != want:\n"
    "            raise ValueError(f\"{path}: {key}: got {got}, wanted "
    "{want}\")\n"
    "    model = Model().to(next(iter(tensors.values())).dtype)\n"
    "    model.load_state_dict(tensors)\n"
    "    return model.eval()\n";

void tb_py_loader(tb_py *py, tb_buf *out)
{
    (void)py;
    tb_buf_puts(out, loader_text);
}
