/** The device: joins a task on terms it has checked, and reports once, the same bytes however often. */

import { hex, hmac, utf8 } from "./encoding.js";
import { system, unit } from "./entropy.js";
import { Episode, type Keeper } from "./episode.js";
import { Declined, InvalidInput, NotTaken, Refused, TookPart, Unreachable } from "./errors.js";
import type { Delivery, Joined, Made, Running, Saved, State, Store, Visits, Waiting } from "./outbox.js";
import { readPublication, readPublished } from "./policy.js";
import { answerOf, answerOfSearch, bodyOf } from "./report.js";
import { type Past, periodAt, type Turn, turn } from "./returns.js";
import { fields, whole } from "./rules.js";
import { readSearch } from "./search.js";
import { type Kept, SearchEpisode } from "./search_episode.js";
import { readTerms, type Terms } from "./terms.js";
import { at, held, noteClock, over, type Times } from "./times.js";
import { Api } from "./transport.js";

const LATER = ["not_open", "paused", "unknown_task"];
const UNMADE = "unmade";
const DECOY = "decoy";
const OUTCOMES = ["accepted", "duplicate", "stale", "invalid", "refused", DECOY];

export interface DeviceOptions {
  /**
   * The most that the app allows for everything in this outbox: all tasks added up, anew for every
   * period of which something is reported. Periods that do not fit any more are not reported.
   */
  maxEpsilon: number;
  maxDelta?: number;
  /** "joint" says that the user trusts the operator with raw trajectories. */
  model?: "local" | "joint";
  /** The device's own token, or the one that all share. */
  token?: string | null;
  /** Unix time in seconds. */
  clock?: () => number;
  /**
   * Whether episodes that are not reported end with an upload that looks like a report, of a local
   * task whose rule is that the first one is. It hides from the network which participations are
   * reported, not from the collector, who can tell a decoy and counts nothing.
   */
  decoys?: boolean;
}

type Obstacle = [reason: string, message: string];

export class Device {
  readonly #api: Api;
  readonly #options: Required<DeviceOptions>;
  #terms: Terms | null = null;

  /** `collector` is an address, or an Api that several devices share. */
  constructor(
    collector: string | Api,
    private readonly store: Store,
    options: DeviceOptions,
  ) {
    this.#api = collector instanceof Api ? collector : new Api(collector);
    const clock = () => Date.now() / 1000;
    this.#options = { maxDelta: 1e-3, model: "local", token: null, clock, decoys: false, ...options };
  }

