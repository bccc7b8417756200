# SPDX-License-Identifier: MIT
"""tollbooth train, generate, score: results, resume byte for byte, texts of
every kind, full disks, divergence."""

import gzip
import hashlib
import json
import os
import random
import resource
import signal
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import add, alone, is_finite, story, test  # noqa: E402

TINY = ("--width", "16", "--heads", "2", "--depth", "2", "--context", "16",
        "--batch", "4", "--warmup", "5")
FILES = ("block.txt", "config.json", "model.safetensors", "state.safetensors",
         "tokenizer.json")
ALL = (*FILES, "log.jsonl")  # which holds speeds, so no two are alike


def book(t, words=600):
    t.write("book.txt", story(words))


def train(t, *words, rc=0, **more):
    return t.run("train", *words, rc=rc, **more)


def digest(t, folder):
    out = {}
    for name in FILES:
        with open(t.path(folder, name), "rb") as f:
            out[name] = hashlib.sha256(f.read()).hexdigest()
    return out


def same_run(t, a, b):
    t.eq(digest(t, a), digest(t, b), "%s and %s" % (a, b))


@test
def train_lines(t):
    book(t)
    r = train(t, "pre-ln", "--text", "book.txt", "--out", "run", *TINY, "--steps",
              "20", "--val-every", "10", "--json")
    lines = r.lines()
    head, steps, done = lines[0], lines[1:-1], lines[-1]
    t.eq(list(head)[0], "tollbooth")
    t.eq((head["settings"]["width"], head["settings"]["block_name"]),
         (16, "pre-ln"))
    t.eq([s["step"] for s in steps], list(range(1, 21)))
    m = head["memory"]
    t.eq(m["weights"] + m["gradients"] + m["optimizer"], m["parameters"])
    t.eq(m["saved"] + m["work"], m["activations"])
    t.eq((m["gradients"], m["optimizer"]), (m["weights"], 2 * m["weights"]))
    t.ok(min(m.values()) > 0, m)
    t.has(r.err, "tollbooth: memory ", ": weights ", ", workspace ")
    for s in steps:
        t.ok(all(is_finite(s[k]) for k in ("loss", "lr", "grad_norm",
                                            "tokens_per_s")), s)
        t.eq("val_loss" in s, s["step"] % 10 == 0)
    t.near(steps[0]["lr"], 0.001 / 5, 1e-12)  # C115: no update at rate 0
    t.near(steps[4]["lr"], 0.001, 1e-12)
    t.ok(abs(steps[0]["loss"] - 2.9) < 0.8, "near ln(vocabulary)", steps[0])
    t.ok(steps[-1]["loss"] < steps[0]["loss"])
    t.eq((done["done"], done["steps"], done["out"]), (True, 20, "run"))
    t.eq(done["val_loss"], steps[-1]["val_loss"])
    t.eq(sorted(os.listdir(t.path("run"))), sorted(ALL))
    with open(t.path("run", "config.json")) as f:
        t.eq(json.load(f)["steps"], 20)
    with open(t.path("run", "log.jsonl"), encoding="utf-8") as f:
        t.eq(f.read(), r.out, "the folder keeps the lines")
    text = train(t, "pre-ln", "--text", "book.txt", *TINY, "--steps", "20")
    t.has(text.out, "20 updates", "validation", "nats per token")
    t.ok("saved in" not in text.out)
    t.has(text.err, "20/20")


@test
def train_C118_groups(t):
    book(t)
    head = train(t, "pre-ln", "--text", "book.txt", *TINY, "--steps", "1",
                 "--json").lines()[0]
    decay = {g["role"]: g["decay"] for g in head["groups"]}
    t.eq(decay, {"matrix": True, "bias": False, "gain": False,
                 "embedding": False})
    t.eq(sum(g["elements"] for g in head["groups"]), head["parameters"])


@test
def train_C123_threads(t):
    book(t)
    losses = []
    for n in ("1", "2", "3", "8"):
        r = train(t, "pre-ln", "--text", "book.txt", *TINY, "--steps", "20",
                  "--json", "--exact", "--dropout", "0.1",
                  env={"TB_THREADS": n})
        losses.append([s["loss"] for s in r.lines()[1:]])
    t.eq(losses[1:], losses[:-1])


