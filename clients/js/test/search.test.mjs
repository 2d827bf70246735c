/** Policy searches: every vector of the reference, and what a device promises its user. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import fc from "fast-check";

import { fromBase64, hashOf, hex, hmac, utf8 } from "../dist/encoding.js";
import { system } from "../dist/entropy.js";
import { Declined, Device, FileStore, InvalidInput, MemoryStore, NotTaken, TookPart } from "../dist/node.js";
import { answerOfSearch, bodyOf } from "../dist/report.js";
import { epsilonOf, readRules } from "../dist/rules.js";
import { actionOf } from "../dist/scores.js";
import { coinOf, directionOf, placeOf, played, randomizePlace, readSearch, wordAt } from "../dist/search.js";
import { readTerms } from "../dist/terms.js";
import { FakeCollector, withTape } from "./collector.mjs";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../vectors/${name}`, import.meta.url), "utf8"));
const more = process.env.TACIT_SEARCH_VECTORS;
const cases = more ? JSON.parse(readFileSync(more, "utf8")) : read("search.json");
const [bit] = cases;
const BEGUN = 1.8e9;
const DUE = BEGUN + 3600 + 300;

class Searched extends FakeCollector {
  number = 0;
  tickets = [];
  refusal = null;

  constructor({ task, policy }) {
    super({ ...task, ids: "chosen" }, policy);
  }

  answer(path, init) {
    const { version, task_id } = JSON.parse(this.policy);
    if (path === `/v1/policy/${version}`) {
      this.asked.push(path);
      return new Response(this.policy);
    }
    if (path !== "/v1/tickets") return super.answer(path, init);
    this.tickets.push(init.body);
    const { id } = JSON.parse(init.body);
    const [reason, message] = this.refusal ?? [null, null];
    return Response.json({ task_id, id, number: reason ? null : this.number, version, reason, message });
  }
}

function device(collector, store = new MemoryStore(), options = {}) {
  return new Device(collector.api(), store, { maxEpsilon: 100, maxDelta: 1, model: "joint", ...options });
}

/** The same action: floating point is rounded by everybody in their own way. */
function near(found, expected) {
  const [a, b] = [found, expected].map((one) => [one].flat());
  assert.equal(a.length, b.length);
  a.forEach((one, i) => assert.ok(Math.abs(one - b[i]) <= 1e-9 * Math.max(1, Math.abs(b[i])), `${a} and ${b}`));
}

async function live(mine, { steps, ended }) {
  const episode = await mine.search();
  for (const [h, [seen, action, reward]] of steps.entries()) {
    near(await episode.act(seen), action);
    await episode.observe(reward, ended && h === steps.length - 1);
  }
  if (!episode.done) await episode.leave();
}

test("directions are the reference's but for one step of the grid; words and coins are equal", () => {
  for (const { key, number, d, direction, coin, "first word": first } of read("directions.json")) {
    assert.equal(wordAt(BigInt(key), Math.floor(Math.floor(number / 2) / d), 0), first);
    assert.equal(coinOf(BigInt(key), number), coin);
    const found = directionOf(BigInt(key), number, d);
    assert.equal(found.length, d);
    found.forEach((one, j) => assert.ok(Math.abs(one - direction[j]) <= 1, `${found} and ${direction}`));
  }
});

test("people of a pair go in opposite directions, pairs of a block in orthogonal ones", () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 2n ** 62n - 1n), fc.nat(10 ** 9), fc.integer({ min: 1, max: 12 }), (key, block, d) => {
      const first = 2 * d * block;
      const all = Array.from({ length: 2 * d }, (_, i) => directionOf(key, first + i, d));
      const along = (a, b) => a.reduce((sum, one, j) => sum + (one / 2 ** 24) * (b[j] / 2 ** 24), 0);
      all.forEach((z, i) => {
        assert.deepEqual(z, all[i ^ 1].map((one) => 0 - one));
        assert.ok(along(z, z) <= d && along(z, z) > d - 1e-5);
        all.slice(i - (i % 2) + 2).forEach((other) => assert.ok(Math.abs(along(z, other)) < 1e-5));
      });
    }),
    { numRuns: 20 },
  );
});

