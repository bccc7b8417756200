# SPDX-License-Identifier: MIT
"""Cases of training collected from public bug reports, through the command
line: the number in a test's name is the case's, the numbers in it are the
case's own."""

import math
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import alone, story, test  # noqa: E402

TINY = ("--width", "16", "--heads", "2", "--context", "16", "--batch", "4")


def train(t, block, *words, text=None, rc=0):
    t.write("book.txt", text or story(400))
    return t.run("train", block, "--text", "book.txt", *words, "--json",
                 "--exact", rc=rc).lines()


def copy_task(t):
    """Every line says one of two words twice: the second half is a copy."""
    words = ("tick", "tock")
    t.write("copy.txt", "".join("%s %s\n" % (w, w) for i in range(300)
                                for w in (words[i * i % 7 % 2],)))
    return "copy.txt"


def ending(t, run):
    t.ok(run["status"] in ("ok", "plateau", "diverged"), run["status"])
    t.eq(run["status"] == "diverged", run["diverged"])
    layers = [x for x in run["layers"] if x["layer"]]
    t.eq([x["layer"] for x in layers], list(range(1, run["depth"] + 1)))
    t.eq([run["layers"][i]["layer"] for i in (0, -1)], [0, 0])
    for x in run["layers"]:
        t.ok(x["grad_norm"] >= 0 and x["weight"], x)
        t.ok(0 < float(x["update_ratio"]) < 1 or run["diverged"], x)
    for x in layers:
        t.ok(x["weight"].startswith("layers.%d." % (x["layer"] - 1)), x)


@test
def case_C051_every_run_says_how_it_ended(t):
    """12 blocks, width 64, Adam at 1e-3, with and without warm-up."""
    line = ("compare", "post-ln", "pre-ln", "--text", copy_task(t), "--depth",
            "12", "--width", "64", "--context", "16", "--batch", "2", "--steps",
            "12", "--warmup", "6", "--exact", "--json")
    first, again = t.run(*line, rc=0).json(), t.run(*line, rc=0).json()
    t.eq([(x["block"], x["warmup"]) for x in first["runs"]],
         [(b, w) for b in ("post-ln", "pre-ln") for w in (6, 0)])
    for x, y in zip(first["runs"], again["runs"]):
        ending(t, x)
        t.eq((x["decided_at"], x["layers_step"]), (12, 12))
        # before any step: the same bits for the same seed
        t.eq(x["flow"]["weights"], y["flow"]["weights"])
        t.eq(x["layers"], y["layers"])


@test
def case_C051_diverged(t):
    """A learning rate that no model survives: when, why, and the gradient of
    the last update that had one."""
    line = train(t, "post-ln", "--depth", "3", *TINY, "--steps", "30",
                 "--warmup", "1", "--lr", "1000", rc=4)[-1]
    line["diverged"], line["depth"] = not line["done"], 3
    ending(t, line)
    t.eq(line["status"], "diverged")
    t.eq(line["decided_at"], line["diverged_at"])
    t.eq(line["layers_step"], line["decided_at"] - 1)
    text = t.run("train", "post-ln", "--text", "book.txt", "--depth", "3", *TINY,
                 "--steps", "30", "--warmup", "1", "--lr", "1000", rc=4)
    t.has(text.out, "largest gradient at update %d" % line["layers_step"])
    t.has(text.err, "diverged at step %d" % line["decided_at"])


@test
def case_C051_plateau_and_ok(t):
    """A rate of nearly nothing improves nothing; a good one does."""
    for lr, wanted in (("1e-9", "plateau"), ("3e-2", "ok")):
        line = train(t, "pre-ln", "--depth", "1", *TINY, "--steps", "40",
                     "--warmup", "2", "--lr", lr, "--schedule", "constant")[-1]
        t.eq((line["status"], line["decided_at"]), (wanted, 40), lr)
    out = t.run("train", "pre-ln", "--text", "book.txt", "--depth", "1", *TINY,
                "--steps", "40", "--lr", "1e-9", rc=0).out
    t.has(out, "plateau, decided at update 40")


@test
def case_C127_loss_of_an_untrained_model(t):
    """A zeroed head gives uniform logits: ln of the vocabulary, to 1e-6."""
    letters = "".join(chr(c) for c in range(33, 127))[:65]
    texts = {65: letters * 20, 256: bytes(range(256)) * 12,
             7: "abcdefg" * 50}
    for vocab, wanted in ((65, 4.1743873), (256, 5.5451774),
                          (7, math.log(7))):
        t.write("v.txt", texts[vocab])
        kind = "byte" if vocab == 256 else "char"
        lines = t.run("train", "pre-ln", "--text", "v.txt", "--tokenizer", kind,
                      "--depth", "2", *TINY, "--steps", "1", "--init",
                      "head: zeros", "--json", "--exact", rc=0).lines()
        t.eq(lines[0]["settings"]["vocab"], vocab)
        t.near(lines[1]["loss"], wanted, 1e-6, "vocabulary %d" % vocab)
        t.near(lines[-1]["first_loss"], wanted, 1e-6)
        t.near(lines[-1]["uniform_loss"], wanted, 1e-6)
    # the vocabulary of GPT-2, without a text of as many words
    run = t.run("flow", "pre-ln", "--vocab", "50257", "--depth", "1", "--width",
                "8", "--heads", "1", "--tokens", "4", "--init", "head: zeros",
                "--cotangent", "random", "--json", rc=0).json()["runs"][0]
    t.near(run["loss"], 10.8249051, 1e-6, "vocabulary 50257")


@test
def case_C127_large_first_loss_is_named(t):
    """More than 1.1 ln V is remarked on; the same model started small is not."""
    t.write("v.txt", story(400))
    for init, said in (("head: normal(2)", True), ("head: normal(0.02)", False)):
        r = t.run("train", "x = x + F(norm(x))", "--text", "v.txt", "--depth", "2",
                  *TINY, "--steps", "1", "--init", init, rc=0)
        t.eq("times that of even guesses" in r.err, said, r)


alone(__name__)
