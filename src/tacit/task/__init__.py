"""What is public before the first user: the task, its pairs, who may take part, its features."""