for (const one of cases) {
  test(`${one.name}: ids, hashes, and the exact epsilon of the weights`, async () => {
    const terms = await readTerms(one.task);
    assert.deepEqual([terms.taskId, terms.rulesHash, terms.ticketed], [one.task_id, one.rules_hash, true]);
    const seat = await hmac(utf8("a token"), `tacit ids of ${one.task_id}`);
    for (const [k, id] of one["ids of 'a token'"].entries()) {
      assert.equal(hex((await hmac(seat, String(k))).subarray(0, 16)), id);
    }
    if (one.epsilon === null) return;
    const { sliding } = readRules(one.task.rules);
    assert.deepEqual([sliding.likely, sliding.unlikely].map(String), one.epsilon.ratio);
    const found = epsilonOf(readRules(one.task.rules));
    assert.ok(Math.abs(found - one.epsilon.epsilon) <= 1e-14 * found, `${found}`);
  });

  test(`${one.name}: ${one.reports.length} reports`, async () => {
    const terms = await readTerms(one.task);
    const publication = await readSearch(one.policy, terms);
    for (const { id, number, steps, return: found, place, tape, body } of one.reports) {
      const left = await withTape(Buffer.from(tape, "hex"), async () => {
        const answer = answerOfSearch(terms, publication, number, found);
        if (place !== null) assert.equal(answer, place);
        assert.equal(bodyOf(terms, publication, id, answer), body);
      });
      assert.equal(left, 0, "the tape must be used up");
      assert.ok(body.length - id.length <= 64);
      if (publication.form.head === "softmax" || publication.form.head === "uniform") continue;
      const theta = played(publication, number);
      for (const [seen, action] of steps) near(actionOf(publication.form, theta, [seen].flat(), []), action);
    }
  });

  test(`${one.name}: reports of whole devices`, async () => {
    const collector = new Searched(one);
    for (const vector of one.reports.slice(0, 12)) {
      const { id, number, tape, body } = vector;
      collector.number = number;
      let now = BEGUN;
      const mine = device(collector, new MemoryStore(), { clock: () => now });
      const left = await withTape(Buffer.from(id + vector["tape before"] + tape, "hex"), async () => {
        await live(mine, vector);
        const [held] = await mine.send();
        assert.ok(held.outcome === null && held.due >= BEGUN + 3600);
        assert.deepEqual(collector.bodies, []);
        now = DUE;
        await mine.send();
      });
      assert.equal(left, 0, "the tape must be used up");
      assert.equal(collector.bodies.pop(), body);
      assert.deepEqual(JSON.parse(collector.tickets.pop()), { task_id: one.task_id, id, rules: one.rules_hash });
    }
  });
}

test("every output has the chance that the weights give it", () => {
  const n = 20_000;
  for (const { task } of cases.filter(({ epsilon }) => epsilon !== null)) {
    const { sliding } = readRules(task.rules);
    const { outputs, run, likely, unlikely } = sliding;
    const total = BigInt(run) * likely + BigInt(outputs - run) * unlikely;
    const place = Math.floor((outputs - run) / 2);
    const counts = Array(outputs).fill(0);
    for (let i = 0; i < n; i++) counts[fromBase64(randomizePlace(sliding, place, system))[0]]++;
    counts.forEach((count, j) => {
      const p = Number(j >= place && j < place + run ? likely : unlikely) / Number(total);
      const deviation = Math.abs(count - n * p) / Math.sqrt(n * p * (1 - p) + 1);
      assert.ok(deviation < 7, `output ${j} of ${outputs}: ${count} of ${n} at chance ${p}`);
    });
  }
});

test("whatever was earned, its place is one that there is, and grows with it", async () => {
  const terms = await readTerms(cases[4].task);
  const publication = await readSearch(cases[4].policy, terms);
  const { sliding } = terms.rules;
  fc.assert(
    fc.property(fc.double(), fc.double({ noNaN: true }), fc.nat(10 ** 6), (a, b, number) => {
      const place = (found) => placeOf(sliding, publication, number, found);
      assert.ok(place(a) >= 0 && place(a) <= sliding.outputs - sliding.run);
      if (a <= b) assert.ok(place(a) <= place(b));
      assert.equal(place(NaN), place(-Infinity));
    }),
  );
});

test("an app may be closed between two steps, and nothing but the sum is kept", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "tacit-")), "outbox");
  const collector = new Searched(bit);
  let now = BEGUN;
  const fresh = () => device(collector, new FileStore(path), { clock: () => now });
  for (let h = 0; h < 9; h++) {
    const episode = await fresh().search();
    assert.equal(episode.step, h);
    const action = await episode.act([0.1, h, 0, 0]);
    const again = await fresh().search();
    assert.equal(await again.act([9, 9, 9, 9]), action, "asked again, the same");
    await again.observe(h === 3 ? Infinity : 1);
    if (h < 8) assert.deepEqual(JSON.parse(readFileSync(path, "utf8")).running[0].steps, []);
  }
  assert.equal(collector.tickets.length, 1);
  const [waiting] = JSON.parse(readFileSync(path, "utf8")).waiting;
  const stays = Object.keys(waiting).sort();
  assert.deepEqual(stays, ["answer", "number", "period", "publication", "reportId", "silent", "taskId", "times"]);
  assert.equal(waiting.answer, 1, "the largest return: an infinity is clipped, also after a restart");
  const asked = collector.asked.length;
  await assert.rejects(fresh().search(), TookPart);
  assert.equal(collector.asked.length, asked, "nothing is asked before the time is over");
  now = DUE;
  assert.equal((await fresh().send())[0].outcome, "accepted");
  await assert.rejects(fresh().search(), TookPart);
});

