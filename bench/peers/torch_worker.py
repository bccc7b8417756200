# SPDX-License-Identifier: MIT
"""The cases of `tollbooth bench` in PyTorch, by plain use of its functions: a
process that reads lines "CASE THREADS" and answers each with the seconds of one
sample, with "none" for a case it has not, or with "error WHY". The first answer
for a case is that of the run that built it: it does not count."""

import os
import re
import signal
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as e:
    print("missing %s" % e, flush=True)
    sys.exit(0)

signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends without a word

FOREACH = os.environ.get("PEERS_FOREACH") == "1"
SAMPLE = 30e-3  # seconds, at least


def heads_of(width):
    """As tollbooth bench chooses them."""
    h = width // 64 if width >= 256 else 4 if width >= 64 else 1
    while width % h:
        h -= 1
    return h


# --- norms -----------------------------------------------------------------------

def norm(rows, d, what):
    x, gy = torch.randn(rows, d), torch.randn(rows, d)
    gain, bias = torch.rand(d), torch.rand(d)
    if what == "fwd":
        return lambda: torch.native_layer_norm(x, [d], gain, bias, 1e-5)
    _, mean, rstd = torch.native_layer_norm(x, [d], gain, bias, 1e-5)
    return lambda: torch.ops.aten.native_layer_norm_backward(
        gy, x, [d], mean, rstd, gain, bias, [True, True, True])


def addnorm(rows, d, what):
    x, f = torch.randn(rows, d), torch.randn(rows, d)
    gain, bias = torch.rand(d), torch.rand(d)
    return lambda: torch.native_layer_norm(x + f, [d], gain, bias, 1e-5)


# --- attention -------------------------------------------------------------------

def attention(q, k, v, heads, mask):
    """Streams [B,T,C]; 1.13 has no fused attention on a CPU."""
    B, T, C = q.shape
    q, k, v = (x.view(B, T, heads, C // heads).transpose(1, 2) for x in (q, k, v))
    s = (q @ k.transpose(-2, -1)) * (C // heads) ** -0.5
    p = F.softmax(s.masked_fill(mask, float("-inf")), dim=-1)
    return (p @ v).transpose(1, 2).reshape(B, T, C)


def causal(time_):
    return torch.ones(time_, time_).triu(1).bool()


def attn(B, T, heads, width, what):
    C, mask = heads * width, causal(T)
    x = [torch.randn(B, T, C, requires_grad=True) for _ in range(3)]
    gy = torch.randn(B, T, C)

    def forward():
        with torch.no_grad():
            attention(*x, heads, mask)

    y = attention(*x, heads, mask) if what == "bwd" else None

    def backward():
        torch.autograd.grad(y, x, gy, retain_graph=True)

    def both():
        torch.autograd.grad(attention(*x, heads, mask), x, gy)

    return {"fwd": forward, "bwd": backward, "fwdbwd": both}[what]


# --- models ----------------------------------------------------------------------

class Block(torch.nn.Module):
    def __init__(self, d, heads, mask):
        super().__init__()
        self.heads, self.mask = heads, mask
        self.norm1, self.norm2 = torch.nn.LayerNorm(d), torch.nn.LayerNorm(d)
        self.qkv, self.o = torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
        self.up, self.down = torch.nn.Linear(d, 4 * d), torch.nn.Linear(4 * d, d)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).split(x.shape[-1], dim=2)
        x = x + self.o(attention(q, k, v, self.heads, self.mask))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(torch.nn.Module):
    def __init__(self, depth, d, context, vocab):
        super().__init__()
        mask = causal(context)
        self.embed = torch.nn.Embedding(vocab, d)
        self.position = torch.nn.Parameter(torch.randn(context, d))
        self.blocks = torch.nn.Sequential(
            *[Block(d, heads_of(d), mask) for _ in range(depth)])
        self.norm = torch.nn.LayerNorm(d)
        self.head = torch.nn.Linear(d, vocab)

    def forward(self, ids):
        x = self.embed(ids) + self.position[:ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def step(depth, d, T, B, V, what):
    """Gradients zeroed, forward, loss, backward, AdamW: no clipping, which
    tollbooth's update has on top."""
    model = Model(depth, d, T, V)
    more = {"foreach": True} if FOREACH else {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95),
                                  eps=1e-8, weight_decay=0.1, **more)
    ids, targets = torch.randint(V, (B, T)), torch.randint(V, (B * T,))

    def run():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(ids).view(B * T, V), targets).backward()
        optimizer.step()

    return run


def flow(depth, d, T, B, what):
    """Lengths of the gradient at every block's output, by hooks, and of every
    weight's; tollbooth's flow also cuts the branches and measures the norms."""
    mask = causal(T)
    blocks = torch.nn.ModuleList([Block(d, heads_of(d), mask) for _ in range(depth)])
    x0 = torch.randn(B, T, d)

    def run():
        lengths, x = [], x0
        blocks.zero_grad(set_to_none=True)
        for block in blocks:
            x = block(x)
            x.register_hook(lambda g: lengths.append(float(g.norm())))
        (x * x).mean().backward()
        lengths += [float(p.grad.norm()) for p in blocks.parameters()]

    return run


def jacobian(d, T, what):
    block, x = Block(d, heads_of(d), causal(T)), torch.randn(1, T, d)
    for p in block.parameters():
        p.requires_grad_(False)
    return lambda: torch.autograd.functional.jacobian(block, x, vectorize=True)


# --- lines in, seconds out -------------------------------------------------------

KINDS = {
    "norm": (norm, r"(\d+)x(\d+)", ("fwd", "bwd")),
    "addnorm": (addnorm, r"(\d+)x(\d+)", ("fwd",)),
    "attn": (attn, r"(\d+)x(\d+)x(\d+)x(\d+)", ("fwd", "bwd", "fwdbwd")),
    "step": (step, r"L(\d+)d(\d+)T(\d+)B(\d+)V(\d+)", ("f32",)),
    "flow": (flow, r"L(\d+)d(\d+)T(\d+)B(\d+)", ("grad",)),
    "jacobian": (jacobian, r"d(\d+)T(\d+)", ("f32",)),
}


def build(case):
    kind, sizes, what = case.split(":")
    make, form, whats = KINDS.get(kind, (None, "", ()))
    found = re.fullmatch(form, sizes)
    if not make or not found or what not in whats:
        return None
    torch.manual_seed(1)
    return make(*[int(n) for n in found.groups()], what)


def timed(run, seconds):
    runs, start = 0, time.perf_counter()
    while runs == 0 or time.perf_counter() - start < seconds:
        run()
        runs += 1
    return (time.perf_counter() - start) / runs


def sample(run, seconds):
    """A core that slept wakes late: first as much work that is not timed, but
    for what takes longer than that anyway."""
    first = timed(run, seconds)
    return timed(run, seconds) if first < 5 * seconds else first


def main():
    built = {}
    for line in sys.stdin:
        case, threads = line.split()
        torch.set_num_threads(int(threads))
        try:
            new = case not in built
            if new:
                built[case] = build(case)
            run = built[case]
            if run:
                print("%r" % (timed(run, 0) if new else sample(run, SAMPLE)),
                      flush=True)
            else:
                print("none", flush=True)
        except (RuntimeError, ValueError, MemoryError) as e:
            print("error %s" % str(e).replace("\n", " "), flush=True)


print("ready PyTorch %s" % torch.__version__, flush=True)
main()
