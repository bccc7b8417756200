# SPDX-License-Identifier: MIT
"""Reports: one page for flow, compare and report; its size, its parts, its
data, and what a reader who does not see it gets."""

import json
import os
import re
import sys
from html.parser import HTMLParser

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, story, strict, test  # noqa: E402

SMALL = ("--width", "16", "--heads", "2", "--tokens", "8")
VOID = {"meta", "br", "img", "hr", "input", "link"}


class Page(HTMLParser):
    """What the tests ask about a page."""

    def __init__(self, text):
        super().__init__()
        self.data, self.headings, self.ids, self.links = "", [], [], []
        self.figures, self.nodes, self.open, self.problems = [], [], [], []
        self.titles = re.findall(r'<title id="[^"]*">([^<]*)', text)
        self.in_data = self.in_heading = False
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append("not closed: %s" % self.open)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)
        if "id" in a:
            self.ids.append(a["id"])
        if tag == "a":
            self.links.append(a["href"])
        if tag == "svg":
            self.figures.append(a)
            self.nodes.append(0)
        elif "svg" in self.open:
            self.nodes[-1] += 1
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append([int(tag[1]), ""])
            self.in_heading = True
        self.in_data = a.get("type") == "application/json"

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if tag not in VOID:
            if not self.open or self.open[-1] != tag:
                self.problems.append("%s closed inside %s" % (tag, self.open))
            else:
                self.open.pop()
        self.in_data = False
        self.in_heading = self.in_heading and tag not in ("h1", "h2", "h3", "h4")

    def handle_data(self, data):
        if self.in_data:
            self.data += data
        elif self.in_heading:
            self.headings[-1][1] += data


def read(t, name):
    with open(t.path(name), encoding="utf-8") as f:
        return f.read()


def check_page(t, text, most=2 << 20):
    """What every page owes."""
    page = Page(text)
    t.eq(page.problems, [])
    t.ok(len(text.encode()) <= most, len(text.encode()), "bytes")
    t.eq([i for i in set(page.ids) if page.ids.count(i) > 1], [], "ids used twice")
    t.eq([h for h in page.links if h[0] != "#" or h[1:] not in page.ids], [])
    level = 0
    for h, words in page.headings:
        t.ok(h <= level + 1, "a heading is left out before", words)
        level = h
    for a, n in zip(page.figures, page.nodes):
        t.eq(a["role"], "img")
        for one in a["aria-labelledby"].split():
            t.ok(one in page.ids, one)
        t.ok(n <= 5000, n, "nodes in a figure")
    drawn = text.split("<figure>")[1:]
    t.eq(sum('data-role="in-arrow"' not in f or '-stack" data-role="stack"' in f
             for f in drawn),
         text.count("<summary>show as table</summary>"), "all but diagrams")
    t.ok("nan," not in re.sub(r"<script.*?</script>", "", text, flags=re.S))
    return page


@test
def report_of_flow(t):
    line = ("flow", "post-ln", "pre-ln", "--depth", "3", *SMALL)
    printed = t.run(*line, "--json", "--report", "r.html", rc=0)
    text = read(t, "r.html")
    page = check_page(t, text)
    t.eq(page.data, printed.out.rstrip("\n"), "byte for byte")
    t.has(text, "tollbooth flow post-ln pre-ln --depth 3")
    words = [h[1] for h in page.headings]
    order = ["Gradient flow", "Verdicts", "Runs", "One picture",
             "Lane and total", "post-ln, 3 blocks", "Gradient", "Tolls",
             "Stream", "Shares", "Parameters", "Jacobians", "Sublayers", "pre-ln, 3 blocks",
             "Equations and Jacobians", "Method"]
    at = [words.index(w) for w in order]
    t.eq(at, sorted(at), words)
    # 2 towers of 6 floors, each with its line, and 4 charts
    for role, n in (("grad-hw", 12 + 4), ("grad-hw-line", 2), ("band", 2),
                    ("jac", 20), ("floor", 12)):
        t.eq(text.count('data-role="%s"' % role), n, role)
    # a row of the table for every sublayer, and a verdict leads to one
    for k in range(7):
        t.ok("r1-k%d" % k in page.ids and "r2-k%d" % k in page.ids)
    t.has(text, "I + J", "<math")


def embedded(t, name):
    """What the page holds, as it stands there: no reader of HTML between."""
    with open(t.path(name), "rb") as f:
        page = f.read()
    at = b'<script type="application/json" id="tollbooth-data">'
    t.eq(page.count(at), 1)
    return page.split(at)[1].split(b"</script>")[0]


