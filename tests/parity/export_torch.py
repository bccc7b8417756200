#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exported PyTorch files against this library: logits, loss, every gradient.

    export_torch.py TOLLBOOTH PARITY_DUMP [-v] [CASE...]

Every built-in block and the texts below are exported, imported and loaded with
one checkpoint; parity_dump gives our numbers. Bounds: 1e-10 relative in
float64, 1e-5 * max|ref| in float32, a gradient's max being that of its layer
(1e-4 of that at least in float64), dropout off. Also: names of the state
dict, initial distributions, style of the text, files of `train`, docs.
"""

import ast
import copy
import importlib.util
import json
import os
import pathlib
import py_compile
import re
import subprocess
import sys
import tempfile


def python_with_torch():
    """Another interpreter of the path that has torch, or None."""
    for folder in os.get_exec_path():
        python = os.path.join(folder, "python3")
        if os.access(python, os.X_OK) and subprocess.run(
                [python, "-c", "import torch"], capture_output=True,
                ).returncode == 0:
            return python
    return None


try:
    import torch
except ImportError:
    other = python_with_torch()
    if other:
        os.execv(other, [other, *sys.argv])
    print("SKIP export_torch: no torch here")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BASE = {"depth": 2, "width": 16, "heads": 4, "context": 7, "vocab": 11}
FINAL = "final:\n    x = norm(x)\n"

# name: (text, settings)
TEXTS = {
    "mix-ln": (
        "block[l <= N/4]:\n x = norm(x + F(x))\nblock:\n x = x + F(norm(x))\n"
        + FINAL,
        {"depth": 6},
    ),
    "every-third": (
        "block[l/3 == floor(l/3)]:\n x = F(norm(x))\nblock[l == 1]:\n"
        " x = x + F(norm(x)/sqrt(l))\nblock:\n x = x + F(norm(x))\n",
        {"depth": 7},
    ),
    "lns": ("s = 1/sqrt(l)\nx = x + F(s*norm(x)) + (l - N)*x/7 - exp(-l)", {}),
    "constants": (
        "alpha = (2*N)^0.25\nc = min(k, 2)*h/d\n"
        "x = norm(alpha*x - F(x)/sqrt(2*N) + 0.5 - c*x) - k/10",
        {},
    ),
    "minus": ("x = -norm(1 - x) - (x - 2) + F(norm(-x - 1))*3", {}),
    "qk-norm": (
        "attn(x) = o(mha(norm(q(x)), norm(k(x)), v(x)))\nblock:\n"
        " x = x + norm(F(x))\n" + FINAL,
        {"kv_heads": 2, "norm": "rmsnorm"},
    ),
    "llama-text": (
        "ffn(x) = down(silu(gate(x)) * up(x))\nblock:\n x = x + F(norm(x))\n"
        + FINAL + "model:\n norm = rmsnorm\n eps = 1e-6\n bias = false\n",
        {"kv_heads": 1, "ffn": 44},
    ),
    "sub-ln": (
        "attn(x) = o(norm(mha(q(x), k(x), v(x))))\n"
        "ffn(x) = down(norm(gelu_tanh(up(x))))\nblock:\n x = x + F(norm(x))\n"
        + FINAL,
        {"kv_heads": 2},
    ),
    "residual": (
        "stem: y = x\nblock:\n f = F(x)\n x = norm(x + f)\n y = y + f\n"
        "final: x = x + norm(y)",
        {},
    ),
    "swap": (
        "stem:\n w = linear(d, d)\n y = w(norm(x))\n"
        "block:\n z = x + ffn(norm(y))\n x = y\n y = z + attn(norm(z))\n"
        "final:\n a = vector(0.5)\n x = a*x + y",
        {},
    ),
    "streams-exchanged": (
        "stem:\n y = norm(x)\n t = x\n x = y\n y = t\n"
        "block: x = x + F(norm(y))\n",
        {},
    ),
    "learned": (
        "a = scalar(0.1)\ns = vector(1/N)\nw = linear(d, d, bias=false)\n"
        "g = sigmoid(w(x))\nx = g*x + (1 - g)*s*attn(norm(x)) / a\n"
        "x = x + vector(1e-5)*ffn(norm(x)) + scalar(2)*x",
        {},
    ),
    "keep": (
        "r = x\nx = norm(x)\nx = r + F(x)\nu = tanh(x)\nx = u\nx = x + relu(u)",
        {},
    ),
    "keep-twice": (
        "x = norm(x) + x\ny = x\nx = silu(x)\nx = x*y + softmax(y)\n"
        "y = F(x)\nx = x + y",
        {},
    ),
    "functions": (
        "twice(a) = a + a*sigmoid(a)\nblend(a, b) = 0.3*twice(a) - twice(b)\n"
        "x = blend(x, F(norm(x)))",
        {},
    ),
    "long": (
        "x = x + ffn(norm(tanh(norm(sigmoid(norm(x) + norm(tanh(x)))"
        " * norm(relu(norm(x) - 0.25*norm(x)))))) + norm(gelu(norm(x)) * x))",
        {},
    ),
    "sublayer-twice": ("x = x + attn(norm(x))\nx = x + attn(norm(x))\n"
                       "x = x + ffn(norm(x))", {}),
    "two-bodies": (
        "attn(x) = scalar(0.5)*o(norm(mha(q(x), k(x), v(x))))\n"
        "x = x + attn(norm(x))\nx = x + attn(x)",
        {},
    ),
    "reads-outside": (
        "ffn(x) = down(a*up(x)) + s*w(x)*r\nattn(x) = o(v(x))/sqrt(l)\n"
        "a = scalar(2)\ns = vector(0.1)\nw = linear(d, d)\nr = tanh(x)\n"
        "x = x + attn(norm(x))\nx = x + ffn(norm(x))",
        {},
    ),
    "hostile-names": (
        "lambda = scalar(0.7)\nhalf = linear(d, d)\n_w = vector(2)\n"
        "forward = vector(1)\ntype = scalar(3)\nto = linear(d, d)\n"
        "self = x\nclass = half(x)\nnn = lambda*class\ntorch = to(nn)\n"
        "block = torch + _w*self\nx = type*block + forward*F(norm(x))",
        {},
    ),
    "mixing": (
        "stem: x2 = 0.5*x\nblock:\n A = matrix(2, 2, 0.3)\n w = linear(d, 4)\n"
        " f = F(norm(mix(vector(onehot(k), size=2), x, x2)))\n g = tanh(w(f))\n"
        " y = mix(A, x, x2) + mix(g, x, x2)\n"
        " x2 = mix(A, x, x2, row=2) + mix(g, x, x2, row=k)\n"
        " x = y + mix(sigmoid(dot(x, f)), f) + mix(matrix(3, 1, normal(1)), f, row=l)\n"
        "init: A: identity\n",
        {},
    ),
    "norms-without-gain": (
        "x = x + F(norm(x, gain=false)) + rmsnorm(x, gain=false, groups=2)"
        " + layernorm(x, bias=false) + norm(x)\nfinal: x = norm(x, bias=false)\n",
        {},
    ),
    "projections": (
        "stem: x2 = 0.5*x\nblock:\n w = linear(d, 4)\n n = shift(norm(x), vector(0.1))\n"
        " H = sinkhorn(shift(0.1*w(n) + project(F(n), 4), scalar(0.5)), columns_first=true)\n"
        " A = sinkhorn(matrix(2, 2, identity), rounds=l + 1)\n"
        " f = F(maxdiv(mix(A, x, x2), to=4))\n y = mix(H, x, x2, row=2) + f\n"
        " x2 = mix(unit(matrix(2, 2, 0.3), columns=true), x, x2) + mix(mean(x), f)\n"
        " x = mix(unit(vector(2, size=2)), y, maxdiv(f/(2 + tanh(x2)), whole=true))"
        " + mix(sum(x)/d, f)\n",
        {},
    ),
    "unused": ("w = linear(d, 3*d)\na = scalar(4)\nu = norm(x)\n"
               "x = x + F(norm(x))", {}),
    "stop": ("x = x + F(norm(x)) - stop(silu(x))*0.25", {}),
    "parts-of-norms": (
        "x = layernorm(x + F(rmsnorm(x, eps=1e-3)), eps=1/(10*l))", {},
    ),
    "conventions": (
        "attn(x) = o(mha(norm(q(x), groups=heads), norm(k(x), groups=heads),"
        " v(x)))\nx = x + attn(norm(x, eps_mode=outside, unbiased=true))\n"
        "x = rmsnorm(x, eps_mode=clamp, eps=0.01)\n"
        "x = x + ffn(norm(x, eps_mode=dtype)) + rmsnorm(x, eps_mode=none)\n"
        "x = norm(x, groups=h) + norm(x, variance=onepass, groups=2)\n"
        "model:\n eps_mode = clamp_square\n variance = onepass_clipped\n",
        {"kv_heads": 2},
    ),
    "lengths": (
        "attn(x) = o(mha(l2norm(q(x), groups=heads), scalenorm(k(x),"
        " groups=2), v(x)))\nffn(x) = down(dyt(gelu(up(x))))\n"
        "x = scalenorm(x + F(scalenorm(x, eps_mode=outside)), groups=h)\n"
        "x = x + l2norm(x) - l2norm(x, eps=0.5, eps_mode=clamp_square)\n"
        "final: x = scalenorm(x)\n",
        {"kv_heads": 2},
    ),
    "rows-of-zeros": (
        "z = x - x\nx = x + l2norm(z, eps=0.1) + scalenorm(z) + F(norm(x))\n"
        "x = x + scalenorm(z, eps_mode=outside, eps=0.2) + layernorm(z)"
        " + rmsnorm(z, eps_mode=outside) + rmsnorm(z, eps_mode=clamp)"
        " + layernorm(z, eps_mode=clamp_square, eps=0.1)\n"
        "x = x + batchnorm(z, eps_mode=outside) + powernorm(z, eps=0.1)\n", {},
    ),
    "squashed": (
        "attn(x) = o(derf(mha(q(x), k(x), v(x))))\n"
        "x = x + F(norm(x)) + derf(x)*dyt(x)\nfinal: x = norm(x)\n"
        "init:\n ffn.norm.alpha: const(0.75)\n *.shift: const(0.25)\n"
        "model: norm = dyt\n",
        {},
    ),
    "rotary": (
        "attn(x) = o(mha(rope(q(x)), rope(k(x), base=50*h), v(x)))\n"
        "w = linear(3*d, d)\n"
        "x = x + F(norm(x)) + w(concat(rope(x, base=9/l), x, tanh(x)))\n"
        "x = concat(x)*x\nmodel: rope_base = 100\n",
        {"kv_heads": 2},
    ),
    "rates": (
        "x = x + drop_branch(F(norm(x)), l/(2*N)) + drop_branch(x, 0.25)\n"
        "x = norm(x) + exp(-abs(x)) + exp(-l)*x\nx = drop_branch(x, 0)", {},
    ),
    "scale": ("attn(x) = o(mha(q(x), k(x), v(x), scale=h/d/l))\n"
              "x = x + F(norm(x))", {"kv_heads": 2}),
    "over-tokens": (
        "attn(x) = o(batchnorm(mha(q(x), powernorm(k(x)), v(x))))\n"
        "x = batchnorm(x + F(x), momentum=0.3, eps=1e-3)\n"
        "x = x + powernorm(x, eps_mode=outside)\n"
        "final: x = batchnorm(x, eps_mode=dtype)\n", {"kv_heads": 2},
    ),
    "frozen": (
        "x = batchnorm(x + F(powernorm(x)))\nmodel: norm = batchnorm\n",
        {"quiet": 1},
    ),
    "running": (
        "x = x + F(powernorm(x, warmup=0))\n"
        "x = powernorm(x, warmup=1/2, momentum=1/(4*l), back_momentum=0.5)\n",
        {},
    ),
    "real-tokens": (
        "w = linear(d, 1)\nm = relu(w(x))*0\nn = exp(m)\n"
        "x = x + F(batchnorm(x, keep=n)) + powernorm(x, keep=m + n)\n", {},
    ),
    "bare": ("x = x + F(norm(x))", {"bias": 0, "positions": 0, "tied": 1,
                                    "causal": 0, "eps": 1e-6}),
    "sinusoidal": ("x = x + F(norm(x))\nmodel: positions = sinusoidal", {}),
    "odd-sinusoidal": ("x = x + F(norm(x))\nmodel: positions = sinusoidal",
                       {"width": 15, "heads": 3, "kv_heads": 3}),
    "rope-setting": ("x = x + F(norm(x))\nmodel: positions = rope", {}),
    "long-constants": (
        "x = x + scalar(1 - (2*(l - 1) + k - 1 - 4*floor((2*(l - 1) + k - 1)"
        "/4)))*F(norm(x)) * (1 - (2*(N - 1) + k - 1 - 4*floor((2*(N - 1) + k"
        " - 1)/4)))",
        {},
    ),
    "tied": ("block: x = x + F(norm(x))\nfinal: x = norm(x)\n",
             {"tied": 1, "kv_heads": 2}),
}

STARTS = {
    "gpt-2-starts": ("init:\n *, embed.*: normal(0.02)\n"
                     " attn.o, ffn.down: normal(0.02/sqrt(2*N))\n"),
    "by-layer": ("init:\n attn.*: xavier(1/l)\n ffn.up: uniform(l/10)\n"
                 " layers.0.ffn.down: zeros\n layers.1.ffn.down: normal(3)\n"
                 " *.gain: const(0.5)\n ffn.up.bias: normal(2)\n"),
    "kinds": ("init:\n attn.q: orthogonal(2)\n ffn.up: orthogonal\n"
              " attn.k: xavier_uniform(2)\n attn.v: uniform(0.5)\n"
              " attn.o: const(0.25)\n embed.token: ones\n"),
}
for _name, _text in STARTS.items():
    TEXTS[_name] = ("block:\n x = x + vector(0)*F(norm(x))\n" + FINAL + _text,
                    {"width": 32, "depth": 3})

STACKS = ["decoder", "encoder", "encoder-decoder"]
BOTH = {"stack": 2, "decoder_depth": 3}
ROLES = {
    "both-parallel": (
        "decoder: n = norm(x); x = x + attn(n) + cross(n) + ffn(n)\n"
        "block: x = x + F(norm(x))\nfinal: x = norm(x)",
        {**BOTH, "kv_heads": 2}),
    "both-own-cross": (
        "cross(x) = o(mha(norm(q(x)), norm(k(norm(memory))), v(memory)))\n"
        "x = norm(x + F(x))\nmodel: positions = rope", BOTH),
    "both-streams": (
        "encoder stem: y = norm(x)\nencoder: y = y + ffn(x); x = x + attn(y)\n"
        "encoder final: x = norm(x + y)\n"
        "decoder stem: z = norm(x)\n"
        "decoder block[l == 2]: z = norm(z + F(x)/l)\n"
        "decoder: x = x + F(norm(x) + z/M)\nfinal: x = rmsnorm(x)",
        {**BOTH, "tied": 1, "bias": 0}),
    "both-no-embedding-of-its-own": (
        "x = x + F(norm(x))\ninit: encoder.*: normal(0.1)\n"
        " decoder.cross.v: const(l/4)\nmodel: positions = none", BOTH),
}
TEXTS.update(ROLES)

ENCODER, PADDED = {"stack": 1, "padding": 1}, {**BOTH, "padding": 1}
TEXTS.update({
    "padding-encoder": ("x = x + F(norm(x))\nfinal: x = norm(x)", ENCODER),
    "padding-scale": (
        "attn(x) = o(mha(q(x), k(x), v(x), scale=1/3))\nx = x + F(norm(x))",
        {**ENCODER, "kv_heads": 2}),
    "padding-both": ("x = norm(x + F(x))", {**PADDED, "kv_heads": 2}),
    "padding-over-tokens": (
        "stem: x = batchnorm(x)\nblock: x = x + F(powernorm(x))\n"
        "final: x = batchnorm(x)", PADDED),
    "padding-names": (
        "stem: keep = tanh(x)\nencoder: keep = norm(x + keep); x = x + ffn(keep)\n"
        "block[l == 2]: memory_keep = norm(x); x = x + cross(memory_keep)\n"
        "block: s = keep; keep = x; source_keep = s*x; x = x + F(norm(source_keep))",
        PADDED),
    "padding-own-attention": (
        "attn(x) = o(mha(q(x), k(x), v(x)) + mha(q(x), k(memory), v(memory)))\n"
        "encoder: x = x + ffn(norm(x)) + mha(x, x, x)\n"
        "decoder: x = x + attn(norm(x)) + mha(x, memory, norm(memory))", PADDED),
    "attention-to-itself": (
        "n = norm(x)\nx = x + ffn(n) + mha(n, n, n)\nx = mha(x, x, norm(x))", {}),
})

FLAGS = {("bias", 0): ["--no-bias"], ("positions", 0): ["--no-positions"],
         ("tied", 1): ["--tied"], ("causal", 0): ["--mask", "none"],
         **{("stack", i): ["--stack", name] for i, name in enumerate(STACKS)}}


class Tests:
    def __init__(self, program, dump, verbose, only):
        self.program, self.dump = program, dump
        self.verbose, self.only = verbose, only
        self.passed = self.failed = 0
        self.modules = 0
        self.worst = {}

    def check(self, name, test, *args):
        if self.only and not any(word in name for word in self.only):
            return
        try:
            test(*args)
            self.passed += 1
        except Exception as error:  # a test may fail in any way
            self.failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}")

    def run(self, *args):
        out = subprocess.run([self.program, *args], capture_output=True,
                             text=True)
        assert out.returncode == 0, out.stderr
        return out.stdout

    def export(self, text, settings, *more):
        args = []
        for key, value in settings.items():
            if key in ("quiet", "padding"):
                continue
            flag = FLAGS.get((key, value))
            args += flag or ["--" + key.replace("_", "-"), str(value)]
        return self.run("export", "--to", "pytorch", *args, *more, text)

    def module(self, source, folder):
        """The file as a module, compiled and looked at first."""
        self.modules += 1
        path = folder / f"exported_{self.modules}.py"
        path.write_text(source, encoding="utf-8")
        py_compile.compile(str(path), doraise=True)
        style(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def numbers(self, text, settings, dtype, folder):
        out = folder / "numbers"
        pairs = [f"{key}={value}" for key, value in settings.items()]
        run = subprocess.run([self.dump, str(out), dtype, "7", *pairs, text],
                             capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return out


# --- what is compared ----------------------------------------------------------


def style(source):
    for number, line in enumerate(source.splitlines(), 1):
        assert len(line) <= 88, f"line {number} has {len(line)} columns"
        assert line == line.rstrip(), f"line {number} ends with a blank"
        assert "\t" not in line, f"line {number} has a tab"
    tree = ast.parse(source)
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imported |= {a.asname or a.name for a in node.names}
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert imported <= read, f"unused imports: {imported - read}"
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            names = [n for n in ast.walk(function) if isinstance(n, ast.Name)]
            stored = {n.id for n in names if isinstance(n.ctx, ast.Store)}
            loaded = {n.id for n in names if isinstance(n.ctx, ast.Load)}
            idle = stored - loaded - {"_"}
            assert not idle, f"{function.name}: unused variables: {idle}"


def error_of(got, want, top=0.0):
    """Largest difference over the largest of `want` (at least `top`)."""
    got, want = got.double(), want.double()
    assert got.shape == want.shape, f"{tuple(got.shape)}, {tuple(want.shape)}"
    assert torch.isfinite(got).all(), "not finite"
    difference = (got - want).abs().max().item()
    return difference / max(want.abs().max().item(), top, 1e-300)


def layer(key):
    side, _, rest = key.partition(".")
    if side in ("encoder", "decoder"):
        return side + "." + layer(rest)
    words = key.split(".")
    return ".".join(words[:2]) if words[0] == "layers" else words[0]


def parity(t, name, text, settings, dtype):
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        module = t.module(t.export(text, settings), folder)
        out = t.numbers(text, settings, dtype, folder)
        model = module.load_tollbooth(f"{out}.params")
        ours, _ = module.read_safetensors(f"{out}.ref")
        params, _ = module.read_safetensors(f"{out}.params")
        after, _ = module.read_safetensors(f"{out}.after")
    buffers = dict(model.named_buffers())
    model.train(bool(buffers) and "quiet" not in settings)
    state = model.state_dict()
    assert set(state) == set(params), set(state) ^ set(params)
    tokens = ours["tokens"].long()
    targets = ours["targets"].long()
    inputs = [ours["source"].long()] if "source" in ours else []
    inputs.append(tokens)
    masks = {key: ours[key] > 0 for key in ("source_keep", "keep") if key in ours}
    # running statistics move but once
    logits = copy.deepcopy(model)(*inputs, **masks)
    loss = model.loss(*inputs, targets, **masks)
    loss.backward()
    if name.startswith("random") and not ours["logits"].abs().max() < 1e6:
        assert not logits.abs().max() < 1e5  # squares of squares
        return
    bound = 1e-10 if dtype == "f64" else 1e-5
    if name.startswith("random"):  # products of products lose digits
        bound = 1e-7
    elif settings.get("decoder_depth"):  # the bound is that of two blocks
        bound *= (settings["depth"] + settings["decoder_depth"]) / 2
    largest = {}  # by layer: "layers.0", "embed", "final", ...
    for key in state:
        size = ours["grad/" + key].abs().max().item()
        largest[layer(key)] = max(size, largest.get(layer(key), 0))
    found = {"logits": error_of(logits, ours["logits"]),
             "loss": error_of(loss.reshape(1), ours["loss"])}
    for key, p in model.named_parameters():
        want = ours["grad/" + key]
        got = torch.zeros_like(p) if p.grad is None else p.grad
        # Gradients of q and k are small differences of large terms (that of
        # k.bias is 0): in float32 they are held against their layer's largest.
        top = largest[layer(key)] * (1e-4 if dtype == "f64" else 1)
        if name.startswith("random"):  # many are 0 but for rounding
            top = max(largest.values()) * 1e-3
        found["gradient of " + key] = error_of(got, want, top)
    grads = {key: p.grad for key, p in model.named_parameters()}
    for key, buffer in buffers.items():
        gain = key.rpartition(".")[0] + ".gain"
        if gain in grads and grads[gain] is None:
            continue  # nobody reads that norm: there it is not called
        if key.endswith(".nu") and "stop(" in text:
            continue  # made of a gradient that may not be asked for there
        # they start at 1, and nu is made of gradients
        top = max(1, largest[layer(key)]) if dtype == "f32" else 0
        found[key + " after a step"] = error_of(buffer, after[key], top)
    worst = max(found, key=found.get)
    t.worst.setdefault(name, {})[dtype] = found[worst], worst
    assert found[worst] <= bound, f"{worst}: relative error {found[worst]:.3g}"


def random_blocks(t, count, first=1):
    """Random blocks of tests/gradients/random_block.h, in float64."""
    for seed in range(first, first + count):
        out = subprocess.run([t.dump, "random", str(seed)], check=True,
                             capture_output=True, text=True).stdout
        sizes, text = out.split("\n", 1)
        width, heads, stack = map(int, sizes.split())
        settings = {**BASE, "width": width, "heads": heads, "stack": stack}
        if stack == 2:
            settings["decoder_depth"] = 3
        t.check(f"random {seed} f64", parity, t, f"random {seed}", text, settings,
                "f64")


def starts(t, text, settings):
    """Initial weights: constants are equal, the rest has our distribution."""
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        source = t.export(text, settings)
        module = t.module(source, folder)
        out = t.numbers(text, settings, "f32", folder)
        ours, _ = module.read_safetensors(f"{out}.start")
    torch.manual_seed(1)
    theirs = module.Model().state_dict()
    for name, a in ours.items():
        b, n = theirs[name], a.numel()
        last = re.escape(name.split(".")[-1])
        if re.search(rf"\.{last} = .*  # profiled; here not measured", source):
            assert (b == 1).all(), f"{name}: {b.flatten()[0]}"
            continue
        if n == 1 or a.std() == 0:
            assert torch.equal(a, b), f"{name}: {b.flatten()[0]}"
            continue
        std = a.double().pow(2).mean().sqrt().item()
        ratio = b.double().pow(2).mean().sqrt().item() / std
        assert abs(ratio - 1) < 6 / (2 * n) ** 0.5, f"{name}: std x {ratio:.3f}"
        mean = b.double().mean().item()
        assert abs(mean) < 6 * std / n**0.5, f"{name}: mean {mean:.3g}"
        bounded = [x.abs().max().item() < 1.85 * std for x in (a, b)]
        assert bounded[0] == bounded[1] or n < 200, f"{name}: shape"
        if a.dim() == 2:  # orthogonal or not
            gram = [x.double() @ x.double().T if x.shape[0] <= x.shape[1]
                    else x.double().T @ x.double() for x in (a, b)]
            off = [(g - g.diagonal().mean() * torch.eye(len(g)).double())
                   .abs().max().item() < 1e-4 * std**2 * n for g in gram]
            assert off[0] == off[1], f"{name}: orthogonal {off}"


def after(t):
    """Weights go back to length 1 as the block says."""
    with tempfile.TemporaryDirectory() as tmp:
        source = t.export("ngpt", BASE)
        model = t.module(source, pathlib.Path(tmp)).Model()
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 3
    model.after_step()
    rows = ("embed.token", "head", ".q", ".k", ".v", ".up", ".gate")
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            columns = not name.removesuffix(".weight").endswith(rows)
            length = weight.norm(dim=0 if columns else 1)
            assert (length - 1).abs().max() < 1e-6, f"{name}: {length}"
        else:
            assert (weight.abs() != 1 / 3).all(), name


def branches(t):
    """drop_branch: whole sequences, the mean kept, nothing in eval."""
    with tempfile.TemporaryDirectory() as tmp:
        source = t.export("x = x + drop_branch(F(norm(x)), 0.25)", BASE)
        module = t.module(source, pathlib.Path(tmp))
    x = torch.ones(4000, 3, 4)
    y = module.drop_branch(x, 0.25, True)
    assert torch.equal(y, y[:, :1, :1].expand_as(y)), "parts of a sequence"
    assert len(y.unique()) == 2 and abs(y.mean().item() - 1) < 0.06, y.mean()
    assert module.drop_branch(x, 0.25, False) is x


def dropout(t):
    """On in training at every place, off in eval."""
    settings = {**BASE, "depth": 1}
    text = "x = x + F(norm(x)) + drop(norm(x), 0.5/l) + drop(x)"
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        source = t.export(text, {**settings, "dropout": 0.25})
        module = t.module(source, folder)
        off = "x = x + F(norm(x)) + norm(x) + x"
        out = t.numbers(off, settings, "f64", folder)
        model = module.load_tollbooth(f"{out}.params")
        ours, _ = module.read_safetensors(f"{out}.ref")
    rates = re.findall(r"F\.dropout\(.*?, ([^,]*), self\.training\)", source)
    # stem, the ends of attn and ffn, drop(x) for each
    assert rates.count("DROPOUT") == 5, rates
    assert rates.count("0.5 / self.l") == 2, rates
    assert source.count("dropout=DROPOUT if self.training else 0.0") == 1, "mha"
    tokens = ours["tokens"].long()
    error = error_of(model(tokens), ours["logits"])
    assert error < 1e-10, f"eval: relative error {error:.3g}"
    model.train()
    assert not torch.equal(model(tokens), model(tokens)), "nothing is dropped"
    x = torch.ones(1, 4, 200, 16, dtype=torch.float64)
    q = torch.zeros(1, 200, 16, dtype=torch.float64)
    v = x[:, 0]
    y = module.mha(q, q, v, 4, causal=False, dropout=0.25)
    assert abs(y.mean().item() - 1) < 0.02 and y.std().item() > 0.01, "mha"


def trained(t):
    """A folder of `train`: the same logits as `score`, others refused."""
    for block in ("deepnorm", "batchnorm"):  # with running statistics, too
        trained_block(t, block)


def trained_block(t, block):
    text = "the quick brown fox jumps over the lazy dog. " * 40
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        (folder / "text.txt").write_text(text)
        run, npy = folder / "run", folder / "logits.npy"
        sizes = ["--depth", "2", "--width", "16", "--kv-heads", "2",
                 "--context", "8"]
        t.run("train", block, "--text", str(folder / "text.txt"), "--out",
              str(run), "--steps", "3", "--batch", "2", *sizes)
        (folder / "score.txt").write_text(text[:9])
        t.run("score", str(run), "--text", str(folder / "score.txt"),
              "--logits", str(npy))
        config = json.loads((run / "config.json").read_text())
        args = ["export", "--to", "pytorch", block, *sizes, "--vocab",
                str(config["vocab"])]
        path = str(run / "model.safetensors")
        model = t.module(t.run(*args), folder).load_tollbooth(path)
        ids = json.loads((run / "tokenizer.json").read_text())
        want = read_npy(npy)
        order = order_of(ids)
        tokens = torch.tensor([[order[c] for c in text[:8]]])
        with torch.no_grad():
            got = model(tokens)[0]
        assert (got - want).abs().max() <= 1e-5 * want.abs().max()
        for more in (["--eps", "1e-6"], ["--heads", "2"]):
            refused(t.module(t.run(*args, *more), folder), path, more[0][2:])
        args[3] = "post-ln"
        refused(t.module(t.run(*args), folder), path, "block")


def scores_added(model, module, tokens):
    """RealFormer as its paper has it: scores plus those of the block below."""
    def split(x):
        return x.unflatten(-1, (module.h, -1)).transpose(1, 2)
    n = tokens.shape[1]
    later = torch.ones(n, n, dtype=torch.bool).triu(1)
    x, before = model.embed.token(tokens) + model.embed.position.weight[:n], 0
    for b in model.layers:
        q, k, v = split(b.wq(x)), split(b.wk(x)), split(b.attn.v(x))
        before = q @ k.transpose(-2, -1) * (module.h / module.d) ** 0.5 + before
        p = before.masked_fill(later, float("-inf")).softmax(-1)
        x = b.attn.norm(x + b.attn.o((p @ v).transpose(1, 2).flatten(-2)))
        x = b.ffn.norm(x + b.ffn(x))
    return model.head(x)


def depth_attended(model, module, tokens):
    """Attention Residuals: a softmax over all outputs before a sublayer."""
    def pool(past, w, norm):
        past = torch.stack(past)
        a = (norm(past) * w.weight[0]).sum(-1).softmax(0)
        return (a.unsqueeze(-1) * past).sum(0)
    n = tokens.shape[1]
    x = model.embed.token(tokens) + model.embed.position.weight[:n]
    past = [x]
    for b in model.layers:
        past.append(b.attn(b.attn.norm(x)))
        x = pool(past, b.wa, b.norm)
        past.append(b.ffn(b.ffn.norm(x)))
        x = pool(past, b.wf, b.norm2)
    return model.head(model.final.norm(x))


def histories(t):
    """Our numbers of blocks with lists against their papers' own order."""
    for name, by_hand in (("realformer", scores_added),
                          ("attention-residuals", depth_attended)):
        settings = {**BASE, "depth": 5}
        with tempfile.TemporaryDirectory() as tmp:
            folder = pathlib.Path(tmp)
            module = t.module(t.export(name, settings), folder)
            out = t.numbers(name, settings, "f64", folder)
            model = module.load_tollbooth(f"{out}.params")
            ours, _ = module.read_safetensors(f"{out}.ref")
        got = by_hand(model, module, ours["tokens"].long())
        error = error_of(got, ours["logits"])
        assert error < 1e-10, f"{name}: relative error {error:.3g}"


