"""Speed and utility side by side: tacit, loops written by hand, and a public library."""
