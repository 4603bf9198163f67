"""What a cluster is at one moment, as values; what changes it, and the log of changes."""
