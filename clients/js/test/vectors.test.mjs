/** Every vector of the reference, replayed byte for byte; TACIT_VECTORS names a larger file. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { hex, hmac, spelt, utf8 } from "../dist/encoding.js";
import { Device, Episode, MemoryStore } from "../dist/index.js";
import { readPublication } from "../dist/policy.js";
import { answerOf, bodyOf } from "../dist/report.js";
import { periodAt } from "../dist/returns.js";
import { logAbove, odds, readRules } from "../dist/rules.js";
import { readTerms } from "../dist/terms.js";
import { FakeCollector, live, withTape } from "./collector.mjs";

const folder = new URL("../../../vectors/", import.meta.url);
const read = (name) => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
const more = process.env.TACIT_VECTORS;
const cases = more ? JSON.parse(readFileSync(more, "utf8")) : ["cells.json", "trajectories.json"].flatMap(read);

test("JSON is spelt as by the reference", () => {
  for (const { value, spelt: expected } of read("spelling.json")) {
    assert.equal(spelt(value), expected);
  }
  assert.throws(() => spelt("\ud800"), /surrogate/);
  assert.throws(() => spelt(NaN), /finite/);
});

for (const one of cases) {
  test(`${one.name}: ids and hashes`, async () => {
    const terms = await readTerms(one.task);
    assert.equal(terms.taskId, one.task_id);
    assert.equal(terms.rulesHash, one.rules_hash);
    const seat = await hmac(utf8("a token"), `tacit ids of ${one.task_id}`);
    for (const [k, id] of one["ids of 'a token'"].entries()) {
      assert.equal(hex((await hmac(seat, String(k))).subarray(0, 16)), id);
    }
    for (const { begun, period, id } of one["periods of 'a token'"] ?? []) {
      assert.equal(periodAt(terms.rule, begun), period);
      assert.equal(hex((await hmac(seat, String(period))).subarray(0, 16)), id);
    }
  });

  test(`${one.name}: the exact epsilon of the thresholds`, () => {
    const rules = readRules(one.task.rules);
    for (const [kind, { ratio, epsilon }] of Object.entries(one.epsilon ?? {})) {
      const [a, b] = odds(rules.cells[kind]);
      assert.equal(a * BigInt(ratio[1]), b * BigInt(ratio[0]));
      const found = logAbove([a, b]);
      assert.ok(Math.abs(found - epsilon) <= 1e-14 * epsilon, `${found} and ${epsilon}`);
    }
  });

  test(`${one.name}: ${one.reports.length} reports`, async () => {
    const terms = await readTerms(one.task);
    const publication = await readPublication(one.policy, terms);
    for (const { id, steps, tape, body } of one.reports) {
      const left = await withTape(Buffer.from(tape, "hex"), async () => {
        let lived;
        const keeper = { save: async () => {}, over: async () => false, finish: async (all) => (lived = all) };
        const episode = new Episode(terms, publication, [], keeper);
        await live({ begin: () => episode }, steps);
        assert.equal(bodyOf(terms, publication, id, await answerOf(terms, publication, id, lived)), body);
      });
      assert.equal(left, 0, "the tape must be used up");
    }
  });

  test(`${one.name}: reports of whole devices`, async () => {
    // ids are no term: a task that lets devices choose theirs takes them from the tape
    const collector = new FakeCollector({ ...one.task, ids: "chosen" }, one.policy);
    const api = collector.api();
    for (const { id, steps, tape, body } of one.reports.slice(0, 12)) {
      const options = { maxEpsilon: 100, maxDelta: 1, model: "joint" };
      const device = new Device(api, new MemoryStore(), options);
      const left = await withTape(Buffer.from(id + tape, "hex"), async () => {
        await live(device, steps);
        await device.send();
      });
      assert.equal(left, 0, "the tape must be used up");
      assert.equal(collector.bodies.pop(), body);
    }
  });
}
