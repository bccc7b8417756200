# SPDX-License-Identifier: MIT
"""tollbooth eval: numbers with exact right results, files, refusals. Case
numbers (C001...) are those of the cases collected from public bug reports;
every expected number is a closed formula."""

import math
import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import (Fail, Skip, add, alone, bf16, f32, is_finite, npy,  # noqa: E402
                    safetensors, test)

EXACT = 0
NORM4 = [-1.3416354, -0.4472118, 0.4472118, 1.3416354]
X4 = "x=[1,2,3,4]"


def zeros(n, m):
    return str([[0] * m for _ in range(n)])


ATTN_OFF = ["--set", "attn.o.weight=" + zeros(4, 4)]
EYE4 = [[float(i == j) for j in range(4)] for i in range(4)]
FLAT_J = [[237.17082 if i == j else -79.056942 for j in range(4)]
          for i in range(4)]

# name, EXPR, options, {key: (expected, absolute tolerance)}
TABLE = [
    ("C001 row", "norm(x)", ["--set", "x=[1,0,0,0]"],
     {"y": ([1.7320046, -0.5773349, -0.5773349, -0.5773349], 1e-6)}),
    ("C001 second row", "norm(x)", ["--set", "x=[0,1,2,3]"],
     {"y": (NORM4, 1e-6)}),
    ("C001 eps outside the block of rows", "norm(x)",
     ["--set", "x=[[1,0,0,0],[0,1,2,3]]"],
     {"y": ([[1.7320046, -0.5773349, -0.5773349, -0.5773349], NORM4], 1e-6)}),
    *[("C003 eps " + e, "norm(x)",
       ["--set", "x=[5,5,5,5]", "--set", "norm.bias=[0.5,-0.5,0,2]", "--eps", e],
       {"y": ([0.5, -0.5, 0, 2], EXACT)}) for e in ("1e-3", "1e-5", "1e-12")],
    ("C004 wide", "norm(x)",
     ["--set", "x=" + str([1234.0] * 256), "--dtype", "f32"],
     {"y": ([0] * 256, EXACT)}),
    ("C004 two", "norm(x)",
     ["--set", "x=[14,14]", "--dtype", "f32", "--eps", "1e-6"],
     {"y": ([0, 0], EXACT)}),
    ("C004 eight", "norm(x)",
     ["--set", "x=" + str([3.3] * 8), "--dtype", "f32"],
     {"y": ([0] * 8, EXACT)}),
    *[("C005 mean %d" % b, "norm(x)",
       ["--set", "x=" + str([b, b + 1, b + 2, b + 3]), "--dtype", "f32"],
       {"y": (NORM4, 1e-6)}) for b in (0, 2000, 40000, 80000)],
    ("C011 large", "norm(x)",
     ["--set", "x=[1e25,-1e25,1e25,-1e25]", "--dtype", "f32"],
     {"y": ([1, -1, 1, -1], 1e-6)}),
    ("C011 small", "norm(x)",
     ["--set", "x=[1e-30,-1e-30,1e-30,-1e-30]", "--dtype", "f32"],
     {"y": ([3.1622777e-28, -3.1622777e-28] * 2, 3.2e-34)}),
    ("C013 width 1", "norm(x)",
     ["--set", "x=[1e6]", "--set", "norm.gain=[123]", "--set", "norm.bias=[3]",
      "--grad", "[2]"],
     {"y": ([3], EXACT), "grad.norm.gain": ([0], EXACT),
      "grad.norm.bias": ([2], EXACT), "grad.x": ([0], EXACT)}),
    ("C013 large gain", "norm(x)",
     ["--set", "x=[-3]", "--set", "norm.gain=[1e10]", "--set", "norm.bias=[-1]",
      "--eps", "0.1"], {"y": ([-1], EXACT)}),
    *[("C017 eps " + e, "norm(x)",
       ["--set", "x=[1e-3,-1e-3,1e-3,-1e-3]", "--eps", e],
       {"y": ([v, -v, v, -v], 1e-7)})
      for e, v in (("1e-12", 0.9999995), ("1e-5", 0.3015113),
                   ("1e-6", 0.7071068))],
    ("C017 eps in the call wins", "norm(x, eps=1e-6)",
     ["--set", "x=[1e-3,-1e-3,1e-3,-1e-3]", "--eps", "1e-12"],
     {"y": ([0.7071068, -0.7071068] * 2, 1e-7)}),
    ("C018 per token", "norm(x)", ["--set", "x=[[1,2],[3,7]]"],
     {"y": ([[-0.9999800, 0.9999800], [-0.9999988, 0.9999988]], 1e-7)}),
    *[("C019 row of %d" % v, "norm(x)",
       ["--set", "x=" + str([v] * 4), "--grad", "[1,0,0,0]"],
       {"grad.x": ([237.17082, -79.056942, -79.056942, -79.056942], 1e-5)})
      for v in (5, 0)],
    ("C019 ones upstream", "norm(x)",
     ["--set", "x=[[1,1,1],[1,1,1],[1,1,1]]", "--grad",
      "[[1,1,1],[1,1,1],[1,1,1]]"], {"grad.x": ([[0] * 3] * 3, EXACT)}),
    ("C020", "norm(x)", ["--set", X4, "--grad", "[1,0,0,0]"],
     {"grad.x": ([0.2683303, -0.3577684, -0.0894434, 0.1788815], 1e-7)}),
    ("C021", "norm(x)",
     ["--set", "x=[[[1,2,4],[0,1,0]],[[3,3,0],[5,6,10]]]", "--grad",
      "[[[1,1,1],[1,1,1]],[[1,1,1],[1,1,1]]]"],
     {"grad.norm.bias": ([4, 4, 4], EXACT),
      "grad.norm.gain": ([-1.9948465, 1.3911168, 0.6037297], 1e-6),
      "grad.x": ([[[0] * 3] * 2] * 2, 1e-12)}),
    ("C023", "norm(x)",
     ["--set", X4, "--set", "norm.gain=[1,0,1,1]", "--grad", "[1,1,1,1]"],
     {"grad.norm.gain": (NORM4, 1e-6),
      "grad.x": ([0.3577684, -0.6260969, 0.1788851, 0.0894434], 1e-6)}),
    ("C023 gain 0 in a pre-LN block", "x + relu(norm(x))",
     ["--set", X4, "--set", "norm.gain=[0,0,0,0]", "--jacobian", "x", "--grad",
      "[1,1,1,1]"],
     {"jacobian": (EYE4, EXACT), "grad.x": ([1, 1, 1, 1], EXACT)}),
    ("C023 all gains 0", "norm(x)",
     ["--set", X4, "--set", "norm.gain=[0,0,0,0]", "--grad", "[1,1,1,1]"],
     {"grad.norm.gain": (NORM4, 1e-6), "grad.x": ([0] * 4, EXACT)}),
    ("C025", "f(v) = v*v; x = x + f(x)",
     ["--set", "x=[1,2,3]", "--grad", "[1,1,1]"],
     {"y": ([2, 6, 12], EXACT), "grad.x": ([3, 5, 7], EXACT)}),
    ("C026 value semantics", "r = x; x = norm(x); x = 2*x; x = r + x",
     ["--set", X4], {"y": ([1 - 2 * 1.3416354, 2 - 2 * 0.4472118,
                           3 + 2 * 0.4472118, 4 + 2 * 1.3416354], 1e-6)}),
    ("C027 normalised skip", "x = norm(x); x = x + attn(x)",
     ["--set", X4, *ATTN_OFF, "--jacobian", "x", "--tangent", "x=[1,1,1,1]"],
     {"y": (NORM4, 1e-7), "tangent": ([0] * 4, 1e-15)}),
    ("C027 correct", "x = x + attn(norm(x))",
     ["--set", X4, *ATTN_OFF, "--jacobian", "x"],
     {"y": ([1, 2, 3, 4], EXACT), "jacobian": (EYE4, EXACT)}),
    ("C029 no skip, zero branch", "attn(norm(x) + x)",
     ["--set", X4, *ATTN_OFF, "--jacobian", "x"],
     {"y": ([0] * 4, EXACT), "jacobian": ([[0] * 4] * 4, EXACT)}),
    *[("C030 s = %s" % s, "x + norm(s*x)",
       ["--set", X4, "--set", "s=" + s], {"y[3]": (4 + v, 1e-5)})
      for s, v in (("1", 1.341635), ("0.1", 1.341104), ("0.01", 1.290994),
                   ("0.001", 0.447214), ("0.0001", 0.047405), ("0", 0))],
    ("C030 the branch's Jacobian at 0", "norm(s*x)",
     ["--set", X4, "--set", "s=0", "--tangent", "s=1"],
     {"tangent": ([316.22777 * (v - 2.5) for v in (1, 2, 3, 4)], 1e-4)}),
    ("C031 right", "x = x + drop(0*norm(x), 0.5)",
     ["--set", "x=" + str([1] * 12)], {"y": ([1] * 12, EXACT)}),
    ("C046 right", "f = linear(d, d, bias=false); norm(2*x + f(x))",
     ["--set", "x=[1,2,4]", "--set", "f=[[0,0,1],[1,0,0],[0,1,0]]"],
     {"y": ([-0.4629096, -0.9258191, 1.3887287], 1e-6)}),
    ("C046 branch scaled", "f = linear(d, d, bias=false); norm(x + 2*f(x))",
     ["--set", "x=[1,2,4]", "--set", "f=[[0,0,1],[1,0,0],[0,1,0]]"],
     {"y": ([0.9258191, -1.3887287, 0.4629096], 1e-6)}),
    ("C046 no norm", "f = linear(d, d, bias=false); x + 2*f(x)",
     ["--set", "x=[1,2,4]", "--set", "f=[[0,0,1],[1,0,0],[0,1,0]]"],
     {"y": ([9, 4, 8], EXACT)}),
    ("C047", "w = linear(d, d, bias=false); a = scalar(0); x = x + a*w(x)",
     ["--set", "x=[1,1]", "--set", "w=[[2,0],[0,3]]", "--grad", "[1,1]",
      "--jacobian", "x"],
     {"y": ([1, 1], EXACT), "jacobian": ([[1, 0], [0, 1]], EXACT),
      "grad.a": (5, EXACT), "grad.w": ([[0, 0], [0, 0]], EXACT),
      "grad.x": ([1, 1], EXACT)}),
    ("C047 after a step", "w = linear(d, d, bias=false); x = x + a*w(x)",
     ["--set", "x=[1,1]", "--set", "w=[[2,0],[0,3]]", "--set", "a=-0.5",
      "--grad", "[1,1]"],
     {"grad.w": ([[-0.5, -0.5], [-0.5, -0.5]], EXACT),
      "grad.w.weight": ([[-0.5, -0.5], [-0.5, -0.5]], EXACT)}),
    ("C061", "norm(x)", ["--set", "x=[1,2,3]", "--jacobian", "x",
                         "--tangent", "x=[1,1,1]"],
     {"jacobian": ([[0.2041318, -0.4082452, 0.2041134],
                    [-0.4082452, 0.8164905, -0.4082452],
                    [0.2041134, -0.4082452, 0.2041318]], 1e-7),
      "tangent": ([0, 0, 0], 1e-15)}),
    ("C061 gain by rows", "norm(x)",
     ["--set", "x=[1,2,3]", "--set", "norm.gain=[1,2,3]", "--jacobian", "x"],
     {"jacobian": ([[0.2041318, -0.4082452, 0.2041134],
                    [-0.8164904, 1.632981, -0.8164904],
                    [0.6123402, -1.2247356, 0.6123954]], 2e-7)}),
    ("C061 constant row", "norm(x)",
     ["--set", "x=[5,5,5,5]", "--jacobian", "x"], {"jacobian": (FLAT_J, 1e-5)}),
    ("C063 rows and columns", "w = linear(d, d, bias=false); w(x)",
     ["--set", "x=[1,1]", "--set", "w=[[1,2],[3,0]]", "--jacobian", "x",
      "--grad", "[1,0]", "--tangent", "x=[1,0]"],
     {"jacobian": ([[1, 2], [3, 0]], EXACT), "grad.x": ([1, 2], EXACT),
      "tangent": ([1, 3], EXACT)}),
    ("C063 two inputs", "x1 + 2*x2",
     ["--set", "x1=[1]", "--set", "x2=[1]", "--jacobian", "x1,x2"],
     {"y": ([3], EXACT), "jacobian": ([[1, 2]], EXACT)}),
    ("C137 minus and power", "x + -0.5^2*x", ["--set", "x=[1]"],
     {"y": ([0.75], EXACT)}),
    ("C137 power to the right", "2^3^2*x", ["--set", "x=[1]"],
     {"y": ([512], EXACT)}),
    ("definition", "f(v) = 2*v; g(v) = f(v) + 1*v; g(x)", ["--set", "x=[1,-2]"],
     {"y": ([3, -6], EXACT)}),
    ("numbered norms", "norm(x) + norm(2*x)",
     ["--set", X4, "--set", "norm.gain=[0,0,0,0]", "--set",
      "norm2.bias=[1,1,1,1]", "--eps", "0"],
     {"y": ([1 + v for v in (-1.3416407864998738, -0.4472135954999579,
                             0.4472135954999579, 1.3416407864998738)], 1e-15)}),
    ("rmsnorm", "norm(x)", ["--set", "x=[3,4]", "--norm", "rmsnorm", "--eps",
                            "0"],
     {"y": ([3 / math.sqrt(12.5), 4 / math.sqrt(12.5)], 1e-15)}),
    ("linear by name", "w = linear(d, 3); w(x)",
     ["--set", "x=[1,2]", "--set", "w.weight=[[1,0],[0,1],[1,1]]", "--set",
      "w.bias=[10,20,30]"], {"y": ([11, 22, 33], EXACT)}),
    ("vector beside rows", "v*x",
     ["--set", "x=[[1,2],[3,4]]", "--set", "v=[10,20]", "--grad",
      "[[1,1],[1,1]]"],
     {"y": ([[10, 40], [30, 80]], EXACT), "grad.v": ([4, 6], EXACT)}),
]


