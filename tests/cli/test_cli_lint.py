# SPDX-License-Identifier: MIT
"""tollbooth lint: levels and exit codes, folders, carets, JSON, errors."""

import os
import re
import shlex
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import ROOT, alone, test  # noqa: E402

CLEAN = "x = x + F(norm(x)); final: x = norm(x)"
NOTE = "a = scalar(0); x = x + a*F(x)"
WARN = "x = x + F(norm(x))"
FAIL = "x = F(x)"
REPORTS = os.path.join(ROOT, "tests", "golden", "lint")


def lint(t, *what):
    return t.run("lint", *what, "--json", rc=0).json()["lint"]


def codes(t, *what):
    return [f["code"] for f in lint(t, *what)]


@test
def lint_exit_codes(t):
    for block, check, strict in ((CLEAN, 0, 0), (NOTE, 0, 0), (WARN, 0, 1),
                                 (FAIL, 1, 1)):
        for more in ([], ["--json"]):
            t.run("lint", block, *more, rc=0)
            t.run("lint", block, "--check", *more, rc=check)
            t.run("lint", block, "--strict", *more, rc=strict)
            t.run("lint", block, "--strict", "--check", *more, rc=strict)
    t.run("lint", CLEAN, FAIL, WARN, "--check", rc=1)


@test
def lint_text(t):
    r = t.run("lint", WARN, rc=0)
    lines = r.out.splitlines()
    t.has(lines[0], "1:7: warn no-final-norm: ")
    t.eq(lines[1:3], ["    " + WARN, " " * 10 + "^"])
    t.has(lines[3], "    fix: add final: x = norm(x)")
    t.has(lines[4], "    source: ")
    t.eq(len(lines), 5)
    t.eq(r.err, "1 block: 0 fail, 1 warn, 0 note\n")
    t.eq(t.run("lint", CLEAN, rc=0).out, "")


@test
def lint_files_by_path(t):
    path = t.write("my.block", "# mine\n\nblock:\n    x = F(x)\n")
    for given in (path, "my.block"):
        t.has(t.run("lint", given, rc=0).out, given + ":4:9: fail no-skip: ")
        t.eq([f["block"] for f in lint(t, given)], [given])
    t.eq([f["block"] for f in lint(t, FAIL)], [None])
    t.eq([f["block"] for f in lint(t, "output-norm")], ["output-norm"])


@test
def lint_json(t):
    for f in lint(t, WARN, NOTE, FAIL, "no-skip"):
        t.eq(sorted(f), ["block", "code", "column", "fix", "level", "line",
                         "message", "source"])
        t.ok(f["line"] >= 1 and f["column"] >= 1, f)
        t.ok(f["level"] in ("note", "warn", "fail"), f)
    t.eq(t.run("lint", CLEAN, "--json", rc=0).json()["lint"], [])


@test
def lint_agrees_with_explain(t):
    for block in (CLEAN, NOTE, WARN, FAIL, "output-norm", "sandwich"):
        same = [{k: v for k, v in f.items() if k != "block"}
                for f in lint(t, block, "--depth", "12")]
        t.eq(t.run("explain", block, "--depth", "12", "--json").json()["lint"],
             same)
        text = t.run("explain", block, rc=0).out
        t.has(text, *[f["code"] for f in same])


@test
def lint_folder(t):
    os.makedirs(t.path("sub", "deeper"))
    os.makedirs(t.path(".hidden"))
    t.write("b.block", FAIL)
    t.write("a.block", WARN)
    t.write("c.txt", "no block at all")
    t.write(os.path.join("sub", "deeper", "z.block"), WARN)
    t.write(os.path.join(".hidden", "h.block"), FAIL)
    os.symlink("..", t.path("sub", "up"))
    for folder in (".", "./"):
        found = [f["block"] for f in lint(t, folder)]
        t.eq(found, ["./a.block", "./b.block", "./sub/deeper/z.block"])
    t.has(t.run("lint", ".", rc=0).err, "3 blocks: 1 fail, 2 warn, 0 note")
    os.makedirs(t.path("empty"))
    t.has(t.run("lint", "empty", rc=0).err, "0 blocks: ")


@test
def lint_errors_come_last(t):
    """A text that cannot be read is said, and the others are looked at."""
    t.write("a.block", "x = x + (\n")
    t.write("b.block", FAIL)
    for more in ([], ["--check"], ["--strict"]):
        r = t.run("lint", ".", *more, rc=3)
        t.has(r.err, "tollbooth: ./a.block:2:1: expected a value", "^")
        t.has(r.out, "./b.block:1:5: fail no-skip")
    d = t.run("lint", ".", "--json", rc=3).json()
    t.eq([f["block"] for f in d["lint"]], ["./b.block"])
    t.has(t.run("lint", "pre-nl", FAIL, rc=3).err, "did you mean 'pre-ln'?")
    t.has(t.run("lint", "x = x + G(x)", rc=3).err, "unknown function G")
    t.has(t.run("lint", "/nowhere/at.all", rc=3).err, "/nowhere/at.all")


