// SPDX-License-Identifier: MIT
// The page's address: where the reader stands, what differs from the figures'
// own settings, and the theme: #S5~S5:N=48,seed=2~theme:dark
// Settings are written as `tollbooth picture --set` takes them.

const AT_END = { text: 1 }; // an equation reaches to the next "&"

// {N: "48", seed: "2"} of a shot's inputs -> "N=48,seed=2"
export function settingsText(inputs, values) {
  const named = inputs.filter((row) => values[row.name] !== undefined);
  named.sort((a, b) => (AT_END[a.kind] ?? 0) - (AT_END[b.kind] ?? 0));
  return named.map((row, i) => (i === 0 ? "" : AT_END[row.kind] ? "&" : ",") +
    `${row.name}=${values[row.name]}`).join("");
}

// where the value at `from` ends: lists hold commas in brackets
function valueEnd(text, from, kind) {
  if (kind === "text") return (text + "&").indexOf("&", from);
  let depth = 0, i = from;
  for (; i < text.length && !";&".includes(text[i]); i++) {
    depth += (text[i] === "[") - (text[i] === "]");
    if (text[i] === "," && depth <= 0) break;
  }
  return i;
}

// the other way round; names that the shot does not have are dropped
export function settingsValues(inputs, text) {
  const values = {};
  for (let at = 0; at < text.length;) {
    const eq = text.indexOf("=", at);
    if (eq < 0) break;
    const name = text.slice(at, eq).replace(/^[\s,;&]+|\s+$/g, "");
    const row = inputs.find((r) => r.name === name);
    const end = valueEnd(text, eq + 1, row?.kind);
    if (row) values[name] = text.slice(eq + 1, end).trim();
    at = end + 1;
  }
  return values;
}

const code = (text) => encodeURI(text).replace(/[~#'()&]/g,
  (c) => "%" + c.charCodeAt(0).toString(16));

// {at, theme, shots: {name: text}} <-> what follows the # of the address
export function writeHash({ at = "", theme = "auto", shots = {} }) {
  const parts = Object.entries(shots).filter(([, text]) => text)
    .map(([name, text]) => `~${name}:${code(text)}`);
  return at + parts.join("") + (theme === "auto" ? "" : `~theme:${theme}`);
}

export function readHash(hash) {
  const [at, ...parts] = hash.replace(/^#/, "").split("~");
  const state = { at, theme: "auto", shots: {} };
  for (const part of parts) {
    const [, name, text] = /^([^:]*):(.*)$/s.exec(part) ?? [];
    if (name === "theme") state.theme = text;
    else if (name) state.shots[name] = decode(text);
  }
  return state;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // a half-copied address
  }
}
