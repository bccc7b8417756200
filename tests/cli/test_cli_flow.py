# SPDX-License-Identifier: MIT
"""tollbooth flow: the honest numbers of lane and total, verdicts, figures."""

import os
import sys
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import add, alone, is_finite, story, test  # noqa: E402

SMALL = ("--width", "16", "--heads", "2", "--tokens", "8")


def flow(t, *words, rc=0):
    d = t.run("flow", *words, "--json", rc=rc).json()
    t.eq(list(d), ["tollbooth", "runs"])
    return d["runs"]


def verdicts(run):
    return {v["code"]: v for v in run["verdicts"]}


@test
def flow_pre_ln_lane_is_one(t):
    run, = flow(t, "pre-ln", "--depth", "48")
    t.eq(len(run["sublayers"]), 97)
    t.eq([r["k"] for r in run["sublayers"]], list(range(97)))
    for r in run["sublayers"]:
        t.eq((r["lane"], r["toll"], r["norms"]), (1, 1, 0), r["k"])
    t.ok(run["sublayers"][0]["total"] > 1)
    t.ok(0 < run["final"]["toll"] < 1)
    t.eq(verdicts(run)["TOLL"]["level"], "OK")


@test
def flow_post_ln_lane_fades_total_stays(t):
    run, = flow(t, "post-ln", "--depth", "12")
    one = run["sublayers"][1]
    t.ok(one["lane"] < 0.05, one)
    t.ok(one["total"] > 10 * one["lane"], one)
    lanes = [r["lane"] for r in run["sublayers"]]
    t.eq(lanes, sorted(lanes), "the lane fades on its way down")
    for r in run["sublayers"][1:]:
        t.ok(r["norms"] == 1 and 0 < r["toll"] < 1, r)
    t.eq(run["final"]["toll"], None)


@test
def flow_of_two_stacks(t):
    run, = flow(t, "pre-ln", "--stack", "encoder-decoder", "--depth", "2",
                "--decoder-depth", "3", *SMALL)
    t.eq((run["depth"], run["decoder_depth"]), (2, 3))
    rows = run["sublayers"]
    t.eq([r["k"] for r in rows], list(range(15)))
    t.eq([(r["role"], r["name"]) for r in rows],
         [("encoder", n) for n in ["stem"] + ["attn", "ffn"] * 2] +
         [("decoder", n) for n in ["stem"] + ["attn", "cross", "ffn"] * 3])
    t.eq([r["lane"] for r in rows], [1] * 15)
    t.ok(0 < run["final"]["toll"] < 1 and 0 < run["encoder_final"]["toll"] < 1)
    t.eq(sum(v["code"] == "VANISH" for v in run["verdicts"]), 2)
    names = [w["name"] for w in run["weights"]]
    t.ok("encoder.layers.1.attn.q.weight" in names)
    t.ok("decoder.layers.2.cross.k.weight" in names)
    t.has(t.run("flow", "post-ln", "--stack", "encoder-decoder", "--depth", "2",
                *SMALL, rc=0).out, "post-ln encoder", "post-ln decoder",
          "2 + 2 blocks")


@test
def flow_of_an_encoder(t):
    run, = flow(t, "post-ln", "--stack", "encoder", "--depth", "2", *SMALL)
    t.ok("role" not in run["sublayers"][0])
    t.run("flow", "post-ln", "--stack", "encoder", "--mask", "causal", rc=2)


@test
def flow_blocks_by_depths(t):
    runs = flow(t, "post-ln", "pre-ln", "rezero", "--depth", "1,3", *SMALL)
    t.eq([(r["block"], r["depth"]) for r in runs],
         [(b, d) for b in ("post-ln", "pre-ln", "rezero") for d in (1, 3)])
    for r in runs:
        t.eq([r[k] for k in ("width", "heads", "tokens", "batch", "seed", "dtype",
                             "spectrum")], [16, 2, 8, 1, 1, "f32", None])
        t.eq(len(r["sublayers"]), 2 * r["depth"] + 1)
        top = r["sublayers"][-1]
        t.eq((top["lane"], top["total"], top["branch"]), (1, 1, 0))
        t.eq([s["name"] for s in r["sublayers"]],
             ["stem"] + ["attn", "ffn"] * r["depth"])
        t.eq([s["layer"] for s in r["sublayers"]],
             [0] + [layer for layer in range(1, r["depth"] + 1) for _ in "ab"])
        t.ok(all(w["grad_norm"] >= 0 and w["name"] for w in r["weights"]))
        for v in r["verdicts"]:
            t.ok(v["level"] in ("OK", "NOTE", "WARN", "FAIL"), v)
    zero = runs[4]["sublayers"]  # ReZero starts at 0: lane and total are equal
    t.ok(all(s["branch"] == 0 and s["total"] == 1 for s in zero), zero)


