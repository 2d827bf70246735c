"""What a policy is worth, by releases only."""
