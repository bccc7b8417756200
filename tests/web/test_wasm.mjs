// SPDX-License-Identifier: MIT
// The browser's engine gives the bytes the program prints: explain and flow of
// several blocks in f64 and f32, with our own products on both sides.
//   TOLLBOOTH=build/tollbooth node tests/web/test_wasm.mjs [FILE.wasm]
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const wasm = process.argv[2] ?? `${root}build/wasm/tollbooth.wasm`;
const program = process.env.TOLLBOOTH ?? `${root}build/tollbooth`;
const sum = { passed: 0, failed: 0, skipped: 0 };

const { instance } = await WebAssembly.instantiate(readFileSync(wasm), {});
const engine = instance.exports;

// status and text of one call on a block
function call(name, block, ...rest) {
  const bytes = new TextEncoder().encode(block);
  const at = engine.tb_web_alloc(bytes.length || 1);
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  const status = engine[name](at, bytes.length, ...rest);
  engine.tb_web_free(at);
  const text = new TextDecoder().decode(new Uint8Array(
    engine.memory.buffer, engine.tb_web_text(), engine.tb_web_text_len()));
  return { status, text };
}

function native(...args) {
  const { status, stdout, stderr } = spawnSync(program, args,
    { encoding: "utf8" });
  return { status, text: stdout, error: stderr };
}

function firstDifference(a, b) {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  const cut = (s) => JSON.stringify(s.slice(Math.max(0, i - 60), i + 40));
  return `at ${i}: got ${cut(a)}, wanted ${cut(b)}`;
}

function test(name, run) {
  const found = run();
  if (found) console.log(`FAIL ${name}: ${found}`);
  sum[found ? "failed" : "passed"]++;
}

function same(ours, theirs) {
  if (ours.status !== theirs.status)
    return `status ${ours.status}, wanted ${theirs.status} (${theirs.error})`;
  if (`${ours.text}\n` !== theirs.text)
    return firstDifference(`${ours.text}\n`, theirs.text);
  return null;
}

function has(command) {
  return spawnSync(program, [command, "--help"]).status === 0;
}

// unset sizes are 0, as the program's defaults
const sizes = (depth, width, heads, tokens) =>
  engine.tb_web_settings(depth, width, heads, tokens, 0);
const flags = (depth, width, heads) =>
  ["--depth", depth, "--width", width, "--heads", heads].map(String);

const blocks = ["post-ln", "pre-ln", "rezero", "deepnorm", "parallel",
  "x = x + F(rmsnorm(x)); final: x = norm(x)"];

if (has("explain")) {
  for (const block of blocks)
    test(`explain ${block}`, () => {
      sizes(0, 0, 0, 0);
      return same(call("tb_web_explain", block),
        native("explain", block, "--json"));
    });
  test("explain at other sizes", () => {
    sizes(48, 96, 8, 0);
    return same(call("tb_web_explain", "pre-ln"),
      native("explain", "pre-ln", "--json", ...flags(48, 96, 8)));
  });
  ["text", "latex", "mathml", "svg"].forEach((format, number) =>
    test(`explain --format ${format}`, () => {
      sizes(0, 0, 0, 0);
      const ours = call("tb_web_print", "post-ln", number);
      const theirs = native("explain", "post-ln", "--format", format);
      return ours.text === theirs.text
        ? null : firstDifference(ours.text, theirs.text);
    }));
} else {
  console.log("SKIP explain: this build has no such command");
  sum.skipped++;
}

if (has("flow")) {
  for (const block of blocks)
    for (const dtype of ["f64", "f32"])
      test(`flow ${block}, ${dtype}`, () => {
        sizes(4, 32, 4, 16);
        return same(call("tb_web_flow", block, 1, dtype === "f64" ? 1 : 0, 0, 0),
          native("flow", block, "--json", "--exact", "--dtype", dtype,
            "--tokens", "16", ...flags(4, 32, 4)));
      });
  for (const block of ["post-ln", "pre-ln"])
    test(`flow ${block}, defaults`, () => {
      sizes(0, 0, 0, 0);
      return same(call("tb_web_flow", block, 1, 1, 0, 0),
        native("flow", block, "--json", "--exact", "--dtype", "f64"));
    });
  test("flow, random cotangent, spectrum, seed 7", () => {
    sizes(2, 16, 2, 8);
    return same(call("tb_web_flow", "pre-ln", 7, 1, 1, 1),
      native("flow", "pre-ln", "--json", "--exact", "--dtype", "f64",
        "--cotangent", "random", "--spectrum", "--seed", "7",
        "--tokens", "8", ...flags(2, 16, 2)));
  });
} else {
  console.log("SKIP flow: this build has no such command");
  sum.skipped++;
}

test("an error has the program's status and text", () => {
  const ours = call("tb_web_explain", "x = x + F(nrom(x))");
  const theirs = native("explain", "x = x + F(nrom(x))", "--json");
  if (ours.status !== 3 || ours.status !== theirs.status)
    return `status ${ours.status}, the program's ${theirs.status}`;
  return theirs.error === `tollbooth: ${ours.text}\n`
    ? null : firstDifference(`tollbooth: ${ours.text}\n`, theirs.error);
});
test("no such block, no text, bytes that are no UTF-8", () => {
  const wrong = ["no-such-block", "", "x = \u0001", "\u00ff\u0000="]
    .map((t) => call("tb_web_explain", t).status).filter((s) => s !== 3);
  return wrong.length ? `status ${wrong}, wanted 3` : null;
});
test("memory stays when a call is repeated", () => {
  sizes(6, 64, 4, 32);
  for (let i = 0; i < 3; i++) call("tb_web_flow", "pre-ln", 1, 1, 0, 0);
  const before = engine.memory.buffer.byteLength;
  for (let i = 0; i < 20; i++) {
    call("tb_web_flow", i % 2 ? "pre-ln" : "post-ln", 1, i % 3 ? 1 : 0, 0, 0);
    call("tb_web_explain", "rezero");
  }
  const grown = engine.memory.buffer.byteLength - before;
  return grown > 0 ? `grew by ${grown} bytes` : null;
});
test("a stack too large for memory is an error, and the next call works", () => {
  sizes(6, 40000, 4, 32);
  const large = call("tb_web_flow", "pre-ln", 1, 1, 0, 0);
  sizes(2, 16, 2, 8);
  const small = call("tb_web_flow", "pre-ln", 1, 1, 0, 0);
  return large.status === 5 && small.status === 0
    ? null : `status ${large.status} (${large.text}), then ${small.status}`;
});

console.log(`${sum.passed} passed, ${sum.failed} failed, ` +
  `${sum.skipped} skipped`);
process.exitCode = sum.failed ? 1 : 0;
