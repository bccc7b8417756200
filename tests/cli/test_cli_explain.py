# SPDX-License-Identifier: MIT
"""tollbooth explain and blocks."""

import os
import re
import resource
import sys
import time
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import ROOT, SANITIZED, Skip, add, alone, test  # noqa: E402

PRE = "x = x + F(norm(x)); final: x = norm(x)"
POST = "x = norm(x + F(x))"


def blocks(t):
    return t.run("blocks", "--json", rc=0).json()["blocks"]


def explain(t, block, *more):
    return t.run("explain", block, *more, "--json", rc=0).json()


@test
def blocks_are_the_files(t):
    found = blocks(t)
    names = [b["name"] for b in found]
    files = []
    for folder, _, here in os.walk(os.path.join(ROOT, "blocks")):
        files += [f[:-6] for f in here if f.endswith(".block")]
    t.eq(sorted(names), sorted(files))
    for b in found:
        t.eq(sorted(b), ["lane", "name", "source", "text"])
        t.ok(b["source"], b["name"], "has no source")
    table = t.run("blocks", rc=0).out
    t.has(table, *names)


@test
def blocks_table(t):
    """Name, lane, what and source, aligned at any width."""
    found = blocks(t)
    for columns in (40, 80, 120, 200):
        lines = t.run("blocks", rc=0, env={"COLUMNS": str(columns)}).out.splitlines()
        t.ok(max(len(line) for line in lines) <= columns, columns)
        heads = [h for h in ("block", "lane", "what it is", "source")
                 if h in lines[0]]
        t.eq(heads[:2], ["block", "lane"])
        t.eq(len(heads), {40: 2, 80: 3}.get(columns, 4), columns)
        starts = [lines[0].index(h) for h in heads]
        names = {}
        hidden = [line for line in lines if line.startswith("not shown: ")]
        t.eq(hidden, [f"not shown: {h}" for h in ("what it is", "source")
                      if h not in heads])
        for line in lines[2:len(lines) - len(hidden)]:
            for start in starts[1:]:
                t.ok(line[start - 1:start] in ("", " "), columns, line)
            if line and line[0] != " ":
                names[line.split()[0]] = line
        t.ok(all(b["name"] in names for b in found), columns)
        for b in found:
            arxiv = re.search(r"arXiv:[\d.]+\d", b["source"])
            if arxiv and "source" in heads:
                t.has(names[b["name"]], arxiv.group(0))
    plain = t.run("blocks", "--ascii", rc=0).raw
    t.ok(all(c < 128 for c in plain), "not ASCII")


@test
def two_jacobians(t):
    pre, post = explain(t, PRE), explain(t, POST)
    t.eq(pre["jacobian"]["text"], "I + J_F(LN(x))\u00b7J_LN(x)")
    t.eq(post["jacobian"]["text"], "J_LN(x + F(x))\u00b7(I + J_F(x))")
    for d in (pre, post):
        t.has(d["jacobian"]["latex"], "J_{", "\\mathrm{LN}")
        ElementTree.fromstring(d["jacobian"]["mathml"])
    for block, d in ((PRE, pre), (POST, post)):
        t.has(t.run("explain", block, rc=0).out, d["jacobian"]["text"])
        latex = t.run("explain", block, "--format", "latex", rc=0).out
        t.has(latex, d["jacobian"]["latex"])
    t.eq(explain(t, "pre-ln")["jacobian"]["text"], pre["jacobian"]["text"])
    t.eq(explain(t, "post-ln")["jacobian"]["text"], post["jacobian"]["text"])


@test
def two_streams_are_a_matrix(t):
    j = explain(t, "residual")["jacobian"]
    t.eq(j["streams"], ["x", "y"])
    t.eq(j["factors"], [{"sublayer": "F", "blocks": [
        ["J_LN(x + F(x))\u00b7(I + J_F(x))", "0"], ["J_F(x)", "I"]]}])
    t.eq(j["text"], "[ J_LN(x + F(x))\u00b7(I + J_F(x)), 0 ; J_F(x), I ]")
    t.has(j["latex"], "\\begin{bmatrix}", " & 0 \\\\ ", "\\end{bmatrix}")
    math = ElementTree.fromstring(j["mathml"])
    name = "{http://www.w3.org/1998/Math/MathML}"
    t.eq([len(list(row)) for row in math.iter(name + "mtr")], [2, 2])
    drawn = t.run("explain", "residual", rc=0).out
    t.has(drawn, "\u23a1 J_LN(x + F(x))\u00b7(I + J_F(x))   0 \u23a4",
          "\u23a3 J_F(x)                        I \u23a6",
          "through 6 blocks: x 12 norms, y clean")
    t.has(t.run("explain", "residual", "--ascii", rc=0).out,
          "[ J_F(x)                        I ]")
    revnet = explain(t, "revnet")["jacobian"]
    t.eq([f["sublayer"] for f in revnet["factors"]], ["ffn", "attn"])
    t.eq(revnet["where"], [{"name": "x1", "text": "x + attn(LN(x2))"}])


