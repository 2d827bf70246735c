/**
 * From an observation to an action, by scores of public features. Everything here is the device's
 * own business: nothing is drawn, and nothing that is computed leaves. So floating point is allowed,
 * cosines and exponentials included, and the last digits may differ from the reference's.
 */

import type { Json } from "./encoding.js";
import { Declined } from "./errors.js";
import { integers, reals } from "./policy.js";
import { fields, whole } from "./rules.js";

const FEATURES = ["identity", "affine", "quadratic", "fourier", "rbf", "one-hot", "tiles", "projection"] as const;
const HEADS = ["argmax", "softmax", "tanh", "clipped", "uniform"] as const;
const WIDEST = 1024;
const MOST_PARAMETERS = 2 ** 20;

/** The number of an action, or a point of the box. */
export type Action = number | number[];

export interface Sizes {
  /** Numbers of an observation, or how many observations there are (one-hot). */
  states: number;
  /** Actions of a choice, or sides of the box. */
  actions: number;
  box: boolean;
}

/** How observations become features, and scores of features an action. */
export interface Scoring {
  features: (typeof FEATURES)[number];
  head: (typeof HEADS)[number];
  hidden: number;
  shift: Float64Array;
  scale: Float64Array;
  /** Frequencies, centres, rows of a matrix, or offsets of tilings: rows of n numbers. */
  table: Float64Array;
  width: number;
  /** Number of features. */
  size: number;
  states: number;
  /** Scores: one less than the actions of a choice, or one for each side of the box. */
  outputs: number;
  /** Corners of a regular simplex, one row per action; null for boxes. */
  corners: number[][] | null;
  low: Float64Array;
  high: Float64Array;
}

const clipped = (x: number): number => Math.min(Math.max(x, -1), 1);

/** Corners of a regular simplex around 0 in A - 1 dimensions, one row per action. */
function simplex(actions: number): number[][] {
  if (actions === 2) return [[-1], [1]];
  return Array.from({ length: actions }, (_, a) =>
    Array.from({ length: actions - 1 }, (_, i) => {
      const k = i + 1;
      const root = Math.sqrt(k * (k + 1));
      return a < k ? 1 / root : a === k ? -k / root : 0;
    }),
  );
}

export function readScoring(value: Json | undefined, { states, actions, box }: Sizes): Scoring {
  const given = fields(value, "form");
  const form = integers(given["form"], "form");
  const [features, head] = [FEATURES[form[0]!], HEADS[form[1]!]];
  const hidden = whole(form[2], "hidden", 0, WIDEST);
  const fitting = box ? ["tanh", "clipped", "uniform"] : ["argmax", "softmax", "uniform"];
  if (features === undefined || head === undefined || !fitting.includes(head)) {
    throw new Declined("the policy scores observations in a way that is not known here");
  }
  const n = features === "one-hot" ? 0 : states;
  const array = (name: string, length: number): Float64Array => {
    const found = reals(given[name], name);
    if (found.length !== length || !found.every(Number.isFinite)) {
      throw new Declined(`${name} must hold ${length} finite numbers`);
    }
    return found;
  };
  const [shift, scale, [width]] = [array("shift", n), array("scale", n), array("width", 1)];
  if (!scale.every((one) => one > 0) || !(width! > 0)) throw new Declined("scales must be positive");
  const rows = n === 0 ? 0 : reals(given["table"], "table").length / n;
  const fixed = { identity: n, affine: n + 1, quadratic: n + (n * (n + 1)) / 2, "one-hot": states };
  const placed = !(features in fixed);
  const table = array("table", placed ? whole(rows, "rows of the table", 1) * n : 0);
  const side = features === "tiles" ? whole(width, "tiles of a side", 2, WIDEST) : 1;
  const size = placed ? rows * side ** n : fixed[features as keyof typeof fixed];
  const outputs = box ? actions : actions - 1;
  const ends = array("box", box ? 2 * outputs : 0);
  const [low, high] = [ends.subarray(0, ends.length / 2), ends.subarray(ends.length / 2)];
  if (outputs < 1 || size * Math.max(outputs, hidden) > MOST_PARAMETERS) {
    throw new Declined("the policy scores nothing, or too much");
  }
  return {
    ...{ features, head, hidden, shift, scale, table, width: width!, size, states, outputs, low, high },
    corners: box ? null : simplex(actions),
  };
}