@test
def flow_of_a_text_is_called_by_one_line(t):
    """In every table and heading, whole, however narrow the terminal."""
    text = "stem: x = norm(x); block: x = x + F(norm(x)); final: x = norm(x)"
    for columns in ("40", "80", "200"):
        r = t.run("flow", text, "--depth", "1", "--table", *SMALL, rc=0,
                  env={"COLUMNS": columns})
        words = " ".join(r.out.split())
        t.ok(words.count(text + ", 1 block ") >= 2, r.out)
        t.ok("\ufffd" not in r.out and "\n, " not in r.out, r.out)
        t.ok(max(len(line) for line in r.out.splitlines()) <= int(columns))
    t.has(" ".join(r.out.split()), text + " 1 1 ")  # its row: depth, lane


@test
def stacks_of_a_text_differ_where_it_is_cut(t):
    r = t.run("flow", "x = x + F(norm(x)); final: x = norm(x)", "--depth", "1",
              "--stack", "encoder-decoder", *SMALL, rc=0, env={"COLUMNS": "40"})
    for role in ("encoder", "decoder"):
        t.has(r.out, "\n%s of block: \u2026 " % role, "\n%s of block: x" % role)


@test
def flow_split_adds_up(t):
    """|total| is the length of lane + branch at their angle."""
    run, = flow(t, "post-ln", "--depth", "3", "--dtype", "f64", *SMALL)
    for r in run["sublayers"]:
        a, b = r["lane"], r["branch"]
        whole = (a * a + b * b + 2 * a * b * r["cos"]) ** 0.5
        t.near(whole, r["total"], 1e-9, r["k"])
    for r, above in zip(run["sublayers"][1:], run["sublayers"][2:]):
        t.near(r["toll_product"], above["toll"] * above["toll_product"], 1e-12)


@test
def flow_spectrum(t):
    run, = flow(t, "pre-ln", "--depth", "2", "--spectrum", *SMALL)
    s = run["spectrum"]
    t.eq(len(s["values"]), 128)
    t.eq(s["values"], sorted(s["values"], reverse=True))
    t.eq(s["max"], s["values"][0])
    t.near((sum(v * v for v in s["values"]) / 128) ** 0.5, s["rms"], 1e-9)
    r = t.run("flow", "pre-ln", "--spectrum", rc=2)
    t.has(r.err, "got batch*tokens*width = 2048, wanted at most 512")


@test
def flow_zero_branches_are_the_identity(t):
    run, = flow(t, "rezero", "--depth", "4", "--spectrum", *SMALL)
    t.near(run["spectrum"]["values"], [1] * 128, 1e-6)


@test
def flow_check(t):
    t.run("flow", "pre-ln", "--depth", "2", "--check", *SMALL, rc=0)
    r = t.run("flow", "no-skip", "--depth", "12", "--check", *SMALL, rc=1)
    t.has(r.out, "NOSKIP", "FAIL")
    run, = flow(t, "no-skip", "--depth", "12", "--check", *SMALL, rc=1)
    t.eq(verdicts(run)["NOSKIP"]["level"], "FAIL")
    t.run("flow", "no-skip", "--depth", "12", *SMALL, rc=0)


@test
def flow_threshold(t):
    line = ("post-ln", "--depth", "4", *SMALL)
    v = verdicts(flow(t, *line, "--threshold", "TOLL=1e-9")[0])["TOLL"]
    t.eq((v["level"], v["threshold"]), ("OK", 1e-9))
    v = verdicts(flow(t, *line, "--threshold", "TOLL=0.999")[0])["TOLL"]
    t.eq(v["threshold"], 0.999)
    t.ok(v["level"] != "OK" and v["value"] < 0.999, v)
    r = t.run("flow", *line, "--threshold", "VANISHH=1", rc=2)
    t.has(r.err, "VANISHH", "did you mean VANISH")


GROWS = "x = 20*x + F(norm(x)); final: x = norm(x)"
TAILS = "y = x*x*x; x = y + F(norm(y)); final: x = norm(x)"


