"""What devices and collectors say to each other, and how it is spelt."""