@test
def report_holds_the_bytes_of_json(t):
    """Also where a name has what ends a script element."""
    r = t.run("flow", "pre-ln", "--depth", "1", *SMALL, "--json", "--report",
              "r.html", rc=0)
    t.eq(embedded(t, "r.html") + b"\n", r.raw)
    os.mkdir(t.path("<!--<"))
    name = os.path.join("<!--<", "script>.json")
    t.write(name, r.out)
    r = t.run("report", name, "--json", "--out", "r.html", rc=0)
    t.eq(embedded(t, "r.html") + b"\n", r.raw)
    t.has(strict(r.out)["command"], "<!--</script>")
    check_page(t, read(t, "r.html"))


@test
def report_says_what_it_has_not(t):
    t.run("flow", "no-skip", "--depth", "2", "--cotangent", "random", "--report",
          "r.html", *SMALL, rc=0)
    text = read(t, "r.html")
    check_page(t, text)
    t.has(text, "Not measured: gradients of weights", "NOSKIP", 'href="#r1-k1"')
    t.ok("Spectrum" not in text)
    t.has(text, "Singular values of chosen floors", "k 3, attn of block 2")
    t.run("flow", "pre-ln", "--depth", "1", "--tokens", "33", "--width", "16",
          "--heads", "2", "--report", "r.html", rc=0)
    text = read(t, "r.html")
    t.has(text, "The Jacobian of each sublayer", "make 528 numbers of x",
          "standard error of tr(J)/d")
    t.ok("chosen floors" not in text)
    t.run("flow", "pre-ln", "--depth", "1", "--spectrum", "--report", "r.html",
          *SMALL, rc=0)
    t.has(read(t, "r.html"), "Singular values of the whole stack")


@test
def report_of_two_stacks(t):
    t.run("flow", "post-ln", "--stack", "encoder-decoder", "--depth", "2",
          "--report", "r.html", *SMALL, rc=0)
    text = read(t, "r.html")
    check_page(t, text)
    t.has(text, "post-ln, 2 + 2 blocks, encoder: lane and total",
          "post-ln, 2 + 2 blocks, decoder: lane and total")
    t.has(text, "Gradient by depth, encoder", "Gradient by depth, decoder",
          "Parameter gradients by floor, encoder")


@test
def report_sizes(t):
    """At most 2 MB for 48 blocks, 5 MB for 96, 5,000 nodes a figure."""
    for depth, most in ((48, 2 << 20), (96, 5 << 20)):
        t.run("flow", "post-ln", "--depth", str(depth), "--width", "64", "--report",
              "r.html", rc=0)
        page = check_page(t, read(t, "r.html"), most)
        t.eq(page.titles[0], "post-ln, %d blocks: lane and total" % depth)
        t.has(read(t, "r.html"), "A floor is a block of 2 sublayers")


@test
def report_of_many_flows_is_folded(t):
    t.run("flow", "post-ln", "pre-ln", "rezero", "--depth", "2", "--report",
          "r.html", *SMALL, rc=0)
    text = read(t, "r.html")
    check_page(t, text)
    t.eq(text.count('<details class="fold">'), 3)
    # each tower stands at the head of its own chapter
    t.ok("One picture" not in text)
    for name in ("post-ln", "pre-ln", "rezero"):
        t.eq(text.count(">%s, 2 blocks: lane and total</title>" % name), 1)


@test
def report_of_compare(t):
    t.write("book.txt", story(600))
    printed = t.run("compare", "post-ln", "pre-ln", "--text", "book.txt", "--depth",
                 "2", "--steps", "12", "--width", "16", "--heads", "2", "--context",
                 "16", "--batch", "4", "--json", rc=0)
    text = read(t, "report.html")
    page = check_page(t, text)
    t.eq(page.data, printed.out.rstrip("\n"))
    t.has(text, "Loss by update, 2 blocks", "Gradient norm by update",
          "Update ratio", "The longest weight gradient of each floor")
    # runs of two depths may be called alike: each depth has its own figures
    t.run("compare", "pre-ln", "--text", "book.txt", "--depth", "1,2", "--steps",
          "6", "--width", "16", "--heads", "2", "--context", "16", "--batch", "4",
          rc=0)
    titles = check_page(t, read(t, "report.html")).titles
    for what in ("Loss by update", "Gradient norm by update", "Update ratio"):
        for depth in ("1 block", "2 blocks"):
            t.eq(titles.count("%s, %s" % (what, depth)), 1, titles)


@test
def report_that_cannot_be_written(t):
    r = t.run("flow", "pre-ln", "--depth", "1", "--report", "none/r.html", *SMALL,
              rc=5)
    t.has(r.err, "none/r.html")


def trained(t, name="run", *words, block="post-ln", rc=0):
    t.write("book.txt", story(600))
    return t.run("train", block, "--text", "book.txt", "--out", name, "--depth",
                 "2", "--width", "16", "--heads", "2", "--context", "16", "--batch",
                 "2", "--steps", "12", "--val-every", "6", *words, rc=rc)


