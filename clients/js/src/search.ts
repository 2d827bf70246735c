/** A policy search: whose direction is whose, and one randomized number about one return. */

import { base64 } from "./encoding.js";
import { belowBig, type Entropy } from "./entropy.js";
import { Declined } from "./errors.js";
import { type Published, readPublished, reals } from "./policy.js";
import { fields, type Sliding } from "./rules.js";
import { parameters, readScoring, type Scoring } from "./scores.js";
import type { Terms } from "./terms.js";

const STEPS = 2 ** 24;
const WORDS = 2 ** 32;
const SHORTER = 1 - 2 ** -32;
/** What is left of a vector whose squares sum to no more has no direction, and counts as 0. */
const FLAT = 1e-290;
const COINS = 1n << 62n;

/** A bijection of 32-bit words. */
function mix(x: number): number {
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return (x ^ (x >>> 15)) >>> 0;
}

/** A public 32-bit word that depends on its three arguments only. */
export function wordAt(key: bigint, user: number, cell: number): number {
  let x = mix(Number(key & 0xffffffffn) ^ 0x5bd1e995);
  x = mix(x ^ Number(key >> 32n));
  x = mix(x + (user % WORDS));
  x = mix(x ^ Math.floor(user / WORDS));
  return mix(x + cell);
}

const uniformAt = (key: bigint, user: number, cell: number): number =>
  (wordAt(key, user, cell) + 0.5) / WORDS;

/** The public word that rounds the return of this number. */
export const coinOf = (key: bigint, number: number): number => wordAt(key + COINS, number, 0);

/**
 * The public direction of a number, d whole steps of 2^-24: numbers 2p and 2p + 1 have opposite
 * ones, and the pairs of a block of d have orthogonal ones.
 */
export function directionOf(key: bigint, number: number, d: number): number[] {
  const pair = Math.floor(number / 2);
  const block = Math.floor(pair / d);
  const rows: Float64Array[] = [];
  for (let i = 0; i <= pair % d; i++) {
    const row = Float64Array.from({ length: d }, (_, j) => {
      const cell = 2 * (i * d + j);
      const radius = Math.sqrt(-2 * Math.log(uniformAt(key, block, cell)));
      return radius * Math.cos(2 * Math.PI * uniformAt(key, block, cell + 1));
    });
    const along = (other: Float64Array) => row.reduce((sum, one, j) => sum + one * other[j]!, 0);
    for (const before of rows) {
      const share = along(before);
      before.forEach((one, j) => (row[j]! -= share * one));
    }
    const size = along(row);
    rows.push(row.map((one) => (size > FLAT ? one / Math.sqrt(size) : 0)));
  }
  const sign = number % 2 === 0 ? 1 : -1;
  return Array.from(rows.at(-1)!, (one) => Math.trunc(sign * (one * Math.sqrt(d) * SHORTER * STEPS)) + 0);
}

export interface SearchPublication extends Published {
  form: Scoring;
  theta: Float64Array;
  sigma: number;
  key: bigint;
  /** Centre and half width: returns outside are cut. */
  window: [number, number];
}

/** Read the body of an answer to a policy request of a search. */
export async function readSearch(text: string, terms: Terms): Promise<SearchPublication> {
  const [published, body] = await readPublished(text, terms);
  const policy = fields(body["policy"], "policy");
  if (policy["kind"] !== "scored" || policy["shared"]) {
    throw new Declined("a search needs a scored policy with a direction for everybody");
  }
  const form = readScoring(policy["form"], terms);
  const theta = reals(policy["theta"], "theta");
  const { sigma } = policy;
  if (theta.length !== parameters(form) || !theta.every(Number.isFinite)) {
    throw new Declined(`the policy must have ${parameters(form)} parameters`);
  }
  if (typeof sigma !== "number" || !(sigma >= 0)) throw new Declined("sigma must not be negative");
  // JSON.parse rounds whole numbers above 2^53, so the digits are read from the text
  const key = BigInt(/"key":\s*(\d{1,19})\b/.exec(text)?.[1] ?? -1);
  if (Number(key) !== policy["key"] || key >= COINS) throw new Declined("the key cannot be read");
  const [centre, half] = reals(fields(body["context"], "context")["window"], "window");
  return { ...published, form, theta, sigma, key, window: [centre ?? 0, half ?? 0] };
}

/** The parameters that this number plays. */
export function played({ form, theta, sigma, key }: SearchPublication, number: number): Float64Array {
  if (sigma === 0) return theta;
  const z = directionOf(key, number, parameters(form));
  return theta.map((one, j) => one + (sigma * z[j]!) / STEPS);
}

/** To which place of the randomizer a clipped return is rounded, by the public coin. */
export function placeOf(how: Sliding, { key, window }: SearchPublication, number: number, found: number): number {
  const [centre, half] = window;
  const x = half > 0 ? (found - centre) / half : -1;
  const steps = x >= 1 ? STEPS : x > -1 ? Math.floor(x * STEPS + 0.5) : -STEPS;
  const most = how.outputs - how.run;
  // whole numbers below 2^39, hence exact
  const level = (steps + STEPS) * most * 2 ** 8 + 2 * coinOf(key, number) + 1;
  return Math.min(Math.floor(level / 2 ** 33), most);
}

/** One output of the randomizer about a place: a 64-bit little-endian integer in base64. */
export function randomizePlace({ outputs, run, likely, unlikely }: Sliding, place: number, entropy: Entropy): string {
  const inside = BigInt(run) * likely;
  const others = BigInt(outputs - run);
  let sent: number;
  if (belowBig(entropy, inside + others * unlikely) < inside) {
    sent = place + Number(belowBig(entropy, BigInt(run)));
  } else {
    const other = Number(belowBig(entropy, others));
    sent = other < place ? other : other + run;
  }
  const bytes = new Uint8Array(8);
  bytes[0] = sent;
  return base64(bytes);
}

/** The joint layout: the clipped return as a 64-bit little-endian number. */
export function packReturn(found: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, found, true);
  return base64(new Uint8Array(view.buffer));
}
