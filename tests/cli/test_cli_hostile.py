# SPDX-License-Identifier: MIT
"""Input made to hurt: too long, too deep, too many, no text at all. Each ends
in a right result or in an error that says what is wrong, soon and in little
memory: RLIMIT_AS bounds the address space, the clock is asked for ten times
what a slow machine needs."""

import os
import resource
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tb_cli  # noqa: E402
from tb_cli import SANITIZED, Skip, alone, story, test  # noqa: E402

READERS = ("explain", "lint")
SMALL = ("--width", "8", "--heads", "1")


def bounded(t, *words, rc=None, peak_mb=200, seconds=20, **more):
    """Within peak_mb of memory that was touched. A sanitizer maps terabytes,
    so the address space is bounded without one only."""

    def limit():
        if not SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

    start = time.monotonic()
    r = t.run(*words, preexec=limit, timeout=120, **more)
    took = time.monotonic() - start
    t.ok(r.rc in ((0, 2, 3, 5) if rc is None else
                  rc if isinstance(rc, tuple) else (rc,)), r)
    t.ok(took < seconds * (20 if SANITIZED else 1), "%.1f s" % took, r)
    t.ok(r.peak_kb < peak_mb * 1024 * (10 if SANITIZED else 1),
         "%d KB" % r.peak_kb, r)
    if r.rc:
        t.ok("tollbooth" in r.err, r)
        t.ok(len(r.err) < 20000, len(r.err), r)
    return r


BLOCK = "x = x + F(norm(x))\n"
PRE = BLOCK + "final: x = norm(x)\n"


def chain(first, step, n, last):
    return first + "".join(step.format(i, i - 1) for i in range(1, n)) + last


