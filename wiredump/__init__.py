"""Captures and journals to messages to tables. Empty in this release: the name is reserved."""
