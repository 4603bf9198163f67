"""Any commands in any order on a mock cluster, and what has to hold after each.

``world`` is one cluster with its clients, ``invariants`` what has to hold and who says so,
``model`` what the clients were told; ``machine`` draws the commands, ``planted`` proves that it
bites. How to run it, and what it found: docs/fuzz-stateful.md.
"""
