"""What is done to the cluster. Each fault breaks something, proves that it bites, and lets clients work meanwhile.

What is broken is mended by the runner (`Scene.mend`), which waits until all is well before the next fault. Victims are
drawn by the dice of the seed, mostly among those that matter: leaders of partitions that are written to.
"""

from __future__ import annotations

import errno
import os
import resource
from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode
from tests.cluster_chaos.links import CLIENTS
from tests.cluster_chaos.scene import NOTICED_S, PLACES
from tests.cluster_chaos.views import (
    add_voter,
    moving,
    newest,
    quorum,
    reassign,
    remove_voter,
    standings,
    write_to,
)
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import RawIOBase

    from tests.cluster_chaos.processes import ChaosNode
    from tests.cluster_chaos.scene import Scene
    from tests.cluster_chaos.views import Place

FSIZE_LIMIT = 64


def kill(scene: Scene) -> None:
    """Kill -9 of a leader."""
    place, before, victim = scene.a_leader()
    scene.say(f"kill -9 of node {victim.id}, which leads {place}")
    victim.kill()
    scene.another_leads(place, before)
    scene.works_on()


def stop_and_continue(scene: Scene) -> None:
    """SIGSTOP of a leader: its connections stay, and nobody answers there. Then it wakes up in another epoch."""
    place, before, victim = scene.a_leader()
    scene.say(f"SIGSTOP of node {victim.id}, which leads {place}")
    victim.pause()
    scene.another_leads(place, before)
    scene.works_on()
    victim.go_on()
    scene.say(f"SIGCONT of node {victim.id}")

    def knows() -> bool:
        seen = newest(scene.cluster, place, [victim.id])
        return seen is not None and seen.epoch > before.epoch

    scene.bites(f"{victim.id} itself has heard that it does not lead", knows)


def isolate(scene: Scene) -> None:
    """One node from everybody, clients too."""
    place, before, victim = scene.a_leader()
    scene.say(f"node {victim.id}, which leads {place}, is cut off from everybody")
    scene.take(victim.id)
    scene.cut([victim.id], [*scene.cluster.others(victim.id), CLIENTS])
    scene.another_leads(place, before)
    scene.works_on()


def isolate_from_nodes(scene: Scene) -> None:
    """Its clients still reach it, and it still believes that it leads."""
    place, before, victim = scene.a_leader()
    scene.say(f"node {victim.id}, which leads {place}, is cut off from the other nodes")
    scene.take(victim.id)
    scene.cut([victim.id], scene.cluster.others(victim.id))
    assert newest(scene.cluster, place, [victim.id]) is not None, (
        f"its clients do not reach it, or it does not answer:\n{scene.cluster.last_words([victim.id])}"
    )
    answer = write_to(victim, place)
    assert answer != ErrorCode.NONE, "it acknowledged what nobody else has"
    # It hangs up on producers as soon as it knows that it may have been replaced.
    scene.say(f"bites: its clients reach it, and hear {'nothing' if answer is None else answer.name}")
    scene.another_leads(place, before)
    scene.works_on()


def isolate_sole_leader(scene: Scene) -> None:
    """One node leads all that is written, and is cut off from the other nodes: its clients reach it still."""
    victim = scene.random.choice(list(scene.cluster.nodes))
    _let_lead_all(scene, victim)
    before = {place: wait_until(lambda: newest(scene.cluster, place), "a partition") for place in PLACES}  # noqa: B023
    scene.say(f"node {victim}, which leads everything, is cut off from the other nodes")
    scene.take(victim)
    scene.cut([victim], scene.cluster.others(victim))
    for place, standing in before.items():
        scene.another_leads(place, standing)
    scene.works_on()


def _let_lead_all(scene: Scene, number: int) -> None:
    """The node becomes the preferred leader of all partitions that clients write to, and leads them soon."""
    targets = {}
    for place in PLACES:
        seen = wait_until(lambda: newest(scene.cluster, place), "a partition", within_s=NOTICED_S)  # noqa: B023
        others = [replica for replica in seen.replicas if replica != number]
        targets[place] = [number, *others[: len(seen.replicas) - 1]]
    reassign(scene.cluster, targets)
    wait_until(lambda: not moving(scene.cluster), "the moves to end", within_s=NOTICED_S)
    wait_until(lambda: scene.leaders() == {number}, f"{number} to lead everything", within_s=NOTICED_S, every_s=0.2)


