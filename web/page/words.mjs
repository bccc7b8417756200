// SPDX-License-Identifier: MIT
// Coloured words and the things they name: pointing at one, or coming to it by
// keyboard, lights the other. <b class="hw" data-light="skip"> names the
// elements of its section's figure whose data-role is "skip".

function light(section, role, on) {
  for (const svg of section.querySelectorAll("svg.tb-figure")) {
    const parts = svg.querySelectorAll(
      role.split(" ").map((r) => `[data-role~="${r}"]`).join());
    svg.classList.toggle("seek", on && parts.length > 0);
    parts.forEach((e) => e.classList.toggle("lit", on));
  }
}

function wordsFor(section, role) {
  return [...section.querySelectorAll("[data-light]")].filter((w) =>
    w.dataset.light.split(" ").includes(role));
}

function lightWords(section, target, on) {
  const role = target.closest?.("[data-role]")?.dataset.role;
  if (role) for (const word of wordsFor(section, role))
    word.classList.toggle("lit", on);
}

export function startWords(section) {
  for (const word of section.querySelectorAll("[data-light]")) {
    const on = () => light(section, word.dataset.light, true);
    const off = () => light(section, word.dataset.light, false);
    word.tabIndex = 0;
    word.setAttribute("role", "button");
    word.addEventListener("pointerenter", on);
    word.addEventListener("pointerleave", off);
    word.addEventListener("focus", on);
    word.addEventListener("blur", off);
  }
  const canvas = section.querySelector(".canvas");
  canvas?.addEventListener("pointerover", (e) =>
    lightWords(section, e.target, true));
  canvas?.addEventListener("pointerout", (e) =>
    lightWords(section, e.target, false));
}