def batch_statistics(t):
    """The BatchNorm of a file and torch's own, through steps and in use."""
    text = "x = x + F(batchnorm(x, momentum=0.3))"
    with tempfile.TemporaryDirectory() as tmp:
        module = t.module(t.export(text, BASE), pathlib.Path(tmp))
    torch.manual_seed(2)
    ours = module.BatchNorm(5, 1e-3, momentum=0.3).double()
    theirs = torch.nn.BatchNorm1d(5, eps=1e-3, momentum=0.3).double()
    for _ in range(4):
        x = torch.randn(3, 7, 5).double() * 2 + 1
        a, b = ours(x), theirs(x.transpose(1, 2)).transpose(1, 2)
        assert error_of(a, b) < 1e-12, "training"
    for mine, other in (("mean", "running_mean"), ("var", "running_var")):
        assert error_of(getattr(ours, mine), getattr(theirs, other)) < 1e-12
    ours.eval(), theirs.eval()
    a, b = ours(x), theirs(x.transpose(1, 2)).transpose(1, 2)
    assert error_of(a, b) < 1e-12, "use"
    keep = torch.ones(3, 7, 1).double()
    keep[:, 5:] = 0
    ours.train()
    assert torch.equal(ours(x, keep)[:, :5], ours(x[:, :5])), "hidden tokens"
    assert (ours(x, keep)[:, 5:] == 0).all()


