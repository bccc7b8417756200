// SPDX-License-Identifier: MIT
// Every kernel, compiled for the browser, gives the bits of
// tests/golden/kernels/bits.txt, which all other machines give.
//   node tests/web/test_kernels.mjs [FILE.wasm]
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const file = process.argv[2] ?? `${root}build/wasm/kernels.wasm`;
const golden = readFileSync(`${root}tests/golden/kernels/bits.txt`, "utf8")
  .trim().split("\n");
const { instance } = await WebAssembly.instantiate(readFileSync(file), {});
const { memory, kernel_count, kernel_name, kernel_bits } = instance.exports;

function text(at) {
  const bytes = new Uint8Array(memory.buffer, at);
  return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
}

const sum = { passed: 0, failed: 0 };
function check(line, want) {
  if (line === want) {
    sum.passed++;
    return;
  }
  sum.failed++;
  console.log(`FAIL ${line}, wanted ${want}`);
}

const lines = [0, 1].flatMap((f64) =>
  Array.from({ length: kernel_count() }, (_, i) => {
    const bits = BigInt.asUintN(64, kernel_bits(f64, i));
    return `${f64 ? "f64" : "f32"} ${text(kernel_name(i))} ` +
      bits.toString(16).padStart(16, "0");
  }));
for (let i = 0; i < Math.max(lines.length, golden.length); i++)
  check(lines[i], golden[i]);

console.log(`${sum.passed} passed, ${sum.failed} failed, 0 skipped`);
process.exitCode = sum.failed ? 1 : 0;
