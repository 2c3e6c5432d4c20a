"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, with the assignment made by a member.

`group.py` holds who belongs to a group; `rebalance.py` moves it from one generation to the next; `joining.py`,
`syncing.py` and `leaving.py` answer the requests. Start with `group.py`.
"""
