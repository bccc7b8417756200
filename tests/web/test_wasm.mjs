// SPDX-License-Identifier: MIT
// The browser's engine gives the bytes the program prints: explain, flow and
// eval in f64 and f32, with our own products on both sides.
//   TOLLBOOTH=build/tollbooth node tests/web/test_wasm.mjs [FILE.wasm]
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { load } from "../../web/engine.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const wasm = process.argv[2] ?? `${root}build/wasm/tollbooth.wasm`;
const program = process.env.TOLLBOOTH ?? `${root}build/tollbooth`;
const sum = { passed: 0, failed: 0, skipped: 0 };
const engine = await load(readFileSync(wasm));

function native(...args) {
  const { status, stdout, stderr } = spawnSync(program, args.map(String),
    { encoding: "utf8" });
  return { status, text: stdout, error: stderr };
}

function firstDifference(a, b) {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  const cut = (s) => JSON.stringify(s.slice(Math.max(0, i - 60), i + 40));
  return `at ${i}: got ${cut(a)}, wanted ${cut(b)}`;
}

// run() gives null, or what is wrong
function test(name, run) {
  const wrong = run();
  if (wrong) console.log(`FAIL ${name}: ${wrong}`);
  sum[wrong ? "failed" : "passed"]++;
}

function same(ours, theirs, ending = "\n") {
  if (ours.status !== theirs.status)
    return `status ${ours.status} (${ours.text}), wanted ${theirs.status} ` +
      `(${theirs.error})`;
  const text = ours.text + ending;
  return text === theirs.text ? null : firstDifference(text, theirs.text);
}

// a command this build lacks is a skip, said aloud
function group(command, run) {
  if (native(command, "--help").status === 0) return run();
  console.log(`SKIP ${command}: this build has no such command`);
  sum.skipped++;
}

const flags = (sizes) =>
  Object.entries(sizes).flatMap(([name, n]) => [`--${name}`, n]);
const blocks = ["post-ln", "pre-ln", "rezero", "deepnorm", "parallel",
  "x = x + F(rmsnorm(x)); final: x = norm(x)"];

group("explain", () => {
  for (const block of blocks)
    test(`explain ${block}`, () =>
      same(engine.explain(block), native("explain", block, "--json")));
  const large = { depth: 48, width: 96, heads: 8 };
  test("explain at other sizes", () =>
    same(engine.explain("pre-ln", large),
      native("explain", "pre-ln", "--json", ...flags(large))));
  for (const format of ["text", "latex", "mathml", "svg"])
    test(`explain --format ${format}`, () =>
      same(engine.print("post-ln", format),
        native("explain", "post-ln", "--format", format), ""));
});

group("flow", () => {
  const small = { depth: 4, width: 32, heads: 4, tokens: 16 };
  for (const block of blocks)
    for (const dtype of ["f64", "f32"])
      test(`flow ${block}, ${dtype}`, () =>
        same(engine.flow(block, { dtype, ...small }),
          native("flow", block, "--json", "--exact", "--dtype", dtype,
            ...flags(small))));
  for (const block of ["post-ln", "pre-ln"])
    test(`flow ${block}, defaults`, () =>
      same(engine.flow(block, { dtype: "f64" }),
        native("flow", block, "--json", "--exact", "--dtype", "f64")));
  const tiny = { depth: 2, width: 16, heads: 2, tokens: 8 };
  test("flow, random cotangent, spectrum, seed 7", () =>
    same(
      engine.flow("pre-ln", { seed: 7, dtype: "f64", cotangent: "random",
        spectrum: true, ...tiny }),
      native("flow", "pre-ln", "--json", "--exact", "--dtype", "f64",
        "--cotangent", "random", "--spectrum", "--seed", 7, ...flags(tiny))));
});

