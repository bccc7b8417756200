#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The walkthrough as one HTML file: steps, styles, scripts and the engine.

    web/page.py PROGRAM ENGINE.wasm OUT.html

Every figure, number and formula in it is asked from PROGRAM, so that the page
says something before (and without) its scripts; the engine, which is the same
C, then answers the controls."""

import json
import lzma
import pathlib
import re
import subprocess
import sys

import slim

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE / "page"
LIMIT = 800 * 1024  # bytes of the whole page
POLICY = ("default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; "
          "style-src 'unsafe-inline'; img-src data:")
# in the order they are pasted together: a module uses those before it
SCRIPTS = ["../engine.mjs", "text.mjs", "unpack.mjs", "hash.mjs",
           "patch.mjs", "controls.mjs", "tables.mjs",
           "figure.mjs", "words.mjs", "predict.mjs", "retell.mjs", "store.mjs",
           "cards.mjs", "check.mjs", "map.mjs", "beads.mjs", "walk.mjs",
           "workbench.mjs", "app.mjs"]
TABLES = 6000  # bytes of tables that stand in the page before the engine runs


def escape(text):
    return (str(text).replace("&", "&amp;").replace("<", "&lt;")
            .replace(">", "&gt;").replace('"', "&quot;"))


class Program:
    """The command line that every number of the page comes from."""

    def __init__(self, path):
        self.path = path
        self.shots = {s["name"]: s
                      for s in self.json("picture", "--list")["shots"]}
        self.cards = self.json("recall")["cards"]

    def text(self, *args):
        run = subprocess.run([self.path, *args], capture_output=True)
        if run.returncode:
            sys.exit(f"page: {' '.join(args)}: {run.stderr.decode()}")
        return run.stdout.decode()

    def json(self, *args):
        return json.loads(self.text(*args, "--json"))


def number_text(value):
    return f"{value:.12g}"


# --- figures -----------------------------------------------------------------

def quote(number):
    return (f'<output data-q="{escape(number["id"])}">'
            f'{escape(number["shown"])}</output>')


def sentence(text, numbers):
    return re.sub(r"\{([^{}]+)\}", lambda m: quote(numbers[m[1]])
                  if m[1] in numbers else m[0], escape(text))


def check_line(check):
    kind, mark = ("ok", "✓") if check["ok"] else ("bad", "✗ does not hold:")
    return f'<li class="{kind}">{mark} {escape(check["text"])}</li>'


def sized(svg):
    """Its own width, for style.css."""
    return re.sub(r'<svg ([^>]*?)width="([\d.]+)"',
                  r'<svg style="--w:\2" \1width="\2"', svg, count=1)


class Figure:
    """One shot at its own settings, as the program draws it."""

    def __init__(self, program, name, slimmer):
        self.name = name
        self.row = program.shots[name]
        self.data = program.json("picture", name)
        html = program.text("picture", name, "--format", "html")
        end = html.index("</svg>") + len("</svg>")
        self.svg = sized(slimmer.picture(html[:end]))
        self.tables = slim.tables(html[end:].strip())
        if len(self.tables) > TABLES:
            self.tables = "<p>A long table: the engine writes it.</p>"
        self.numbers = {n["id"]: n for n in self.data["numbers"]}

    def html(self):
        says = "".join(f"<p>{sentence(s, self.numbers)}</p>"
                       for s in self.data["sentences"])
        checks = "".join(map(check_line, self.data["checks"]))
        name = escape(self.name)
        tables = (f'<details class="tables"><summary>Show as table</summary>'
                  f'<div>{self.tables}</div></details>') if self.tables else ""
        controls = ('<fieldset class="controls" hidden></fieldset>'
                    if self.row["inputs"] else "")  # filled by controls.mjs
        return (f'<figure data-shot="{name}">'
                f'<div class="canvas scroll" tabindex="0" role="region" '
                f'aria-label="Figure {name}">{self.svg}</div>'
                f'<p class="error" role="status" hidden></p>'
                f'{controls}'
                f'<div class="says">{says}</div>'
                f'<ul class="checks" aria-label="What the engine checked">'
                f'{checks}</ul>{tables}'
                f'<p class="command">From the command line: <code>tollbooth '
                f'picture {name}</code></p>'
                f'<p class="live" aria-live="polite"></p></figure>')


# --- cards -------------------------------------------------------------------

def letters(text):
    """x_j as a letter with its index."""
    return re.sub(r"\b([A-Za-zγβ])_([A-Za-z0-9]+)", r"\1<sub>\2</sub>",
                  escape(text))


def proof(card):
    if card["proof"] is None:
        return "No computation settles this one."
    value = card["proof"]["value"]
    if value is None:
        value = card["proof"]["said"]
    numbers = value if isinstance(value, list) else [value]
    shown = ", ".join(number_text(v) if isinstance(v, float) else str(v)
                      for v in numbers)
    return f'The engine: {letters(card["proof"]["what"])}: {escape(shown)}.'


# --- sections ----------------------------------------------------------------

class Sections:
    """The fragments of web/page/steps in order, with their placeholders
    filled."""

    def __init__(self, program):
        self.program = program
        self.left_out = []
        self.stills = 0
        self.figures = {}
        self.slimmer = slim.Slim()

    def figure(self, name):
        if name not in self.figures:
            self.figures[name] = Figure(self.program, name, self.slimmer)
        return self.figures[name]

    def fill(self, path):
        text = path.read_text()
        names = re.findall(r'<figure data-shot="([^"]+)">', text)
        names += re.findall(r"\{\{thumb (\S+)", text)
        missing = [n for n in names if n not in self.program.shots]
        if missing:
            self.left_out.append(f"{path.stem} (no shot {missing[0]})")
            return ""
        text = re.sub(r'<figure data-shot="([^"]+)"></figure>',
                      lambda m: self.figure(m[1]).html(), text)
        if names:
            text = self.numbers(path, text, self.figure(names[0]))
        return re.sub(r"\{\{(\w+) ?([^}]*)\}\}",
                      lambda m: getattr(self, m[1])(m[2]), text)

    def numbers(self, path, text, figure):
        """`<output data-q="E1.mu">` in the prose: of the section's figure."""
        def one(match):
            number = figure.numbers.get(match[1])
            if number is None:
                sys.exit(f"page: {path.name} quotes {match[1]}, which "
                         f"{figure.name} does not tell")
            return quote(number)
        return re.sub(r'<output data-q="([^"]+)"></output>', one, text)

    # what {{NAME TEXT}} stands for

    def mathml(self, block):
        return self.program.text("explain", block, "--format",
                                 "mathml").strip()

    def thumb(self, words):
        """The first panel of a figure that the page has already, in small:
        NAME and the box it lies in."""
        name, box = words.split(" ", 1)
        return (f'<svg class="thumb" viewBox="{box}" role="img" aria-label='
                f'"{escape(self.figure(name).data["title"])}">'
                f'<use href="#{name}-p0"/></svg>')

    def retell(self, _):
        """The text of the shot RETELL, its words in blanks that the script
        makes fields of."""
        told = self.program.json("picture", "RETELL")["panels"][0]
        words = [(b["answers"][0], "|".join(b["answers"]))
                 for b in told["blanks"]]
        return "".join("<p>" + re.sub(
            r"\{(\d)\}", lambda m: '<span class="blank" data-word="{1}">{0}'
            "</span>".format(*words[int(m[1]) - 1]), escape(p)) + "</p>\n"
            for p in told["paragraphs"])

    def still(self, words):
        """A figure at other settings, NAME SETTINGS: TITLE, for readers
        without scripts."""
        what, title = words.split(": ", 1)
        name, settings = what.split(" ", 1)
        args = ("picture", name, "--set", settings)
        data = self.program.json(*args)
        html = self.program.text(*args, "--format", "html")
        svg = html[:html.index("</svg>") + len("</svg>")]
        self.stills += 1
        svg = self.slimmer.picture(
            svg.replace(f'"{name}-', f'"{name}.{self.stills}-')
            .replace(f" {name}-", f" {name}.{self.stills}-")
            .replace('class="tb-figure"', 'class="tb-figure still"'))
        numbers = {n["id"]: n for n in data["numbers"]}
        says = "".join(f"<p>{sentence(s, numbers)}</p>"
                       for s in data["sentences"])
        return (f'<h3>{escape(title)}</h3><div class="canvas scroll" '
                f'tabindex="0" role="region" aria-label="{escape(title)}">'
                f'{sized(svg)}</div>{says}')

    def link(self, card):
        if card["shot"] not in self.program.shots:
            return ""
        place, settings = card["shot"], escape(card["settings"])
        name = {"S": f"step {place[1:]}", "F": f"§{place[1:]}"}.get(
            place[0], "next door")
        return (f' <a href="#{place}" data-go="{place}~{place}:{settings}">'
                f'Prove it: {name}</a>')

    def cards(self, _):
        rows = "".join(
            f'<li class="card" data-card="{c["id"]}" data-deck="{c["deck"]}">'
            f'<details><summary>{letters(c["question"])}</summary>'
            f'<p class="back">{letters(c["answer"])}</p>'
            f'<p class="proof">{proof(c)}{self.link(c)}</p></details></li>'
            for c in self.program.cards)
        return f'<ol class="cards">{rows}</ol>'

    def checklist(self, _):
        rows = "".join(
            f'<li data-check="{c["id"]}">'
            f'<label><input type="checkbox" hidden> {letters(c["question"])}'
            f'</label><details><summary>Answer</summary>'
            f'<p>{letters(c["answer"])}</p><p class="proof">{proof(c)}'
            f'{self.link(c)}</p></details><div class="test" hidden>'
            f'<button type="button">Test me</button><form hidden></form></div>'
            f'</li>'
            for c in self.program.cards if c["deck"] == "checklist")
        return f'<ol class="checklist">{rows}</ol>'

    def html(self):
        """All sections, and the style of their figures."""
        return self.slimmer.finish("\n".join(filter(None, (
            self.fill(p) for p in sorted((SOURCES / "steps").glob("*.html"))))))


