// SPDX-License-Identifier: MIT
// §6's beads: a button lies over each of them, to be dragged, or moved with the
// arrow keys. Where a norm is dropped becomes an order that the figure knows,
// or an equation; the drawing then says where the beads are.

const PLACES = { // from the input to the output
  fork: "on the lane before the fork", before: "on the branch before the box",
  skip: "on the skip", behind: "on the branch behind the box",
  merged: "on the lane after the plus",
};
const NAMES = Object.keys(PLACES);
const NEAR = 0.075; // of the figure's width: how far off a drop may be

// what the box and the plus change places with when they are moved
const PASSES = { box: ["before", "behind"], add: ["skip", "merged"] };

export function spell(norms) {
  const normed = (place, text) => norms.has(place) ? `norm(${text})` : text;
  const x = norms.has("fork") ? "n" : "x";
  const branch = normed("behind", `F(${normed("before", x)})`);
  const sum = normed("merged", `${normed("skip", x)} + ${branch}`);
  return norms.has("fork") ? `n = norm(x); x = ${sum}` : `x = ${sum}`;
}

// the norms after the bead `from` went to `to`; a box or a plus goes by 1 or -1
export function moved(norms, from, to) {
  const after = new Set(norms);
  if (!PASSES[from]) {
    after.delete(from);
    if (to) after.add(to);
    return after;
  }
  const [left, right] = PASSES[from];
  const [passed, free] = to > 0 ? [right, left] : [left, right];
  if (after.has(passed) && !after.has(free)) {
    after.delete(passed);
    after.add(free);
  }
  return after;
}

const key = (norms) => NAMES.filter((p) => norms.has(p)).join();

