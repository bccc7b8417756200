# SPDX-License-Identifier: MIT
"""Encoders and encoder-decoders: train, translate and score on hidden tokens,
labels and pairs of lines; resume byte for byte; what is refused."""

import hashlib
import itertools
import json
import math
import os
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import Skip, alone, story, test  # noqa: E402

FILES = ("block.txt", "config.json", "model.safetensors", "state.safetensors",
         "tokenizer.json")
TINY = ("--width", "32", "--heads", "2", "--depth", "1", "--context", "8",
        "--batch", "32", "--warmup", "20")


class Random:
    """Numbers that depend on nothing but the seed."""

    def __init__(self, seed=1):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1103515245 + 12345) % 2 ** 31
        return (self.state >> 16) % n

    def word(self, letters, shortest, longest):
        return "".join(letters[self.below(len(letters))]
                       for _ in range(shortest + self.below(longest - shortest + 1)))


def reversals(t, n=1500):
    """Words and what they are from behind."""
    r = Random()
    words = [r.word("abcdef", 1, 6) for _ in range(n)]
    t.write("s", "".join(w + "\n" for w in words))
    t.write("t", "".join(w[::-1] + "\n" for w in words))
    return words


def balanced(word):
    depth = 0
    for c in word:
        depth += 1 if c == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def brackets(t, name="b.tsv", n=600, seed=3):
    """Half of them balanced: made by taking turns at random, then perhaps one
    bracket is turned around."""
    r, lines = Random(seed), []
    while len(lines) < n:
        word, depth, half = "", 0, 1 + r.below(4)
        for left in range(2 * half, 0, -1):
            up = depth == 0 or (depth < left and r.below(2))
            word += "(" if up else ")"
            depth += 1 if up else -1
        if r.below(2):
            at = r.below(len(word))
            word = word[:at] + ("(" if word[at] == ")" else ")") + word[at + 1:]
        lines.append("%s\t%s\n" % ("yes" if balanced(word) else "no", word))
    t.write(name, "".join(lines))
    return lines


def pairs_run(t, out="run", *more):
    reversals(t)
    return t.run("train", "pre-ln", "--source", "s", "--target", "t", "--out", out,
                 *TINY, "--steps", "300", "--lr", "1e-2", "--val-windows", "150",
                 *more, rc=0)


def digest(t, folder):
    out = {}
    for name in FILES:
        with open(t.path(folder, name), "rb") as f:
            out[name] = hashlib.sha256(f.read()).hexdigest()
    return out


def config(t, folder):
    with open(t.path(folder, "config.json")) as f:
        return json.load(f)


def score(t, folder, *words):
    return t.run("score", folder, *words, "--json", rc=0).json()


# --- pairs of lines -------------------------------------------------------------


@test
def tasks_reversal(t):
    """A stack of two learns to write words from behind: all of the lines that
    were kept for validation come out exactly."""
    pairs_run(t)
    words = reversals(t)
    c = config(t, "run")
    t.eq([c[k] for k in ("kind", "task", "source", "target", "text")],
         ["encoder-decoder", "translate", "s", "t", None])
    held = words[-150:]
    t.write("held", "".join(w + "\n" for w in held))
    out = t.run("translate", "run", "--text", "held", rc=0).out.splitlines()
    exact = sum(a == b[::-1] for a, b in zip(out, held))
    t.eq(len(out), len(held))
    t.ok(exact >= 149, "exact: %d of %d" % (exact, len(held)))


@test
def tasks_score_is_the_validation(t):
    lines = pairs_run(t, "run", "--json", "--label-smoothing", "0.1").lines()
    words = reversals(t)
    t.write("hs", "".join(w + "\n" for w in words[-150:]))
    t.write("ht", "".join(w[::-1] + "\n" for w in words[-150:]))
    s = score(t, "run", "--source", "hs", "--target", "ht")
    t.near(s["loss"], lines[-1]["val_loss"], 1e-6)
    t.eq(s["tokens"], sum(len(w) + 1 for w in words[-150:]))
    t.near(s["perplexity"], math.exp(s["loss"]), 1e-12)
    t.ok(s["accuracy"] > 0.99, s)
    head = lines[0]["corpus"]
    t.eq([head[k] for k in ("text", "train_lines", "val_lines", "skipped_lines")],
         ["s", 1350, 150, 0])
    t.eq(head["target"]["text"], "t")
    t.eq(head["train_tokens"], sum(2 * len(w) for w in words[:1350]))


