# SPDX-License-Identifier: MIT
"""Every command line that README.md and docs/ show runs as it stands, with a
small text for book.txt and few updates where it trains."""

import glob
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import ROOT, alone, test  # noqa: E402

SMALL = {
    "train": ["--steps", "3", "--val-windows", "1"],
    "compare": ["--steps", "3", "--val-windows", "1"],
}
# what an example's own sizes become: the words are tested, not the hardware
SIZES = {"--depth": "2", "--width": "32", "--steps": "3", "--minutes": None,
         "--tokens": "8"}
PLACEHOLDER = re.compile(r"[A-Z]{3,}|\.\.\.|\[")


def shown():
    """(file, words) of every `$ build/tollbooth ...` or `tollbooth ...`."""
    files = [os.path.join(ROOT, "README.md")]
    files += sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))
    for path in files:
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"\\\n\s*", " ", f.read())
        for line in re.findall(
                r"^ {4}(?:\$ )?(?:build/)?tollbooth (.+)$", text, re.M):
            try:
                words = shlex.split(line, comments=True)
            except ValueError:
                continue
            if ">" in words:
                words = words[:words.index(">")]
            if not PLACEHOLDER.search(" ".join(words)):
                yield os.path.basename(path), words


def shrink(words):
    out, skip = [], False
    for i, w in enumerate(words):
        if skip:
            skip = False
            continue
        if w in SIZES and words[0] in SMALL:
            skip = True
            if SIZES[w]:
                out += [w, SIZES[w]]
            continue
        out.append(w)
    extra = SMALL.get(words[0], [])
    return out + extra if "--steps" not in out else out + extra[2:]


@test
def docs_commands_run(t):
    text = "The quick brown fox jumps over the lazy dog. " * 200
    t.write("book.txt", text)
    t.write("en.txt", "I hate this music.\nThat is it.\n" * 10)
    t.write("de.txt", "Ich hasse diese Musik.\nDas ist es.\n" * 10)
    t.write("labels.tsv", "yes\t(())\nno\t())(\n" * 10)
    commands = list(shown())
    t.ok(len(commands) >= 6, commands)
    for name, words in commands:
        what = "%s: %s" % (name, " ".join(words))
        if words[0] in ("generate", "report") and not os.path.isdir(t.path("run")):
            t.run("train", "pre-ln", "--text", "book.txt", "--out", "run",
                  "--depth", "2", "--width", "32", *SMALL["train"], rc=0)
        r = t.run(*[str(w) for w in shrink(words)])
        t.ok(r.rc == 0, "%s gives %d: %s" % (what, r.rc, r.err[-300:]))


alone(__name__)
