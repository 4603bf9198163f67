"""Groups of members that a coordinator keeps. ``classic``: JoinGroup, SyncGroup, Heartbeat;
``consumer``: ConsumerGroupHeartbeat (KIP-848). ``coordinator`` knows which kind a group is."""