@test
def lint_unreadable_folder(t):
    os.makedirs(t.path("locked"))
    os.chmod(t.path("locked"), 0)
    try:
        if not os.access(t.path("locked"), os.R_OK):  # root reads everything
            t.has(t.run("lint", "locked", rc=3).err, "locked: cannot be read")
    finally:
        os.chmod(t.path("locked"), 0o700)


@test
def lint_settings(t):
    t.eq(codes(t, "post-ln"), [])
    t.eq(codes(t, "post-ln", "--depth", "24"), ["post-ln-deep"])
    t.eq(codes(t, "post-ln", "--eps", "0"), ["eps-zero"])
    t.eq(codes(t, "pre-ln", "--tied"), ["tied-scale"])
    t.eq(codes(t, "pre-ln", "--tied", "--init", "embed.*: normal(0.02)"), [])
    r = t.run("lint", "x = norm(drop(x + F(x)))", "--dropout", "0.5", rc=0)
    t.has(r.out, "at rate 0.5 a feature of x survives 6 blocks with "
                 "probability 0.000244")
    t.run("lint", "pre-ln", "--width", "65", rc=2)


@test
def lint_expect(t):
    f = lint(t, "expect: no-skip\nblock: x = F(x)")
    t.eq([(x["code"], x["level"]) for x in f], [("no-skip", "note")])
    t.run("lint", "expect: no-skip\nblock: x = F(x)", "--strict", rc=0)
    f = lint(t, "expect: no-skip\nblock: x = norm(x + F(x))")
    t.eq([(x["code"], x["level"]) for x in f], [("expect-unmet", "note")])


@test
def lint_built_ins(t):
    """Findings above a note that belong to a placement are expected by it."""
    t.run("lint", os.path.join(ROOT, "blocks"), "--strict", rc=0)


@test
def lint_reports(t):
    """Every bug of tests/golden/lint is found, and docs/lint.md tells as what."""
    with open(os.path.join(ROOT, "docs", "lint.md"), encoding="utf-8") as f:
        docs = f.read()
    for name in sorted(os.listdir(REPORTS)):
        path = os.path.join(REPORTS, name)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        wanted = re.search("^# lint: (.*)$", text, re.M).group(1).split()
        depth = re.search("^# depth: (.*)$", text, re.M)
        stack = re.search("^# stack: (.*)$", text, re.M)
        got = codes(t, path, *(["--depth", depth.group(1)] if depth else []),
                    *(["--stack", stack.group(1)] if stack else []))
        t.eq(sorted(set(got)), sorted(wanted), name)
        t.has(docs, "`%s` | %s |" % (name[:-6], ", ".join(
            "`%s`" % c for c in wanted)))


@test
def lint_fits_the_columns(t):
    long = "; ".join("y%d = x + %d*x" % (i, i) for i in range(9)) + "; x = norm(x); " \
           "x = x + F(x)"
    for columns in (40, 60, 100):
        r = t.run("lint", long, rc=0, env={"COLUMNS": str(columns)})
        for line in r.out.splitlines():
            t.ok(len(line) <= columns or " " not in line.strip(), columns, line)
        lines = r.out.splitlines()
        for i, line in enumerate(lines):
            if line.strip() == "^":  # it stands under what is meant
                at, under = line.index("^"), lines[i - 1]
                t.ok(under[at] in "yx+n" and under[at - 1] in " .", under, line)


@test
def lint_docs_example(t):
    with open(os.path.join(ROOT, "docs", "lint.md"), encoding="utf-8") as f:
        example = f.read().split("```")[1].strip()
    command, out = example.split("\n", 1)
    words = shlex.split(command)[2:]
    t.eq(t.run(*words, rc=0).out.strip(), out)


@test
def lint_c031_dropout_on_the_sum(t):
    t.eq(codes(t, "x = x + drop(F(norm(x)), 0.5); final: x = norm(x)"), [])
    f = lint(t, "x = drop(x + F(norm(x)), 0.1); final: x = norm(x)",
             "--depth", "12")
    t.eq([x["code"] for x in f], ["dropout-on-lane"])
    t.has(f[0]["message"], "0.0798")  # 0.9^24


@test
def lint_c045_deepnorm(t):
    t.eq(codes(t, "deepnorm"), [])
    t.eq(codes(t, "alpha = (2*N)^0.25; x = norm(alpha*x + F(x))"),
         ["alpha-without-init"])
    t.ok("branch-scaled-instead-of-skip" in
         codes(t, "alpha = (2*N)^0.25; x = norm(x + alpha*F(x))"))


alone(__name__)
