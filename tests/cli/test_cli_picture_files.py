# SPDX-License-Identifier: MIT
"""`picture`, `explain` and `flow` as files: the format by its name, sizes,
sheets, themes, what is refused, a system without cairo."""

import ctypes.util
import json
import os
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, PROGRAM, ROOT, Skip, test  # noqa: E402

SHOT = "batchnorm"


def need_cairo():
    if not ctypes.util.find_library("cairo"):
        raise Skip("no cairo here")


def content(t, name):
    with open(os.path.join(t.dir, name), "rb") as f:
        return f.read()


def png_size(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR"
    return struct.unpack(">II", data[16:24])


def picture(t, *words, **more):
    return t.run("picture", SHOT, *words, **more)


@test
def picture_format_by_name(t):
    printed = {f: picture(t, "--format", f, rc=0).out
               for f in ("text", "txt", "svg", "json", "scene", "html")}
    t.eq(printed["text"], printed["txt"])
    t.eq(printed["text"], picture(t, rc=0).out)
    for form, out in printed.items():
        t.eq(picture(t, "--out", "a." + form, rc=0).out, "")
        t.eq(content(t, "a." + form).decode(), out, form)
    picture(t, "--out", "a.data", "--format", "svg", rc=0)
    t.eq(content(t, "a.data").decode(), printed["svg"])
    picture(t, "--out", "plain", rc=0)
    t.eq(content(t, "plain").decode(), printed["text"])


@test
def picture_png_and_pdf(t):
    need_cairo()
    scene = json.loads(picture(t, "--format", "scene", rc=0).out)
    size = (scene["width"], scene["height"])
    picture(t, "--out", "a.png", rc=0)
    t.eq(png_size(content(t, "a.png")), size)
    picture(t, "--out", "b.png", "--scale", "2", "--theme", "dark", rc=0)
    t.eq(png_size(content(t, "b.png")), (2 * size[0], 2 * size[1]))
    picture(t, "--out", "c.png", "--size", "1200x630", rc=0)
    t.eq(png_size(content(t, "c.png")), (1200, 630))
    picture(t, "--out", "a.pdf", rc=0)
    t.ok(b"/MediaBox [ 0 0 %g %g ]" % (0.75 * size[0], 0.75 * size[1])
         in content(t, "a.pdf"))
    picture(t, "--out", "b.pdf", "--page", "a4", rc=0)  # it is wide: turned
    t.ok(b"/MediaBox [ 0 0 841.889764 595.275591 ]" in content(t, "b.pdf"))
    picture(t, "--out", "again.pdf", "--page", "a4", rc=0)
    t.eq(content(t, "again.pdf"), content(t, "b.pdf"))


@test
def picture_svg_on_paper(t):
    """A poster: SUM is A4 across, a tower upright; the drawing is the same."""
    for shot, paper in (("SUM", (297, 210)), ("S5", (210, 297))):
        at = t.run("picture", shot, "--format", "svg", rc=0).out
        on = t.run("picture", shot, "--format", "svg", "--page", "a4", rc=0).out
        head, rest = on.split(" viewBox", 1)
        t.ok(head.endswith(' width="%dmm" height="%dmm"' % paper))
        t.eq(rest, at.split(" viewBox", 1)[1])


@test
def picture_refuses(t):
    for words in (["--scale", "2"], ["--size", "10x10"], ["--page", "a4"],
                  ["--out", "a.svg", "--scale", "2"],
                  ["--out", "a.pdf", "--size", "10x10"],
                  ["--out", "a.png", "--page", "a4"],
                  ["--out", "a.png", "--size", "10"],
                  ["--out", "a.png", "--size", "0x10"],
                  ["--out", "a.png", "--size", "10x10x10"],
                  ["--out", "a.png", "--size", "10x10", "--scale", "2"],
                  ["--out", "a.png", "--scale", "0"]):
        t.has(picture(t, *words, rc=2).err, "--")
    need_cairo()
    t.has(picture(t, "--out", "a.png", "--size", "99999x10", rc=2).err, "32767")
    t.has(picture(t, "--out", "no/a.png", rc=5).err, "no/a.png")
    t.ok(not os.path.exists(os.path.join(t.dir, "a.png")))


@test
def picture_without_cairo(t):
    for name in ("a.png", "a.pdf"):
        r = picture(t, "--out", name, env={"TB_CAIRO": "no-such-library"}, rc=5)
        t.has(r.err, "cairo", "no-such-library", "libcairo2")
        t.ok(not os.path.exists(os.path.join(t.dir, name)))
    picture(t, "--out", "a.svg", env={"TB_CAIRO": "no-such-library"}, rc=0)


FIGURES = (["explain", "revnet"], ["flow", "pre-ln", "--depth", "2",
                                   "--width", "8", "--tokens", "4"])


@test
def figures_of_other_commands(t):
    for words in FIGURES:
        for form in ("text", "svg", "json"):
            printed = t.run(*words, "--format", form, rc=0).out
            t.eq(t.run(*words, "--out", "a." + form, rc=0).out, "")
            t.eq(content(t, "a." + form).decode(), printed, words[0], form)
        t.run(*words, "--out", "a.data", "--format", "svg", rc=0)
        t.has(content(t, "a.data").decode(), "<svg")
        t.run(*words, "--out", "b.svg", "--page", "a4", rc=0)
        t.has(content(t, "b.svg").decode(), "mm")
        for more in (["--scale", "2"], ["--out", "a.json", "--page", "a4"],
                     ["--out", "a.pdf", "--size", "10x10"]):
            t.has(t.run(*words, *more, rc=2).err, words[0] + ": --")
        r = t.run(*words, "--out", "a.png",
                  env={"TB_CAIRO": "no-such-library"}, rc=5)
        t.has(r.err, "cairo", "no-such-library", "libcairo2")


@test
def figures_of_other_commands_drawn(t):
    need_cairo()
    for words in FIGURES:
        t.run(*words, "--out", "a.png", rc=0)
        w, h = png_size(content(t, "a.png"))
        t.run(*words, "--out", "b.png", "--scale", "2", rc=0)
        t.eq(png_size(content(t, "b.png")), (2 * w, 2 * h))
        t.run(*words, "--out", "a.pdf", "--page", "a4", rc=0)
        t.has(content(t, "a.pdf")[:5].decode(), "%PDF-")


@test
def pictures_of_the_docs_are_the_programs(t):
    subprocess.run([os.path.join(ROOT, "tools", "pictures.sh"), t.dir],
                   env={**os.environ, "TOLLBOOTH": PROGRAM}, check=True)
    images = os.path.join(ROOT, "docs", "img")
    for name in sorted(os.listdir(images)):
        with open(os.path.join(images, name), "rb") as f:
            t.ok(content(t, name) == f.read(), name, "- tools/pictures.sh")


alone(__name__)
