"""A planted bug counts as found by its own rule only."""

from __future__ import annotations

import pytest

from millstream.testing.checking import Kind
from millstream.testing.violations import TookTooLong, Violation
from tests.sim.planting import Plant, must_be_found, replaces

RULE = "epochs only grow"
PLANT = Plant("a bug", RULE, lambda _: None, seeds=2)


def test_the_named_rule_finds_it() -> None:
    def run(seed: int) -> None:
        if seed == 1:
            raise Violation(RULE, "1 after 2")

    assert must_be_found(PLANT, run) == "seed 1: epochs only grow: 1 after 2"


@pytest.mark.parametrize(
    "error",
    [
        AssertionError("of the product"),
        LookupError("a key"),
        RuntimeError("a crash elsewhere"),
        TookTooLong("to come up"),
        Violation("one vote per epoch", "another rule"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_nothing_else_finds_it(error: Exception) -> None:
    def run(_: int) -> None:
        raise error

    with pytest.raises(AssertionError, match="has not found it within 2 seeds; found instead: seed 0: "):
        must_be_found(PLANT, run)


def test_a_run_without_a_violation_does_not_find_it() -> None:
    with pytest.raises(AssertionError, match="found instead: nothing"):
        must_be_found(PLANT, lambda _: None)


def test_no_plant_may_name_a_timeout() -> None:
    with pytest.raises(AssertionError, match="names the rule"):
        Plant("a bug", "it comes to rest", lambda _: None, seeds=1)


def test_an_anomaly_is_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    class Target:
        value = 1

    plant = replaces("a bug", Target, "value", 2, rule=Kind.LOST, seeds=1)
    plant.plant(monkeypatch)
    assert Target.value == 2
    assert plant.rule == Kind.LOST.value