def contents(sections):
    """One link per section that can be named in a word or two."""
    return "".join(
        f'<li><a href="#{place}">{title}</a></li>' for place, title in
        re.findall(r'<section id="([^"]+)" data-short="([^"]+)"', sections))


# --- the page ----------------------------------------------------------------

def rows(program):
    """What the controls are made of; what is 0, false or null is left out."""
    slim_rows = {
        name: {"name": name, "inputs": [
            {k: v for k, v in r.items()
             if k in ("own", "low", "high") or v}
            for r in shot["inputs"]]}
        for name, shot in program.shots.items()}
    return json.dumps(slim_rows, ensure_ascii=False,
                      separators=(",", ":")).replace("</", "<\\/")


def script():
    """The modules as one: an inline module cannot import another."""
    text = "\n".join((SOURCES / name).read_text() for name in SCRIPTS)
    text = re.sub(r"^import [^;]*;\n", "", text, flags=re.M)
    return short(re.sub(r"^export ", "", text, flags=re.M))


def short(text):
    """Without what only its author reads: indentation, lines of comment."""
    return re.sub(r"^\s*//.*\n|^/\*.*\*/\n|^\s+", "", text, flags=re.M)


def themes(program):
    """The palette as the system wants it, and by hand; paper is always
    light."""
    css = program.text("picture", "--colours")
    for theme in "light", "dark":
        own = program.text("picture", "--colours", "--theme", theme)
        own = own.split("\n")[0].replace(":root", f':root[data-theme={theme}]')
        css += "@media screen{" + own + "}\n"
    return css


