# SPDX-License-Identifier: MIT
"""Statistics over tokens from the command line: padding, masks, running
statistics, what training keeps. Case numbers as in test_cli_eval.py."""

import json
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import ROOT, alone, story, test  # noqa: E402


def column(values):
    """One feature: [1, T, 1]."""
    return json.dumps([[[v] for v in values]])


def evaluate(t, expr, *sets, more=()):
    words = [w for s in sets for w in ("--set", s)]
    return t.run("eval", expr, *words, *more, "--json", rc=0).json()


REAL = [1, 2, 3, 4, 5]
PADDED = "x=" + column(REAL + [0] * 5)
KEEP = "m=" + column([1] * 5 + [0] * 5)


@test
def batchnorm_C070_padding_moves_statistics(t):
    bare = evaluate(t, "batchnorm(x)", PADDED)["statistics"]
    kept = evaluate(t, "batchnorm(x, keep=m)", PADDED, KEEP)["statistics"]
    t.eq((bare["batchnorm.mean"], bare["batchnorm.var"]), ([1.5], [3.25]))
    t.eq((kept["batchnorm.mean"], kept["batchnorm.var"]), ([3], [2]))
    # mean squares: 55/10 and 55/5
    t.eq(evaluate(t, "powernorm(x)", PADDED)["statistics"],
         {"powernorm.square": [5.5]})
    t.eq(evaluate(t, "powernorm(x, keep=m)", PADDED, KEEP)["statistics"],
         {"powernorm.square": [11]})


@test
def batchnorm_C071_a_token_changes_with_its_neighbours(t):
    alone = evaluate(t, "batchnorm(x)", "x=" + column(REAL))["y"][0]
    padded = evaluate(t, "batchnorm(x)", PADDED)["y"][0]
    kept = evaluate(t, "batchnorm(x, keep=m)", PADDED, KEEP)["y"][0]
    t.near(alone[0], [-1.4142100], 1e-6)
    t.near(padded[0], [-0.2773497], 1e-6)
    t.eq(kept[:5], alone)
    t.eq(kept[5:], [[0]] * 5)


@test
def layernorm_C071_rows_do_not_know_padding(t):
    rows = [[0.1, -2.5, 3.75], [1e3, 7.25, -0.3], [5, 5, 5.5]]
    for norm in ("layernorm", "rmsnorm", "scalenorm", "dyt"):
        alone = evaluate(t, norm + "(x)", "x=" + json.dumps([rows]))["y"][0]
        for n in (1, 2, 5, 10):
            more = "x=" + json.dumps([rows + [[0, 0, 0]] * n])
            t.eq(evaluate(t, norm + "(x)", more)["y"][0][:3], alone)


@test
def batchnorm_C073_eps_stands_under_the_root(t):
    y = [v for (v,) in evaluate(t, "batchnorm(x)", "x=[[1],[2],[3],[4]]")["y"]]
    t.near(y, [-1.3416354, -0.4472118, 0.4472118, 1.3416354], 1e-6)
    t.ok(abs(sum(y)) < 1e-12, "sum", sum(y))
    t.eq(evaluate(t, "batchnorm(x)", "x=[[5],[5],[5],[5]]")["y"], [[0]] * 4)


@test
def batchnorm_running_statistics(t):
    given = ("batchnorm.mean=[2]", "batchnorm.var=[4]")
    more = ("--statistics", "running")
    doc = evaluate(t, "batchnorm(x, eps=0)", PADDED, *given, more=more)
    t.eq(doc["y"][0][:3], [[-0.5], [0], [0.5]])
    t.eq(doc["statistics"], {"batchnorm.mean": [2], "batchnorm.var": [4]})
    # frozen: a token by itself, and no gradient for what is not learned
    doc = evaluate(t, "batchnorm(x)", "x=[[1],[3]]", more=(
        *more, "--jacobian", "x", "--grad", "[[1],[1]]"))
    t.eq((doc["jacobian"][0][1], doc["jacobian"][1][0]), (0, 0))
    t.eq(sorted(doc["grad"]), ["batchnorm.bias", "batchnorm.gain", "x"])
    for option in (["--jacobian", "batchnorm.var"],
                   ["--tangent", "batchnorm.mean=[1]"]):
        out = t.run("eval", "batchnorm(x)", "--set", "x=[[1],[3]]", *option, rc=3)
        t.has(out.err, "a running statistic, wanted an input or a weight")


