# SPDX-License-Identifier: MIT
"""The formulas of every built-in block on one page, laid out by Chromium: each
has the size of a formula, none falls apart into boxes or leaves the page's
width by more than its own rows. Skips aloud where there is no Chromium."""

import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import Skip, alone, test  # noqa: E402

STYLE = """body { font: 16px serif; margin: 16px; width: 1200px }
section { border-top: 1px solid #ccc; padding: 4px 0; overflow-x: auto }
h2 { font: bold 13px sans-serif; margin: 0 }"""
SCRIPT = """const out = [];
for (const m of document.querySelectorAll('math')) {
  const b = m.getBoundingClientRect();
  out.push([m.closest('section').id, b.width, b.height,
            m.querySelectorAll('merror').length]);
}
const p = document.createElement('pre');
p.id = 'sizes';
p.textContent = JSON.stringify(out);
document.body.append(p);"""


def formulas(t):
    """[(id, MathML)]: closed and open, and of each kind of block."""
    found = []
    for name in [b["name"] for b in t.run("blocks", "--json").json()["blocks"]]:
        j = t.run("explain", name, "--json", rc=0).json()["jacobian"]
        found.append((name, j["mathml"]))
        found.append((name + " expanded", j["expanded_mathml"]))
        found += [("%s from %d" % (name, k["from"]), k["mathml"])
                  for k in j["layers"][1:]]
    return found


def page(found):
    body = "".join("<section id=\"%s\"><h2>%s</h2>%s</section>\n" % (n, n, m)
                   for n, m in found)
    return ("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
            "<title>Jacobians</title><style>%s</style></head><body>%s"
            "<script>%s</script></body></html>" % (STYLE, body, SCRIPT))


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    raise Skip("no chromium here: formulas are not laid out")


@test
def mathml_is_xml(t):
    for name, math in formulas(t):
        root = ElementTree.fromstring(math)
        t.eq(root.tag, "{http://www.w3.org/1998/Math/MathML}math")
        t.ok(root.get("alttext"), name, "has no text")
        for e in root.iter():
            tag = e.tag.split("}")[1]
            if tag in ("mi", "mo", "mn"):
                t.ok((e.text or "").strip() and not list(e), name, tag, e.text)
            if tag in ("msub", "msup"):
                t.eq(len(list(e)), 2)


@test
def mathml_in_chromium(t):
    program, found = browser(), formulas(t)
    path = t.write("jacobians.html", page(found))
    r = subprocess.run(
        [program, "--headless=new", "--no-sandbox", "--disable-gpu",
         "--user-data-dir=" + os.path.join(os.path.dirname(path), "profile"),
         "--window-size=1240,1000", "--dump-dom", "file://" + path],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120)
    dom = r.stdout.decode("utf-8", "replace")
    sizes = re.search(r'<pre id="sizes">(.*?)</pre>', dom, re.S)
    if not sizes:
        raise Skip("chromium gave no page")
    sizes = json.loads(sizes.group(1))
    t.eq(len(sizes), len(found))
    for (name, math), (_, width, height, errors) in zip(found, sizes):
        text = ElementTree.fromstring(math).get("alttext")
        rows = 1 + math.count("<mtr>")
        t.eq(errors, 0)
        t.ok(height >= 12 * max(1, rows // 2), name, "is", height, "high")
        t.ok(width > 3 * min(len(text), 20), name, "is", width, "wide")


alone(__name__)
