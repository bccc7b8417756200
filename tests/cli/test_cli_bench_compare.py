# SPDX-License-Identifier: MIT
"""bench/compare: ratios of two saved runs, and files that are none."""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import ROOT, alone, test  # noqa: E402


def compare(t, *files, rc=0):
    p = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "compare"),
                        *files], cwd=t.dir, capture_output=True, text=True)
    t.eq(p.returncode, rc, p.stderr)
    return p


def saved(t, name, cases, **machine):
    m = {"cpu": "c", "isa": "avx2", "threads": 1, "stream_gbps": 10.0, **machine}
    t.write(name, json.dumps({"machine": m, "cases": cases}))
    return name


@test
def bench_compare_ratios(t):
    a = saved(t, "a.json", [{"case": "x:1", "seconds": 3e-3, "noise": 0.03},
                            {"case": "y:1", "seconds": 1.0, "noise": 0.04},
                            {"case": "only", "seconds": 1}])
    b = saved(t, "b.json", [{"case": "y:1", "seconds": 0.97, "noise": 0.03},
                            {"case": "x:1", "seconds": 2e-3, "noise": 0.04}],
              threads=2, stream_gbps=12.5)
    p = compare(t, a, b)
    lines = [line.split() for line in p.stdout.splitlines()]
    t.ok(["machine:", "copy", "10", "12.5", "1.25"] in lines, lines)
    t.ok(["x:1", "3", "2", "1.50", "5", "%"] in lines, lines)
    t.ok(["y:1", "1000", "970", "~1.03", "5", "%"] in lines, lines)
    t.has(p.stdout, "only in a.json: only")
    t.has(p.stderr, "not the same threads: 1 and 2")


@test
def bench_compare_real(t):
    r = t.run("bench", "norm:4x8:fwd", "--rounds", "3", "--json", rc=0)
    t.write("a.json", r.out)
    p = compare(t, "a.json", "a.json")
    t.has(p.stdout, "norm:4x8:fwd", "~1.00", "machine: peak")
    t.eq(p.stderr, "")
    t.has(compare(t, "--help").stdout, "OLD.json NEW.json")


@test
def bench_compare_bad_files(t):
    good = saved(t, "good.json", [{"case": "x", "seconds": 1}])
    t.has(compare(t, good, rc=2).stderr, "got 1 file, wanted OLD.json NEW.json")
    t.has(compare(t, good, good, "--fo", rc=2).stderr, "arguments: --fo; --help")
    for name, text, said in (
            ("cut.json", '{"machine": {', "not JSON"),
            ("list.json", "[]", "wanted what `tollbooth bench --json` prints"),
            ("none.json", '{"machine": {}, "cases": [{"seconds": 1}]}', "no name"),
            ("zero.json", '{"machine": {}, "cases": [{"case": "x", "seconds": 0}]}',
             "wanted a number above 0"),
            ("text.json", '{"machine": {}, "cases": [{"case": "x", "seconds": "1"}]}',
             "got '1'"),
            ("nan.json", '{"machine": {}, "cases": [{"case": "x", "seconds": NaN}]}',
             "got nan"),
            ("noise.json", '{"machine": {}, "cases": [{"case": "x", "seconds": 1, '
             '"noise": NaN}]}', "noise: got nan, wanted a number of 0 or more"),
            ("deep.json", "[" * 100000, "not JSON"),
            ("other.json", '{"machine": {}, "cases": [{"case": "y", "seconds": 1}]}',
             "no case is in both")):
        t.write(name, text)
        p = compare(t, good, name, rc=3)
        t.has(p.stderr, "bench/compare: ", name, said)
        t.eq(p.stdout, "", name)
    t.has(compare(t, good, "missing.json", rc=3).stderr,
          "missing.json: No such file")


@test
def bench_compare_unwritten(t):
    """A full disk and a reader that went away are said in one line."""
    good = saved(t, "good.json", [{"case": "x", "seconds": 1}])
    command = [sys.executable, os.path.join(ROOT, "bench", "compare"), good, good]
    r, w = os.pipe()
    os.close(r)
    with open("/dev/full", "w") as full, os.fdopen(w, "w") as gone:
        for out, why in ((full, "No space left"), (gone, "Broken pipe")):
            p = subprocess.run(command, cwd=t.dir, stdout=out, text=True,
                               stderr=subprocess.PIPE)
            t.eq(p.returncode, 5, p.stderr)
            t.has(p.stderr, "bench/compare: standard output: " + why)
            t.eq(p.stderr.count("\n"), 1, p.stderr)


alone(__name__)
