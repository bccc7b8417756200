# SPDX-License-Identifier: MIT
"""Help, typos, wrong values, operands, streams, locale, start-up."""

import os
import pty
import re
import select
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tb_cli  # noqa: E402
from tb_cli import Skip, add, alone, story, test  # noqa: E402

# One line per command that works in a folder with book.txt and a run.
TINY = ("--width", "8", "--heads", "2", "--context", "8", "--batch", "2")
WORKS = {
    "explain": ["pre-ln"],
    "lint": ["output-norm"],
    "eval": ["norm(x)", "--set", "x=[1,2,3]"],
    "flow": ["pre-ln", "--depth", "1", "--width", "8", "--heads", "2",
             "--tokens", "4"],
    "train": ["pre-ln", "--text", "book.txt", "--depth", "1", "--steps", "2",
              *TINY],
    "compare": ["pre-ln", "--text", "book.txt", "--depth", "1", "--steps", "2",
                "--one-warmup", *TINY],
    "generate": ["run", "--tokens", "3"],
    "score": ["run", "--text", "book.txt"],
    "translate": ["mt", "--text", "ROMEO"],
    "bench": ["norm:4x8:fwd"],
    "blocks": [],
    "picture": ["batchnorm"],
    "recall": ["recall-eps"],
    "report": ["run", "--terminal"],
    "export": ["--to", "pytorch", "pre-ln"],
}
WORKS = {c: w for c, w in WORKS.items() if c in tb_cli.commands()}


def playground(t):
    t.write("book.txt", "ROMEO: " + story(500))
    t.run("train", "pre-ln", "--text", "book.txt", "--out", "run", "--depth",
          "1", "--steps", "3", *TINY, rc=0)
    t.write("pair.txt", "ROMEO\nGo on.\n")
    t.run("train", "pre-ln", "--source", "pair.txt", "--target", "pair.txt",
          "--out", "mt", "--depth", "1", "--steps", "1", *TINY, rc=0)


@test
def no_arguments(t):
    r = t.run(rc=2)
    t.eq(r.out, "")
    t.has(r.err, "usage: tollbooth COMMAND", "explain", "blocks")


@test
def top_help(t):
    for word in ("--help", "-h", "help"):
        r = t.run(word, rc=0)
        t.has(r.out, "usage: tollbooth COMMAND", "train", "pre-ln")
        t.eq(r.err, "")
    t.ok(re.fullmatch(r"tollbooth \d+\.\d+\.\d+\n", t.run("--version", rc=0).out))


@test
def unknown_command(t):
    r = t.run("evla", rc=2)
    t.has(r.err, "unknown command evla", "did you mean eval?")
    t.eq(r.out, "")
    t.has(t.run("halp", rc=2).err, "did you mean help?")
    t.has(t.run("xyzzy", rc=2).err, "unknown command xyzzy", "--help")
    t.has(t.run("help", "flwo", rc=2).err, "did you mean flow?")
    t.has(t.run("--jsn", rc=2).err, "unknown command --jsn")


@test
def every_command_is_tried(t):
    t.eq(sorted(tb_cli.commands()), sorted(WORKS), "no row in WORKS")


@test
def environment_is_read(t):
    """A limit that is not understood is not left out in silence."""
    for env, said in (({"TB_ISA": "sse"}, "TB_ISA: got sse, wanted one of ref"),
                      ({"TB_THREADS": "two"}, "TB_THREADS: got two, wanted a whole"),
                      ({"TB_THREADS": "0"}, "TB_THREADS: got 0, wanted")):
        r = t.run("blocks", env=env, rc=2)
        t.eq(r.out, "")
        t.has(r.err, "tollbooth: " + said)
    t.run("blocks", env={"TB_ISA": "", "TB_THREADS": ""}, rc=0)


@test
def every_command_without_vectors(t):
    """As on a processor that has none, and with more threads than cores."""
    playground(t)
    for command in WORKS:
        t.run(command, *WORKS[command], env={"TB_ISA": "ref", "TB_THREADS": "5"}, rc=0)


def help_of(command):
    def run(t):
        r = t.run(command, "--help", rc=0)
        t.eq(r.err, "")
        t.has(r.out, "usage: tollbooth " + command, "options:", "example:")
        for line in r.out.splitlines():
            t.ok(len(line) <= 80 or line.startswith("  tollbooth"),
                 "longer than a line:", line)
            t.ok(line == line.rstrip(), "ends in a blank:", repr(line))
        t.eq(t.run("help", command, rc=0).out, r.out)
        t.eq(t.run(command, *WORKS[command], "--help", rc=0).out, r.out)
        man = t.run(command, "--help-man", rc=0).out
        t.has(man, ".TH TOLLBOOTH-" + command, ".SH OPTIONS", ".SH EXAMPLE")
        words = t.run(command, "--help-words", rc=0).out.split()
        t.eq(words, ["--" + n for n, _ in tb_cli.options(command)])
        for name, _ in tb_cli.options(command):
            if name != "help":
                t.has(man, "\\-\\-" + name.replace("-", "\\-"))
    return run