def isolate_controller(scene: Scene) -> None:
    """The active controller, cut off from the other nodes and not from clients; if it can be, it leads as well."""
    before = scene.controller()
    victim = scene.cluster.nodes[before.leader]
    led = [(place, each) for place in PLACES if (each := newest(scene.cluster, place)) and each.leader == victim.id]
    scene.say(f"node {victim.id}, the active controller, is cut off; it leads {[place for place, _ in led]}")
    scene.take(victim.id)
    scene.cut([victim.id], scene.cluster.others(victim.id))

    def another() -> bool:
        now = quorum(scene.cluster)
        return now is not None and now.epoch > before.epoch and now.leader not in (-1, victim.id)

    scene.bites("another controller is active in a newer epoch", another)
    for place, standing in led:
        scene.another_leads(place, standing)
    scene.works_on()


def one_way(scene: Scene) -> None:
    """It hears the others and is not heard, or the other way round."""
    place, before, victim = scene.a_leader()
    others = scene.cluster.others(victim.id)
    scene.take(victim.id)
    is_mute = scene.random.random() < 0.5
    scene.links.cut(*([victim.id], others) if is_mute else (others, [victim.id]))
    scene.say(f"node {victim.id}, which leads {place}, {'is not heard' if is_mute else 'hears nobody'}")
    for other in others:
        assert scene.links.passes(victim.id, other) is not is_mute
        assert scene.links.passes(other, victim.id) is is_mute
    scene.say("bites: probes pass in one direction only")
    scene.another_leads(place, before)
    scene.works_on()


def split(scene: Scene) -> None:
    """Two nodes from three, a leader among the two. They lead nothing then, whatever they led before."""
    voters = scene.controller().voters
    possible = [
        (place, standing, number)
        for place in PLACES
        if (standing := newest(scene.cluster, place)) and standing.leader > 0
        for number in scene.cluster.others(standing.leader)
        # The three have to be able to decide: with them is a majority of the voters.
        if 2 * len({standing.leader, number} & set(voters)) < len(voters)
    ]
    # And to write: with them are two of the partition's replicas, unless that cannot be had.
    writable = [each for each in possible if each[2] not in each[1].replicas]
    place, before, beside = scene.random.choice(writable or possible)
    minority = [before.leader, beside]
    scene.say(f"{minority} are cut off from the other three; {before.leader} leads {place}")
    scene.take(*minority)
    scene.cut(minority, scene.cluster.others(*minority))
    scene.another_leads(place, before, out=minority)
    if writable:
        # Other partitions may have lost two of three replicas: they have to wait.
        scene.works_on(places=[place])


def leader_from_controller(scene: Scene) -> None:
    """The two cannot talk; everybody else talks to both."""
    controller = scene.controller().leader
    place, before, victim = scene.a_leader(but=[controller])
    scene.say(f"node {victim.id}, which leads {place}, is cut off from the controller, node {controller}")
    scene.take(victim.id)
    scene.cut([victim.id], [controller])
    bystander = scene.cluster.others(victim.id, controller)[0]
    assert scene.links.passes(bystander, victim.id)
    assert scene.links.passes(victim.id, bystander)
    scene.another_leads(place, before)
    scene.works_on()


def pair(scene: Scene) -> None:
    """A leader and one of its followers: the follower is no longer waited for, or another leads."""
    place, before, victim = scene.a_leader()
    other = scene.random.choice([replica for replica in before.replicas if replica != victim.id])
    scene.say(f"{victim.id}, which leads {place}, and its follower {other} are cut off from each other")
    scene.cut([victim.id], [other])

    def parted() -> bool:
        # A leader that lost a follower stays in its epoch, and whoever is cut off from the controller knows nothing of
        # it. Leadership may go back to a preferred replica at this very moment: it reaches both of them.
        return any(
            each.epoch > before.epoch or not {victim.id, other} <= set(each.isr)
            for each in standings(scene.cluster).get(place, ())
        )

    scene.bites("the two are not in one ISR, or another leads", parted)
    scene.works_on()


def full_disk(scene: Scene) -> None:
    """No file of a leader can grow. Whoever runs it makes room and starts it again."""
    place, before, victim = scene.a_leader()
    scene.say(f"the disk of node {victim.id}, which leads {place}, is full")
    make_room = _fill(victim)
    scene.say("bites: a byte cannot be written there")
    try:
        scene.another_leads(place, before)
        scene.works_on()
    finally:
        make_room()
    code = victim.process.poll() if victim.process is not None else None
    scene.say(f"room is made; node {victim.id} " + ("still runs" if code is None else f"had ended with {code}"))
    victim.kill()


