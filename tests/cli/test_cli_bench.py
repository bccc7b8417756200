# SPDX-License-Identifier: MIT
"""bench: names of cases, shares, and that every kind runs. No speed is asserted:
machines and their neighbours differ."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, test  # noqa: E402

TINY = ["norm:5x7:fwd", "norm:5x7:bwd", "addnorm:5x7:fwd", "gemm:3x5x7:f32",
        "attn:2x5x3x4:fwd", "attn:2x5x3x4:fwdbwd", "step:L1d8T4B2V5:f32",
        "norm:1x1:fwd", "step:L2d96T3B1V2:f32"]


@test
def bench_every_kind(t):
    out = t.run("bench", *TINY, "--json", rc=0).json()
    m = out["machine"]
    t.ok(m["stream_gbps"] > 0 and m["gemm_gflops"] > 0 and m["threads"] == 1, m)
    t.eq([c["case"] for c in out["cases"]], TINY)
    for c in out["cases"]:
        t.ok(c["seconds"] > 0, c)
        memory = "norm" in c["case"]
        t.eq("gbps" in c, memory, c)
        t.eq("gflops" in c, not memory, c)
        t.eq("tokens_per_s" in c, c["case"].startswith("step"), c)
        if memory:
            t.near(c["share_of_stream"] * m["stream_gbps"] / c["gbps"], 1, 1e-12)
        else:
            t.near(c["share_of_gemm"] * m["gemm_gflops"] / c["gflops"], 1, 1e-12)


@test
def bench_counts(t):
    """Bytes and operations by hand: rates times seconds."""
    c = t.run("bench", "norm:6x10:fwd", "norm:6x10:bwd", "gemm:3x5x7:f32",
              "step:L1d8T4B2V5:f32", "--json", rc=0).json()["cases"]
    t.near(c[0]["gbps"] * c[0]["seconds"] * 1e9, 2 * 4 * 60, 1e-6)
    t.near(c[1]["gbps"] * c[1]["seconds"] * 1e9, 4 * 4 * 60, 1e-6)
    t.near(c[2]["gflops"] * c[2]["seconds"] * 1e9, 2 * 3 * 5 * 7, 1e-6)
    t.near(c[3]["tokens_per_s"] * c[3]["seconds"], 8, 1e-9)


@test
def bench_table(t):
    r = t.run("bench", "norm:5x7:fwd", "gemm:3x5x7:f32", env={"COLUMNS": "100"},
              rc=0)
    t.eq(r.err, "")
    t.has(r.out, "1 thread,", "GB/s", "GFLOP/s", "of copy", "of product", " %")
    lines = [x for x in r.out.splitlines() if ":5x7" in x or ":3x5" in x]
    t.eq(len(lines), 2)


@test
def bench_names(t):
    """Nothing is measured before every name is understood."""
    for name, said in (("nrom:4x8:fwd", "did you mean norm:4x8:fwd?"),
                       ("stp", "did you mean step:...?"),
                       ("zzzzzz:1", "there are norm, addnorm, gemm"),
                       ("norm:4x8:fw", "did you mean norm:4x8:fwd?"),
                       ("attn:1x2x3x4:fwdbw", "did you mean attn:1x2x3x4:fwdbwd?"),
                       ("gemm:1x2x3:zzzzz", "did you mean gemm:1x2x3:f32?"),
                       ("norm", "wanted norm:RxD:fwd|bwd"),
                       ("norm:4:fwd", "got norm:4:fwd, wanted norm:RxD:fwd|bwd"),
                       ("norm:0x8:fwd", "sizes from 1"),
                       ("norm:4x1048577:fwd", "sizes from 1"),
                       ("gemm:1000000x1000000x1000000:f32", "not too many"),
                       ("step:d8L1T4B2V5:f32", "wanted step:LldDTtBbVv:f32"),
                       ("", "unknown case"),
                       ("norm:4x8:fwd" + "x" * 80, "unknown case")):
        r = t.run("bench", "norm:4x8:fwd", name, rc=2)
        t.has(r.err, "bench: ", said)
        t.eq(r.out, "", name)


alone(__name__)