LONG = ("--steps", "400", "--save-every", "20", "--val-every", "100", "--dropout",
        "0.1", "--exact")


def whole(t):
    """The run that nobody stopped."""
    book(t)
    train(t, "pre-ln", "--text", "book.txt", "--out", "whole", *TINY, *LONG)


@test
def train_C122_interrupted(t):
    whole(t)
    line = ["train", "pre-ln", "--text", "book.txt", "--out", "cut", *TINY, *LONG]
    sig = {0: signal.SIGINT, 1: signal.SIGTERM}
    for k in range(2):
        p = t.start(*line, "--json", stdout=-1, stderr=-1)
        for _ in range(30 + 50 * k):
            p.stdout.readline()
        p.send_signal(sig[k])
        out, err = p.communicate(timeout=60)
        if p.returncode == 0:
            break  # it was done before the signal came
        t.eq(p.returncode, 130, err)
        last = json.loads(out.decode().splitlines()[-1])
        t.eq(last["done"], False)
        t.ok(0 < last["steps"] < 400, last)
        t.has(err.decode(), "interrupted after step %d" % last["steps"])
        t.run("score", "cut", "--text", "book.txt", rc=0)
        line = ["train", "--out", "cut", "--resume"] + (["--exact"])
    r = train(t, "--out", "cut", "--resume", "--exact", "--json")
    t.eq(r.lines()[-1]["steps"], 400)
    same_run(t, "cut", "whole")


@test
def train_C122_killed(t):
    """kill -9 at random moments: what is there can be used, and the end is
    that of the run that nobody killed."""
    began = time.monotonic()
    whole(t)
    longest = max(0.03, (time.monotonic() - began) / 4)
    rng = random.Random(7)
    fresh = ["train", "pre-ln", "--text", "book.txt", "--out", "cut", *TINY, *LONG]
    killed = 0
    for _ in range(8):
        have = os.path.exists(t.path("cut", "state.safetensors"))
        if not have and os.path.isdir(t.path("cut")):
            for name in os.listdir(t.path("cut")):
                os.remove(t.path("cut", name))
            os.rmdir(t.path("cut"))
        line = ["train", "--out", "cut", "--resume", "--exact"] if have else fresh
        p = t.start(*line, stdout=-3, stderr=-3)
        time.sleep(rng.uniform(0.01, longest))
        p.kill()
        killed += p.wait() == -signal.SIGKILL
        if os.path.exists(t.path("cut", "state.safetensors")):
            t.run("score", "cut", "--text", "book.txt", rc=0)
            t.run("generate", "cut", "--tokens", "2", rc=0)
    t.ok(killed >= 2, "killed", killed, "times only")
    if not os.path.exists(t.path("cut", "state.safetensors")):
        fresh[5] = "cut2"
        t.run(*fresh, rc=0)
        return same_run(t, "cut2", "whole")
    train(t, "--out", "cut", "--resume", "--exact")
    same_run(t, "cut", "whole")
    t.eq(sorted(os.listdir(t.path("cut"))), sorted(ALL), "nothing left over")


@test
def train_bf16(t):
    """What a folder says, the same bytes twice, not resumed as f32; emulated in
    an exact run and where the processor lacks it."""
    book(t)
    for name, exact in (("run", ()), ("exact", ("--exact",))):
        words = ("pre-ln", "--text", "book.txt", *TINY, "--steps", "8", "--dtype",
                 "bf16", *exact)
        head = train(t, *words, "--out", name, "--json").lines()[0]
        t.eq(head["settings"]["dtype"], "bf16")
        t.has(head["machine"]["gemm"], "bf16")
        if exact:
            t.has(head["machine"]["gemm"], "emulated in f32")
        with open(t.path(name, "config.json")) as f:
            t.eq(json.load(f)["dtype"], "bf16")
        train(t, *words, "--out", name + "2")
        same_run(t, name, name + "2")
        train(t, "--out", name + "2", "--resume", *exact)
        r = t.run("score", name, "--text", "book.txt", "--json", rc=0).json()
        t.ok(is_finite(r["loss"]), r)
        t.run("generate", name, "--tokens", "5", rc=0)
    resume_refused(t, ("dtype", "got f32", "has bf16"), "--dtype", "f32")
    t.has(train(t, "pre-ln", "--text", "book.txt", "--dtype", "f16", rc=2).err,
          "--dtype", "f32|bf16")
    capped = train(t, "pre-ln", "--text", "book.txt", *TINY, "--steps", "1",
                   "--dtype", "bf16", "--json", env={"TB_ISA": "avx2"}).lines()[0]
    t.has(capped["machine"]["gemm"], "bf16 emulated in f32")


