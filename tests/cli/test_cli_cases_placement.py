# SPDX-License-Identifier: MIT
"""Cases of placement and of the residual connection, through the command
line: the number in a test's name is the case's. Each holds the case's own
numbers, and other inputs of the same kind against the formula in double."""

import json
import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, story, test  # noqa: E402

SHIFT = {3: [[0, 0, 1], [1, 0, 0], [0, 1, 0]],
         5: [[float((i - 1) % 5 == j) for j in range(5)] for i in range(5)]}


def norm(x, eps=1e-5):
    m = math.fsum(x) / len(x)
    v = math.fsum((a - m) ** 2 for a in x) / len(x)
    return [(a - m) / math.sqrt(v + eps) for a in x]


def shift(x):
    return x[-1:] + x[:-1]


def plus(*rows):
    return [math.fsum(c) for c in zip(*rows)]


def evaluate(t, text, *words, rc=0, **sets):
    line = [w for k, v in sets.items() for w in ("--set", "%s=%s" % (
        k.replace("_", "."), json.dumps(v)))]
    return t.run("eval", text, *line, *words, "--json", rc=rc).json()


def explain(t, text, *words):
    return t.run("explain", text, *words, "--json", rc=0).json()


def codes(d, level=None):
    return [f["code"] for f in d["lint"] if level in (None, f["level"])]


def norm_numbers(d):
    return sum(math.prod(p["shape"]) for p in d["parameters"]
               if "norm" in p["name"])


# --- Residual ----------------------------------------------------------------


@test
def case_C025_the_old_x_is_kept(t):
    d = evaluate(t, "f(v) = v*v; x = x + f(x)", "--grad", "[1,1,1]", x=[1, 2, 3])
    t.eq((d["y"], d["grad"]["x"]), ([2, 6, 12], [3, 5, 7]))
    # three times over, with a cotangent that is not one
    x, g = [1.0, -2.0, 0.5, 3.0], [1.0, 2.0, -1.0, 0.5]
    d = evaluate(t, "x = x + x*x; x = x + x*x; x = x + x*x", "--grad",
                 json.dumps(g), x=x)
    want, y = list(g), list(x)
    for _ in range(3):
        want, y = [w * (1 + 2 * a) for w, a in zip(want, y)], \
            [a + a * a for a in y]
    t.near(d["y"], y, 1e-9 * max(map(abs, y)))
    t.near(d["grad"]["x"], want, 1e-12 * max(map(abs, want)))


@test
def case_C026_names_have_values(t):
    texts = ("r = x; x = norm(x); x = attn(x); x = r + x",
             "x = x + attn(norm(x))")
    a, b = (explain(t, x) for x in texts)
    for key in ("jacobian", "lane", "parameter_count"):
        t.eq(a[key], b[key], key)
    t.eq(a["corners"]["zero_branch"], b["corners"]["zero_branch"])
    t.eq(a["jacobian"]["text"], "I + J_attn(LN(x))·J_LN(x)")
    t.eq(a["lane"]["kind"], "clean")
    drawn = [t.run("explain", x, rc=0).out for x in texts]
    cut = [x[x.index("block\n"):x.index("Jacobian")] for x in drawn]
    t.eq(cut[0], cut[1])
    # a swap through a third name, and two old values kept at once
    t.eq(evaluate(t, "a = x; b = 2*x; c = a; a = b; b = c; a - b", x=[1, 2])["y"],
         [1, 2])
    for text, place in (("x = r + F(x)", "1:5"), ("x = x\nx = q*x", "2:5")):
        t.has(t.run("explain", text, rc=3).err, place)


