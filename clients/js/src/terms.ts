/** The terms of a task as the device reads them, and the epsilon it works out for itself. */

import { hashOf, type Json } from "./encoding.js";
import { Declined } from "./errors.js";
import { flags, reals } from "./policy.js";
import { counted, readRule, type Rule } from "./returns.js";
import { epsilonOf, fields, readRules, type Rules, whole } from "./rules.js";

export const WIRE = 3;
const TERMS = ["name", "task", "agent", "reward_range", "absorbing_state", "unit"];
const SLACK = 1 + 1e-9;

export interface Terms {
  taskId: string;
  name: string;
  model: "local" | "joint";
  horizon: number;
  states: number;
  /** How many there are, or of a search the sides of the box that they are points of. */
  actions: number;
  box: boolean;
  /** Whether a participation is counted when it begins, as those of a search are. */
  ticketed: boolean;
  /** Of one person that are counted in full, in a period if budgets are renewed. */
  participations: number;
  /** For people who come back, where that number does not say it all. */
  rule: Rule | null;
  /** Of everything that one person sends in a period: worked out from the thresholds in the local model. */
  epsilon: number;
  delta: number;
  rewardRange: [number, number];
  absorbingState: number;
  terminal: boolean[];
  allowed: boolean[] | undefined;
  /** Reward in [0, 1] of every step after the end of an episode. */
  endReward: number;
  stateNames: string[] | null;
  actionNames: string[] | null;
  duration: number;
  delay: number;
  closes: number | null;
  assigned: boolean;
  state: string;
  rules: Rules;
  rulesHash: string;
  /** All that was fetched. */
  description: { [name: string]: Json };
}

function real(value: Json | undefined, what: string): number {
  if (typeof value !== "number") throw new Declined(`${what} must be a number`);
  return value;
}

function text(value: Json | undefined, what: string): string {
  if (typeof value !== "string" || value === "") throw new Declined(`${what} must be a text`);
  return value;
}

function names(value: Json | undefined, size: number): string[] | null {
  if (value === null || value === undefined) return null;
  if (!Array.isArray(value) || value.length !== size) throw new Declined(`${size} names were expected`);
  return value.map((name) => text(name, "a name"));
}

/** Judge a collector's description of its task; decline what does not add up. */
export async function readTerms(answer: Json): Promise<Terms> {
  const given = fields(answer, "the task");
  if (given["wire"] !== WIRE) {
    throw new Declined(
      `the collector speaks version ${String(given["wire"])} of the protocol, this device ` +
        `version ${WIRE}; update the older one`,
    );
  }
  const rules = readRules(given["rules"]);
  const hashed: { [name: string]: Json } = { wire: rules.live < rules.met ? 3 : 2 };
  for (const name of TERMS) {
    if (given[name] === undefined) throw new Declined(`the task lacks ${name}`);
    hashed[name] = given[name];
  }
  const taskId = await hashOf(hashed);
  if (given["task_id"] !== taskId) {
    throw new Declined(
      "the id of the task is not the hash of its terms (a task begun before version 3 of the " +
        "protocol takes devices of the Python client only)",
    );
  }
  const task = fields(given["task"], "task");
  const sizes = fields(task["sizes"], "sizes");
  const known = fields(task["known"], "known");
  const labels = fields(given["labels"] ?? {}, "labels");
  const stated = fields(given["guarantee"], "guarantee");
  const states = whole(sizes["states"], "states", 1);
  const ticketed = task["family"] === "episodic";
  const box = ticketed && sizes["actions"] === undefined;
  const actions = whole(sizes[box ? "inputs" : "actions"], "actions", 1);
  const horizon = whole(task["horizon"], "horizon", 1);
  if (rules.states !== states || rules.actions !== actions || rules.horizon !== horizon) {
    throw new Declined("the rules are those of a task of other sizes");
  }
  if (ticketed !== (rules.report === "number" || rules.report === "return")) {
    throw new Declined(`a report of a ${rules.report} is not one of such a task`);
  }
  const model = rules.report === "trajectory" || rules.report === "return" ? "joint" : "local";
  if (given["model"] !== model) {
    throw new Declined(`the collector states the model ${String(given["model"])}, its rules another`);
  }
  const terminal = flags(known["terminal"]) ?? Array<boolean>(states).fill(false);
  if (model === "local" && terminal.some((end, s) => end !== (rules.places[s] === rules.live))) {
    throw new Declined("the places of the rules are not those of the task's terminal states");
  }
  const rule = readRule(task["rule"]);
  const participations = rule === null ? whole(task["participations"], "participations", 1) : counted(rule);
  const claimed = real(stated["epsilon"], "epsilon");
  const epsilon = model === "local" ? participations * epsilonOf(rules) : claimed;
  if (epsilon > claimed * SLACK) {
    throw new Declined(
      `the collector states epsilon ${claimed}, but the thresholds of its rules give ${epsilon}`,
    );
  }
  const range = given["reward_range"];
  const [low, high] = Array.isArray(range) ? [real(range[0], "reward_range"), real(range[1], "reward_range")] : [0, 0];
  if (!(low < high)) throw new Declined("the range of rewards is empty");
  const duration = real(task["duration"] ?? 0, "duration");
  const delay = real(given["delay"] ?? 0, "delay");
  if (!(delay >= 0 && delay <= duration)) {
    throw new Declined("the delay of reports is not between 0 and the duration");
  }
  const closes = given["closes"] ?? null;
  const moment = closes === null ? null : Date.parse(text(closes, "closes")) / 1000;
  if (Number.isNaN(moment)) throw new Declined("closes must be a time, or nothing");
  if (given["ids"] !== "token" && given["ids"] !== "chosen") {
    throw new Declined("ids must be token or chosen");
  }
  if (rule?.teaches === "lifetime" && given["ids"] === "token") {
    throw new Declined("reports that are bounded together have ids that devices draw");
  }
  return {
    taskId,
    name: text(given["name"], "name"),
    model,
    horizon,
    states,
    actions,
    box,
    ticketed,
    participations,
    rule,
    epsilon,
    delta: model === "local" ? 0 : real(stated["delta"], "delta"),
    rewardRange: [low, high],
    absorbingState: whole(given["absorbing_state"], "absorbing_state", 0, states - 1),
    terminal,
    allowed: flags(known["allowed"]),
    endReward: known["end_reward"] === undefined ? 0 : reals(known["end_reward"], "end_reward")[0]!,
    stateNames: names(labels["states"], states),
    actionNames: box ? null : names(labels["actions"], actions),
    duration,
    delay,
    closes: moment,
    assigned: given["ids"] === "token",
    state: String(given["state"] ?? "open"),
    rules,
    rulesHash: await hashOf(given["rules"]!),
    description: given,
  };
}
