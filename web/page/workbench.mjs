// SPDX-License-Identifier: MIT
// Beside the workbench's figure: what the text of the block alone says.
import { escaped } from "./text.mjs";

function laneText({ kind, coefficient, tolls_per_block: tolls,
  final_toll: exit }) {
  const of = kind === "toll" ? ` (${tolls} per block)`
    : kind === "scaled" ? ` (times ${coefficient} per block)` : "";
  return kind + of + (exit ? ", one norm after the last block" : "");
}

function finding(f) {
  return `<li class="${f.level}"><strong>${f.level}</strong> ` +
    `<code>${escaped(f.code)}</code> at ${f.line}:${f.column}: ` +
    `${escaped(f.message)}.${f.fix ? ` Fix: ${escaped(f.fix)}.` : ""}</li>`;
}

function fill(section, data) {
  const at = (name) => section.querySelector(`[data-explain=${name}]`);
  at("jacobian").innerHTML = data.jacobian.mathml;
  at("zero").textContent = data.corners.zero_branch;
  at("lane").textContent = laneText(data.lane);
  at("lint").innerHTML = data.lint.map(finding).join("") ||
    "<li>nothing to remark</li>";
}

export function startWorkbench(section, figure, engine) {
  const value = (name) => Number(figure.value(name));
  figure.root.addEventListener("drawn", () => {
    const { status, text } = engine.explain(figure.value("block"),
      { depth: value("depth"), width: value("width"), heads: value("heads"),
        tokens: value("tokens") });
    if (status === 0) fill(section, JSON.parse(text));
  });
}