def value_at(doc, key):
    """grad.norm.gain is the key "norm.gain" of "grad"; y[3] an element."""
    if key.startswith("grad."):
        return doc["grad"][key[5:]]
    if key.endswith("]"):
        name, at = key[:-1].split("[")
        return doc[name][int(at)]
    return doc[key]


def row(expr, options, wanted):
    def run(t):
        doc = t.run("eval", expr, *options, "--json", rc=0).json()
        t.eq(list(doc)[0], "tollbooth")
        for key, (value, tolerance) in wanted.items():
            t.near(value_at(doc, key), value, tolerance, key)
    return run


for _name, _expr, _options, _wanted in TABLE:
    add("eval " + _name, row(_expr, _options, _wanted))


# --- results that need more than a row --------------------------------------

def evaluate(t, expr, *options, rc=0):
    return t.run("eval", expr, *options, "--json", rc=rc).json()


@test
def eval_reference_row(t):
    """(2,4,4,4,5,5,7,9) without eps: dyadic numbers, so all of it exactly."""
    for norm in (["norm(x)", "--eps", "0"], ["norm(x, eps=0)"],
                 ["layernorm(x, eps=0)"]):
        d = evaluate(t, *norm, "--set", "x=[2,4,4,4,5,5,7,9]", "--jacobian", "x",
                     "--tangent", "x=[-1.5,-0.5,-0.5,-0.5,0,0,1,2]")
        t.eq(d["y"], [-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2])
        j = d["jacobian"]
        t.eq(j[0], [0.296875, -0.109375, -0.109375, -0.109375, -0.0625, -0.0625,
                    0.03125, 0.125])
        t.eq(j[7], [0.125, 0, 0, 0, -0.0625, -0.0625, -0.1875, 0.1875])
        t.eq([sum(r[i] for r in j) for i in range(8)], [0] * 8, "column sums")
        t.eq(d["tangent"], [0] * 8, "J applied to the normalised row")
        t.near(math.sqrt(sum(v * v for r in j for v in r)), 1.224745, 1e-6)
    d = evaluate(t, "norm(x)", "--set", "x=[2,4,4,4,5,5,7,9]", "--eps", "0",
                 "--dtype", "f32", "--jacobian", "x")
    t.eq(d["jacobian"][0][:2], [0.296875, -0.109375])


