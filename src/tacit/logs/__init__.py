"""From a log that somebody has to a private policy and what it is worth."""
