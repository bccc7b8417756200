# SPDX-License-Identifier: MIT
"""tollbooth export --to and --from another system: docs/export.md's table, the
round trip, exit codes, what is refused."""

import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from tb_cli import ROOT, alone, test  # noqa: E402

SYSTEMS = ("marian", "tensor2tensor", "fairseq", "x-transformers")


def meaning(t, system, setting):
    """The text of a setting without what is no placement."""
    text = t.run("export", "--from", system, "--", setting, rc=0).out
    return [line for line in text.splitlines()
            if not re.match(r"#|ffn\(x\) = down\(\w+\(up\(x\)\)\)|    eps = ", line)]


def rows():
    with open(os.path.join(ROOT, "docs", "export.md"), encoding="utf-8") as f:
        text = f.read().split("| placement |")[1]
    for line in text.splitlines()[2:]:
        cells = [c.strip() for c in line.strip("|").split("|")]
        yield cells[0], cells[1].strip("`"), cells[2:]


@test
def export_table(t):
    n = 0
    for name, block, cells in rows():
        for system, cell in zip(SYSTEMS, cells):
            exact = cell.startswith("`")
            r = t.run("export", "--to", system, block, "--json", rc=0 if exact else 3)
            got = r.json()
            t.eq(got["exact"], exact, name, system)
            if exact:
                t.eq(meaning(t, system, cell.strip("`")),
                     meaning(t, system, got["setting"]), name, system)
            else:
                why = got["here"] or ["there, " + x for x in got["there"]]
                t.eq(cell, why[0], name, system)
                t.has(r.err, "tollbooth: ", system + " has no setting for it: " + cell)
            n += 1
    t.ok(n >= 100, "only", n, "cells")


@test
def export_reads_its_own_output(t):
    for system in SYSTEMS:
        for block in ("pre-ln", "post-ln", "x = x + norm(F(norm(x)))", "gpt-2"):
            r = t.run("export", "--to", system, block)
            if r.rc:
                continue
            back = t.run("export", "--from", system, r.out, rc=0).out
            again = t.run("export", "--to", system, back, rc=0).out
            t.eq(again.splitlines()[0], r.out.splitlines()[0], system, block)


@test
def export_canonical_text(t):
    """What --from prints is what the printer would print."""
    for system, setting in (
            ("marian", "pre=n post=nda top=an emb=nd"), ("marian", "post=dhr"),
            ("tensor2tensor", "pre=n post=dza norm=noam"),
            ("fairseq", "--decoder-normalize-before --scale-attn --scale-fc "
                        "--scale-resids --scale-heads --layernorm-embedding"),
            ("x-transformers", "gate_residual=True, use_rmsnorm=True, "
                               "rotary_pos_emb=True, ff_glu=True, ff_swish=True"),
            ("x-transformers", "pre_norm=False, scale_residual=True, "
                               "scale_residual_constant=1.5")):
        text = t.run("export", "--from", system, "--", setting, rc=0).out
        shown = t.run("explain", text, "--json", rc=0).json()["block"]["text"]
        t.eq(re.sub(r"^#.*\n", "", text), shown, system, setting)


