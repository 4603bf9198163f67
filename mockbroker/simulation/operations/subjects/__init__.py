"""The operations, by subject. Every module of this folder is imported for its declarations."""
