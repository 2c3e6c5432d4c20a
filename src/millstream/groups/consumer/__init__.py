"""Consumer groups of KIP-848: one request, ConsumerGroupHeartbeat, and the assignment made by the broker.

`group.py` holds a group, `member.py` a member; `heartbeat.py` answers the request. Three epochs drive everything:

    group epoch        grows when who reads what may have changed: members, subscriptions, topics   (subscribing.py)
    assignment epoch   the group epoch that the target assignment was computed for                  (targeting.py)
    member epoch       the assignment epoch that a member has caught up with                        (reconciling.py)

Members move from one target assignment to the next on their own, one partition at a time: a partition is given to its
new owner once the former one has said that it let go of it. Nobody waits for anybody else.

Classic members may live in such a group too while a fleet of consumers is being upgraded (classic_members.py), and a
group goes over from one kind to the other with its members in place (migration.py).
"""
