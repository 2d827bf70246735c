/** The rules by which a report is made, and the epsilon that follows from their thresholds. */

import type { Json } from "./encoding.js";
import { Declined } from "./errors.js";

export const RULES_VERSION = 1;
const ONE = 1n << 64n;
const LARGEST_DOMAIN = 2 ** 20;
const MOST_OUTPUTS = 33;

export const KINDS = ["step", "move", "reward"] as const;
export type Kind = (typeof KINDS)[number];

/** A set of `size` cells, or one bit for every cell; chances in units of 2^-64. */
export type Randomizer =
  | { randomizer: "subset"; domain: number; size: number; own: bigint }
  | { randomizer: "unary"; domain: number; keep: bigint; flip: bigint };

/** Of a number: M outputs, of which a run of L neighbours slides with it. Whole weights. */
export interface Sliding {
  outputs: number;
  run: number;
  likely: bigint;
  unlikely: bigint;
}

export interface Rules {
  /** The last two are those of searches. */
  report: "cells" | "trajectory" | "number" | "return";
  horizon: number;
  states: number;
  actions: number;
  /** Where each state is, as far as an answer tells: all terminal ones are one place, the last. */
  places: number[];
  /** How many places there are, and how many of them go on. */
  met: number;
  live: number;
  cells: Partial<Record<Kind, Randomizer>>;
  sliding?: Sliding;
}

type Fields = { [name: string]: Json };

export function fields(value: Json | undefined, what: string): Fields {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new Declined(`${what} must be an object`);
  }
  return value;
}

export function whole(value: Json | undefined, what: string, low: number, high = 2 ** 53): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < low || value > high) {
    throw new Declined(`${what} must be a whole number in [${low}, ${high}]`);
  }
  return value;
}

function threshold(value: Json | undefined): bigint {
  if (typeof value !== "string" || !/^[1-9][0-9]{0,19}$/.test(value) || BigInt(value) >= ONE) {
    throw new Declined("a threshold must be a whole number in (0, 2^64), in decimal digits");
  }
  return BigInt(value);
}

function randomizer(value: Json | undefined, domain: number): Randomizer {
  const given = fields(value, "a randomizer");
  if (whole(given["domain"], "domain", 2, LARGEST_DOMAIN) !== domain) {
    throw new Declined("the rules have another number of cells than their states give");
  }
  if (given["randomizer"] === "subset") {
    const size = whole(given["size"], "size", 1, domain - 1);
    const own = threshold(given["own"]);
    if (own * BigInt(domain) <= BigInt(size) * ONE) throw new Declined("own is too unlikely");
    return { randomizer: "subset", domain, size, own };
  }
  if (given["randomizer"] === "unary") {
    const [keep, flip] = [threshold(given["keep"]), threshold(given["flip"])];
    if (keep <= flip) throw new Declined("keep must be above flip");
    return { randomizer: "unary", domain, keep, flip };
  }
  throw new Declined(`the randomizer ${String(given["randomizer"])} is not known; update the app`);
}

function readSliding(rules: Fields): Sliding {
  const weight = (name: string): bigint => {
    const digits = rules[name];
    if (typeof digits !== "string" || !/^[1-9][0-9]{0,39}$/.test(digits)) {
      throw new Declined(`${name} must be a whole number in decimal digits`);
    }
    return BigInt(digits);
  };
  if (Object.keys(rules).length !== 9) throw new Declined("the rules say more than is known here");
  const outputs = whole(rules["outputs"], "outputs", 2, MOST_OUTPUTS);
  const run = whole(rules["run"], "run", 1, outputs - 1);
  const [likely, unlikely] = [weight("likely"), weight("unlikely")];
  if (likely <= unlikely) throw new Declined("likely must be above unlikely");
  return { outputs, run, likely, unlikely };
}

/** The place of each state: those that go on in their order, then one end, if there is one. */
function readPlaces(value: Json | undefined, states: number): Pick<Rules, "places" | "met" | "live"> {
  const plain = Array.from({ length: states }, (_, s) => s);
  if (value === undefined) return { places: plain, met: states, live: states };
  if (!Array.isArray(value) || value.length !== states) throw new Declined(`${states} places were expected`);
  const places = value.map((one) => whole(one, "a place", 0, states - 1));
  const live = Math.max(...places);
  const going = places.filter((one) => one < live);
  if (going.length !== live || going.some((one, i) => one !== i)) {
    throw new Declined("places must number the states that go on in their order, and then the end");
  }
  return { places, met: live + 1, live };
}

export function readRules(value: Json | undefined): Rules {
  const given = fields(value, "rules");
  if (given["version"] !== RULES_VERSION) {
    throw new Declined(
      `the rules have version ${String(given["version"])}, this device follows ` +
        `${RULES_VERSION}; update the older one`,
    );
  }
  const horizon = whole(given["horizon"], "horizon", 1);
  const states = whole(given["states"], "states", 1);
  const actions = whole(given["actions"], "actions", 1);
  const report = given["report"];
  const { places, met, live } = readPlaces(given["places"], states);
  const sizes = { horizon, states, actions, places, met, live };
  if (report === "trajectory" || report === "return") return { report, ...sizes, cells: {} };
  if (report === "number") return { report, ...sizes, cells: {}, sliding: readSliding(given) };
  if (report !== "cells") {
    throw new Declined(`a report of ${String(report)} cannot be made by this client`);
  }
  const over = met - live; // the end is one cell
  const domains = {
    step: 2 * live * met + over,
    move: Math.max(live * met + over, 2),
    reward: 2 * live + over,
  };
  const cells: Rules["cells"] = {};
  for (const [name, how] of Object.entries(fields(given["cells"], "cells"))) {
    const kind = KINDS.find((known) => known === name);
    if (kind === undefined) throw new Declined(`questions about ${name} are not known here`);
    cells[kind] = randomizer(how, domains[kind]);
  }
  if (cells.reward === undefined) throw new Declined("the rules lack the reward of the last step");
  return { report, ...sizes, cells };
}

/** How much likelier one cell can make a report than another, at most: exactly a / b. */
export function odds(how: Randomizer): [bigint, bigint] {
  if (how.randomizer === "subset") {
    const [D, size] = [BigInt(how.domain), BigInt(how.size)];
    return [how.own * (D - size), (ONE - how.own) * size];
  }
  return [how.keep * (ONE - how.flip), how.flip * (ONE - how.keep)];
}

/** a / b of positive integers, from its first 64 bits or more. */
function share(a: bigint, b: bigint): number {
  const shift = 64 + Math.max(0, b.toString(2).length - a.toString(2).length);
  return Number((a << BigInt(shift)) / b) / 2 ** shift;
}

/** Natural logarithm of a / b >= 1, rounded up by a few units in the last place. */
export function logAbove([a, b]: [bigint, bigint]): number {
  const excess = share(a - b, b); // near 1 the logarithm of the ratio would lose its digits
  return (excess < 1 ? Math.log1p(excess) : Math.log(share(a, b))) * (1 + 2 ** -49);
}

/** Epsilon of one report, whatever is asked. */
export const epsilonOf = ({ cells, sliding }: Rules): number =>
  sliding
    ? logAbove([sliding.likely, sliding.unlikely])
    : Math.max(...Object.values(cells).map((how) => logAbove(odds(how))));