def man_renders(t):
    for command in tb_cli.commands():
        man = t.run(command, "--help-man", rc=0)
        try:
            p = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=man.raw,
                               capture_output=True)
        except OSError:
            raise Skip("no groff here")
        t.eq(p.stderr, b"", command)


add("man_pages_render", man_renders)


def typos_of(command):
    def run(t):
        for name, _ in tb_cli.options(command):
            swap = name[1] + name[0] + name[2:]
            typo = swap if swap != name else name[:-1]
            for given in ("--" + typo, "--" + typo + "=3", "-" + typo):
                r = t.run(command, given, rc=2)
                t.has(r.err, "unknown option " + given.split("=")[0],
                      "did you mean --%s?" % name, command + " --help")
                t.eq(r.out, "")
        r = t.run(command, *WORKS[command], "--qqqqqqqqqq", rc=2)
        t.has(r.err, "unknown option --qqqqqqqqqq")
        t.ok("did you mean" not in r.err, r)
        t.has(t.run(command, "-x", rc=2).err, "unknown option -x\n")
    return run


NUMBER = {"E", "p", "R", "D", "b", "C", "t", "m"}
SIZE = {"N", "d", "h", "n", "T", "B", "V", "S", "k"}


def values_of(command):
    def run(t):
        for name, arg in tb_cli.options(command):
            opt = "--" + name
            wrong = []
            if arg is None:
                if name != "help":
                    wrong = [(opt + "=yes", "got yes, wanted no value")]
            else:
                wrong = [(opt, "got nothing, wanted ")]
                if "|" in arg or name == "to":
                    wrong += [(opt + "=nope", "got nope, wanted one of " + arg),
                              (opt + "=", "got an empty value, wanted one of")]
                elif arg in NUMBER:
                    bad = ["0,001", "abc", "nan", "inf", "-inf", "1e400", "0x10",
                           "1 ", " 1", "-1", "--json"]
                    wrong += [(opt + "=" + b, "got %s, wanted a number" % b)
                              for b in bad]
                elif arg == "N,N,...":
                    bad = ["1,,2", "1,x", "0", ",", "1.5", "3;4"]
                    wrong += [(opt + "=" + b, "got %s, wanted whole numbers" % b)
                              for b in bad]
                elif arg in SIZE:
                    bad = ["-1", "1.5", "x", "1e3", "99999999999999999999", "+1",
                           "9007199254740993"]
                    wrong += [(opt + "=" + b, "got %s, wanted a whole number" % b)
                              for b in bad]
                elif arg == "NAME=V":
                    wrong += [(opt + "=x", "got x, wanted NAME=VALUE"),
                              (opt + "==3", "got =3, wanted NAME=VALUE")]
                elif arg == "CODE=v":
                    wrong += [(opt + "=VANISH", "got VANISH, wanted CODE=v"),
                              (opt + "=VANISH=x", "wanted CODE=v")]
            for given, message in wrong:
                r = t.run(command, *WORKS[command], given, rc=2)
                t.has(r.err, "--" + name, message)
                t.eq(r.out, "", r)
    return run


def operands_of(command):
    def run(t):
        r = t.run(command, *WORKS[command], "extra", "more") \
            if command not in ("flow", "compare", "lint", "bench", "recall",
                               "report") \
            else None
        if r:
            t.code(r, 2)
            t.has(r.err, "operands, wanted", "usage: tollbooth " + command)
        if command not in ("bench", "blocks", "recall"):
            r = t.run(command, rc=2)
            t.ok(re.search("got (0 operands|no BLOCK|no --text)", r.err), r)
            t.eq(r.out, "")
    return run


for _command in WORKS:
    add("help_of_" + _command, help_of(_command))
    add("typos_of_" + _command, typos_of(_command))
    add("values_of_" + _command, values_of(_command))
    add("operands_of_" + _command, operands_of(_command))


@test
def missing_text(t):
    t.has(t.run("train", "pre-ln", rc=2).err, "--text")
    t.has(t.run("train", "--resume", rc=2).err, "--out")
    t.has(t.run("score", "run", rc=2).err, "--text")
    t.has(t.run("compare", "pre-ln", rc=2).err, "--text")
    t.has(t.run("compare", "pre-ln", "--text", "-", rc=2).err, "--text")


