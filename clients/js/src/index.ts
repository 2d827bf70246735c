/** The device's side of tacit: act on a published policy, randomize, report once. */

export { coin, question } from "./cells.js"; // to show people what they are asked
export { Device, type DeviceOptions } from "./device.js";
export { Episode } from "./episode.js";
export { Declined, InvalidInput, NotTaken, Refused, TookPart, Unreachable } from "./errors.js";
export type { Action } from "./scores.js";
export { SearchEpisode } from "./search_episode.js";
export { type Delivery, MemoryStore, type State, type Store } from "./outbox.js";
export type { Terms } from "./terms.js";
export { Api, type ApiOptions } from "./transport.js";
