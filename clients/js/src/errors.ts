/** Why a device does not take part, or could not be heard. */

/** The device protects its user: it will not take part on these terms. */
export class Declined extends Error {
  override name = "Declined";
}

/** All participations that the terms allow have been used, or the last one is not over. */
export class TookPart extends Declined {
  override name = "TookPart";
}

/** The collector would not take the report that an episode begun now leads to. */
export class NotTaken extends Declined {
  override name = "NotTaken";
  constructor(
    readonly reason: string,
    message: string,
  ) {
    super(`no episode begins: ${message}`);
  }
}

/** The collector did not answer, or not like a collector; trying again later may help. */
export class Unreachable extends Error {
  override name = "Unreachable";
}

/** The collector understood and said no; `code` is its name for the reason. */
export class Refused extends Error {
  override name = "Refused";
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(`the collector refused (${code}): ${message}`);
  }
}

/** Something the app did wrong. */
export class InvalidInput extends Error {
  override name = "InvalidInput";
}
