// SPDX-License-Identifier: MIT
// Starts the page: the engine out of its packing, the figures, the address.
import { load } from "../engine.mjs";
import { unpack } from "./unpack.mjs";
import { readHash, writeHash } from "./hash.mjs";
import { Figure } from "./figure.mjs";
import { startWords } from "./words.mjs";
import { startPredict } from "./predict.mjs";
import { startRetell } from "./retell.mjs";
import { startCards } from "./cards.mjs";
import { startChecklist } from "./check.mjs";
import { startMap } from "./map.mjs";
import { startBeads } from "./beads.mjs";
import { startWalk } from "./walk.mjs";
import { startWorkbench } from "./workbench.mjs";

const $ = (id) => document.getElementById(id);

function engineBytes() {
  const { textContent, dataset } = $("engine");
  return unpack(textContent, Number(dataset.size));
}

// --- the address -------------------------------------------------------------

const page = { figures: new Map(), theme: "auto", at: "" };

function address() {
  const shots = {};
  for (const [name, figure] of page.figures) shots[name] = figure.settings;
  return "#" + writeHash({ at: page.at, theme: page.theme, shots });
}

// a settled value is an entry of the history, a moving slider is not
function remember(settled) {
  const hash = address();
  if (!settled || hash === page.entry) return;
  history.pushState(null, "", hash);
  page.entry = hash;
}

function changed(figure) {
  return (settled) => {
    page.at = figure.root.closest("section").id;
    remember(settled);
  };
}

function setTheme(theme) {
  page.theme = ["light", "dark"].includes(theme) ? theme : "auto";
  $("theme").value = page.theme;
  if (page.theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = page.theme;
}

function readAddress() {
  const state = readHash(location.hash);
  setTheme(state.theme);
  page.at = state.at;
  page.entry = location.hash || "#";
  for (const [name, figure] of page.figures)
    figure.settings = state.shots[name];
  $(state.at)?.scrollIntoView();
}

// a link to a place of this page keeps the settings of all figures
function followLink(event) {
  const link = event.target.closest?.('a[href^="#"]');
  if (!link) return;
  event.preventDefault();
  const state = readHash(link.dataset.go ?? link.hash);
  for (const [name, settings] of Object.entries(state.shots))
    if (page.figures.has(name)) page.figures.get(name).settings = settings;
  page.at = state.at;
  remember(true);
  goTo(state.at);
}

function goTo(id) {
  const place = $(id);
  if (!place) return;
  place.scrollIntoView();
  place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

// --- start -------------------------------------------------------------------

function makeFigures(rows) {
  const seen = new IntersectionObserver((entries) => entries.forEach((e) =>
    page.figures.get(e.target.dataset.shot).show(e.isIntersecting)),
    { rootMargin: "200px" });
  for (const root of document.querySelectorAll("figure[data-shot]")) {
    const figure = new Figure(root, rows[root.dataset.shot],
      (settled) => changed(figure)(settled));
    page.figures.set(root.dataset.shot, figure);
    seen.observe(root);
  }
}

// a button that shows another placement in a figure's place, and back
function startMorph(button, rows) {
  const figure = page.figures.get(
    button.closest("section").querySelector("figure").dataset.shot);
  const other = rows[button.dataset.morph], words = button.textContent;
  if (!other) return;
  button.parentElement.hidden = false;
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    const on = figure.row !== other;
    figure.morph(on ? other : rows[figure.name]);
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? button.dataset.back : words;
  });
}

function startParts(rows) {
  document.querySelectorAll(".predict").forEach(startPredict);
  document.querySelectorAll(".retell").forEach(startRetell);
  document.querySelectorAll("[data-morph]").forEach((b) =>
    startMorph(b, rows));
  startCards($("RECALL"));
  startChecklist($("CHECK"), page.engine);
  startMap(page.figures.get("F-MAP"),
    [1, 2, 3, 4, 5, 6].map((n) => $(`F${n}`)));
  startBeads(page.figures.get("F6"), page.engine);
  startWalk($("F3").querySelector("[data-walk]"), page.figures.get("F3"));
  startWorkbench($("workbench"), page.figures.get("workbench"), page.engine);
}

// paper has no way to open what is closed; tables stay away
function openForPrint() {
  const closed = document.querySelectorAll("details:not([open], .tables)");
  closed.forEach((d) => { d.open = true; });
  addEventListener("afterprint", () => closed.forEach((d) => {
    d.open = false;
  }), { once: true });
}

async function start() {
  const rows = JSON.parse($("rows").textContent);
  makeFigures(rows);
  // one line per figure is read aloud, not each number
  document.querySelectorAll("output").forEach((q) => { q.ariaLive = "off"; });
  document.querySelectorAll("main section").forEach(startWords);
  document.querySelector(".tools").hidden = false;
  $("theme").addEventListener("change", () => {
    setTheme($("theme").value);
    remember(true);
  });
  document.addEventListener("click", followLink);
  addEventListener("popstate", readAddress);
  addEventListener("beforeprint", openForPrint);
  addEventListener("resize", () => page.figures.forEach((f) => f.draw()));
  readAddress();
  page.engine = await load(engineBytes());
  startParts(rows);
  page.figures.forEach((figure) => figure.wake(page.engine));
  $("ready").textContent = "the engine is ready";
  document.documentElement.dataset.ready = "1";
}

start().catch((error) => {
  $("ready").textContent = `the engine did not start: ${error.message}; ` +
    "the figures are those of the standard settings";
});