@test
def eval_C005_rows_agree(t):
    rows = [[b + k for k in range(4)] for b in (0, 2000, 40000, 80000)]
    y = evaluate(t, "norm(x)", "--set", "x=%s" % rows, "--dtype", "f32")["y"]
    for r in y:
        t.near(r, y[0], 1e-6)


@test
def eval_C007_wide_row(t):
    values = [f32(100.01), f32(99.99)] * 16384
    t.write("x.npy", npy(values, (32768,), "<f4"))
    y = evaluate(t, "norm(x)", "--set", "x=x.npy", "--dtype", "f32")["y"]
    t.near(y, [0.9534811, -0.9534811] * 16384, 1e-4)


@test
def eval_C016_long_row(t):
    values = [f32(0.1)] * 99999 + [f32(0.2)]
    t.write("x.npy", npy(values, (100000,), "<f4"))
    y = evaluate(t, "norm(x)", "--set", "x=x.npy", "--dtype", "f32")["y"]
    t.near(y[0], -3.1465841e-4, 1e-6)
    t.ok(y[0] < 0)
    t.near(y[-1], 31.465526, 1e-4)


@test
def eval_C009_storage_types(t):
    """Rows of one value with eps 1e-12: zeros, whatever they are stored in."""
    for value in (0.0, 7.0):
        row = [value] * 10
        raw = {"F32": struct.pack("<10f", *row), "F16": struct.pack("<10e", *row),
               "BF16": bf16(row), "F64": struct.pack("<10d", *row)}
        for dtype, data in raw.items():
            t.write("x.safetensors", safetensors({"row": (dtype, [10], data)}))
            for number in ("f32", "f64"):
                y = evaluate(t, "norm(x)", "--set", "x=x.safetensors:row", "--eps",
                             "1e-12", "--dtype", number)["y"]
                t.eq(y, [0] * 10, dtype)


