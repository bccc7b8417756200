// SPDX-License-Identifier: MIT
// Makes one drawing out of another without throwing its elements away: the same
// id is the same thing, so that it can move, keep the focus and be followed.

function attributes(old, fresh) {
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.attributes.length === fresh.attributes.length) return;
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name)) old.removeAttribute(name);
}

// the old child that becomes `fresh`: the one of its id, else the next alike
function partner(fresh, named, unnamed) {
  if (fresh.id) return named.get(fresh.id);
  const i = unnamed.findIndex((n) => n.nodeName === fresh.nodeName);
  return i < 0 ? undefined : unnamed.splice(i, 1)[0];
}

const alike = (a, b) => a.nodeName === b.nodeName && a.id === b.id;

function children(old, fresh) {
  const before = [...old.childNodes], after = [...fresh.childNodes];
  if (before.length === after.length &&
    before.every((node, i) => alike(node, after[i])))
    return before.forEach((node, i) => patch(node, after[i]));
  const named = new Map(before.filter((n) => n.id).map((n) => [n.id, n]));
  const unnamed = before.filter((n) => !n.id);
  let at = old.firstChild;
  for (const node of after) {
    const match = partner(node, named, unnamed);
    if (match && match.nodeName === node.nodeName) patch(match, node);
    const here = match && match.nodeName === node.nodeName ? match : node;
    if (here === at) at = at.nextSibling;
    else old.insertBefore(here, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

export function patch(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  attributes(old, fresh);
  children(old, fresh);
}
