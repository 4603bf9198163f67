"""Share groups (KIP-932): members share partitions, and each record is delivered to one of them.

At the coordinator, ``share_group`` holds groups and members, ``share_rules`` the rules of
heartbeats as rows, ``share_membership`` changes groups, ``share_assignor`` computes targets, and
``share_groups`` runs requests and timers.

At the leaders of partitions, ``deliveries`` has the states of a record as rows,
``share_partition`` the records of one partition that are in flight, ``share_sessions`` the
sessions of members, and ``share_fetches`` runs ShareFetch and ShareAcknowledge. The state of share
partitions is kept in memory; nothing is written to ``__share_group_state``.
"""
