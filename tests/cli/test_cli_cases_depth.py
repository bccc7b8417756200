# SPDX-License-Identifier: MIT
"""Cases of depth, scaled skips and initial weights, through the command line:
the number in a test's name is the case's. Each holds the case's own numbers,
and other inputs of the same kind."""

import json
import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, test  # noqa: E402


def evaluate(t, text, *words, rc=0, **sets):
    line = [w for k, v in sets.items() for w in ("--set", "%s=%s" % (
        k, json.dumps(v)))]
    return t.run("eval", text, *line, *words, "--json", rc=rc).json()


def flow(t, text, *words):
    return t.run("flow", text, *words, "--json", rc=0).json()["runs"][0]


def matvec(m, v):
    return [math.fsum(a * b for a, b in zip(row, v)) for row in m]


def largest_singular(m):
    """Power iteration on m' m."""
    v = [math.sin(1.7 * i + 0.3) for i in range(len(m[0]))]
    back = [list(c) for c in zip(*m)]
    for _ in range(300):
        v = matvec(back, matvec(m, v))
        n = math.sqrt(math.fsum(a * a for a in v))
        v = [a / n for a in v]
    return math.sqrt(n)


@test
def case_C043_zero_branches_do_not_fade(t):
    for x, first, later in (([1.0, 2.0, 3.0, 4.0], 0.894424, 0.894423),
                            ([10.0, 20.0, 30.0, 40.0], 0.0894427, 0.0894427)):
        for n in (1, 2, 6, 12, 24):
            text = "f(v) = 0*v; " + "; ".join(["x = norm(x + f(x))"] * n)
            j = evaluate(t, text, "--jacobian", "x", x=x)["jacobian"]
            t.near(largest_singular(j), first if n == 1 else later, 1.1e-6, n)
            t.near(matvec(j, [1.0] * 4), [0.0] * 4, 1e-12, "along the mean")
            c = [a - math.fsum(x) / 4 for a in x]
            size = math.sqrt(math.fsum(a * a for a in c))
            along = matvec(j, [a / size for a in c])
            gain = math.sqrt(math.fsum(a * a for a in along))
            if n == 1 and x[0] == 1:
                t.near(gain, 7.2e-6, 0.05e-6)
            if n >= 6:
                t.ok(gain < 1e-15, gain)
    # the stack itself: one toll is paid at the first norm, none after it
    for depth in (1, 6, 24):
        run = flow(t, "f(v) = 0*v; x = norm(x + f(F(x)))", "--depth", depth,
                   "--dtype", "f64", "--cotangent", "random")
        rows = run["sublayers"]
        t.near(rows[1]["lane"] / rows[-1]["lane"], 1, 0.35, "lane at k = 1")
    # and the words follow the number: no text of ours says that it fades
    verdicts = {v["code"]: v["level"] for v in run["verdicts"]}
    t.eq(verdicts["VANISH"], "OK")
    for name in ("explain", "flow"):
        out = t.run(name, "f(v) = 0*v; x = norm(x + f(F(x)))", "--depth", "24",
                    rc=0).out
        t.ok("expon" not in out, out)


def alpha_of(t, expression, *words):
    """The factor on the skip, as the backward pass sees it."""
    run = flow(t, "a = %s; x = a*x + 0*F(x)" % expression, "--width", "8",
               "--heads", "1", "--tokens", "2", "--dtype", "f64", "--cotangent",
               "random", *words)
    return run["sublayers"][1]["local_lane"]


def starts(t, text, *words):
    d = t.run("explain", text, *words, "--json", rc=0).json()
    return {p["name"]: p["init"] for p in d["parameters"]}


@test
def case_C045_deepnorm_of_one_stack(t):
    for depth, alpha, beta in ((12, 2.2133638, 0.3194716),
                               (9, 18 ** 0.25, 0.3432945),
                               (48, 96 ** 0.25, 384 ** -0.25)):
        t.near(alpha_of(t, "(2*N)^0.25", "--depth", depth), alpha, 1e-6)
        rules = starts(t, "deepnorm", "--depth", depth)
        for name in ("attn.v", "attn.o", "ffn.up", "ffn.down"):
            rule = rules["layers.0.%s.weight" % name]
            t.near(float(rule.split(" = ")[1]), beta, 1e-6, name)
        for name in ("layers.0.attn.q", "layers.0.attn.k", "embed.token", "head"):
            rule = rules[name + ".weight"]
            t.ok(rule in ("xavier(1)", "normal(1)"), name, rule)


@test
def case_C045_measured_spread(t):
    """4096 x 512 at N = 9, three standard errors."""
    run = flow(t, "deepnorm", "--depth", "9", "--width", "512", "--heads", "8",
               "--ffn", "4096", "--tokens", "2", "--weights")
    std = {w["name"]: w["std"] for w in run["weights"]}
    for layer in (0, 8):
        t.near(std["layers.%d.ffn.up.weight" % layer], 0.00715197, 1.1e-5)
    plain = math.sqrt(2 / 1024)  # queries and keys have no beta
    t.near(std["layers.0.attn.q.weight"], plain, 4 * plain / math.sqrt(2 * 512 ** 2))
    t.near(std["layers.0.attn.v.weight"], plain * 72 ** -0.25,
           4 * plain * 72 ** -0.25 / math.sqrt(2 * 512 ** 2))


