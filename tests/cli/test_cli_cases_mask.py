# SPDX-License-Identifier: MIT
"""Cases of attention masks, through the command line: the number in a test's
name is the case's. Attention is held against softmax written out in double."""

import json
import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, story, test  # noqa: E402

Q = [[0.3, -1.2], [2.0, 0.4], [-0.7, 0.9]]
K = [[1.1, 0.2], [-0.5, 1.5], [0.6, -2.0]]
V = [[1.0, -3.0], [0.25, 5.0], [4.0, 2.0]]
LOWER = [[float(j <= i) for j in range(3)] for i in range(3)]
UPPER = [[float(j > i) for j in range(3)] for i in range(3)]


def attend(q, k, v, keep):
    """softmax(q k'/sqrt(d)) v over what `keep` shows; zeros for nothing."""
    out = []
    for i, a in enumerate(q):
        s = [math.fsum(x * y for x, y in zip(a, b)) / math.sqrt(len(a)) for b in k]
        e = [math.exp(x) if keep[i][j] else 0.0 for j, x in enumerate(s)]
        total = math.fsum(e) or 1.0
        out.append([math.fsum(p * r[c] for p, r in zip(e, v)) / total
                    for c in range(len(v[0]))])
    return out


def mha(t, mask=None, word="keep", *words, q=Q, k=K, v=V, causal=False, rc=0):
    call = "mha(qs, ks, vs%s)" % (", %s=m" % word if mask is not None else "")
    sets = [("qs", q), ("ks", k), ("vs", v)] + ([("m", mask)] if mask is not None else [])
    line = [w for n, x in sets for w in ("--set", "%s=%s" % (n, json.dumps(x)))]
    r = t.run("eval", call, *line, "--mask", "causal" if causal else "none",
              *words, "--json", rc=rc)
    return r if rc else r.json()


ONES = json.dumps([[1, 1]] * 3)


@test
def case_C074_a_row_that_sees_nothing(t):
    keep = [[1, 1, 1], [0, 0, 0], [1, 1, 1]]
    full = mha(t, None, "keep", "--grad", ONES)
    d = mha(t, keep, "keep", "--grad", ONES)
    t.near(d["y"], attend(Q, K, V, keep), 1e-14)
    t.eq(d["y"][1], [0, 0])
    t.eq(d["grad"]["qs"][1], [0, 0])
    t.eq([d["y"][i] for i in (0, 2)], [full["y"][i] for i in (0, 2)])
    t.eq([d["grad"]["qs"][i] for i in (0, 2)], [full["grad"]["qs"][i] for i in (0, 2)])
    # what keys and values get is what the other two rows give them
    cot = json.dumps([[1, 1], [0, 0], [1, 1]])
    two = mha(t, None, "keep", "--grad", cot)["grad"]
    t.near(d["grad"]["ks"], two["ks"], 1e-15)
    t.near(d["grad"]["vs"], two["vs"], 1e-15)
    t.eq(d["empty_rows"], 1)
    # arbitrary and non-finite numbers in the hidden places do not come through
    for bad in (1e300, "nan", "inf"):
        q = [Q[0], [bad, bad], Q[2]]
        e = mha(t, keep, "keep", q=q)
        t.eq([e["y"][i] for i in (0, 1, 2)], d["y"], bad)
    # every row empty, in a batch of two, told once
    line = [w for n, x in (("qs", [Q, Q]), ("ks", [K, K]), ("vs", [V, V]),
                           ("m", [[[0] * 3] * 3] * 2))
            for w in ("--set", "%s=%s" % (n, json.dumps(x)))]
    r = t.run("eval", "mha(qs, ks, vs, keep=m)", *line, "--mask", "none", "--grad",
              json.dumps([[[1, 1]] * 3] * 2), "--tangent",
              "qs=" + json.dumps([Q, Q]), "--json", rc=0)
    zeros = [[[0, 0]] * 3] * 2
    d = r.json()
    t.eq((d["y"], d["tangent"], d["empty_rows"]), (zeros, zeros, 6))
    for name in ("qs", "ks", "vs"):
        t.eq(d["grad"][name], zeros, name)
    t.eq(r.err.count("see nothing"), 1)


