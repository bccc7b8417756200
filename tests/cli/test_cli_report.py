# SPDX-License-Identifier: MIT
"""Reports: one page for flow, compare and report; its size, its parts, its
data, and what a reader who does not see it gets."""

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
    t.eq(text.count("<figure>"), text.count("<summary>show as table</summary>"))
    t.ok("nan," not in re.sub(r"<script.*?</script>", "", text, flags=re.S))
    return page


@test
def report_of_flow(t):
    line = ("flow", "post-ln", "pre-ln", "--depth", "3", *SMALL)
    json = t.run(*line, "--json", "--report", "r.html", rc=0)
    text = read(t, "r.html")
    page = check_page(t, text)
    t.eq(page.data, json.out.rstrip("\n"), "byte for byte")
    t.has(text, "tollbooth flow post-ln pre-ln --depth 3")
    words = [h[1] for h in page.headings]
    order = ["Gradient flow", "Verdicts", "Runs", "Lane and total",
             "post-ln, 3 blocks", "Gradient", "Tolls", "Stream", "Shares",
             "Parameters", "Sublayers", "pre-ln, 3 blocks",
             "Equations and Jacobians", "Method"]
    at = [words.index(w) for w in order]
    t.eq(at, sorted(at), words)
    for role, n in (("grad-hw", 4), ("band", 2), ("jac", 2)):
        t.eq(text.count('data-role="%s"' % role), n, role)
    # a row of the table for every sublayer, and a verdict leads to one
    for k in range(7):
        t.ok("r1-k%d" % k in page.ids and "r2-k%d" % k in page.ids)
    t.has(text, "I + J", "<math")


@test
def report_says_what_it_has_not(t):
    t.run("flow", "no-skip", "--depth", "2", "--cotangent", "random", "--report",
          "r.html", *SMALL, rc=0)
    text = read(t, "r.html")
    check_page(t, text)
    t.has(text, "Not measured: gradients of weights", "NOSKIP", 'href="#r1-k1"')
    t.ok("Spectrum" not in text)
    t.run("flow", "pre-ln", "--depth", "1", "--spectrum", "--report", "r.html",
          *SMALL, rc=0)
    t.has(read(t, "r.html"), "Singular values of the whole stack")


@test
def report_of_two_stacks(t):
    t.run("flow", "post-ln", "--stack", "encoder-decoder", "--depth", "2",
          "--report", "r.html", *SMALL, rc=0)
    text = read(t, "r.html")
    check_page(t, text)
    t.has(text, "Gradient by depth, encoder", "Gradient by depth, decoder",
          "Parameter gradients by floor, encoder")


@test
def report_sizes(t):
    """At most 2 MB for 48 blocks, 5 MB for 96, 5,000 nodes a figure."""
    for depth, most in ((48, 2 << 20), (96, 5 << 20)):
        t.run("flow", "post-ln", "--depth", str(depth), "--width", "64", "--report",
              "r.html", rc=0)
        check_page(t, read(t, "r.html"), most)


@test
def report_of_many_flows_is_folded(t):
    t.run("flow", "post-ln", "pre-ln", "rezero", "--depth", "2", "--report",
          "r.html", *SMALL, rc=0)
    text = read(t, "r.html")
    check_page(t, text)
    t.eq(text.count('<details class="fold">'), 3)


@test
def report_of_compare(t):
    t.write("book.txt", story(600))
    json = t.run("compare", "post-ln", "pre-ln", "--text", "book.txt", "--depth",
                 "2", "--steps", "12", "--width", "16", "--heads", "2", "--context",
                 "16", "--batch", "4", "--json", rc=0)
    text = read(t, "report.html")
    page = check_page(t, text)
    t.eq(page.data, json.out.rstrip("\n"))
    t.has(text, "Loss by update, 2 blocks", "Gradient norm by update",
          "Update ratio", "The longest weight gradient of each floor")


@test
def report_that_cannot_be_written(t):
    r = t.run("flow", "pre-ln", "--depth", "1", "--report", "none/r.html", *SMALL,
              rc=5)
    t.has(r.err, "none/r.html")


alone(__name__)