@test
def case_C027_normalised_value_added_back(t):
    x = [1.0, 2.0, 3.0, 4.0]
    zeros = {"attn_" + n: [[0.0] * 4] * 4 for n in "qkvo"}
    bad = evaluate(t, "x = norm(x); x = x + attn(x)", "--jacobian", "x", x=x,
                   **zeros)
    t.near(bad["y"], [-1.3416354, -0.4472118, 0.4472118, 1.3416354], 1e-7)
    for row in bad["jacobian"]:
        t.near(math.fsum(row), 0, 1e-12, "J*1")
    # its largest singular value, by squaring (J is symmetric)
    v = [0.3, -1.0, 0.7, 0.1]
    for _ in range(60):
        v = [math.fsum(a * b for a, b in zip(r, v)) for r in bad["jacobian"]]
        size = math.sqrt(math.fsum(a * a for a in v))
        v = [a / size for a in v]
    t.near(size, 0.894424, 1e-6, "gain of the lane")
    good = evaluate(t, "x = x + attn(norm(x))", "--jacobian", "x", x=x, **zeros)
    t.eq(good["y"], x)
    t.eq(good["jacobian"], [[float(i == j) for j in range(4)] for i in range(4)])
    d = explain(t, "x = norm(x); x = x + attn(x)")
    t.eq((d["lane"]["kind"], d["lane"]["tolls_per_block"]), ("toll", 1))
    t.ok("normed-skip" in codes(d), d["lint"])
    # the same mistake under another name and in the second sublayer only
    for text in ("h1 = norm(x); x = h1 + attn(h1); x = x + ffn(norm(x))",
                 "x = x + attn(norm(x)); x = norm(x); x = x + ffn(x)"):
        d = explain(t, text)
        t.ok("normed-skip" in codes(d) or "skip-after-norm" in codes(d), d["lint"])


@test
def case_C029_no_skip_although_it_looks_like_one(t):
    zeros = {"attn_" + n: [[0.0] * 4] * 4 for n in "qkvo"}
    d = evaluate(t, "attn(norm(x) + x)", "--jacobian", "x", x=[1, 2, 3, 4], **zeros)
    t.eq((d["y"], d["jacobian"]), ([0] * 4, [[0] * 4] * 4))
    d = evaluate(t, "attn(v) = 0.1*v; attn(norm(x) + x)", "--jacobian", "x",
                 x=[1, 2, 3, 4])
    j = evaluate(t, "norm(x)", "--jacobian", "x", x=[1, 2, 3, 4])["jacobian"]
    t.near(d["jacobian"], [[0.1 * ((i == k) + j[i][k]) for k in range(4)]
                           for i in range(4)], 1e-15)
    for text in ("x = attn(norm(x) + x)", "x = F(x + norm(x))",
                 "a = x + attn(norm(x)); x = ffn(a)"):
        d = explain(t, text)
        t.eq(d["lane"]["kind"], "none", text)
        t.ok("no-skip" in codes(d, "fail"), text, d["lint"])


@test
def case_C030_norm_on_the_branch_output(t):
    x = [1.0, 2.0, 3.0, 4.0]
    for s, last in ((1, 1.341635), (0.1, 1.341104), (0.01, 1.290994),
                    (0.001, 0.447214), (0.0001, 0.047405), (0, 0)):
        y = evaluate(t, "x + norm(%s*x)" % repr(float(s)), x=x)["y"]
        t.near(y[3] - 4, last, 1e-5, "s = %s" % s)
        t.near(plus(y, [-a for a in x]), norm([s * a for a in x]), 1e-13)
    # a published block of the kind is not called an identity at the start
    for block in ("x = x + norm(F(x)); final: x = norm(x)", "output-norm"):
        text = t.run("explain", block, rc=0).out
        t.ok("identity" not in text, text)


@test
def case_C031_dropout_on_the_sum(t):
    zeros = {"attn_" + n: [[0.0] * 4] * 4 for n in "qkvo"}
    right = "x = x + drop(attn(norm(x)), 0.5)"
    wrong = "x = drop(x + attn(norm(x)), 0.5)"
    ones, seen = [[1.0] * 4] * 3, set()
    for seed in range(1, 6):
        t.eq(evaluate(t, right, "--seed", seed, x=ones, **zeros)["y"], ones)
        y = evaluate(t, wrong, "--seed", seed, x=ones, **zeros)["y"]
        seen |= {v for row in y for v in row}
    t.eq(seen, {0.0, 2.0})
    t.near(0.9 ** 24, 0.0797664, 1e-7)
    d = explain(t, "x = drop(x + F(norm(x)), 0.1); final: x = norm(x)", "--depth",
                "12")
    found = [f["message"] for f in d["lint"] if f["code"] == "dropout-on-lane"]
    t.ok(found and "0.0798" in found[0], d["lint"])
    t.ok("dropout-on-lane" not in codes(explain(
        t, "x = x + drop(F(norm(x)), 0.1); final: x = norm(x)")))


# --- Placement ---------------------------------------------------------------


