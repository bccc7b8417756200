# SPDX-License-Identifier: MIT
"""docs/json.md against what the commands print: every key is documented, every
documented key is printed by some command here, and the types are right."""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tb_cli  # noqa: E402
from tb_cli import ROOT, alone, story, test  # noqa: E402

TINY = ("--width", "16", "--heads", "2", "--context", "16", "--batch", "2")


def documented():
    """{section: {path: type}}"""
    sections, name = {}, None
    with open(os.path.join(ROOT, "docs", "json.md"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("## "):
                name = line[3:].strip()
                sections[name] = {}
            row = re.match(r"\| `([^`]+)` \| ([^|]+) \|", line)
            if row and name:
                sections[name][row.group(1)] = row.group(2).strip()
    return sections


def nested_numbers(v):
    if isinstance(v, list):
        return all(nested_numbers(x) for x in v)
    return isinstance(v, (int, float)) and not isinstance(v, bool) or \
        v in ("nan", "inf", "-inf")


def nested_texts(v):
    return isinstance(v, list) and all(isinstance(x, str) or nested_texts(x)
                                       for x in v)


IS = {
    "texts": nested_texts,
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: not isinstance(v, list) and nested_numbers(v),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "object": lambda v: isinstance(v, dict),
    "list": lambda v: isinstance(v, list) and nested_numbers(v),
    "nested": nested_numbers,
    "strings": lambda v: isinstance(v, list) and all(isinstance(x, str) for x in v),
}


def walk(value, path, out):
    """[(path, value)] of everything in the object."""
    if isinstance(value, dict):
        for key, v in value.items():
            here = path + "." + key if path else key
            if isinstance(v, list) and (not v or isinstance(v[0], dict)):
                for x in v:
                    out.append((here + "[]", x))
                    walk(x, here + "[]", out)
                if not v:
                    out.append((here + "[]", {}))
            else:
                out.append((here, v))
                walk(v, here, out)
    return out


def compare_with(t, section, objects, skip=(), rare=()):
    """rare: may be documented without being printed here."""
    types = documented()[section]
    t.ok(types, "docs/json.md has no section", section)
    stars = [p[:-1] for p in types if p.endswith(".*")]
    seen = set()
    for o in objects:
        for path, value in walk(o, "", []):
            if any(path.startswith(s) for s in skip):
                continue
            for star in stars:
                if path.startswith(star):
                    path = star + "*"
            if path not in types and path.endswith("[]") and path[:-2] in types:
                path = path[:-2]  # an empty list of numbers
                value = []
            t.ok(path in types, section, "prints", path, "- not in docs/json.md")
            kinds = types[path].replace(", optional", "").split(" or ")
            t.ok(any(IS[k](value) for k in kinds), section, path, "is",
                 repr(value)[:80], "- docs/json.md says", types[path])
            seen.add(path)
    t.eq(sorted(set(types) - seen - set(rare)), [], "documented under %s, not printed" % section)
    for path, kind in types.items():
        if "optional" in kind:
            continue
        for o in objects:  # what is not optional is always there
            if "." not in path and "[" not in path:
                t.ok(path in o, section, "lacks", path)


@test
def json_eval(t):
    objects = [t.run("eval", *words, "--json").json() for words in (
        ["norm(x)", "--set", "x=[1,2]"],
        ["norm(x) + relu(norm(x))", "--set", "x=[[1,2],[3,5]]", "--grad",
         "[[1,2],[3,4]]", "--tangent", "x=[[1,2],[3,4]]", "--jacobian", "x"],
        ["attn(x)", "--set", "x=[1,2]", "--set", "attn.o=[[1,2],[3,4]]", "--grad",
         "[1,2]", "--jacobian", "x", "--blocks"],
        ["batchnorm(x)", "--set", "x=[[1,2],[3,5]]"],
        ["mha(x, x, x, hide=m)", "--set", "x=[[1],[2]]", "--set", "m=[[1],[1]]"],
        ["norm(x)", "--set", 'x=[[1,"nan"],[3,5]]', "--grad", "[[1,2],[3,4]]"])]
    compare_with(t, "eval", objects)


@test
def json_explain(t):
    names = [b["name"] for b in t.run("blocks", "--json").json()["blocks"]]
    texts = ["x = norm(x); x = x + F(x)", "x = F(norm(x))",
             "block[l <= 2]: x = norm(x + F(x))\nblock: x = x + F(norm(x))",
             "x = x + 0.5*F(norm(x))", "g = scalar(1); x = g*x + F(norm(x))",
             "x = x + F(batchnorm(x))"]
    objects = [t.run("explain", b, "--json", rc=0).json() for b in names + texts]
    objects.append(t.run("explain", "pre-ln", "--numeric", "--json", rc=0).json())
    objects.append(t.run("explain", "post-ln", "--stack", "encoder-decoder",
                         "--json", rc=0).json())
    compare_with(t, "explain", objects)


@test
def json_lint(t):
    compare_with(t, "lint", [t.run("lint", *what, "--json", rc=0).json() for what in (
        ["x = F(x)", "output-norm"], ["x = x + scalar(0)*F(x)"],
        ["expect: no-skip\nblock: x = norm(x + F(x))"])])


@test
def json_export(t):
    compare_with(t, "export", [
        t.run("export", *what, "--json", rc=rc).json() for rc, *what in (
            (0, "--to", "pytorch", "pre-ln"), (0, "--to", "marian", "pre-ln"),
            (3, "--to", "fairseq", "deepnorm"),
            (3, "--to", "tensor2tensor", "pre-ln-no-final"),
            (0, "--from", "marian", "pre=n post=da top=n"))])


@test
def json_blocks(t):
    compare_with(t, "blocks", [t.run("blocks", "--json").json()])


@test
def json_picture(t):
    shots = t.run("picture", "--list", "--json").json()
    compare_with(t, "picture --list", [shots])
    cards = [("S7", "--set", "card=" + c) for c in "abcdef"]
    compare_with(t, "picture", [
        t.run("picture", *s, "--json").json()
        for s in [(s["name"],) for s in shots["shots"]] + cards])
    t.run("picture", "S7", "--set", "sigma=0,eps=0", rc=3)
    compare_with(t, "picture --format scene", [
        t.run("picture", s["name"], "--format", "scene").json()
        for s in shots["shots"]], rare=["items[]." + k for k in (
            "round", "alpha", "italic", "mono")])


@test
def json_recall(t):
    compare_with(t, "recall", [t.run("recall", "--json", rc=0).json()])
    t.write("note.md", "a::b\n#flashcards/x\nc::d ^recall-eps\n")
    compare_with(t, "recall --import", [
        t.run("recall", "--import", "note.md", "--json", rc=0).json()])


@test
def json_flow(t):
    compare_with(t, "flow", [t.run("flow", *words, "--json").json() for words in (
        ["pre-ln", "post-ln", "no-skip", "parallel", "--depth", "2", "--width",
         "16", "--heads", "2", "--tokens", "8"],
        ["pre-ln", "--depth", "1", "--width", "16", "--heads", "2", "--tokens", "8",
         "--spectrum", "--weights", "--what-if", "--alpha", "--dtype", "f64"],
        ["pre-ln", "--stack", "encoder-decoder", "--depth", "1", "--width", "16",
         "--heads", "2", "--tokens", "8", "--audit"])])


@test
def json_train(t):
    t.write("book.txt", story(400))
    t.write("labels.tsv", "a\tfirst\nb\tsecond\n")
    line = ("train", "pre-ln", "--text", "book.txt", "--depth", "1", "--json",
            *TINY)
    runs = [t.run(*line, "--steps", "4", "--val-every", "2", "--out", "run",
                  "--profile").lines(),
            t.run(*line, "--steps", "3", "--lr", "1e28", "--init",
                  "*: normal(0.02)", rc=4).lines(),
            t.run("train", "pre-ln", "--source", "book.txt", "--target",
                  "book.txt", "--depth", "1", "--json", *TINY, "--context",
                  "128", "--steps", "2", "--out", "pairs", rc=0).lines(),
            t.run("train", "pre-ln", "--stack", "encoder", "--text", "book.txt",
                  "--depth", "1", "--json", *TINY, "--context", "4", "--steps",
                  "9", rc=0).lines(),
            t.run("train", "pre-ln", "--stack", "encoder", "--task", "classify",
                  "--text", "labels.tsv", "--depth", "1", "--json", *TINY,
                  "--steps", "2", rc=0).lines()]
    compare_with(t, "train: the first line", [r[0] for r in runs])
    compare_with(t, "train: a line per update", [x for r in runs for x in r[1:-1]])
    compare_with(t, "train: the last line", [r[-1] for r in runs])
    compare_with(t, "score", [
        t.run("score", "run", "--text", "book.txt", "--json", rc=0).json(),
        t.run("score", "pairs", "--source", "book.txt", "--target", "book.txt",
              "--json", rc=0).json()])
    compare_with(t, "translate", [t.run("translate", "pairs", "--text", "book.txt",
                                        "--json", rc=0).json()])


@test
def json_compare(t):
    t.write("book.txt", story(400))
    line = ("compare", "pre-ln", "post-ln", "--text", "book.txt", "--depth", "1",
            "--steps", "4", "--json", *TINY)
    objects = [t.run(*line, rc=0).json(), t.run(*line, "--lr", "1e6", rc=0).json()]
    compare_with(t, "compare", objects, skip=("runs[].flow.",))
    compare_with(t, "flow", [{"tollbooth": "", "runs": [r["flow"]]}
                             for r in objects[0]["runs"]] + [
        t.run("flow", "pre-ln", "--depth", "1", "--spectrum", "--alpha",
              "--tokens", "8", "--weights", "--what-if", "--json").json(),
        t.run("flow", "pre-ln", "--depth", "1", "--stack", "encoder-decoder",
              "--audit", "--tokens", "8", "--json").json()])


@test
def json_report(t):
    t.write("book.txt", story(400))
    t.run("train", "pre-ln", "--text", "book.txt", "--depth", "1", *TINY,
          "--steps", "4", "--val-every", "2", "--out", "run", rc=0)
    t.run("train", "pre-ln", "--text", "book.txt", "--depth", "1", *TINY,
          "--steps", "3", "--lr", "1e28", "--init", "*: normal(0.02)", "--out",
          "bad", rc=4)
    t.write("flow.json", t.run("flow", "post-ln", "--depth", "1", "--tokens", "8",
                               "--json").out)
    objects = [t.run("report", *runs, "--json", rc=0).json() for runs in (
        ["run", "flow.json"], ["bad/log.jsonl"])]
    compare_with(t, "report", objects, skip=("runs[].flow.",))
    compare_with(t, "flow", [{"tollbooth": "", "runs": [r["flow"]]}
                             for r in objects[0]["runs"]] + [
        t.run("flow", "pre-ln", "--depth", "1", "--spectrum", "--alpha",
              "--tokens", "8", "--weights", "--what-if", "--json").json(),
        t.run("flow", "pre-ln", "--depth", "1", "--stack", "encoder-decoder",
              "--audit", "--tokens", "8", "--json").json()])


@test
def json_bench(t):
    compare_with(t, "bench", [t.run("bench", "norm:8x16:fwd", "attn:1x4x2x4:bwd",
                                    "step:L1d8T4B2V5:bf16", "--rounds", "1",
                                    "--json", rc=0).json()])


@test
def json_exit_codes(t):
    """The table of docs/json.md is the list in the public header."""
    with open(os.path.join(ROOT, "include", "tollbooth", "base.h")) as f:
        codes = set(re.findall(r"^    X\(\w+, (\d+), ", f.read(), re.M))
    with open(os.path.join(ROOT, "docs", "json.md"), encoding="utf-8") as f:
        said = set(re.findall(r"^\| (\d+) \|", f.read(), re.M))
    t.eq(sorted(said), sorted(codes))


@test
def json_version_first(t):
    t.write("book.txt", story(400))
    version = t.run("--version").out.split()[1]
    for line in (["blocks"], ["recall", "recall-eps"], ["explain", "pre-ln"], ["lint", "pre-ln"],
                 ["eval", "1*x", "--set", "x=[1]"],
                 ["flow", "pre-ln", "--depth", "1"],
                 ["bench", "norm:4x8:fwd"],
                 ["train", "pre-ln", "--text", "book.txt", "--depth", "1",
                  "--steps", "1", *TINY],
                 ["compare", "pre-ln", "--text", "book.txt", "--depth", "1",
                  "--steps", "1", *TINY]):
        out = t.run(*line, "--json", rc=0).out.splitlines()[0]
        t.ok(out.startswith('{"tollbooth":"%s",' % version), out[:60])


@test
def json_every_command_is_documented(t):
    have = " ".join(documented())
    for command in tb_cli.commands():
        if "json" in [n for n, _ in tb_cli.options(command)]:
            t.has(have, command)


alone(__name__)
