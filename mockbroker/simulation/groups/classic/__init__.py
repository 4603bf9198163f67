"""Classic groups: members join, a leader assigns, heartbeats keep sessions alive.

``classic_group`` holds groups and members, the modules called ``..._rules`` hold rows,
``rebalancing`` changes groups as rows demand, ``classic_groups`` runs requests and timers, and
``classic_operations`` is for testers.
"""
