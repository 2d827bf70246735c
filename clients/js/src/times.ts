/** When an episode ends and when its report is due, on a clock that may be wrong. */

/** Moments in unix seconds of the device; `behind` is the first look at a clock set back. */
export interface Times {
  begun: number;
  ends: number;
  due: number;
  behind: number | null;
}

/** What the clock shows when a moment comes, given what it shows now. */
export function at(times: Times, moment: number, now: number): number {
  if (now >= times.begun) return moment;
  const anew = (times.behind ?? now) + moment - times.begun;
  return anew < times.begun ? anew : moment;
}

export const over = (times: Times | null, now: number): boolean =>
  times !== null && now >= at(times, times.ends, now);

export const held = (times: Times | null, now: number): boolean =>
  times !== null && now < at(times, times.due, now);

/** Note a clock that stands before the beginning, or does so no longer. */
export function noteClock(times: Times | null, now: number): void {
  if (times === null) return;
  times.behind = now < times.begun ? Math.min(times.behind ?? now, now) : null;
}