# (name, text, exit codes, part of the message)
TEXTS = [
    ("a line of a megabyte", "x = x" + " " * (1 << 20), 3, "at most 1048576"),
    ("a line just below", "x = x" + " " * ((1 << 20) - 6), 0, ""),
    ("a name of a megabyte", "x = " + "a" * 1000000, 3, "1:5"),
    ("a call of a megabyte", "x = " + "a" * 1000000 + "(x)", 3, ""),
    ("a number of a megabyte", "x = 0." + "1" * 1000000 + "*x", 3,
     "more than 1000 characters"),
    ("ten thousand brackets", "x = " + "(" * 10000 + "x" + ")" * 10000, 3,
     "nested more than 200 deep"),
    ("brackets never closed", "x = " + "f(" * 10000, 3, "200 deep"),
    ("brackets never opened", "x = x" + ")" * 10000, 3, "1:6"),
    ("minus signs", "x = " + "-" * 10000 + "x", 3, "200 deep"),
    ("a sum of 10^5", "x = x" + "+x" * 100000, 3, "1000 operations"),
    ("10^5 statements", "x = x\n" * 100000, 0, ""),
    ("as many as fit, with names", "".join("y%d = x\n" % i for i in range(70000)) +
     "x = x\n", 0, ""),
    ("as many norms as fit", "x = norm(x)\n" * 87000, 0, ""),
    ("ten thousand sublayers", BLOCK * 10000, (0, 3), ""),
    ("10^5 lines without a meaning", "?\n" * 100000, 3, "1:1"),
    ("10^5 init rules", PRE + "init:\n" + "*: ones\n" * 100000, 0, ""),
    ("10^5 rules for nothing", PRE + "init:\n" + "zz: ones\n" * 100000, (0, 3),
     "matches no weight"),
    ("10^5 settings", PRE + "model:\n" + "eps=1\n" * 100000, 3, "'eps' is set"),
    ("1000 sections", "".join("block[l <= %d]: x = x + F(norm(x))\n" % i
                              for i in range(1, 1000)) + "block: " + BLOCK, 0, ""),
    ("70000 conditions", "block[l<1]:\n" * 70000 + "block: " + BLOCK, (0, 3), ""),
    ("functions that double", chain("f0(v) = v + v\n", "f{0}(v) = f{1}(v) + "
                                    "f{1}(v)\n", 64, "x = f63(x)"), 3,
     "too much to compute"),
    ("calls that double", chain("f0(v) = norm(v)\n", "f{0}(v) = f{1}(f{1}(v))\n",
                                60, "x = f59(x)"), 3, "too much to compute"),
    ("constants that double", chain("f0(v) = v*v\n", "f{0}(v) = f{1}(v)*f{1}(v)\n",
                                    64, "x = x*f63(2)"), 3, "too many operations"),
    ("values that double", chain("a0 = x + x\n", "a{0} = a{1} + a{1}\n", 900,
                                 "x = a899"), (0, 3), ""),
    ("a function of itself", "f(v) = f(v)\nx = f(x)", 3, "calls itself"),
    ("functions in a ring", "f(v) = g(v)\ng(v) = h1(v)\nh1(v) = f(v)\nx = f(x)", 3,
     "calls itself"),
    ("a sublayer of itself", "attn(x) = attn(x)\n" + BLOCK, 3, "do not nest"),
    ("a ring of constants", "c(v) = c2(v)\nc2(v) = c(v)\nx = x*c(1)", 3,
     "calls itself"),
    ("a tower of powers", "x = 10^10^10*x", 3, "not a finite number"),
    ("a higher tower", "x = 9^9^9^9^9^9*x", 3, "not a finite number"),
    ("a small power", "x = x + 10^-10^10*F(norm(x))", (0, 3), ""),
    ("nothing over nothing", "x = x*(0/0)", 3, "1:"),
    ("root of minus one", "x = sqrt(-1)*x", 3, "1:"),
    ("a NUL byte", b"x = x\0+F(x)", 3, "NUL"),
    ("NUL bytes only", b"\0" * 1000, 3, "NUL"),
    ("no UTF-8", b"x = x \xff\xfe", 3, "not valid UTF-8"),
    ("half a character", b"x = x \xe2\x89", 3, "UTF-8"),
    ("a surrogate", b"x = x \xed\xa0\x80", 3, "UTF-8"),
    ("a byte-order mark", b"\xef\xbb\xbf" + PRE.encode(), (0, 3), ""),
    ("UTF-16", PRE.encode("utf-16"), 3, ""),
    ("carriage returns", PRE.replace("\n", "\r\n").encode(), (0, 3), ""),
    ("an empty file", b"", 3, "no statement"),
    ("a comment", b"# nothing\n", 3, "no statement"),
    ("a megabyte of comment", b"#" + b"x" * 1000000 + b"\n" + PRE.encode(), 0, ""),
    ("a program", open(tb_cli.PROGRAM, "rb").read(100000), 3, ""),
]


def hostile_text(name, text, rc, message):
    def run(t):
        path = t.write("h.block", text)
        for command in READERS:
            # as large as a text may be: a long diagram and many findings
            r = bounded(t, command, path, rc=rc, peak_mb=2048)
            t.has(r.err + r.out, message)

    tb_cli.add("hostile_" + name.replace(" ", "_").replace(",", ""), run)


for row in TEXTS:
    hostile_text(*row)


@test
def hostile_depths(t):
    """Any depth in the time of a small one: layers are read by section."""
    for depth in (1, 6, 20000, 10 ** 5, 10 ** 6, 10 ** 9):
        for block in ("pre-ln", "post-ln", "deepnorm"):
            for words in (["explain", block], ["explain", block, "--numeric"],
                          ["explain", block, "--format", "svg"], ["lint", block]):
                bounded(t, *words, "--depth", depth, rc=0)
        bounded(t, "explain", "pre-ln", "--json", "--depth", depth,
                rc=0 if depth <= 20000 else 2)
    million = bounded(t, "explain", "pre-ln", "--depth", 10 ** 6, rc=0).out
    # 12 d^2 + 13 d of each block; embeddings, final norm and head beside them
    t.has(million, "%d parameters, %d of norms, in 1000000 blocks" % (
        10 ** 6 * (12 * 64 ** 2 + 13 * 64) + (256 + 32 + 256 + 2) * 64,
        10 ** 6 * 4 * 64 + 2 * 64))
    # a quarter of the blocks is post-LN; the same number in all
    t.has(bounded(t, "explain", "mix-ln", "--depth", 10 ** 6, rc=0).out,
          "%d of norms, in 1000000 blocks" % (10 ** 6 * 2 * 64 + 64))


