/** A minimal collector behind `fetch`: answers like the service, keeps what arrives. */

import { createHash } from "node:crypto";

import { Api } from "../dist/index.js";

export class FakeCollector {
  bodies = [];
  headers = [];
  asked = [];
  obstacle = null;
  broken = [];
  outcome = { outcome: "accepted", reason: null, detail: null };

  constructor(task, policy) {
    this.task = task;
    this.policy = policy;
  }

  api(address = "https://coach.test") {
    return new Api(address, {
      attempts: 3,
      pause: async () => undefined,
      fetch: async (url, init) => this.answer(new URL(url).pathname, init),
    });
  }

  answer(path, init) {
    this.asked.push(path);
    if (init.method === "POST") {
      this.bodies.push(init.body);
      this.headers.push(init.headers);
    }
    const trouble = this.broken.shift();
    if (trouble instanceof Error) throw trouble;
    if (trouble !== undefined) return trouble;
    if (path === "/v1/task") return Response.json(this.task);
    if (path === "/v1/policy") return new Response(this.policy);
    if (path.startsWith("/v1/taking/")) {
      const [reason, message] = this.obstacle ?? [null, null];
      return Response.json({
        task_id: this.task.task_id,
        version: Number(path.split("/").at(-1)),
        publication: createHash("sha256").update(this.policy).digest("hex"),
        taken: reason === null,
        reason,
        message,
      });
    }
    const { reports } = JSON.parse(init.body);
    const decoy = { outcome: "decoy", reason: null, detail: null };
    const outcomes = reports.map(({ id, rules }) => ({ id, .../^0+$/.test(rules) ? decoy : this.outcome }));
    return Response.json({ outcomes });
  }
}

/** Let the operating system's entropy come from a tape; what is left of it when done. */
export async function withTape(bytes, work) {
  const own = Object.getOwnPropertyDescriptor(crypto, "getRandomValues");
  let at = 0;
  const getRandomValues = (array) => {
    if (at + array.length > bytes.length) throw new Error("the tape is used up");
    array.set(bytes.subarray(at, at + array.length));
    at += array.length;
    return array;
  };
  Object.defineProperty(crypto, "getRandomValues", { value: getRandomValues, configurable: true });
  try {
    await work();
  } finally {
    if (own) Object.defineProperty(crypto, "getRandomValues", own);
    else delete crypto.getRandomValues;
  }
  return bytes.length - at;
}

/** A whole episode on a device, or as much of it as the steps say. */
export async function live(device, steps) {
  const episode = await device.begin();
  for (const [state, reward, next] of steps) {
    await episode.act(state);
    await episode.observe(reward, next);
  }
  if (!episode.done) await episode.leave();
  return episode;
}
