/** A published policy: what to do in every state at every step. */

import { fromBase64, hex, type Json, sha256, utf8 } from "./encoding.js";
import { type Entropy, unit } from "./entropy.js";
import { Declined } from "./errors.js";
import { fields, whole } from "./rules.js";
import type { Terms } from "./terms.js";

/** What is said of every policy, whatever its kind. */
export interface Published {
  version: number;
  /** SHA-256 of the body as it was received: what a report calls it. */
  hash: string;
  /** Whether it names the one before it, and reports therefore name it by its hash. */
  chained: boolean;
}

/** Of a table. */
export interface Publication extends Published {
  /** Cumulative shares of the questions, where they were published. */
  questions: Float64Array | undefined;
  /** The action for a state at a step; drawn where the policy is stochastic. */
  act(step: number, state: number, entropy: Entropy): number;
}

/** Real numbers as they travel: little-endian bytes in base64. */
export function reals(value: Json | undefined, what: string): Float64Array {
  const given = fields(value, what);
  if (given["dtype"] !== "<f8" || typeof given["data"] !== "string") {
    throw new Declined(`${what} must hold real numbers`);
  }
  const raw = fromBase64(given["data"]);
  const view = new DataView(raw.buffer);
  return Float64Array.from({ length: raw.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

/** Whole numbers as they travel; those above 2^53 mean nothing to anybody here. */
export function integers(value: Json | undefined, what: string): number[] {
  const { dtype, data } = fields(value, what);
  if (dtype !== "<i8" || typeof data !== "string") throw new Declined(`${what} must hold whole numbers`);
  const view = new DataView(fromBase64(data).buffer);
  return Array.from({ length: view.byteLength / 8 }, (_, i) => Number(view.getBigInt64(8 * i, true)));
}

/** Flags as they travel: one byte each. */
export function flags(value: Json | undefined): boolean[] | undefined {
  if (value === undefined) return undefined;
  const { dtype, data } = fields(value, "flags");
  if (dtype !== "|b1" || typeof data !== "string") throw new Declined("flags must be flags");
  return Array.from(fromBase64(data), (byte) => byte === 1);
}

/** Read the body of an answer to a policy request; refused if it is of another task. */
export async function readPublished(text: string, terms: Terms): Promise<[Published, { [name: string]: Json }]> {
  const body = fields(JSON.parse(text) as Json, "the policy");
  if (body["task_id"] !== terms.taskId) throw new Declined("this is a policy of another task");
  const version = whole(body["version"], "version", 0);
  return [{ version, hash: hex(await sha256(utf8(text))), chained: "previous" in body }, body];
}

export async function readPublication(text: string, terms: Terms): Promise<Publication> {
  const [published, body] = await readPublished(text, terms);
  const context = fields(body["context"], "context");
  const asked = context["questions"];
  return {
    ...published,
    questions: asked === undefined ? undefined : reals(asked, "questions"),
    act: acting(fields(body["policy"], "policy"), terms),
  };
}

function acting(policy: { [name: string]: Json }, terms: Terms): Publication["act"] {
  const { horizon: H, states: S, actions: A } = terms;
  if (policy["kind"] === "table" && Array.isArray(policy["actions"])) {
    const table = (policy["actions"] as Json[][]).map((row) =>
      row.map((action) => whole(action, "an action", 0, A - 1)),
    );
    if (table.length !== H || table.some((row) => row.length !== S)) {
      throw new Declined(`the policy must have ${H} rows of ${S} actions`);
    }
    for (const row of table) row.forEach((action, s) => allowed(terms, s, action));
    return (step, state) => table[step]![state]!;
  }
  if (policy["kind"] === "stochastic") {
    const chances = reals(policy["probabilities"], "probabilities");
    if (chances.length !== H * S * A) throw new Declined(`the policy must have ${H * S * A} chances`);
    chances.forEach((chance, i) => {
      if (chance > 0) allowed(terms, Math.floor(i / A) % S, i % A);
    });
    return (step, state, entropy) => {
      const first = (step * S + state) * A;
      let sum = 0;
      const sums = Array.from(chances.subarray(first, first + A), (chance) => (sum += chance));
      const u = unit(entropy) * sum;
      const found = sums.findIndex((share) => share > u);
      return found < 0 ? A - 1 : found;
    };
  }
  throw new Declined("the kind of the policy must be table or stochastic");
}

/** A policy that plays what may not be played is not followed. */
function allowed(terms: Terms, state: number, action: number): void {
  if (!terms.terminal[state] && terms.allowed && !terms.allowed[state * terms.actions + action]) {
    throw new Declined(`the policy plays action ${action} in state ${state}, which is not allowed`);
  }
}
