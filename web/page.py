#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The walkthrough as one HTML file: steps, styles, scripts and the engine.

    web/page.py PROGRAM ENGINE.wasm OUT.html

Every figure, number and formula in it is asked from PROGRAM, so that the page
says something before (and without) its scripts; the engine, which is the same
C, then answers the controls."""

import base64
import gzip
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE / "page"
LIMIT = 800 * 1024  # bytes of the whole page
POLICY = ("default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; "
          "style-src 'unsafe-inline'; img-src data:")
# in the order they are pasted together: a module uses those before it
SCRIPTS = ["../engine.mjs", "hash.mjs", "patch.mjs", "controls.mjs",
           "figure.mjs", "words.mjs", "predict.mjs", "app.mjs"]
LIST_ROWS = 16  # elements of a list that get a slider each


def escape(text):
    return (str(text).replace("&", "&amp;").replace("<", "&lt;")
            .replace(">", "&gt;").replace('"', "&quot;"))


class Program:
    """The command line that every number of the page comes from."""

    def __init__(self, path):
        self.path = path
        self.shots = {s["name"]: s for s in self.json("picture", "--list")}

    def text(self, *args):
        run = subprocess.run([self.path, *args], capture_output=True)
        if run.returncode:
            sys.exit(f"page: {' '.join(args)}: {run.stderr.decode()}")
        return run.stdout.decode()

    def json(self, *args):
        value = json.loads(self.text(*args, "--json"))
        return value["shots"] if "shots" in value else value


# --- controls: made from the row of the shot ---------------------------------

def number_text(value):
    return f"{value:.12g}"


def bounds(row):
    step = number_text(row["step"]) if row["step"] else "any"
    if row["whole"]:
        step = number_text(max(1, row["step"]))
    return (f'min="{number_text(row["low"])}" max="{number_text(row["high"])}"'
            f' step="{step}"')


def slider(row, label, value):
    """A slider and a field of the same number. A logarithmic slider moves over
    positions, which the script turns into values."""
    field = (f'<input type="number" {bounds(row)} value="{value}" '
             f'aria-label="{escape(label)}">')
    if not row["step"] and not row["log"]:
        return field
    scale = 'data-log min="0" max="200" step="1"' if row["log"] else \
        bounds(row)
    return (f'<input type="range" {scale} value="{value}" '
            f'aria-label="{escape(label)}, slider">{field}')


def list_rows(row):
    own = json.loads(row["own"])
    if len(own) > LIST_ROWS or not row["step"]:
        return (f'<input type="text" value="{escape(row["own"])}" '
                f'spellcheck="false" aria-label="{escape(row["label"])}">')
    label = row["label"]
    rows = "".join(
        f'<span class="element"><span aria-hidden="true">{i}</span>'
        f'{slider(row, f"{label}, number {i}", number_text(v))}</span>'
        for i, v in enumerate(own, 1))
    return (f'<span class="elements">{rows}</span><span class="count">'
            f'<button type="button" data-do="less" aria-label="one number '
            f'fewer">−</button><button type="button" data-do="more" '
            f'aria-label="one number more">+</button></span>')


def one_control(row):
    kind, label, own = row["kind"], escape(row["label"]), escape(row["own"])
    if kind == "switch":
        on = " checked" if row["own"] == "1" else ""
        return f'<label><input type="checkbox"{on}> {label}</label>'
    if kind == "choice":
        options = "".join(
            f'<option{" selected" * (c == row["own"])}>{escape(c)}</option>'
            for c in row["choices"].split("|"))
        return f'<label>{label} <select>{options}</select></label>'
    if kind == "number":
        return (f'<span class="name">{label}</span>'
                f'{slider(row, row["label"], own)}')
    if kind == "list":
        return f'<span class="name">{label}</span>{list_rows(row)}'
    return (f'<label>{label} <textarea rows="2" spellcheck="false">{own}'
            f'</textarea></label>')


def controls(shot):
    rows = "".join(
        f'<div class="control {r["kind"]}" role="group" data-input='
        f'"{escape(r["name"])}" aria-label="{escape(r["label"])}">'
        f'{one_control(r)}</div>' for r in shot["inputs"])
    return (f'<fieldset class="controls" hidden><legend>Try it</legend>{rows}'
            '<p class="buttons"><button type="button" data-do="reset">Reset'
            '</button><button type="button" data-do="surprise">Surprise me'
            '</button><button type="button" data-do="link">Copy link</button>'
            '</p></fieldset>') if rows else ""


# --- figures -----------------------------------------------------------------

def quote(number):
    return (f'<output data-q="{escape(number["id"])}" aria-live="off">'
            f'{escape(number["shown"])}</output>')


def sentence(text, numbers):
    return re.sub(r"\{([^{}]+)\}", lambda m: quote(numbers[m[1]])
                  if m[1] in numbers else m[0], escape(text))


def check_line(check):
    kind, mark = ("ok", "✓") if check["ok"] else ("bad", "✗ does not hold:")
    return f'<li class="{kind}">{mark} {escape(check["text"])}</li>'


class Figure:
    """One shot at its own settings, as the program draws it."""

    def __init__(self, program, name):
        self.name = name
        self.row = program.shots[name]
        self.data = program.json("picture", name)
        html = program.text("picture", name, "--format", "html")
        end = html.index("</svg>") + len("</svg>")
        self.svg, self.tables = html[:end], html[end:].strip()
        self.numbers = {n["id"]: n for n in self.data["numbers"]}

    def html(self):
        says = "".join(f"<p>{sentence(s, self.numbers)}</p>"
                       for s in self.data["sentences"])
        checks = "".join(map(check_line, self.data["checks"]))
        name = escape(self.name)
        tables = (f'<details class="tables"><summary>Show as table</summary>'
                  f'<div>{self.tables}</div></details>') if self.tables else ""
        return (f'<figure data-shot="{name}">'
                f'<div class="canvas scroll" tabindex="0" role="region" '
                f'aria-label="Figure {name}">{self.svg}</div>'
                f'<p class="error" role="status" hidden></p>'
                f'{controls(self.row)}'
                f'<div class="says">{says}</div>'
                f'<ul class="checks" aria-label="What the engine checked">'
                f'{checks}</ul>{tables}'
                f'<p class="command">From the command line: <code>tollbooth '
                f'picture {name}</code></p>'
                f'<p class="live" aria-live="polite"></p></figure>')


# --- sections ----------------------------------------------------------------

class Sections:
    """The fragments of web/page/steps in order. `<figure data-shot="S1">` is
    replaced by the figure, `<output data-q="E1.mu">` by the number of the
    section's figure, `{{mathml BLOCK}}` by the block's Jacobian."""

    def __init__(self, program):
        self.program = program
        self.left_out = []

    def shots_of(self, text):
        return re.findall(r'<figure data-shot="([^"]+)">', text)

    def fill(self, path):
        text = path.read_text()
        names = self.shots_of(text)
        missing = [n for n in names if n not in self.program.shots]
        if missing:
            self.left_out.append(f"{path.stem} (no shot {missing[0]})")
            return ""
        figures = {n: Figure(self.program, n) for n in names}
        for name, figure in figures.items():
            text = text.replace(f'<figure data-shot="{name}"></figure>',
                                figure.html())
            text = self.numbers(path, text, figure)
        return re.sub(r"\{\{mathml ([^}]+)\}\}", lambda m: self.program.text(
            "explain", m[1], "--format", "mathml").strip(), text)

    def numbers(self, path, text, figure):
        def one(match):
            number = figure.numbers.get(match[1])
            if number is None:
                sys.exit(f"page: {path.name} quotes {match[1]}, which "
                         f"{figure.name} does not tell")
            return quote(number)
        return re.sub(r'<output data-q="([^"]+)"></output>', one, text)

    def html(self):
        return "\n".join(filter(None, (
            self.fill(p) for p in sorted((SOURCES / "steps").glob("*.html")))))


def contents(sections):
    """One link per section that can be named in a word or two."""
    return "".join(
        f'<li><a href="#{place}">{title}</a></li>' for place, title in
        re.findall(r'<section id="([^"]+)" data-short="([^"]+)"', sections))


# --- the page ----------------------------------------------------------------

def script():
    """The modules as one: an inline module cannot import another."""
    text = "\n".join((SOURCES / name).read_text() for name in SCRIPTS)
    text = re.sub(r"^import [^;]*;\n", "", text, flags=re.M)
    return re.sub(r"^export ", "", text, flags=re.M)


def themes(program):
    """The palette as the system wants it, and by hand; paper is always
    light."""
    css = program.text("picture", "--colours")
    for theme in "light", "dark":
        own = program.text("picture", "--colours", "--theme", theme)
        own = own.split("\n")[0].replace(":root", f':root[data-theme={theme}]')
        css += "@media screen{" + own + "}\n"
    return css


def engine(path):
    packed = gzip.compress(pathlib.Path(path).read_bytes(), 9, mtime=0)
    return base64.b64encode(packed).decode()


def build(program, wasm):
    sections = Sections(program)
    body = sections.html()
    parts = {
        "policy": POLICY,
        "style": themes(program) + (SOURCES / "style.css").read_text(),
        "contents": contents(body),
        "sections": body,
        "rows": json.dumps(program.shots, ensure_ascii=False,
                           separators=(",", ":")).replace("</", "<\\/"),
        "engine": engine(wasm),
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
