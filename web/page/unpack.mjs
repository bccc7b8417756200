// SPDX-License-Identifier: MIT
// The engine as the builder packed it: LZMA (lc 3, lp 0, pb 0, no header), a
// sixth less than the gzip that browsers know. Names as in Igor Pavlov's LZMA
// specification.

const START = 1024;     // a probability of one half, of 2048
const TOP = 2 ** 24;

const probabilities = (n) => new Uint16Array(n).fill(START);

class RangeDecoder {
  constructor(bytes) {
    this.bytes = bytes;
    this.range = 0xffffffff;
    this.code = 0;
    this.at = 1; // the first byte is 0
    for (let i = 0; i < 4; i++) this.code = (this.code << 8 | this.next()) >>> 0;
  }

  next() { return this.bytes[this.at++]; }

  normalize() {
    if (this.range >= TOP) return;
    this.range = this.range << 8 >>> 0;
    this.code = (this.code << 8 | this.next()) >>> 0;
  }

  bit(probs, i) {
    const bound = (this.range >>> 11) * probs[i];
    const one = this.code >= bound;
    if (one) {
      this.range -= bound;
      this.code -= bound;
      probs[i] -= probs[i] >>> 5;
    } else {
      this.range = bound;
      probs[i] += 2048 - probs[i] >>> 5;
    }
    this.normalize();
    return Number(one);
  }

  direct(count) {
    let value = 0;
    for (let i = 0; i < count; i++) {
      this.range >>>= 1;
      const one = this.code >= this.range;
      if (one) this.code -= this.range;
      this.normalize();
      value = value * 2 + Number(one);
    }
    return value;
  }

  tree(probs, bits) {
    let m = 1;
    for (let i = 0; i < bits; i++) m = m << 1 | this.bit(probs, m);
    return m - (1 << bits);
  }

  // lowest bit first; probs[base + 1] is the root
  reverse(probs, base, bits) {
    let m = 1, value = 0;
    for (let i = 0; i < bits; i++) {
      const bit = this.bit(probs, base + m);
      m = m << 1 | bit;
      value |= bit << i;
    }
    return value;
  }
}

class LengthDecoder {
  constructor() {
    this.choice = probabilities(2);
    this.low = probabilities(8);
    this.mid = probabilities(8);
    this.high = probabilities(256);
  }

  read(rc) {
    if (!rc.bit(this.choice, 0)) return 2 + rc.tree(this.low, 3);
    if (!rc.bit(this.choice, 1)) return 10 + rc.tree(this.mid, 3);
    return 18 + rc.tree(this.high, 8);
  }
}

class Lzma {
  constructor(bytes, size) {
    this.rc = new RangeDecoder(bytes);
    this.out = new Uint8Array(size);
    this.at = 0;
    this.state = 0;
    this.rep = [0, 0, 0, 0];
    this.literals = probabilities(0x300 << 3);
    for (const name of ["isMatch", "isRep", "isRepG0", "isRepG1", "isRepG2",
      "isRep0Long"]) this[name] = probabilities(12);
    this.slots = [0, 1, 2, 3].map(() => probabilities(64));
    this.special = probabilities(128);
    this.align = probabilities(16);
    this.length = new LengthDecoder();
    this.repLength = new LengthDecoder();
  }

  #literal() {
    const { rc, out, at } = this;
    const base = 0x300 * (at ? out[at - 1] >>> 5 : 0);
    let symbol = 1, match = this.state >= 7 ? out[at - this.rep[0] - 1] : -1;
    while (symbol < 0x100 && match >= 0) {
      const bit = match >>> 7;
      const got = rc.bit(this.literals, base + (1 + bit << 8) + symbol);
      symbol = symbol << 1 | got;
      match = got === bit ? match << 1 & 0xff : -1;
    }
    while (symbol < 0x100)
      symbol = symbol << 1 | rc.bit(this.literals, base + symbol);
    out[this.at++] = symbol;
    this.state -= this.state < 4 ? this.state : this.state < 10 ? 3 : 6;
  }

  #distance(length) {
    const slot = this.rc.tree(this.slots[Math.min(length - 2, 3)], 6);
    if (slot < 4) return slot;
    const bits = (slot >>> 1) - 1, base = (2 | slot & 1) << bits;
    if (slot < 14)
      return base + this.rc.reverse(this.special, base - slot, bits);
    return base + this.rc.direct(bits - 4) * 16 +
      this.rc.reverse(this.align, 0, 4);
  }

  #match() {
    this.rep.pop();
    const length = this.length.read(this.rc);
    this.rep.unshift(this.#distance(length));
    this.state = this.state < 7 ? 7 : 10;
    return length;
  }

  // an older distance again; 1 byte where it is the last one, and short
  #repeat() {
    const { rc, state, rep } = this;
    if (!rc.bit(this.isRepG0, state)) {
      if (!rc.bit(this.isRep0Long, state)) {
        this.state = state < 7 ? 9 : 11;
        return 1;
      }
    } else {
      const which = !rc.bit(this.isRepG1, state) ? 1
        : !rc.bit(this.isRepG2, state) ? 2 : 3;
      rep.unshift(...rep.splice(which, 1));
    }
    this.state = state < 7 ? 8 : 11;
    return this.repLength.read(rc);
  }

  run() {
    while (this.at < this.out.length) {
      if (!this.rc.bit(this.isMatch, this.state)) {
        this.#literal();
        continue;
      }
      let n = this.rc.bit(this.isRep, this.state) ? this.#repeat()
        : this.#match();
      const from = this.rep[0] + 1;
      for (; n > 0 && this.at < this.out.length; n--, this.at++)
        this.out[this.at] = this.out[this.at - from];
    }
    return this.out;
  }
}

// seven bits a character, of which those that HTML reads stand 128 higher
function bytesOf(text) {
  const out = new Uint8Array(text.length * 7 >>> 3);
  for (let i = 0, at = 0, bits = 0, count = 0; at < out.length; i++) {
    bits = bits << 7 & 0x7fff | text.charCodeAt(i) & 127;
    count += 7;
    if (count < 8) continue;
    count -= 8;
    out[at++] = bits >>> count;
  }
  return out;
}

export function unpack(text, size) {
  return new Lzma(bytesOf(text), size).run();
}
