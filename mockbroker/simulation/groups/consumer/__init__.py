"""Consumer groups (KIP-848): the broker assigns partitions, and members reconcile by heartbeats.

``model`` holds groups and members, ``tables`` the rules of requests as rows, ``reconciliation`` how
one member gets to its target, ``membership`` what rules do to a group, ``assignors`` computes
targets, ``coordinator`` runs all of them for requests and timers, ``tester`` for the commands of a
tester. ``migration`` turns classic groups into consumer groups and back.
"""