@test
def batchnorm_masks_hold_0_or_1(t):
    out = t.run("eval", "batchnorm(x, keep=m)", "--set", "x=[[1],[3]]", "--set",
                "m=[[1],[0.5]]", rc=3)
    t.has(out.err, "a mask holds 1 (keep) or 0 (hide), not this at row 2")
    out = t.run("eval", "batchnorm(x, keep=m)", "--set", "x=[[1],[3]]", "--set",
                "m=[[1,1],[1,1]]", rc=3)
    t.has(out.err, "its mask must be a stream of width 1")
    nothing = evaluate(t, "batchnorm(x, keep=m)", "x=[[1],[3]]", "m=[[0],[0]]")
    t.eq(nothing["y"], [[0], [0]])
    out = t.run("eval", "batchnorm(x, eps=0)", "--set", "x=[[5],[5]]", rc=3)
    t.has(out.err, "a feature has zero variance with eps = 0")


BLOCK = "x = x + F(batchnorm(x))\nfinal: x = batchnorm(x)"
SIZES = ("--depth", "2", "--width", "16", "--heads", "2", "--context", "12",
         "--batch", "4", "--steps", "12")


@test
def batchnorm_trained_folder(t):
    """Statistics are in the file, not among the parameters, and are what
    validation, score and flow use: their numbers do not depend on the batch."""
    text = t.write("text.txt", story(300))
    run = t.path("run")
    last = t.run("train", BLOCK, "--text", text, "--out", run, *SIZES, "--json",
                 rc=0).lines()
    with open(os.path.join(run, "model.safetensors"), "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        names = set(json.loads(f.read(size)))
    t.ok({"final.norm.mean", "layers.1.ffn.norm.var"} <= names, names)
    with open(os.path.join(run, "state.safetensors"), "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        names = set(json.loads(f.read(size)))
    t.ok("final.norm.var" in names and "adam.m/final.norm.gain" in names)
    t.ok("adam.m/final.norm.var" not in names)
    plain = t.run("train", BLOCK.replace("batchnorm", "layernorm"), "--text", text,
                  "--out", t.path("plain"), *SIZES, "--json", rc=0).lines()
    t.eq(last[0]["parameters"], plain[0]["parameters"])
    # the same tokens alone and before others: frozen statistics do not care
    t.write("a.txt", story(300)[:12])
    t.write("b.txt", story(300)[:24])
    a = t.run("score", run, "--text", t.path("a.txt"), "--json", rc=0).json()
    b = t.run("score", run, "--text", t.path("b.txt"), "--json", rc=0).json()
    t.ok(a["tokens"] < b["tokens"], a, b)
    flow = t.run("flow", run, "--text", text, "--json", rc=0).json()["runs"][0]
    names = {w["name"] for w in flow["weights"]}
    t.ok("final.norm.gain" in names and "final.norm.mean" not in names)
    out = t.run("generate", run, "--prompt", "the", "--tokens", "4", rc=0).out
    t.ok(len(out) >= 4, out)


@test
def powernorm_encoder_under_a_decoder(t):
    """The built-in block on pairs of lines with padding, past its warm-up: the
    encoder has running statistics and the decoder none."""
    with open(os.path.join(ROOT, "blocks", "powernorm.block"),
              encoding="utf-8") as f:
        block = t.write("p.block", f.read().replace("10000", "4"))
    lines = [line for line in story(200).split("\n") if line]
    t.write("a.txt", "\n".join(lines) + "\n")
    t.write("b.txt", "\n".join(line[::-1] for line in lines) + "\n")
    last = t.run("train", block, "--stack", "encoder-decoder", "--source",
                 t.path("a.txt"), "--target", t.path("b.txt"), "--depth", "1",
                 "--width", "16", "--heads", "2", "--batch", "3", "--steps", "8",
                 "--out", t.path("run"), "--json", rc=0).lines()[-1]
    t.ok(0 < last["val_loss"] < 10, last)
    with open(t.path("run", "state.safetensors"), "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        names = set(json.loads(f.read(size)))
    encoder, decoder = ("%s.layers.0.ffn.norm" % s for s in ("encoder", "decoder"))
    t.ok({encoder + "2.square", encoder + "2.nu", decoder + ".gain"} <= names)
    t.ok(not any(n.endswith((".square", ".nu")) for n in names
                 if n.startswith(("decoder.", "adam."))), names)


@test
def batchnorm_explained(t):
    doc = t.run("explain", BLOCK, "--depth", "1", "--json", rc=0).json()
    plain = t.run("explain", BLOCK.replace("batchnorm", "layernorm"), "--depth", "1",
                  "--json", rc=0).json()
    t.eq(doc["parameter_count"], plain["parameter_count"])
    t.eq([b["name"] for b in doc["buffers"]][-2:],
         ["final.norm.mean", "final.norm.var"])
    t.ok(not any(".mean" in p["name"] for p in doc["parameters"]))
    t.ok("buffers" not in plain)
    t.has(doc["jacobian"]["text"], "J_BN(x)")
    codes = [f["code"] for f in doc["lint"]]
    t.ok("batch-statistics-causal" in codes, codes)


@test
def batchnorm_document(t):
    """Every command of docs/batchnorm.md prints what stands there."""
    with open(os.path.join(ROOT, "docs", "batchnorm.md"), encoding="utf-8") as f:
        text = f.read()
    shown = re.findall(r"```\n\$ tollbooth (.*)\n((?:.*\n)*?)```\n", text)
    t.eq(len(shown), text.count("$ tollbooth"))
    for line, output in shown:
        r = t.run(*shlex.split(line), env={"COLUMNS": "80"}, rc=0)
        t.eq(r.out, output, line)


@test
def batchnorm_picture(t):
    """docs/img holds the picture of the program, in both themes of one file."""
    svg = t.run("picture", "batchnorm", "--format", "svg", rc=0).out
    with open(os.path.join(ROOT, "docs", "img", "batchnorm.svg"),
              encoding="utf-8") as f:
        t.eq(f.read(), svg)
    t.has(svg, "prefers-color-scheme", "<title", "<desc")
    doc = t.run("picture", "batchnorm", "--json", rc=0).json()
    bare, kept, layer = [s["y"] for s in doc["panels"][0]["series"]]
    t.near([bare[0], bare[3]], [-1.4142100, -0.2773497], 1e-6)
    t.eq([kept, layer], [[bare[0]] * 5, [layer[0]] * 5])
    for width in ("40", "80", "200"):
        out = t.run("picture", "batchnorm", env={"COLUMNS": width}, rc=0).out
        t.ok(max(map(len, out.splitlines())) <= int(width), out)
    t.has(t.run("picture", "--list", rc=0).out, "batchnorm", "padding")
    t.has(t.run("picture", "batchnrom", rc=2).err, "did you mean batchnorm")
    t.has(t.run("picture", "batchnorm", "--set", "token=9", rc=3).err,
          "token: got 9, wanted a whole number from 1 to 5")
    t.has(t.run("picture", "batchnorm", "--set", "token", rc=2).err, "NAME=VALUE")
    t.run("picture", "batchnorm", "--check", rc=0)


alone(__name__)
