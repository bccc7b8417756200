// SPDX-License-Identifier: MIT
// A figure that answers its controls: settings to the engine, and what comes
// back into the drawing, the sentences, the checks and the tables.
import { settingsText, settingsValues } from "./hash.mjs";
import { patch } from "./patch.mjs";
import { Controls } from "./controls.mjs";
import { startTables } from "./tables.mjs";
import { escaped } from "./text.mjs";

const SAY_EVERY = 500; // ms between two announcements
const SLOW = 200;      // ms from which a figure waits for the hand to rest
const REST = 150;
const NARROW = 640;    // px: panels stand below each other

function quoted(sentence, numbers) {
  return escaped(sentence).replace(/\{([^{}]+)\}/g, (all, id) => numbers[id]
    ? `<output data-q="${id}" aria-live="off">${numbers[id].shown}</output>`
    : all);
}

export function checkLine({ ok, text }) {
  return `<li class="${ok ? "ok" : "bad"}">` +
    `${ok ? "✓" : "✗ does not hold:"} ${escaped(text)}</li>`;
}

export class Figure {
  constructor(root, row, changed) {
    this.root = root;
    this.name = row.name;
    this.inputs = row.inputs;
    this.row = row;         // the shot it shows: its own but while it morphs
    this.changed = changed; // called with true when a value is settled
    this.box = root.querySelector(".controls");
    this.controls = new Controls(row.inputs, this.box);
    this.drawn = undefined; // the settings that the engine drew last
    this.cost = 0;
    this.visible = false;
    this.#listen();
  }

  #listen() {
    if (!this.box) return;
    for (const b of this.root.parentElement.querySelectorAll("[data-put]"))
      b.addEventListener("click", () => this.put(b.dataset.put, b.value));
    this.box.addEventListener("input", (e) => this.#touched(e, false));
    this.box.addEventListener("change", (e) => this.#touched(e, true));
    this.box.addEventListener("click", (e) => this.#press(e));
    this.root.querySelector("details.tables")?.addEventListener("toggle",
      () => this.#tables());
  }

  #touched(event, settled) {
    this.draw(event.timeStamp);
    this.changed(settled);
  }

  #press({ target, timeStamp }) {
    const what = target.closest("[data-do]")?.dataset.do;
    if (what === "reset") this.controls.values = {};
    else if (what === "surprise") this.controls.surprise();
    else if (what === "link") return this.#copy(target);
    else return;
    this.draw(timeStamp);
    this.changed(true);
  }

  async #copy(button) {
    this.changed(true);
    try {
      await navigator.clipboard.writeText(location.href);
      this.say("Link copied.");
    } catch { // no permission: the address bar has it
      this.say("The link is in the address bar.");
    }
    button.focus();
  }

  wake(engine) {
    this.engine = engine;
    if (this.box) this.box.hidden = false;
    const examples = this.root.parentElement.querySelector(".examples");
    if (examples) examples.hidden = false;
    this.draw();
  }

  // a control's text, set or own
  value(name) {
    return this.controls.values[name] ??
      this.inputs.find((row) => row.name === name).own;
  }

  put(name, text) {
    this.recall(name, text);
    this.changed(true);
  }

  // the same, but nothing for the history
  recall(name, text) {
    this.controls.values = { ...this.controls.values, [name]: text };
    this.draw();
  }

  // shows another shot with the same settings in this one's place: what has
  // the same id there moves
  morph(row) {
    this.row = row;
    this.drawn = undefined;
    this.draw();
  }

  get settings() {
    return settingsText(this.inputs, this.controls.values);
  }

  set settings(text) {
    this.controls.values = settingsValues(this.inputs, text ?? "");
    this.draw();
  }

  show(visible) {
    this.visible = visible;
    if (visible) this.draw();
  }

  // figures out of sight wait until they are seen; slow ones for a rest
  draw(since = performance.now()) {
    this.since ??= since;
    if (!this.engine || !this.visible || this.frame) return;
    this.root.setAttribute("aria-busy", "true");
    if (this.cost > SLOW) {
      clearTimeout(this.rest);
      this.rest = setTimeout(() => this.#now(), REST);
    } else {
      this.frame = requestAnimationFrame(() => this.#now());
    }
  }

  #now() {
    const settings = settingsText(this.row.inputs, this.controls.values);
    const began = performance.now();
    const since = this.since;
    this.frame = this.since = undefined;
    this.root.removeAttribute("aria-busy");
    const face = this.root.clientWidth < NARROW ? "stack" : "svg";
    if (settings === this.drawn && face === this.face) return;
    this.drawn = settings;
    this.face = face;
    if (this.controls.of.card) this.controls.fold(this.value("card"));
    const { status, text } = this.engine.shot(this.row.name, settings, "json");
    this.#error(status === 0 ? "" : text);
    if (status !== 0) return;
    this.#fill(JSON.parse(text));
    this.#picture(this.engine.shot(this.row.name, settings, face).text);
    this.#tables();
    this.root.dispatchEvent(new CustomEvent("drawn"));
    this.cost = performance.now() - began;
    this.#measure(since, began);
  }

  // for whoever asks how quick it is: from the hand to the screen, and our part
  #measure(since, began) {
    const measure = (what, start) => performance.measure(
      `${what} ${this.name}`, { start, end: performance.now() });
    measure("work", began);
    requestAnimationFrame(() => measure("figure", since));
  }

  #error(text) {
    const line = this.root.querySelector(".error");
    line.textContent = text;
    line.hidden = text === "";
    this.root.classList.toggle("wrong", text !== "");
  }

  #picture(svg) {
    const own = svg.replaceAll(`"${this.row.name}-`, `"${this.name}-`);
    const place = document.createElement("template");
    place.innerHTML = own; // in a quarter of the time that XML takes
    const fresh = place.content.firstElementChild;
    fresh.style = `--w:${fresh.getAttribute("width")}`; // for style.css
    patch(this.root.querySelector("svg.tb-figure"), fresh);
  }

  #fill(data) {
    const numbers = Object.fromEntries(data.numbers.map((n) => [n.id, n]));
    const section = this.root.closest("section") ?? this.root;
    const says = data.sentences.map((s) => `<p>${quoted(s, numbers)}</p>`);
    this.root.querySelector(".says").innerHTML = says.join("");
    this.root.querySelector(".checks").innerHTML =
      data.checks.map(checkLine).join("");
    for (const q of section.querySelectorAll("output[data-q]"))
      if (numbers[q.dataset.q] && this.#mine(q))
        q.textContent = numbers[q.dataset.q].shown;
    this.root.querySelector(".command code").textContent =
      `tollbooth picture ${this.row.name}` +
      (this.drawn ? ` --set '${this.drawn}'` : "");
    this.say(this.root.querySelector(".says p")?.textContent ?? "");
  }

  // numbers in the prose belong to the section's figure of that name, or to
  // its first
  #mine(q) {
    const figure = q.closest("figure");
    if (figure) return figure === this.root;
    const of = q.closest("[data-of]")?.dataset.of;
    return of ? of === this.name
      : q.closest("section").querySelector("figure") === this.root;
  }

  #tables() {
    const details = this.root.querySelector("details.tables");
    if (!details?.open || !this.engine) return;
    const box = details.querySelector("div");
    box.innerHTML = this.engine.shot(this.row.name, this.drawn, "tables").text;
    startTables(box);
  }

  // the one line that is read aloud; at most every half second, the last wins
  say(text) {
    this.words = text;
    this.talk ??= setTimeout(() => {
      this.talk = undefined;
      this.root.querySelector(".live").textContent = this.words;
    }, SAY_EVERY);
  }
}
