"""The shuffle model: what hiding among the reports of a batch adds to local privacy."""
