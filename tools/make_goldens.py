#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Write tests/golden/ops/*.txt: outputs and gradients of single ops as PyTorch
computes them in float64, for tests/gradients/test_ops_golden.c.

Needs PyTorch (Debian: python3-torch). Inputs come from a small generator of
our own, so that a newer PyTorch draws the same numbers; rmsnorm, which old
PyTorch lacks, is written out by its formula and differentiated by autograd.

Format, one item a line, '#' begins a comment line:
    op NAME BATCH TIME ATTRIBUTES...
    time T                        of the next input, where it is its own
    in KIND HEIGHT WIDTH          stream, vector, matrix or tokens, in order
    NUMBERS...                    row-major
    out / gout / grad I           followed by their numbers likewise
    state I                       running statistics after this training step
"""
import math
import os
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


class Numbers:
    """Repeatable, roughly normal numbers with short decimals."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) / 2**53

    def tensor(self, *shape):
        n = math.prod(shape)
        sums = [sum(self.uniform() for _ in range(12)) - 6 for _ in range(n)]
        # a multiple of 1/64 is exact in float32, so both types see one input
        return torch.tensor([round(v * 64) / 64 for v in sums]).reshape(shape)

    def scalar(self):
        return self.tensor(1).reshape(())


def text(t):
    return " ".join(repr(v) for v in t.detach().reshape(-1).tolist())


KINDS = {1: "vector", 2: "matrix", 3: "stream"}


def describe(t):
    if t.dtype == torch.int64:
        return "tokens 1 1"
    if t.dim() == 0:
        return "scalar 1 1"
    height = t.shape[0] if t.dim() == 2 else 1
    return f"{KINDS[t.dim()]} {height} {t.shape[-1]}"