def order_of(tokenizer):
    """Token ids of characters, whatever the file calls its list."""
    for value in tokenizer.values():
        if isinstance(value, str) and " " in value:
            return {c: i for i, c in enumerate(value)}
        if isinstance(value, list):
            if all(isinstance(v, str) for v in value):
                return {c: i for i, c in enumerate(value)}
            if all(isinstance(v, int) for v in value):
                return {chr(c): i for i, c in enumerate(value)}
    raise AssertionError(f"no characters in {tokenizer}")


def read_npy(path):
    data = path.read_bytes()
    size = int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:10 + size].decode())
    dtype = {"<f4": torch.float32, "<f8": torch.float64}[header["descr"]]
    flat = torch.frombuffer(bytearray(data[10 + size:]), dtype=dtype)
    return flat.reshape(header["shape"])


def refused(module, path, word):
    try:
        module.load_tollbooth(path)
    except ValueError as error:
        assert word in str(error), str(error)
    else:
        raise AssertionError(f"another {word} was read")


def default_sublayers(t):
    """The default sublayers, written out, change nothing but BLOCK."""
    written = ("attn(x) = o(mha(q(x), k(x), v(x)))\n"
               "ffn(x) = down(gelu(up(x)))\n")
    short = "block:\n    x = x + F(norm(x))\n"
    a = t.export(short, BASE)
    b = t.export(written + short, BASE)
    assert a == re.sub(r'BLOCK = """.*?"""', a[a.index('BLOCK = """'):]
                       .split('"""\n\n', 1)[0].replace("\\", "\\\\") + '"""',
                       b, flags=re.S), "another file"


