# SPDX-License-Identifier: MIT
"""tollbooth compare: the table, the JSON and the self-contained report."""

import os
import re
import signal
import sys
from html.parser import HTMLParser

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, is_finite, story, strict, test  # noqa: E402

TINY = ("--width", "16", "--heads", "2", "--context", "16", "--batch", "4")


def compare(t, *words, rc=0, **more):
    t.write("book.txt", story(600))
    return t.run("compare", "--text", "book.txt", *TINY, *words, rc=rc, **more)


def page(t, name="report.html"):
    with open(t.path(name), encoding="utf-8") as f:
        return f.read()


class Scripts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.data, self.inside, self.tags = "", False, []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag == "script" and \
            dict(attrs).get("type") == "application/json"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


@test
def compare_runs(t):
    r = compare(t, "post-ln", "pre-ln", "--depth", "1,2", "--steps", "20",
                "--json", "--exact")
    d = r.json()
    t.eq(list(d), ["tollbooth", "command", "runs"])
    t.has(d["command"], "tollbooth compare --text book.txt")
    t.eq([(x["depth"], x["block"], x["warmup"]) for x in d["runs"]],
         [(n, b, w) for n in (1, 2) for b in ("post-ln", "pre-ln")
          for w in (2, 0)])
    for x in d["runs"]:
        t.eq(x["dtype"], "f32")
        t.eq([x[k] for k in ("seed", "width", "heads", "context", "batch", "steps",
                             "diverged")], [1, 16, 2, 16, 4, 20, False])
        t.ok(is_finite(x["val_loss"]) and is_finite(x["loss"]), x)
        t.eq([p[0] for p in x["loss_curve"]], list(range(1, 21)))
        t.eq(x["loss_curve"][-1][1], x["loss"])
        t.eq(x["val_curve"][-1][1], x["val_loss"])
        t.eq(len(x["flow"]["sublayers"]), 2 * x["depth"] + 1)
        t.eq(x["flow"]["block"], x["block"])
    # same seed, same data: the first loss does not depend on the warm-up
    t.eq(d["runs"][0]["loss_curve"][0], d["runs"][1]["loss_curve"][0])
    t.has(r.err, "1/8 post-ln N=1 warm-up", "8/8 pre-ln N=2 no warm-up")
    # what runs need is said once, and again where it is more
    needs = [float(x) for x in re.findall(r"memory ([0-9.]+) MB", r.err)]
    t.ok(0 < len(needs) < 8 and needs == sorted(needs), r.err)
    # the report holds the same object and asks the network for nothing
    html = page(t)
    found = Scripts()
    found.feed(html)
    t.eq(strict(found.data), d)
    for tag, attrs in found.tags:
        for name in ("src", "href", "action", "data", "srcset"):
            value = attrs.get(name) or ""
            t.ok(not re.match(r"(https?:)?//", value), tag, attrs)
        t.ok(tag not in ("iframe", "object", "embed", "link"), tag)
    policy = [a for tag, a in found.tags if tag == "meta" and
              a.get("http-equiv", "").lower() == "content-security-policy"]
    t.ok(policy, "no Content-Security-Policy")
    t.has(policy[0]["content"], "default-src 'none'")
    t.eq(set(re.findall(r"https?://[^\"'<> )]*", html)) -
         {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML",
          "http://www.w3.org/1999/xlink"}, set(), "addresses on the page")
    t.ok("@import" not in html and "url(" not in html.replace("url(#", ""))


@test
def compare_table(t):
    r = compare(t, "post-ln", "x = x + F(norm(x)); final: x = norm(x)", "--depth",
                "1", "--steps", "10", "--report", "r.html")
    t.has(r.out, "block", "validation", "lane", "total", "post-ln", "report: r.html")
    t.has(page(t, "r.html"), "Runs", "Verdicts", "Jacobian")
    for text in r.out.splitlines():
        t.ok(len(text) <= 100, text)
    narrow = compare(t, "post-ln", "--depth", "1", "--steps", "3",
                     env={"COLUMNS": "60"})
    t.has(narrow.out, "not shown")
    plain = compare(t, "post-ln", "--depth", "1", "--steps", "3", "--ascii")
    t.ok(plain.out.isascii(), plain)
    low = compare(t, "post-ln", "--depth", "1", "--steps", "3", "--dtype", "bf16",
                  "--json").json()["runs"]
    t.eq([x["dtype"] for x in low], ["bf16", "bf16"])
    t.has(page(t), "products with weights", "bf16")


