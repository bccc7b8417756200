#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Table of docs/flow.md: how Post-LN and Pre-LN stacks pass a random cotangent
down, at their initial values, mean of 8 seeds.

    tools/measure_flow_table.py [build/tollbooth]

Only the command line is used. Beside it stand numbers of an independent numpy
program for the same setting (hand-written backward pass, mean 1/s per norm).
"""
import json
import statistics
import subprocess
import sys

SEEDS = range(1, 9)
DEPTHS = (6, 12, 24, 48)
WIDTH = 64
FFN = "ffn(x) = down(relu(up(x)))\n"
BLOCKS = {
    "post": FFN + "x = norm(x + F(x))",
    "pre": FFN + "x = x + F(norm(x))\nfinal: x = norm(x)",
}
OPTIONS = ("--heads 4 --tokens 32 --vocab 4096 --mask none --cotangent random "
           "--no-positions --dtype f64 --json").split()
# depth: Post total at k = 0, its least value, Post tolls, Pre total at k = 0
NUMPY = {
    6: (0.84, 0.64, 0.199, 2.18),
    12: (0.54, 0.23, 0.0135, 2.78),
    24: (0.56, 0.14, 4.4e-5, 3.77),
    48: (0.44, 0.16, 7.4e-10, 5.10),
}


def measure(program, block, seed):
    command = [program, "flow", block, "--width", str(WIDTH), "--seed",
               str(seed), "--depth", ",".join(map(str, DEPTHS)), *OPTIONS]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    return {run["depth"]: run["sublayers"]
            for run in json.loads(out.stdout)["runs"]}


def mean(runs, depth, value):
    return statistics.fmean(value(run[depth]) for run in runs)


def show(x):
    return f"{x:.2g}" if x < 0.01 else f"{x:.3g}"


def row(depth, post, pre):
    """Post-LN's printed tolls are |J|_F/sqrt(d) of each norm; sqrt((d-2)/d)
    of it comes from the two directions a norm loses, the rest is 1/s."""
    lost = ((WIDTH - 2) / WIDTH) ** depth
    ours = [
        mean(post, depth, lambda r: r[0]["total"]),
        mean(post, depth, lambda r: min(x["total"] for x in r)),
        mean(post, depth, lambda r: r[0]["lane"]),
        mean(post, depth, lambda r: r[0]["toll_product"]),
        mean(post, depth, lambda r: r[0]["toll_product"] / lost),
        mean(pre, depth, lambda r: r[0]["total"]),
        mean(pre, depth, lambda r: r[0]["lane"]),
    ]
    total, least, lane, tolls, scalar, pre_total, pre_lane = map(show, ours)
    n = [show(x) for x in NUMPY[depth]]
    return (f"| {depth} ({2 * depth}) | {total} ({least}) | {n[0]} ({n[1]}) "
            f"| {lane} | {tolls} | {scalar} | {n[2]} | {pre_total} | {n[3]} "
            f"| {pre_lane} |")


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/tollbooth"
    runs = {name: [measure(program, text, seed) for seed in SEEDS]
            for name, text in BLOCKS.items()}
    print("| blocks (sublayers) | Post total (least) | numpy | Post lane "
          "| toll_product | of 1/s alone | numpy | Pre total | numpy "
          "| Pre lane |")
    print("|---" + "|---:" * 9 + "|")
    for depth in DEPTHS:
        print(row(depth, runs["post"], runs["pre"]))


if __name__ == "__main__":
    main()