  /** Fetch the task and check it; declined terms throw. Nothing is joined yet. */
  async terms(): Promise<Terms> {
    const terms = await readTerms(await this.#api.task());
    if (this.#terms !== null && terms.taskId !== this.#terms.taskId) {
      throw new Declined("the collector's task changed while this device was running; start anew");
    }
    await this.#agree(terms);
    return (this.#terms = terms);
  }

  /**
   * Join and start an episode under the newest policy, or go on with the one that runs. Whether a
   * report follows is fixed here: `episode.silent` says why if none does.
   */
  begin(): Promise<Episode> {
    return this.store.alone(() => this.#begin(false)) as Promise<Episode>;
  }

  /** The same of a task that is a policy search: be counted, and start an episode. */
  search(): Promise<SearchEpisode> {
    return this.store.alone(() => this.#begin(true)) as Promise<SearchEpisode>;
  }

  /**
   * Send what is due and unsettled. A report that is held says until when. One that is due is made
   * if the collector says that it would be taken; bytes once made are sent as they are until the
   * collector answers. If it cannot be reached this throws, and everything stays as it is.
   */
  send(): Promise<Delivery[]> {
    return this.store.alone(() => this.#send());
  }

  /** When to call `send` next, in unix time of the clock; null if nothing waits. No network. */
  async due(): Promise<number | null> {
    const now = await this.#look();
    const { running, waiting, made } = await this.#mine();
    const all = [...waiting, ...running.filter((one) => one.times), ...made.filter((one) => one.body)];
    const moments = all.map(({ times }) => (times ? Math.max(now, at(times, times.due, now)) : now));
    return moments.length ? Math.min(...moments) : null;
  }

  async #begin(search: boolean): Promise<Episode | SearchEpisode> {
    const fetched = await this.#find();
    const now = await this.#endOverdue();
    const mine = await this.#mine();
    const [running] = mine.running;
    if (running !== undefined) {
      const terms = await this.#joined(running.taskId);
      refuseOther(terms, search);
      return this.#episode(terms, running);
    }
    for (const times of [...mine.last, ...[...mine.made, ...mine.waiting].map((one) => one.times)]) {
      if (times !== null && !over(times, now)) {
        const ends = new Date(1000 * at(times, times.ends, now)).toISOString();
        throw new TookPart(
          `this device has taken part, and nothing is asked or begun before ${ends}, when the ` +
            "time of the episode is over: it would show who stopped early",
        );
      }
    }
    const terms = fetched ?? (await this.terms());
    refuseOther(terms, search);
    const begins = await this.#turn(terms, now);
    const silent = begins?.silent ?? null;
    if (silent === null && (terms.state === "paused" || terms.state === "closed")) {
      throw new NotTaken(terms.state, `the task ${terms.name} is ${terms.state}`);
    }
    await this.#join(terms);
    if (begins === null) await this.store.change((state) => refuseMore(state, terms));
    const ids = await this.#ids(terms, begins);
    const reportId = await this.store.change((state) => ids.find((id) => !uses(state, id))!);
    if (silent === null) refuseClosing(terms, now);
    const ticket = search && silent === null ? await this.#ticket(terms, reportId) : undefined;
    const publication = await this.#api.policy(ticket?.version);
    const { version, hash } = await (search ? readSearch : readPublication)(publication, terms);
    if (ticket !== undefined && version !== ticket.version) {
      throw new Declined("the collector sent another policy than the one of the ticket");
    }
    await this.store.change((state) => {
      const joined = state.joined[terms.taskId]!;
      if (version < joined.newest) {
        throw new Declined(
          `the collector offers policy ${version}, but this device has seen ${joined.newest}; it ` +
            "may have been restored from an old copy",
        );
      }
      joined.newest = version;
    });
    if (!search && (silent === null || this.#hasDecoy(terms))) {
      const obstacle = await this.#obstacle(terms, version, hash);
      const vain = obstacle !== null && !LATER.includes(obstacle[0]);
      if (silent === null && vain) throw new NotTaken(...obstacle);
    }
    const { taskId } = terms;
    const times = terms.duration ? drawn(now, terms) : null;
    const saved = await this.store.change((state) => {
      const period = begins?.period ?? null;
      const running: Running = { taskId, reportId, publication, times, steps: [], period, silent };
      if (search) running.kept = { steps: 0, total: "0", asked: null };
      if (ticket !== undefined) running.number = ticket.number;
      state.running.push(running);
      if (begins !== null) {
        const visits = visitsOf(state, taskId, begins.period);
        visits.begun += 1;
        if (silent === null) visits.reported += 1;
        state.last[taskId] = times ?? { begun: now, ends: now, due: now, behind: null };
      }
      return running;
    });
    return this.#episode(terms, saved);
  }

  /** Be counted: the policy's version, and the number that decides the direction. */
  async #ticket({ taskId, rulesHash }: Terms, id: string): Promise<{ version: number; number: number }> {
    const said = fields(await this.#api.ticket(taskId, id, rulesHash, this.#options.token), "the answer");
    if (said["number"] === null) {
      throw new NotTaken(String(said["reason"]).slice(0, 60), String(said["message"]).slice(0, 500));
    }
    return { version: whole(said["version"], "version", 0), number: whole(said["number"], "number", 0) };
  }

  /** What a participation is that begins now, of a task with a rule for those who return. */
  async #turn(terms: Terms, now: number): Promise<Turn | null> {
    const { rule, taskId } = terms;
    if (rule === null) return null;
    const past = await this.store.change((state): Past => {
      const { begun, reported } = state.periods[taskId]?.[periodAt(rule, now)] ?? { begun: 0, reported: 0 };
      return { begun, reported, periods: paid(state, taskId), last: state.last[taskId] ?? null };
    });
    return turn(rule, past, now, await this.#tooMuch(terms, past.periods + 1));
  }

  #hasDecoy({ rule, model, ticketed }: Terms): boolean {
    return this.#options.decoys && rule?.teaches === "first" && model === "local" && !ticketed;
  }

  /** Ids that the next report may have: they follow from the token, or one is drawn. */
  async #ids(terms: Terms, begins: Turn | null): Promise<string[]> {
    if (!terms.assigned || (begins !== null && begins.silent !== null)) return [hex(system(16))];
    const { token } = this.#options;
    if (token === null) {
      throw new Declined("ids of this task's reports follow from a token, and there is none");
    }
    const seat = await hmac(utf8(token), `tacit ids of ${terms.taskId}`);
    const length = terms.participations; // every period has as many ids of its own
    const numbers = Array.from({ length }, (_, k) => (begins?.period ?? 0) * length + k);
    return Promise.all(numbers.map(async (k) => hex((await hmac(seat, String(k))).subarray(0, 16))));
  }

  async #episode(terms: Terms, saved: Running): Promise<Episode | SearchEpisode> {
    const { reportId, number, kept, silent = null } = saved;
    const save = (lived: Pick<Running, "steps"> | Pick<Running, "kept">) =>
      this.store.change((state) => {
        const mine = state.running.find((one) => one.reportId === reportId);
        if (mine === undefined) throw new InvalidInput("this episode is over");
        Object.assign(mine, lived);
      });
    const isOver = async () => {
      const now = await this.#look();
      const { running } = await this.#mine();
      return over(running.find((one) => one.reportId === reportId)?.times ?? null, now);
    };
    if (kept !== undefined) {
      const publication = await readSearch(saved.publication, terms);
      const answer = (found: number) =>
        number === undefined ? null : answerOfSearch(terms, publication, number, found);
      const keeper = {
        save: (kept: Kept) => save({ kept }),
        finish: (found: number) => this.#end(terms, saved, answer(found)),
        over: isOver,
      };
      return new SearchEpisode(terms, publication, number ?? null, kept, keeper, silent);
    }
    const publication = await readPublication(saved.publication, terms);
    const keeper: Keeper = {
      save: (steps) => save({ steps }),
      finish: async (lived) => this.#end(terms, saved, await answerOf(terms, publication, reportId, lived)),
      over: isOver,
    };
    return new Episode(terms, publication, saved.steps, keeper, silent);
  }

  /**
   * Statistic and clipping are done: of the steps only the answer stays, until its report is due. Of
   * an episode that is not reported nothing stays, or a decoy: an answer of nothing lived.
   */
  async #end(terms: Terms, saved: Saved, made: Waiting["answer"] | null): Promise<void> {
    await this.store.change((state) => {
      if (terms.rule === null) refuseMore(state, terms); // else it was counted when it began
      const at = state.running.findIndex((one) => one.reportId === saved.reportId);
      if (at < 0) throw new InvalidInput("this episode is over: its steps were forgotten before");
      const [{ steps: _, kept: __, ...ended }] = state.running.splice(at, 1) as [Running];
      const stays = !ended.silent || this.#hasDecoy(terms);
      if (stays && made !== null) state.waiting.push({ ...ended, answer: made });
    });
  }

  async #send(): Promise<Delivery[]> {
    await this.#find();
    const now = await this.#endOverdue();
    const later: Delivery[] = [];
    for (const waiting of (await this.#mine()).waiting) {
      const { reportId: id, taskId, times } = waiting;
      const unsent: Delivery = { id, taskId, outcome: null, reason: null, detail: null };
      if (times !== null && held(times, now)) later.push({ ...unsent, due: at(times, times.due, now) });
      else later.push(...(await this.#make(waiting, unsent)));
    }
    for (const made of (await this.#mine()).made) {
      if (made.body === null || held(made.times, now)) continue;
      await this.#joined(made.taskId); // declined if no longer allowed
      const said = await this.#upload(made, made.body);
      const decoy = made.outcome === DECOY; // forgotten, whatever was answered
      if (decoy) later.push({ ...strip(made), ...said, outcome: DECOY });
      await this.store.change((state) => {
        if (decoy) return void (state.made = state.made.filter((one) => one.id !== made.id));
        const stored = state.made.find((one) => one.id === made.id)!;
        const final = !LATER.includes(said.reason ?? "");
        Object.assign(stored, said, final ? { body: null } : {});
      });
    }
    const { made } = await this.#mine();
    return [...made.map(strip), ...later];
  }

  /** Randomize an answer if its report would be taken now: the bytes replace the answer. */
  async #make(waiting: Waiting, unsent: Delivery): Promise<Delivery[]> {
    const terms = await this.#joined(waiting.taskId);
    const [publication] = await readPublished(waiting.publication, terms);
    const obstacle = await this.#obstacle(terms, publication.version, publication.hash);
    if (obstacle !== null && LATER.includes(obstacle[0])) {
      return [{ ...unsent, reason: obstacle[0], detail: obstacle[1] }];
    }
    await this.store.change((state) => {
      const at = state.waiting.findIndex((one) => one.reportId === waiting.reportId);
      if (at < 0) throw new InvalidInput("this report was made before");
      const [{ answer: given, times, period, silent }] = state.waiting.splice(at, 1) as [Waiting];
      const made: Made = { ...unsent, body: null, times };
      if (obstacle === null) {
        made.body = bodyOf(terms, publication, waiting.reportId, given, !!silent);
        if (silent) made.outcome = DECOY;
      } else if (silent) {
        return;
      } else {
        Object.assign(made, { outcome: UNMADE, reason: obstacle[0], detail: obstacle[1] });
        if (terms.rule !== null) visitsOf(state, terms.taskId, period!).reported -= 1;
      }
      state.made = [...state.made.filter((one) => one.id !== made.id), made];
    });
    return [];
  }

  /** Why the collector would not take a report under a policy now. */
  async #obstacle(terms: Terms, version: number, hash: string): Promise<Obstacle | null> {
    let said;
    try {
      said = fields(await this.#api.taking(version), "the answer");
    } catch (error) {
      if (error instanceof Refused && error.code === "unknown_task") return [error.code, error.message];
      if (error instanceof Declined || (error instanceof Refused && error.code === "not_found")) {
        throw new Unreachable(
          "the collector does not say whether it would take a report; nothing was randomized or sent",
        );
      }
      throw error;
    }
    if (said["task_id"] !== terms.taskId) {
      return ["unknown_task", `another task than ${terms.name} is served there now`];
    }
    if (said["taken"] !== true) {
      return [String(said["reason"]).slice(0, 60), String(said["message"]).slice(0, 500)];
    }
    if (said["publication"] !== hash) {
      return ["stale", "the collector was restored since from a copy without this policy"];
    }
    return null;
  }

  async #upload(unsent: Delivery, body: string): Promise<Partial<Delivery>> {
    let outcomes;
    try {
      outcomes = fields(await this.#api.upload(body, this.#options.token), "the answer")["outcomes"];
    } catch (error) {
      if (!(error instanceof Refused) || !LATER.includes(error.code)) throw error;
      return { outcome: "refused", reason: error.code, detail: error.message };
    }
    const one = Array.isArray(outcomes) ? fields(outcomes[0], "an outcome") : {};
    const { id, outcome, reason, detail } = one;
    if (id !== unsent.id || typeof outcome !== "string" || !OUTCOMES.includes(outcome)) {
      throw new Unreachable("the collector's answer to a report cannot be read");
    }
    const told = (text: unknown, longest: number) =>
      text === null || text === undefined ? null : String(text).slice(0, longest);
    return { outcome, reason: told(reason, 60), detail: told(detail, 500) };
  }

  /** Decline terms that the app does not allow. */
  async #agree(terms: Terms): Promise<void> {
    if (terms.model === "joint" && this.#options.model !== "joint") {
      throw new Declined(
        `the task ${terms.name} asks for raw trajectories (joint model); pass model: "joint" if ` +
          "the user trusts the operator with them",
      );
    }
    const periods = await this.store.change((state) => paid(state, terms.taskId));
    const tooMuch = await this.#tooMuch(terms, Math.max(1, periods));
    if (tooMuch !== null) throw new Declined(tooMuch);
  }

  /** Why the app does not allow a task that is paid for in so many periods, if it does not. */
  async #tooMuch(terms: Terms, periods: number): Promise<string | null> {
    const others = await this.store.change((state) =>
      Object.entries(state.joined).flatMap(([id, joined]) =>
        id === terms.taskId ? [] : [{ joined, periods: Math.max(1, paid(state, id)) }],
      ),
    );
    for (const [name, most] of [
      ["epsilon", this.#options.maxEpsilon],
      ["delta", this.#options.maxDelta],
    ] as const) {
      const spent = others.reduce((sum, one) => sum + one.periods * one.joined[name], 0);
      if (!(spent + periods * terms[name] <= most * (1 + 1e-9))) {
        const once = terms.rule !== null && terms.rule.period > 0 ? " in one period" : "";
        const each = periods > 1 ? ` in each of ${periods} periods` : once;
        return (
          `the task ${terms.name} costs ${name} ${terms[name]}${each} beside ${spent} for other ` +
          `tasks, but the app allows ${most}`
        );
      }
    }
    return null;
  }

  async #join(terms: Terms): Promise<void> {
    const { address } = this.#api;
    await this.store.change(({ joined }) => {
      for (const [id, other] of Object.entries(joined)) {
        if (other.name === terms.name && other.address === address && id !== terms.taskId) {
          throw new Declined(
            `the terms of ${terms.name} at ${address} have changed since this device joined; a ` +
              "task with new terms needs a new name and the user's consent",
          );
        }
      }
      const { name, epsilon, delta, description } = terms;
      const fresh: Joined = { address, name, epsilon, delta, newest: -1, description };
      joined[terms.taskId] = { ...fresh, ...joined[terms.taskId], description };
    });
  }

  /** Terms that were joined, if the app still allows them. */
  async #joined(taskId: string): Promise<Terms> {
    const { description } = await this.store.change((state) => state.joined[taskId]!);
    const terms = await readTerms(description);
    await this.#agree(terms);
    return terms;
  }

  /** The terms, fetched only if nothing is known under this address: a task may have moved. */
  async #find(): Promise<Terms | null> {
    const { address } = this.#api;
    const known = await this.store.change(({ joined }) =>
      Object.values(joined).some((one) => one.address === address),
    );
    if (known) return null;
    const terms = await this.terms();
    await this.store.change(({ joined }) => {
      const moved = joined[terms.taskId];
      if (moved !== undefined) moved.address = address;
    });
    return terms;
  }