test("what is not a number, and who leaves, counts as the least return", async () => {
  const [joint] = cases.filter(({ name }) => name === "joint");
  for (const earn of [(episode) => episode.observe(NaN, true), (episode) => episode.leave()]) {
    let now = BEGUN;
    const collector = new Searched(joint);
    const mine = device(collector, new MemoryStore(), { clock: () => now });
    const episode = await mine.search();
    await episode.act([0, 0]);
    await earn(episode);
    now = DUE;
    await mine.send();
    const message = fromBase64(JSON.parse(collector.bodies[0]).reports[0].message);
    assert.equal(new DataView(message.buffer).getFloat64(0, true), joint.task.reward_range[0]);
  }
});

test("without a ticket nothing begins; a lapsed one is forgotten, unrandomized", async () => {
  const collector = new Searched(bit);
  let now = BEGUN;
  const mine = device(collector, new MemoryStore(), { clock: () => now });
  collector.refusal = ["batch_full", "try again later"];
  await assert.rejects(mine.search(), (error) => error instanceof NotTaken && error.reason === "batch_full");
  assert.ok(!collector.asked.some((path) => path.startsWith("/v1/policy")));
  collector.refusal = null;
  await (await mine.search()).leave();
  now = DUE;
  collector.obstacle = ["stale", "too late"];
  assert.deepEqual((await mine.send()).map(({ outcome }) => outcome), ["unmade"]);
  assert.deepEqual(collector.bodies, []);
});

test("declined: other rules, other policies, other methods", async () => {
  const changed = (rules) => new Searched({ ...bit, task: { ...bit.task, rules: { ...bit.task.rules, ...rules } } });
  const policy = JSON.parse(bit.policy).policy;
  const acting = (change) => {
    const body = JSON.stringify({ ...JSON.parse(bit.policy), policy: { ...policy, ...change } });
    return new Searched({ ...bit, policy: body.replace(/"key":\d+/, /"key":\d+/.exec(bit.policy)[0]) });
  };
  for (const [collector, words] of [
    [changed({ besides: 1 }), /say more than/],
    [changed({ run: 2 }), /run must be/],
    [changed({ outputs: 34 }), /outputs must be/],
    [changed({ likely: "1" }), /above unlikely/],
    [changed({ likely: "9".repeat(30) }), /the thresholds of its rules give/],
    [changed({ report: "return" }), /the model/],
    [changed({ report: "trajectory" }), /not one of such a task/],
    [acting({ kind: "table" }), /scored policy/],
    [acting({ shared: 4 }), /for everybody/],
    [acting({ sigma: -1 }), /sigma/],
    [acting({ theta: { ...policy.theta, data: policy.theta.data.slice(0, 32) } }), /4 parameters/],
    [acting({ form: { ...policy.form, scale: policy.form.shift } }), /positive/],
  ]) {
    await assert.rejects(device(collector).search(), (error) => {
      assert.ok(error instanceof Declined, String(error));
      assert.match(error.message, words);
      return true;
    });
  }
  await assert.rejects(device(new Searched(bit)).begin(), (error) => error instanceof InvalidInput);
  const episode = await device(new Searched(bit)).search();
  await assert.rejects(episode.act([1, 2]), InvalidInput);
  await assert.rejects(episode.observe(1), /call act first/);
});

test("a free ride takes no ticket, tries nothing out, and reports nothing", async () => {
  const rule = { times: null, teaches: "first", apart: 0, period: 0, attendance: "public", often: 1 };
  const task = { ...structuredClone(bit.task), task: { ...bit.task.task, rule } };
  const { name, task: facts, agent, reward_range, absorbing_state, unit } = task;
  task.task_id = await hashOf({ wire: 2, name, task: facts, agent, reward_range, absorbing_state, unit });
  const policy = bit.policy.replaceAll(bit.task_id, task.task_id);
  const collector = new Searched({ task, policy });
  let now = BEGUN;
  const mine = device(collector, new MemoryStore(), { clock: () => now, decoys: true });
  assert.equal((await mine.search()).silent, null);
  now = DUE;
  assert.equal((await mine.send())[0].outcome, "accepted");
  const ride = await mine.search();
  assert.match(ride.silent, /only the first/);
  const { form, theta } = await readSearch(policy, await readTerms(task));
  const seen = [1, -1, 0.2, 0.5];
  assert.equal(await ride.act(seen), actionOf(form, theta, seen, []));
  await ride.observe(1, true);
  now += DUE;
  assert.equal((await mine.send()).length, 1);
  assert.deepEqual([collector.tickets.length, collector.bodies.length], [1, 1]);
});
