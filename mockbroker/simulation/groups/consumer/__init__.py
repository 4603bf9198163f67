"""Consumer groups (KIP-848): the broker assigns partitions, and members reconcile by heartbeats.

``consumer_group`` holds groups and members, ``consumer_rules`` the rules of requests as rows,
``partition_reconciliation`` brings one member to its target, ``consumer_membership`` changes
groups, ``partition_assignors`` compute targets, and ``consumer_groups`` runs requests and timers.
``migration`` turns classic groups into consumer groups and back.
"""
