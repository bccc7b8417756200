# SPDX-License-Identifier: MIT
"""The report in a real browser, opened from disk: tables that sort and can be
copied, heads that stay, links to rows inside folded chapters, cells and marks
of what has no number, two widths, two themes, paper, accessibility.
Screenshots stay in build/check/page/."""

import base64
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import page_driver  # noqa: E402
from page_driver import Browser, axe_source  # noqa: E402
from tb_cli import add, alone, test  # noqa: E402

SMALL = ("--width", "16", "--heads", "2", "--tokens", "8")

WHY = page_driver.missing(None)
if WHY:
    print(WHY)
    sys.exit(77)
page = Browser()
page.size(1200)


def report(t, *words):
    t.run("flow", *words, "--report", "r.html", rc=0)
    page.load(t.path("r.html"))


COLUMN = """
  const [caption, n] = arguments;
  const table = [...document.querySelectorAll('table')].find(
    (x) => x.caption && x.caption.textContent === caption);
  return [...table.tBodies[0].rows].map((r) => r.cells[n].textContent);"""
HEAD = """
  const [caption, n] = arguments;
  const table = [...document.querySelectorAll('table')].find(
    (x) => x.caption && x.caption.textContent === caption);
  const th = table.tHead.rows[0].cells[n];
  th.querySelector('button').click();
  return th.getAttribute('aria-sort');"""
EVERY = "Every sublayer, the top first"


@test
def tables_sort(t):
    report(t, "post-ln", "--depth", "6", *SMALL)
    k = page.run(COLUMN, EVERY, 0)
    t.eq(k, [str(i) for i in range(12, -1, -1)])
    t.eq(page.run(HEAD, EVERY, 0), "ascending")
    t.eq(page.run(COLUMN, EVERY, 0), k[::-1])
    t.eq(page.run(HEAD, EVERY, 0), "descending")
    t.eq(page.run(COLUMN, EVERY, 0), k)
    # as numbers, not as texts; what is none goes last either way
    for want in ("ascending", "descending"):
        t.eq(page.run(HEAD, EVERY, 6), want)
        toll = page.run(COLUMN, EVERY, 6)
        t.eq(toll[-1], "", "the stem has no toll")
        numbers = [float(v) for v in toll[:-1]]
        t.eq(numbers, sorted(numbers, reverse=want == "descending"))
    t.eq(page.run(HEAD, EVERY, 2), "ascending")
    names = page.run(COLUMN, EVERY, 2)
    t.eq(names, sorted(names))
    t.eq(page.errors(), [])