@test
def tasks_padding_does_not_count(t):
    """A longer line pads the others; sums over tokens stay what they were."""
    pairs_run(t)
    files = {"a": ["ab", "f", "cde"], "b": ["abcdef"]}
    files["ab"] = files["a"] + files["b"]
    sums = {}
    for name, words in files.items():
        t.write(name + ".s", "".join(w + "\n" for w in words))
        t.write(name + ".t", "".join(w + "\n" for w in words))  # not learned
        s = score(t, "run", "--source", name + ".s", "--target", name + ".t")
        t.eq(s["tokens"], sum(len(w) + 1 for w in words))
        sums[name] = s["loss"] * s["tokens"]
    t.near(sums["ab"], sums["a"] + sums["b"], 1e-4)


@test
def tasks_translate(t):
    pairs_run(t)
    t.write("in", "abc\n\nfed\n")
    t.eq(t.run("translate", "run", "--text", "in", rc=0).out, "cba\n\ndef\n")
    t.eq(t.run("translate", "run", "--text", "-", stdin=b"abc\nfed", rc=0).out,
         "cba\ndef\n")
    t.eq(t.run("translate", "run", "--text", "abc", "--text", "in", rc=0).out,
         "cba\ncba\n\ndef\n")
    j = t.run("translate", "run", "--text", "in", "--json", rc=0).json()
    log_prob = j["lines"][2].pop("log_prob")
    t.ok(-0.1 < log_prob < 0, log_prob)
    t.eq(j["lines"][2], {"text": "in", "line": 3, "target": "def", "tokens": 3,
                         "ended": True})
    r = t.run("translate", "run", "--text", "xyz", rc=3)
    t.has(r.err, 'line 1: character "x" (U+0078) at offset 0 is not in the '
                 'vocabulary')
    r = t.run("translate", "run", "--text", "abcdabcd", rc=3)
    t.has(r.err, "line 1: got 8 tokens, wanted at most 7 (context 8 and the end "
                 "token)")
    t.has(t.run("translate", "run", rc=2).err, "got no --text")
    t.has(t.run("generate", "run", rc=3).err, "generate: got encoder-decoder "
          "trained for translate, wanted a model for lm")


@test
def tasks_beam(t):
    """A beam wide enough to lose nothing finds the best of all translations,
    each of which score measures; a beam of 1 is greedy."""
    t.write("s", "ab\nba\nb\na\n")
    t.write("t", "a\nbb\nab\nb\n")
    t.run("train", "pre-ln", "--source", "s", "--target", "t", "--out", "run",
          *TINY, "--context", "4", "--steps", "25", "--lr", "2e-3", rc=0)
    every = [w for n in range(1, 4) for w in map("".join,
             itertools.product("ab", repeat=n))]
    for source in ("ab", "b"):
        logs = {}
        for w in every:
            t.write("one.s", source)
            t.write("one.t", w)
            s = score(t, "run", "--source", "one.s", "--target", "one.t")
            logs[w] = -s["loss"] * s["tokens"]
        for penalty in (0, 0.6, 2):
            got = t.run("translate", "run", "--text", source, "--beam", "64",
                        "--length-penalty", penalty, "--json", rc=0)
            line = got.json()["lines"][0]
            t.ok(line["ended"], line)
            value = lambda w: logs[w] / ((6 + len(w)) / 6) ** penalty
            best = max(every, key=value)
            if line["target"]:  # score reads no pair with an empty line
                t.eq(line["target"], best)
                t.near(line["log_prob"], logs[best], 1e-5)
            else:
                t.ok(line["log_prob"] >= value(best) - 1e-6, line, best)
        greedy = t.run("translate", "run", "--text", source, "--json", rc=0).json()
        t.eq(t.run("translate", "run", "--text", source, "--beam", "1", "--json",
                   rc=0).json(), greedy)
        t.ok(greedy["lines"][0]["log_prob"] <= max(logs.values()) + 1e-6, greedy)
    t.has(t.run("translate", "run", "--text", "a", "--beam", "65", rc=2).err,
          "got a beam of 65")
    pairs_run(t, "pairs")
    t.write("in", "abc\n\nfed\n")
    t.eq(t.run("translate", "pairs", "--text", "in", "--beam", "4", rc=0).out,
         "cba\n\ndef\n")