def rolling_restart(scene: Scene) -> None:
    """SIGTERM to one after the other, each back and in sync before the next."""
    for number, node in scene.cluster.nodes.items():
        pid = node.pid
        code = node.stop()
        assert code == 0, f"node {number} ended with {code}:\n{scene.cluster.last_words([number])}"
        scene.bites(f"{number} leads nothing", lambda: not _leads(scene, number))  # noqa: B023
        node.start()
        assert node.pid != pid
        scene.whole()
    scene.works_on()


def lose_controller(scene: Scene) -> None:
    """Kill -9 of the active controller."""
    before = scene.controller()
    scene.say(f"kill -9 of node {before.leader}, the active controller of epoch {before.epoch}")
    scene.cluster.nodes[before.leader].kill()

    def moved() -> bool:
        now = quorum(scene.cluster)
        return now is not None and now.epoch > before.epoch and now.leader not in (-1, before.leader)

    scene.bites("another controller is active in a newer epoch", moved)
    scene.works_on()


def move_replicas(scene: Scene) -> None:
    """Every partition that is written to gets two new replicas and another leader."""
    targets: dict[Place, list[int]] = {}
    for place in PLACES:
        before = wait_until(lambda: newest(scene.cluster, place), "a partition", within_s=NOTICED_S)  # noqa: B023
        newcomers = [number for number in scene.cluster.nodes if number not in before.replicas]
        scene.random.shuffle(newcomers)
        targets[place] = [*newcomers, scene.random.choice(before.replicas)]
    scene.say(f"replicas move: {targets}")
    reassign(scene.cluster, targets)

    def arrived() -> bool:
        seen = standings(scene.cluster)
        return all(
            sorted(each.replicas) == sorted(replicas) == list(each.isr) and each.leader in replicas
            for place, replicas in targets.items()
            for each in seen[place]
        )

    scene.bites("the replicas are where they were sent", arrived)
    wait_until(lambda: not moving(scene.cluster), "the moves to end", within_s=NOTICED_S)
    scene.works_on()


def change_voters(scene: Scene) -> None:
    """A controller joins the quorum, and the active one leaves it."""
    before = scene.controller()
    newcomer = scene.random.choice(scene.cluster.others(*before.voters))
    _change(
        scene, f"{newcomer} becomes a voter", {*before.voters, newcomer}, lambda: add_voter(scene.cluster, newcomer)
    )
    leaving = scene.controller().leader
    kept = {*before.voters, newcomer} - {leaving}
    _change(
        scene, f"{leaving}, the active one, is no voter any more", kept, lambda: remove_voter(scene.cluster, leaving)
    )
    assert scene.controller().leader in kept
    scene.works_on()


def _change(scene: Scene, what: str, voters: set[int], change: Callable[[], None]) -> None:
    scene.say(what)
    change()

    def changed() -> bool:
        now = quorum(scene.cluster)
        return now is not None and set(now.voters) == voters and now.leader in voters

    scene.bites(f"the voters are {sorted(voters)}", changed)


def _leads(scene: Scene, number: int) -> bool:
    return any(each.leader == number for seen in standings(scene.cluster).values() for each in seen)


def _fill(victim: ChaosNode) -> Callable[[], None]:
    """Fill the node's own file system, or where it has none, keep the kernel from letting its files grow."""
    if os.path.ismount(victim.data):
        ballast = victim.data / "ballast"
        with ballast.open("wb", buffering=0) as file:
            while _has_room(file):
                pass
        return ballast.unlink
    unlimited = resource.prlimit(victim.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(victim.pid, resource.RLIMIT_FSIZE, (FSIZE_LIMIT, unlimited[1]))
    assert resource.prlimit(victim.pid, resource.RLIMIT_FSIZE)[0] == FSIZE_LIMIT

    def lift() -> None:
        if victim.process is not None and victim.process.poll() is None:
            resource.prlimit(victim.pid, resource.RLIMIT_FSIZE, unlimited)

    return lift


def _has_room(file: RawIOBase) -> bool:
    """Whether a little more could be written, if only a byte."""
    for size in (1 << 20, 1):
        try:
            file.write(bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        else:
            return True
    return False


FAULTS: dict[str, Callable[[Scene], None]] = {
    "kill": kill,
    "stop": stop_and_continue,
    "isolate": isolate,
    "isolate-from-nodes": isolate_from_nodes,
    "isolate-controller": isolate_controller,
    "one-way": one_way,
    "split": split,
    "leader-from-controller": leader_from_controller,
    "pair": pair,
    "full-disk": full_disk,
    "rolling-restart": rolling_restart,
    "lose-controller": lose_controller,
    # Before replicas move: they spread the leaders again.
    "isolate-sole-leader": isolate_sole_leader,
    "move": move_replicas,
    "voters": change_voters,
}