@test
def hostile_sections_times_blocks(t):
    text = "".join("block[l <= %d]: x = x + F(norm(x))\n" % (1000 * i)
                   for i in range(1, 1001))
    path = t.write("s.block", text)
    for command in READERS:
        r = bounded(t, command, path, "--depth", 10 ** 6, rc=2)
        t.has(r.err, "1000000 blocks ask for 1000 conditions each")
        bounded(t, command, path, "--depth", 1000, rc=0)


@test
def hostile_a_section_far_up(t):
    """What begins at block 700,001 is looked at as well."""
    text = "block[l <= 700000]: x = x + F(norm(x))\nblock: x = norm(x + F(x))\n"
    r = bounded(t, "lint", text, "--depth", 10 ** 6, "--json", rc=0).json()
    found = [f for f in r["lint"] if f["code"] == "post-ln-deep"]
    t.ok(found and "300000 post-norm blocks" in found[0]["message"], r)
    t.has(bounded(t, "explain", text, "--depth", 10 ** 6, rc=0).out,
          "blocks 1-700000:", "blocks 700001-1000000:")
    odd = "block[l/2 == floor(l/2)]: x = F(x) + x\nblock: x = x + F(norm(x))\n"
    t.has(bounded(t, "explain", odd, "--depth", 10 ** 6, rc=0).out,
          "blocks 1, ..., 999999:", "blocks 2, ..., 1000000:")


@test
def hostile_depths_that_must_be_held(t):
    t.write("book.txt", story(3000))
    for words in (["flow", "pre-ln", *SMALL], ["export", "pre-ln", "--to", "pytorch"],
                  ["train", "pre-ln", "--text", "book.txt", *SMALL],
                  ["compare", "pre-ln", "--text", "book.txt", *SMALL]):
        r = bounded(t, *words, "--depth", 10 ** 6, rc=2)
        t.has(r.err, "depth", "16000000 weights, wanted at most 2000000")
        r = bounded(t, *words, "--depth", 10 ** 15, rc=2)
        t.has(r.err, "depth")
    bounded(t, "flow", "pre-ln", *SMALL, "--tokens", "2", "--depth", 2000, rc=0)


@test
def hostile_sizes(t):
    t.write("book.txt", story(300))
    sizes = (["--width", 10 ** 9], ["--heads", 10 ** 6], ["--ffn", 10 ** 10],
             ["--width", 10 ** 15], ["--heads", 3], ["--kv-heads", 3],
             ["--width", 2 ** 53], ["--ffn", 2 ** 53], ["--heads", 2 ** 53])
    for size in sizes:
        for command in ("explain", "lint", "flow", "export"):
            bounded(t, command, "pre-ln", *size)
        for command in ("train", "compare"):
            bounded(t, command, "pre-ln", "--text", "book.txt", "--steps", 1, *size,
                    rc=(2, 3, 5))
    for size in (["--tokens", 10 ** 9], ["--batch", 10 ** 9], ["--vocab", 10 ** 12],
                 ["--tokens", 2 ** 53], ["--batch", 2 ** 53]):
        bounded(t, "flow", "pre-ln", *size, rc=(2, 5))


@test
def hostile_numbers(t):
    wrong = ("-1", "0", "1.5", "1e3", "abc", "", " 6", "0x10", "nan", "inf",
             "99999999999999999999", "9007199254740993", "6,", "١")
    for word in wrong:
        for command in ("explain", "lint", "flow"):
            r = bounded(t, command, "pre-ln", "--depth", word, rc=2)
            t.has(r.err, "--depth", "wanted")
    for word in ("-1", "nan", "inf", "1,5", "x", "", "0x1p3"):
        t.has(bounded(t, "explain", "pre-ln", "--eps", word, rc=2).err, "eps")