@test
def case_C046_alpha_on_the_skip(t):
    roll = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    head = "f = linear(d, d, bias=false); "
    for text, wanted in (
            ("norm(2*x + f(x))", [-0.4629096, -0.9258191, 1.3887287]),
            ("norm(x + 2*f(x))", [0.9258191, -1.3887287, 0.4629096]),
            ("x + 2*f(x)", [9, 4, 8])):
        t.near(evaluate(t, head + text, x=[1, 2, 4], f=roll)["y"], wanted, 1e-6,
               text)
    y = evaluate(t, head + "norm(3*x + f(x))", x=[1, 2, 4], f=roll)["y"]
    z = [7.0, 7.0, 14.0]  # 3*x + the shift, before the norm
    s = math.sqrt(98 / 9 + 1e-5)
    t.near(y, [(a - 28 / 3) / s for a in z], 1e-12)
    t.has(t.run("explain", "deepnorm", rc=0).out, "alpha")
    d = t.run("lint", "x = norm(x + (2*N)^0.25*F(x))", "--json", rc=0).json()
    t.ok("branch-scaled-instead-of-skip" in [f["code"] for f in d["lint"]], d)


@test
def case_C047_rezero_at_step_0(t):
    w = [[2, 0], [0, 3]]
    text = "w = linear(d, d, bias=false); a = scalar(0); x = x + a*w(x)"
    d = evaluate(t, text, "--grad", "[1,1]", "--jacobian", "x", x=[1, 1], w=w)
    t.eq((d["y"], d["jacobian"]), ([1, 1], [[1, 0], [0, 1]]))
    g = d["grad"]
    t.eq((g["a"], g["x"]), (5, [1, 1]))
    t.eq(g["w.weight"], [[0, 0], [0, 0]])
    after = evaluate(t, text, "--grad", "[1,1]", x=[1, 1], w=w, a=-0.5)["grad"]
    t.eq(after["w.weight"], [[-0.5, -0.5], [-0.5, -0.5]])
    # other numbers: dL/da = g . w x, dL/dw = a g x'
    x, g = [2.0, -1.0, 0.5], [1.0, 3.0, -2.0]
    m = [[1.0, 2.0, 0.0], [0.0, -1.0, 1.0], [0.5, 0.0, 2.0]]
    d = evaluate(t, text, "--grad", json.dumps(g), x=x, w=m, a=0)["grad"]
    t.near(d["a"], math.fsum(p * q for p, q in zip(g, matvec(m, x))), 1e-15)
    t.eq(d["w.weight"], [[0.0] * 3] * 3)
    # the stack: branch weights get 0 at step 0, the gates do not, and nobody
    # calls the branch dead
    run = flow(t, "rezero", "--depth", "4")
    for v in run["weights"]:
        inside = v["name"].startswith("layers.") and v["name"].count(".") > 2
        if inside:
            t.eq(v["grad_norm"], 0, v["name"])
    gates = [v["grad_norm"] for v in run["weights"] if v["name"].endswith(".a")]
    t.ok(len(gates) == 4 and min(gates) > 0, run["weights"])
    found = t.run("lint", "rezero", rc=0)
    t.ok("dead" not in found.out.replace("dead-branch", ""), found)
    t.has(t.run("explain", "x = x + scalar(0)*F(x)", rc=0).out, "zero-start",
          "step 0")


@test
def case_C049_residual_projections_are_scaled(t):
    """GPT-2 small: 0.02/sqrt(24), of every block, measured."""
    run = flow(t, "gpt-2", "--depth", "12", "--width", "768", "--heads", "12",
               "--tokens", "2", "--seed", "7", "--weights")
    rows = {w["name"]: w for w in run["weights"]}
    for layer in range(12):
        for name in ("attn.o", "ffn.down"):
            w = rows["layers.%d.%s.weight" % (layer, name)]
            t.near(w["std"], 0.004082483, 2e-5, w["name"])
            t.has(w["init"], "normal(0.02/sqrt(2*N))", "0.00408248")
            t.near(w["mean"], 0, 4 * 0.0041 / 768)
    t.near(rows["layers.5.ffn.up.weight"]["std"], 0.02, 2e-5)


@test
def case_C049_a_rule_that_was_not_applied_shows(t):
    """Not applied, and blocks counted instead of additions."""
    text = "x = x + F(norm(x)); final: x = norm(x)\ninit:\n    *: normal(0.02)\n"
    wide = ("--depth", "12", "--width", "256", "--tokens", "2", "--weights")
    for more, wanted in (("", 0.02), ("    attn.o: normal(0.02/sqrt(N))\n",
                                      0.0057735),
                         ("    attn.o: uniform(0.03)\n", 0.03 / math.sqrt(3)),
                         ("    attn.o: orthogonal(0.5)\n", 0.5 / 16)):
        rows = {w["name"]: w for w in flow(t, text + more, *wide)["weights"]}
        t.near(rows["layers.11.attn.o.weight"]["std"], wanted, wanted / 50, more)
    # constants have no spread, to the last bit
    t.eq((rows["layers.3.ffn.norm.gain"]["mean"],
          rows["layers.3.ffn.norm.gain"]["std"]), (1, 0))
    # a misspelt name is an error, and the rule in a post-LN model a finding
    bad = t.run("flow", text + "    attn.c_proj: normal(0.01)\n", rc=3)
    t.has(bad.err, "matches no weight")
    d = t.run("lint", "x = norm(x + F(x))\ninit:\n    *: normal(0.02)\n"
              "    attn.o, ffn.down: normal(0.02/sqrt(2*N))\n", "--json", rc=0)
    t.ok("init-not-matching" in [f["code"] for f in d.json()["lint"]], d)
    shown = t.run("flow", "gpt-2", "--depth", "2", "--weights", rc=0).out
    t.has(shown, "starts as", "normal(0.02/sqrt(2*N))", "std", "|gradient|")


alone(__name__)