@test
def case_C034_two_norms_at_the_top(t):
    for x, one, two in (([1, 2, 3, 4], None, None),
                        ([0, 0, 0, 0.02], 1.6269784, 1.7320410)):
        a = evaluate(t, "norm(x)", x=x)["y"]
        b = evaluate(t, "norm(norm(x))", x=x)["y"]
        if one is None:
            t.ok(max(abs(p - q) for p, q in zip(a, b)) <= 1.3417e-6)
        else:
            t.near([a[3], b[3]], [one, two], 1e-7)
    # a narrower row of the same kind, against the formula
    row = [0.0, 0.003, 0.0, 0.0, -0.001]
    t.near(evaluate(t, "norm(norm(x))", x=row)["y"], norm(norm(row)), 1e-12)
    post = "x = norm(x + F(x))"
    without, with_ = (explain(t, text, "--depth", "2", "--width", "48", "--heads",
                              "3") for text in (post, post + "; final: x = norm(x)"))
    t.eq(with_["parameter_count"] - without["parameter_count"], 2 * 48)
    t.eq(codes(with_).count("two-norms"), 1)
    t.eq(codes(without).count("two-norms"), 0)
    t.ok("two-norms" in codes(explain(t, "x = rmsnorm(x + F(x)); final: x = "
                                      "rmsnorm(x)")))
    # a folder that has the norm keeps it
    t.write("book.txt", story(300))
    t.run("train", post + "; final: x = norm(x)", "--text", "book.txt", "--out",
          "run", "--depth", "2", "--width", "16", "--heads", "2", "--context", "8",
          "--batch", "2", "--steps", "2", rc=0)
    with open(t.path("run", "model.safetensors"), "rb") as f:
        t.ok(b'"final.norm.gain"' in f.read(20000))
    flow = t.run("flow", "run", "--json", rc=0).json()["runs"][0]
    t.ok(flow["final"]["toll"] is not None)


@test
def case_C035_pre_ln_without_a_final_norm(t):
    # each branch adds fresh noise of variance 1: std at the top sqrt(1 + 2 N)
    text = ("attn(x) = o(x)\nffn(x) = down(up(x))\nx = x + F(norm(x))\n"
            "init:\n    attn.o, ffn.up, ffn.down: normal(sqrt(1/d))\n"
            "model:\n    ffn = d\n    bias = false\n    positions = none\n")
    for depth, wanted in ((12, 5), (6, 3.605551), (3, math.sqrt(7))):
        run = t.run("flow", text, "--depth", depth, "--width", "512", "--heads",
                    "1", "--tokens", "32", "--json", rc=0).json()["runs"][0]
        top = run["sublayers"][-1]["std_x"]
        t.ok(abs(top / wanted - 1) < 0.03, depth, top, wanted)
        t.eq(run["final"]["toll"], None)
    for block in ("x = x + F(norm(x))", "x = x + rmsnorm(F(rmsnorm(x)))",
                  "pre-ln-no-final"):
        t.ok("no-final-norm" in codes(explain(t, block)), block)
    t.ok("no-final-norm" not in codes(explain(t, "pre-ln")))


@test
def case_C038_parallel_or_sequential(t):
    parallel = "attn(v) = perm(v); ffn(v) = v; perm = linear(d, d, bias=false)\n" \
        "x + attn(norm(x)) + ffn(norm(x))"
    inline = "attn(v) = perm(v); ffn(v) = v; perm = linear(d, d, bias=false)\n" \
        "x = x + attn(norm(x)); x = x + ffn(norm(x))"
    for x, par, seq in (
            ([1, 2, 4], [1.2672604, 0.6636981, 5.0690415],
             [2.3388972, -0.2950773, 4.9561802]),
            ([3.0, -1.0, 0.5, 2.0, 7.0], None, None)):
        n = norm(x)
        if par:
            t.near(n, [-1.0690415, -0.2672604, 1.3363019], 1e-6)
        par = par or plus(x, shift(n), n)
        mid = plus(x, shift(n))
        seq = seq or plus(mid, norm(mid))
        d = evaluate(t, parallel, "--jacobian", "x", x=x, perm=SHIFT[len(x)])
        t.near(d["y"], par, 1e-6)
        t.near(evaluate(t, inline, x=x, perm=SHIFT[len(x)])["y"], seq, 1e-6)
        # the identity and a sum of branches, no product of the two
        j = evaluate(t, "norm(x)", "--jacobian", "x", x=x)["jacobian"]
        t.near(d["jacobian"], [[(i == k) + j[i - 1][k] + j[i][k]
                                for k in range(len(x))] for i in range(len(x))],
               1e-12)
    text = explain(t, "x = x + attn(norm(x)) + ffn(norm(x))")["jacobian"]["text"]
    t.eq(text, "I + J_attn(LN(x))·J_LN(x) + J_ffn(LN(x))·J_LN(x)")
    text = explain(t, "x = x + attn(norm(x)); x = x + ffn(norm(x))")
    t.has(text["jacobian"]["text"], "(I + J_ffn", ")·(I + J_attn")


