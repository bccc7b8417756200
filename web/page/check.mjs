// SPDX-License-Identifier: MIT
// The checklist's tests. The engine draws a question for each item and judges
// the answer; after three wrong tries the page shows the step.
import { keep, recallOf } from "./store.mjs";
import { escaped } from "./text.mjs";

const TRIES = 3;
const SEEDS = 1e6;

function told(engine, settings) {
  const { status, text } = engine.shot("CHECK", settings, "json");
  if (status !== 0) throw new Error(text);
  const data = JSON.parse(text);
  return { ...data, numbers: Object.fromEntries(data.numbers.map((n) =>
    [n.id, n.value])) };
}

// --- the question: the panels before the list itself --------------------------

const cells = (tag, row) => row.map((c) => `<${tag}>${escaped(c)}</${tag}>`)
  .join("");

// x_j as a letter with its index
const letters = (text) => escaped(text).replace(/\b([a-z])_([a-z0-9]+)/g,
  "$1<sub>$2</sub>");

const asHtml = {
  words: ({ words }) => `<p>${letters(words.join(" "))}</p>`,
  table: ({ title, columns, rows }) => `<table><caption>${escaped(title)}
    </caption><thead><tr>${cells("th", columns)}</tr></thead><tbody>${
    rows.map((r) => `<tr>${cells("td", r)}</tr>`).join("")}</tbody></table>`,
};

// one panel of the shot, as a drawing of its own
function drawing(engine, settings, k, title) {
  const { text } = engine.shot("CHECK", settings, "svg");
  const svg = new DOMParser().parseFromString(text, "image/svg+xml")
    .documentElement;
  const panel = svg.querySelector(`#CHECK-p${k}`);
  for (const e of [panel, ...panel.querySelectorAll("[id]")])
    e.removeAttribute("id");
  panel.querySelectorAll("title").forEach((e) => e.remove());
  svg.replaceChildren(panel);
  for (const name of ["aria-labelledby", "height", "width"])
    svg.removeAttribute(name);
  svg.setAttribute("aria-label", title);
  return `<div class="scroll" tabindex="0" role="region"
    aria-label="the drawing">${svg.outerHTML}</div>`;
}

const question = (engine, settings, panels) => panels.slice(0, -1).map((p, k) =>
  asHtml[p.kind]?.(p) ?? drawing(engine, settings, k, p.title)).join("");

// "Answer with guess=[mean,variance]." -> what each number is
function wanted(sentence, n) {
  const what = sentence.replace(/^.*?=|[[\].]/g, "");
  if (n === 1) return [what];
  const comma = what.lastIndexOf(",");
  return [what.slice(0, comma), what.slice(comma + 1)];
}

const field = (label) => `<label>${escaped(label.trim())}: <input type="number"
  step="any" name="guess" required></label>`;

// --- one item ----------------------------------------------------------------

class Test {
  constructor(item, k, engine) {
    this.item = item;
    this.k = k;
    this.engine = engine;
    this.wrong = 0;
    const box = item.querySelector(".test");
    box.hidden = false;
    this.form = box.querySelector("form");
    box.querySelector("button").onclick = () => this.ask();
    this.form.addEventListener("submit", (e) => this.#answer(e));
  }

  ask() {
    this.settings = `test=${this.k},seed=${1 + Math.floor(Math.random() *
      SEEDS)}`;
    const { numbers, sentences, panels } = told(this.engine, this.settings);
    this.form.innerHTML = `${question(this.engine, this.settings, panels)}${
      wanted(sentences[0], numbers["test.numbers"]).map(field).join("")}
      <p class="buttons"><button>Answer</button></p><p role="status"></p>`;
    this.form.dataset.question = this.settings;
    this.form.hidden = false;
    for (const svg of this.form.querySelectorAll("svg")) {
      const { y, width, height } = svg.firstElementChild.getBBox();
      svg.setAttribute("viewBox", `0 ${y - 4} ${width + 28} ${height + 8}`);
      svg.style = `--w:${width + 28}`;
    }
    this.form.querySelector("input").focus();
  }

  #answer(event) {
    event.preventDefault();
    const guess = new FormData(this.form).getAll("guess");
    const { numbers } = told(this.engine, `${this.settings},guess=[${guess}]`);
    const say = this.form.querySelector("[role=status]");
    this.wrong = numbers["test.right"] ? 0 : this.wrong + 1;
    const left = TRIES - this.wrong;
    say.textContent = this.wrong === 0 ? "Right."
      : left > 0 ? `Not yet; ${left} more before the step is shown.`
        : "The step shows it.";
    const tick = this.item.querySelector("input[type=checkbox]");
    if (this.wrong === 0 && !tick.checked) tick.click();
    if (left > 0) return;
    this.wrong = 0;
    this.item.querySelector(".proof a").click();
  }
}

export function startChecklist(section, engine) {
  const ticks = recallOf("ticks");
  section.querySelectorAll("[data-check]").forEach((item, i) => {
    const id = item.dataset.check, box = item.querySelector("input");
    box.hidden = false;
    box.checked = Boolean(ticks[id]);
    box.addEventListener("change", () => {
      ticks[id] = box.checked;
      keep();
    });
    new Test(item, i + 1, engine);
  });
}