@test
def tasks_translate_ends_with_the_context(t):
    """A head of zeros finds all tokens as likely, so the smallest is said for
    ever: the context ends it."""
    t.write("s", "ab\nba\n")
    t.write("t", "ab\nba\n")
    t.run("train", "pre-ln", "--source", "s", "--target", "t", "--out", "run",
          *TINY, "--steps", "1", "--lr", "0", "--init", "head: zeros", rc=0)
    r = t.run("translate", "run", "--text", "ab", "--json", rc=0)
    line = r.json()["lines"][0]
    t.eq((line["ended"], line["tokens"], line["target"]), (False, 8, "a" * 8))
    r = t.run("translate", "run", "--text", "ab", rc=0)
    t.has(r.err, "1 line ended where the context did")


@test
def tasks_pairs_refused(t):
    t.write("s", "a\nb\nc\n")
    t.write("t", "x\ny\n")
    line = ("train", "pre-ln", *TINY, "--steps", "1")
    both = ("--source", "s", "--target", "t")
    t.has(t.run(*line, *both, rc=3).err,
          "s has 3 lines and t has 2, wanted as many in both")
    t.write("t", "x\n" + 9 * "y" + "\nz\n")
    t.has(t.run(*line, *both, rc=3).err,
          "t: line 2: got 9 tokens, wanted at most 7 (context 8 and the start "
          "token); 1 of 3 lines are too long, a context of 10 would hold them")
    t.write("t", "\n\n\n")
    t.has(t.run(*line, *both, rc=3).err, "s: got no pair of lines with text in both")
    t.has(t.run(*line, "--source", "s", rc=2).err,
          "got no --target, wanted --source FILE and --target FILE")
    t.has(t.run(*line, "--source", "s", "--target", "absent", rc=3).err, "absent")
    t.has(t.run(*line, *both, "--text", "s", rc=2).err,
          "task translate: got a text, wanted source and target")
    t.has(t.run(*line, *both, "--stack", "encoder", rc=2).err,
          "task mlm: got a source, wanted a text")
    t.has(t.run(*line, "--text", "s", "--stack", "encoder-decoder", rc=2).err,
          "task translate: got a text, wanted source and target")
    t.has(t.run(*line, *both, "--task", "lm", rc=2).err,
          "task lm: got the stack encoder-decoder, wanted decoder")


@test
def tasks_pairs_with_empty_lines(t):
    t.write("s", "a\n\nb\nc\n")
    t.write("t", "x\ny\n\nz\n")
    head = t.run("train", "pre-ln", "--source", "s", "--target", "t", *TINY,
                 "--steps", "1", "--json", rc=0).lines()[0]["corpus"]
    t.eq((head["train_lines"], head["val_lines"], head["skipped_lines"]), (2, 0, 2))


# --- labels ---------------------------------------------------------------------


@test
def tasks_brackets(t):
    """An encoder tells balanced brackets from others (a third of the guesses of
    a model that says "no" to all would be wrong)."""
    brackets(t, "b.tsv", 1200)
    brackets(t, "new.tsv", 300, seed=77)
    t.run("train", "pre-ln", "--stack", "encoder", "--task", "classify", "--text",
          "b.tsv", "--out", "run", *TINY, "--depth", "2", "--context", "10",
          "--steps", "500", "--lr", "5e-3", rc=0)
    c = config(t, "run")
    t.eq([c[k] for k in ("kind", "task", "classes", "labels", "causal")],
         ["encoder", "classify", 2, ["no", "yes"], False])
    s = score(t, "run", "--text", "new.tsv")
    t.eq(s["tokens"], 300)
    t.ok(s["accuracy"] > 0.9, s)
    t.has(t.run("generate", "run", rc=3).err, "trained for classify")
    t.has(t.run("translate", "run", "--text", "()", rc=3).err,
          "translate: got encoder trained for classify")