def sevens(data):
    """Seven bits a character: a seventh less than base64. The three that HTML
    would take for something else stand 128 higher, as two bytes."""
    out, bits, count = [], 0, 0
    for byte in data + b"\0":
        bits, count = bits << 8 | byte, count + 8
        while count >= 7:
            count -= 7
            value = bits >> count
            bits &= (1 << count) - 1
            out.append(chr(value + 128 * (chr(value) in "\0\r<")))
    return "".join(out)


def engine(path):
    """Packed for web/page/unpack.mjs, as text; and its size."""
    data = pathlib.Path(path).read_bytes()
    how = {"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME,
           "lc": 3, "lp": 0, "pb": 0, "dict_size": 1 << 24}
    packed = lzma.compress(data, format=lzma.FORMAT_RAW, filters=[how])
    return sevens(packed), str(len(data))


def build(program, wasm):
    sections = Sections(program)
    body, looks = sections.html()
    packed, size = engine(wasm)
    parts = {
        "policy": POLICY,
        "style": themes(program) + looks +
        short((SOURCES / "style.css").read_text()),
        "contents": contents(body),
        "sections": body,
        "rows": rows(program),
        "anki": program.text("recall", "--export", "anki"),
        "obsidian": program.text("recall", "--export", "obsidian"),
        "engine": packed,
        "size": size,
        "script": script(),
    }
    page = (SOURCES / "page.html").read_text()
    for name, text in parts.items():
        page = page.replace("{{" + name + "}}", text)
    return page, parts, sections.left_out


def main(program, wasm, out):
    page, parts, left_out = build(Program(program), wasm)
    data = page.encode()
    pathlib.Path(out).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(out).write_bytes(data)
    for step in left_out:
        print(f"page: left out: {step}")
    sizes = ", ".join(f"{name} {len(parts[name].encode())}" for name in
                      ("sections", "engine", "script", "style"))
    print(f"{out}: {len(data)} bytes ({sizes}), at most {LIMIT}")
    return len(data) > LIMIT


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
