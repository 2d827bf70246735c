"""Local randomizers: the noise is added on the user's device, and nobody is trusted."""
