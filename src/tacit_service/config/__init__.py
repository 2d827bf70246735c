"""The deployment file: what an operator writes, and what is made of it."""
