/** For Node: an outbox in one file, readable by its user alone. */

import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

import { InvalidInput } from "./errors.js";
import { known, type State, type Store, Turns } from "./outbox.js";

export * from "./index.js";

/** Written beside the file, through to the disk, and renamed: the old state or the new one. */
export class FileStore implements Store {
  #changes = new Turns();
  #work = new Turns();

  constructor(private readonly path: string) {}

  change<T>(edit: (state: State) => T): Promise<T> {
    return this.#changes.take(async () => {
      const before = await this.#read();
      const state = known(before === "" ? undefined : JSON.parse(before));
      const result = edit(state);
      const after = JSON.stringify(state);
      if (after !== before) await this.#write(after);
      return result;
    });
  }

  /** No other program that uses the same file begins or sends meanwhile. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    return this.#work.take(async () => {
      const lock = await this.#lock();
      try {
        return await work();
      } finally {
        await rm(lock);
      }
    });
  }

  async #read(): Promise<string> {
    try {
      return await readFile(this.path, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
      throw error;
    }
  }

  async #write(text: string): Promise<void> {
    const fresh = `${this.path}.new`;
    const file = await open(fresh, "w", 0o600);
    await file.writeFile(text);
    await file.sync();
    await file.close();
    await rename(fresh, this.path);
    const folder = await open(dirname(this.path), "r");
    await folder.sync();
    await folder.close();
  }

  /** A file that names the program which holds it; one that has ended holds nothing. */
  async #lock(): Promise<string> {
    const path = `${this.path}.lock`;
    for (let attempt = 0; attempt < 600; attempt++) {
      try {
        const file = await open(path, "wx", 0o600);
        await file.writeFile(String(process.pid));
        await file.close();
        return path;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const holder = Number(await readFile(path, "utf8").catch(() => "0"));
      if (holder > 0 && !alive(holder)) await rm(path, { force: true });
      else await new Promise((done) => setTimeout(done, 100));
    }
    throw new InvalidInput(`${path} is held by another program; remove it if there is none`);
  }
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
