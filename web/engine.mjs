// SPDX-License-Identifier: MIT
// The engine for a page: loads tollbooth.wasm and calls its exports.
//   const engine = await load(bytes);
//   const { status, text } = engine.explain("pre-ln", { depth: 12 });
// status is the exit status of the command line (0: done); text is the JSON or
// SVG it prints with --exact, or the lines of the error.

const utf8 = new TextEncoder();
const FORMATS = ["text", "latex", "mathml", "svg"];
const COTANGENTS = ["loss", "random", "coherent"];
const SHOT_FACES = ["json", "svg", "tables", "text", "stack"];
const GIVEN = { set: 0, grad: 1, tangent: 2 };

// dimensions and numbers of nested lists: [[1,2],[3,4]] -> [2,2], [1,2,3,4]
function flatten(value) {
  const dims = [];
  for (let v = value; Array.isArray(v); v = v[0]) dims.push(v.length);
  return { dims, numbers: Float64Array.from([value].flat(Infinity)) };
}

class Engine {
  constructor(exports) {
    this.exports = exports;
  }

  // runs fn(address, length, address, length, ...) on copies of byte arrays
  #lend(arrays, fn) {
    const at = arrays.map((a) => this.exports.tb_web_alloc(a.length || 1));
    if (at.includes(0)) {
      at.filter((p) => p).forEach((p) => this.exports.tb_web_free(p));
      return { status: 5, text: "out of memory" };
    }
    arrays.forEach((a, i) =>
      new Uint8Array(this.exports.memory.buffer, at[i], a.length).set(a));
    const status = fn(...arrays.flatMap((a, i) => [at[i], a.length]));
    at.forEach((p) => this.exports.tb_web_free(p));
    return { status, text: this.#text() };
  }

  #text() {
    const { memory, tb_web_text, tb_web_text_len } = this.exports;
    return new TextDecoder().decode(
      new Uint8Array(memory.buffer, tb_web_text(), tb_web_text_len()));
  }

  #sizes({ depth = 0, width = 0, heads = 0, tokens = 0, vocab = 0 }) {
    this.exports.tb_web_settings(depth, width, heads, tokens, vocab);
  }

  explain(block, sizes = {}) {
    this.#sizes(sizes);
    return this.#lend([utf8.encode(block)], this.exports.tb_web_explain);
  }

  // format: text, latex, mathml or svg
  print(block, format, sizes = {}) {
    this.#sizes(sizes);
    return this.#lend([utf8.encode(block)], (at, n) =>
      this.exports.tb_web_print(at, n, FORMATS.indexOf(format)));
  }

  flow(block, { seed = 1, dtype = "f32", cotangent = "loss", spectrum = false,
    ...sizes } = {}) {
    this.#sizes(sizes);
    return this.#lend([utf8.encode(block)], (at, n) =>
      this.exports.tb_web_flow(at, n, seed, dtype === "f64" ? 1 : 0,
        COTANGENTS.indexOf(cotangent), spectrum ? 1 : 0));
  }

  // a shot with settings as `picture --set` takes them; face: json, svg (for
  // a page), stack (for a phone), tables (HTML) or text
  shot(name, settings, face) {
    return this.#lend([utf8.encode(name), utf8.encode(settings)],
      (at, n, set_at, set_n) => this.exports.tb_web_picture(at, n, set_at,
        set_n, SHOT_FACES.indexOf(face)));
  }

  #give(kind, name, value) {
    const { dims, numbers } = flatten(value);
    const [d0 = 1, d1 = 1, d2 = 1] = dims;
    return this.#lend(
      [utf8.encode(name), new Uint8Array(numbers.buffer)],
      (name_at, n, at) => this.exports.tb_web_give(GIVEN[kind], name_at, n,
        dims.length, d0, d1, d2, at));
  }

  // set and tangent: { name: lists }, grad: lists of the shape of the value
  eval(expr, { set = {}, tangent = {}, grad, jacobian = "", heads = 0,
    eps = -1 } = {}) {
    const gifts = [
      ...Object.entries(set).map((e) => ["set", ...e]),
      ...Object.entries(tangent).map((e) => ["tangent", ...e]),
      ...(grad === undefined ? [] : [["grad", "y", grad]])];
    const bad = gifts.map((g) => this.#give(...g)).find((r) => r.status !== 0);
    const result = this.#lend([utf8.encode(expr), utf8.encode(jacobian)],
      (at, n, of_at, of_n) =>
        this.exports.tb_web_eval(at, n, of_at, of_n, heads, eps));
    return bad ?? result;
  }
}

export async function load(bytes) {
  const { instance } = await WebAssembly.instantiate(bytes, {});
  return new Engine(instance.exports);
}
