# SPDX-License-Identifier: MIT
"""The walkthrough page as web/page.py writes it, without a browser: one file,
its policy, what stands in it before any script runs."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import PROGRAM, ROOT, Skip, alone, test  # noqa: E402

POLICY = ("default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; "
          "style-src 'unsafe-inline'; img-src data:")


def words(html):
    """What is written in the first drawing, in order."""
    svg = html[html.index("<svg"):html.index("</svg>")]
    return re.findall(r"<text[^>]*>(?:<title>[^<]*</title>)?([^<]*)", svg)


def build(t, engine=b"\0asm"):
    """The page with an engine that no one starts here."""
    with open(os.path.join(t.dir, "engine.wasm"), "wb") as f:
        f.write(engine)
    run = subprocess.run([sys.executable, os.path.join(ROOT, "web", "page.py"),
                          PROGRAM, "engine.wasm", "out/page.html"], cwd=t.dir,
                         capture_output=True, text=True)
    page = os.path.join(t.dir, "out", "page.html")
    with open(page, encoding="utf-8", newline="") as f:
        return f.read(), run


@test
def page_stands_alone(t):
    page, run = build(t)
    t.eq(run.returncode, 0, run.stderr)
    t.has(page, 'http-equiv="Content-Security-Policy" content="%s"' % POLICY)
    body = page.replace("http://www.w3.org/", "")  # names of vocabularies
    for loads in ("src=", "@import", "url(", "<link", "<iframe", "<object"):
        t.ok(loads not in body, "the page loads something: " + loads)
    t.ok("{{" not in page, "a placeholder was left")


@test
def page_without_scripts(t):
    """Each shot it shows stands there as the program draws it, and each number
    of the prose is one that a shot told."""
    page, _ = build(t)
    shots = re.findall(r'<figure data-shot="([^"]+)"', page)
    t.ok(shots, "no figure")
    for name in shots:
        html = t.run("picture", name, "--format", "html", rc=0).out
        figure = page[page.index('<figure data-shot="%s"' % name):]
        t.eq(words(figure), words(html))
        t.ok(len(re.findall("<path", figure[:figure.index("</svg>")])) ==
             len(re.findall("<path", html)), name)
    t.eq(re.findall(r'<output data-q="([^"]*)"[^>]*></output>', page), [])
    ids = re.findall(r'\sid="?([^"\s>]+)', page)
    t.eq(sorted({i for i in ids if ids.count(i) > 1}), [])
    headings = [int(h) for h in re.findall(r"<h([1-6])", page)]
    t.eq(headings[0], 1)
    t.ok(all(b <= a + 1 for a, b in zip(headings, headings[1:])), headings)


@test
def page_corners_without_scripts(t):
    """Step 7's cards, which need a control, stand there one by one."""
    page, _ = build(t)
    step = page[page.index('<section id="S7"'):]
    step = step[step.index("<noscript>"):step.index("</noscript>")]
    stills = re.findall(r'<h3>(\w): .*?<svg.*?</svg>', step, re.S)
    t.eq(stills, list("abcdef"))
    for card, still in zip("bde", (step.split("<h3>")[n] for n in (2, 4, 5))):
        html = t.run("picture", "S7", "--set", "card=" + card, "--format",
                     "html", rc=0).out
        t.eq(words(still), words(html), card)


@test
def page_links_lead_somewhere(t):
    page, _ = build(t)
    places = set(re.findall(r'\sid="?([^"\s>]+)', page))
    links = {re.split("~", link)[0] for link in
             re.findall(r'href="#([^"]+)"', page)}
    t.eq(sorted(links - places), [])


@test
def page_too_large_is_an_error(t):
    _, run = build(t, os.urandom(700 * 1024))
    t.eq(run.returncode, 1, run.stdout)
    t.has(run.stdout, "at most 819200")


@test
def page_rows_are_those_of_the_list(t):
    """What the controls read, without what is 0, false or null."""
    page, _ = build(t)
    text = re.search(r'id="rows">(.*?)</script>', page, re.S).group(1)
    rows = json.loads(text.replace("<\\/", "</"))
    shots = t.run("picture", "--list", "--json", rc=0).json()["shots"]
    t.eq(list(rows), [s["name"] for s in shots])
    for shot in shots:
        for ours, theirs in zip(rows[shot["name"]]["inputs"], shot["inputs"]):
            t.eq(ours, {k: theirs[k] for k in ours})
            t.ok(all(not theirs[k] for k in set(theirs) - set(ours)), ours)


@test
def page_unpacks_its_engine(t):
    """The script's own LZMA gives back every byte."""
    if not shutil.which("node"):
        raise Skip("no node")
    with open(PROGRAM, "rb") as f:
        engine = f.read(300000)
    page, _ = build(t, engine)
    size, packed = re.search(r'id="engine" data-size="(\d+)">(.*?)<', page,
                             re.S).groups()
    t.eq(int(size), len(engine))
    module = os.path.join(ROOT, "web", "page", "unpack.mjs")
    run = subprocess.run(
        ["node", "--input-type=module", "-e",
         "import { unpack } from %s; import { readFileSync } from 'fs';"
         "process.stdout.write(unpack(readFileSync(0, 'utf8'), %s));" % (json.dumps(module), size)],
        input=packed.encode(), capture_output=True)
    t.eq(run.returncode, 0, run.stderr)
    t.ok(run.stdout == engine, "other bytes")


@test
def page_script_is_one_module(t):
    """Pasted together, no two modules name the same thing."""
    if not shutil.which("node"):
        raise Skip("no node")
    page, _ = build(t)
    script = re.search(r'<script type="module">(.*?)</script>', page, re.S)
    path = os.path.join(t.dir, "page.mjs")
    with open(path, "w", encoding="utf-8") as f:
        f.write(script.group(1))
    run = subprocess.run(["node", "--check", path], capture_output=True,
                         text=True)
    t.eq(run.returncode, 0, run.stderr)


@test
def picture_for_a_page(t):
    """The SVG takes its colours from the style sheet that --colours prints."""
    html = t.run("picture", "batchnorm", "--format", "html", rc=0).out
    t.has(html, '<svg xmlns', 'class="tb-figure"', "<table>")
    t.ok("<style>" not in html, html)
    css = t.run("picture", "--colours", rc=0).out
    for name in set(re.findall(r'[ "]([fs]-[a-z-]+)', html)):
        t.has(css, ".%s{" % name)
    t.has(css, "prefers-color-scheme:dark", "@media print")
    dark = t.run("picture", "--colours", "--theme", "dark", rc=0).out
    t.has(dark, ":root{color-scheme:dark;")


alone(__name__)