@test
def case_C074_keys_that_nobody_sees(t):
    """Padding: [T, 1], as a whole column of zeros."""
    for pad, dtype in (([1, 1, 0], "f64"), ([0, 1, 1], "f64"), ([1, 0, 0], "f32")):
        column = [[float(p)] for p in pad]
        square = [[float(p) for p in pad]] * 3
        a = mha(t, column, "keep", "--grad", ONES, "--dtype", dtype)
        b = mha(t, square, "keep", "--grad", ONES, "--dtype", dtype)
        t.eq(a["y"], b["y"])
        for name in ("qs", "ks", "vs"):
            t.eq(a["grad"][name], b["grad"][name], name)
        t.near(a["y"], attend(Q, K, V, square), 1e-14 if dtype == "f64" else 1e-6)
        for i in range(3):
            if not pad[i]:
                t.eq((a["grad"]["ks"][i], a["grad"]["vs"][i]), ([0, 0], [0, 0]))
    # with causality: rows before the first key see nothing
    d = mha(t, [[0.0], [0.0], [1.0]], "keep", causal=True)
    t.eq((d["y"], d["empty_rows"]), ([[0, 0], [0, 0], V[2]], 2))


@test
def case_C075_masks_join_as_booleans(t):
    """Hidden twice is hidden: never an infinity, whatever the number type."""
    for dtype in ("f64", "f32"):
        for keep in (LOWER, [[1, 0, 0], [1, 1, 0], [1, 0, 1]], [[0, 0, 0]] * 3):
            both = [[a * b for a, b in zip(r, s)] for r, s in zip(keep, LOWER)]
            one = mha(t, keep, "keep", "--grad", ONES, "--dtype", dtype, causal=True)
            two = mha(t, both, "keep", "--grad", ONES, "--dtype", dtype)
            t.eq((one["y"], one["grad"]["qs"], one["grad"]["ks"], one["grad"]["vs"]),
                 (two["y"], two["grad"]["qs"], two["grad"]["ks"], two["grad"]["vs"]))
            t.near(one["y"], attend(Q, K, V, both), 1e-14 if dtype == "f64" else 1e-6)
    # scores as large as f32 holds do not overflow behind a mask
    big = [[1e18, 1e18]] * 3
    d = mha(t, LOWER, "keep", "--dtype", "f32", q=big, k=big, causal=True)
    t.near(d["y"], attend([[0, 0]] * 3, K, V, LOWER), 1e-5)
    # a mask of finite "minus infinities" is refused, not added
    for low in (-3.4028235e38, "-inf", 0.5, "nan"):
        r = mha(t, [[0, low, low], [0, 0, low], [0, 0, 0]], "keep", rc=3)
        t.has(r.err, "a mask holds 1 (keep) or 0 (hide)")


@test
def case_C077_keep_or_hide(t):
    causal = mha(t, None, causal=True)["y"]
    t.eq(mha(t, UPPER, "hide")["y"], causal)
    t.eq(mha(t, LOWER, "keep")["y"], causal)
    kept = mha(t, UPPER, "keep")
    t.near(kept["y"], attend(Q, K, V, UPPER), 1e-14)
    t.eq((kept["y"][2], kept["empty_rows"]), ([0, 0], 1))
    # row 0 of `keep UPPER` sees 1 and 2: the average lies between them
    t.ok(min(V[1][0], V[2][0]) <= kept["y"][0][0] <= max(V[1][0], V[2][0]))
    # leak test: token 2 changed, outputs 0 and 1 stay to the bit
    for mask, word in ((UPPER, "hide"), (LOWER, "keep")):
        other = mha(t, mask, word, q=Q[:2] + [[9, 9]], k=K[:2] + [[-7, 3]],
                    v=V[:2] + [[100, -100]])["y"]
        t.eq(other[:2], causal[:2])
    # no mask without a name that says what 1 means
    for call, message in (("mha(qs, ks, vs, mask=m)", "wanted scale keep hide"),
                          ("mha(qs, ks, vs, m)", "got 4 arguments, wanted 3"),
                          ("mha(qs, ks, vs, keep=m, hide=m)", "both keep and hide")):
        line = [w for n, x in (("qs", Q), ("ks", K), ("vs", V), ("m", LOWER))
                for w in ("--set", "%s=%s" % (n, json.dumps(x)))]
        t.has(t.run("eval", call, *line, rc=3).err, message)
    t.has(mha(t, [[1, 1]] * 3, rc=3).err, "mask")
    t.has(t.run("explain", "attn(x) = o(mha(q(x), k(x), v(x), keep=x)); "
                "x = x + F(norm(x))", rc=3).err, "for eval")


