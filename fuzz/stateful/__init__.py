"""Random commands in any order on a mock cluster, and the invariants that must hold after each.

``world`` is one cluster with its clients, ``invariants`` states what must hold and the source of
each rule, ``model`` is what clients know, ``machine`` generates the commands, and ``planted`` shows
that defects are found. docs/explanation/fuzz-stateful.md says how to run it and what it found.
"""