  /** What the clock shows, and a note of it if it was set back. */
  async #look(): Promise<number> {
    const now = this.#options.clock();
    await this.store.change(({ running, waiting, made, last }) => {
      for (const { times } of [...running, ...waiting, ...made]) noteClock(times, now);
      for (const times of Object.values(last)) noteClock(times, now);
    });
    return now;
  }

  /** End episodes whose time is over; what the clock shows. */
  async #endOverdue(): Promise<number> {
    const now = await this.#look();
    for (const running of (await this.#mine()).running) {
      if (over(running.times, now)) {
        await (await this.#episode(await this.#joined(running.taskId), running)).leave();
      }
    }
    return now;
  }

  /** What the outbox holds for this collector. */
  #mine(): Promise<Pick<State, "running" | "waiting" | "made"> & { last: Times[] }> {
    const { address } = this.#api;
    return this.store.change(({ joined, running, waiting, made, last }) => {
      const mine = ({ taskId }: { taskId: string }) => joined[taskId]?.address === address;
      return structuredClone({
        running: running.filter(mine),
        waiting: waiting.filter(mine),
        made: made.filter(mine),
        last: Object.entries(last).flatMap(([taskId, times]) => (mine({ taskId }) ? [times] : [])),
      });
    });
  }
}

/** The moments of an episode that begins: its delay is uniform, whatever will happen in it. */
function drawn(begun: number, { duration, delay }: Terms): Times {
  const ends = begun + duration;
  return { begun, ends, due: ends + delay * unit(system), behind: null };
}

