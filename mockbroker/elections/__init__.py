"""Electing leaders (43; KIP-183, KIP-460): who is elected, when, and what callers are told."""
