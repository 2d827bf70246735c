"""From what was reported to the next policy: one step, who may take it, what was published."""