@test
def export_refuses(t):
    for system, setting, words in (
            ("marian", "pre=na", ["transformer-preprocess: got 'a' in 'na'", "'dnr'"]),
            ("marian", "post=dann", ["got 'n' twice"]),
            ("marian", "post=" + 20*"a", ["got 20 letters, wanted at most 16"]),
            ("marian", "pst=dan", ["unknown setting 'pst'; did you mean 'post'?"]),
            ("marian", "post", ["got 'nothing', wanted a value"]),
            ("marian", "=", ["wanted the name of a setting"]),
            ("tensor2tensor", "pre=z", ["got 'z' in 'z'", "'nd'"]),
            ("tensor2tensor", "post=dh", ["got 'h' in 'dh'"]),
            ("tensor2tensor", "norm_type=group", ["got 'group'", "noam"]),
            ("fairseq", "--decoder-normalise-before --x",
             ["did you mean 'decoder-normalize-before'?"]),
            ("fairseq", "activation-fn=linear", ["got linear"]),
            ("x-transformers", "pre_norm=maybe", ["wanted true or false"]),
            ("x-transformers", "pre_norm=False, sandwich_norm=True",
             ["sandwich_norm needs pre_norm"]),
            ("x-transformers", "use_rmsnorm=True, use_scalenorm=True", ["exclude"]),
            ("x-transformers", "add_value_residual=True",
             ["learned_value_residual_mix: got True, wanted False"]),
            ("x-transformers", "layerscale_init_value=1e", ["wanted a number"])):
        r = t.run("export", "--from", system, setting, rc=3)
        t.eq(r.out, "")
        t.has(r.err, "tollbooth: " + system + ": ", *words)
    t.has(t.run("export", "pre-ln", rc=2).err, "--to SYSTEM or --from SYSTEM")
    t.run("export", "--to", "marian", "--from", "marian", "pre-ln", rc=2)
    t.has(t.run("export", "--to", "marain", "pre-ln", rc=2).err, "marian")
    t.run("export", "--to", "marian", "x = lm(x)", rc=3)


@test
def export_numbers_follow_the_depth(t):
    for depth, want in (("6", 12**0.25), ("24", 48**0.25)):
        s = t.run("export", "--to", "x-transformers", "deepnorm", "--depth", depth,
                  "--json", rc=0).json()
        got = re.search(r"scale_residual_constant=([\d.]+)", s["setting"])
        t.near(float(got.group(1)), want, 1e-12)
        t.ok("the number is that of this depth" in s["remarks"], s["remarks"])


@test
def export_stacks(t):
    both = ("--stack", "encoder-decoder")
    for system in ("marian", "tensor2tensor"):
        for block in ("pre-ln", "post-ln"):
            one = t.run("export", "--to", system, block, rc=0).out
            t.eq(t.run("export", "--to", system, block, *both, rc=0).out, one)
    roles = "encoder: x = norm(x + F(x))\ndecoder: x = x + F(norm(x))\n" \
            "decoder final: x = norm(x)"
    t.run("export", "--to", "marian", roles, *both, rc=3)
    for encoder in ("x = norm(x + F(x))", "x = x + F(norm(x))"):
        for decoder in ("x = norm(x + F(x))", "x = x + F(norm(x))"):
            text = "encoder: %s\ndecoder: %s" % (encoder, decoder)
            for side, block in (("encoder", encoder), ("decoder", decoder)):
                if block.startswith("x = x"):
                    text += "\n%s final: x = norm(x)" % side
            r = t.run("export", "--to", "fairseq", text, *both, rc=0)
            line = r.out.splitlines()[0]
            t.eq("--encoder-normalize-before" in line, encoder.startswith("x = x"))
            t.eq("--decoder-normalize-before" in line, decoder.startswith("x = x"))
            back = t.run("export", "--from", "fairseq", line, rc=0).out
            t.eq(t.run("export", "--to", "fairseq", back, *both,
                       rc=0).out.splitlines()[0], line)
    for system, stack in (("fairseq", "encoder"), ("x-transformers", both[1])):
        r = t.run("export", "--to", system, "pre-ln", "--stack", stack, rc=3)
        t.has(r.err, "tollbooth: %s: got --stack %s" % (system, stack))
    t.run("export", "--to", "x-transformers", "pre-ln", "--stack", "encoder", rc=0)
    t.has(t.run("export", "--to", "pytorch", roles, *both, rc=0).out,
          "class EncoderBlock", "class DecoderBlock",
          "def encode(self, source, source_keep=None)",
          "def loss(self, source, tokens, targets, source_keep=None, keep=None)")
    t.ok("keep" not in t.run("export", "--to", "pytorch", "pre-ln", rc=0).out)


alone(__name__)
