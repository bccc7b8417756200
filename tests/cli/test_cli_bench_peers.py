# SPDX-License-Identifier: MIT
"""bench/peers/run on tiny sizes: a table where PyTorch or oneDNN is there, and
clean words where something is not. No speed is asserted."""

import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import PROGRAM, ROOT, Skip, alone, interrupted, test  # noqa: E402

CASES = ["norm:4x8:fwd@1", "norm:4x8:bwd@1", "addnorm:4x8:fwd@1",
         "attn:1x4x2x4:fwd@1", "attn:1x4x2x4:bwd@1", "step:L1d8T4B2V5:f32@1",
         "flow:L1d8T4B1:grad@1", "jacobian:d8T2:f32@1"]


def peers(t, *words, rc=0, env=None):
    command = [sys.executable, os.path.join(ROOT, "bench", "peers", "run"),
               "--rounds", "1", *words]
    full = {k: v for k, v in os.environ.items() if k != "LLMC"}
    p = subprocess.run(command, cwd=t.dir, capture_output=True, text=True,
                       env={**full, **(env or {})})
    t.eq(p.returncode, rc, p.stderr)
    return p


@test
def peers_table(t):
    p = peers(t, "--tollbooth", PROGRAM, *CASES)
    rows = [line for line in p.stdout.splitlines() if line.startswith("| `")]
    t.eq([row.split("`")[1] for row in rows], CASES)
    t.has(p.stdout, "tollbooth: tollbooth 0.", "| case | tollbooth | of its roof |")
    for row in rows:
        t.ok(row.split("|")[2].strip().endswith(" ms"), row)
    t.has(p.stderr, "llm.c is left out: set LLMC")
    if "PyTorch, tuned" not in p.stdout:
        t.has(p.stderr, "PyTorch, tuned is left out: missing No module")
        raise Skip("no PyTorch: " + p.stderr)
    for row in rows:
        t.ok(all(cell.strip().endswith("x") for cell in row.split("|")[4:6]), row)


@test
def peers_missing(t):
    """No torch, no compiler, no llm.c: ours alone, and why."""
    t.write("none", "#!/bin/sh\necho missing No module named torch\n")
    os.chmod(t.path("none"), 0o755)
    p = peers(t, "--tollbooth", PROGRAM, "--python", t.path("none"), "--json",
              "norm:4x8:fwd@1", env={"CC": "no-such-compiler", "LLMC": t.dir})
    out = json.loads(p.stdout)
    t.eq(list(out["programs"]), ["tollbooth"])
    t.eq(len(out["samples"]["norm:4x8:fwd@1"]["tollbooth"]), 1)
    t.has(p.stderr, "PyTorch, shipped is left out: missing No module",
          "no-such-compiler: No such file", "llm.c is left out: no ")
    p = peers(t, "--tollbooth", PROGRAM, "norm:4x8:fwd@1", "--without", "PyTorch",
              "--without", "oneDNN", "--without", "llm.c")
    t.eq((p.stderr, p.stdout.count("tollbooth:")), ("", 1))
    p = peers(t, "--tollbooth", PROGRAM, "--python", t.path("none"),
              "nrom:4x8:fwd@1", env={"CC": "no-such-compiler"})
    t.has(p.stderr, "did you mean norm:4x8:fwd?")
    t.has(p.stdout, "| `nrom:4x8:fwd@1` | - |")


LLMC = """
#include <stdlib.h>
typedef struct GPT2 { int steps; } GPT2;
static void gpt2_build_from_checkpoint(GPT2 *m, const char *path) { m->steps = !path; }
static void gpt2_forward(GPT2 *m, int *in, int *out, int B, int T) { m->steps += !in || !out || B * T != 8; }
static void gpt2_zero_grad(GPT2 *m) { m->steps++; }
static void gpt2_backward(GPT2 *m) { m->steps++; }
static void gpt2_update(GPT2 *m, float lr, float b1, float b2, float eps, float wd, int t)
{
    m->steps -= 2;
    if (m->steps != 0 || lr + b1 + b2 + eps + wd < 0 || t < 1)
        abort();
}
"""


@test
def peers_llmc(t):
    """A folder with a train_gpt2.c: here one that only counts its calls."""
    if not shutil.which(os.environ.get("CC", "cc")):
        raise Skip("no C compiler")
    t.write("train_gpt2.c", LLMC)
    p = peers(t, "--tollbooth", PROGRAM, "step:L1d8T4B2V5:f32@1", "norm:4x8:fwd@1",
              "--without", "torch", "--without", "onednn",
              env={"LLMC": t.dir, "TMPDIR": t.dir})
    if any(x in p.stderr for x in ("omp.h", "-fopenmp", "gomp", "lomp")):
        raise Skip("no OpenMP: " + p.stderr)
    t.eq(p.stderr, "")
    rows = [line.split("|") for line in p.stdout.splitlines() if line.startswith("| `")]
    t.ok(rows[0][4].strip().endswith("x"), p.stdout)
    t.eq(rows[1][4].strip(), "-")
    t.eq(os.listdir(t.dir), ["train_gpt2.c"], "what it leaves")


@test
def peers_refuses(t):
    """In one line, before anything is measured."""
    for words, said in ((["--tollbooth", "none"], "none: no such program"),
                        (["--rounds", "0"], "got 0, wanted a whole number from 1"),
                        (["norm:4x8:fwd@x"], "norm:4x8:fwd@x: threads: got x"),
                        (["norm:4x8:fwd@0"], "threads: got 0"),
                        (["--without", "jax"], "got jax, wanted a word of: PyTorch"),
                        (["--blas", t.dir], "--blas: no libblas.so.3 in " + t.dir),
                        (["--fo"], "unrecognized arguments: --fo")):
        p = peers(t, *words, rc=2)
        t.has(p.stderr, "bench/peers/run: ", said)
        t.eq((p.stdout, p.stderr.count("\n")), ("", 1), p.stderr)


@test
def peers_interrupted(t):
    interrupted(t, "bench/peers/run", "norm:4x8:fwd", "--without", "o", "--without", "l")


alone(__name__)