@test
def hostile_files(t):
    os.mkdir(t.path("folder"))
    os.mkfifo(t.path("fifo"))
    os.symlink("loop", t.path("loop"))
    t.write("plain", PRE)
    for command in READERS:
        for path in ("/dev/zero", "/dev/full", "/dev/null", "/dev/urandom",
                     "./loop", "./missing.block", "./plain/x",
                     "./" + "n" * 300, "./" + "n/" * 3000):
            bounded(t, command, path, rc=3)
        # somebody writes a block into the pipe
        writer = threading.Thread(target=lambda: open(t.path("fifo"), "w")
                                  .write(PRE))
        writer.start()
        bounded(t, command, "./fifo", rc=0)
        writer.join()
    t.has(bounded(t, "explain", "folder", rc=3).err, "folder", "directory")
    for command, option in (("train", "--text"), ("score", "--text")):
        for path in ("/dev/null", "folder", "loop"):
            block = ["pre-ln"] if command == "train" else ["folder"]
            bounded(t, command, *block, option, path, rc=(2, 3, 5))


@test
def hostile_unreadable(t):
    path = t.write("secret.block", PRE)
    os.chmod(path, 0)
    if os.access(path, os.R_OK):
        raise Skip("this user may read everything")
    for command in READERS:
        t.has(bounded(t, command, path, rc=3).err, "ermission")


@test
def hostile_nowhere_to_write(t):
    """A full disk behind standard output is a failure of the system."""
    for words in (["explain", "pre-ln"], ["explain", "pre-ln", "--json"],
                  ["lint", "no-skip"], ["lint", "x = F(x)"], ["blocks"],
                  ["flow", "pre-ln"], ["export", "--to", "pytorch", "pre-ln"],
                  ["eval", "1*x", "--set", "x=[1]"], ["--help"],
                  ["explain", "--help"]):
        with open("/dev/full", "wb") as full:
            r = bounded(t, *words, rc=5, stdout=full)
            t.has(r.err, "No space left")


@test
def hostile_eval(t):
    deep = "[" * 50000 + "]" * 50000
    long_row = "[" + ",".join(["1"] * 200000) + "]"
    for value, rc in ((deep, 3), ("[" * 100000, 3), ("[[1,2],[3]]", 3),
                      ("[1e999]", 3), ("[NaN]", 3), ("{}", 3), ("", 3),
                      ('["x"]', 3), ("[]", 3), ("\0"[:0] + "[1", 3)):
        bounded(t, "eval", "norm(x)", "--set", "x=" + value, rc=rc)
    path = t.write("row.json", long_row)
    bounded(t, "eval", "norm(x)", "--set", "x=[" + ",".join(["1", "2"] * 8000) + "]",
            "--json", rc=0)
    bounded(t, "eval", "norm(x)", "--set", "x=" + path, rc=3)
    bounded(t, "eval", "f(v) = f(v); f(x)", "--set", "x=[1]", rc=3)
    bounded(t, "eval", "w = linear(d, 10^12); w(x)", "--set", "x=[1,2]", rc=(3, 5))
    bounded(t, "eval", "norm(x)", "--set", "x=[1,2]", "--jacobian", "y", rc=3)


@test
def hostile_words(t):
    """Arguments of any bytes; none is echoed without end."""
    for word in ("\x1b[31mred", "a" * 100000, "\u202e", "-", "--=", "-x",
                 "=", ";", "x" * 70000 + "=1+"):
        for command in ("explain", "lint", "flow", "train", "blocks", "generate"):
            r = bounded(t, command, word, rc=(2, 3, 5))
            t.ok(b"\x1b" not in r.raw_err, r)
    r = bounded(t, "explain", b"\xff\xfe".decode("utf-8", "surrogateescape"), rc=3)
    bounded(t, b"\xff".decode("utf-8", "surrogateescape"), rc=2)


alone(__name__)
