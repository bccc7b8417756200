# SPDX-License-Identifier: MIT
"""Figures and tables in as few bytes as HTML allows, for the time before the
engine draws them anew: what one sees, without tooltips, ids and roles, which
only scripts read; coordinates to a tenth of a pixel; and one short class for
each look that comes again and again."""

import collections
import re
import string

GEOMETRY = {"d", "x", "y", "width", "height", "cx", "cy", "r", "rx"}
LOOKS = {"stroke-width", "stroke-dasharray", "font-size", "font-weight",
         "font-style", "text-anchor", "font-family"}
DROPPED = {"id", "data-role", "stroke-linejoin"}
OFTEN = 4  # from here on a stroke's width is part of the look
# what HTML knows of every svg, and the font that the page's body has too
KNOWN = r' xmlns="[^"]*"| font-family="[^"]*"'


def rounded(match):
    text = f"{float(match[0]):.1f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def attribute(name, value):
    if re.fullmatch(r"[^\s\"'=<>`/]+", value):
        return f" {name}={value}"
    return f' {name}="{value}"'


def short(value):
    """Tenths as text, without a zero before the point."""
    text = f"{value / 10:.1f}".rstrip("0").rstrip(".")
    return re.sub(r"^(-?)0\.", r"\1.", text if text != "-0" else "0")


def joined(command, values):
    """Numbers part where a sign or a second point begins a new one."""
    out = command
    for text in map(short, values):
        last = re.split(r"[a-zA-Z -]", out)[-1]
        apart = last and text[0] != "-" and not (
            text[0] == "." and "." in last)
        out += " " * bool(apart) + text
    return out


def path(d):
    """Each command in the shortest of its forms: from where the last ended, or
    from the corner; along an axis by one coordinate."""
    if not re.fullmatch(r"[MLQZ\d. -]*", d):
        return d
    out, x, y, start = "", 0, 0, (0, 0)
    for command, numbers in re.findall(r"([MLQZ])([^MLQZ]*)", d):
        there = [round(10 * float(n)) for n in numbers.split()]
        if command == "Z":
            out, (x, y) = out + "Z", start
            continue
        by = [n - (y if i % 2 else x) for i, n in enumerate(there)]
        forms = [joined(command, there), joined(command.lower(), by)]
        if command == "L" and by[0] == 0:
            forms += [joined("V", there[1:]), joined("v", by[1:])]
        if command == "L" and by[1] == 0:
            forms += [joined("H", there[:1]), joined("h", by[:1])]
        out += min(forms, key=len)
        x, y = there[-2:]
        start = (x, y) if command == "M" else start
    return out


def geometry(name, value):
    value = re.sub(r"-?\d+\.\d+", rounded, value)
    return attribute(name, path(value) if name == "d" else value)


def declarations(classes, looks):
    """As CSS: f-ink is fill:var(--ink), text and lines as they are told."""
    for c in classes:
        name = {"f": "fill", "s": "stroke"}[c[0]]
        looks[name] = c[2:] if c[2:] == "none" else f"var(--{c[2:]})"
    if "font-size" in looks:
        looks["font-size"] += "px"
    return tuple(sorted(looks.items()))


def css(look):
    return ";".join(f"{name}:{value}" for name, value in look)


class Slim:
    """Pictures in; their markup and the style they share out. A look is known
    by its place until all pictures are there to count them."""

    def __init__(self):
        self.looks = []

    def tag(self, match):
        rest, looks, classes = "", {}, []
        for name, value in re.findall(r' ([\w-]+)="([^"]*)"', match[2]):
            if name == "class":
                classes = value.split()
            elif name in LOOKS:
                looks[name] = value
            elif name == "id" and re.search(r"-p\d+$", value):
                rest += attribute(name, value)  # panels, for thumbnails
            elif name in GEOMETRY:
                rest += geometry(name, value)
            elif name not in DROPPED and (name, value) != ("opacity", "1"):
                rest += attribute(name, value)
        if classes or looks:  # first: no space before the slash of most ends
            rest = f"\0{len(self.looks)}\0" + rest
            self.looks.append(declarations(classes, looks))
        end = "" if not match[2].endswith("/") else \
            "/" if rest.endswith('"') else " /"
        return f"<{match[1]}{rest}{end}>"

    def picture(self, svg):
        start = svg.index("</desc>") + len("</desc>")
        head, body = re.sub(KNOWN, "", svg[:start]), svg[start:]
        body = re.sub(r"<title>[^<]*</title>", "", body)
        body = re.sub(r"></(rect|circle|path)>", "/>", body)
        # cells of the colour of the paper
        body = re.sub(r'<rect [^>]*data-role="jac-cell" class="f-paper"/>\n',
                      "", body)
        body = re.sub(r'<(\w+)((?: [\w-]+="[^"]*")*/?)>', self.tag, body)
        while re.search(r"<g>\s*</g>", body):
            body = re.sub(r"<g>\s*</g>\n?", "", body)
        return head + body.replace(">\n<", "><")

    def finish(self, html):
        """The page with its classes, and their rules."""
        count = collections.Counter(self.looks)
        names, rules = {}, []

        def short(look):
            if look not in names:
                n = len(names)  # a capital first: style.css has none
                names[look] = (string.ascii_uppercase[n % 26] +
                               string.ascii_letters[n // 26])
                rules.append(f".{names[look]}{{{css(look)}}}")
            return attribute("class", names[look])

        def one(match):
            look = self.looks[int(match[1])]
            if count[look] >= OFTEN or "stroke-width" not in dict(look):
                return short(look)
            width = dict(look)["stroke-width"]
            return geometry("stroke-width", width) + short(
                tuple(p for p in look if p[0] != "stroke-width"))

        html = re.sub("\0(\\d+)\0", one, html)
        return html, "\n".join(rules) + "\n"


def tables(html):
    """End tags of rows and cells may be left out."""
    html = re.sub(r"\n?</(td|th|tr|thead|tbody)>\n?", "", html)
    return re.sub(r'(scope|class)="(\w+)"', r"\1=\2", html)
