// SPDX-License-Identifier: MIT
// The controls of a shot, made of the rows of its inputs, as text of its
// settings and back. Every slider has a field of the same number beside it.
import { escaped } from "./text.mjs";

const LIST_ROWS = 16; // elements of a list that get a slider each

const POSITIONS = 200; // of a logarithmic slider

// --- markup --------------------------------------------------------------

const number = (row) => (row.step || row.log ? '<input type="range">' : "") +
  '<input type="number">';

// the other elements of a list are made like the first
function listFields(row) {
  if (JSON.parse(row.own).length > LIST_ROWS || !row.step)
    return '<input type="text" spellcheck="false">';
  return `<span class="count"><button type="button" data-do="less"
    aria-label="one number fewer">−</button><button type="button"
    data-do="more" aria-label="one number more">+</button></span>
    <span class="elements"><span class="element"><span aria-hidden="true"
    >1</span>${number(row)}</span></span>`;
}

const fields = {
  switch: (label) => `<label><input type="checkbox"> ${label}</label>`,
  choice: (label, row) => `<label>${label} <select>${row.choices.split("|")
    .map((c) => `<option>${escaped(c)}</option>`).join("")}</select></label>`,
  number: (label, row) => `<span class="name">${label}</span>${number(row)}`,
  list: (label, row) => `<span class="name">${label}</span>${listFields(row)}`,
};
const area = (label) =>
  `<label>${label} <textarea rows="2" spellcheck="false"></textarea></label>`;

const markup = (inputs) => `<legend>Try it</legend>${inputs.map((row) =>
  `<div class="control ${row.kind}" data-input="${row.name}">${
    (fields[row.kind] ?? area)(escaped(row.label), row)}</div>`).join("")}
  <p class="buttons"><button type="button" data-do="reset">Reset</button>
  <button type="button" data-do="surprise">Surprise me</button>
  <button type="button" data-do="link">Copy link</button></p>`;

// --- values --------------------------------------------------------------

const rounded = (v) => Number(v.toPrecision(3));

// least value of a logarithmic slider; below it there may be only 0
const floorOf = (row) => row.low > 0 ? row.low
  : Number(row.own) > 0 ? Number(row.own) * 1e-3 : row.high * 1e-6;

function valueAt(row, position) {
  if (row.low <= 0 && position === 0) return 0;
  const least = floorOf(row);
  const v = least * (row.high / least) ** (position / POSITIONS);
  return row.whole ? Math.round(v) : rounded(v);
}

function positionOf(row, value) {
  const least = floorOf(row);
  if (!(value > least)) return 0;
  return Math.round(POSITIONS * Math.log(value / least) /
    Math.log(row.high / least));
}

// Of thousands of steps a slider offers those around the row's own values; the
// field beside it takes them all.
function reach(row) {
  const { low, high, step } = row;
  if ((high - low) / step <= 1000) return [low, high];
  const own = numbersOf(row.own).map((v) => Math.abs(Number(v)));
  const far = step * Math.ceil(Math.max(2 * Math.max(...own) / step, 20));
  return [Math.max(low, -far), Math.min(high, far)];
}

// a slider and its field
class Pair {
  constructor(row, field, name) {
    this.row = row;
    this.field = field;
    const slider = field.previousElementSibling;
    this.slider = slider?.type === "range" ? slider : null;
    const step = row.whole ? Math.max(1, row.step ?? 1) : row.step;
    Object.assign(field, { min: row.low, max: row.high, step: row.log ? "any"
      : step ?? "any", ariaLabel: name });
    if (this.slider) this.#bound(step, name);
    this.slider?.addEventListener("input", () => this.lead());
    field.addEventListener("input", () => this.follow());
  }

  #bound(step, name) {
    const [min, max] = this.row.log ? [0, POSITIONS] : reach(this.row);
    Object.assign(this.slider, { min, max, step: this.row.log ? 1 : step,
      ariaLabel: `${name}, slider` });
  }

  // the field takes the slider's value
  lead() {
    const v = Number(this.slider.value);
    this.field.value = this.row.log ? valueAt(this.row, v) : v;
    this.slider.setAttribute("aria-valuetext", this.field.value);
  }

  follow() {
    if (!this.slider) return;
    const v = Number(this.field.value);
    this.slider.value = this.row.log ? positionOf(this.row, v) : v;
    this.slider.setAttribute("aria-valuetext", this.field.value);
  }

  get text() { return this.field.value; }
  set text(v) {
    this.field.value = v;
    this.follow();
  }
}

function numbersOf(text) {
  const list = text.replace(/[[\]\s]/g, "").split(",");
  return list.filter((v) => v !== "");
}

