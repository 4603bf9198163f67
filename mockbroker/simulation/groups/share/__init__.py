"""Share groups (KIP-932): members share partitions, and each record is delivered to one of them.

The coordinator: ``model`` holds groups and members, ``tables`` the rules of requests as rows,
``membership`` what rules do to a group, ``assignor`` computes targets, ``records`` are those of
``__consumer_offsets``, and ``coordinator`` runs all of them for requests and timers.

The leaders of partitions: ``deliveries`` has the states of a record as rows, ``share_partition``
the records of one partition that are in flight, ``share_sessions`` the sessions of members, and
``share_fetches`` runs ShareFetch and ShareAcknowledge. The state of share partitions is kept in
memory; nothing is written to ``__share_group_state``.
"""