class Beads {
  constructor(figure, engine) {
    this.figure = figure;
    this.engine = engine;
    this.canvas = figure.root.querySelector(".canvas");
    this.layer = document.createElement("div");
    this.layer.className = "beads";
    this.buttons = Object.fromEntries([...NAMES, "box", "add"].map((name) =>
      [name, this.#button(name)]));
    this.canvas.append(this.layer);
    figure.root.addEventListener("drawn", () => this.#follow());
    new ResizeObserver(() => this.#follow()).observe(this.canvas);
    figure.root.querySelector("[data-input=order]").addEventListener("input",
      () => figure.recall("equation", "")); // the order wins over the text
  }

  #button(name) {
    const b = document.createElement("button");
    b.type = "button";
    b.dataset.bead = name;
    b.dataset.word = PLACES[name] ? "norm" : name;
    b.addEventListener("keydown", (e) => this.#key(e, name));
    b.addEventListener("pointerdown", (e) => this.#grab(e, name));
    b.addEventListener("click", (e) => this.#press(e, name));
    this.layer.append(b);
    return b;
  }

  #part(name) {
    const id = PLACES[name] ? `slot-${name}` : name;
    return this.canvas.querySelector(`[id="${this.figure.name}-p0-${id}"]`);
  }

  // the buttons to where the drawing has its beads
  #follow() {
    const there = NAMES.every((p) => this.#part(p));
    this.layer.hidden = !there;
    if (!there) return;
    const svg = this.canvas.querySelector("svg").getBoundingClientRect();
    const frame = this.canvas.getBoundingClientRect();
    this.norms = new Set(NAMES.filter((p) =>
      this.#part(p).dataset.role === "norm"));
    Object.assign(this.layer.style, { width: `${svg.width}px`,
      left: `${svg.left - frame.left - 1 + this.canvas.scrollLeft}px`,
      height: `${svg.height}px` });
    for (const [name, b] of Object.entries(this.buttons)) {
      const at = this.#part(name).getBoundingClientRect();
      b.style.left = `${100 * (at.left + at.width / 2 - svg.left) / svg.width}%`;
      b.style.top = `${100 * (at.top + at.height / 2 - svg.top) / svg.height}%`;
      this.#name(b, name);
    }
    this.buttons[this.focus]?.focus({ preventScroll: true });
    if (this.focus) this.figure.say(this.canvas.querySelector("desc")
      .textContent);
    this.focus = undefined;
  }

  #name(b, name) {
    const on = this.norms.has(name);
    b.classList.toggle("on", on || !PLACES[name]);
    b.ariaLabel = name === "add" ? "the plus; left and right move it"
      : name === "box" ? "the box; left and right move it"
        : on ? `norm ${PLACES[name]}; arrows move it, Delete takes it away`
          : `empty place ${PLACES[name]}; Enter parks one more norm`;
  }

  // the choice of this name, if the figure has one; the engine knows them
  #order(norms) {
    this.orders ??= new Map(this.figure.inputs.find((r) => r.name === "order")
      .choices.split("|").map((name) => {
        const { text } = this.engine.shot(this.figure.name, `order=${name}`,
          "json");
        return [key(new Set(JSON.parse(text).panels[0].norms)), name];
      }));
    return this.orders.get(key(norms));
  }

  #set(norms, focus) {
    if (key(norms) === key(this.norms)) return;
    this.focus = focus;
    const order = this.#order(norms);
    this.figure.recall("equation", order ? "" : spell(norms));
    if (order) this.figure.put("order", order);
    else this.figure.changed(true);
  }

  #key(event, name) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (PASSES[name] && by) {
      this.#set(moved(this.norms, name, by), name);
    } else if (this.norms.has(name) && /^(Delete|Backspace)$/.test(event.key)) {
      this.#set(moved(this.norms, name), name);
    } else if (this.norms.has(name)) {
      const to = this.#next(name, event.key);
      if (!to) return;
      this.#set(moved(this.norms, name, to), to);
    } else return;
    event.preventDefault();
  }

  // the next free place that way
  #next(name, key_) {
    const free = NAMES.filter((p) => !this.norms.has(p));
    const at = NAMES.indexOf(name);
    const after = free.find((p) => NAMES.indexOf(p) > at);
    const before = free.findLast((p) => NAMES.indexOf(p) < at);
    return { ArrowRight: after, ArrowDown: after, ArrowLeft: before,
      ArrowUp: before, Home: free[0], End: free.at(-1) }[key_];
  }

  #press(event, name) {
    const ends_a_drag = event.detail > 0 && this.dragged;
    if (ends_a_drag || this.norms.has(name) || !PLACES[name]) return;
    this.#set(new Set([...this.norms, name]), name);
  }

  // --- by pointer ----------------------------------------------------------

  #grab(down, name) {
    this.dragged = false;
    if (down.button !== 0 || PLACES[name] && !this.norms.has(name)) return;
    const b = this.buttons[name];
    b.setPointerCapture(down.pointerId);
    const move = (e) => {
      const [dx, dy] = [e.clientX - down.clientX, e.clientY - down.clientY];
      this.dragged ||= Math.hypot(dx, dy) > 4;
      b.style.translate = `calc(${dx}px - 50%) calc(${dy}px - 50%)`;
      b.classList.toggle("held", this.dragged);
    };
    const drop = (e) => {
      b.removeEventListener("pointermove", move);
      b.removeEventListener("pointerup", drop);
      b.removeEventListener("pointercancel", drop);
      b.style.translate = "";
      b.classList.remove("held");
      if (this.dragged && e.type === "pointerup") this.#drop(name, e);
    };
    b.addEventListener("pointermove", move);
    b.addEventListener("pointerup", drop);
    b.addEventListener("pointercancel", drop);
  }

  #centre(name) {
    const r = this.buttons[name].getBoundingClientRect();
    return [r.left + r.width / 2, r.top + r.height / 2];
  }

  #drop(name, { clientX, clientY }) {
    if (PASSES[name]) {
      const [left, right] = PASSES[name].map((p) => this.#centre(p)[0]);
      const by = clientX > right - 8 ? 1 : clientX < left + 8 ? -1 : 0;
      if (by) this.#set(moved(this.norms, name, by), name);
      return;
    }
    const off = (p) => Math.hypot(clientX - this.#centre(p)[0],
      clientY - this.#centre(p)[1]);
    const near = [...NAMES].sort((a, b) => off(a) - off(b))[0];
    const on = off(near) < NEAR * this.layer.offsetWidth;
    if (on && this.norms.has(near)) return; // taken, or where it was
    this.#set(moved(this.norms, name, on ? near : undefined), on ? near : name);
  }
}

export const startBeads = (figure, engine) => new Beads(figure, engine);
