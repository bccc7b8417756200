# SPDX-License-Identifier: MIT
"""The recall cards: what they claim, by the command each proof names; lists,
choices, the quiz and its calendar, files of Anki and Obsidian."""

import fcntl
import math
import os
import pty
import re
import select
import shlex
import signal
import sys
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import ROOT, alone, test  # noqa: E402

IDENTITY = [[float(i == j) for j in range(8)] for i in range(8)]


def cards(t, *words):
    return t.run("recall", *words, "--json", rc=0).json()["cards"]


def number(t, proof):
    """What the proof's command prints, read here once more."""
    words = shlex.split(proof["command"])
    if proof["what"].startswith("exit code"):
        r = t.run(*words)
        t.has(r.err, proof["said"])
        return r.rc
    if words[0] == "blocks":
        lanes = {b["name"]: b["lane"] for b in
                 t.run("blocks", "--json", rc=0).json()["blocks"]}
        return [int(lanes[b].startswith("toll") and lanes[b].split()[1])
                for b in proof["expression"].split()]
    doc = t.run(*words, *[] if "--json" in words else ["--json"], rc=0).json()
    if words[0] == "explain":
        return doc["lane"]["tolls_per_block"]
    if words[0] == "flow":
        rows = doc["runs"][0]["sublayers"]
        lanes = [r["lane"] for r in rows]
        return len(rows) if "streams" in proof["what"] else [min(lanes), max(lanes)]
    if "jacobian" in doc:
        j = doc["jacobian"]
        if "gain" in proof["what"]:  # of I - 1/d, scaled: 1/(1 - 1/d) on the diagonal
            return j[0][0] / (1 - 1 / len(j))
        return max(abs(a) for i, row in enumerate(j) for k, a in
                   enumerate([x - e for x, e in zip(row, IDENTITY[i])])
                   if "beside" not in proof["what"] or i != k)
    x = [2, 4, 4, 4, 5, 5, 7, 9]
    if "gradient in" in proof["what"]:
        return max(abs(a - b) for a, b in zip(doc["grad"]["x"], x))
    if "|y - x|" in proof["what"]:
        return max(abs(a - b) for a, b in zip(doc["y"], x))
    y = doc["grad"]["x"] if "grad" in doc else doc["y"]
    return y[0] if len(y) == 1 else y


@test
def recall_commands_show_the_numbers(t):
    proved = 0
    for card in cards(t):
        p = card["proof"]
        if p is None:
            t.eq(card["id"], "recall-warmup")
            continue
        proved += 1
        t.ok(p["ok"], p)
        t.near(p["value"], p["expected"], p["tolerance"] * 400 + 0, card["id"])
        t.near(number(t, p), p["value"], 1e-9, card["id"])
    t.eq(proved, 23)
    eps = cards(t, "recall-eps")[0]["proof"]
    t.near(eps["value"], 1 / math.sqrt(1e-5), 1e-9)


@test
def recall_check(t):
    r = t.run("recall", "--check", rc=0)
    t.has(r.out, "24 cards, 23 with something to compute, 0 failed", "316.22777")
    t.eq(t.run("recall", "--prove", rc=0).out, r.out)
    t.has(t.run("recall", "--prove", "recall-warmup", rc=0).out,
          "nothing to compute", "1 cards, 0 with")


@test
def recall_choices(t):
    lines = [line for line in t.run("recall", "--list", rc=0, env={
        "COLUMNS": "200"}).out.splitlines()]
    t.eq(len(lines), 24)
    for deck, n in (("recall", 6), ("inline", 10), ("checklist", 8), ("all", 24)):
        t.eq(len(cards(t, "--deck", deck)), n, deck)
    t.eq([c["id"] for c in cards(t, "recall-eps", "check-flat", "recall-eps")],
         ["recall-eps", "check-flat"])
    r = t.run("recall", "recal-eps", "--list", rc=2)
    t.has(r.err, "got recal-eps, wanted the ID", "did you mean recall-eps?")
    t.eq(r.out, "")
    r = t.run("recall", "recall-eps", "--deck", "inline", "--list", rc=2)
    t.has(r.err, "got --deck inline, wanted the deck of the cards named")


@test
def recall_narrow_and_plain(t):
    for columns in (40, 60, 200):
        for ascii_ in ([], ["--ascii"]):
            out = t.run("recall", "--list", *ascii_, rc=0,
                        env={"COLUMNS": str(columns)}).out
            t.ok(max(map(len, out.splitlines())) <= columns, out)
            t.ok(not ascii_ or out.isascii(), out)