@test
def each_kind_of_block(t):
    keel = explain(t, "keel")["jacobian"]["layers"]
    t.eq([(k["from"], k["to"]) for k in keel], [(1, 1), (2, 6)])
    t.eq(keel[1]["text"], "J_RMS(alpha\u00b7x + F(RMS(x)))\u00b7"
                          "(alpha\u00b7I + J_F(RMS(x))\u00b7J_RMS(x))")
    t.has(t.run("explain", "keel", rc=0).out, "block 1:", "blocks 2-6:",
          "through 6 blocks: 11 norms")
    both = explain(t, "post-ln", "--stack", "encoder-decoder")
    t.eq([(k["stack"], k["tolls"]) for k in both["lane"]["layers"]],
         [("encoder", 2), ("decoder", 3)])
    t.eq(both["lane"]["through"]["tolls"], [[18]])


@test
def lists_go_past_the_stream(t):
    j = explain(t, "denseformer", "--depth", "2")["jacobian"]
    t.eq([(e["name"], e["text"]) for e in j["elements"]],
         [("past[0]", "a[1]\u00b7I")])
    out = t.run("explain", "dlcl", "--depth", "2", rc=0).out
    t.has(out, "past[0]   (I + J_ffn(", "a[1]")
    t.ok("elements" not in explain(t, "pre-ln")["jacobian"])


@test
def expanded(t):
    out = t.run("explain", "pre-ln", "--expand", rc=0).out
    t.has(out, "W_down\u00b7diag(gelu'(up(LN(x1))))\u00b7W_up", "J_mha,q")
    d = explain(t, "pre-ln")["jacobian"]
    for form in ("latex", "mathml"):
        t.eq(t.run("explain", "pre-ln", "--expand", "--format", form, rc=0).out,
             d["expanded_" + form] + "\n")


BOTH = ("--stack", "encoder-decoder")


@test
def jacobians_of_two_stacks(t):
    d = explain(t, PRE, *BOTH, "--depth", "2", "--decoder-depth", "3")
    one, two = d["jacobian"]["layers"]
    t.eq([(k["stack"], k["from"], k["to"]) for k in (one, two)],
         [("encoder", 1, 2), ("decoder", 1, 3)])
    t.eq(one["text"], two["text"])
    t.ok("memory" not in one)
    t.has(two["memory"], "(I + J_F(LN(x2))\u00b7J_LN(x2))\u00b7J_F,memory(LN(x1))")
    parallel = "encoder: x = x + F(x)\ndecoder: n = norm(x); " \
               "x = x + attn(n) + cross(n) + ffn(n)"
    t.eq(explain(t, parallel, *BOTH)["jacobian"]["layers"][1]["memory"],
         "J_cross,memory(LN(x))")
    out = t.run("explain", PRE, *BOTH, "--decoder-depth", "3", rc=0).out
    t.has(out, "encoder blocks 1-6\n", "decoder blocks 1-3\n", "encoder blocks 1-6:",
          "decoder blocks 1-3:", "by memory", "6 + 3 blocks")


@test
def cross_needs_an_encoder(t):
    r = t.run("explain", "x = x + cross(x)", rc=3)
    t.has(r.err, "1:9: cross: needs an encoder: --stack encoder-decoder")
    r = t.run("explain", "x = x + attn(x) + ffn(x)", *BOTH, rc=3)
    t.has(r.err, "1:1: no decoder block reads the encoder")
    t.run("explain", "pre-ln", "--decoder-depth", "3", rc=2)


