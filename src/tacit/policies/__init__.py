"""What is sent to a user: how to act, without a further question."""