@test
def tasks_labels_refused(t):
    line = ("train", "pre-ln", "--stack", "encoder", "--task", "classify", "--text",
            "f", *TINY, "--steps", "1")
    for text, error in (
            ("a\tx\nb\n", "f: line 2: got no TAB, wanted LABEL TAB text"),
            ("a\tx\n\ty\n", "f: line 2: got no label, wanted LABEL TAB text"),
            ("a\tx\na\ty\n", "f: got 1 label (a), wanted at least 2"),
            ("", "f: the text is empty"),
            ("a\tx\nb\t12345678\n", "f: line 2: got 8 tokens, wanted at most 7")):
        t.write("f", text)
        t.has(t.run(*line, rc=3).err, error)
    t.write("f", "a\tx\nb\ty\n")
    t.has(t.run(*line, "--stack", "decoder", rc=2).err,
          "task classify: got the stack decoder, wanted encoder")
    t.has(t.run(*line, "--tied", rc=2).err, "tied")
    t.run(*line, "--out", "run", rc=0)
    t.write("f", "a\tx\nc\ty\n")
    t.has(t.run("score", "run", "--text", "f", rc=3).err,
          'f: line 2: label "c" is none of the model\'s 2')
    t.has(t.run("score", "run", "--source", "f", "--target", "f", rc=2).err,
          "task classify: got a source, wanted a text")


@test
def tasks_lines_of_elsewhere(t):
    """CR LF, a byte-order mark and no last line end change neither labels nor
    lines."""
    line = ("train", "pre-ln", *TINY, "--steps", "3")
    label = ("--stack", "encoder", "--task", "classify", "--text")
    plain, other = b"a\tx\nb\ty\na\tz\n", b"\xef\xbb\xbfa\tx\r\nb\ty\r\na\tz"
    t.write("plain", plain)
    t.write("other", other)
    for out in ("plain", "other"):
        t.run(*line, *label, out, "--out", out + ".run", rc=0)
        t.run(*line, "--source", out, "--target", out, "--out", out + ".pairs",
              rc=0)
    for kind in (".run", ".pairs"):
        a, b = config(t, "plain" + kind), config(t, "other" + kind)
        t.eq(a["tokens_hash"], b["tokens_hash"])
        t.eq(a.get("labels"), b.get("labels"))
    t.eq(t.run("translate", "plain.pairs", "--text", "plain", rc=0).out,
         t.run("translate", "plain.pairs", "--text", "other", rc=0).out)


@test
def tasks_labels_belong_to_the_folder(t):
    t.write("f", "a\tx\nb\ty\n")
    t.run("train", "pre-ln", "--stack", "encoder", "--task", "classify", "--text",
          "f", "--out", "run", *TINY, "--steps", "1", rc=0)
    c = config(t, "run")
    for labels, error in ((["b", "a"], 'labels[1]: got "a" after "b"'),
                          (["a"], "labels: got 1, wanted 2"),
                          (None, "labels: got nothing")):
        c["labels"] = labels
        if labels is None:
            del c["labels"]
        t.write("run/config.json", json.dumps(c))
        t.has(t.run("score", "run", "--text", "f", rc=3).err, error)
    c["labels"] = ["a", "b"]
    for key, value, error in (
            ("task", "mlm", "config.json: classes: got 2 with task mlm"),
            ("task", "lm", "config.json: kind: got encoder with task lm"),
            ("task", "poetry", 'config.json: task: got "poetry"'),
            ("kind", "decoder", "config.json: kind: got decoder with task classify"),
            ("kind", "tower", 'config.json: kind: got "tower"'),
            ("classes", 0, "config.json: classes: got 0 with task classify"),
            ("classes", 10 ** 15, "labels: got 2, wanted 1000000000000000"),
            ("classes", -1, "classes")):
        t.write("run/config.json", json.dumps(dict(c, **{key: value})))
        t.has(t.run("score", "run", "--text", "f", rc=3).err, error)


