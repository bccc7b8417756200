# SPDX-License-Identifier: MIT
"""The recall cards: what they claim, by the command each proof names; lists,
choices, JSON."""

import math
import os
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, test  # noqa: E402

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


alone(__name__)
