# SPDX-License-Identifier: MIT
"""bench: names of cases, shares, and that every kind runs. No speed is asserted:
machines and their neighbours differ."""

import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import Skip, alone, test  # noqa: E402

TINY = ["norm:5x7:fwd", "norm:5x7:bwd", "norm:5x7:tan", "rmsnorm:5x7:fwd",
        "rmsnorm:5x7:bwd", "rmsnorm:5x7:tan", "addnorm:5x7:fwd",
        "addnorm:5x7:bwd", "gelu:5x7:fwd", "gelu:5x7:bwd", "gelu_tanh:5x7:fwd",
        "gelu_tanh:5x7:bwd", "silu:5x7:fwd", "silu:5x7:bwd", "swiglu:5x7:fwd",
        "rope:2x5x2x4:fwd", "rope:2x5x2x4:bwd", "softmax:5x7:fwd", "softmax:5x7:bwd",
        "xent:5x7:fwd", "xent:5x7:bwd", "embed:5x7x11:fwd", "embed:5x7x11:bwd",
        "gemm:3x5x7:f32", "gemm:3x5x7:f32-nt", "gemm:3x5x7:f32-tn",
        "gemm:3x5x7:f32-own", "gemm:3x5x7:f32-nt-own", "gemm:3x5x7:f32-tn-own",
        "attn:2x5x3x4:fwd", "attn:2x5x3x4:bwd",
        "gemm:3x5x7:bf16", "gemm:3x5x7:bf16-nt-emulated", "gemm:3x5x7:bf16-tn",
        "attn:2x5x3x4:fwdbwd", "step:L1d8T4B2V5:f32", "step:L1d8T4B2V5:bf16",
        "norm:1x1:fwd", "adamw:5x7:f32",
        "step:L2d96T3B1V2:f32", "generate:L1d8T4V5:f32",
        "generate:L2d8T1V3:f32", "flow:L1d8T4B1:grad", "jacobian:d4T2:f32"]
MEMORY = ("norm", "rmsnorm", "addnorm", "gelu", "gelu_tanh", "silu", "swiglu",
          "rope", "softmax", "xent", "embed", "adamw")
STREAM = {"copy": "stream_gbps", "2r1w": "stream_2r1w_gbps",
          "2r2w": "stream_2r2w_gbps"}


def run(t, *cases):
    return t.run("bench", *cases, "--rounds", "2", "--json", rc=0).json()


@test
def bench_every_kind(t):
    out = run(t, *TINY)
    m = out["machine"]
    for key in (*STREAM.values(), "gemm_gflops", "peak_gflops"):
        t.ok(m[key] > 0, key, m)
    t.eq((m["threads"], out["rounds"]), (1, 2))
    t.has(m["gemm_bf16"], "bf16")
    t.ok("gemm_bf16" not in run(t, "gemm:3x5x7:f32")["machine"])
    t.eq([c["case"] for c in out["cases"]], TINY)
    for c in out["cases"]:
        kind = c["case"].split(":")[0]
        t.ok(c["seconds"] >= c["best"] > 0 and c["noise"] >= 0, c)
        t.eq("gbps" in c, kind in MEMORY, c)
        t.eq("gflops" in c, kind in ("gemm", "attn", "step", "flow"), c)
        t.eq("executed_gflops" in c, kind == "attn", c)
        t.eq("tokens_per_s" in c, kind in ("step", "generate", "flow"), c)
        t.eq("memory" in c, kind == "step", c)
        if "gbps" in c:
            t.near(c["share_of_stream"] * m[STREAM[c["stream"]]] / c["gbps"], 1,
                   1e-12)
        if "gflops" in c:
            t.near(c["share_of_gemm"] * m["gemm_gflops"] / c["gflops"], 1, 1e-12)
            t.near(c["share_of_peak"] * m["peak_gflops"] / c["gflops"], 1, 1e-12)


@test
def bench_counts(t):
    """Bytes and operations by hand: rates times seconds."""
    c = run(t, "norm:6x10:fwd", "norm:6x10:bwd", "rmsnorm:6x10:tan",
            "addnorm:6x10:fwd", "gemm:3x5x7:f32", "step:L1d8T4B2V5:f32",
            "generate:L1d8T4V5:f32")["cases"]
    for i, (arrays, stream) in enumerate(((2, "copy"), (3, "2r1w"), (3, "2r1w"),
                                          (4, "2r2w"))):
        t.near(c[i]["gbps"] * c[i]["seconds"] * 1e9, arrays * 4 * 60, 1e-6)
        t.eq(c[i]["stream"], stream)
    t.near(c[4]["gflops"] * c[4]["seconds"] * 1e9, 2 * 3 * 5 * 7, 1e-6)
    t.near(c[5]["tokens_per_s"] * c[5]["seconds"], 8, 1e-9)
    t.near(c[6]["tokens_per_s"] * c[6]["seconds"], 3, 1e-9)


@test
def bench_element_counts(t):
    arrays = {"gelu:5x7:fwd": 2, "gelu:5x7:bwd": 3, "softmax:5x7:bwd": 3,
              "xent:5x7:fwd": 1, "xent:5x7:bwd": 2, "embed:5x7x11:fwd": 2,
              "embed:5x7x11:bwd": 3, "adamw:5x7:f32": 8, "addnorm:5x7:bwd": 4,
              "swiglu:5x7:fwd": 3, "silu:5x7:bwd": 3, "rope:1x5x1x6:bwd": 2}
    for case in run(t, *arrays)["cases"]:
        floats = arrays[case["case"]] * (30 if "rope" in case["case"] else 35)
        t.near(case["gbps"] * case["seconds"] * 1e9, 4 * floats, 1e-6)


