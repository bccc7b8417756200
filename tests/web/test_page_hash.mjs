// SPDX-License-Identifier: MIT
// The page's address gives back the settings it was made of, and the engine
// takes them: for every input of every shot.
//   TOLLBOOTH=build/tollbooth node tests/web/test_page_hash.mjs
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { readHash, settingsText, settingsValues, writeHash }
  from "../../web/page/hash.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const program = process.env.TOLLBOOTH ?? `${root}build/tollbooth`;
const sum = { passed: 0, failed: 0 };

function native(...args) {
  const { status, stdout, stderr } = spawnSync(program, args,
    { encoding: "utf8" });
  return { status, text: stdout, error: stderr };
}

function same(name, ours, wanted) {
  const [a, b] = [ours, wanted].map((v) => JSON.stringify(v));
  if (a !== b) console.log(`FAIL ${name}: got ${a}, wanted ${b}`);
  sum[a === b ? "passed" : "failed"]++;
}

// in any order
const sorted = (values) => Object.entries(values).sort();

const { shots } = JSON.parse(native("picture", "--list", "--json").text);
for (const { name, inputs } of shots) {
  const own = Object.fromEntries(inputs.map((row) => [row.name, row.own]));
  const text = settingsText(inputs, own);
  same(`${name}: settings`, sorted(settingsValues(inputs, text)),
    sorted(own));
  const state = { at: name, theme: "dark", shots: { [name]: text } };
  same(`${name}: address`, readHash("#" + writeHash(state)), state);
  const { status, error } = native("picture", name, "--json", "--set", text);
  same(`${name}: --set ${text}: ${error}`, status, 0);
}

const bench = shots.find((s) => s.name === "workbench").inputs;
const block = { block: "a = scalar(0)\nx = x + a*F(x) # 50% ~ done",
  depth: "3" };
const address = writeHash({ at: "workbench",
  shots: { workbench: settingsText(bench, block) } });
same("an equation of several lines",
  sorted(settingsValues(bench, readHash(address).shots.workbench)),
  sorted(block));
same("of an address only what can be read", readHash("#S1~S1:x=%E0~theme:odd"),
  { at: "S1", theme: "odd", shots: { S1: "" } });
same("nothing set, nothing said", writeHash({ at: "S1", shots: { S1: "" } }),
  "S1");

console.log(`${sum.passed} passed, ${sum.failed} failed, 0 skipped`);
process.exitCode = sum.failed ? 1 : 0;