def resume_refused(t, message, *words):
    before = digest(t, "run")
    r = t.run("train", "--out", "run", "--resume", *words)
    t.ok(r.rc in (2, 3), r)
    t.has(r.err, *message if isinstance(message, tuple) else (message,))
    t.eq(digest(t, "run"), before, "the old run is untouched")


@test
def train_resume_of_another_run(t):
    book(t)
    train(t, "pre-ln", "--text", "book.txt", "--out", "run", *TINY, "--steps", "5")
    resume_refused(t, ("block", "differs"), "post-ln")
    resume_refused(t, ("lr", "got 0.5"), "--lr", "0.5")
    resume_refused(t, ("width", "got 32"), "--width", "32")
    resume_refused(t, ("steps", "got 6"), "--steps", "6")
    resume_refused(t, ("seed", "got 9"), "--seed", "9")
    resume_refused(t, ("dtype", "got bf16", "has f32"), "--dtype", "bf16")
    train(t, "--out", "run", "--resume", "--dtype", "f32")  # no difference
    t.write("other.txt", story(600, seed=5))
    resume_refused(t, "other.txt", "--text", "other.txt")
    resume_refused(t, "none: cannot open", "--text", "none")
    t.write("book.txt", story(599))
    resume_refused(t, "book.txt")
    r = t.run("train", "--out", "none", "--resume", rc=3)
    t.has(r.err, "none", "nothing to resume")
    book(t)
    r = t.run("train", "pre-ln", "--text", "book.txt", "--out", "run", *TINY, rc=3)
    t.has(r.err, "run", "resume")
    os.remove(t.path("run", "config.json"))
    t.has(t.run("train", "--out", "run", "--resume", rc=3).err, "config.json")


@test
def train_resume_of_a_finished_run(t):
    book(t)
    train(t, "pre-ln", "--text", "book.txt", "--out", "run", *TINY, "--steps", "5")
    before = digest(t, "run")
    r = train(t, "--out", "run", "--resume", "--json")
    t.eq((r.lines()[-1]["done"], r.lines()[-1]["steps"]), (True, 5))
    t.eq(digest(t, "run"), before)
    t.ok("tokens/s" not in train(t, "--out", "run", "--resume").out)


# --- texts -------------------------------------------------------------------

def corpus(t, data, *words, name="a.txt", rc=0):
    t.write(name, data)
    r = t.run("train", "pre-ln", "--text", name, "--width", "8", "--heads", "2",
              "--depth", "1", "--context", "8", "--batch", "2", "--steps", "2",
              "--json", *words, rc=rc)
    return r.lines()[0]["corpus"] if rc == 0 else r


@test
def train_C108_short_texts(t):
    for n in (0, 8):
        r = corpus(t, b"abcdefgh"[:n], rc=3)
        t.has(r.err, "a.txt")
        if n:
            t.has(r.err, "need at least 9 tokens, have ")
    r = corpus(t, b"abcd" * 10, rc=3)
    t.has(r.err, "validation", "need at least 9 tokens, have 4")
    t.ok(not os.path.exists(t.path("run")))


