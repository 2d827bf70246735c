/** What a device promises its user: once, the same bytes, nothing before it would be taken. */

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { hashOf } from "../dist/encoding.js";
import { Declined, Device, FileStore, MemoryStore, NotTaken, Refused, TookPart, Unreachable } from "../dist/node.js";
import { FakeCollector, live } from "./collector.mjs";

const read = (name) =>
  JSON.parse(readFileSync(new URL(`../../../vectors/${name}`, import.meta.url), "utf8"));
const [week] = read("cells.json");
const [joint] = read("trajectories.json");
const STEPS = Array.from({ length: 7 }, (_, h) => [h, 0.5, h + 1]);
const DAY = 86400;

/** The task of a vector with other terms, under the id that they give it. */
async function described(changes = {}, one = week) {
  const task = { ...structuredClone(one.task), ids: "chosen", ...changes };
  const { name, task: facts, agent, reward_range, absorbing_state, unit } = task;
  const terms = { wire: 2, name, task: facts, agent, reward_range, absorbing_state, unit };
  task.task_id = await hashOf(terms);
  const policy = JSON.stringify({ ...JSON.parse(one.policy), task_id: task.task_id });
  return new FakeCollector(task, policy);
}

const timed = (more = {}) =>
  described({ task: { ...week.task.task, duration: 7 * DAY, ...more }, delay: DAY / 4 });

function device(collector, store = new MemoryStore(), options = {}) {
  return new Device(collector.api(), store, { maxEpsilon: 5, ...options });
}

test("a whole episode becomes one report, and a second one is refused", async () => {
  const collector = await described();
  const mine = device(collector, new MemoryStore(), { token: "secret" });
  await live(mine, STEPS);
  assert.deepEqual(collector.bodies, []);
  const [delivery] = await mine.send();
  assert.equal(delivery.outcome, "accepted");
  assert.equal(collector.headers[0].Authorization, "Bearer secret");
  assert.deepEqual(await mine.send(), [delivery]);
  assert.equal(collector.bodies.length, 1);
  await assert.rejects(mine.begin(), TookPart);
});

test("the same bytes go out however often, also after a restart", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "tacit-")), "outbox");
  const collector = await described();
  await live(device(collector, new FileStore(path)), STEPS);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const silent = { fetch: 0 };
  collector.answer = ((answer) =>
    function (where, init) {
      const said = answer.call(this, where, init);
      if (init.method === "POST" && silent.fetch++ < 4) throw new TypeError("the answer is lost");
      return said;
    })(collector.answer);
  await assert.rejects(device(collector, new FileStore(path)).send(), Unreachable);
  assert.equal(collector.bodies.length, 3);
  const [delivery] = await device(collector, new FileStore(path)).send();
  assert.equal(delivery.outcome, "accepted");
  assert.equal(new Set(collector.bodies).size, 1);
  assert.equal(collector.bodies.length, 5);
});

test("an app may be closed between two steps", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "tacit-")), "outbox");
  const collector = await described();
  let actions = [];
  for (const [state, reward, next] of STEPS) {
    const episode = await device(collector, new FileStore(path)).begin();
    assert.equal(episode.step, actions.length);
    actions.push(await episode.act(state));
    const again = await device(collector, new FileStore(path)).begin();
    assert.equal(await again.act(state), actions.at(-1));
    await again.observe(reward, next);
  }
  const table = JSON.parse(week.policy).policy.actions;
  assert.deepEqual(actions, STEPS.map(([state], h) => table[h][state]));
  const stored = JSON.parse(readFileSync(path, "utf8"));
  assert.deepEqual([stored.running, stored.waiting.length], [[], 1]);
  assert.equal(collector.asked.filter((path) => path === "/v1/policy").length, 1);
});

test("what would not be taken is never randomized, and the participation is free again", async () => {
  const collector = await described();
  const store = new MemoryStore();
  const mine = device(collector, store);
  await live(mine, STEPS);
  collector.obstacle = ["paused", "paused by its operator"];
  assert.equal((await mine.send())[0].reason, "paused");
  assert.equal(await store.change((state) => state.waiting.length), 1);
  collector.obstacle = ["stale", "too late"];
  const [unmade] = await mine.send();
  assert.deepEqual([unmade.outcome, unmade.reason], ["unmade", "stale"]);
  assert.deepEqual(collector.bodies, []);
  await assert.rejects(mine.begin(), NotTaken);
  collector.obstacle = null;
  await live(mine, STEPS);
  assert.equal((await mine.send()).at(-1).outcome, "accepted");
});

test("a report is held until its time, whoever stops early", async () => {
  const collector = await timed();
  let now = 1.8e9;
  const mine = device(collector, new MemoryStore(), { clock: () => now });
  const episode = await mine.begin();
  const due = await mine.due();
  assert.ok(due >= now + 7 * DAY && due <= now + 7.25 * DAY);
  await episode.act(0);
  await episode.leave();
  const asked = collector.asked.length;
  assert.equal((await mine.send())[0].due, due);
  await assert.rejects(mine.begin(), TookPart);
  assert.equal(collector.asked.length, asked, "nothing is asked before the time is over");
  now = due;
  assert.equal((await mine.send())[0].outcome, "accepted");
});