@test
def tables_are_copied(t):
    report(t, "pre-ln", "--depth", "2", *SMALL)
    page.cdp("Browser.grantPermissions",
             permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    text = page.wait("""
      const done = arguments[0];
      const boxes = [...document.querySelectorAll('.numbers')];
      const box = boxes.find((b) => b.getAttribute('aria-label').startsWith('Every'));
      const button = box.previousElementSibling;
      let copied = null;
      document.addEventListener('copy', () => {
        copied = String(document.activeElement.value); });
      if (navigator.clipboard)
        navigator.clipboard.writeText = (x) => { copied = x; return Promise.resolve(); };
      button.click();
      setTimeout(() => done([button.textContent, copied]), 200);""")
    t.eq(text[0], "copied")
    lines = [line.split("\t") for line in text[1].split("\n")]
    t.eq([len(line) for line in lines], [len(lines[0])] * 6)
    t.eq(lines[0][:3], ["k", "block", "sublayer"])
    t.eq([line[0] for line in lines[1:]], ["4", "3", "2", "1", "0"])
    count = page.run("return [document.querySelectorAll('.numbers').length,"
                     "document.querySelectorAll('button.copy').length]")
    t.eq(count[0], count[1])


@test
def heads_stay(t):
    """The head of a long table and its first column, while it scrolls."""
    report(t, "post-ln", "--depth", "30", *SMALL)
    page.size(380)
    found = page.run("""
      const box = [...document.querySelectorAll('.numbers')].find(
        (b) => b.getAttribute('aria-label').startsWith('Every'));
      box.scrollIntoView();
      box.scrollTop = 400;
      box.scrollLeft = 300;
      const at = box.getBoundingClientRect();
      const head = box.querySelector('thead th:nth-child(3)').getBoundingClientRect();
      const first = box.querySelector('tbody tr:nth-child(30) th').getBoundingClientRect();
      return [box.scrollTop, box.scrollLeft, head.top - at.top, first.left - at.left];""")
    page.size(1200)
    t.ok(found[0] > 300 and found[1] > 200, found)
    t.ok(abs(found[2]) < 2 and abs(found[3]) < 2, found)


@test
def links_lead_to_rows(t):
    """From a verdict into a folded chapter, and from a row to itself."""
    report(t, "post-ln", "pre-ln", "no-skip", "--depth", "12", *SMALL)
    t.ok(page.run("return [...document.querySelectorAll('.fold')].every(f => !f.open)"))
    got = page.wait("""
      const done = arguments[0];
      const a = document.querySelector('.verdicts a');
      a.click();
      setTimeout(() => {
        const row = document.getElementById(a.hash.slice(1));
        const at = row.getBoundingClientRect();
        done([row.closest('.fold').open, at.top >= 0 && at.bottom <= innerHeight,
              getComputedStyle(row.cells[1]).backgroundColor !== 'rgba(0, 0, 0, 0)',
              row.cells[0].querySelector('a').hash === a.hash]);
      }, 300);""")
    t.eq(got, [True, True, True, True])


@test
def what_has_no_number_is_marked(t):
    """Not finite is hatched, no value grey, zero a triangle, and words say so."""
    report(t, "pre-ln", "--depth", "2", *SMALL)
    run = t.run("flow", "pre-ln", "--depth", "2", *SMALL, "--json", rc=0).json()
    weights = run["runs"][0]["weights"]
    names = [w["name"] for w in weights]
    weights[names.index("layers.0.attn.q.weight")]["grad_norm"] = "nan"
    weights[names.index("layers.1.attn.k.weight")]["grad_norm"] = 0
    del weights[names.index("layers.1.attn.v.weight")]
    run["runs"][0]["sublayers"][1]["lane"] = 0
    t.write("bad.json", json.dumps(run))
    t.run("report", "bad.json", "--out", "r.html", rc=0)
    page.load(t.path("r.html"))
    heat = """
      const svg = [...document.querySelectorAll('svg')].find(
        (x) => x.querySelector('title').textContent.startsWith('Parameter'));
      const marks = (role) => svg.querySelectorAll(`[data-role="${role}"]`).length;
      return [marks('gap-mark'), marks('floor-mark'), marks('none'), svg.textContent];"""
    hatched, triangles, grey, words = page.run(heat)
    t.eq((hatched, triangles, grey), (2, 2, 2), "a cell and its legend each")
    t.has(words, "not finite", "none", "0 or below")
    label = page.run("""
      const svg = [...document.querySelectorAll('svg')].find(
        (x) => x.querySelector('title').textContent.startsWith('Gradient by depth'));
      return [svg.querySelectorAll('[data-role="floor-mark"]').length, svg.textContent];""")
    t.eq(label[0], 1)
    t.has(label[1], "not drawable (log axis): 0 at")
    t.has(page.run("return document.body.textContent"), "lane and total")


def looked_at(theme, width):
    def run(t):
        page.size(width)
        page.media(prefers_color_scheme=theme)
        report(t, "post-ln", "pre-ln", "--depth", "12", *SMALL)
        wide = page.run("return document.documentElement.scrollWidth - innerWidth")
        page.picture("report_%s_%d" % (theme, width))
        page.media()
        page.size(1200)
        t.ok(wide <= 0, "the page itself scrolls sideways by", wide)
        t.eq(page.errors(), [])
    return run


for _theme in ("light", "dark"):
    for _width in (380, 1200):
        add("looks_%s_%d" % (_theme, _width), looked_at(_theme, _width))


@test
def paper(t):
    """Chapters are open, and a long table repeats its head on each sheet."""
    report(t, "post-ln", "pre-ln", "rezero", "--depth", "24", *SMALL)
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    t.ok(page.run("return [...document.querySelectorAll('.fold')].every(f => f.open)"))
    page.media("print")
    heads = page.run("""
      const th = document.querySelector('[aria-label^="Every"] thead th');
      return [getComputedStyle(th.querySelector('button')).display,
              getComputedStyle(th, '::after').content,
              getComputedStyle(th.closest('thead')).display];""")
    page.media()
    t.eq(heads, ["none", '"k"', "table-header-group"])
    pdf = base64.b64decode(page.cdp("Page.printToPDF")["data"])
    with open(os.path.join(page_driver.SHOTS, "report.pdf"), "wb") as f:
        f.write(pdf)
    t.ok(pdf.startswith(b"%PDF") and len(pdf) > 50000, len(pdf))


def accessible(theme):
    def run(t):
        source = axe_source()
        page.media(prefers_color_scheme=theme)
        report(t, "post-ln", "pre-ln", "--depth", "2", *SMALL)
        page.cdp("Page.setBypassCSP", enabled=True)
        page.load(t.path("r.html"))
        page.run(source)
        found = page.wait("""
          const done = arguments[0];
          axe.run({ exclude: [["svg.tb-figure > *"]] }, { resultTypes: ["violations"] }).then((r) =>
            done(JSON.stringify(r.violations.map((v) => [v.impact, v.id,
              v.nodes.length, v.nodes[0].html.slice(0, 160), v.nodes[0].failureSummary]))));""")
        page.media()
        t.eq([v for v in json.loads(found) if v[0] in ("serious", "critical")], [])
    return run


for _theme in ("light", "dark"):
    add("axe_" + _theme, accessible(_theme))

try:
    alone(__name__)
finally:
    page.close()