@test
def options_anywhere(t):
    a = t.run("eval", "--json", "norm(x)", "--set=x=[1,2]", rc=0)
    t.eq(a.out, t.run("eval", "--set", "x=[1,2]", "--json", "--", "norm(x)",
                      rc=0).out)
    t.eq(a.out, t.run("eval", "norm(x)", "--set", "x=[1,2]", "--json", rc=0).out)


@test
def examples_run(t):
    """Every example of --help, with the same words and smaller sizes."""
    playground(t)
    for command in tb_cli.commands():
        text = t.run(command, "--help", rc=0).out
        lines = re.findall(r"^  tollbooth (.*)$", text.split("example:\n")[1],
                           re.M)
        t.ok(lines, "no example of", command)
        for line in lines:
            line = line.replace("6,12,48", "1,2").replace("12,24", "1")
            line = line.replace("--minutes 4", "--minutes 0.001 --one-warmup")
            line = line.replace("--steps 500", "--steps 3")
            line = line.replace("--depth 12", "--depth 2")
            words = shlex.split(line.split(" > ")[0])
            if command in ("train", "compare"):
                words += TINY
            if command == "train":
                words[words.index("run")] = "example-run"
            r = t.run(*words, rc=0)
            if command == "picture" and "--out" in words:
                t.ok(os.path.getsize(t.path(words[words.index("--out") + 1])), r)
            else:
                t.ok(r.out, r)


@test
def settings_in_help_are_true(t):
    """The defaults that --help names are those the JSON reports."""
    playground(t)
    r = t.run("compare", "pre-ln", "--text", "book.txt", "--depth", "1",
              "--steps", "2", "--one-warmup", "--json", rc=0)
    run = r.json()["runs"][0]
    text = t.run("compare", "--help").out
    for key in ("width", "heads", "context", "batch"):
        t.has(text, "(default %d)" % run[key])
    t.eq((run["width"], run["heads"], run["context"], run["batch"]),
         (64, 4, 64, 8))
    head = t.run("train", "pre-ln", "--text", "book.txt", "--steps", "1",
                 "--json", rc=0).lines()[0]["settings"]
    t.eq([head[k] for k in ("depth", "width", "heads", "context", "batch",
                            "warmup", "schedule", "lr", "tokenizer")],
         [6, 128, 4, 128, 16, 100, "cosine", 0.001, "char"])
    run = t.run("flow", "pre-ln", "--json", rc=0).json()["runs"][0]
    t.eq([run[k] for k in ("depth", "width", "heads", "tokens", "batch", "seed",
                           "dtype")], [6, 64, 4, 32, 1, 1, "f32"])


# --- streams ---------------------------------------------------------------

def closed():
    os.close(1)


@test
def full_disk_on_stdout(t):
    playground(t)
    lines = [[c] + WORKS[c] for c in WORKS]
    lines += [[c] + WORKS[c] + ["--json"] for c in WORKS
              if ("json", None) in tb_cli.options(c)]
    lines += [["--help"], ["--version"], ["eval", "--help"],
              ["flow", "--help-man"], ["flow", "--help-words"]]
    for line in lines:
        with open("/dev/full", "wb") as full:
            r = t.run(*line, stdout=full, rc=5)
        t.has(r.err, "standard output: No space left on device")


@test
def closed_stdout(t):
    playground(t)
    for command in WORKS:
        r = t.run(command, *WORKS[command], preexec=closed, rc=5)
        t.has(r.err, "standard output: ")
    before = sorted(os.listdir(t.path("run")))
    r = t.run("train", "pre-ln", "--text", "book.txt", "--out", "safe", "--json",
              "--depth", "1", "--steps", "3", *TINY, preexec=closed, rc=5)
    for name in os.listdir(t.path("safe")):  # no line landed in a file
        with open(t.path("safe", name), "rb") as f:
            t.ok(b'{"step"' not in f.read(), name)
    t.ok(set(os.listdir(t.path("safe"))) <= set(before))


