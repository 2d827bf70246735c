/** Exact draws from bytes that nobody can foresee: integers are compared, nothing is rounded. */

/** Gives so many fresh bytes. */
export type Entropy = (count: number) => Uint8Array;

/** The operating system's, and the only one a device uses. */
export const system: Entropy = (count) => crypto.getRandomValues(new Uint8Array(count));

/** A uniform integer of k bits: whole bytes, the first one highest, the lowest bits dropped. */
export function bits(entropy: Entropy, k: number): bigint {
  const count = Math.ceil(k / 8);
  let value = 0n;
  for (const byte of entropy(count)) value = (value << 8n) | BigInt(byte);
  return value >> BigInt(8 * count - k);
}

/** A uniform integer below n: draws of as many bits as n has, until one is below it. */
export function belowBig(entropy: Entropy, n: bigint): bigint {
  const k = n.toString(2).length;
  for (;;) {
    const drawn = bits(entropy, k);
    if (drawn < n) return drawn;
  }
}

export const below = (entropy: Entropy, n: number): number => Number(belowBig(entropy, BigInt(n)));

/** True with probability exactly threshold / 2^64. */
export const happens = (entropy: Entropy, threshold: bigint): boolean =>
  bits(entropy, 64) < threshold;

/** Uniform in [0, 1), of 53 bits. */
export const unit = (entropy: Entropy): number => Number(bits(entropy, 53)) / 2 ** 53;
