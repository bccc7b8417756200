// SPDX-License-Identifier: MIT
// The build map ticks what the reader has been through: each foundation has a
// box to say so, and so has the map, in place of its list of numbers.
import { keep, recallOf } from "./store.mjs";

function box(place, words) {
  const label = document.createElement("label");
  label.className = "done";
  label.innerHTML = `<input type="checkbox"> ${words}`;
  place.append(label);
  return label.firstElementChild;
}

// what the map's settings say is done, as numbers
const doneOf = (figure) =>
  (figure.value("done").match(/[1-6]/g) ?? []).map(Number);

export function startMap(figure, sections) {
  const kept = recallOf("done");
  const control = figure.root.querySelector("[data-input=done]");
  for (const part of control.querySelectorAll(".elements, .count"))
    part.hidden = true;
  control.querySelector(".name").textContent = "sections finished";
  const ticks = sections.map((section, i) => [
    box(section, `Been through §${i + 1}`), box(control, `§${i + 1}`)]);
  const show = () => ticks.flat().forEach((tick, i) => {
    tick.checked = doneOf(figure).includes(1 + (i >> 1));
  });
  const put = (n, on) => {
    kept[n] = on;
    keep();
    const done = new Set(doneOf(figure));
    if (on) done.add(n);
    else done.delete(n);
    figure.put("done", `[${done.size ? [...done].sort() : 0}]`);
    show();
  };
  ticks.forEach((pair, i) => pair.forEach((tick) =>
    tick.addEventListener("change", (e) => {
      e.stopPropagation(); // no input of the figure's own
      put(i + 1, tick.checked);
    })));
  figure.root.addEventListener("drawn", show);
  const before = Object.keys(kept).filter((n) => kept[n]);
  if (before.length && !doneOf(figure).length)
    figure.recall("done", `[${before}]`);
  show();
}
