"""Who and what is counted: reports, tickets, tokens, the state of the task."""
