"""Metrics that clients push to their broker (KIP-714)."""
