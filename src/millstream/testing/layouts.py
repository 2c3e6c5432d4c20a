"""Who does what in a simulated cluster: brokers and controllers in one, apart, or with voters that can change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

CONTROLLERS_APART = 3
# Apart they are twice as many machines: drawn seldom, a minute of simulation still shows many seeds.
_SHARES = {"combined": 0.6, "separate": 0.15, "dynamic": 0.25}


@dataclass(frozen=True, slots=True)
class Layout:
    """Machines by number. The voters of a dynamic quorum stand in its log, those of another in a setting."""

    name: str
    brokers: tuple[int, ...]
    controllers: tuple[int, ...]
    is_dynamic: bool = False

    @property
    def machines(self) -> tuple[int, ...]:
        return tuple(sorted({*self.brokers, *self.controllers}))

    def roles_of(self, number: int) -> str:
        roles = {"broker": number in self.brokers, "controller": number in self.controllers}
        return ",".join(role for role, has_it in roles.items() if has_it)


def combined(nodes: int) -> Layout:
    """Every machine is both; all are voters for ever."""
    everyone = tuple(range(1, nodes + 1))
    return Layout("combined", everyone, everyone)


def separate(nodes: int) -> Layout:
    """So many brokers, and three controllers behind them."""
    return Layout("separate", tuple(range(1, nodes + 1)), tuple(range(nodes + 1, nodes + 1 + CONTROLLERS_APART)))


def dynamic(nodes: int) -> Layout:
    """Every machine is both, and a voter at first (KIP-853)."""
    everyone = tuple(range(1, nodes + 1))
    return Layout("dynamic", everyone, everyone, is_dynamic=True)


LAYOUTS: dict[str, Callable[[int], Layout]] = {"combined": combined, "separate": separate, "dynamic": dynamic}


def draw_layout(random: Random, nodes: int) -> Layout:
    (name,) = random.choices(list(_SHARES), list(_SHARES.values()))
    return LAYOUTS[name](nodes)