BAD = '[[1,2,3,4],[1,"nan",3,4],[1,"inf",3,4],[4,3,2,1]]'


@test
def eval_C012_bad_rows_stay(t):
    r = t.run("eval", "relu(norm(x))", "--set", "x=" + BAD, "--json", rc=4)
    y = r.json()["y"]
    t.near(y[0], [0, 0, 0.4472118, 1.3416354], 1e-7)
    t.eq(y[1], ["nan"] * 4)
    t.eq(y[2], ["nan"] * 4)
    t.near(y[3], [1.3416354, 0.4472118, 0, 0], 1e-7)
    bad = r.json()["nonfinite"]
    t.eq((bad["rows"], bad["first_row"]), (2, 2))
    t.has(bad["operation"], "norm")
    t.has(r.err, "2 non-finite rows, first at row 2, operation", "norm")
    text = t.run("eval", "relu(norm(x))", "--set", "x=" + BAD, rc=4)
    t.has(text.out, "nan")
    t.has(text.err, "2 non-finite rows")


@test
def eval_C012_activations_keep_nan(t):
    for f in ("relu", "gelu", "silu", "tanh", "sigmoid", "softmax"):
        for dtype in ("f64", "f32"):
            y = evaluate(t, f + "(x)", "--set", 'x=["nan","nan"]', "--dtype",
                         dtype, rc=4)["y"]
            t.eq(y, ["nan", "nan"], f)
    y = evaluate(t, "relu(x)", "--set", 'x=["inf","-inf","nan",-1]', rc=4)["y"]
    t.eq(y, ["inf", 0, "nan", 0])