@test
def broken_pipe(t):
    """A reader that leaves: no crash; a run with --out is saved."""
    playground(t)
    for line in (["flow", "pre-ln", "--depth", "30", "--json"], ["blocks"],
                 ["explain", "pre-ln", "--json"]):
        p = t.start(*line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.close()
        p.stderr.read()
        rc = p.wait()
        t.ok(rc in (0, 5, -13), "exit %d of" % rc, line)  # 0: was faster
    p = t.start("train", "pre-ln", "--text", "book.txt", "--out", "cut", "--json",
                "--depth", "1", "--steps", "1000000", *TINY,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(3):
        p.stdout.readline()
    p.stdout.close()
    err = p.stderr.read().decode()
    t.eq(p.wait(), 5, err)
    t.has(err, "Broken pipe")
    t.run("score", "cut", "--text", "book.txt", rc=0)


def plain(t, r):
    for name, data in (("stdout", r.raw), ("stderr", r.raw_err)):
        t.ok(b"\r" not in data, "carriage return on", name, r)
        t.ok(b"\x1b" not in data, "escape on", name, r)


@test
def no_terminal_codes_in_files(t):
    """C134"""
    playground(t)
    for env in ({}, {"TERM": "dumb"}, {"NO_COLOR": "1"}, {"COLUMNS": "20"},
                {"TERM": None}):
        for command in ("explain", "eval", "flow", "blocks"):
            plain(t, t.run(command, *WORKS[command], env=env, rc=0))
    r = t.run("train", "pre-ln", "--text", "book.txt", "--depth", "1", "--steps",
              "1000", *TINY, env={"TERM": "dumb", "COLUMNS": "20"}, rc=0)
    plain(t, r)
    t.ok(len(r.err.splitlines()) <= 20 + 2, "too many progress lines", r)
    t.has(r.err, "1000/1000")
    t.ok("1000/1000" not in r.out)


def on_terminal(t, env, *line):
    master, slave = pty.openpty()
    p = t.start(*line, env=env, stderr=slave, stdout=subprocess.DEVNULL)
    os.close(slave)
    data = b""
    while True:
        ready, _, _ = select.select([master], [], [], 60)
        try:
            piece = os.read(master, 65536) if ready else b""
        except OSError:
            piece = b""
        if not piece:
            break
        data += piece
    os.close(master)
    t.eq(p.wait(), 0)
    return data


@test
def one_line_on_a_terminal(t):
    playground(t)
    line = ["train", *WORKS["train"], "--steps", "30"]
    data = on_terminal(t, {}, *line)
    t.has(data.decode(), "\r", "30/30", "\x1b[K", "left")
    groups, bar = data[:data.index(b"train [")], data[data.index(b"train ["):]
    rows = groups.split(b"\r\n")
    t.ok(rows[0].startswith(b"tollbooth: memory "), groups)
    t.ok(all(b"decayed" in row for row in rows[1:-1]), groups)
    t.eq(bar.count(b"\n"), 0, bar)
    data = on_terminal(t, {"TERM": "dumb"}, *line)
    t.ok(b"\x1b" not in data and b"30/30" in data, data)


@test
def table_fits_the_terminal(t):
    for columns in (40, 60, 80, 200):
        for line in (["blocks"], ["flow", *WORKS["flow"], "--table"]):
            r = t.run(*line, env={"COLUMNS": str(columns)}, rc=0)
            for text in r.out.splitlines():
                t.ok(len(text) <= columns, columns, "columns:", text)


# --- locale and start-up ---------------------------------------------------

@test
def decimal_comma_locale(t):
    """C135"""
    def has_comma(name):
        try:
            return subprocess.run(["locale", "decimal_point"], text=True,
                                  capture_output=True,
                                  env={**os.environ, "LC_ALL": name}
                                  ).stdout.strip() == ","
        except OSError:
            return False

    found = [n for n in ("de_DE.UTF-8", "pl_PL.UTF-8") if has_comma(n)]
    if not found:
        raise Skip("no locale with a decimal comma is installed")
    env = {"LC_ALL": found[0]}
    for line in (["flow", *WORKS["flow"], "--json"],
                 ["eval", *WORKS["eval"], "--eps", "0.5", "--json"],
                 ["explain", "pre-ln", "--format", "svg"]):
        t.eq(t.run(*line, env=env, rc=0).raw, t.run(*line, rc=0).raw)


@test
def comma_is_no_point(t):
    r = t.run("train", "pre-ln", "--text", "x", "--lr", "0,001", rc=2)
    t.has(r.err, "--lr: got 0,001, wanted a number")


@test
def explain_loads_no_gemm(t):
    """The heavy libraries come with the first product, not with the program."""
    for line in (["explain", "pre-ln"], ["blocks"], ["--help"]):
        r = t.run(*line, env={"LD_DEBUG": "files"}, rc=0)
        loaded = set(re.findall(r"file=(\S+)", r.err))
        if not loaded:
            raise Skip("this loader has no LD_DEBUG=files")
        for name in ("dnnl", "openblas", "mkl", "libmpi", "cairo", "sqlite"):
            t.ok(not [l for l in loaded if name in l], line, "loads", name)


@test
def usage_typo_in_every_option(t):
    """A letter lost, two swapped, capitals: the option meant is named."""
    for command in tb_cli.commands():
        names = [n for n, _ in tb_cli.options(command)]
        for name in names:
            if len(name) < 4:
                continue
            for typo in (name[:-1], name[0] + name[2] + name[1] + name[3:],
                         name + "s", name.upper()):
                if typo in names or typo == name:
                    continue
                r = t.run(command, "pre-ln", "--" + typo, "1", rc=2)
                t.has(r.err, "unknown option --" + typo, "did you mean --")


alone(__name__)
