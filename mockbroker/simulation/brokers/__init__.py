"""Brokers start, stop, fail and catch up, and the controller sends them requests."""
