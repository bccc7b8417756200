// SPDX-License-Identifier: MIT
// The recall cards one at a time: Space or Enter shows the answer, 1 to 4 grade
// it, and the grade says when the card comes back.
import { keep, recallOf } from "./store.mjs";

const GRADES = ["Again", "Hard", "Good", "Easy"];
const FIRST = [0, 1, 3, 7];           // days after a first grade
const GROWTH = [0, 1.2, 2.5, 3.5];    // times the last interval
const DAY = 24 * 3600 * 1000;

export function nextInterval(last, grade) {
  return Math.max(FIRST[grade], Math.round(last * GROWTH[grade]));
}

// the bytes of `tollbooth recall --export`, which the builder left in the page
const FILES = { anki: "tollbooth.tsv", obsidian: "tollbooth.md" };

function saveAs(name, id) {
  const text = document.getElementById(id).textContent;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const day = (time) => new Date(time).toISOString().slice(0, 10);

class Deck {
  constructor(box, cards) {
    this.box = box;
    this.cards = cards;
    this.progress = recallOf("cards");
    this.#layout();
    this.#round("recall", (c) => this.#due(c));
  }

  // the cards of one deck, or all
  #round(deck, wanted = () => true) {
    this.round = this.cards.filter((c) => !deck || c.deck === deck);
    this.queue = this.round.filter(wanted);
    this.#ask();
  }

  #due(card) {
    return (this.progress[card.id]?.due ?? 0) <= Date.now();
  }

  #layout() {
    const grades = GRADES.map((g, i) =>
      `<button type="button" data-grade="${i}">${i + 1} ${g}</button>`);
    this.box.innerHTML = `<div class="ask" tabindex="0" role="group"
      aria-label="Recall card; Space shows the answer, 1 to 4 grade it">
      <p class="left"></p><div class="question"></div>
      <div class="answer" aria-live="polite"></div>
      <p class="buttons"><button type="button" data-do="answer">Show the
      answer</button>${grades.join("")}</p></div>
      <p class="buttons"><button type="button" data-do="six">The ${
      this.cards.filter((c) => c.deck === "recall").length} of the steps
      </button><button type="button" data-do="all">All ${this.cards.length}
      </button><button type="button" data-do="anki">Save as TSV (Anki)
      </button><button type="button" data-do="obsidian">Save as Markdown (Obsidian)
      </button></p>`;
    this.box.addEventListener("click", (e) => this.#press(e.target));
    this.box.firstElementChild.addEventListener("keydown", (e) =>
      this.#key(e));
  }

  #part(name) { return this.box.querySelector(name); }

  #ask() {
    const card = this.queue[0];
    this.open = false;
    this.#part(".left").textContent = card
      ? `${this.queue.length} of ${this.round.length} cards left`
      : `Done. No card of this round is due before ${this.#nextDay()}.`;
    this.#part(".question").innerHTML = card?.question ?? "";
    this.#part(".answer").innerHTML = "";
    this.#buttons();
  }

  #buttons() {
    const card = this.queue.length > 0;
    this.#part("[data-do=answer]").hidden = !card || this.open;
    for (const b of this.box.querySelectorAll("[data-grade]"))
      b.hidden = !card || !this.open;
  }

  #nextDay() {
    return day(Math.min(...this.round.map((c) => this.progress[c.id].due)));
  }

  #show() {
    if (!this.queue.length || this.open) return;
    this.open = true;
    this.#part(".answer").innerHTML = this.queue[0].answer;
    this.#buttons();
  }

  #grade(grade) {
    if (!this.open) return;
    const card = this.queue.shift();
    const last = this.progress[card.id]?.days ?? 0;
    const days = nextInterval(last, grade);
    this.progress[card.id] = { days, due: Date.now() + days * DAY };
    if (grade === 0) this.queue.push(card);
    keep();
    this.#ask();
  }

  #press(target) {
    const { do: what, grade } = target.dataset;
    if (grade !== undefined) this.#grade(Number(grade));
    else if (what === "answer") this.#show();
    else if (what === "six") this.#round("recall");
    else if (what === "all") this.#round();
    else if (FILES[what]) return saveAs(FILES[what], what);
    else return;
    this.box.firstElementChild.focus();
  }

  #key(event) {
    if (event.target !== event.currentTarget && event.key.length > 1) return;
    if (event.key === " " || event.key === "Enter") this.#show();
    else if (/^[1-4]$/.test(event.key)) this.#grade(Number(event.key) - 1);
    else return;
    event.preventDefault();
  }
}

export function startCards(section) {
  const box = section.querySelector(".deck");
  const cards = [...section.querySelectorAll(".card")].map((li) => ({
    id: li.dataset.card,
    deck: li.dataset.deck,
    question: li.querySelector("summary").innerHTML,
    answer: li.querySelector(".back").outerHTML +
      li.querySelector(".proof").outerHTML,
  }));
  box.hidden = false;
  return new Deck(box, cards);
}
