/**
 * People of a search on devices in this process, one after the other: `node search_fleet.mjs
 * ADDRESS < people.json`. Each of them has a token, what they see, and a tape of entropy; what they
 * earn depends on what they do. Clocks stand still and jump, so that nobody waits for a due report.
 */

import { readFileSync } from "node:fs";

import { Api, Device, MemoryStore, NotTaken } from "../dist/index.js";
import { withTape } from "./collector.mjs";

const [address] = process.argv.slice(2);
const people = JSON.parse(readFileSync(0, "utf8"));

async function begun(device) {
  for (;;) {
    try {
      return await device.search();
    } catch (error) {
      if (!(error instanceof NotTaken) || error.reason !== "batch_full") throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

async function live({ token, seen, tape }) {
  const begins = Date.now() / 1000;
  let ahead = 0;
  let outcome;
  await withTape(Buffer.from(tape, "hex"), async () => {
    const clock = () => begins + ahead;
    const options = { maxEpsilon: 100, maxDelta: 1, model: "joint", token, clock };
    const patient = (url, asked) => fetch(url, { ...asked, signal: undefined });
    const api = new Api(address, { attempts: 1, fetch: patient });
    const device = new Device(api, new MemoryStore(), options);
    const episode = await begun(device);
    for (const [h, o] of seen.entries()) {
      const action = await episode.act(o);
      await episode.observe(action === 1 ? o[0] : -o[0], h === seen.length - 1);
    }
    ahead = 3600;
    [{ outcome }] = await device.send();
  });
  return outcome;
}

const outcomes = [];
for (const person of people) outcomes.push(await live(person));
console.log(JSON.stringify(outcomes));
