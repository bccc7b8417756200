// SPDX-License-Identifier: MIT
// Starts the page: the engine out of its base64, the figures, the address.
import { load } from "../engine.mjs";
import { readHash, writeHash } from "./hash.mjs";
import { Figure } from "./figure.mjs";
import { startWords } from "./words.mjs";
import { startPredict } from "./predict.mjs";

const $ = (id) => document.getElementById(id);

async function engineBytes() {
  const packed = Uint8Array.from(atob($("engine").textContent),
    (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream()
    .pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// --- the address -------------------------------------------------------------

const page = { figures: new Map(), theme: "auto", at: "" };

function address() {
  const shots = {};
  for (const [name, figure] of page.figures) shots[name] = figure.settings;
  return "#" + writeHash({ at: page.at, theme: page.theme, shots });
}

// settled values make an entry of the history, a moving slider does not
function remember(settled) {
  const hash = address();
  if (hash === (location.hash || "#") && !settled) return;
  if (settled && hash !== page.entry) history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  if (settled) page.entry = hash;
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

export function readAddress() {
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
  const state = readHash(link.hash);
  for (const [name, settings] of Object.entries(state.shots))
    if (page.figures.has(name)) page.figures.get(name).settings = settings;
  page.at = state.at;
  remember(true);
  goTo(state.at);
}

export function goTo(id) {
  const place = $(id);
  if (!place) return;
  place.scrollIntoView();
  place.tabIndex = -1;
  place.focus({ preventScroll: true });
}

// --- start -------------------------------------------------------------------

function makeFigures() {
  const rows = JSON.parse($("rows").textContent);
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

async function start() {
  makeFigures();
  document.querySelectorAll("main section").forEach(startWords);
  document.querySelectorAll(".predict").forEach(startPredict);
  document.querySelector(".tools").hidden = false;
  $("theme").addEventListener("change", () => {
    setTheme($("theme").value);
    remember(true);
  });
  document.addEventListener("click", followLink);
  addEventListener("popstate", readAddress);
  readAddress();
  page.engine = await load(await engineBytes());
  page.figures.forEach((figure) => figure.wake(page.engine));
  $("ready").textContent = "the engine is ready";
  document.documentElement.dataset.ready = "1";
}

start().catch((error) => {
  $("ready").textContent = `the engine did not start: ${error.message}; ` +
    "the figures are those of the standard settings";
});
