/** One user's episode of a search: of all that happens its return alone is kept. */

import { system, unit } from "./entropy.js";
import { InvalidInput } from "./errors.js";
import { type Action, actionOf, draws } from "./scores.js";
import { played, type SearchPublication } from "./search.js";
import type { Terms } from "./terms.js";

/**
 * What is kept between two steps: how many there were, what they earned together (in digits, since
 * JSON has no infinities), and the action that was asked for last.
 */
export interface Kept {
  steps: number;
  total: string;
  asked: Action | null;
}

/** How an episode reaches the outbox of its device. */
export interface SearchKeeper {
  save(kept: Kept): Promise<void>;
  finish(found: number): Promise<void>;
  over(): Promise<boolean>;
}

/**
 * Ask it how to act, tell it what was earned, and say when the episode has ended. What is kept is
 * saved before the promise is; observations are forgotten at once.
 */
export class SearchEpisode {
  done = false;
  readonly #theta: Float64Array;

  constructor(
    readonly terms: Terms,
    readonly publication: SearchPublication,
    /** Of the ticket; null of an episode without a report, which tries nothing out. */
    number: number | null,
    private kept: Kept,
    private readonly keeper: SearchKeeper,
    /** Why nothing of this episode will be reported; null if a report follows. */
    readonly silent: string | null = null,
  ) {
    this.#theta = number === null ? publication.theta : played(publication, number);
  }

  /** Number of steps that are complete. */
  get step(): number {
    return this.kept.steps;
  }

  /** The number of an action, or a point of the box; asked again, the same. */
  async act(observation: number | readonly number[]): Promise<Action> {
    await this.#running();
    if (this.kept.asked !== null) return this.kept.asked;
    const { form } = this.publication;
    const seen = this.#seen(observation);
    const uniforms = Array.from({ length: draws(form) }, () => unit(system));
    const asked = actionOf(form, this.#theta, seen, uniforms);
    await this.#keep({ ...this.kept, asked });
    return asked;
  }

  /** What the action earned, and whether the episode ended with it. */
  async observe(reward: number, ended = false): Promise<void> {
    await this.#running();
    const { steps, total, asked } = this.kept;
    if (asked === null) {
      throw new InvalidInput("call act first: there is no action this could be the result of");
    }
    const earned = Number(total) + reward;
    if (ended || steps + 1 === this.terms.horizon) await this.#close(earned);
    else await this.#keep({ steps: steps + 1, total: String(earned), asked: null });
  }

  /** The user stops here, which counts as the least return that there can be. */
  async leave(): Promise<void> {
    this.#notDone();
    await this.#close(this.terms.rewardRange[0]);
  }

  async #keep(kept: Kept): Promise<void> {
    await this.keeper.save(kept);
    this.kept = kept;
  }

  #notDone(): void {
    if (this.done) throw new InvalidInput("this episode is over and what it earned is forgotten");
  }

  async #running(): Promise<void> {
    this.#notDone();
    if (await this.keeper.over()) {
      await this.leave();
      throw new InvalidInput(
        "the time of this episode is over: its report, if there is one, is made as if the user had left",
      );
    }
  }

  #seen(observation: number | readonly number[]): readonly number[] {
    const { features, states } = this.publication.form;
    const seen = typeof observation === "number" ? [observation] : observation;
    const [first] = seen;
    const fits =
      features === "one-hot"
        ? seen.length === 1 && Number.isInteger(first) && first! >= 0 && first! < states
        : seen.length === states && seen.every(Number.isFinite);
    if (!fits) throw new InvalidInput(`an observation is ${features === "one-hot" ? "one of" : ""} ${states} numbers`);
    return seen;
  }

  /** The clipped return; what is not a number counts as the least one. */
  async #close(earned: number): Promise<void> {
    const [low, high] = this.terms.rewardRange;
    await this.keeper.finish(Number.isNaN(earned) ? low : Math.min(Math.max(earned, low), high));
    this.kept = { steps: 0, total: "0", asked: null };
    this.done = true;
  }
}
