// SPDX-License-Identifier: MIT
// The checklist's tests. A question is drawn, the engine says what is right,
// and after three wrong tries the page shows the step.
import { keep, recallOf } from "./store.mjs";

const TRIES = 3;
const pick = (n) => Math.floor(Math.random() * n);
const oneOf = (list) => list[pick(list.length)];
const vector = (n, from = 0, to = 9) =>
  Array.from({ length: n }, () => from + pick(to - from + 1));

function asked(engine, expression, set) {
  const { status, text } = engine.eval(expression, { set });
  return status === 0 ? JSON.parse(text).y.data ?? JSON.parse(text).y : null;
}

const choices = (all) => all.map(([value, label]) =>
  `<label><input type="radio" name="test" value="${value}"> ${label}</label>`);
const field = (name, label) =>
  `<label>${label} <input type="number" step="any" name="${name}"></label>`;
const list = (v) => `(${v.join(", ")})`;

// --- the questions: {html, right(form)} --------------------------------------

// whole numbers: four deviations that add up to 0
function meanVariance(engine) {
  const mean = 2 + pick(7), a = 1 + pick(3), b = pick(3);
  const x = [mean - a, mean + a, mean - b, mean + b];
  const [mu, variance] = asked(engine,
    "c = x - mix(mean(x), u); concat(mean(x), mean(c*c))",
    { x, u: x.map(() => 1) });
  return {
    html: `<p>x = ${list(x)}</p>${field("mu", "μ")} ${field("v", "σ²")}`,
    right: (form) => Number(form.get("mu")) === mu &&
      form.get("mu") !== "" && Number(form.get("v")) === variance,
  };
}

const placements = [
  ["post", "x = norm(x + F(x))"],
  ["post", "x = norm(x + attn(x)); x = norm(x + ffn(x))"],
  ["pre", "x = x + F(norm(x))"],
  ["pre", "x = x + attn(norm(x)); x = x + ffn(norm(x))"],
  ["none", "x = x + F(x)"],
];

// the diagram alone, out of the workbench's figure
function diagram(engine, block) {
  const { text } = engine.shot("workbench",
    `depth=1,width=8,heads=1,tokens=2&block=${block}`, "svg");
  const svg = new DOMParser().parseFromString(text, "image/svg+xml")
    .documentElement;
  const panel = svg.querySelector("#workbench-p0");
  for (const e of [panel, ...panel.querySelectorAll("[id]")])
    e.removeAttribute("id");
  panel.querySelectorAll("title").forEach((e) => e.remove());
  svg.replaceChildren(panel);
  for (const name of ["aria-labelledby", "height", "width"])
    svg.removeAttribute(name);
  svg.setAttribute("viewBox", "0 40 620 250");
  svg.setAttribute("aria-label", "a block without its name");
  return svg.outerHTML;
}

function placement(engine) {
  const [right, block] = oneOf(placements);
  return {
    html: diagram(engine, block) + choices([["post", "Post-LN"],
      ["pre", "Pre-LN"], ["none", "neither"]]).join(""),
    right: (form) => form.get("test") === right,
  };
}

function subscripts(engine) {
  const floors = [vector(4), vector(4), vector(4)];
  const i = pick(3), j = pick(4);
  const [dial] = asked(engine, "dot(x, e)",
    { x: floors[i], e: [0, 1, 2, 3].map((k) => Number(k === j)) });
  return {
    html: `<p>Floor 1: ${list(floors[0])}, floor 2: ${list(floors[1])}, ` +
      `floor 3: ${list(floors[2])}.</p>` +
      field("n", `How many numbers is <var>x</var><sub>i</sub>, i = ${i + 1}?`)
      + field("dial", `What is its <var>x</var><sub>j</sub>, j = ${j + 1}?`),
    right: (form) => Number(form.get("n")) === 4 &&
      form.get("dial") !== "" && Number(form.get("dial")) === dial,
  };
}

function flat(engine) {
  const level = 1 + pick(8);
  const all = [vector(3, 0, 4).concat(9), [-level, level, -level, level],
    [0, 0, 0, level], [level, level, level, level]]
    .sort(() => Math.random() - 0.5);
  const refused = (x) => engine.eval("layernorm(x, eps=0)", { set: { x } })
    .status !== 0;
  return {
    html: "<p>Which of these is refused where ε = 0?</p>" +
      choices(all.map((x, k) => [k, list(x)])).join(""),
    right: (form) => form.get("test") !== null &&
      refused(all[Number(form.get("test"))]),
  };
}

function sameLength(engine) {
  const all = [["w = linear(4, 4)", "4 numbers"], ["w = linear(4, 5)",
    "5 numbers"], ["w = linear(4, 3)", "3 numbers"]]
    .sort(() => Math.random() - 0.5);
  const fits = (box) => engine.eval(`${box}; x + w(x)`,
    { set: { x: vector(4) } }).status === 0;
  return {
    html: "<p>x has 4 numbers. Which box may be added to it, one that " +
      "returns</p>" + choices(all.map(([, t], k) => [k, t])).join(""),
    right: (form) => form.get("test") !== null &&
      fits(all[Number(form.get("test"))][0]),
  };
}

const questions = {
  "check-mean-variance": meanVariance,
  "check-placement": placement,
  "check-subscripts": subscripts,
  "check-flat": flat,
  "check-same-length": sameLength,
};

// --- one item ----------------------------------------------------------------

class Test {
  constructor(item, draw, engine, goTo) {
    this.item = item;
    this.draw = draw;
    this.engine = engine;
    this.goTo = goTo;
    this.wrong = 0;
    const box = item.querySelector(".test");
    box.hidden = false;
    this.form = box.querySelector("form");
    box.querySelector("button").onclick = () => this.ask();
    this.form.addEventListener("submit", (e) => this.#answer(e));
  }

  ask() {
    this.question = this.draw(this.engine);
    this.form.innerHTML = `${this.question.html}
      <p class="buttons"><button>Answer</button></p><p role="status"></p>`;
    this.form.hidden = false;
    this.form.querySelector("input").focus();
  }

  #answer(event) {
    event.preventDefault();
    const say = this.form.querySelector("[role=status]");
    if (this.question.right(new FormData(this.form))) {
      this.wrong = 0;
      say.textContent = "Right.";
      const tick = this.item.querySelector("input[type=checkbox]");
      if (!tick.checked) tick.click();
      return;
    }
    this.wrong++;
    say.textContent = this.wrong < TRIES
      ? `Not yet; ${TRIES - this.wrong} more before the step is shown.`
      : "Here is the step.";
    if (this.wrong < TRIES) return;
    this.wrong = 0;
    this.goTo(this.item.dataset.shot);
  }
}

export function startChecklist(section, engine, goTo) {
  const ticks = recallOf("ticks");
  for (const item of section.querySelectorAll("[data-check]")) {
    const id = item.dataset.check, box = item.querySelector("input");
    box.hidden = false;
    box.checked = Boolean(ticks[id]);
    box.addEventListener("change", () => {
      ticks[id] = box.checked;
      keep();
    });
    if (questions[id]) new Test(item, questions[id], engine, goTo);
  }
}