@test
def compare_hostile_text_in_report(t):
    """What the user typed cannot become markup."""
    line = ("--depth", "1", "--steps", "2", "--one-warmup")
    compare(t, "pre-ln", *line)
    calm = Scripts()
    calm.feed(page(t))
    d = compare(t, "x = x + F(norm(x)) # </script><script>alert(1)</script><!--"
                   "<script><img src=x>", *line, "--json").json()
    found = Scripts()
    found.feed(page(t))
    t.eq(strict(found.data), d)
    for tag in ("script", "img"):
        t.eq([a for n, a in found.tags if n == tag],
             [a for n, a in calm.tags if n == tag])


@test
def compare_seeds_and_warmup(t):
    d = compare(t, "pre-ln", "--depth", "1", "--steps", "4", "--seeds", "2",
                "--seed", "5", "--json").json()
    t.eq([(x["warmup"], x["seed"]) for x in d["runs"]],
         [(1, 5), (1, 6), (0, 5), (0, 6)])
    d = compare(t, "pre-ln", "--depth", "1", "--steps", "4", "--warmup", "0",
                "--json").json()
    t.eq([x["warmup"] for x in d["runs"]], [0], "no run twice")
    d = compare(t, "pre-ln", "--depth", "1", "--steps", "4", "--one-warmup",
                "--json").json()
    t.eq([x["warmup"] for x in d["runs"]], [1])


@test
def compare_diverged(t):
    """A run that diverges is a result."""
    r = compare(t, "post-ln", "pre-ln", "--depth", "1", "--steps", "10", "--lr",
                "1e5", "--one-warmup")
    t.has(r.out, "diverged")
    t.has(r.err, "diverged at step 2")
    t.has(page(t), "diverged")
    d = compare(t, "post-ln", "--depth", "1", "--steps", "10", "--lr", "1e5",
                "--one-warmup", "--json").json()["runs"][0]
    t.eq((d["diverged"], d["diverged_at"]), (True, 2))
    t.ok(d["where"])


@test
def compare_report_unwritable(t):
    for path in ("none/r.html", "book.txt/r.html", "."):
        r = compare(t, "post-ln", "--depth", "1", "--steps", "1000000",
                    "--report", path, rc=5, timeout=60)
        t.has(r.err, path, "cannot write the report")
        t.ok("1/" not in r.err, "found before training", r)
    t.ok(not os.path.exists(t.path("report.html")))
    compare(t, "post-ln", "--width", "15", "--steps", "2", "--report", "r.html",
            rc=2)
    t.ok(not os.path.exists(t.path("r.html")), "an empty report is left")


@test
def compare_interrupted(t):
    t.write("book.txt", story(600))
    p = t.start("compare", "pre-ln", "--text", "book.txt", *TINY, "--depth", "1",
                "--steps", "1000000", stdout=-1, stderr=-1)
    p.stderr.readline()
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    t.eq(p.returncode, 130, err)
    t.eq(out, b"")


@test
def compare_refuses(t):
    t.has(compare(t, "pre-nl", rc=3).err, "did you mean 'pre-ln'?")
    t.has(compare(t, "pre-ln", "--heads", "3", rc=2).err, "multiple of 3 heads")
    t.write("empty", "")
    r = t.run("compare", "pre-ln", "--text", "empty", *TINY, rc=3)
    t.has(r.err, "empty")
    t.write("short", "abc")
    r = t.run("compare", "pre-ln", "--text", "short", *TINY, "--depth", "1", rc=3)
    t.has(r.err, "short", "need at least 17 tokens, have")
    r = t.run("compare", "pre-ln", "--text", "none", *TINY, rc=3)
    t.has(r.err, "none: cannot open")


@test
def compare_minutes(t):
    r = compare(t, "pre-ln", "--depth", "1", "--minutes", "1e-9", "--one-warmup",
                "--json")
    t.eq(r.json()["runs"][0]["steps"], 200)
    t.has(r.err, "200 updates each")


alone(__name__)
