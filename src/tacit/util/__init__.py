"""What any part may use and no part is about: files, durations, intervals, names."""
