/** People who come back: what is reported of a period, and that nothing else is. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import fc from "fast-check";

import { hashOf, hex, hmac, utf8 } from "../dist/encoding.js";
import { Declined, Device, FileStore, MemoryStore, TookPart } from "../dist/node.js";
import { FakeCollector, live } from "./collector.mjs";

const vectors = new URL("../../../vectors/cells.json", import.meta.url);
const month = JSON.parse(readFileSync(vectors, "utf8")).find(({ name }) => name === "every month");
const [DAY, MONTH] = [86400, 30 * 86400];
const START = 660 * MONTH;
const FIRST = { times: null, teaches: "first", apart: 0, period: MONTH, attendance: "public", often: 1 };
const STEPS = [[0, 0.5, 1], [1, 1, 2]];

/** A collector whose task has a rule. */
async function returning(rule = {}, more = {}) {
  const task = { ...structuredClone(month.task), ids: "token" };
  task.task = { ...task.task, rule: { ...FIRST, ...rule }, ...more };
  const { name, task: facts, agent, reward_range, absorbing_state, unit } = task;
  task.task_id = await hashOf({ wire: 2, name, task: facts, agent, reward_range, absorbing_state, unit });
  const policy = JSON.stringify({ ...JSON.parse(month.policy), task_id: task.task_id });
  return new FakeCollector(task, policy);
}

const clock = { now: START + DAY };
const at = (now) => (clock.now = now);

const device = (collector, options = {}, store = new MemoryStore()) =>
  new Device(collector.api(), store, { maxEpsilon: 99, token: "a token", clock: () => clock.now, ...options });

const ids = ({ bodies }) => bodies.map((body) => JSON.parse(body).reports[0].id);

async function idOf({ task }, number) {
  const seat = await hmac(utf8("a token"), `tacit ids of ${task.task_id}`);
  return hex((await hmac(seat, String(number))).subarray(0, 16));
}

test("the first of a period is reported, and the others ride free", async () => {
  const collector = await returning();
  const mine = device(collector);
  for (const period of [660, 661, 663]) {
    at(period * MONTH);
    for (let visit = 0; visit < 3; visit++) {
      const episode = await live(mine, visit ? STEPS : []);
      assert.equal(episode.silent === null, visit === 0);
      await mine.send();
      clock.now += DAY;
    }
  }
  assert.deepEqual(ids(collector), await Promise.all([660, 661, 663].map((n) => idOf(collector, n))));
  assert.equal(await mine.due(), null);
});

test("a free ride asks for the task and the policy, and needs nobody to take it", async () => {
  at(START);
  const collector = await returning();
  const mine = device(collector);
  await live(mine, STEPS);
  await mine.send();
  collector.task.state = "closed";
  collector.obstacle = ["closed", "over"];
  collector.asked = [];
  await live(mine, STEPS);
  await mine.send();
  assert.deepEqual(collector.asked, ["/v1/task", "/v1/policy"]);
});

test("a restart forgets nothing, and an outbox of version 1 is brought up", async () => {
  at(START);
  const path = join(mkdtempSync(join(tmpdir(), "tacit-")), "outbox");
  writeFileSync(path, JSON.stringify({ version: 1, joined: {}, running: [], waiting: [], made: [] }));
  const collector = await returning();
  const mine = () => device(collector, {}, new FileStore(path));
  await (await mine().begin()).act(0);
  const episode = await mine().begin();
  assert.equal(episode.silent, null);
  await episode.leave();
  await (await mine().begin()).act(1);
  const ride = await mine().begin();
  assert.match(ride.silent, /only the first/);
  await ride.observe(1, 2);
  await ride.leave();
  const stored = JSON.parse(readFileSync(path, "utf8"));
  assert.deepEqual([stored.version, stored.running, stored.waiting.length], [2, [], 1]);
  assert.deepEqual(stored.periods[collector.task.task_id], { 660: { begun: 2, reported: 1 } });
  await mine().send();
  assert.deepEqual(ids(collector), [await idOf(collector, 660)]);
});

test("an unmade report frees no other participation, and its period costs nothing", async () => {
  at(START);
  const collector = await returning();
  const mine = device(collector, { maxEpsilon: 1.51 });
  await live(mine, STEPS);
  collector.obstacle = ["stale", "too late"];
  assert.equal((await mine.send())[0].outcome, "unmade");
  collector.obstacle = null;
  assert.notEqual((await live(mine, STEPS)).silent, null);
  clock.now += MONTH;
  assert.equal((await live(mine, STEPS)).silent, null);
});

