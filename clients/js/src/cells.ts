/** A report about one cell of one step: the question, the clipped answer, the randomized bits. */

import { base64, sha256, utf8 } from "./encoding.js";
import { below, type Entropy, happens } from "./entropy.js";
import { InvalidInput } from "./errors.js";
import type { Publication } from "./policy.js";
import { type Kind, KINDS, type Randomizer, type Rules } from "./rules.js";

const STEPS = 2 ** 24;
const CIRCLE = 2n ** 31n;
const GOLDEN = 1327217885n;

/** All H steps of an episode: H + 1 states, H actions, H rewards in [0, 1]. */
export interface Trajectory {
  states: number[];
  actions: number[];
  rewards: number[];
}

/** What stays of an episode until its report is due: one cell, by places, its reward in 2^-24. */
export interface Answer {
  step: number;
  kind: Kind;
  state: number;
  next: number;
  reward: number;
}

/** The public coin of a report: 63 bits of SHA-256 over both ids. */
export async function coin(taskId: string, reportId: string): Promise<bigint> {
  const digest = await sha256(utf8(`${taskId}:${reportId}`));
  return new DataView(digest.buffer).getBigUint64(0) >> 1n;
}

/** Step and kind of the question that a coin asks under a publication. */
export function question(rules: Rules, publication: Publication, coin: bigint): [number, Kind] {
  const H = rules.horizon;
  const asked = publication.questions;
  let step = Number(coin % BigInt(H));
  let kind: Kind = "step";
  if (asked?.length === KINDS.length * H) {
    const u = Number((coin * GOLDEN) % CIRCLE) / Number(CIRCLE);
    const first = asked.findIndex((share) => share > u);
    const number = first < 0 ? asked.length - 1 : first;
    step = Math.floor(number / KINDS.length);
    kind = KINDS[number % KINDS.length]!;
  }
  return [step, step === H - 1 ? "reward" : kind];
}

/** Clip, and keep what was asked for; the rest is forgotten. */
export function answer(rules: Rules, [step, kind]: [number, Kind], lived: Trajectory): Answer {
  const place = (h: number) => rules.places[Math.min(Math.max(lived.states[h]!, 0), rules.states - 1)]!;
  const reward = Math.min(Math.max(lived.rewards[step]!, 0), 1) || 0;
  const state = place(step);
  const over = state === rules.live; // nothing more is told
  return {
    step,
    kind,
    state,
    next: over || kind === "reward" ? 0 : place(step + 1),
    reward: over || kind === "move" ? 0 : Math.floor(reward * STEPS + 0.5),
  };
}

/** Round the reward to 0 or 1 at random, number the cell, randomize it: the message in base64. */
export function randomize(rules: Rules, { kind, state, next, reward }: Answer, entropy: Entropy): string {
  const how = rules.cells[kind];
  if (how === undefined) throw new InvalidInput(`the rules do not cover questions about a ${kind}`);
  const rho = below(entropy, STEPS) < reward ? 1 : 0;
  const N = rules.met;
  const cell = { step: (2 * state + rho) * N + next, move: state * N + next, reward: 2 * state + rho };
  const bytes = new Uint8Array(8 * Math.ceil(how.domain / 64));
  for (const one of drawn(how, cell[kind], entropy)) bytes[one >> 3]! |= 1 << (one & 7);
  return base64(bytes);
}

function drawn(how: Randomizer, cell: number, entropy: Entropy): number[] {
  const all = Array.from({ length: how.domain }, (_, one) => one);
  if (how.randomizer === "unary") {
    return all.filter((one) => happens(entropy, one === cell ? how.keep : how.flip));
  }
  const others = all.filter((one) => one !== cell);
  for (let i = 0; i < how.size; i++) {
    const j = i + below(entropy, others.length - i);
    [others[i], others[j]] = [others[j]!, others[i]!];
  }
  if (happens(entropy, how.own)) others[how.size - 1] = cell;
  return others.slice(0, how.size);
}

/** The joint layout: states and actions as 32-bit, rewards as 64-bit little-endian numbers. */
export function packTrajectory({ states, actions, rewards }: Trajectory): string {
  const view = new DataView(new ArrayBuffer(4 * (states.length + actions.length) + 8 * rewards.length));
  let at = 0;
  for (const number of [...states, ...actions]) {
    view.setInt32(at, number, true);
    at += 4;
  }
  for (const reward of rewards) {
    view.setFloat64(at, reward, true);
    at += 8;
  }
  return base64(new Uint8Array(view.buffer));
}