test("an episode whose time is over ends by itself; a clock set back makes it wait", async () => {
  const collector = await timed();
  let now = 1.8e9;
  const mine = device(collector, new MemoryStore(), { clock: () => now });
  const episode = await mine.begin();
  await episode.act(0);
  now = 1.0e9;
  assert.ok((await mine.due()) >= now + 7 * DAY);
  now = 1.8e9 + 7 * DAY;
  await assert.rejects(episode.observe(1, 0), /time of this episode is over/);
  now = 1.8e9 + 8 * DAY;
  assert.equal((await mine.send())[0].outcome, "accepted");
});

test("ids follow from the token where the task says so", async () => {
  const collector = await described({ ids: "token" });
  await assert.rejects(device(collector).begin(), /there is none/);
  const mine = device(collector, new MemoryStore(), { token: "a token" });
  await live(mine, STEPS);
  await mine.send();
  // the vector's task has the same terms, hence the same id
  assert.equal(JSON.parse(collector.bodies[0]).reports[0].id, week["ids of 'a token'"][0]);
});

test("two programs with one outbox make one report", async () => {
  const collector = await described();
  const store = new MemoryStore();
  await live(device(collector, store), STEPS);
  await Promise.all([device(collector, store).send(), device(collector, store).send()]);
  assert.equal(new Set(collector.bodies).size, 1);
});

const stranger = { ...week.task.rules, report: "numbers" };
const louder = structuredClone(week.task.rules);
louder.cells.step.own = "18446744073709551615";
const ended = (places) => ({ rules: { ...week.task.rules, places } });
for (const [what, changes, words] of [
  ["too few places", ended([0, 1]), /12 places were expected/],
  ["a place left out", ended([0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 11, 11]), /in their order, and then the end/],
  ["an end that the cells lack", ended([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]), /another number of cells/],
  ["another version", { wire: 2 }, /version 2 of the protocol, this device version 3/],
  ["other rules", { rules: { ...week.task.rules, version: 9 } }, /rules have version 9/],
  ["unknown reports", { rules: stranger }, /cannot be made/],
  ["other sizes", { rules: { ...week.task.rules, horizon: 8 } }, /other sizes/],
  ["louder thresholds", { rules: louder }, /the thresholds of its rules give/],
  ["no range", { reward_range: [1, 1] }, /empty/],
  ["a long delay", { delay: 9 }, /delay/],
  ["the wrong model", { model: "joint" }, /model/],
]) {
  test(`declined: ${what}`, async () => {
    await assert.rejects(device(await described(changes)).begin(), (error) => {
      assert.ok(error instanceof Declined);
      assert.match(error.message, words);
      return true;
    });
  });
}

test("declined: terms that do not have their id, too much epsilon, joint, plain http", async () => {
  const lying = await described();
  lying.task.name = "another";
  await assert.rejects(device(lying).begin(), /not the hash of its terms/);
  const collector = await described();
  await assert.rejects(device(collector, new MemoryStore(), { maxEpsilon: 1 }).begin(), /allows 1/);
  await assert.rejects(device(await described({}, joint)).begin(), /raw trajectories/);
  assert.throws(() => collector.api("http://coach.test"), /use https/);
  collector.api("http://127.0.0.1:8080");
});

test("changed terms under an old name, and an older policy than seen, are declined", async () => {
  const store = new MemoryStore();
  const first = await described({ task: { ...week.task.task, participations: 1, users: 999 } });
  await live(device(first, store), STEPS);
  await device(first, store).send();
  const second = await described();
  await assert.rejects(device(second, store, { maxEpsilon: 9 }).begin(), /have changed/);
  const often = { ...week.task.task, participations: 3 };
  const third = await described({ task: often, guarantee: { ...week.task.guarantee, epsilon: 6 } });
  const mine = device(third, new MemoryStore(), { maxEpsilon: 9 });
  await live(mine, STEPS);
  third.policy = JSON.stringify({ ...JSON.parse(third.policy), version: 2 });
  await assert.rejects(mine.begin(), /has seen 3/);
});

test("a refusal is thrown with its code; a busy collector is asked again", async () => {
  const collector = await described();
  const mine = device(collector);
  await live(mine, STEPS);
  collector.broken = [
    Response.json({ error: { code: "unauthorized", message: "no" } }, { status: 401 }),
  ];
  await assert.rejects(mine.send(), (error) => error instanceof Refused && error.code === "unauthorized");
  collector.broken = [new Response("", { status: 503 }), new TypeError("no network")];
  assert.equal((await mine.send())[0].outcome, "accepted");
});

test("an outbox of a newer program is refused", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "tacit-")), "outbox");
  writeFileSync(path, JSON.stringify({ version: 3 }));
  await assert.rejects(device(await described(), new FileStore(path)).begin(), /another version/);
});

test("a lock of a program that has ended holds nothing", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "tacit-")), "outbox");
  writeFileSync(`${path}.lock`, "999999999");
  await live(device(await described(), new FileStore(path)), STEPS);
});

test("declined: places that are not the terminal states of the task", async () => {
  const one = read("cells.json").find(({ name }) => name === "ends in between");
  const { terminal, ...known } = one.task.task.known;
  const task = { ...structuredClone(one.task), task: { ...one.task.task, known } };
  const { name, task: facts, agent, reward_range, absorbing_state, unit } = task;
  task.task_id = await hashOf({ wire: 3, name, task: facts, agent, reward_range, absorbing_state, unit });
  assert.ok(terminal);
  await assert.rejects(device(new FakeCollector(task, one.policy)).begin(), /not those of the task's terminal/);
});