const strip = ({ body: _, times: __, ...delivery }: Made): Delivery => delivery;

/** What was done in a period of a task, to be changed. */
const visitsOf = (state: State, taskId: string, period: number): Visits =>
  ((state.periods[taskId] ??= {})[period] ??= { begun: 0, reported: 0 });

/** Of how many periods something is reported. */
const paid = (state: State, taskId: string): number =>
  Object.values(state.periods[taskId] ?? {}).filter((one) => one.reported > 0).length;

/** Tables and searches ask for other things: their episodes have other methods. */
function refuseOther({ name, ticketed }: Terms, search: boolean): void {
  if (ticketed === search) return;
  throw new InvalidInput(`the task ${name} is ${ticketed ? "a search: call search()" : "no search: call begin()"}`);
}

function refuseClosing({ closes, duration, delay }: Terms, now: number): void {
  if (closes !== null && now + duration + delay >= closes) {
    throw new NotTaken("closed", "the task closes before the report would be due");
  }
}

/** Every report counts that was made or will be, whatever became of it. */
function refuseMore(state: State, { taskId, participations }: Terms): void {
  const made = state.made.filter((one) => one.taskId === taskId && one.outcome !== UNMADE);
  const waiting = state.waiting.filter((one) => one.taskId === taskId);
  if (made.length + waiting.length >= participations) {
    const times = participations === 1 ? "once" : `${participations} times`;
    throw new TookPart(
      `the guarantee covers a user who takes part ${times}, and this device has done so`,
    );
  }
}

const uses = (state: State, id: string): boolean =>
  [...state.running, ...state.waiting].some((one) => one.reportId === id) ||
  state.made.some((one) => one.id === id && one.outcome !== UNMADE);