@test
def eval_C132_numbers_round_trip(t):
    given = ["0.1", "-0.0", "5e-324", "1.7976931348623157e308", "1e-45", "3.4e38",
             "0.30000000000000004", "123456789012345680", "-1e22"]
    y = evaluate(t, "1*x", "--set", "x=[%s]" % ",".join(given))["y"]
    for text, got in zip(given, y):
        t.eq(struct.pack("<d", float(got)), struct.pack("<d", float(text)), text)
    y = evaluate(t, "1*x", "--set", "x=[0.1,1e-45,3.4e38,-0.0]", "--dtype",
                 "f32")["y"]
    for text, got in zip((0.1, 1e-45, 3.4e38, -0.0), y):
        t.eq(struct.pack("<f", got), struct.pack("<f", text), text)
    y = evaluate(t, "1*x", "--set", 'x=["nan","inf","-inf"]', rc=4)["y"]
    t.eq(y, ["nan", "inf", "-inf"])


@test
def eval_C018_rows_do_not_mix(t):
    a = evaluate(t, "norm(x)", "--set", "x=[[1,2],[3,7]]")["y"]
    b = evaluate(t, "norm(x)", "--set", "x=[[1,2],[3,8]]")["y"]
    t.eq(a[0], b[0])
    t.ok(a[1] != b[1])


@test
def eval_C020_invariants(t):
    d = evaluate(t, "norm(x)", "--set", X4, "--grad", "[1,0,0,0]")
    g = d["grad"]["x"]
    t.near(sum(g), 0, 1e-12)
    t.near(sum(a * b for a, b in zip(g, d["y"])), -9.6e-6, 1e-7)


@test
def eval_C030_flat_branch(t):
    d = evaluate(t, "x + norm(s*x)", "--set", X4, "--set", "s=0")
    t.eq(d["y"], [1, 2, 3, 4])


@test
def eval_C031_dropped_sum(t):
    y = evaluate(t, "x = drop(x + 0*x, 0.5)", "--set", "x=" + str([1] * 64))["y"]
    t.eq(sorted(set(y)), [0, 2])


def matvec(m, v):
    return [sum(a * b for a, b in zip(r, v)) for r in m]


def largest_singular(m):
    v = [1.0, 0.3, -0.7, 0.2]
    for _ in range(200):
        w = matvec(m, v)
        w = [sum(m[i][j] * w[i] for i in range(4)) for j in range(4)]
        n = math.sqrt(sum(x * x for x in w))
        v = [x / n for x in w]
    return math.sqrt(n)


@test
def eval_C043_toll_is_paid_once(t):
    for x, wanted in (("[1,2,3,4]", (0.894424, 0.894423)),
                      ("[10,20,30,40]", (0.0894427, 0.0894427))):
        for n in (1, 2, 6, 12, 24):
            expr = "x = " + "norm(" * n + "x" + ")" * n
            d = evaluate(t, expr, "--set", "x=" + x, "--jacobian", "x")
            t.near(largest_singular(d["jacobian"]), wanted[n > 1], 1e-5, n)
            t.near(matvec(d["jacobian"], [1, 1, 1, 1]), [0] * 4, 1e-14)


