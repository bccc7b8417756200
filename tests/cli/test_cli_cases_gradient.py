# SPDX-License-Identifier: MIT
"""Cases of measuring gradients and of Jacobians, through the command line: the
number in a test's name is the case's."""

import json
import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, story, test  # noqa: E402

TINY = ("--depth", "1", "--width", "16", "--heads", "2", "--context", "16",
        "--batch", "4")


def train(t, *words, rc=0):
    t.write("book.txt", story(400))
    return t.run("train", "pre-ln", "--text", "book.txt", *TINY, *words, "--json",
                 "--exact", rc=rc).lines()[1:-1]


def evaluate(t, text, *words, rc=0, **sets):
    line = [w for k, v in sets.items() for w in ("--set", "%s=%s" % (
        k, json.dumps(v)))]
    return t.run("eval", text, *line, *words, "--json", rc=rc).json()


@test
def case_C052_before_and_after_clipping(t):
    for clip in (0.05, 1e-3):
        for x in train(t, "--steps", "6", "--clip", clip):
            factor = min(1.0, clip / (x["grad_norm"] + 1e-6))
            t.ok(x["grad_norm"] > clip, x)
            t.near(x["grad_norm_after"], x["grad_norm"] * factor,
                   1e-12 * x["grad_norm"])
            t.ok(x["grad_norm_after"] < clip, x)
    for x in train(t, "--steps", "6", "--clip", "0"):
        t.eq(x["grad_norm_after"], x["grad_norm"])
    # the first step of all three has the same gradient
    first = [train(t, "--steps", "1", "--clip", c)[0]["grad_norm"]
             for c in ("0", "0.05", "1000")]
    t.eq(len(set(first)), 1)
    # the case's own numbers: [3, 4] clipped to 1
    factor = 1 / (5 + 1e-6)
    t.near([3 * factor, 4 * factor], [0.59999988, 0.79999984], 1e-8)


@test
def case_C053_C055_no_hidden_scales(t):
    """What is not there cannot leave a scale in a number: such options are
    refused, not ignored."""
    t.write("book.txt", story(400))
    for option in ("--grad-scale", "--loss-scale", "--accumulation", "--accumulate",
                   "--micro-batch"):
        r = t.run("train", "pre-ln", "--text", "book.txt", *TINY, option, "8", rc=2)
        t.has(r.err, "unknown option " + option)


@test
def case_C058_not_of_the_batch(t):
    """Identical tokens: ratios between sublayers do not depend on how many."""
    t.write("same.txt", "a" * 1000)
    runs = []
    for tokens, batch in ((3, 2), (6, 4), (16, 1)):
        runs.append(t.run("flow", "post-ln", "--text", "same.txt", "--tokens",
                          tokens, "--batch", batch, "--no-positions", "--mask",
                          "none", "--depth", "3", "--dtype", "f64", "--json",
                          rc=0).json()["runs"][0])
        t.eq((runs[-1]["tokens"], runs[-1]["batch"]), (tokens, batch))
    for key in ("total", "lane", "branch", "toll", "std_x"):
        for a, *others in zip(*([s[key] for s in r["sublayers"]] for r in runs)):
            for b in others:
                t.near(b / a if a else b, 1 if a else 0, 1e-6, key)
    t.near([r["loss"] for r in runs], [runs[0]["loss"]] * 3, 1e-9)


@test
def case_C059_one_weight_two_uses(t):
    d = evaluate(t, "a = scalar(2); a*x1 + a*x2", "--grad", "[1]", x1=[3], x2=[4])
    t.eq((d["y"], d["grad"]["a"]), ([14], 7))
    w = [[1.0, 2.0], [3.0, -1.0]]
    d = evaluate(t, "w = linear(d, d, bias=false); w(w(x))", "--grad", "[1,-2]",
                 x=[0.5, 2.0], w=w)
    x, g = [0.5, 2.0], [1.0, -2.0]
    mid = [math.fsum(a * b for a, b in zip(r, x)) for r in w]
    back = [math.fsum(g[i] * w[i][k] for i in range(2)) for k in range(2)]
    t.near(d["grad"]["w.weight"], [[g[i] * mid[k] + back[i] * x[k] for k in range(2)]
                                   for i in range(2)], 1e-14)
    # tied: one tensor less, counted once
    two, one = (t.run("explain", "gpt-2", *tied, "--depth", "2", "--json",
                      rc=0).json() for tied in ([], ["--tied"]))
    t.eq(two["parameter_count"] - one["parameter_count"], 256 * 64)
    t.eq(len(two["parameters"]) - len(one["parameters"]), 1)
    flow = t.run("flow", "gpt-2", "--tied", "--depth", "1", "--json", rc=0).json()
    names = [w["name"] for w in flow["runs"][0]["weights"]]
    t.eq(len(names), len(set(names)))
    t.ok("head.weight" not in names)


@test
def case_C061_C062_C063_jacobians(t):
    d = evaluate(t, "norm(x)", "--jacobian", "x", x=[1, 2, 3])["jacobian"]
    t.near(d, [[0.2041318, -0.4082452, 0.2041134],
               [-0.4082452, 0.8164905, -0.4082452],
               [0.2041134, -0.4082452, 0.2041318]], 1e-7)
    full = evaluate(t, "norm(x)", "--jacobian", "x",
                    x=[[[1, 2, 3]], [[2, 4, 6]]])["jacobian"]
    t.eq((len(full), len(full[0])), (6, 6))
    t.eq(sum(full[i][k] == 0 for i in range(6) for k in range(6)
             if (i < 3) != (k < 3)), 18)
    t.near([r[3:] for r in full[3:]], [[v / 2 for v in r[:3]] for r in full[:3]],
           1e-5)
    t.near(math.fsum(v for r in full for v in r), 0, 1e-12)
    d = evaluate(t, "f(a, b) = (a + 2*b, 3*a); f(x1, x2)", "--jacobian", "x1,x2",
                 x1=[1], x2=[1])
    t.eq(d["jacobian"], [[1, 2], [3, 0]])


@test
def case_C068_causal_blocks(t):
    x = [[math.sin(3.1 * i + k) for k in range(8)] for i in range(4)]
    y = [list(r) for r in x]
    y[3] = [v + 1 for v in y[3]]
    block = "x = x + attn(norm(x)); x = x + ffn(norm(x))"
    a, b = (evaluate(t, block, "--heads", "2", x=v)["y"] for v in (x, y))
    t.eq(a[:3], b[:3])
    t.ok(a[3] != b[3])
    j = evaluate(t, block, "--heads", "2", "--jacobian", "x", x=x)["jacobian"]
    for i in range(32):
        for k in range(32):
            t.ok(k // 8 <= i // 8 or j[i][k] == 0, i, k, j[i][k])
    full = evaluate(t, block, "--heads", "2", "--mask", "none", "--jacobian", "x",
                    x=x)["jacobian"]
    t.ok(any(full[i][k] for i in range(8) for k in range(8, 32)))


alone(__name__)
