"""Fuzz a real client: mutated answers of the mock cluster, and what becomes of the client."""
