"""Classic groups (JoinGroup, SyncGroup, …)."""
