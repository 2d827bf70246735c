/** One user's episode under one published policy; in the local model its raw steps never leave the device. */

import type { Trajectory } from "./cells.js";
import { system } from "./entropy.js";
import { InvalidInput } from "./errors.js";
import type { Step } from "./outbox.js";
import type { Publication } from "./policy.js";
import type { Terms } from "./terms.js";

/** How an episode reaches the outbox of its device. */
export interface Keeper {
  save(steps: Step[]): Promise<void>;
  finish(lived: Trajectory): Promise<void>;
  over(): Promise<boolean>;
}

/**
 * Ask it how to act, tell it what happened. Every word is saved before the promise is kept, so an
 * app may be closed between two steps. With the last step, in a terminal state, when the user
 * leaves, or when the time of the episode is over, the steps are forgotten but for the answer; of
 * an episode that is not reported nothing stays.
 */
export class Episode {
  done = false;

  constructor(
    readonly terms: Terms,
    readonly publication: Publication,
    private steps: Step[],
    private readonly keeper: Keeper,
    /** Why nothing of this episode will be reported; null if a report follows. */
    readonly silent: string | null = null,
  ) {}

  /** Number of steps that are complete. */
  get step(): number {
    return this.steps.filter((step) => step.length === 4).length;
  }

  /** The action for the state the user is in, by number or by name. */
  async act(state: number | string): Promise<number> {
    await this.#running();
    const s = this.#state(state);
    const last = this.steps.at(-1);
    const open = last?.length === 2;
    if (open && last[0] === s) return last[1]; // asked again: the same answer, also if drawn
    const before = open ? this.steps.slice(0, -1) : this.steps;
    const action = this.publication.act(before.length, s, system);
    await this.#keep([...before, [s, action]]);
    return action;
  }

  /** What the action led to; the reward is mapped from the declared range to [0, 1], clipped. */
  async observe(reward: number, nextState: number | string): Promise<void> {
    await this.#running();
    const last = this.steps.at(-1);
    if (last?.length !== 2) {
      throw new InvalidInput("call act first: there is no action this could be the result of");
    }
    const [low, high] = this.terms.rewardRange;
    const share = Math.min(Math.max((reward - low) / (high - low), 0), 1) || 0;
    const next = this.#state(nextState);
    const steps: Step[] = [...this.steps.slice(0, -1), [last[0], last[1], share, next]];
    if (steps.length === this.terms.horizon || this.terms.terminal[next]) await this.#close(steps);
    else await this.#keep(steps);
  }

  /** The user stops here: the rest counts as spent in the absorbing state, without reward. */
  async leave(): Promise<void> {
    this.#notDone();
    await this.#close(this.steps);
  }

  async #keep(steps: Step[]): Promise<void> {
    await this.keeper.save(steps);
    this.steps = steps;
  }

  #notDone(): void {
    if (this.done) throw new InvalidInput("this episode is over and its steps are forgotten");
  }

  async #running(): Promise<void> {
    this.#notDone();
    if (await this.keeper.over()) {
      await this.#close(this.steps);
      throw new InvalidInput(
        "the time of this episode is over: its report, if there is one, is made from the steps " +
          "so far, as if the user had left",
      );
    }
  }

  #state(state: number | string): number {
    const found = typeof state === "string" ? this.terms.stateNames?.indexOf(state) ?? -1 : state;
    if (!Number.isInteger(found) || found < 0 || found >= this.terms.states) {
      throw new InvalidInput(`there is no state ${JSON.stringify(state)} in this task`);
    }
    return found;
  }

  async #close(steps: Step[]): Promise<void> {
    await this.keeper.finish(this.#padded(this.silent === null ? steps : []));
    this.steps = [];
    this.done = true;
  }

  /** All H steps: those lived through, then how an episode goes on that has ended. */
  #padded(steps: Step[]): Trajectory {
    const { horizon: H, absorbingState, terminal, endReward } = this.terms;
    const states = Array<number>(H + 1).fill(absorbingState);
    const actions = Array<number>(H).fill(0);
    const rewards = Array<number>(H).fill(0);
    steps.forEach(([state, action, reward, next], h) => {
      states[h] = state;
      actions[h] = action;
      if (reward !== undefined) [rewards[h], states[h + 1]] = [reward, next!];
    });
    const end = steps.at(-1)?.[3];
    if (end !== undefined && terminal[end]) {
      states.fill(end, steps.length);
      rewards.fill(endReward, steps.length);
    }
    for (let h = steps.length; h < H; h++) {
      actions[h] = this.publication.act(h, states[h]!, system);
    }
    return { states, actions, rewards };
  }
}
