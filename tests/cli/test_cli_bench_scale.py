# SPDX-License-Identifier: MIT
"""bench/scale: a table of small sizes, and words for a table there is not."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import PROGRAM, ROOT, alone, interrupted, test  # noqa: E402


def scale(t, *words, rc=0):
    p = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "scale"),
                        "--tollbooth", PROGRAM, "--rounds", "1", *words],
                       cwd=t.dir, capture_output=True, text=True)
    t.eq(p.returncode, rc, p.stderr)
    return p


@test
def bench_scale(t):
    p = scale(t, "--most", "128", "width")
    rows = [[c.strip() for c in line.split("|")[1:-1]]
            for line in p.stdout.splitlines() if line.startswith("|")]
    t.eq(rows[0], ["width", "ms", "power", "tokens/s", "of peak", "MiB", "power"])
    t.eq([r[0] for r in rows[2:]], ["64", "128"])
    # weights grow with the square, activations with the width, the rest not
    t.ok(0.5 < float(rows[3][6]) < 2, rows)
    t.has(p.stdout, "**Width**: 2 blocks")
    t.has(scale(t, "--help").stdout, "a straight")


@test
def bench_scale_refuses(t):
    """In one line, before anything is measured."""
    for words, said in ((["wdith"], "got wdith, wanted some of: depth width"),
                        (["--rounds", "0"], "got 0, wanted a whole number from 1"),
                        (["--most", "5", "depth"], "wanted at least 6, the least depth"),
                        (["--tollbooth", "none"], "none: No such file or directory"),
                        (["--fo"], "unrecognized arguments: --fo")):
        p = scale(t, *words, rc=2)
        t.has(p.stderr, "bench/scale: ", said)
        t.eq((p.stdout, p.stderr.count("\n")), ("", 1), p.stderr)
    t.has(scale(t, "--tollbooth", "/bin/false", rc=5).stderr, "/bin/false: exit code 1")


@test
def bench_scale_interrupted(t):
    interrupted(t, "bench/scale")


alone(__name__)
