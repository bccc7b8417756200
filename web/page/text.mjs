// SPDX-License-Identifier: MIT

export const escaped = (text) => text.replace(/[&<>"]/g,
  (c) => `&#${c.charCodeAt(0)};`);
