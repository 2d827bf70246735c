/** One person plays a week; the page shows what stays, what leaves, and what was learned. */

import { Api, BrowserStore, coin, Device, question } from "./tacit.min.js";

const $ = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const kindOfDay = (day) => (day % 7 < 5 ? "workday" : "weekend");
const stateOf = (mood, moved, day) => `${mood}, ${moved ? "moved" : "still"}, ${kindOfDay(day)}`;
const show = (id, text) => (($(id).hidden = false), text !== undefined && ($(id).textContent = text));

const { collector, token } = await (await fetch("visit.json")).json();
const days = [];
let woke = null; // the state of a day that is not over
let sending; // keeps the report on the device until the person says so

const api = new Api(collector, {
  fetch: async (url, asked = {}) => {
    if (asked.method === "POST") {
      await reveal(asked.body);
      await new Promise((go) => (sending = go));
    }
    return fetch(url, { ...asked, signal: null }); // the person may think for longer than a timeout
  },
});
// a demonstration: every visit is another person, so every visit has an outbox of its own
const device = new Device(api, new BrowserStore(`web coach ${token.slice(0, 12)}`), { maxEpsilon: 2.001, token });

function row(table, texts) {
  const line = table.insertRow();
  for (const text of texts) line.insertCell().textContent = text;
}

/** What is about to leave, cell by cell, beside the true one. */
async function reveal(body) {
  const [report] = JSON.parse(body).reports;
  const [step, kind] = question(terms.rules, episode.publication, await coin(terms.taskId, report.id));
  const { domain } = terms.rules.cells[kind];
  const bytes = Uint8Array.from(atob(report.message), (letter) => letter.charCodeAt(0));
  const S = terms.states;
  const last = woke ?? days.at(-1)?.next ?? terms.absorbingState;
  const at = (h) => (h < days.length ? days[h].state : h === days.length ? last : terms.absorbingState);
  const own = (cell) => {
    if (kind === "move") return cell === at(step) * S + at(step + 1);
    const [s, next] = kind === "step" ? [Math.floor(cell / (2 * S)), cell % S] : [Math.floor(cell / 2), at(step + 1)];
    return s === at(step) && next === at(step + 1);
  };
  const words = { step: "the morning, the rating and the next morning", move: "the morning and the next one", reward: "the morning and the rating" };
  show("leaves");
  $("asked").textContent =
    `Your report is about ${words[kind]} of day ${step + 1}: drawn before you began, whatever you did. ` +
    `It names some of ${domain} possible answers.`;
  $("cells").replaceChildren(
    ...Array.from({ length: domain }, (_, cell) => {
      const square = document.createElement("i");
      square.classList.toggle("sent", Boolean(bytes[cell >> 3] & (1 << (cell & 7))));
      square.classList.toggle("own", own(cell));
      return square;
    }),
  );
  show("body", body);
}

async function learned() {
  const [numbers, policy] = await Promise.all(
    ["/v1/dashboard", "/v1/policy"].map(async (path) => (await fetch(collector + path)).json()),
  );
  const { accepted, population } = numbers.progress;
  show("learned");
  $("progress").textContent = `${accepted} of ${population} people have reported; this is policy ${policy.version}.`;
  $("policy").replaceChildren();
  terms.stateNames.forEach((name, s) => {
    if (name.endsWith("workday")) row($("policy"), [name, terms.actionNames[policy.policy.actions[0][s]]]);
  });
  $("dashboard").href = `${collector}/`;
}

function morning() {
  show("play");
  $("day").textContent = `Day ${days.length + 1}, a ${kindOfDay(days.length)}. How do you feel this morning?`;
  $("morning").hidden = days.length > 0;
  $("evening").hidden = true;
  $("message").textContent = "";
  if (days.length > 0) wake(days.at(-1).next);
}

async function wake(state) {
  const action = await episode.act(state);
  woke = typeof state === "string" ? terms.stateNames.indexOf(state) : state;
  $("morning").hidden = true;
  $("message").textContent = `The coach: ${terms.actionNames[action]}.`;
  $("evening").hidden = false;
  $("evening").dataset.action = terms.actionNames[action];
}

async function finish() {
  $("play").hidden = true;
  show("stays");
  const [delivery] = await device.send();
  show("outcome", `The service says: ${delivery.outcome}. It was sent once, and no second report will be made.`);
  await learned();
}

$("wake").onclick = () => wake(stateOf(chosen("mood"), $("moved").checked, 0));
$("sleep").onclick = async () => {
  const state = woke;
  const rating = Number($("rating").value);
  const next = terms.stateNames.indexOf(stateOf(chosen("next"), $("active").checked, days.length + 1));
  await episode.observe(rating, next);
  days.push({ state, next });
  woke = null;
  show("stays");
  row($("days"), [days.length, terms.stateNames[state], $("evening").dataset.action, rating, terms.stateNames[next]]);
  if (episode.done) await finish();
  else morning();
};
$("leave").onclick = async () => {
  await episode.leave();
  await finish();
};
$("send").onclick = () => {
  $("send").disabled = true;
  sending();
};

const terms = await device.terms();
$("terms").textContent =
  `You will take part in "${terms.name}": up to ${terms.horizon} days, one report. Whatever somebody believes about ` +
  `your days, the report changes the odds of it by at most a factor of ${(Math.ceil(10 * Math.exp(terms.epsilon)) / 10).toFixed(1)} ` +
  `(epsilon ${(Math.ceil(1000 * terms.epsilon) / 1000).toFixed(3)}, worked out by this page from the thresholds it draws with).`;
const episode = await device.begin();
await learned();
morning();
