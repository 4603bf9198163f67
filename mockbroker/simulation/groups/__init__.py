"""Groups: ``classic``, ``consumer`` (KIP-848), ``streams`` (KIP-1071) and ``share`` (KIP-932).

``modern`` holds what the three newer kinds have in common; ``all_groups`` knows which kind a group
is.
"""