@test
def flow_verdicts_of_the_stream(t):
    """One input that fires each, one that does not; a limit moves it."""
    quiet = verdicts(flow(t, "pre-ln", "--depth", "2", *SMALL)[0])
    for code, words, level in (
            ("FP16MAX", [GROWS, "--depth", "2"], "FAIL"),
            ("FP16MAX", [GROWS, "--depth", "1", "--threshold", "FP16MAX=100"],
             "WARN"),
            ("MASSIVE", [TAILS, "--depth", "1"], "NOTE"),
            ("EPS", ["pre-ln", "--eps", "1"], "NOTE")):
        t.eq(quiet[code]["level"], "OK")
        loud = verdicts(flow(t, *words, *SMALL)[0])[code]
        t.eq(loud["level"], level, code)
        t.ok(loud["value"] > loud["threshold"], loud)
    loud = verdicts(flow(t, TAILS, "--depth", "1", *SMALL)[0])["MASSIVE"]
    t.has(loud["where"], "token", "channel")
    loud = verdicts(flow(t, "pre-ln", "--eps", "1", *SMALL)[0])["EPS"]
    t.has(loud["where"], "layers.0.attn.norm, block 1, token ")
    t.eq(quiet["EPS"]["threshold"], 0.1)


@test
def flow_gradient_beyond_fp16(t):
    """A gradient counts as the stream does: here only it is large."""
    words = ["x = 20*x + 1e-9*F(norm(x))", "--depth", "2", "--cotangent", "random",
             "--init", "embed.*: normal(1e-6)", *SMALL]
    run = flow(t, *words)[0]
    v, low = verdicts(run)["FP16MAX"], run["sublayers"][0]
    t.eq((v["level"], v["value"]), ("FAIL", low["top_g"]))
    t.ok(all(r["top_x"][0] < 1 < r["top_g"] for r in run["sublayers"]))
    t.eq(v["where"], "k 0, the stem, gradient of token %d, channel %d"
         % (low["top_g_token"], low["top_g_channel"]))
    for above, below in zip(run["sublayers"][1:], run["sublayers"]):
        t.near(below["top_g"] / above["top_g"], 20, 1e-4)
        t.eq([below[k] for k in ("top_g_token", "top_g_channel")],
             [above[k] for k in ("top_g_token", "top_g_channel")])


@test
def flow_names_the_token_of_eps(t):
    """All tokens are alike but one: its norm has the most eps, or the others'."""
    found = set()
    for text in (b"aaaabaaaaaaaa", b"bbbbabbbbbbbb"):
        t.write("one", text)
        run = flow(t, "x = x + F(norm(x))", "--depth", "1", "--eps", "1",
                   "--text", "one", "--no-positions", *SMALL)[0]
        n = run["norms"][0]
        t.eq(n["name"], "layers.0.attn.norm")
        t.near(n["eps_share"], 1 / n["s_min"] ** 2, 1e-6)
        t.ok(verdicts(run)["EPS"]["where"].endswith(", token %d" % n["eps_token"]), n)
        found.add(n["eps_token"])
    t.eq(found, {1, 5})


@test
def flow_zero_sum(t):
    """The sum of a LayerNorm's outputs has no gradient below it."""
    loud = verdicts(flow(t, "block: x = norm(x + F(x))\n"
                            "final: w = linear(1, d); x = w(mean(x))",
                         "--depth", "2", *SMALL)[0])["ZEROSUM"]
    t.eq(loud["level"], "FAIL")
    t.ok(loud["value"] < 1e-6, loud)
    t.has(loud["where"], "k 4, ffn of block 2")
    for words in (["post-ln", "--depth", "12"], ["deepnorm"], ["sandwich"],
                  ["x = norm(x + 30*F(x))", "--depth", "3"]):
        v = verdicts(flow(t, *words, *SMALL)[0]).get("ZEROSUM")
        t.ok(v is None or v["level"] == "OK", words, v)