@test
def eval_C061_scale(t):
    a = evaluate(t, "norm(x)", "--set", X4, "--jacobian", "x")["jacobian"]
    b = evaluate(t, "norm(x)", "--set", "x=[10,20,30,40]", "--jacobian",
                 "x")["jacobian"]
    t.near([[10 * v for v in r] for r in b], a, 2e-5)


@test
def eval_C062_batch(t):
    rows = "x=[[1,2,3],[2,4,6]]"
    full = evaluate(t, "norm(x)", "--set", rows, "--jacobian", "x")["jacobian"]
    t.eq((len(full), len(full[0])), (6, 6))
    off = [full[i][j] for i in range(6) for j in range(6) if (i < 3) != (j < 3)]
    t.eq(off, [0] * 18)
    own = evaluate(t, "norm(x)", "--set", rows, "--jacobian", "x",
                   "--blocks")["jacobian"]
    t.eq(own, [[r[:3] for r in full[:3]], [r[3:] for r in full[3:]]])
    t.near([[2 * v for v in r] for r in own[1]], own[0], 1e-5)
    t.near(sum(map(sum, full)), 0, 1e-12)


@test
def eval_C063_tuple(t):
    r = t.run("eval", "(x1 + 2*x2, 3*x1)", "--set", "x1=[1]", "--set", "x2=[1]",
              "--jacobian", "x1,x2", "--json")
    if r.rc == 3 and "cannot be computed yet" in r.err:
        t.has(r.err, "1:1:")
        raise Skip("several values at once cannot be computed yet")
    t.code(r, 0)
    t.eq(r.json()["jacobian"], [[1, 2], [3, 0]])


@test
def eval_C064_refused_before_memory(t):
    for tokens, size in ((128, 38654705664), (1024, 2473901162496)):
        t.write("x.npy", npy([0.5] * (tokens * 768), (tokens, 768), "<f4"))
        r = t.run("eval", "norm(x)", "--set", "x=x.npy", "--dtype", "f32",
                  "--jacobian", "x", "--json", rc=2)
        t.has(r.err, str(size), "per-token blocks", "bytes")
        t.eq(r.out, "")
        t.ok(r.peak_kb < 500000, "peak memory", r.peak_kb, "kB")


@test
def eval_C064_blocks_instead(t):
    t.write("x.npy", npy([(i * 7919 % 101) / 10 for i in range(16 * 64)],
                         (16, 64), "<f4"))
    d = evaluate(t, "norm(x)", "--set", "x=x.npy", "--jacobian", "x", "--blocks")
    t.eq((len(d["jacobian"]), len(d["jacobian"][0]), len(d["jacobian"][0][0])),
         (16, 64, 64))


@test
def eval_C066_central_difference(t):
    """Two evaluations in double give the Jacobian's entry."""
    h = 1e-5
    up = evaluate(t, "norm(x)", "--set", "x=[%.17g,2,3,4]" % (1 + h))["y"][0]
    down = evaluate(t, "norm(x)", "--set", "x=[%.17g,2,3,4]" % (1 - h))["y"][0]
    t.near((up - down) / (2 * h), 0.2683303039, 1e-9)


def attention(t, mask, last, *more):
    rows = [[math.sin(8 * i + j) for j in range(8)] for i in range(4)]
    rows[3][2] += last
    return evaluate(t, "x + attn(norm(x))", "--set", "x=%s" % rows, "--heads", "2",
                    "--mask", mask, "--seed", "3", *more)