# --- quiz ------------------------------------------------------------------

def answers(*grades):
    """Enter before each grade."""
    return "".join("\n%s\n" % g for g in grades).encode()


@test
def recall_quiz(t):
    r = t.run("recall", "--deck", "recall", "--seed", "3", rc=0,
              stdin=answers(*"313413") + b"\n3\n\n3\n\n3\n")
    for card in cards(t, "--deck", "recall"):
        flat = " ".join(r.out.split())
        t.has(flat, card["question"], card["answer"])
    t.has(r.out, "[6 left] ", "answers: 8; again 2, hard 0, good 5, easy 1; cards "
          "left: 0")
    t.eq(r.out, t.run("recall", "--deck", "recall", "--seed", "3", rc=0,
                      stdin=answers(*"313413") + b"\n3\n\n3\n\n3\n").out)
    first = {t.run("recall", "--deck", "recall", "--seed", str(seed), rc=0).out
             for seed in range(8)}
    t.ok(len(first) > 2, "eight seeds, one order")


@test
def recall_quiz_words(t):
    """p computes, q ends, what is neither is said; the end of a pipe ends."""
    r = t.run("recall", "recall-eps", rc=0, stdin=b"\np\n5\nq\n")
    t.has(r.out, "computed: largest gain", "316.22777", "wanted 1, 2, 3, 4, p or q",
          "answers: 0;", "cards left: 1")
    t.has(t.run("recall", rc=0).out, "answers: 0;", "cards left: 24")
    t.has(t.run("recall", "recall-warmup", rc=0, stdin=b"\np\n").out,
          "nothing to compute")


@test
def recall_quiz_plain(t):
    for columns in (40, 80):
        for words in ([], ["--ascii"]):
            r = t.run("recall", *words, stdin=answers(*"3" * 24), rc=0,
                      env={"COLUMNS": str(columns), "NO_COLOR": "1"})
            t.ok(max(map(len, r.out.splitlines())) <= columns, r.out)
            t.ok(b"\x1b" not in r.raw and b"\r" not in r.raw)
            t.ok(not words or r.out.isascii(), r.out)


def on_terminal(t, keys, *line):
    """Keys are typed one after the other, each when a prompt is there."""
    master, slave = pty.openpty()

    def own():
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    p = t.start("recall", *line, stdin=slave, stdout=slave, preexec_fn=own)
    os.close(slave)
    data, end = b"", time.time() + 60

    def more():
        try:
            ready, _, _ = select.select([master], [], [], end - time.time())
            return os.read(master, 4096) if ready else b""
        except (OSError, ValueError):
            return b""

    for key in keys:
        while not data.endswith(b": "):
            piece = more()
            if not piece:
                break
            data += piece
        if key is None:
            p.send_signal(signal.SIGINT)
        else:
            os.write(master, key)
        data += b"|"
    for piece in iter(more, b""):
        data += piece
    if p.poll() is None and time.time() >= end:
        p.kill()
    os.close(master)
    return p.wait(), data.decode()


@test
def recall_quiz_ends(t):
    """Ctrl-D, a signal, Ctrl-C: a summary, and what was answered is kept."""
    for keys, code, asked in (([b"\n", b"3\n", b"\x04"], 0, 1),
                              ([b"\n", b"3\n", None], 130, 1),
                              ([b"\n", b"3\n", b"\n", b"\x03"], 130, 1),
                              ([b"\x03"], 130, 0)):
        path = t.path("p%d%d" % (len(keys), code))
        rc, text = on_terminal(t, keys, "--progress", path)
        t.eq(rc, code, text)
        t.has(text, "answers: %d;" % asked, "cards left: %d" % (24 - asked))
        t.eq(os.path.exists(path), bool(asked))


# --- when to ask again -----------------------------------------------------