# N, M: encoder's alpha and beta, decoder's (placements 4.2, C045)
DEEPNORM = {
    (6, 6): (1.4179381, 0.4969892, 2.0597671, 0.3432945),
    (18, 6): (1.8661115, 0.3776302, 2.0597671, 0.3432945),
    (6, 18): (1.5187188, 0.4640095, 2.7108060, 0.2608474),
    (24, 24): (2.186760, 0.322258, 2.912951, 0.242746),
}
# N = M: encoder's and decoder's gain (4.3, 4.5)
GAINS = {
    "sub-ln": {6: (1.547288, 1.700109), 12: (1.948385, 1.893018),
               24: (2.349172, 2.068010)},
    "t-fixup": {6: (0.428092, 0.368894), 12: (0.359981, 0.310202),
                24: (0.302707, 0.260847)},
}


def gain(d, name):
    """The number in a rule: "xavier((12*M)^-0.25) = 0.343295"."""
    rule = {p["name"]: p["init"] for p in d["parameters"]}[name + ".weight"]
    return float(rule.split(" = ")[1]) if " = " in rule else 1.0


def alphas_of(code):
    return [float(a) for a in re.findall(r"\n        alpha = ([\d.]+)  #", code)]


@test
def constants_of_each_role(t):
    for (n, m), want in DEEPNORM.items():
        sizes = (*BOTH, "--depth", str(n), "--decoder-depth", str(m))
        d = explain(t, "deepnorm", *sizes)
        for role, beta in (("encoder", want[1]), ("decoder", want[3])):
            for w in ("attn.v", "attn.o", "ffn.up", "ffn.down"):
                t.near(gain(d, f"{role}.layers.1.{w}"), beta, 1e-6, w)
            for w in ("attn.q", "attn.k"):
                t.eq(gain(d, f"{role}.layers.1.{w}"), 1.0)
        t.near(gain(d, "decoder.layers.0.cross.o"), want[3], 1e-6)
        code = t.run("export", "--to", "pytorch", "deepnorm", *sizes, rc=0).out
        alphas = alphas_of(code)
        t.eq(len(alphas), 2)
        for got, alpha in zip(alphas, (want[0], want[2])):
            t.near(got, alpha, 1e-6)
    one = explain(t, "deepnorm", "--depth", "12")
    t.near(gain(one, "layers.0.ffn.up"), 0.3194716, 1e-6)
    code = t.run("export", "--to", "pytorch", "deepnorm", "--depth", "12", rc=0).out
    t.near(alphas_of(code)[0], 2.2133638, 1e-6)
    for block, depths in GAINS.items():
        for n, want in depths.items():
            d = explain(t, block, *BOTH, "--depth", str(n))
            for role, value in zip(("encoder", "decoder"), want):
                # a rule shows six digits
                t.near(gain(d, f"{role}.layers.0.ffn.down"), value, 6e-6, block)


def lane(t, block, *more):
    d = explain(t, block, *more)["lane"]
    return d["kind"], d["coefficient"], d["tolls_per_block"], d["final_toll"]


@test
def lanes(t):
    t.eq(lane(t, "pre-ln"), ("clean", "1", 0, True))
    t.eq(lane(t, "pre-ln-no-final"), ("clean", "1", 0, False))
    t.eq(lane(t, "post-ln")[0:3:2], ("toll", 2))
    t.eq(lane(t, "no-skip")[0], "none")
    t.eq(lane(t, "x = 2*x + F(norm(x))")[:2], ("scaled", "4"))
    t.eq(lane(t, "x = (x + F(norm(x)))/2")[:2], ("scaled", "0.25"))
    t.eq(lane(t, "x = x - F(norm(x))")[0], "clean")
    t.eq(lane(t, "block[l <= 2]: x = norm(x + F(x))\n"
                 "block: x = x + F(norm(x))\n")[0], "toll")
    d = explain(t, "block[l <= 2]: x = norm(x + F(x))\n"
                   "block: x = x + F(norm(x))\n", "--depth", "6")["lane"]
    t.eq([(p["from"], p["to"], p["kind"], p["tolls"]) for p in d["layers"]],
         [(1, 2, "toll", 2), (3, 6, "clean", 0)])


@test
def explain_C026_same_graph(t):
    a = explain(t, "r = x; x = norm(x); x = attn(x); x = r + x")
    b = explain(t, "x = x + attn(norm(x))")
    t.eq(a["jacobian"], b["jacobian"])
    t.eq(a["lane"], b["lane"])
    t.eq(a["parameter_count"], b["parameter_count"])


