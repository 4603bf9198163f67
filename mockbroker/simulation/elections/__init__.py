"""Electing leaders (43; KIP-183, KIP-460): the choice of a leader, the queue, the answers."""
