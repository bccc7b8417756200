// SPDX-License-Identifier: MIT
// What the page remembers of its reader, where the browser lets it: a file
// opened from disk may have no storage at all.

const KEY = "tollbooth";
let kept = {};
try {
  kept = JSON.parse(localStorage.getItem(KEY)) ?? {};
} catch { /* none, or not ours */ }

export function recallOf(what) {
  return kept[what] ??= {};
}

export function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch { /* it lasts as long as the page is open */ }
}