def write(folder, name, op, attrs, inputs, fn, numbers):
    """fn(*inputs) is the op; inputs of float64 get gradients, data in float32
    (masks, running statistics) none."""
    first = inputs[0]
    rows = first.dim() == 3 or first.dtype == torch.int64
    batch, time = first.shape[:2] if rows else (1, 1)
    live = [t.clone().requires_grad_(t.dtype == torch.float64) for t in inputs]
    out = fn(*live)
    gout = numbers.tensor(*out.shape)
    out.backward(gout)
    lines = ["# written by tools/make_goldens.py",
             " ".join(["op", op, str(batch), str(time)] + [repr(float(a)) for a in attrs])]
    for t in live:
        if t.dim() == 3 and t.shape[1] != time:
            lines += [f"time {t.shape[1]}"]
        lines += ["in " + describe(t), text(t)]
    lines += ["out", text(out), "gout", text(gout)]
    for i, t in enumerate(live):
        if t.grad is not None:
            lines += [f"grad {i}", text(t.grad)]
    for i, t in getattr(fn, "state", {}).items():
        lines += [f"state {i}", text(t)]
    with open(os.path.join(folder, name + ".txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


def layernorm(eps):
    return lambda x, g, b: F.layer_norm(x, (x.shape[-1],), g, b, eps)


def rmsnorm(eps):
    return lambda x, g: x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * g


def attention(heads, kv_heads, causal, scale=None):
    """softmax(scale q k^T) v, written out per head; the causal corner is at the
    bottom right."""
    def split(x, n):
        return x.reshape(x.shape[0], x.shape[1], n, -1).transpose(1, 2)

    def fn(q, k, v, keep=None):
        q = split(q, heads)
        k = split(k, kv_heads).repeat_interleave(heads // kv_heads, 1)
        v = split(v, kv_heads).repeat_interleave(heads // kv_heads, 1)
        s = q @ k.transpose(-1, -2)
        s = s * scale if scale else s / math.sqrt(q.shape[-1])
        if causal:
            hidden = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1 + s.shape[-1] - s.shape[-2])
            s = s.masked_fill(hidden, -math.inf)
        if keep is not None:
            s = s.masked_fill((keep == 0).unsqueeze(1), -math.inf)
        y = torch.softmax(s, -1) @ v
        return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)
    return fn


def xent(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def batchnorm(training, momentum=0.1, eps=1e-5):
    """Over batch and time; running statistics are data."""
    def fn(a, g, b, mean, var, keep=None):
        flat = a.flatten(0, 1)
        real = slice(None) if keep is None else keep.flatten() == 1
        mean, var = mean.double(), var.double()
        y = F.batch_norm(flat[real], mean, var, g, b, training, momentum, eps)
        fn.state = {3: mean, 4: var}  # moved in training
        out = torch.zeros_like(flat).index_put((torch.arange(len(flat))[real],), y)
        return out.reshape(a.shape)
    return fn


def rope(heads, base, interleaved):
    """Llama's rotate-half or GPT-J's pairs, as their code has it."""
    def fn(a):
        q = a.unflatten(-1, (heads, -1))
        w = q.shape[-1]
        angle = torch.arange(a.shape[1])[:, None] * base ** (-torch.arange(0, w, 2) / w)
        if interleaved:
            angle = angle.repeat_interleave(2, -1)
            turned = torch.stack((-q[..., 1::2], q[..., ::2]), -1).flatten(-2)
        else:
            angle = torch.cat((angle, angle), -1)
            turned = torch.cat((-q[..., w // 2:], q[..., :w // 2]), -1)
        return (q * angle.cos()[:, None] + turned * angle.sin()[:, None]).flatten(-2)
    return fn


def sinkhorn(rounds, first):
    def fn(a):
        m = a.exp() if a.dim() == 2 else a.exp().unflatten(-1, (3, 3))
        for _ in range(rounds):
            m = m / m.sum(-1 - first, keepdim=True)
            m = m / m.sum(-2 + first, keepdim=True)
        return m.reshape(a.shape)
    return fn


def main(folder):
    os.makedirs(folder, exist_ok=True)
    n = Numbers(1)

    def case(name, op, attrs, inputs, fn):
        write(folder, name, op, attrs, inputs, fn, n)

    def x(width, batch=2, time=3):
        return n.tensor(batch, time, width)

    case("layernorm", "layernorm", [1e-5], [x(5), n.tensor(5), n.tensor(5)], layernorm(1e-5))
    case("rmsnorm", "rmsnorm", [1e-6], [x(5), n.tensor(5)], rmsnorm(1e-6))
    case("linear", "linear", [], [x(4), n.tensor(3, 4), n.tensor(3)], F.linear)
    case("softmax", "softmax", [], [x(5)], lambda a: torch.softmax(a, -1))
    case("relu", "relu", [], [x(4)], F.relu)
    case("silu", "silu", [], [x(4)], F.silu)
    case("gelu", "gelu", [], [x(4)], F.gelu)
    case("gelu_tanh", "gelu_tanh", [], [x(4)], lambda a: F.gelu(a, approximate="tanh"))
    case("sigmoid", "sigmoid", [], [x(4)], torch.sigmoid)
    case("tanh", "tanh", [], [x(4)], torch.tanh)
    for name, heads, kv, causal in (("mha_full", 2, 2, 0), ("mha_causal", 2, 2, 1),
                                    ("mha_grouped", 4, 2, 1)):
        inputs = [x(2 * heads, 1, 5), x(2 * kv, 1, 5), x(2 * kv, 1, 5)]
        case(name, "mha", [heads, kv, causal], inputs, attention(heads, kv, causal))
    case("xent", "xent", [], [x(6), torch.tensor([[0, 5, -1], [2, 2, 4]])], xent)
    case("embed", "embed", [], [torch.tensor([[0, 3, 3], [1, 0, 3]]), n.tensor(4, 3)], F.embedding)

    case("l2norm", "l2norm", [1e-5], [x(5)], lambda a: F.normalize(a, dim=-1, eps=1e-5))
    case("scalenorm", "scalenorm", [4], [x(5), n.scalar()],
         lambda a, s: s * F.normalize(a, dim=-1, eps=4))
    case("layernorm_heads", "layernorm", [1e-5, 0, 0, 0, 2], [x(6), n.tensor(3), n.tensor(3)],
         lambda a, g, b: F.layer_norm(a.unflatten(-1, (2, 3)), (3,), g, b, 1e-5).flatten(-2))
    case("layernorm_unbiased", "layernorm", [1e-3, 2, 0, 1], [x(5), n.tensor(5), n.tensor(5)],
         lambda a, g, b: (a - a.mean(-1, keepdim=True)) / (a.std(-1, keepdim=True) + 1e-3) * g + b)
    keep = torch.tensor([[[1, 0, 1, 1], [0, 1, 0, 0]], [[1, 1, 1, 1], [1, 0, 0, 1]]])
    case("mha_cross", "mha", [2, 2, 0], [x(4, 2, 2), x(4, 2, 4), x(4, 2, 4)], attention(2, 2, 0))
    case("mha_cross_causal", "mha", [2, 1, 1, 0, 0.3], [x(4, 2, 2), x(2, 2, 4), x(2, 2, 4)],
         attention(2, 1, 1, 0.3))
    case("mha_mask", "mha", [2, 2, 0], [x(4, 2, 2), x(4, 2, 4), x(4, 2, 4), keep.float()],
         attention(2, 2, 0))
    running = torch.tensor([[0.5, -1.0, 0.25], [1.5, 0.75, 2.0]]).float()
    real = torch.tensor([[[1], [1], [0]], [[1], [0], [1]]]).float()
    case("batchnorm", "batchnorm", [1e-5], [x(3), n.tensor(3), n.tensor(3), *running],
         batchnorm(True))
    case("batchnorm_frozen", "batchnorm", [1e-5, 0, 2], [x(3), n.tensor(3), n.tensor(3), *running],
         batchnorm(False))
    case("batchnorm_mask", "batchnorm", [1e-5], [x(3), n.tensor(3), n.tensor(3), *running, real],
         batchnorm(True))
    case("dyt", "dyt", [], [x(4), n.scalar(), n.tensor(4), n.tensor(4)],
         lambda a, alpha, g, b: g * torch.tanh(alpha * a) + b)
    case("derf", "derf", [], [x(4), n.scalar(), n.scalar(), n.tensor(4), n.tensor(4)],
         lambda a, alpha, s, g, b: g * torch.erf(alpha * a + s) + b)
    case("rope_half", "rope", [2], [x(8)], rope(2, 10000.0, False))
    case("rope_pairs", "rope", [2, 100, 1], [x(8)], rope(2, 100.0, True))
    case("concat", "concat", [], [x(2), x(3), x(1)], lambda *a: torch.cat(a, -1))
    case("mix", "mix", [1], [x(3), x(3), n.tensor(2, 2)],
         lambda a, b, m: m[1, 0] * a + m[1, 1] * b)
    case("mix_tokens", "mix", [1], [x(3), x(3), x(4)],
         lambda a, b, m: m[..., 2:3] * a + m[..., 3:4] * b)
    case("sinkhorn", "sinkhorn", [4], [n.tensor(3, 3)], sinkhorn(4, 0))
    case("sinkhorn_tokens", "sinkhorn", [3, 1], [x(9)], sinkhorn(3, 1))
    case("unit_rows", "unit", [1e-3], [n.tensor(3, 4)], lambda w: F.normalize(w, dim=1, eps=1e-3))
    case("unit_columns", "unit", [1e-3, 1], [n.tensor(3, 4)],
         lambda w: F.normalize(w, dim=0, eps=1e-3))
    case("softmax_vector", "softmax", [], [n.tensor(5)], lambda a: torch.softmax(a, -1))
    case("maxdiv", "maxdiv", [8], [x(4)],
         lambda a: a / (a.abs().amax(-1, keepdim=True).detach() / 8))
    case("maxdiv_whole", "maxdiv", [8, 1], [x(4)], lambda a: a / (a.abs().max().detach() / 8))
    case("exp", "exp", [], [x(4)], torch.exp)
    case("abs", "abs", [], [x(4)], torch.abs)
    case("sum", "sum", [], [x(4)], lambda a: a.sum(-1, keepdim=True))
    case("mean", "mean", [], [x(4)], lambda a: a.mean(-1, keepdim=True))
    case("sum_vector", "sum", [], [n.tensor(5)], torch.sum)
    case("shift", "shift", [], [x(4), n.tensor(4)], torch.add)
    case("shift_scalar", "shift", [], [x(4), n.scalar()], torch.add)
    case("div_streams", "div", [], [x(4), x(4).exp()], torch.div)
    case("headscale", "headscale", [], [x(6), n.tensor(3)],
         lambda a, w: (a.unflatten(-1, (3, 2)) * w[:, None]).flatten(-2))
    case("dot", "dot", [], [x(4), x(4)], lambda a, b: (a * b).sum(-1, keepdim=True))
    case("batchnorm_momentum", "batchnorm", [1e-3, 0, 0, 0.3],
         [x(3), n.tensor(3), n.tensor(3), *running], batchnorm(True, 0.3, 1e-3))


if __name__ == "__main__":
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "tests/golden/ops"))