@test
def report_of_a_folder(t):
    trained(t)
    r = t.run("report", "run", rc=0)
    t.has(r.out, "report: report.html", "OK where not listed")
    text = read(t, "report.html")
    page = check_page(t, text)
    t.eq(page.data, t.run("report", "run", "--json").out.rstrip("\n").replace(
        "tollbooth report run --json", "tollbooth report run"))
    words = [h[1] for h in page.headings]
    order = ["post-ln, 2 blocks", "Verdicts", "Runs", "One picture",
             "Lane and total", "post-ln, 2 blocks (run)", "Gradient", "Sublayers", "Training",
             "What if", "Equations and Jacobians", "Method"]
    at = [words.index(w) for w in order]
    t.eq(at, sorted(at), words)
    t.has(text, "SHA-256 of model.safetensors", "Loss by update", "Update ratio",
          "Gradient norm by update")
    run, = strict(page.data)["runs"]
    t.eq((run["kind"], run["training"]["status"] in ("ok", "plateau"),
          run["training"]["steps"]), ("folder", True, 12))
    t.eq([p[0] for p in run["training"]["loss_curve"]], list(range(1, 13)))
    t.eq([p[0] for p in run["training"]["val_curve"]], [6, 12])
    # the flow is that of `flow` on the same text
    flow = t.run("flow", "run", "--text", "book.txt", "--what-if", "--audit",
                 "--json").json()["runs"][0]
    t.eq(run["flow"], flow)
    os.remove(t.path("book.txt"))
    t.run("report", "run", rc=0)
    os.remove(t.path("run", "log.jsonl"))
    t.run("report", "run", rc=0)
    t.ok("Loss by update" not in read(t, "report.html"))


@test
def report_of_files(t):
    """What flow, compare and train printed; a flow has the same bytes again."""
    flow = t.run("flow", "post-ln", "pre-ln", "--depth", "1,2", "--spectrum",
                 "--weights", "--what-if", "--alpha", "--width", "8", "--heads", "2",
                 "--tokens", "8", "--json", rc=0)
    t.write("flow.json", flow.out)
    two = t.run("flow", "pre-ln", "--stack", "encoder-decoder", "--depth", "1",
                "--audit", "--json", *SMALL, rc=0)
    t.write("two.json", two.out)
    trained(t, "run")
    t.write("train.jsonl", t.run("train", "--resume", "--out", "run", "--json").out)
    t.write("compare.json", t.run(
        "compare", "post-ln", "pre-ln", "--text", "book.txt", "--depth", "1,2",
        "--steps", "8", "--width", "16", "--heads", "2", "--context", "16",
        "--json", rc=0).out)
    files = ["flow.json", "two.json", "run/log.jsonl", "compare.json"]
    d = t.run("report", *files, "--json", "--out", "all.html", rc=0).json()
    check_page(t, read(t, "all.html"))
    kinds = [r["kind"] for r in d["runs"]]
    t.eq(kinds, ["flow"] * 5 + ["train"] + ["compare"] * 8)
    was = flow.json()["runs"] + two.json()["runs"]
    t.eq([r["flow"] for r in d["runs"][:5]], was)
    for r in was:  # to the byte
        t.ok(flow.out.count(r["block"]) > 0)
    t.eq([r["flow"] is not None for r in d["runs"][6:]],
         [True, False] * 4, "one flow for each block and depth")
    t.eq(d["runs"][5]["training"]["steps"], 12)


@test
def report_terminal(t):
    trained(t)
    r = t.run("report", "run", "--terminal", rc=0)
    order = ["Verdicts", "Runs", "One picture", "Lane and total",
             "Gradient by depth", "Tolls",
             "The residual stream", "What each sublayer adds",
             "Parameter gradients by floor", "Every sublayer", "Training",
             "Update ratio", "Method"]
    at = [r.out.index(w) for w in order]
    t.eq(at, sorted(at))
    t.ok(not os.path.exists(t.path("report.html")))
    for columns in (40, 80, 200):
        wide = t.run("report", "run", "--terminal", env={"COLUMNS": str(columns)})
        for line in wide.out.splitlines():
            t.ok(len(line) <= columns, len(line), line)
    t.has(r.out, "norm   toll  1e-4   1 100  total  1e-4   1 100", "\u2588",
          "post: a norm on the lane of every sublayer", "sent back from the top")
    plain = t.run("report", "run", "--terminal", "--ascii", "--diffable")
    t.has(plain.out, "(run 1)", "  ###")
    os.rename(t.path("run"), t.path("moved"))
    t.eq(plain.raw, t.run("report", t.path("moved"), "--terminal", "--ascii",
                          "--diffable").raw, "no paths")
    os.rename(t.path("moved"), t.path("run"))
    t.ok(plain.out.isascii(), plain)
    t.ok("SHA" not in plain.out and "tollbooth report" not in plain.out)
    t.eq(plain.raw, t.run("report", "run", "--terminal", "--ascii",
                          "--diffable").raw)


