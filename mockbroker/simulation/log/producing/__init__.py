"""What a leader does with produced data: it checks batches and records, knows their producers, and
appends."""