test("periods are paid for until nothing is left", async () => {
  at(START);
  const collector = await returning();
  const store = new MemoryStore();
  const mine = device(collector, { maxEpsilon: 3.01 }, store);
  const silent = [];
  for (let n = 0; n < 4; n++) {
    silent.push((await live(mine, STEPS)).silent);
    await mine.send();
    clock.now += MONTH;
  }
  assert.deepEqual(silent.slice(0, 2), [null, null]);
  assert.match(silent[3], /costs epsilon 1\.5\d* in each of 3 periods beside 0 .* allows 3\.01/);
  assert.equal(collector.bodies.length, 2);
  await assert.rejects(device(collector, { maxEpsilon: 2 }, store).begin(), Declined);
});

test("how often and how far apart: sentences say when the next one may begin", async () => {
  at(START);
  const collector = await returning({ times: 2, apart: 72000 });
  const mine = device(collector);
  await live(mine, STEPS);
  clock.now += 71999;
  await assert.rejects(mine.begin(), (error) => {
    assert.ok(error instanceof TookPart);
    assert.match(error.message, /at least 20 hours apart; .* at 2024-03-18T20:00:00/);
    return true;
  });
  clock.now += 1;
  await live(mine, STEPS);
  clock.now += 72000;
  await assert.rejects(mine.begin(), /up to 2 times in a period, .* next period begins at 2024-04-17/);
});

test("a free ride takes its time like any other", async () => {
  at(START);
  const collector = await returning({}, { duration: DAY });
  const mine = device(collector);
  await (await mine.begin()).leave();
  at(await mine.due());
  await mine.send();
  await (await mine.begin()).leave();
  collector.asked = [];
  clock.now += DAY / 2;
  await assert.rejects(mine.begin(), /show who stopped early/);
  assert.deepEqual(collector.asked, []);
  clock.now += DAY / 2;
  assert.notEqual((await mine.begin()).silent, null);
});

test("a decoy looks like a report and is none", async () => {
  at(START);
  const collector = await returning({}, { duration: DAY });
  const mine = device(collector, { decoys: true });
  const traffic = [];
  for (let visit = 0; visit < 3; visit++) {
    collector.asked = [];
    await live(mine, visit ? STEPS : []);
    assert.equal((await mine.send()).at(-1).due, await mine.due());
    at(await mine.due());
    assert.equal((await mine.send()).at(-1).outcome, visit ? "decoy" : "accepted");
    traffic.push(collector.asked.slice(visit ? 0 : 1).join(" "));
  }
  assert.equal(traffic[1], traffic[2]);
  assert.ok(traffic[1].endsWith(traffic[0].split(" ").slice(-2).join(" ")));
  const rules = collector.bodies.map((body) => JSON.parse(body).reports[0].rules);
  assert.deepEqual(rules.slice(1), ["0".repeat(64), "0".repeat(64)]);
  assert.deepEqual((await mine.send()).map(({ outcome }) => outcome), ["accepted"]);
});

for (const [rule, words] of [
  [{ teaches: null }, /does not say which/],
  [{ teaches: "last" }, /does not say which/],
  [{ teaches: "every" }, /does not say which/],
  [{ teaches: "lifetime" }, /devices draw/],
  [{ apart: "20h" }, /apart must be seconds/],
  [{ period: -1 }, /period must be seconds/],
  [{ sometimes: true }, /has no sometimes/],
]) {
  test(`declined: a rule with ${JSON.stringify(rule)}`, async () => {
    await assert.rejects(device(await returning(rule)).begin(), words);
  });
}

test("no period is reported twice, and nothing that is seen depends on rewards", async () => {
  const visit = fc.tuple(
    fc.constantFrom(0, 3600, DAY, 11 * DAY, 31 * DAY, -2 * DAY, -40 * DAY),
    fc.integer({ min: 0, max: 5 }),
    fc.boolean(),
  );
  const rules = fc.constantFrom({}, { period: 0 }, { times: 3, period: 10 * DAY }, { apart: 72000 });
  await fc.assert(
    fc.asyncProperty(rules, fc.array(visit, { minLength: 1, maxLength: 10 }), async (rule, visits) => {
      const seen = [];
      for (const reward of [0, 1]) {
        at(START);
        const collector = await returning(rule);
        const mine = device(collector);
        const diary = [];
        const expected = [];
        for (const [wait, steps, sends] of visits) {
          clock.now += wait;
          try {
            const lived = Array.from({ length: steps }, (_, h) => [h % 4, reward, (h + 1) % 4]);
            const { silent } = await live(mine, lived);
            const { period } = { ...FIRST, ...rule };
            if (silent === null) expected.push(await idOf(collector, period ? Math.floor(clock.now / period) : 0));
            diary.push(silent);
          } catch (error) {
            assert.ok(error instanceof TookPart);
            diary.push(error.message);
          }
          if (sends) await mine.send();
        }
        await mine.send();
        assert.equal(new Set(expected).size, expected.length);
        assert.deepEqual(ids(collector).sort(), expected.sort());
        seen.push([diary, collector.asked, ids(collector)]);
      }
      assert.deepEqual(seen[0], seen[1]);
    }),
    { numRuns: 40 },
  );
});