@test
def explain_C027_C029_findings(t):
    codes = [f["level"] for f in explain(t, "x = norm(x); x = x + attn(x)")["lint"]]
    t.ok(codes, "a normalised skip is found")
    lint = explain(t, "x = attn(norm(x) + x)")["lint"]
    t.ok([f for f in lint if "skip" in f["code"]], lint)
    for f in lint:
        t.eq(sorted(f), ["code", "column", "fix", "level", "line", "message",
                         "source"])
        t.ok(f["level"] in ("note", "warn", "fail") and f["line"] >= 1, f)


@test
def no_published_block_fails(t):
    for b in blocks(t):
        for f in explain(t, b["name"])["lint"]:
            t.ok(f["level"] != "fail", b["name"], f)


def all_formats(name):
    def run(t):
        doc = explain(t, name)
        t.eq(doc["block"]["name"], name)
        t.eq(doc, t.run("explain", name, "--format", "json", rc=0).json())
        again = explain(t, doc["block"]["text"])  # canonical text, itself
        t.eq(again["block"]["text"], doc["block"]["text"])
        t.eq(again["jacobian"], doc["jacobian"])
        t.ok(t.run("explain", name, "--format", "latex", rc=0).out.strip())
        math = t.run("explain", name, "--format", "mathml", rc=0).out
        ElementTree.fromstring(math)
        svg = t.run("explain", name, "--format", "svg", rc=0).out
        root = ElementTree.fromstring(svg)
        t.has(root.tag, "svg")
        t.ok(float(root.get("width")) < 2500, name, "is", root.get("width"))
        for bad in ("nan", "inf"):
            for e in root.iter():
                for key, value in e.attrib.items():
                    if key in ("x", "y", "width", "height", "d", "points", "cx",
                               "cy", "r", "x1", "x2", "y1", "y2"):
                        t.ok(bad not in value.lower(), key, value)
        number = explain(t, name, "--numeric")["numeric"]
        t.ok(number["error"] < 1e-8, number)
        text = t.run("explain", name, rc=0).out
        t.has(text, "Jacobian", "Lane")
        if len(doc["jacobian"]["streams"]) == 1:
            t.has(text, doc["jacobian"]["text"][:20])
        else:
            t.has(text, "the streams " + ", ".join(doc["jacobian"]["streams"]))
        plain = t.run("explain", name, "--ascii", rc=0)
        high = [c for c in plain.out if ord(c) > 126 or (ord(c) < 32 and c != "\n")]
        t.eq(high, [], "not ASCII")
    return run


for _file in sorted(os.listdir(os.path.join(ROOT, "blocks"))):
    if _file.endswith(".block"):
        add("explain " + _file[:-6], all_formats(_file[:-6]))


@test
def explain_fits(t):
    """No line is longer than the terminal, and none takes a second."""
    names = [b["name"] for b in blocks(t)]
    for columns in (40, 80, 120):
        for name in names:
            start = time.monotonic()
            r = t.run("explain", name, env={"COLUMNS": str(columns)}, rc=0)
            t.ok(time.monotonic() - start < 5, name, "is slow")
            for line in r.out.splitlines():
                t.ok(len(line) <= columns, name, columns, line)
            t.has(r.out, "Jacobian", "F = 0", "Lane", "Large F", "N large")
    start = time.monotonic()
    for name in names:
        t.run("explain", name, "--json", rc=0)
    t.ok(time.monotonic() - start < len(names), "a second each on average")


def corners(t, block):
    return explain(t, block)["corners"]


@test
def explain_C019_C030_C035_C043_corners(t):
    pre, post = corners(t, "pre-ln"), corners(t, "post-ln")
    t.near(pre["flat_row_gain"], 1e5 ** 0.5, 1e-9)
    t.near(pre["flat_rows"][0]["measured"], 1e5 ** 0.5, 1e-6)
    t.eq(corners(t, "rezero")["flat_row_gain"], None)
    t.eq(pre["deep"]["blocks"], [6, 12, 24])
    for i, k in enumerate((12, 24, 48)):
        t.near(pre["deep"]["std"][i][0], (1 + k) ** 0.5, 1e-11)
        t.eq(pre["deep"]["lane"][i], [1])
        t.near(post["deep"]["lane"][i][0], 2 ** (-k / 2), 1e-3 * 2 ** (-k / 2))
        t.near(post["deep"]["zero_branch_lane"][i], 0.25, 1e-4)
    t.ok(not pre["small_branch_restored"] and
         corners(t, "output-norm")["small_branch_restored"])
    for c, x, power in ((pre, "F(LN(x))", 1), (post, "LN(F(x))", 0)):
        s = c["large_branch"][0]["streams"][0]
        t.eq((s["value"], s["value_power"], s["jacobian_power"]), (x, power, power))
        t.near(s["value_measured"], power, 1e-2)
    t.eq(post["large_branch"][0]["streams"][0]["lane_power"], -1)
    out = " ".join(t.run("explain", "post-ln", rc=0).out.split())
    t.has(out, "lane like 1/t", "a factor 0.707 a sublayer", "0.25 at any depth")


