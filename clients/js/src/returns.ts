/**
 * People who come back: what a participation that begins now is, by the rule of its task. Nothing
 * here looks at what happens in an episode: under the rule "first" the first one that begins in a
 * period is reported, whatever happens in it, and the others act on policies and report nothing.
 */

import type { Json } from "./encoding.js";
import { Declined, TookPart } from "./errors.js";
import { fields, whole } from "./rules.js";
import { at, type Times } from "./times.js";

export interface Rule {
  /** Participations of one person in a period, at most; null for any number. */
  times: number | null;
  /** Which of them are reported; null where there is only one. */
  teaches: "first" | "lifetime" | "every" | null;
  /** Seconds from the beginning of one to that of the next, at least. */
  apart: number;
  /** Seconds after which budgets are renewed; 0 for never. */
  period: number;
}

/** What a device did before, in a task with a rule. */
export interface Past {
  /** Participations that began in the period that is asked about, and those that are reported. */
  begun: number;
  reported: number;
  /** Of how many periods something is reported, in all. */
  periods: number;
  /** Times of the last participation. */
  last: Times | null;
}

/** A participation that begins now; `silent` says why nothing of it is reported. */
export interface Turn {
  period: number;
  silent: string | null;
}

/** The last two are of no concern to a device. */
const NAMES = ["times", "teaches", "apart", "period", "attendance", "often"];

function seconds(value: Json | undefined, what: string): number {
  if (typeof value !== "number" || !(value >= 0)) throw new Declined(`${what} must be seconds`);
  return value;
}

/** The rule of a task, declined if it leaves something open or says what is not known here. */
export function readRule(value: Json | undefined): Rule | null {
  if (value === undefined) return null;
  const given = fields(value, "rule");
  const unknown = Object.keys(given).find((name) => !NAMES.includes(name));
  if (unknown !== undefined) throw new Declined(`a rule of participations has no ${unknown}`);
  const { times: most = 1, teaches: asked = null } = given;
  const times = most === null ? null : whole(most, "participations", 1);
  const teaches = ([null, "first", "lifetime", "every"] as const).find((known) => known === asked);
  const open = times !== 1 && teaches === null;
  if (teaches === undefined || open || (times === null && teaches === "every")) {
    throw new Declined("the rule of participations does not say which of them teach");
  }
  const [apart, period] = [seconds(given["apart"] ?? 0, "apart"), seconds(given["period"] ?? 0, "period")];
  return { times, teaches, apart, period };
}

/** Participations of a period that are paid for in full. */
export const counted = ({ times, teaches }: Rule): number =>
  teaches === "first" || teaches === "lifetime" ? 1 : times!;

export const periodAt = ({ period }: Rule, moment: number): number =>
  period ? Math.floor(moment / period) : 0;

const said = (unix: number): string => new Date(1000 * unix).toISOString();

/** What a participation is that begins now, or why none does. */
export function turn(rule: Rule, past: Past, now: number, tooMuch: string | null): Turn {
  const { times, teaches, apart, last } = { ...rule, ...past };
  const following = last === null ? now : at(last, last.begun + apart, now);
  if (now < following) {
    throw new TookPart(
      `participations begin at least ${apart / 3600} hours apart; the next one may begin at ` +
        said(following),
    );
  }
  const period = periodAt(rule, now);
  if (times !== null && past.begun >= times) {
    const often = times === 1 ? "once" : `up to ${times} times`;
    const [within, next] = rule.period
      ? [" in a period", `; the next period begins at ${said((period + 1) * rule.period)}`]
      : ["", ""];
    throw new TookPart(`one may take part ${often}${within}, and this device has done so${next}`);
  }
  if (teaches === "first" && past.begun) {
    return { period, silent: "only the first participation is reported, and this is a later one" };
  }
  const broke = past.periods > 0 && past.reported === 0 && tooMuch !== null;
  return { period, silent: broke ? `nothing of this period is reported: ${tooMuch}` : null };
}
