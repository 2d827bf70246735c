/** From an episode to the bytes that are sent: the clipped answer, and the report made of it. */

import { type Answer, answer, coin, packTrajectory, question, randomize, type Trajectory } from "./cells.js";
import { spelt } from "./encoding.js";
import { system } from "./entropy.js";
import type { Waiting } from "./outbox.js";
import type { Publication, Published } from "./policy.js";
import { packReturn, placeOf, randomizePlace, type SearchPublication } from "./search.js";
import type { Terms } from "./terms.js";

/** All that stays of an episode until its report is due: one cell, or in the joint model all of it. */
export async function answerOf(
  terms: Terms,
  publication: Publication,
  id: string,
  lived: Trajectory,
): Promise<Answer | string> {
  if (terms.model === "joint") return packTrajectory(lived);
  return answer(terms.rules, question(terms.rules, publication, await coin(terms.taskId, id)), lived);
}

/** Of a search: the place that the clipped return is rounded to, or in the joint model itself. */
export const answerOfSearch = (
  { rules: { sliding } }: Terms,
  publication: SearchPublication,
  number: number,
  found: number,
): number | string => (sliding ? placeOf(sliding, publication, number, found) : packReturn(found));

const DECOY = "0".repeat(64);

/**
 * The bytes that are sent, however often: noise is added here. A decoy names no rules; a report of a
 * search names nothing, since its ticket says the rest.
 */
export function bodyOf(
  terms: Terms,
  publication: Published,
  id: string,
  given: Waiting["answer"],
  decoy = false,
): string {
  const { rules, ticketed } = terms;
  const message =
    typeof given === "string"
      ? given
      : typeof given === "number"
        ? randomizePlace(rules.sliding!, given, system)
        : randomize(rules, given, system);
  if (ticketed) return spelt({ reports: [{ id, message }] });
  const { version, hash, chained } = publication;
  const report = { id, version, message, rules: decoy ? DECOY : terms.rulesHash };
  const named = chained ? { ...report, publication: hash } : report;
  return spelt({ task_id: terms.taskId, reports: [named] });
}
