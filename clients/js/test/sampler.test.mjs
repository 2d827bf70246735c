/** The sampler: properties of every report, and frequencies against the exact chances. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import fc from "fast-check";

import { answer, randomize } from "../dist/cells.js";
import { fromBase64, spelt } from "../dist/encoding.js";
import { below, bits, system } from "../dist/entropy.js";
import { KINDS, readRules } from "../dist/rules.js";

const cases = JSON.parse(readFileSync(new URL("../../../vectors/cells.json", import.meta.url), "utf8"));
const SCALE = 2 ** 64;

function cells(message) {
  const found = [];
  fromBase64(message).forEach((byte, i) => {
    for (let bit = 0; bit < 8; bit++) if (byte & (1 << bit)) found.push(8 * i + bit);
  });
  return found;
}

/** So many of n at chance p happen by luck once in 10^9: Chernoff's bound, which is exact. */
function plausible(count, n, p) {
  const f = count / n;
  const part = (x, y) => (x === 0 ? 0 : x * Math.log(x / y));
  return n * (part(f, p) + part(1 - f, 1 - p)) <= Math.log(2e9);
}

test("a report has the form that the rules say, whatever was lived through", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...cases),
      fc.nat(),
      fc.array(fc.integer(), { minLength: 10, maxLength: 10 }),
      fc.double(),
      ({ task }, at, states, reward) => {
        const rules = readRules(task.rules);
        const kind = KINDS.filter((name) => rules.cells[name])[at % Object.keys(rules.cells).length];
        const given = answer(rules, [0, kind], { states, actions: [], rewards: [reward] });
        const how = rules.cells[kind];
        const found = cells(randomize(rules, given, system));
        assert.ok(found.every((cell) => cell < how.domain));
        if (how.randomizer === "subset") assert.equal(found.length, how.size);
      },
    ),
  );
});

test("JSON that is spelt is the same JSON, in one spelling", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = spelt(value);
      assert.equal(spelt(JSON.parse(text)), text);
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("draws are uniform", () => {
  for (const n of [1, 2, 3, 7, 64, 100]) {
    const counts = Array(n).fill(0);
    for (let i = 0; i < 20_000; i++) counts[below(system, n)]++;
    counts.forEach((count) => assert.ok(plausible(count, 20_000, 1 / n)));
  }
  const ones = Array(13).fill(0);
  for (let i = 0; i < 20_000; i++) {
    const drawn = Number(bits(system, 13));
    ones.forEach((_, bit) => (ones[bit] += (drawn >> bit) & 1));
  }
  ones.forEach((count) => assert.ok(plausible(count, 20_000, 0.5)));
});

for (const { name, task } of cases) {
  const rules = readRules(task.rules);
  for (const [kind, how] of Object.entries(rules.cells)) {
    test(`${name}: frequencies of ${kind}`, () => {
      const n = 4_000;
      const state = rules.live - 1;
      const given = { step: 0, kind, state, next: 0, reward: kind === "move" ? 0 : 2 ** 24 };
      const own = { step: (2 * state + 1) * rules.met, move: state * rules.met, reward: 2 * state + 1 };
      const counts = Array(how.domain).fill(0);
      for (let i = 0; i < n; i++) for (const cell of cells(randomize(rules, given, system))) counts[cell]++;
      const p = Number(how.randomizer === "subset" ? how.own : how.keep) / SCALE;
      const q =
        how.randomizer === "subset" ? (how.size - p) / (how.domain - 1) : Number(how.flip) / SCALE;
      counts.forEach((count, cell) => {
        assert.ok(plausible(count, n, cell === own[kind] ? p : q), `cell ${cell}: ${count} of ${n}`);
      });
    });
  }
}

test("the check of frequencies notices another chance", () => {
  assert.ok(!plausible(2_240, 4_000, 0.5) && plausible(2_050, 4_000, 0.5));
});