# --- hidden tokens --------------------------------------------------------------


@test
def tasks_hidden_tokens(t):
    t.write("book.txt", story(600))
    line = ("train", "pre-ln", "--stack", "encoder", "--text", "book.txt", *TINY,
            "--context", "32", "--steps", "150", "--lr", "1e-2")
    lines = t.run(*line, "--out", "run", "--json", rc=0).lines()
    t.eq(lines[0]["settings"]["task"], "mlm")
    counts = [story(600).count(c) / len(story(600)) for c in set(story(600))]
    entropy = -sum(p * math.log(p) for p in counts)
    t.ok(lines[-1]["val_loss"] < entropy - 0.1, lines[-1], entropy)
    shares = [s["targets"] / 1024 for s in lines[1:-1]]
    t.near(sum(shares) / len(shares), 0.15, 0.005)
    a = score(t, "run", "--text", "book.txt")
    t.eq(score(t, "run", "--text", "book.txt"), a)  # hides the same again
    t.ok(0.13 < a["tokens"] / len(story(600)) < 0.17, a)
    t.write("short", "the")
    t.has(t.run("score", "run", "--text", "short", rc=3).err,
          "score: of 3 tokens none was hidden")
    t.has(t.run("generate", "run", rc=3).err,
          "generate: got encoder trained for mlm, wanted a model for lm")


@test
def tasks_C121_no_target(t):
    """Rows of two tokens, seven in ten with nothing hidden: no update, no loss,
    said once for each."""
    t.write("book.txt", story(300))
    r = t.run("train", "pre-ln", "--stack", "encoder", "--text", "book.txt", *TINY,
              "--context", "2", "--batch", "1", "--steps", "40", "--json",
              "--val-windows", "200", rc=0)
    steps = r.lines()[1:-1]
    empty = [s for s in steps if s["targets"] == 0]
    t.ok(15 < len(empty) < 40, len(empty))
    for s in empty:
        t.eq([s[k] for k in ("loss", "grad_norm", "grad_norm_after", "update_norm",
                             "weight_norm")], [None] * 5)
        t.has(r.err, "step %d: 0 target tokens, no update\n" % s["step"])
    t.eq([s["step"] for s in steps], list(range(1, 41)))
    t.ok(isinstance(r.lines()[-1]["val_loss"], float), r.lines()[-1])


# --- all of them ----------------------------------------------------------------


def kinds(t):
    """How each kind is trained, and what it is trained on."""
    reversals(t, 200)
    brackets(t, "b.tsv", 200)
    t.write("book.txt", story(400))
    small = ("--width", "16", "--heads", "2", "--depth", "2", "--context", "12",
             "--batch", "4", "--warmup", "5", "--steps", "30", "--dropout", "0.1",
             "--label-smoothing", "0.1", "--save-every", "10", "--val-every", "7")
    return {
        "translate": ("--source", "s", "--target", "t", "--decoder-depth", "1",
                      *small),
        "classify": ("--stack", "encoder", "--task", "classify", "--text", "b.tsv",
                     *small),
        "mlm": ("--stack", "encoder", "--text", "book.txt", *small)}


@test
def tasks_killed_and_resumed(t):
    """Killed after a save, resumed: the bytes of a run that was not."""
    for task, line in kinds(t).items():
        t.run("train", "pre-ln", *line, "--out", task, rc=0)
        part = task + "-part"
        p = t.start("train", "pre-ln", *line, "--out", part, "--json", stdout=-1,
                    stderr=-3)
        for raw in p.stdout:
            if json.loads(raw).get("step") == 15:
                break
        p.kill()
        p.communicate()
        done = t.run("train", "--out", part, "--resume", "--json", rc=0).lines()
        t.ok(done[0]["resumed_at"] in (10, 20, 30), done[0]["resumed_at"])
        t.eq(digest(t, part), digest(t, task), task)


