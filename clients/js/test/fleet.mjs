/**
 * People on devices in this process: `node fleet.mjs ADDRESS < people.json`. Each of them has a
 * token, what they live through, and a tape of entropy. Prints what became of each.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";

import { Api, Device, MemoryStore } from "../dist/index.js";

const AT_ONCE = 16;
const [address] = process.argv.slice(2);
const people = JSON.parse(readFileSync(0, "utf8"));
const tapes = new AsyncLocalStorage();
const drawn = crypto.getRandomValues.bind(crypto);

/** Whoever lives on a tape draws from it; pauses between attempts are anybody's. */
Object.defineProperty(crypto, "getRandomValues", {
  value: (array) => {
    const tape = tapes.getStore();
    if (tape === undefined || tape.retrying) return drawn(array);
    array.set(tape.bytes.subarray(tape.at, (tape.at += array.length)));
    return array;
  },
});

async function live({ token, steps, tape }) {
  const mine = { bytes: Buffer.from(tape, "hex"), at: 0, retrying: false };
  return tapes.run(mine, async () => {
    const fetching = async (url, asked) => {
      mine.retrying = true;
      const answer = await fetch(url, { ...asked, signal: undefined });  // however slow it is
      mine.retrying = false;
      return answer;
    };
    const api = new Api(address, { fetch: fetching });
    const device = new Device(api, new MemoryStore(), { maxEpsilon: 100, token });
    const episode = await device.begin();
    for (const [state, reward, next] of steps) {
      await episode.act(state);
      await episode.observe(reward, next);
    }
    if (!episode.done) await episode.leave();
    const [{ outcome }] = await device.send();
    return outcome;
  });
}

const outcomes = Array(people.length).fill(null);
let next = 0;
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    while (next < people.length) {
      const person = next++;
      outcomes[person] = await live(people[person]).catch((error) => String(error));
    }
  }),
);
console.log(JSON.stringify(outcomes));