@test
def case_C078_one_token_at_a_time_is_the_full_pass(t):
    """Greedy text is what the full pass finds likeliest at every place: what a
    token sees does not depend on how many come after it."""
    t.write("book.txt", story(400))
    t.run("train", "pre-ln", "--text", "book.txt", "--out", "run", "--depth", "2",
          "--width", "16", "--heads", "2", "--context", "24", "--batch", "4",
          "--steps", "60", "--lr", "1e-2", "--exact", rc=0)
    for prompt in ("the ", "a mat"):
        text = t.run("generate", "run", "--prompt", prompt, "--tokens", "12",
                     "--greedy", rc=0).out.rstrip("\n")
        text = text[:24]
        t.write("out.txt", text)
        t.run("score", "run", "--text", "out.txt", "--logits", "l.npy", "--exact",
              rc=0)
        rows = read_npy(t.path("l.npy"))
        letters = sorted(set(story(400)))
        for i in range(len(prompt) - 1, len(text) - 1):
            best = max(range(len(letters)), key=lambda c: rows[i][c])
            gap = rows[i][best] - rows[i][letters.index(text[i + 1])]
            t.ok(gap <= 1e-5, i, text[i + 1], letters[best], gap)
        # a shorter text has the same logits, to the bit
        t.write("short.txt", text[:8])
        t.run("score", "run", "--text", "short.txt", "--logits", "s.npy",
              "--exact", rc=0)
        t.near(read_npy(t.path("s.npy")), rows[:len(read_npy(t.path("s.npy")))],
               1e-5)


def read_npy(path):
    import struct
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<H", raw[8:10])[0]
    head = raw[10:10 + n].decode()
    dims = eval(head[head.index("'shape': ") + 9:head.index(")") + 1])
    code, size = ("f", 4) if "f4" in head else ("d", 8)
    flat = struct.unpack("<%d%s" % (len(raw[10 + n:]) // size, code), raw[10 + n:])
    return [list(flat[i * dims[1]:(i + 1) * dims[1]]) for i in range(dims[0])]


@test
def memory_of_any_length(t):
    """No causality hides a memory; other keys are seen up to the query's own
    place, counted from the end, and a query before the first one sees none."""
    for k, v in ((K, V), (K[:2], V[:2]), (K + Q, V + Q)):
        sets = ["--set", "x=" + json.dumps(Q), "--set", "memory=" + json.dumps(k)]
        d = t.run("eval", "mha(x, memory, memory)", *sets, "--grad", ONES, "--json",
                  rc=0).json()
        t.near(d["y"], attend(Q, k, k, [[1] * len(k)] * 3), 1e-14)
        t.eq([len(d["grad"][n]) for n in ("x", "memory")], [3, len(k)])
        keep = [[j <= i + len(k) - 3 for j in range(len(k))] for i in range(3)]
        d = mha(t, k=k, v=v, causal=True)
        t.near(d["y"], attend(Q, k, v, keep), 1e-14)
        t.eq(d.get("empty_rows", 0), 1 if len(k) < 3 else 0)
        t.near(mha(t, k=k, v=v)["y"], attend(Q, k, v, [[1] * len(k)] * 3), 1e-14)
    t.has(mha(t, k=K[:2], rc=3).err, "k and v must have the same number of tokens")


alone(__name__)
