// SPDX-License-Identifier: MIT
// A figure's tables: a press on a head sorts by it, the next one turns the
// order round; what is no number goes last. Each can be copied as TSV.

const cellsOf = (row) => [...row.cells].map((c) => c.textContent.trim());

function order(column, down) {
  return (a, b) => {
    const [s, t] = [a, b].map((row) => cellsOf(row)[column] ?? "");
    const [x, y] = [s, t].map(parseFloat);
    if (Number.isNaN(x) && Number.isNaN(y))
      return (down ? -1 : 1) * s.localeCompare(t);
    return Number.isNaN(x) ? 1 : Number.isNaN(y) ? -1 : down ? y - x : x - y;
  };
}

function sort(th) {
  const down = th.ariaSort === "ascending";
  const body = th.closest("table").tBodies[0];
  body.append(...[...body.rows].sort(order(th.cellIndex, down)));
  for (const other of th.parentElement.cells) other.ariaSort = null;
  th.ariaSort = down ? "descending" : "ascending";
}

async function copy(table, button) {
  const text = [...table.rows].map((row) => cellsOf(row).join("\t")).join("\n");
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    button.textContent = "cannot copy here";
  }
}

function button(words, press) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = words;
  b.onclick = () => press(b);
  return b;
}

export function startTables(box) {
  for (const table of box.querySelectorAll("table")) {
    for (const th of table.tHead?.rows[0]?.cells ?? []) {
      const words = th.textContent;
      th.replaceChildren(button(words, () => sort(th)));
    }
    table.before(button("Copy as TSV", (b) => copy(table, b)));
  }
}