def kept(t):
    with open(t.path("p.txt"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    t.eq(lines[0], "# tollbooth recall: id, days, due, asked")
    return {a: (int(b), c, int(d)) for a, b, c, d in
            (line.split("\t") for line in lines[1:])}


def review(t, day, grades, *ids):
    return t.run("recall", *ids, "--progress", "p.txt", "--today", day, rc=0,
                 stdin=answers(*grades)).out


@test
def recall_calendar(t):
    """again, hard, good, easy: 0, 1, 1, 4 days, then 0, as many, twice, four
    times as many, 365 at most."""
    card = "recall-eps"
    for day, grade, interval, due in (
            ("2024-02-27", "3", 1, "2024-02-28"), ("2024-02-28", "3", 2, "2024-03-01"),
            ("2024-03-01", "4", 8, "2024-03-09"), ("2024-12-30", "2", 8, "2025-01-07"),
            ("2025-01-07", "4", 32, "2025-02-08"), ("2025-02-08", "4", 128, "2025-06-16"),
            ("2025-06-16", "4", 365, "2026-06-16"), ("2026-06-16", "13", 1, "2026-06-17")):
        t.has(review(t, day, grade, card), "cards left: 0")
        t.eq(kept(t)[card][:2], (interval, due), day)
        t.has(review(t, day, "", card), "nothing is due until " + due)
    t.eq(kept(t)[card][2], 9)
    for i, grade in enumerate("1234"):
        review(t, "2100-02-28", grade + "q", cards(t)[i]["id"])
    t.eq([kept(t)[c["id"]][1] for c in cards(t)[:4]],
         ["2100-02-28", "2100-03-01", "2100-03-01", "2100-03-04"])
    t.has(review(t, "2100-03-02", "", "--deck", "recall"), "cards left: 5")


@test
def recall_calendar_keeps_what_it_does_not_know(t):
    line = "other-card\t3\t2026-12-01\t2"
    t.write("p.txt", "# tollbooth recall: id, days, due, asked\n%s\n" % line)
    review(t, "2026-12-01", "3", "recall-eps")
    t.eq(kept(t), {"other-card": (3, "2026-12-01", 2),
                   "recall-eps": (1, "2026-12-02", 1)})


@test
def recall_calendar_refuses(t):
    head = "# tollbooth recall: id, days, due, asked\n"
    for text, where in (("", ":1:"), ("my diary\n", ":1:"),
                        (head + "recall-eps\t1\n", ":2:"),
                        (head + "recall-eps\t1\t2026-13-01\t1\n", ":2:"),
                        (head + "recall-eps\t1\t2026-02-29\t1\n", ":2:"),
                        (head + "recall-eps\t-1\t2026-12-01\t1\n", ":2:"),
                        (head + "recall-eps\t400\t2026-12-01\t1\n", ":2:"),
                        (head + "recall-eps\t1\t2026-12-01\t1\tx\n", ":2:")):
        path = t.write("p.txt", text)
        r = t.run("recall", "--progress", path, rc=3, stdin=answers("3"))
        t.has(r.err, path + where, "got ", "wanted ")
        with open(path) as f:
            t.eq(f.read(), text, "was written to")
    for day in ("2026-02-29", "2026-2-1", "tomorrow", "2026-12-01 ", "1969-12-31"):
        t.has(t.run("recall", "--today", day, rc=2).err,
              "--today: got %s, wanted a date" % day)
    t.has(t.run("recall", "--progress", t.path("no", "such", "file"), rc=5,
                stdin=answers("3")).err, "No such file")


# --- other programs --------------------------------------------------------

@test
def recall_round_trip(t):
    """Out, in and out again: the same bytes, in both formats, both ways."""
    for name in ("anki", "obsidian"):
        for two_way in ([], ["--two-way"]):
            first = t.run("recall", "--export", name, *two_way, rc=0)
            t.write("cards", first.raw)
            r = t.run("recall", "--import", "cards", "--export", name, "--out",
                      "again", rc=0)
            t.eq(r.out, "")
            t.has(r.err, "24 cards for %s in again" % name)
            with open(t.path("again"), "rb") as f:
                t.eq(f.read(), first.raw)
            os.remove(t.path("again"))
            doc = t.run("recall", "--import", "cards", "--check", "--json",
                        rc=0).json()
            t.eq((doc["format"], doc["two_way"], doc["missing"]),
                 (name, bool(two_way), []))
            t.eq([(n["id"], n["is"]) for n in doc["notes"]],
                 [(c["id"], "same") for c in cards(t)])
            other = "anki" if name == "obsidian" else "obsidian"
            t.eq(t.run("recall", "--import", "cards", "--export", other, rc=0).raw,
                 t.run("recall", "--export", other, *two_way, rc=0).raw)


@test
def recall_anki(t):
    lines = t.run("recall", "--export", "anki", "--deck", "inline", rc=0
                  ).out.splitlines()
    t.eq(lines[:8], ["#separator:tab", "#html:true", "#notetype:Basic",
                     "#deck:tollbooth::residual", "#columns:Front\tBack\tGUID\tTags",
                     "#guid column:3", "#tags column:4",
                     "#if matches:update current"])
    rows = [line.split("\t") for line in lines[8:]]
    t.eq([r[2] for r in rows], [c["id"] for c in cards(t, "--deck", "inline")])
    t.eq({r[3] for r in rows}, {"tollbooth::inline"})
    whole = t.run("recall", "--export", "anki", rc=0).out
    t.has(whole, "\\(\\sqrt{\\sigma^2 + \\epsilon}\\)", "\\(\\epsilon &gt; 0\\)")
    t.ok("$" not in whole)


@test
def recall_obsidian(t):
    out = t.run("recall", "--export", "obsidian", rc=0).out
    lines = [line for line in out.splitlines() if line]
    t.eq([line for line in lines if line[0] == "#"],
         ["#flashcards/tollbooth/" + d for d in ("recall", "inline", "checklist")])
    for line in lines:
        if line[0] != "#":
            t.eq((line.count("::"), line.count(":::")), (1, 0), line)
            t.ok(line.count("$") % 2 == 0 and " ^" in line, line)
    two = t.run("recall", "--export", "obsidian", "--two-way", rc=0).out
    t.eq(two.replace(":::", "::"), out)
    t.run("recall", "--export", "obsidian", "--out", "note.md", rc=0)
    t.run("recall", "--export", "obsidian", "--out", "note.md", rc=0)
    with open(t.path("note.md"), "a", encoding="utf-8") as f:
        f.write("<!--SR:!2026-12-01,3,250-->\n")
    r = t.run("recall", "--export", "obsidian", "--out", "note.md", rc=3)
    t.has(r.err, "note.md", "wanted a new file", "schedule")
    t.has(t.run("recall", "--import", "note.md", "--check", rc=0).out,
          "lines with a schedule: 1", "24 same, 0 changed, 0 unknown; 0 missing")
    t.run("recall", "--export", "anki", "--out", "note.txt", rc=0)
    t.run("recall", "--export", "anki", "--two-way", "--out", "note.txt", rc=0)


@test
def recall_import_differences(t):
    text = t.run("recall", "--export", "anki", "--deck", "recall", rc=0).out
    text = text.replace("raw", "cooked").replace("\trecall-warmup\t", "\tmine\t")
    t.write("cards", text)
    r = t.run("recall", "--import", "cards", rc=0)
    t.has(r.out, "changed    11  recall-pre-ln", "unknown    14  mine",
          "missing     -  recall-warmup",
          "anki, 6 cards: 4 same, 1 changed, 1 unknown; 19 missing")
    t.run("recall", "--import", "cards", "--check", rc=1)
    t.write("bad", "a::b\nc::d::e\n")
    t.has(t.run("recall", "--import", "bad", rc=3).err,
          "bad:2: got a second separator in the line, wanted one card a line")
    t.has(t.run("recall", "--import", "none", rc=3).err, "none")
    t.write("escape", "a\x1b[31m::b ^x\n")
    t.ok(b"\x1b" not in t.run("recall", "--import", "escape", rc=0).raw)


@test
def recall_words_alone(t):
    t.has(t.run("recall", "--out", "x", rc=2).err, "got --out alone, wanted --export")
    t.has(t.run("recall", "--two-way", rc=2).err, "got --two-way alone")
    t.has(t.run("recall", "--import", "x", "--progress", "y", rc=2).err,
          "got --import and --progress")


@test
def recall_docs(t):
    """Every command of docs/recall.md prints what stands there, after one
    answer "good"."""
    with open(os.path.join(ROOT, "docs", "recall.md"), encoding="utf-8") as f:
        text = f.read()
    shown = re.findall(r"```\n\$ tollbooth (.*)\n((?:.*\n)*?)```\n", text)
    t.eq(len(shown), text.count("$ tollbooth"))
    t.ok(len(shown) >= 8)
    for line, output in shown:
        r = t.run(*shlex.split(line), env={"COLUMNS": "80"}, rc=0,
                  stdin=answers("3"))
        t.eq(r.out, output, line)


alone(__name__)
