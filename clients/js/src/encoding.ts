/** Bytes, texts and hashes; JSON in the one spelling of RFC 8785. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export const utf8 = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

export const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

export const fromBase64 = (text: string): Uint8Array =>
  Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

export const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

export async function hmac(
  key: Uint8Array<ArrayBuffer>,
  text: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const kind = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, kind, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, utf8(text)));
}

/** JSON with sorted names and no spaces; numbers as ECMAScript writes them. */
export function spelt(value: Json): string {
  if (typeof value === "string" && /[\ud800-\udfff]/u.test(value)) {
    throw new TypeError("half of a surrogate pair has no spelling");
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new TypeError("a number that is not finite has no spelling");
  }
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(spelt).join(",")}]`;
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${spelt(name)}:${spelt(value[name]!)}`).join(",")}}`;
}

export const hashOf = async (value: Json): Promise<string> =>
  hex(await sha256(utf8(spelt(value))));