@test
def tasks_resume_with_another(t):
    for task, line in kinds(t).items():
        t.run("train", "pre-ln", *line, "--out", task, rc=0)
    t.has(t.run("train", "--resume", "--out", "mlm", "--task", "classify", rc=3).err,
          "resume: task: got classify, the run in mlm has mlm")
    t.has(t.run("train", "--resume", "--out", "mlm", "--stack", "encoder-decoder",
                rc=3).err,
          "resume: kind: got encoder-decoder, the run in mlm has encoder")
    t.has(t.run("train", "--resume", "--out", "translate", "--label-smoothing",
                "0.2", rc=3).err,
          "resume: label_smoothing: got 0.2, the run in translate has 0.1")
    t.write("t", "x\n" * 200)
    r = t.run("train", "--resume", "--out", "translate", rc=3)
    t.has(r.err, "not in the vocabulary")
    t.write("t", "a\n" * 200)
    r = t.run("train", "--resume", "--out", "translate", rc=3)
    t.has(r.err, "resume: text: s is not what the run in translate was trained on")


@test
def tasks_old_folder(t):
    """A folder of before there were tasks is a language model."""
    t.write("book.txt", story(400))
    t.run("train", "pre-ln", "--text", "book.txt", "--out", "run", *TINY,
          "--steps", "2", rc=0)
    c = config(t, "run")
    for key in ("task", "decoder_depth", "classes", "label_smoothing", "source",
                "target"):
        del c[key]
    t.write("run/config.json", json.dumps(c))
    t.ok("accuracy" not in score(t, "run", "--text", "book.txt"))
    t.run("generate", "run", "--tokens", "2", rc=0)


@test
def tasks_logits(t):
    """A row for each target, in order."""
    for task, line in kinds(t).items():
        t.run("train", "pre-ln", *line, "--out", task, rc=0)
    for task, words, width in (("translate", ("--source", "s", "--target", "t"), 9),
                               ("classify", ("--text", "b.tsv"), 2),
                               ("mlm", ("--text", "book.txt"), None)):
        s = score(t, task, *words, "--logits", "l.npy")
        with open(t.path("l.npy"), "rb") as f:
            raw = f.read()
        n = struct.unpack("<H", raw[8:10])[0]
        shape = eval(raw[10:10 + n])["shape"]
        t.eq(shape[0], s["tokens"])
        t.eq(shape[1], width or config(t, task)["vocab"])
        rows = struct.unpack("<%df" % (shape[0] * shape[1]), raw[10 + n:])
        if task != "classify":
            continue
        loss = 0.0
        with open(t.path("b.tsv")) as f:
            for i, text in enumerate(f):
                z = rows[2 * i:2 * i + 2]
                loss -= z[text.startswith("yes")] - math.log(sum(map(math.exp, z)))
        t.near(loss / s["tokens"], s["loss"], 1e-5)


@test
def tasks_real_pairs(t):
    """A few steps on Multi30k's validation pairs, gzip; skipped where they are
    not."""
    here = os.path.dirname(os.path.abspath(__file__))
    shared = os.environ.get("TB_SHARED") or os.path.join(here, "../../../shared")
    files = [os.path.join(shared, "data/parallel/multi30k/val." + x + ".gz")
             for x in ("en", "de")]
    if not all(map(os.path.exists, files)):
        raise Skip("no ../shared/data/parallel")
    lines = t.run("train", "pre-ln", "--source", files[0], "--target", files[1],
                  "--width", "16", "--heads", "2", "--depth", "1", "--context",
                  "256", "--batch", "4", "--steps", "2", "--val-windows", "4",
                  "--json", rc=0).lines()
    t.eq(lines[0]["corpus"]["train_lines"] + lines[0]["corpus"]["val_lines"], 1014)
    t.ok(lines[0]["corpus"]["gzip"] and lines[0]["corpus"]["target"]["gzip"])


alone(__name__)