@test
def train_C109_line_ends(t):
    c = corpus(t, b"\xef\xbb\xbf" + b"a\r\nb\n\rc" * 40)
    t.eq([c[k] for k in ("bytes", "crlf", "lf", "cr", "bom")],
         [283, 40, 40, 40, True])
    c = corpus(t, b"a\r\nb\r\n" * 40, "--out", "crlf")
    t.eq((c["crlf"], c["lf"], c["cr"], c["bom"]), (80, 0, 0, False))
    with open(t.path("crlf", "tokenizer.json")) as f:
        t.eq(json.load(f)["codepoints"], [10, 13, 97, 98])
    r = t.run("generate", "crlf", "--prompt", "a\r\nb\r\n", "--tokens", "0", rc=0)
    t.eq(r.raw, b"a\r\nb\r\n\n")
    t.write("b.txt", b"a\r\nb\r\n" * 3)
    t.eq(t.run("score", "crlf", "--text", "b.txt", "--json",
               rc=0).json()["tokens"], 17)


@test
def train_binary_text(t):
    rng = random.Random(3)
    data = bytes(rng.randrange(256) for _ in range(3000))
    c = corpus(t, data, "--tokenizer", "byte", "--out", "run")
    t.eq(c["bytes"], 3000)
    t.ok(c["invalid_bytes"] > 0 and c["nul"] > 0, c)
    t.write("other", bytes(range(256)))
    t.eq(t.run("score", "run", "--text", "other", "--json", rc=0).json()["tokens"],
         255)
    t.run("generate", "run", "--prompt", "\u00e9", "--tokens", "40", rc=0)
    corpus(t, data)  # by characters too


@test
def train_gzip(t):
    text = story(400).encode()
    c = corpus(t, gzip.compress(text), name="a.txt.gz")
    t.eq((c["bytes"], c["gzip"]), (len(text), True))
    r = corpus(t, gzip.compress(text)[:-20], name="cut.gz", rc=3)
    t.has(r.err, "cut.gz", "gzip")


@test
def train_stdin(t):
    text = story(400)
    t.write("a.txt", text)
    line = ["train", "pre-ln", "--width", "8", "--heads", "2", "--depth", "1",
            "--context", "8", "--steps", "3", "--json", "--text"]
    a = [s["loss"] for s in t.run(*line, "a.txt", rc=0).lines()[1:]]
    b = [s["loss"] for s in t.run(*line, "-", stdin=text.encode(), rc=0).lines()[1:]]
    t.eq(a, b)
    t.run(*line, "-", rc=3)


@test
def train_missing_text(t):
    r = t.run("train", "pre-ln", "--text", "none.txt", "--out", "run", rc=3)
    t.eq(r.err, "tollbooth: none.txt: cannot open: No such file or directory\n")
    t.ok(not os.path.exists(t.path("run")))
    t.has(t.run("train", "pre-ln", "--text", "/", rc=3).err, "Is a directory")


@test
def train_impossible(t):
    book(t)
    for words, rc, message in (
            (["--width", "15"], 2, "width: got 15, wanted a multiple of 2 heads"),
            (["--tokenizer", "cahr"], 2, "got 'cahr', wanted char or byte"),
            (["--lr", "0,001"], 2, "--lr: got 0,001"),
            (["--beta2", "1"], 2, "beta2"),
            (["--dropout", "1"], 2, "dropout"),
            (["--schedule", "lin"], 2, "constant|cosine|invsqrt"),
            (["--context", "100000"], 3, "need at least 100001 tokens"),
            (["--batch", "100000000000"], 2, "batch")):
        r = t.run("train", "pre-ln", "--text", "book.txt", "--out", "run", *TINY,
                  *words, rc=rc)
        t.has(r.err, message)
        t.ok(not os.path.exists(t.path("run")), "a folder is left")
    t.has(t.run("train", "pre-nl", "--text", "book.txt", rc=3).err,
          "did you mean 'pre-ln'?")


# --- the system fails ----------------------------------------------------------

@test
def train_unwritable_folder(t):
    book(t)
    for out in ("book.txt/run", "book.txt", "/proc/run"):
        r = t.run("train", "pre-ln", "--text", "book.txt", "--out", out, *TINY,
                  rc=5)
        t.has(r.err, out.split("/run")[0])
        t.ok("1/" not in r.err, "found before the first update", r)


