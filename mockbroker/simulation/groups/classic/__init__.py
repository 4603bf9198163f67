"""Classic groups: members join, a leader assigns, heartbeats keep sessions alive.

``model`` holds groups and members, ``tables`` the rules as rows, ``rebalancing`` what rules do to a
group, ``coordinator`` runs them for requests and timers, ``tester`` for the commands of a tester.
"""
