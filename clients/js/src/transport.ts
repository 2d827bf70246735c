/** Talking to the collector over HTTP: bounded, patient, and never in plain text to strangers. */

import { type Json, spelt } from "./encoding.js";
import { Declined, Refused, Unreachable } from "./errors.js";

const AGAIN = new Set([429, 500, 502, 503, 504]);
const LONGEST_PAUSE = 60;
const TIMEOUT = 10_000;

export interface ApiOptions {
  /** How often a request is tried before the collector counts as unreachable. */
  attempts?: number;
  /** Waits that many seconds between two attempts. */
  pause?: (seconds: number) => Promise<void>;
  fetch?: typeof fetch;
}

const sleep = (seconds: number) => new Promise<void>((done) => setTimeout(done, 1000 * seconds));

/** The address without a slash at its end, if what is sent there cannot be read on the way. */
export function safeAddress(address: string): string {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    throw new Declined(`${address} is not an address`);
  }
  const here = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (!(url.protocol === "https:" || (url.protocol === "http:" && here)) || url.search || url.hash) {
    throw new Declined(
      `${address} is not the address of a collector that can be talked to in secret; use https ` +
        "(plain http is accepted to this very machine only)",
    );
  }
  return address.replace(/\/+$/, "");
}

export class Api {
  readonly address: string;
  readonly #options: Required<ApiOptions>;

  constructor(address: string, options: ApiOptions = {}) {
    this.address = safeAddress(address);
    this.#options = { attempts: 5, pause: sleep, fetch: (...asked) => fetch(...asked), ...options };
  }

  async task(): Promise<Json> {
    return this.#json(await this.#ask("/v1/task"));
  }

  /** The newest policy, or the one of a version, as it was sent. */
  policy(version?: number): Promise<string> {
    return this.#ask(version === undefined ? "/v1/policy" : `/v1/policy/${version}`);
  }

  async taking(version: number): Promise<Json> {
    return this.#json(await this.#ask(`/v1/taking/${version}`));
  }

  /** Be counted before an episode of a search; the same answer however often it is asked. */
  ticket(taskId: string, id: string, rules: string, token: string | null): Promise<Json> {
    return this.#post("/v1/tickets", spelt({ task_id: taskId, id, rules }), token);
  }

  /** Send stored bytes, the same on every attempt. */
  upload(body: string, token: string | null): Promise<Json> {
    return this.#post("/v1/reports", body, token);
  }

  async #post(path: string, body: string, token: string | null): Promise<Json> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (token !== null) headers["Authorization"] = `Bearer ${token}`;
    return this.#json(await this.#ask(path, { method: "POST", headers, body }));
  }

  async #ask(path: string, asked: RequestInit = {}): Promise<string> {
    const { attempts, pause } = this.#options;
    let trouble = "";
    for (let attempt = 0; attempt < attempts; attempt++) {
      let least = 0;
      try {
        const answer = await this.#options.fetch(this.address + path, {
          ...asked,
          cache: "no-store",
          credentials: "omit",
          redirect: "error",
          signal: AbortSignal.timeout(TIMEOUT),
        });
        const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
          await answer.arrayBuffer(),
        );
        if (answer.ok) return text;
        if (!AGAIN.has(answer.status)) throw refusal(answer.status, text);
        trouble = `status ${answer.status}`;
        least = Number(answer.headers.get("retry-after")) || 0;
      } catch (error) {
        if (error instanceof Refused) throw error;
        trouble = String(error);
      }
      if (attempt + 1 < attempts) {
        const wait = Math.min(Math.max(0.5 * 2 ** attempt, least), LONGEST_PAUSE);
        // apart from each other by half, so that devices do not come back together
        await pause(wait * (0.5 + crypto.getRandomValues(new Uint8Array(1))[0]! / 256));
      }
    }
    throw new Unreachable(`${this.address} did not answer ${path} (${trouble}); try again later`);
  }

  #json(text: string): Json {
    try {
      return JSON.parse(text) as Json;
    } catch {
      throw new Unreachable(`${this.address} did not answer in JSON; is it a collector?`);
    }
  }
}

function refusal(status: number, text: string): Refused {
  try {
    const { code, message } = (JSON.parse(text) as { error: { code: string; message: string } }).error;
    return new Refused(String(code).slice(0, 60), String(message).slice(0, 500));
  } catch {
    return new Refused(`status ${status}`, "no reason was given");
  }
}
