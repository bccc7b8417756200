// SPDX-License-Identifier: MIT
// The retelling: blanks to fill, then the reader marks what was right.

export function startRetell(box) {
  const blanks = [...box.querySelectorAll(".blank")].map((span, i) => {
    const input = document.createElement("input");
    input.type = "text";
    input.setAttribute("aria-label", `missing word ${i + 1}`);
    input.autocomplete = "off";
    input.dataset.word = span.dataset.word;
    input.dataset.shown = span.textContent;
    span.replaceWith(input);
    return input;
  });
  box.querySelector(".buttons").hidden = false;
  box.querySelector("[data-do=uncover]").onclick = () => uncover(box, blanks);
}

function uncover(box, blanks) {
  let right = 0;
  for (const input of blanks) {
    const words = input.dataset.word.split("|");
    const ok = words.includes(input.value.trim().toLowerCase());
    const after = document.createElement("b");
    after.className = ok ? "hw" : "bad";
    after.textContent = ok ? `${input.value.trim()} ✓`
      : `${input.dataset.shown} (you wrote: ${input.value.trim() || "nothing"})`;
    right += ok;
    input.replaceWith(after);
  }
  box.querySelector(".buttons").hidden = true;
  box.querySelector(".mark").textContent =
    `${right} of ${blanks.length} as they stand here; another word may do.`;
}