@test
def bench_attention_counts(t):
    """Pairs of tokens: the visible ones, and those of whole blocks of 64."""
    cases = ["attn:2x70x3x4:" + what for what in ("fwd", "bwd", "fwdbwd")]
    visible, blocks = 70 * 71 / 2, 64 * 64 + 6 * 70
    for c, useful, executed in zip(run(t, *cases)["cases"], (1, 2, 3),
                                   (1, 2.5, 3.5)):
        each = 2 * 2 * 3 * 4 * 2 / c["seconds"] * 1e-9
        t.near(c["gflops"] / each, useful * visible, 1e-6 * visible)
        t.near(c["executed_gflops"] / each, executed * blocks, 1e-6 * blocks)


@test
def bench_limits(t):
    """What caps kernels and threads is what it says it ran with."""
    def machine(**env):
        r = t.run("bench", "norm:4x8:fwd", "--rounds", "1", "--json", env=env, rc=0)
        return r.json()["machine"]
    m = machine(OMP_NUM_THREADS="4", TB_THREADS="", TB_ISA="ref")
    t.eq(m["isa"], "ref")
    if m["threads"] != 4:
        raise Skip("threads are not OpenMP's")
    t.eq(machine(TB_THREADS="3")["threads"], 3)
    t.eq(machine(TB_THREADS="3", OMP_THREAD_LIMIT="1")["threads"], 1)


@test
def bench_table(t):
    r = t.run("bench", "norm:5x7:fwd", "gemm:3x5x7:f32", "--rounds", "1",
              env={"COLUMNS": "120"}, rc=0)
    t.eq(r.err, "")
    t.has(r.out, "1 thread,", "GB/s", "GFLOP/s", "of stream", "of product",
          "of peak", " %", "1 round\n")
    lines = [x for x in r.out.splitlines() if ":5x7" in x or ":3x5" in x]
    t.eq(len(lines), 2)
    r = t.run("bench", "norm:5x7:fwd", "step:L1d8T4B2V5:bf16", "--rounds", "1",
              env={"COLUMNS": "40"}, rc=0)
    t.ok(all(len(x) <= 40 for x in r.out.splitlines()), r.out)
    t.has(" ".join(r.out.split()), "1 thread, kernels ", "bf16 products ", " 1 round case")
    t.has(t.run("bench", "--help", rc=0).out, "jacobian:dDTt:f32: the dense")


@test
def bench_names(t):
    """Nothing is measured before every name is understood."""
    for name, said in (("nrom:4x8:fwd", "did you mean norm:4x8:fwd?"),
                       ("stp", "did you mean step:...?"),
                       ("zzzzzz:1", "there are norm, rmsnorm, addnorm, gelu"),
                       ("norm:4x8:fw", "did you mean norm:4x8:fwd?"),
                       ("attn:1x2x3x4:fwdbw", "did you mean attn:1x2x3x4:fwdbwd?"),
                       ("gemm:1x2x3:zzzzz", "did you mean gemm:1x2x3:f32?"),
                       ("norm", "wanted norm:RxD:fwd|bwd|tan"),
                       ("norm:4:fwd", "got norm:4:fwd, wanted norm:RxD:fwd|bwd|tan"),
                       ("norm:0x8:fwd", "sizes from 1"),
                       ("norm:4x1048577:fwd", "sizes from 1"),
                       ("gemm:1000000x1000000x1000000:f32", "not too many"),
                       ("step:d8L1T4B2V5:f32", "wanted step:LldDTtBbVv:f32|bf16"),
                       ("", "unknown case"),
                       ("norm:4x8:fwd" + "x" * 80, "unknown case")):
        r = t.run("bench", "norm:4x8:fwd", name, rc=2)
        t.has(r.err, "bench: ", said)
        t.eq(r.out, "", name)


@test
def bench_says_which(t):
    """A case that cannot run here is named."""
    r = t.run("bench", "norm:4x8:fwd", "jacobian:d1024T1024:f32", rc=2)
    t.has(r.err, "bench: jacobian:d1024T1024:f32: jacobian: 1048576 outputs")
    r = t.run("bench", "gemm:3x5x7:bf16-own", "norm:4x8:fwd", env={"TB_ISA": "ref"}, rc=3)
    t.has(r.err, "bench: gemm:3x5x7:bf16-own: the library or the instructions")
    t.eq(r.out, "")


def catches(pid, number):
    with open("/proc/%d/status" % pid) as f:
        caught = [x for x in f if x.startswith("SigCgt:")]
    return int(caught[0].split()[1], 16) >> (number - 1) & 1


@test
def bench_interrupted(t):
    """Ctrl-C: 130, and no half of a table or of JSON."""
    if not os.path.exists("/proc/self/status"):
        raise Skip("no /proc here")
    for words in ([], ["--json"]):
        p = t.start("bench", "generate:L1d64T1048576V5:f32", *words,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while p.poll() is None and not catches(p.pid, signal.SIGINT):
            time.sleep(0.02)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate()
        t.eq((p.returncode, out), (130, ""), err)
        t.has(err, "interrupted")


alone(__name__)
