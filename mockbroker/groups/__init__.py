"""Groups of members that a coordinator keeps. ``classic``: JoinGroup, SyncGroup, Heartbeat."""
