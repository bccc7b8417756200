# SPDX-License-Identifier: MIT
"""docs/claims.md: every command runs and gives the bold numbers, every verdict
is one of its words, every test that it names is there."""

import glob
import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tb_cli  # noqa: E402
from tb_cli import ROOT, alone, test  # noqa: E402

Z = [2, 4, 4, 4, 5, 5, 7, 9]


def rows():
    """{id: (claim, verdict, command, gives, files)}"""
    out = {}
    with open(os.path.join(ROOT, "docs", "claims.md"), encoding="utf-8") as f:
        for line in f:
            cells = [c.strip() for c in line.strip()[1:-1].split("|")]
            if len(cells) == 6 and re.fullmatch(r"F?\d[a-z]", cells[0]):
                out[cells[0]] = cells[1:]
    return out


# --- what is read off a result ----------------------------------------------

def gap(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def gain(j):
    """Largest singular value, by powers of J'J."""
    n, v, size = len(j[0]), [1.0 + k * k for k in range(len(j[0]))], 0
    for _ in range(200):
        length = sum(x * x for x in v) ** 0.5
        if length == 0:
            return 0
        v = [x / length for x in v]
        w = [sum(r[k] * v[k] for k in range(n)) for r in j]
        size = sum(x * x for x in w) ** 0.5
        v = [sum(j[i][k] * w[i] for i in range(len(j))) for k in range(n)]
    return size


def from_identity(d):
    j = d["jacobian"]
    return max(abs(j[i][k] - (i == k)) for i in range(len(j))
               for k in range(len(j)))


def largest(d):
    return max(abs(x) for row in d["jacobian"] for x in row)


def between_tokens(d):
    j = d["jacobian"]
    return max(abs(j[i][k]) for i in range(6) for k in range(6) if i // 3 != k // 3)


def stem(d, i=0):
    return d["runs"][i]["sublayers"][0]


def ends(d, key, i=0):
    """The least and the most of all rows; of tolls, without the stem."""
    values = [r[key] for r in d["runs"][i]["sublayers"]]
    values = values[1:] if key == "toll" else values
    return [min(values), max(values)]


def split(d):
    s = stem(d)
    whole = s["lane"] ** 2 + s["branch"] ** 2 + 2 * s["lane"] * s["branch"] * s["cos"]
    if abs(whole ** 0.5 - s["total"]) > 1e-5 * s["total"]:
        raise tb_cli.Fail("lane and branch do not add up: %s" % s)
    return [s["lane"], s["branch"], s["cos"], s["total"]]


def lane_of(d, name):
    return [b["lane"] for b in d["blocks"] if b["name"] == name][0]


def batchnorm(d):
    series = d["panels"][0]["series"][0]["y"]
    return [series[0], series[3]]


def spread(d):
    return [max(abs(y[0]) for y in d["y"])] + [y[1] ** 0.5 for y in d["y"]]


READ = {  # by row; what is not here is a card
    "1a": lambda d: [len(d["y"])],
    "1b": lambda d: [" ".join(r["name"] for r in d["runs"][0]["sublayers"]
                              if r["role"] == "decoder" and r["layer"])],
    "1c": lambda d: [gap(d["y"], [0] * 8)],
    "2a": lambda d: [" ".join("%g" % y for y in d["y"])],
    "2b": lambda d: [r["sublayers"][1]["branch_ratio"] for r in d["runs"]],
    "2c": lambda d: [gap(d["y"], Z)],
    "2d": lambda d: [gap(d["grad"]["x"], range(1, 9))],
    "3a": lambda d: [d["numeric"]["error"]],
    "3b": lambda d: [d["jacobian"]["text"]],
    "3c": lambda d: [from_identity(d)],
    "3d": lambda d: [d["jacobian"][0][0], d["jacobian"][1][1]],
    "3e": lambda d: [from_identity(d)],
    "3f": lambda d: [largest(d)],
    "3g": lambda d: [d["numeric"]["against"]["backward"]],
    "4a": spread,
    "4d": lambda d: [gap(d["y"], [0] * 4), gain(d["jacobian"])],
    "4f": lambda d: [gap(d["y"], [0] * 8)],
    "4g": lambda d: [gap(d["y"], [0] * 8)],
    "4h": lambda d: [between_tokens(d)],
    "4i": batchnorm,
    "5a": lambda d: [d["lane"]["tolls_per_block"]],
    "5b": lambda d: [d["jacobian"]["text"]],
    "5c": lambda d: [stem(d)["lane"], stem(d)["total"]],
    "5d": lambda d: [gain(j) for j in d["jacobian"]],
    "5e": lambda d: ends(d, "toll"),
    "5f": lambda d: [gap(d["grad"]["x"], [0] * 8)],
    "5g": lambda d: ends(d, "lane") + ends(d, "total"),
    "6a": lambda d: [gap(d["y"], Z)],
    "6b": lambda d: [d["jacobian"]["text"]],
    "6c": lambda d: [d["lane"]["kind"], d["lane"]["tolls_per_block"],
                     str(d["lane"]["final_toll"]).lower()],
    "6d": lambda d: ends(d, "lane"),
    "6e": lambda d: [stem(d)["lane"], stem(d)["total"], ends(d, "total")[0]],
    "6f": lambda d: [stem(d)["total"], stem(d)["std_x"],
                     d["runs"][0]["sublayers"][-1]["std_x"]],
    "6g": lambda d: ends(d, "lane"),
    "7a": lambda d: [gain(d["jacobian"])],
    "7b": lambda d: [from_identity(d)],
    "7c": lambda d: [gain(d["jacobian"])],
    "7d": lambda d: [gain(d["jacobian"])],
    "7f": lambda d: ends(d, "toll") + [stem(d)["lane"], stem(d)["total"]],
    "7g": lambda d: [n["value"] for n in d["numbers"] if n["id"].startswith("E15")],
    "7h": lambda d: [stem(d)["lane"], stem(d)["total"]],
    "7i": lambda d: [stem(d, i)["lane"] for i in range(4)],
    "7j": lambda d: [stem(d)["lane"]],
    "7k": lambda d: [stem(d, i)[key] for key in ("lane", "total") for i in (0, 1)],
    "8a": lambda d: [lane_of(d, "post-ln"), lane_of(d, "pre-ln")],
    "8c": split,
    "8d": lambda d: [stem(d, 0)["total"], stem(d, 1)["total"]],
    "8e": lambda d: [gain(j) for j in d["jacobian"]],
    "8j": lambda d: [d["corners"]["zero_branch"]],
    "9f": lambda d: [],
    "F2a": lambda d: [d["block"]["text"].strip()],
    "F3b": lambda d: [d["lane"]["kind"]],
    "F4a": lambda d: d["y"],
    "F5a": lambda d: d["y"],
    "F5d": lambda d: [len(d["grad"]["layernorm.gain"]),
                      len(d["grad"]["layernorm.bias"])],
    "F5h": lambda d: d["y"][:1],
    "F6a": lambda d: [f["code"] for f in d["lint"]],
    "F6e": lambda d: [int(c["text"].split()[0]) for c in d["checks"]
                      if c["ok"] and "arrows" in c["text"]],
    "F7a": lambda d: [" ".join("%g" % v for v in d["cards"][0]["proof"]["value"])],
    "F7b": lambda d: [sum(c["proof"]["ok"] for c in d["cards"]), len(d["cards"])],
}


def proved(d):
    """Of `recall --prove ID`."""
    v = d["cards"][0]["proof"]["value"]
    return v if isinstance(v, list) else [v]


def given(t, key, command):
    words = shlex.split(command)
    if words.pop(0) != "tollbooth":
        raise tb_cli.Fail("%s: %s" % (key, command))
    if key == "7e":  # a refusal
        r = t.run(*words)
        t.has(r.err, "zero variance with eps = 0")
        return [r.rc]
    words += [] if "--json" in words else ["--json"]
    d = t.run(*words, rc=0).json()
    return READ.get(key, proved)(d)


# --- comparing ---------------------------------------------------------------

def rounds_to(value, text):
    """A whole number is meant exactly; of others the last digit may be off by
    a little more than rounding, for products that differ in their last bits."""
    mantissa, _, power = text.partition("e")
    if "." not in mantissa and not power:
        return abs(value - int(text)) <= 1e-9 * abs(int(text))
    digits = len(mantissa.partition(".")[2])
    return abs(value - float(text)) <= 0.6 * 10.0 ** (int(power or 0) - digits)


def check(t, key, shown, got):
    bold = re.findall(r"(≤ )?\*\*(.+?)\*\*", shown)
    t.eq(len(bold), len(got), key, shown)
    for (bound, text), value in zip(bold, got):
        if isinstance(value, str):
            t.eq(text.strip("`"), value, key)
        elif bound:
            t.ok(value <= float(text), key, value, "above", text)
        else:
            t.ok(rounds_to(value, text), key, "shows", text, "got", value)


@test
def claims_commands_give_the_numbers(t):
    seen = 0
    for key, (_, _, command, gives, _) in rows().items():
        if command == "—":
            t.ok("**" not in gives, key)
            continue
        check(t, key, gives, given(t, key, command.strip("`")))
        seen += 1
    t.ok(seen >= 60, seen, "commands")
    t.eq(sorted(set(READ) - set(rows())), [], "read, not there")


@test
def claims_have_verdicts_and_tests(t):
    files = {os.path.basename(p) for p in
             glob.glob(os.path.join(ROOT, "tests", "**", "test_*"), recursive=True)}
    with open(os.path.join(ROOT, "docs", "claims.md"), encoding="utf-8") as f:
        text = f.read()
    words = re.findall(r"^\| ([a-z ]+) \| ", text.split("|---|---|\n")[1]
                       .split("\n\n")[0] + "\n", re.M)
    t.eq(words, ["true", "lane", "total", "condition", "false as drawn",
                 "not computed"])
    table = rows()
    t.ok(len(table) >= 70, len(table), "claims")
    for key, (claim, verdict, command, gives, held) in table.items():
        t.ok(claim and re.match("|".join(words), verdict), key, verdict)
        named = re.findall(r"`(\S+)`", held)
        t.ok(named or verdict == "not computed", key, "names no test")
        for name in named:
            t.ok(name in files, key, "names", name, "which is not there")
    t.eq(sorted(re.findall(r"`(test_\S+)`", text)),
         sorted(n for r in table.values() for n in
                re.findall(r"`(test_\S+)`", r[4])))


@test
def claims_check_can_fail(t):
    """A digit changed is found."""
    check(t, "x", "**2.24** and **`a`**, ≤ **1e-3**", [2.2378, "a", 1e-4])
    for shown, got in (("**2.25**", 2.2378), ("**0**", 1e-9), ("≤ **1e-3**", 0.1),
                       ("**`a`**", "b"), ("**1**", 2), ("**1**", 0.9999),
                       ("**0.5**", 0.43), ("**8.05e-12**", 8.2e-12)):
        try:
            check(t, "x", shown, [got])
        except tb_cli.Fail:
            continue
        raise tb_cli.Fail("%s passes for %r" % (shown, got))


alone(__name__)