def small_files(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@test
def train_C124_disk_full(t):
    """The old checkpoint stays; the message names the file and the reason."""
    book(t)
    line = ["pre-ln", "--text", "book.txt", "--out", "run", *TINY, "--steps",
            "2000", "--save-every", "50"]
    p = t.start("train", *line, "--json", stdout=-1, stderr=-3)
    for _ in range(60):
        p.stdout.readline()
    p.send_signal(signal.SIGINT)
    p.communicate()
    t.eq(p.returncode, 130)
    before = digest(t, "run")
    r = t.run("train", "--out", "run", "--resume", preexec=small_files(20000), rc=5)
    t.has(r.err, "run/", "File too large")
    t.eq(digest(t, "run"), before)
    t.eq(sorted(os.listdir(t.path("run"))), sorted(ALL), "nothing left over")
    t.run("score", "run", "--text", "book.txt", rc=0)
    r = t.run("train", *line[:3], "--out", "full", *TINY, "--steps", "3",
              preexec=small_files(20000), rc=5)
    t.has(r.err, "full/", "File too large")
    r = t.run("score", "run", "--text", "book.txt", "--logits", "l.npy",
              preexec=small_files(20000), rc=5)
    t.has(r.err, "l.npy")
    t.ok(not os.path.exists(t.path("l.npy")))


def logged(t, name):
    with open(t.path(name, "log.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


@test
def train_log_of_a_resumed_run(t):
    """Lines after the last checkpoint are not kept twice, nor is an end."""
    book(t)
    p = t.start("train", "pre-ln", "--text", "book.txt", "--out", "run", *TINY,
                "--steps", "200", "--save-every", "50", "--json", stdout=-1,
                stderr=-3)
    for _ in range(60):
        p.stdout.readline()
    p.send_signal(signal.SIGKILL)
    p.communicate()
    t.run("train", "--out", "run", "--resume", rc=0)
    lines = logged(t, "run")
    t.eq([x.get("step") for x in lines], [None, *range(1, 201), None])
    t.eq((lines[0]["command"], lines[-1]["done"]), ("train", True))
    t.run("train", "--out", "run", "--resume", rc=0)
    t.eq([x.get("step") for x in logged(t, "run")], [None, *range(1, 201), None])
    os.remove(t.path("run", "log.jsonl"))
    t.run("train", "--out", "run", "--resume", rc=0)
    t.eq([x.get("step") for x in logged(t, "run")], [None, None])


@test
def train_two_at_once(t):
    book(t)
    p = t.start("train", "pre-ln", "--text", "book.txt", "--out", "run", *TINY,
                "--steps", "100000", "--save-every", "10", "--json", stdout=-1,
                stderr=-3)
    for _ in range(20):
        p.stdout.readline()
    r = t.run("train", "--out", "run", "--resume")
    p.send_signal(signal.SIGINT)
    p.communicate()
    t.code(r, 5)
    t.has(r.err, "another process")


@test
def train_diverges(t):
    book(t)
    line = ["pre-ln", "--text", "book.txt", *TINY, "--steps", "30", "--lr", "1e28",
            "--save-every", "1"]
    r = train(t, *line, "--out", "run", rc=4)
    t.has(r.err, "diverged at step 2", "layers.0", "last good checkpoint",
          "step 1 in run")
    t.ok("saved in" not in r.out)
    last = train(t, *line, "--out", "run2", "--json", rc=4).lines()[-1]
    t.eq([last[k] for k in ("done", "steps", "diverged_at", "last_good_step",
                            "where")], [False, 1, 2, 1, "layers.0"])
    r = train(t, *line[:-1], "50", "--out", "run3", rc=4)
    t.has(r.err, "no checkpoint was saved")


@test
def train_profile(t):
    """Parts together are an update; weights are those of a run without."""
    book(t)
    line = ["pre-ln", "--text", "book.txt", *TINY, "--steps", "4"]
    train(t, *line, "--out", "a")
    done = train(t, *line, "--out", "b", "--profile", "--json").lines()[-1]
    same_run(t, "a", "b")
    p = done["profile"]
    parts = {part["part"]: part for part in p["parts"]}
    t.eq(list(parts), ["products", "attention", "norms", "element-wise", "loss",
                       "optimizer", "data", "rest"])
    t.eq(p["updates"], 3)
    t.near(sum(part["share"] for part in p["parts"]), 1, 1e-9)
    t.near(sum(part["seconds"] for part in p["parts"]), p["seconds"], 1e-9)
    for name in ("products", "attention", "norms", "loss", "optimizer", "rest"):
        t.ok(parts[name]["seconds"] > 0, parts[name])
    # linears of two blocks and the head: 2 in and out each, three passes
    tokens, d = 4 * 16, 16
    head = train(t, *line, "--json").lines()[0]
    vocab = head["settings"]["vocab"]
    flops = 3 * 2 * tokens * (2 * 12 * d * d + d * vocab)
    each = parts["products"]
    t.near(each["gflops"] * 1e9 * each["seconds"] / flops, 1, 1e-6)
    t.near(each["share_of_peak"] * p["peak_gflops"] / each["gflops"], 1, 1e-9)
    t.ok("gbps" in parts["norms"] and "gflops" not in parts["norms"])
    text = train(t, *line, "--profile", env={"COLUMNS": "100"}).out
    t.has(text, "a mean update of 3", "of peak", "products", "rest")
    one = train(t, *line[:-1], "1", "--profile", "--json").lines()[-1]
    t.eq(one["profile"]["updates"], 1)
    bad = train(t, *line, "--lr", "1e28", "--profile", "--json", rc=4).lines()[-1]
    t.ok("profile" not in bad, bad)


@test
def train_fast_as_reference(t):
    """200 updates on the fast path, with our own product, and with the kernels
    that define the others: the same losses up to what rounding in another
    order makes of them."""
    book(t)
    line = ["pre-ln", "--text", "book.txt", *TINY, "--steps", "200", "--json"]
    curves = [[s["loss"] for s in train(t, *line, *more, env=env).lines()[1:-1]]
              for more, env in (((), {}), (("--exact",), {}),
                                (("--exact",), {"TB_ISA": "ref"}))]
    t.eq(len(curves[0]), 200)
    t.ok(curves[0][-1] < 0.7 * curves[0][0], "nothing was learned")
    t.near(curves[0], curves[1], 1e-4)
    t.eq(curves[1], curves[2], "exact: the same bits on every set")


# --- generate and score --------------------------------------------------------

def trained(t, *more, text=None):
    t.write("book.txt", text or story(600))
    train(t, "pre-ln", "--text", "book.txt", "--out", "run", *TINY, "--steps",
          "30", *more)


def generate(t, *words, rc=0):
    return t.run("generate", "run", *words, rc=rc)


@test
def generate_text(t):
    trained(t)
    line = ("--prompt", "the ", "--tokens", "20")
    a = generate(t, *line)
    t.ok(a.out.startswith("the ") and a.out.endswith("\n"), a)
    t.eq(len(a.out), 25)
    t.eq(generate(t, *line, "--seed", "1").out, a.out)
    t.ok(generate(t, *line, "--seed", "2").out != a.out)
    greedy = generate(t, *line, "--greedy").out
    t.eq(generate(t, *line, "--temperature", "0").out, greedy)
    t.eq(generate(t, *line, "--top-k", "1").out, greedy)
    t.eq(generate(t, *line, "--top-p", "1e-9").out, greedy)
    t.eq(generate(t, *line, "--greedy", "--seed", "9").out, greedy)
    t.eq(generate(t, "--prompt", "the", "--tokens", "0").out, "the\n")
    t.ok(len(generate(t, "--tokens", "5").out) == 6)
    long = generate(t, "--prompt", "the cat " * 20, "--tokens", "40")
    t.eq(len(long.out), 201, "longer than the context")


@test
def generate_C113_unknown_character(t):
    trained(t, text="ab\n" * 200)
    r = generate(t, "--prompt", "abc", rc=3)
    t.eq(r.err, 'tollbooth: prompt: character "c" (U+0063) at offset 2 is not in '
                'the vocabulary\n')
    t.eq(r.out, "")
    trained_again = t.run("train", "pre-ln", "--text", "ab.txt", rc=3)
    t.has(trained_again.err, "ab.txt")
    t.write("ab.txt", "ab" * 200)
    train(t, "pre-ln", "--text", "ab.txt", "--out", "ab", *TINY, "--steps", "2")
    t.run("generate", "ab", "--tokens", "4", rc=0)  # no prompt: first item


@test
def generate_values(t):
    trained(t)
    for words, message in ((["--top-p", "0"], "0 < p <= 1"),
                           (["--top-p", "1.5"], "0 < p <= 1"),
                           (["--temperature", "-1"], "wanted a number from 0"),
                           (["--top-k", "-1"], "whole number")):
        t.has(generate(t, *words, rc=2).err, message)


@test
def folders_that_are_none(t):
    trained(t)
    for command in (["generate"], ["score", "--text", "book.txt"]):
        t.has(t.run(*command, "none", rc=3).err, "none/config.json: cannot open")
        t.has(t.run(*command, "book.txt", rc=3).err, "book.txt/config.json")


@test
def damaged_folders(t):
    trained(t)
    with open(t.path("run", "model.safetensors"), "rb") as f:
        weights = f.read()
    for name, data, words in (
            ("model.safetensors", weights[:100], "model.safetensors"),
            ("model.safetensors", weights[:-5], "model.safetensors"),
            ("model.safetensors", b"", "model.safetensors"),
            ("model.safetensors", struct.pack("<Q", 2 ** 63) + weights[8:],
             "model.safetensors"),
            ("config.json", b"{", "config.json"),
            ("config.json", b"[]", "config.json"),
            ("tokenizer.json", b"{}", "tokenizer.json"),
            ("block.txt", b"x = norm(x + F(x))\n", "block")):
        with open(t.path("run", name), "rb") as f:
            old = f.read()
        t.write(os.path.join("run", name), data)
        for line in (["generate", "run"], ["score", "run", "--text", "book.txt"],
                     ["flow", "run"]):
            r = t.run(*line, rc=3)
            t.has(r.err, words)
        t.write(os.path.join("run", name), old)
    t.run("score", "run", "--text", "book.txt", rc=0)


@test
def score_text(t):
    trained(t)
    d = t.run("score", "run", "--text", "book.txt", "--json", rc=0).json()
    t.eq(list(d), ["tollbooth", "tokens", "loss", "perplexity"])
    t.eq(d["tokens"], len(story(600)) - 1)
    t.near(d["perplexity"], 2.718281828459045 ** d["loss"], 1e-9)
    text = t.run("score", "run", "--text", "book.txt", rc=0).out
    t.has(text, "%d tokens, %.5f nats" % (d["tokens"], d["loss"]))
    t.eq(t.run("score", "run", "--text", "-", "--json", stdin=story(600).encode(),
               rc=0).json(), d)
    t.write("new", "thez")
    t.has(t.run("score", "run", "--text", "new", rc=3).err,
          'new: character "z" (U+007A) at offset 3')
    t.write("one", "t")
    t.has(t.run("score", "run", "--text", "one", rc=3).err, "at least 2", "have 1")


@test
def score_logits(t):
    trained(t)
    d = t.run("score", "run", "--text", "book.txt", "--logits", "l.npy", "--json",
              rc=0).json()
    with open(t.path("l.npy"), "rb") as f:
        data = f.read()
    n = struct.unpack("<H", data[8:10])[0]
    head, body = data[10:10 + n].decode(), data[10 + n:]
    vocab = len(set(story(600)))
    t.has(head, "'<f4'", "(%d, %d)" % (d["tokens"], vocab))
    t.eq(len(body), 4 * vocab * d["tokens"])
    r = t.run("score", "run", "--text", "book.txt", "--logits", "no/l.npy", rc=5)
    t.has(r.err, "no/l.npy")


alone(__name__)
