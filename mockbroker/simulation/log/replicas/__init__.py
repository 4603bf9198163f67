"""The replicas of a log: how far each has it, which may answer, and waits for them."""
