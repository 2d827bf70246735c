/** For pages and workers: an outbox in IndexedDB that all tabs of an origin share. */

import { known, type State, type Store } from "./outbox.js";

export * from "./index.js";

const settled = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
  });

/**
 * Whether the browser may throw the outbox away is the browser's decision: ask it not to with
 * `navigator.storage.persist()`. Losing it means that the device may take part a second time.
 */
export class BrowserStore implements Store {
  #opened: Promise<IDBDatabase> | null = null;

  constructor(private readonly name = "tacit") {}

  #open(): Promise<IDBDatabase> {
    if (this.#opened === null) {
      const request = indexedDB.open(this.name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore("outbox");
      this.#opened = settled(request);
    }
    return this.#opened;
  }

  /** One transaction, which other tabs wait for; on the disk when it is complete. */
  async change<T>(edit: (state: State) => T): Promise<T> {
    const database = await this.#open();
    const work = database.transaction("outbox", "readwrite", { durability: "strict" });
    const complete = new Promise<void>((done, failed) => {
      work.oncomplete = () => done();
      work.onabort = () => failed(work.error);
    });
    complete.catch(() => undefined);
    const table = work.objectStore("outbox");
    const state = known((await settled(table.get("state"))) as State | undefined);
    const before = JSON.stringify(state);
    let result: T;
    try {
      result = edit(state);
    } catch (error) {
      work.abort();
      throw error;
    }
    if (JSON.stringify(state) !== before) table.put(state, "state");
    await complete;
    return result;
  }

  /** No other tab begins or sends meanwhile. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return navigator.locks.request(`tacit outbox ${this.name}`, work) as Promise<T>;
  }
}
