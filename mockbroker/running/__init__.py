"""A cluster that runs: on an event loop, on a thread of its own, in a test."""