def comments(t):
    """A block's comment cannot break the file."""
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        path = folder / "it's a \"block\".block"
        path.write_bytes(b'# """ \\ \x01 quotes \xc3\xa9 ' + b"w " * 90
                         + b"\\\n#\n# '''\nx = x + F(norm(x))\n")
        module = t.module(t.export(str(path), BASE), folder)
        assert "é" in module.__doc__


def refusals(t):
    for args, code, words in (
        ([], 2, "--to"),
        (["--to", "keras"], 2, "pytorch"),
        (["--to", "pytorch", "--heads", "5"], 2, "heads"),
        (["--to", "pytorch", "--norm", "groupnorm"], 2, "norm"),
    ):
        out = subprocess.run([t.program, "export", *args, "pre-ln"],
                             capture_output=True, text=True)
        assert out.returncode == code, (args, out.returncode, out.stderr)
        assert words in out.stderr and not out.stdout, (args, out.stderr)


def documented(t):
    """The classes of docs/export.md are what the program prints."""
    root = pathlib.Path(__file__).resolve().parents[2]
    text = (root / "docs" / "export.md").read_text(encoding="utf-8")
    source = t.run("export", "--to", "pytorch", "pre-ln")
    shown = re.findall(r"```python\n((?:class|    def) .*?)```", text, flags=re.S)
    assert len(shown) == 2, "docs/export.md has another number of pieces"
    for piece in shown:
        assert piece.strip() in source, piece