// a list of numbers with a slider each, or one field for the text of it
class List {
  constructor(row, root) {
    this.row = row;
    this.root = root;
    this.name = root.querySelector(".name").textContent;
    this.plain = root.querySelector("input[type=text]");
    if (this.plain) {
      this.plain.ariaLabel = this.name;
      return;
    }
    this.box = root.querySelector(".elements");
    this.pairs = [this.#pair(this.box.firstElementChild)];
    root.querySelector("[data-do=less]").onclick = () => this.#size(-1);
    root.querySelector("[data-do=more]").onclick = () => this.#size(1);
  }

  #pair(element) {
    return new Pair(this.row, element.querySelector("input[type=number]"),
      `${this.name}, number ${element.firstElementChild.textContent}`);
  }

  #add(value) {
    const element = this.box.firstElementChild.cloneNode(true);
    element.firstElementChild.textContent = this.pairs.length + 1;
    this.box.append(element);
    this.pairs.push(this.#pair(element));
    this.pairs.at(-1).text = value;
  }

  #size(by) {
    const values = this.pairs.map((p) => p.text);
    if (by < 0) values.pop();
    else values.push("0");
    if (values.length < 1 || values.length > this.row.most) return;
    this.text = `[${values}]`;
    this.root.dispatchEvent(new Event("change", { bubbles: true }));
  }

  get text() {
    return this.plain ? this.plain.value : `[${this.pairs.map((p) => p.text)}]`;
  }

  set text(text) {
    if (this.plain) {
      this.plain.value = text;
      return;
    }
    const values = numbersOf(text);
    while (this.pairs.length > values.length) {
      this.pairs.pop();
      this.box.lastElementChild.remove();
    }
    values.forEach((v, i) => {
      if (i < this.pairs.length) this.pairs[i].text = v;
      else this.#add(v);
    });
  }
}

class Switch {
  constructor(row, root) { this.box = root.querySelector("input"); }
  get text() { return this.box.checked ? "1" : "0"; }
  set text(v) { this.box.checked = Number(v) !== 0; }
}

class Field {
  constructor(row, root) { this.field = root.querySelector("select,textarea"); }
  get text() { return this.field.value; }
  set text(v) { this.field.value = v; }
}

function make(row, root) {
  if (row.kind === "number")
    return new Pair(row, root.querySelector("input[type=number]"),
      root.querySelector(".name").textContent);
  const Kind = { list: List, switch: Switch }[row.kind] ?? Field;
  return new Kind(row, root);
}

const same = (a, b) => a.replace(/\s/g, "") === b.replace(/\s/g, "") ||
  (a !== "" && Number(a) === Number(b));

// a draw for "surprise me"; null where nothing sensible can be drawn
function draw(row) {
  if (row.kind === "choice") {
    const words = row.choices.split("|");
    return words[Math.floor(Math.random() * words.length)];
  }
  if (row.kind !== "number" || !(row.step || row.log)) return null;
  if (row.log) return String(valueAt(row, Math.floor(Math.random() * 201)));
  const steps = Math.floor((row.high - row.low) / row.step);
  return String(rounded(row.low +
    row.step * Math.floor(Math.random() * (steps + 1))));
}

export class Controls {
  constructor(inputs, root) {
    this.inputs = inputs;
    this.root = root;
    this.of = {};
    if (root) root.innerHTML = markup(inputs);
    for (const row of inputs) {
      const place = root?.querySelector(`[data-input="${row.name}"]`);
      if (place) this.of[row.name] = make(row, place);
    }
    this.values = {}; // their own
  }

  // only what differs from the shot's own settings
  get values() {
    const differing = this.inputs.filter((row) => this.of[row.name] &&
      !same(this.of[row.name].text, row.own));
    return Object.fromEntries(differing.map((row) =>
      [row.name, this.of[row.name].text.trim()]));
  }

  set values(values) {
    for (const row of this.inputs)
      if (this.of[row.name])
        this.of[row.name].text = values[row.name] ?? row.own;
  }

  // "a, e: the list" is there for the cards a and e of a shot that has cards
  fold(card) {
    for (const row of this.inputs) {
      const place = this.of[row.name] &&
        this.root.querySelector(`[data-input="${row.name}"]`);
      const cards = /^\s*([a-z](?:, [a-z])*): /.exec(
        place?.textContent ?? "")?.[1];
      if (cards) place.hidden = !cards.split(", ").includes(card);
    }
  }

  // another seed where there is one, else other settings
  surprise() {
    const seed = this.inputs.filter((row) => row.name === "seed");
    const values = this.values;
    for (const row of seed.length ? seed : this.inputs) {
      const v = seed.length ? String(1 + Math.floor(Math.random() * 9999))
        : draw(row);
      if (v !== null) values[row.name] = v;
    }
    this.values = values;
  }
}