@test
def flow_norms_and_tokens(t):
    """Every norm is listed, on the lane or not; s is what E1 says it is."""
    post, pre = flow(t, "post-ln", "pre-ln", "--depth", "3", *SMALL)
    t.eq([(n["k"], n["layer"], n["lane"]) for n in post["norms"]],
         [(k, (k + 1) // 2, True) for k in range(1, 7)])
    t.eq([n["lane"] for n in pre["norms"]], [False] * 6 + [True])
    t.eq(pre["norms"][-1]["name"], "final.norm")
    t.eq(pre["norms"][-1]["toll"], pre["final"]["toll"])
    for run in (post, pre):
        for n in run["norms"]:
            t.ok(n["s_min"] <= n["s_median"] <= n["s_max"], n)
            t.near(n["eps_share"], 1e-5 / n["s_min"] ** 2, 1e-6)
        for r in run["sublayers"]:
            t.ok(r["total_min"] <= r["total"] <= r["total_max"], r)
            t.ok(r["median_x"] < r["top_x"][2] <= r["top_x"][0], r)
            t.ok(0 <= r["angle"] < 0.5 and (r["angle"] > 0) == (r["k"] > 0), r)
    for r in post["sublayers"][1:]:  # below its norm, s divides the toll out
        n = post["norms"][r["k"] - 1]
        t.eq((n["toll"], n["toll_max"]), (r["toll"], r["toll_max"]))
        t.near(r["norm_x"], 16 ** 0.5, 1e-3)
    t.eq(sum(w["elements"] for w in pre["weights"]) > 0, True)


@test
def flow_what_if(t):
    """A norm moved onto the branch is pre-LN with the same weights, to the bit."""
    post, pre = flow(t, "post-ln", "pre-ln", "--depth", "3", "--what-if", *SMALL)
    changes = {x["change"]: x for x in post["what_if"]}
    moved = next(x for c, x in changes.items() if "onto the branch" in c)
    t.eq((moved["lane"], moved["total"], moved["loss"]),
         (1, pre["sublayers"][0]["total"], pre["loss"]))
    same = post["what_if"][0]
    t.eq((same["change"], same["lane"], same["total"], same["loss"]),
         ("as it is", post["sublayers"][0]["lane"], post["sublayers"][0]["total"],
          post["loss"]))
    t.eq(changes["no skip anywhere"]["lane"], 0)
    t.eq(changes["no skip in block 2"]["lane"], 0)
    half, = flow(t, "x = norm(x + 0.5*F(x))", "--depth", "3", *SMALL)
    t.eq(changes["every branch times 0.5"]["total"], half["sublayers"][0]["total"])
    plain, = flow(t, "pre-ln", "--depth", "3", *SMALL)
    t.ok("what_if" not in plain)
    none, = flow(t, "x = norm(x)", "--depth", "1", "--what-if", *SMALL)
    t.eq(len(none["what_if"]), 1)


@test
def flow_text(t):
    t.write("book.txt", story(200))
    a, = flow(t, "pre-ln", "--depth", "1", "--text", "book.txt", *SMALL)
    b, = flow(t, "pre-ln", "--depth", "1", *SMALL)
    t.ok(a["loss"] != b["loss"])
    c = t.run("flow", "pre-ln", "--depth", "1", "--text", "-", *SMALL, "--json",
              stdin=story(200).encode(), rc=0).json()["runs"][0]
    t.eq(c, a)
    run, = flow(t, "pre-ln", "--depth", "1", "--text", "book.txt", "--batch", "3",
                *SMALL)
    t.eq(run["batch"], 3)
    t.write("short", "12345678")
    r = t.run("flow", "pre-ln", "--text", "short", *SMALL, rc=3)
    t.eq(r.err, "tollbooth: short: need at least 9 tokens, have 8\n")
    t.has(t.run("flow", "pre-ln", "--text", "none", rc=3).err, "none: cannot open")


@test
def flow_cotangents(t):
    for kind in ("loss", "random", "coherent"):
        run, = flow(t, "post-ln", "--depth", "2", "--cotangent", kind, *SMALL)
        t.ok(all(is_finite(r["total"]) for r in run["sublayers"]))
    a, = flow(t, "pre-ln", "--depth", "2", "--mask", "none", *SMALL)
    b, = flow(t, "pre-ln", "--depth", "2", "--mask", "causal", *SMALL)
    t.ok(a["loss"] != b["loss"])
    a, = flow(t, "pre-ln", "--depth", "2", "--attention", "uniform", *SMALL)
    t.ok(a["loss"] != b["loss"])


@test
def flow_repeats(t):
    line = ("flow", "post-ln", "--depth", "2", "--json")
    t.eq(t.run(*line).raw, t.run(*line).raw)
    t.ok(t.run(*line, "--seed", "2").raw != t.run(*line).raw)
    t.eq(t.run(*line, "--seed", "1").raw, t.run(*line).raw)


@test
def flow_C123_threads(t):
    line = ("flow", "post-ln", "pre-ln", "--depth", "3", "--batch", "2", "--json",
            "--exact")
    one = t.run(*line, env={"TB_THREADS": "1"}, rc=0).raw
    for n in ("2", "3"):
        t.eq(t.run(*line, env={"TB_THREADS": n}, rc=0).raw, one)


@test
def flow_instruction_sets(t):
    """Our own kernels give the same bits on every one."""
    line = ("flow", "post-ln", "--depth", "2", "--json", "--exact", *SMALL)
    t.eq(t.run(*line, env={"TB_ISA": "ref"}, rc=0).raw, t.run(*line, rc=0).raw)


@test
def flow_figures(t):
    r = t.run("flow", "post-ln", "pre-ln", "--depth", "2", "--table", *SMALL, rc=0)
    t.has(r.out, "lane", "total", "post-ln, 2 blocks", "std x", "final toll",
          "VANISH")
    plain = t.run("flow", "post-ln", "--depth", "2", "--table", "--ascii", *SMALL)
    t.ok(plain.out.isascii(), plain)
    r = t.run("flow", "post-ln", "pre-ln", "--depth", "2", "--svg", "f.svg",
              *SMALL, rc=0)
    with open(t.path("f.svg"), encoding="utf-8") as f:
        t.has(ElementTree.fromstring(f.read()).tag, "svg")
    r = t.run("flow", "pre-ln", "--depth", "1", "--svg", "none/f.svg", *SMALL, rc=5)
    t.has(r.err, "none/f.svg")


@test
def flow_C133_thousand_blocks(t):
    r = t.run("flow", "pre-ln", "--depth", "1000", "--width", "8", "--heads", "2",
              "--tokens", "4", "--vocab", "8", rc=0)
    t.ok(len(r.out.splitlines()) < 200, "folded")
    t.ok(r.peak_kb < 400000, r.peak_kb)


@test
def flow_nothing_to_send(t):
    """A vocabulary of one: every gradient is 0; said, not drawn."""
    r = t.run("flow", "pre-ln", "--depth", "1", "--vocab", "1", *SMALL)
    t.ok(r.rc in (0, 4), r)
    t.has(r.out, "no positive values")


@test
def flow_folder(t):
    t.write("book.txt", story(400))
    t.run("train", "post-ln", "--text", "book.txt", "--out", "run", "--depth", "2",
          "--width", "16", "--heads", "2", "--context", "8", "--batch", "2",
          "--steps", "3", rc=0)
    run, = flow(t, "run")
    t.eq([run[k] for k in ("block", "depth", "width", "tokens")],
         ["post-ln", 2, 16, 8])
    both = flow(t, "run", "pre-ln", "--depth", "3", *SMALL)
    t.eq([r["depth"] for r in both], [2, 3])
    flow(t, "run", "--text", "book.txt")
    for option in (["--depth", "3"], ["--width", "32"], ["--tokens", "4"],
                   ["--no-bias"], ["--eps", "1e-6"]):
        r = t.run("flow", "run", *option, rc=2)
        t.has(r.err, option[0], "run is a trained folder")
    t.write("strange", "\u00e9" * 40)
    t.has(t.run("flow", "run", "--text", "strange", rc=3).err, "U+00E9")


@test
def flow_impossible(t):
    for words, message in (
            (["pre-ln", "--width", "65"], "wanted a multiple of 4 heads"),
            (["pre-ln", "--depth", "0"], "--depth: got 0"),
            (["pre-ln", "--dropout", "1"], "dropout"),
            (["pre-ln", "--norm", "x"], "wanted one of layernorm")):
        t.has(t.run("flow", *words, rc=2).err, message)
    r = t.run("flow", "pre-ln", "--batch", "1000000000000", "--depth", "1")
    t.ok(r.rc in (2, 5) and r.peak_kb < 500000, r)
    t.has(t.run("flow", "pre-nl", rc=3).err, "did you mean 'pre-ln'?")


@test
def flow_eps_zero(t):
    """Constant rows: the error names the place; others are fine."""
    t.run("flow", "post-ln", "--eps", "0", "--depth", "1", *SMALL, rc=0)
    r = t.run("flow", "pre-ln", "--eps", "0", "--depth", "1", "--init",
              "embed.*: zeros", *SMALL, rc=3)
    t.has(r.err, "zero variance")


def builtin(name):
    def run(t):
        words = (name, "--depth", "2", *SMALL)
        one, = flow(t, *words)
        t.ok(all(is_finite(r[k]) for r in one["sublayers"]
                 for k in ("lane", "total", "branch")), one)
    return run


ROOT_BLOCKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                           "blocks")
for _file in sorted(os.listdir(ROOT_BLOCKS)):
    if _file.endswith(".block"):
        add("flow " + _file[:-6], builtin(_file[:-6]))


alone(__name__)