@test
def explain_C042_expect(t):
    text = "x = x + drop(F(norm(x))); final: x = norm(x)"
    r = t.run("explain", text, "--expect", "post-LN", rc=1)
    t.has(r.out, "Jacobian")
    t.has(r.err, "got the placement of pre-ln, wanted post-LN",
          "lane: got clean, wanted toll with 2 norms a block",
          "after the last block: got a norm, wanted none")
    t.eq(t.run("explain", text, "--expect", "pre-LN", rc=0).err, "")
    for block, label in (("llama", "pre-ln"), ("gemma-2", "peri-ln"),
                         ("x = norm(F(x) + x)", "post-ln")):
        t.run("explain", block, "--expect", label, rc=0)
    for block, label, how in (
            ("deepnorm", "post-ln", "times alpha^2"),
            ("keel", "post-ln", "1 norm a block"),
            ("residual", "post-ln", "streams: got 2, wanted 1"),
            ("rezero", "plain", "block 1 is built otherwise")):
        t.has(t.run("explain", block, "--expect", label, rc=1).err, how)
    t.run("explain", "pre-ln", "--expect", "nothing", rc=3)
    wide = ("--width", "512", "--heads", "8")
    for block, count in (("post-ln", 12288), ("pre-ln", 13312)):
        t.eq(explain(t, block, *wide)["norm_parameter_count"], count)
        t.has(t.run("explain", block, *wide, rc=0).out, "%d of norms" % count)
    both = explain(t, "post-ln", "--stack", "encoder-decoder", *wide)
    t.eq(both["norm_parameters"], {"encoder": 12288, "decoder": 18432})


@test
def explain_widths(t):
    """The drawing and the tables keep to the terminal."""
    for columns in ("40", "200"):
        for name in ("pre-ln", "post-ln", "parallel", "rezero"):
            out = t.run("explain", name, env={"COLUMNS": columns}, rc=0).out
            rows = [line for line in out.splitlines()
                    if set(line) & set("\u2500\u2502\u253c\u2295\u25a3")]
            t.ok(rows)
            for line in rows:
                t.ok(len(line) <= int(columns), columns, "columns:", line)
    narrow = t.run("explain", "pre-ln", env={"COLUMNS": "40"}, rc=0).out
    wide = t.run("explain", "pre-ln", env={"COLUMNS": "200"}, rc=0).out
    t.has(narrow, "not shown:")
    t.has(wide, "starts as")


@test
def explain_parameters(t):
    d = explain(t, "pre-ln", "--depth", "3", "--width", "8", "--heads", "2")
    shapes = {p["name"]: p["shape"] for p in d["parameters"]}
    t.eq(shapes["layers.0.ffn.up.weight"], [32, 8])
    t.eq(shapes["layers.2.attn.q.weight"], [8, 8])
    t.eq(shapes["final.norm.gain"], [8])
    total = 0
    for s in shapes.values():
        n = 1
        for size in s:
            n *= size
        total += n
    t.eq(d["parameter_count"], total)


@test
def explain_C133_thousand_blocks(t):
    for form in ("text", "svg", "json"):
        r = t.run("explain", "pre-ln", "--depth", "1000", "--format", form,
                  timeout=60, rc=0)
        t.ok(r.peak_kb < 200000, "peak memory", r.peak_kb, "kB")
    svg = t.run("explain", "pre-ln", "--depth", "1000", "--format", "svg").out
    t.ok(float(ElementTree.fromstring(svg).get("height")) < 32767)


@test
def explain_files(t):
    path = t.write("my.block", "# mine\nx = norm(x + F(x))\n")
    d = explain(t, path)
    t.eq(d["jacobian"]["text"], explain(t, POST)["jacobian"]["text"])
    d = explain(t, "block:\r\n    x = x + F(norm(x))\r\n")
    t.has(d["jacobian"]["text"], "I + ")