group("picture", () => {
  const { shots } = JSON.parse(native("picture", "--list", "--json").text);
  for (const { name } of shots) {
    test(`picture ${name}`, () => same(engine.shot(name, "", "json"),
      native("picture", name, "--json")));
    test(`picture ${name}, text`, () => same(engine.shot(name, "", "text"),
      native("picture", name), ""));
    test(`picture ${name}, for a page`, () => {
      const [svg, tables] = ["svg", "tables"].map((face) =>
        engine.shot(name, "", face));
      return same({ ...svg, text: svg.text + tables.text },
        native("picture", name, "--format", "html"), "");
    });
  }
  test("picture, with settings", () =>
    same(engine.shot("batchnorm", "token=2;padding=[0,3]", "json"),
      native("picture", "batchnorm", "--json", "--set",
        "token=2,padding=[0,3]")));
  test("picture, a wrong name and back", () => {
    const bad = engine.shot("batchnorm", "tokn=2", "svg");
    const good = engine.shot("batchnorm", "", "svg");
    return bad.status === 3 && bad.text.includes("did you mean token") &&
      good.text.startsWith("<svg") ? null : bad.text;
  });
});

group("eval", () => {
  const x = [[2, 4, 4, 4], [5, 5, 7, 9], [-1, 0.5, 0.25, 3]];
  const run = (expr, options, ...args) => same(engine.eval(expr, options),
    native("eval", expr, "--json", "--exact", ...args));
  const set = ["--set", `x=${JSON.stringify(x)}`];
  test("eval, Jacobian of a norm", () =>
    run("layernorm(x, eps=0)", { set: { x }, jacobian: "x" },
      ...set, "--jacobian", "x"));
  test("eval, backward and tangent of an attention", () =>
    run("x + attn(norm(x))",
      { set: { x }, tangent: { x }, grad: x, heads: 2, eps: 1e-3 },
      ...set, "--tangent", set[1], "--grad", JSON.stringify(x),
      "--heads", 2, "--eps", 1e-3));
  test("eval, numbers of rank 0 and 1", () =>
    run("a*x", { set: { a: 0.5, x: [1, 2, 3] }, jacobian: "a" },
      "--set", "a=0.5", "--set", "x=[1,2,3]", "--jacobian", "a"));
  test("eval, numbers are forgotten after an error", () => {
    const bad = engine.eval("x + y", { set: { x: [1, 2], y: [1, 2, 3] } });
    const good = engine.eval("x", { set: { x: [1, 2] } });
    return bad.status === 3 && good.status === 0
      ? null : `status ${bad.status}, then ${good.status} (${good.text})`;
  });
});

test("an error has the program's status and text", () => {
  const ours = engine.explain("x = x + F(nrom(x))");
  const theirs = native("explain", "x = x + F(nrom(x))", "--json");
  return same({ status: ours.status, text: `tollbooth: ${ours.text}` },
    { ...theirs, text: theirs.error });
});
test("no such block, no text, bytes that are no UTF-8", () => {
  const wrong = ["no-such-block", "", "x = \u0001", "\u00ff\u0000="]
    .map((text) => engine.explain(text).status).filter((s) => s !== 3);
  return wrong.length ? `status ${wrong}, wanted 3` : null;
});
test("memory stays when calls are repeated", () => {
  const once = (i) => {
    engine.flow(i % 2 ? "pre-ln" : "post-ln", { dtype: i % 3 ? "f64" : "f32" });
    engine.explain("rezero");
    engine.eval("norm(x)", { set: { x: [1, 2, 3] }, jacobian: "x" });
  };
  for (let i = 0; i < 6; i++) once(i);
  const before = engine.exports.memory.buffer.byteLength;
  for (let i = 0; i < 18; i++) once(i);
  const grown = engine.exports.memory.buffer.byteLength - before;
  return grown > 0 ? `grew by ${grown} bytes` : null;
});
test("a stack too large for memory is an error, and the next call works", () => {
  const large = engine.flow("pre-ln", { width: 40000 });
  const small = engine.flow("pre-ln", { depth: 2, width: 16 });
  return large.status === 5 && small.status === 0
    ? null : `status ${large.status} (${large.text}), then ${small.status}`;
});

console.log(`${sum.passed} passed, ${sum.failed} failed, ` +
  `${sum.skipped} skipped`);
process.exitCode = sum.failed ? 1 : 0;