/** Number d of parameters. */
export const parameters = ({ size, outputs, hidden }: Scoring): number =>
  hidden ? hidden * (size + outputs) : outputs * size;

/** How many uniform numbers an action takes: none, one of a choice, one for each side of a box. */
export const draws = ({ head, corners, outputs }: Scoring): number =>
  head !== "softmax" && head !== "uniform" ? 0 : corners ? 1 : outputs;

/** Features of an observation: n numbers, or the number of one (one-hot). */
export function featuresOf(form: Scoring, observation: readonly number[]): number[] {
  const { features, shift, scale, table, size, width } = form;
  const out = Array<number>(size).fill(0);
  if (features === "one-hot") {
    out[observation[0]!] = 1;
    return out;
  }
  const x = observation.map((one, i) => (one - shift[i]!) / scale[i]!);
  const n = x.length;
  if (features === "identity") return x;
  if (features === "affine") return [...x, 1];
  if (features === "quadratic") return [...x, ...x.flatMap((one, i) => x.slice(i).map((other) => one * other))];
  if (features === "tiles") {
    const each = width ** n;
    for (let t = 0; t < table.length / n; t++) {
      let tile = 0;
      x.forEach((one, i) => {
        const y = ((clipped(one) + 1) / 2) * (width - 1) + table[t * n + i]!;
        tile = tile * width + Math.min(Math.floor(y), width - 1);
      });
      out[t * each + tile] = 1;
    }
    return out;
  }
  let total = 0;
  for (let f = 0; f < size; f++) {
    let value = 0;
    x.forEach((one, i) => {
      const entry = table[f * n + i]!;
      if (features === "projection") value += entry * one;
      else if (features === "fourier") value += (entry * (clipped(one) + 1)) / 2;
      else value += ((clipped(one) - entry) / width) ** 2;
    });
    if (features === "projection") out[f] = value;
    else if (features === "fourier") out[f] = Math.cos(Math.PI * value);
    else total += out[f] = Math.exp(-0.5 * value);
  }
  return features === "rbf" ? out.map((one) => one / total) : out;
}

/** Sums of `rows` rows of weights, each times what the layer below says. */
function layer(theta: Float64Array, at: number, rows: number, below: readonly number[]): number[] {
  return Array.from({ length: rows }, (_, i) =>
    below.reduce((sum, one, f) => sum + theta[at + i * below.length + f]! * one, 0),
  );
}

/** What to do, by parameters theta; `uniforms` in [0, 1) are those of heads that draw. */
export function actionOf(
  form: Scoring,
  theta: Float64Array,
  observation: readonly number[],
  uniforms: readonly number[],
): Action {
  const { head, outputs, hidden, corners, low, high } = form;
  const boxed = (point: number[]) =>
    point.map((a, i) => low[i]! + ((high[i]! - low[i]!) * (a + 1)) / 2);
  if (head === "uniform") {
    if (corners === null) return boxed(uniforms.map((u) => 2 * u - 1));
    return Math.min(Math.floor(uniforms[0]! * corners.length), corners.length - 1);
  }
  let below = featuresOf(form, observation);
  const at = hidden * below.length;
  if (hidden) below = layer(theta, 0, hidden, below).map(Math.tanh);
  const v = layer(theta, at, outputs, below);
  if (corners === null) return boxed(v.map(head === "tanh" ? Math.tanh : clipped));
  const scores = corners.map((corner) => corner.reduce((sum, one, i) => sum + one * v[i]!, 0));
  const top = Math.max(...scores);
  if (head === "argmax") return Math.max(scores.indexOf(top), 0); // of equal ones the first
  let sum = 0;
  const sums = scores.map((score) => (sum += Math.exp(score - top)));
  const found = sums.findIndex((reached) => uniforms[0]! * sum < reached);
  return found < 0 ? corners.length - 1 : found;
}
