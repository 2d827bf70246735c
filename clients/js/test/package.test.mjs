/** What is shipped: small, typed, without dependencies, and without randomness of another kind. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));

test("the bundle for pages is below 15 kB, minified and gzipped", () => {
  const size = gzipSync(readFileSync(`${root}dist/tacit.min.js`)).length;
  assert.ok(size < 15_000, `${size} bytes`);
});

test("the package holds code and types, and needs no other", () => {
  const { dependencies, version } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  assert.equal(dependencies, undefined);
  const python = readFileSync(`${root}../../src/tacit/_version.py`, "utf8");
  assert.ok(python.includes(`"${version}"`), "one version for all of tacit");
  const said = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: root });
  const packed = JSON.parse(said);
  const [{ files }] = Array.isArray(packed) ? packed : Object.values(packed);
  const names = files.map((file) => file.path);
  for (const name of ["index", "browser", "node"]) {
    assert.ok(names.includes(`dist/${name}.js`) && names.includes(`dist/${name}.d.ts`), name);
  }
  assert.ok(names.includes("README.md") && !names.some((name) => /test|src\//.test(name)));
});

test("nothing is drawn but from the operating system, and no chance is a float", () => {
  for (const name of readdirSync(`${root}src`)) {
    const text = readFileSync(`${root}src/${name}`, "utf8");
    assert.doesNotMatch(text, /Math\.random/, name);
    // how a device acts is its own business, as long as no randomness is made there
    if (name === "scores.ts") assert.doesNotMatch(text, /entropy|crypto/, name);
    else assert.doesNotMatch(text, /Math\.(exp|pow)/, name);
  }
});