REFUSED = [
    ("unknown", "pre-nl", "did you mean 'pre-ln'?"),
    ("nothing", "", "unknown block ''"),
    ("folder", "/", "/: cannot be read: Is a directory"),
    ("not a block", "/dev/null", "statement"),
    ("unknown function", "x = x + G(norm(x))", "1:9: unknown function G"),
    ("not closed", "x = x + F(norm(x)", "^"),
    ("unassigned", "x = y + F(x)", "1:5"),
    ("reserved", "h = norm(x)", "1:1"),
    ("init matches nothing", "x = F(x)\ninit: foo: normal(1)", "matches no weight"),
]


def refusal(block, message):
    def run(t):
        for more in ([], ["--json"], ["--format", "svg"]):
            r = t.run("explain", block, *more, rc=3)
            t.eq(r.out, "")
            t.has(r.err, "tollbooth: ", message)
    return run


for _name, _block, _message in REFUSED:
    add("explain refuses " + _name, refusal(_block, _message))


@test
def explain_impossible_sizes(t):
    for options, message in (
            (["--width", "65"], "width: got 65, wanted a multiple of 4 heads"),
            (["--kv-heads", "3"], "multiple of 3 kv-heads"),
            (["--dropout", "1"], "dropout: got 1, wanted 0 <= p < 1"),
            (["--norm", "lyernorm"], "got lyernorm")):
        t.has(t.run("explain", "pre-ln", *options, rc=2).err, message)
    for options in (["--depth", "99999999999"], ["--ffn", "9007199254740992"],
                    ["--width", "9007199254740992"]):
        r = t.run("explain", "pre-ln", *options)
        t.ok(r.rc in (0, 2, 5), r)
        t.ok(r.peak_kb < 1000000, r)


@test
def explain_unreadable_file(t):
    path = t.write("a.block", "x = F(x)")
    os.chmod(path, 0)
    if os.access(path, os.R_OK):
        os.chmod(path, 0o600)
        return  # root reads everything
    t.has(t.run("explain", path, rc=3).err, "cannot open: Permission denied")


@test
def explain_numeric(t):
    texts = ["stem: a = x\nblock: a = x + attn(norm(a)); x = norm(a + ffn(x))",
             "block[l <= 2]: x = norm(x + F(x))\nblock: x = x + F(norm(x))",
             "x = x + F(norm(x))\nmodel:\n    heads = 16"]
    names = [b["name"] for b in t.run("blocks", "--json").json()["blocks"]]
    for block in names + texts:
        n = explain(t, block, "--numeric")["numeric"]
        errors = n["against"]
        t.ok(errors["tangent"] < 1e-13, block, errors)
        t.ok(errors["backward"] < 1e-13, block, errors)
        t.ok(errors["difference"] < 1e-8, block, errors)
        t.eq(n["error"], max(errors.values()))
    n = explain(t, "pre-ln", "--numeric", "--width", "12", "--heads", "3")["numeric"]
    t.eq(n["width"], 12)
    t.has(t.run("explain", "pre-ln", "--numeric", rc=0).out, "Numeric")
    t.has(t.run("explain", "pre-ln", "--numeric", "--width", "4096", rc=2).err,
          "at most 128")
    t.run("explain", "pre-ln", "--numeric", "--format", "svg", rc=2)
    # elements of lists that a sublayer reads beside its argument
    r = explain(t, "attn(u) = mha(q(u), sum(ks), v(u))\nstem:\n ks = list()\n"
                "block:\n ks = append(ks, 2*x)\n x = x + attn(x)",
                "--depth", "2", "--numeric")
    t.ok(r["numeric"]["error"] < 1e-8, r["numeric"])
    below = ("encoder: x = x + layernorm(x - x, eps=0) + F(x)\n"
             "decoder: x = x + F(norm(x))")  # every kind, also the encoder's
    t.run("explain", below, "--numeric", rc=0)
    t.run("explain", below, "--numeric", "--stack", "encoder-decoder", rc=3)
    n = explain(t, "denseformer", "--numeric", "--depth", "3")["numeric"]
    t.ok(n["error"] < 1e-8, n)


@test
def explain_is_light(t):
    """15 MiB of addresses: no library of products is opened."""
    if SANITIZED:
        raise Skip("a sanitizer maps terabytes")
    r = t.run("explain", "pre-ln", rc=0, preexec=lambda: resource.setrlimit(
        resource.RLIMIT_AS, (15 << 20, 15 << 20)))
    t.has(r.out, "Jacobian")


alone(__name__)
