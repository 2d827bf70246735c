"""What the two models of privacy do with a report."""