@test
def report_verdicts_on_training(t):
    """DIVERGED and UPDATE: one training that fires each, one that does not."""
    trained(t)
    calm, = t.run("report", "run", "--json", rc=0).json()["runs"]
    levels = {v["code"]: v["level"] for v in calm["training"]["verdicts"]}
    t.eq(levels, {"UPDATE": "OK"})
    loud, = t.run("report", "run", "--json", "--threshold", "UPDATE=1.0000001",
                  rc=0).json()["runs"]
    v, = loud["training"]["verdicts"]
    t.eq((v["level"], v["threshold"]), ("NOTE", 1.0000001))
    trained(t, "slow", "--lr", "1e-7")
    v, = t.run("report", "slow", "--json").json()["runs"][0]["training"]["verdicts"]
    t.eq((v["code"], v["level"]), ("UPDATE", "NOTE"))
    t.ok(v["value"] > 10 and "less" in v["sentence"], v)
    trained(t, "bad", "--lr", "1e28", "--init", "*: normal(0.02)", "--save-every",
            "1", rc=4)
    r = t.run("report", "bad/log.jsonl", "--check", rc=1)
    t.has(r.out, "FAIL DIVERGED")
    t.has(read(t, "report.html"), "diverged")
    t.run("report", "run", "--check", rc=0)
    t.run("report", "run", "--check", "--threshold", "VANISH=1e9", rc=0)


@test
def report_refuses(t):
    trained(t)
    t.write("other.json", '{"runs": [{"block": "x"}]}')
    t.write("none.json", '{"runs": []}')
    t.write("text", "no JSON")
    for name in ("other.json", "none.json", "text", "missing.json"):
        r = t.run("report", "run", name, rc=3)
        t.has(r.err, name)
        t.ok(not os.path.exists(t.path("report.html")))
    t.run("report", rc=2)
    t.has(t.run("report", "run", "--threshold", "VANISHH=1", rc=2).err,
          "did you mean VANISH")
    t.run("report", "run", "--threshold", "VANISH", rc=2)
    r = t.run("report", "run", "--out", "none/r.html", rc=5)
    t.has(r.err, "none/r.html")
    # a log cut short by a kill
    with open(t.path("run", "log.jsonl"), "r+", encoding="utf-8") as f:
        text = f.read()
        f.seek(0)
        f.truncate()
        f.write(text[:len(text) * 2 // 3])
    run, = t.run("report", "run", "--json", rc=0).json()["runs"]
    t.eq(run["training"]["status"], None)
    t.ok(0 < run["training"]["steps"] < 12)


@test
def report_long_log_is_thinned(t):
    """At most 2,000 points, and the peaks among them."""
    trained(t)
    with open(t.path("run", "log.jsonl"), encoding="utf-8") as f:
        head, step = f.read().splitlines()[:2]
    lines = [head]
    for i in range(1, 30001):
        one = strict(step)
        one["step"], one["loss"] = i, 9.5 if i == 12345 else 2 + 1 / i
        lines.append(json.dumps(one))
    t.write("long.jsonl", "\n".join(lines) + "\n")
    run, = t.run("report", "long.jsonl", "--json", "--out", "r.html",
                 rc=0).json()["runs"]
    curve = run["training"]["loss_curve"]
    t.ok(1000 < len(curve) <= 2000, len(curve))
    t.ok([12345, 9.5] in curve and curve[0][0] == 1 and curve[-1][0] == 30000)
    check_page(t, read(t, "r.html"))


@test
def report_of_many_long_runs(t):
    """Eight logs of 3,000 updates: beside the data, which is what --json
    prints, a page stays under 1 MB."""
    trained(t)
    with open(t.path("run", "log.jsonl"), encoding="utf-8") as f:
        head, step = f.read().splitlines()[:2]
    names = ["%d.jsonl" % run for run in range(8)]
    for run, name in enumerate(names):
        lines, one = [head], strict(step)
        for i in range(1, 3001):
            one["step"], one["loss"] = i, 2 + (run + i * 7919 % 100) / 99
            lines.append(json.dumps(one))
        t.write(name, "\n".join(lines) + "\n")
    t.run("report", *names, "--out", "r.html", rc=0)
    page = check_page(t, read(t, "r.html"), 4 << 20)
    t.ok(len(page.figures) >= 3, len(page.figures))
    rest = len(read(t, "r.html").encode()) - len(page.data.encode())
    t.ok(rest <= 1 << 20, rest)


alone(__name__)