@test
def eval_C068_causal(t):
    a, b = (attention(t, "causal", v, "--jacobian", "x") for v in (0, 0.5))
    t.eq(a["y"][:3], b["y"][:3], "earlier tokens")
    t.ok(a["y"][3] != b["y"][3])
    j = a["jacobian"]
    later = [j[i][k] for i in range(32) for k in range(32) if k // 8 > i // 8]
    t.eq(set(later), {0})
    t.ok(any(j[i][i - 8] != 0 for i in range(8, 32)))
    open_ = attention(t, "none", 0, "--jacobian", "x")["jacobian"]
    t.ok(any(open_[i][k] != 0 for i in range(8) for k in range(8, 32)))


@test
def eval_passes_agree(t):
    """<g, J t> by the tangent equals <J'g, t> by the backward pass."""
    g = [[0.3, -1, 2, 0.5], [1, 0.25, -0.5, 2]]
    v = [[1, 0.5, -2, 0.1], [0.3, 1, 1, -1]]
    for expr in ("x + attn(norm(x))", "norm(x + ffn(x))",
                 "a = scalar(0.5); x + a*silu(x)"):
        d = evaluate(t, expr, "--set", "x=[[1,-2,0.5,3],[0.2,1,-1,2]]", "--grad",
                     str(g), "--tangent", "x=" + str(v), "--jacobian", "x")
        flat = lambda m: [a for r in m for a in r]  # noqa: E731
        left = sum(a * b for a, b in zip(flat(g), flat(d["tangent"])))
        right = sum(a * b for a, b in zip(flat(d["grad"]["x"]), flat(v)))
        t.near(left, right, 1e-12, expr)
        t.near(matvec(d["jacobian"], flat(v)), flat(d["tangent"]), 1e-12, expr)


@test
def eval_seed(t):
    line = ("eval", "ffn(x)", "--set", X4, "--json")
    t.eq(t.run(*line, "--seed", "7").out, t.run(*line, "--seed", "7").out)
    t.ok(t.run(*line, "--seed", "7").out != t.run(*line, "--seed", "8").out)
    t.eq(t.run(*line).out, t.run(*line, "--seed", "1").out)


@test
def eval_files(t):
    t.write("x.npy", npy([1, 2, 3, 4], (2, 2)))
    t.write("w.safetensors", safetensors({
        "a.b": ("F32", [2, 2], struct.pack("<4f", 1, 0, 0, 2)),
        "other": ("F32", [1], struct.pack("<f", 1))}))
    y = evaluate(t, "w = linear(d, d, bias=false); w(x)", "--set", "x=x.npy",
                 "--set", "w=w.safetensors:a.b")["y"]
    t.eq(y, [[1, 4], [3, 8]])
    for value, message in (
            ("nothing.npy", "nothing.npy: cannot open"),
            ("w.safetensors:zzz", "zzz"),
            ("w.safetensors", "w.safetensors:TENSOR"),
            ("nothing.safetensors:a", "cannot open"), ("x", "not JSON")):
        r = t.run("eval", "1*x", "--set", "x=" + value, rc=3)
        t.has(r.err, message)
        t.ok("bad input" not in r.err, r)
    t.write("cut.npy", npy([1, 2, 3, 4], (2, 2))[:-3])
    t.has(t.run("eval", "1*x", "--set", "x=cut.npy", rc=3).err, "cut.npy")


@test
def eval_text(t):
    """Numbers for people: every value named, seven digits."""
    r = t.run("eval", "norm(x)", "--set", X4, "--grad", "[1,0,0,0]", "--tangent",
              "x=[1,0,0,0]", "--jacobian", "x", rc=0)
    t.has(r.out, "y", "-1.341635", "grad x", "grad norm.gain", "0.2683303",
          "tangent", "jacobian", "rows are outputs")


# --- refusals ----------------------------------------------------------------

REFUSED = [
    ("bare NaN", 3, ["norm(x)", "--set", "x=[1,NaN]"],
     ["not JSON", "line 1, column 6", '"nan"']),
    ("bare Infinity", 3, ["norm(x)", "--set", "x=[1,Infinity]"], ["not JSON"]),
    ("ragged", 3, ["norm(x)", "--set", "x=[[1,2],[3]]"], ["ragged", "2", "1"]),
    ("ragged depth", 3, ["norm(x)", "--set", "x=[[1,2],3]"], ["ragged"]),
    ("empty", 3, ["norm(x)", "--set", "x=[]"], ["empty"]),
    ("object", 3, ["norm(x)", "--set", "x={}"], ["object", "wanted"]),
    ("null", 3, ["norm(x)", "--set", "x=[null]"], ["null", "wanted"]),
    ("bool", 3, ["norm(x)", "--set", "x=[true]"], ["wanted"]),
    ("word", 3, ["norm(x)", "--set", 'x=["abc"]'], ["abc", "wanted"]),
    ("too deep", 3, ["norm(x)", "--set", "x=[[[[1]]]]"], ["4 lists", "3"]),
    ("duplicate", 3, ["norm(x)", "--set", "x=[1,2]", "--set", "x=[1,2]"],
     ["x", "twice"]),
    ("number as stream", 3, ["norm(x)", "--set", "x=5"], ["1:1", "stream"]),
    ("unknown name", 3, ["norm(x)", "--set", "x=[1,2]", "--set",
                         "norm.gian=[1,2]"],
     ["norm.gian", "did you mean norm.gain?"]),
    ("unset", 3, ["norm(x) + z", "--set", "x=[1,2]"], ["1:11", "z", "^"]),
    ("gain shape", 3, ["norm(x)", "--set", "x=[1,2]", "--set",
                       "norm.gain=[1,2,3]"], ["got [3], wanted [2]"]),
    ("weight shape", 3, ["ffn(x)", "--set", "x=[1,2]", "--set",
                         "ffn.up.weight=[[1]]"], ["got [1,1], wanted [8,2]"]),
    ("grad shape", 3, ["norm(x)", "--set", "x=[1,2]", "--grad", "[1]"],
     ["got [1], wanted [2]"]),
    ("grad rank", 3, ["norm(x)", "--set", "x=[1,2]", "--grad", "[[1,2]]"],
     ["wanted [2]"]),
    ("tangent shape", 3, ["norm(x)", "--set", "x=[1,2]", "--tangent", "x=[1]"],
     ["got [1], wanted [2]"]),
    ("tangent name", 3, ["norm(x)", "--set", "x=[1,2]", "--tangent", "xx=[1]"],
     ["xx", "did you mean x?"]),
    ("jacobian name", 3, ["norm(x)", "--set", "x=[1,2]", "--jacobian", "xx"],
     ["xx", "did you mean x?"]),
    ("eps 0", 3, ["norm(x)", "--set", "x=[[1,2],[5,5]]", "--eps", "0"],
     ["zero variance", "eps = 0", "row 2"]),
    ("eps 0 in the call", 3, ["norm(x, eps=0)", "--set", "x=[5,5]"],
     ["zero variance"]),
    ("eps -1", 2, ["norm(x)", "--set", "x=[1,2]", "--eps", "-1"],
     ["--eps: got -1, wanted"]),
    ("eps nan", 2, ["norm(x)", "--set", "x=[1,2]", "--eps", "nan"],
     ["--eps: got nan, wanted"]),
    ("eps inf", 2, ["norm(x)", "--set", "x=[1,2]", "--eps", "inf"],
     ["--eps: got inf, wanted"]),
    ("eps -1 in the call", 3, ["norm(x, eps=-1)", "--set", "x=[1,2]"],
     ["eps", "1:"]),
    ("norm kind", 2, ["norm(x)", "--set", "x=[1,2]", "--norm", "lyernorm"],
     ["got lyernorm, wanted one of layernorm"]),
    ("heads", 2, ["attn(x)", "--set", "x=[1,2,3]", "--heads", "2"],
     ["got 3, wanted a multiple of 2"]),
    ("not closed", 3, ["norm(x", "--set", "x=[1,2]"], ["1:5", "^"]),
    ("unknown function", 3, ["nrom(x)", "--set", "x=[1,2]"],
     ["1:1", "did you mean norm?", "^"]),
    ("linear times", 3, ["w = linear(d, d); w*x", "--set", "x=[1,2]"], ["w(x)"]),
    ("empty text", 3, [""], ["statement"]),
    ("reserved", 3, ["h = norm(x)", "--set", "x=[1,2]"], ["1:1", "h"]),
]


def refusal(rc, words, messages):
    def run(t):
        for json_too in ([], ["--json"]):
            r = t.run("eval", *words, *json_too, rc=rc)
            t.eq(r.out, "", r)
            t.ok(r.err.startswith("tollbooth"), r)
            t.has(r.err, *messages)
    return run


for _name, _rc, _words, _messages in REFUSED:
    add("eval refuses " + _name, refusal(_rc, _words, _messages))


@test
def eval_unicode_operators(t):
    """Read, or refused with a column; never skipped."""
    for expr, wanted in (("x \u2212 2*x", [-1]), ("2\u00b7x", [2]),
                         ("2\u00d7x", [2]), ("x \u00f7 2", [0.5])):
        r = t.run("eval", expr, "--set", "x=[1]", "--json")
        if r.rc == 3:
            t.has(r.err, "1:")
        else:
            t.code(r, 0)
            t.eq(r.json()["y"], wanted, expr)


@test
def eval_hostile(t):
    for text in ("(" * 10000 + "x" + ")" * 10000, "x" * 100000, "x+" * 30000 + "x",
                 "\x01\x02", "x = \xff", "#", ";;;;", "0*x" + "-" * 5000 + "x"):
        r = t.run("eval", text, "--set", "x=[1]")
        t.ok(r.rc in (0, 3), r)
    t.run("eval", "1*x", "--set", "x=" + "[" * 5000 + "]" * 5000, rc=3)
    t.has(t.run("eval", "-" * 5000, rc=2).err, "unknown option ----")


@test
def eval_starts_with_minus(t):
    """A minus before a number or bracket is no option; -x needs --."""
    t.eq(evaluate(t, "-2*x", "--set", "x=[1]")["y"], [-2])
    t.eq(evaluate(t, "-(x)", "--set", "x=[1]")["y"], [-1])
    t.eq(t.run("eval", "--set", "x=[1]", "--json", "--", "-x", rc=0).json()["y"],
         [-1])


alone(__name__)
