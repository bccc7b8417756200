// SPDX-License-Identifier: MIT
// Guess first: the choice stays in this page, and opening the answer says
// whether it was right.

export function startPredict(box) {
  const answer = box.querySelector("details");
  const verdict = document.createElement("p");
  verdict.setAttribute("role", "status");
  answer.before(verdict);
  answer.addEventListener("toggle", () => {
    const chosen = box.querySelector("input:checked");
    if (!answer.open || !chosen) return;
    verdict.textContent = chosen.value === box.dataset.right
      ? "You guessed it." : "Not this time; see why:";
  });
}