def attributes(t):
    """No public attribute of a module can be a parameter's name unnoticed."""
    for name in dir(torch.nn.Module()):
        if name.startswith("_") or not name.isidentifier():
            continue
        source = t.export(f"{name} = scalar(0)\nx = x + {name}*F(x)", BASE)
        assert f'_parameters["{name}"]' in source, name


# --- all of it --------------------------------------------------------------------


def main():
    words = [w for w in sys.argv[1:] if w != "-v"]
    t = Tests(words[0], words[1], "-v" in sys.argv, words[2:])
    torch.set_num_threads(1)
    os.environ.setdefault("TB_THREADS", "1")
    blocks = json.loads(t.run("blocks", "--json"))["blocks"]
    # their values, or keys, come from a linear of the text
    wide = {"value-residual", "realformer"}
    cases = {b["name"]: (b["name"], {"kv_heads": 2}
                         if i % 3 == 2 and b["name"] not in wide else {})
             for i, b in enumerate(blocks)}
    cases.update({f"text {name}": case for name, case in TEXTS.items()})
    # the encoder's parts have no cross: blocks that name their sublayers
    both = [b for b in blocks if "F(" in b["text"]]
    cases.update({f"{b['name']} both": (b["name"], BOTH) for b in both})
    cases.update({f"{name} encoder": (name, {"stack": 1})
                  for name in ("post-ln", "bert", "mix-ln", "residual")})
    for name, (text, settings) in cases.items():
        settings = {**BASE, **settings}
        # five blocks without a norm that bounds them are no task for float32
        wild = name.split()[0] in ("fixup", "no-skip", "output-norm", "plain",
                                   "t-fixup")
        for dtype in ("f64", "f32")[:1 if wild and "stack" in settings else 2]:
            t.check(f"{name} {dtype}", parity, t, name, text, settings, dtype)
        t.check(f"{name} starts", starts, t, text, settings)
    random_blocks(t, int(os.environ.get("TB_RANDOM_BLOCKS", "40")),
                  int(os.environ.get("TB_RANDOM_FROM", "1")))
    for test in (dropout, branches, after, batch_statistics, histories,
                 trained, default_sublayers, comments, refusals, documented,
                 attributes):
        t.check(test.__name__, test, t)
    if t.verbose:
        for name, found in t.worst.items():
            print(f"{name:25}", *(f"{d} {e:.1e} ({w})"
                                  for d, (e, w) in found.items()))
    print(f"{t.passed} passed, {t.failed} failed, 0 skipped")
    return t.failed != 0


if __name__ == "__main__":
    sys.exit(main())
