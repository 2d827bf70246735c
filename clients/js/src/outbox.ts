/** What a device remembers: the terms it joined, the running episode, and the reports it made. */

import type { Answer } from "./cells.js";
import type { Json } from "./encoding.js";
import { InvalidInput } from "./errors.js";
import type { Kept } from "./search_episode.js";
import type { Times } from "./times.js";

/** A step: state and action, and once it is complete the reward in [0, 1] and the next state. */
export type Step = [number, number] | [number, number, number, number];

/** An episode under the policy it began with, as it was fetched. */
export interface Saved {
  taskId: string;
  /** Of the report it leads to; of one that leads to none a name here, or the id of a decoy. */
  reportId: string;
  publication: string;
  times: Times | null;
  /** In which it began, where the task has a rule for people who come back. */
  period?: number | null;
  /** Why nothing of it is reported. */
  silent?: string | null;
  /** Of the ticket, in a search. */
  number?: number;
}

export interface Running extends Saved {
  steps: Step[];
  /** Of a search, in place of steps. */
  kept?: Kept;
}

/** An episode that is over: of its steps only the clipped answer is left. */
export interface Waiting extends Saved {
  /** One cell; the place of a return; or in the joint model the message itself. */
  answer: Answer | number | string;
}

/** What became of a report. */
export interface Delivery {
  id: string;
  taskId: string;
  /**
   * null while it is not sent; "unmade" if it would not have been taken, so nothing was sent;
   * "decoy" of what only looks like a report.
   */
  outcome: string | null;
  reason: string | null;
  detail: string | null;
  /** Unix time before which it is held on the device. */
  due?: number;
}

/** A report that was made, with its bytes until the collector has had the last word. */
export interface Made extends Delivery {
  body: string | null;
  times: Times | null;
}

export interface Joined {
  address: string;
  name: string;
  epsilon: number;
  delta: number;
  newest: number;
  description: { [name: string]: Json };
}

/** Participations that began in a period, and those of them that are reported. */
export interface Visits {
  begun: number;
  reported: number;
}

export interface State {
  version: 2;
  joined: { [taskId: string]: Joined };
  /** Of tasks with a rule: what was done in each period, and the times of the last participation. */
  periods: { [taskId: string]: { [period: string]: Visits } };
  last: { [taskId: string]: Times };
  running: Running[];
  waiting: Waiting[];
  made: Made[];
}

export const nothing = (): State => ({
  version: 2,
  joined: {},
  periods: {},
  last: {},
  running: [],
  waiting: [],
  made: [],
});

/** Bring up what an older program wrote, and refuse what a newer one did. */
export function known(state: { version: number } | undefined): State {
  if (state !== undefined && state.version > 2) {
    throw new InvalidInput("the outbox has another version than this program knows; update it");
  }
  return { ...nothing(), ...state, version: 2 };
}

/**
 * Where the state lies. `change` is atomic: what the function did to the state is written through
 * before the promise is kept, or never happened. `alone` keeps others from the outbox meanwhile.
 */
export interface Store {
  change<T>(edit: (state: State) => T): Promise<T>;
  alone<T>(work: () => Promise<T>): Promise<T>;
}

/** One after the other, within this program. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work);
    this.#last = mine.catch(() => undefined);
    return mine;
  }
}

/** Forgets everything with the program: for simulated people and tests. */
export class MemoryStore implements Store {
  #state = nothing();
  #turns = new Turns();

  async change<T>(edit: (state: State) => T): Promise<T> {
    const draft = structuredClone(this.#state);
    const result = edit(draft);
    this.#state = draft;
    return result;
  }

  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.take(work);
  }
}
