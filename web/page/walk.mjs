// SPDX-License-Identifier: MIT
// §3's learning arrow walks down the tower, on both roads of a floor at once.
// Where motion is not wanted each press shows the next place as a still.

const LEG = 800;  // ms for one floor, or from floor to floor
const FLOORS = [2, 1];
const NS = "http://www.w3.org/2000/svg";

// the way home, top first: what is walked together; a broken road is not there
function legs(root) {
  const road = (...names) => names.map((n) =>
    root.querySelector(`[id="F3-p0-${n}"]`)).filter(Boolean);
  const floor = (n) => [road(`grad-hw-${n}`),
    road(`grad-br-${n}`, `grad-br-on-${n}`)].filter((r) => r.length);
  return [...FLOORS.flatMap((n) => [[road(`grad-total-${n}`)], floor(n)]),
    [road("grad-total-0")]];
}

// the point, and the direction there, at a share of the way along the paths
function along(paths, share) {
  const lengths = paths.map((p) => p.getTotalLength());
  let left = share * lengths.reduce((a, b) => a + b, 0), i = 0;
  while (i < paths.length - 1 && left > lengths[i]) left -= lengths[i++];
  const at = paths[i].getPointAtLength(left);
  const from = paths[i].getPointAtLength(Math.max(0, left - 1));
  const to = paths[i].getPointAtLength(left + 1);
  return { x: at.x, y: at.y,
    turn: Math.atan2(to.y - from.y, to.x - from.x) * 180 / Math.PI };
}

class Walk {
  constructor(button, figure) {
    this.button = button;
    this.words = button.textContent;
    this.svg = figure.root.querySelector("svg.tb-figure");
    this.still = -1;
    button.addEventListener("click", () => this.#press());
    figure.root.addEventListener("drawn", () => this.#stop());
  }

  #press() {
    if (!legs(this.svg)[0][0].length) return; // the engine has yet to draw it
    if (matchMedia("(prefers-reduced-motion: reduce)").matches)
      return this.#next();
    if (this.frame) return this.#stop();
    this.button.textContent = "Stop";
    const way = legs(this.svg), began = performance.now();
    const step = (now) => {
      const done = Math.max(0, now - began) / LEG;
      if (done >= way.length) return this.#stop();
      this.#show(way[Math.floor(done)], done % 1);
      this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  #next() {
    const way = legs(this.svg);
    this.still++;
    if (this.still >= way.length) return this.#stop();
    this.#show(way[this.still], 0.5);
    this.button.textContent = this.still + 1 < way.length
      ? `Next place (this is ${this.still + 1} of ${way.length})` : "Home";
  }

  #stop() {
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.still = -1;
    this.svg.querySelectorAll(".walker").forEach((w) => w.remove());
    this.button.textContent = this.words;
  }

  // an arrow on each road of the leg
  #show(roads, share) {
    const walkers = [...this.svg.querySelectorAll(".walker")];
    roads.forEach((paths, i) => {
      const walker = walkers[i] ?? this.#walker();
      const { x, y, turn } = along(paths, share);
      walker.setAttribute("transform", `translate(${x} ${y}) rotate(${turn})`);
    });
    walkers.slice(roads.length).forEach((w) => w.remove());
  }

  #walker() {
    const path = document.createElementNS(NS, "path");
    path.setAttribute("class", "walker");
    path.setAttribute("d", "M13 0L-9 11L-4 0L-9 -11Z");
    return this.svg.appendChild(path);
  }
}

export const startWalk = (button, figure) => new Walk(button, figure);
