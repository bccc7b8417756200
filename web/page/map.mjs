// SPDX-License-Identifier: MIT
// The build map ticks what the reader has been through: each foundation has a
// box to say so, and the map's own control follows.
import { keep, recallOf } from "./store.mjs";

function box(n, checked) {
  const label = document.createElement("label");
  label.className = "done";
  label.innerHTML = `<input type="checkbox"> Been through §${n}`;
  label.firstElementChild.checked = checked;
  return label;
}

// what the map's settings say is done, as numbers
const doneOf = (figure) =>
  (figure.value("done").match(/[1-6]/g) ?? []).map(Number);

export function startMap(figure, sections) {
  const kept = recallOf("done");
  const ticks = sections.map((section, i) => {
    const label = box(i + 1, false);
    section.append(label);
    return label.firstElementChild;
  });
  const show = () => ticks.forEach((tick, i) => {
    tick.checked = doneOf(figure).includes(i + 1);
  });
  ticks.forEach((tick, i) => tick.addEventListener("change", () => {
    kept[i + 1] = tick.checked;
    keep();
    const done = ticks.flatMap((t, k) => t.checked ? [k + 1] : []);
    figure.put("done", `[${done.length ? done : 0}]`);
  }));
  figure.root.addEventListener("drawn", show);
  const before = Object.keys(kept).filter((n) => kept[n]);
  if (before.length && !doneOf(figure).length)
    figure.recall("done", `[${before}]`);
  show();
}