@test
def case_C041_what_a_sandwiched_branch_adds(t):
    head = "attn(v) = perm(v); ffn(v) = v; perm = linear(d, d, bias=false)\n"
    one = head + "x + norm(attn(norm(x)))"
    both = head + "x = x + norm(attn(norm(x))); x = x + norm(ffn(norm(x)))"
    wrong = head + "x = norm(x + attn(norm(x)))"
    x = [1, 2, 4]
    got = {k: evaluate(t, text, x=x, perm=SHIFT[3])["y"]
           for k, text in (("one", one), ("both", both), ("wrong", wrong))}
    t.near(got["one"], [2.3362995, 0.9309604, 3.7327401], 1e-6)
    t.near(got["wrong"], [0.0025953, -1.2260358, 1.2234405], 1e-6)
    t.near(got["both"], [2.3388927, -0.2950729, 4.9561802], 1e-6)
    add1 = [a - b for a, b in zip(got["one"], x)]
    add2 = [a - b for a, b in zip(got["both"], got["one"])]
    t.near(add1, [1.3362995, -1.0690396, -0.2672599], 1e-6)
    t.near(add2, [0.0025932, -1.2260333, 1.2234401], 1e-6)
    t.near(plus(x, add1, add2), got["both"], 1e-6)
    x = [0.5, -3.0, 2.0, 8.0, 1.0]
    mid = plus(x, norm(shift(norm(x))))
    t.near(evaluate(t, both, x=x, perm=SHIFT[5])["y"],
           plus(mid, norm(norm(mid))), 1e-12)
    # what flow calls |F|/|x| is taken after the second norm: the norm's output
    # has length sqrt(d) per token however small the branch is made
    small = ("x = x + norm(F(norm(x)))\nfinal: x = norm(x)\n"
             "init:\n    attn.o, ffn.down: normal(%s)\n")
    ratio = [t.run("flow", small % s, "--depth", "2", "--json", rc=0).json()
             ["runs"][0]["sublayers"][1]["branch_ratio"] for s in (1, 0.1)]
    t.near(ratio[1] / ratio[0], 1, 0.05, "independent of the branch's size")


@test
def case_C042_text_says_post_code_is_pre(t):
    pre = "x = x + drop(F(norm(x))); final: x = norm(x)"
    post = "x = norm(x + F(x))"
    d = explain(t, pre, "--depth", "6", "--width", "512", "--heads", "8")
    t.eq((d["lane"]["kind"], d["lane"]["final_toll"]), ("clean", True))
    t.eq(norm_numbers(d), 13312)
    d = explain(t, post, "--depth", "6", "--width", "512", "--heads", "8")
    t.eq((d["lane"]["kind"], d["lane"]["tolls_per_block"]), ("toll", 2))
    t.eq(norm_numbers(d), 12288)
    t.eq(norm_numbers(explain(t, "x = rmsnorm(x + F(x))", "--depth", "3",
                              "--width", "48")), 3 * 2 * 48)
    # six decoder blocks of three sublayers over six encoder blocks of two
    d = explain(t, post, "--depth", "6", "--width", "512", "--heads", "8",
                "--stack", "encoder-decoder")
    sides = {side: sum(math.prod(p["shape"]) for p in d["parameters"]
                       if p["name"].startswith(side) and "norm" in p["name"])
             for side in ("encoder.", "decoder.")}
    t.eq(sides, {"encoder.": 12288, "decoder.": 18432})
    r = t.run("explain", pre, "--expect", "post-ln")
    t.eq(r.rc, 1, r)
    t.has(r.out + r.err, "post-ln")
    t.run("explain", pre, "--expect", "pre-ln", rc=0)
    t.run("explain", post, "--expect", "pre-ln", rc=1)
    # a file called by the wrong name is what its equation says
    t.write("post-ln.block", "block: x = x + F(norm(x))\nfinal: x = norm(x)\n")
    t.eq(explain(t, "./post-ln.block")["lane"]["kind"], "clean")


alone(__name__)
