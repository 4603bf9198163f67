"""Captures and journals of the wire to messages, for eyes and for tables."""
