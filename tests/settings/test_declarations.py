"""Every declaration makes sense by itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream.settings as all_of_them
from millstream.settings import (
    BROKER,
    BY_SCOPE,
    CLEANUP_POLICY,
    COMPRESSION_TYPE,
    LOG_CLEANER_ENABLE,
    MIN_CLEANABLE_DIRTY_RATIO,
    RETENTION_MS,
    SSL_KEY_PASSWORD,
    Password,
    Setting,
    SettingsError,
)
from millstream.settings.kinds import DOUBLE, INT, LONG

EVERY = [setting for settings in BY_SCOPE.values() for setting in settings.values()]


def test_a_default_is_an_allowed_value() -> None:
    refused = {
        setting: setting.objection_to(setting.default)
        for setting in EVERY
        if setting.default is not None and setting.objection_to(setting.default)
    }
    assert refused == {}


def test_a_default_survives_its_text() -> None:
    for setting in EVERY:
        if setting.default is not None:
            assert setting.parse(setting.render(setting.default)) == setting.default, setting


def test_values_for_simulations_are_allowed() -> None:
    for setting in EVERY:
        for value in setting.simulate:
            assert setting.objection_to(value) is None, setting


def test_everything_has_a_sentence() -> None:
    assert [setting for setting in EVERY if not setting.doc.endswith(".") or setting.doc[0].islower()] == []


def test_a_constant_has_its_setting_s_name() -> None:
    constants = {name: value for name, value in vars(all_of_them).items() if isinstance(value, Setting)}
    for name, setting in constants.items():
        plain = name.removeprefix("BROKER_") if name not in {"BROKER_ID", "BROKER_RACK"} else name
        assert plain.removeprefix("CLIENT_METRICS_") in setting.name.upper().replace(".", "_"), name
    assert len(constants) == len(EVERY)


def test_our_own_settings_cannot_get_into_a_metadata_log() -> None:
    assert [setting for setting in EVERY if setting.own and not setting.read_only] == []


def test_every_limit_of_our_own_is_finite() -> None:
    assert all(
        0 < setting.default < 2**40 for setting in BROKER.values() if setting.name.endswith(".max") and setting.own
    )


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (RETENTION_MS, " +5 ", 5),
        (RETENTION_MS, "-1", -1),
        (LOG_CLEANER_ENABLE, "TRUE", True),
        (CLEANUP_POLICY, "compact , delete", ("compact", "delete")),
        (CLEANUP_POLICY, "", ()),
        (MIN_CLEANABLE_DIRTY_RATIO, "1e-1", 0.1),
        (SSL_KEY_PASSWORD, "x", Password("x")),
    ],
)
def test_text_becomes_a_typed_value(setting: Setting[Any], text: str, value: object) -> None:
    assert setting.parse(text) == value


@pytest.mark.parametrize(
    ("setting", "text", "sentence"),
    [
        (RETENTION_MS, "-2", "retention.ms must be at least -1, not '-2'."),
        (RETENTION_MS, "1_000", "retention.ms must be a whole number, not '1_000': it is not a whole number."),
        (RETENTION_MS, str(2**63), "retention.ms must be a whole number, not '9223372036854775808': it does not fit"),
        (LOG_CLEANER_ENABLE, "yes", "log.cleaner.enable must be true or false, not 'yes': it is neither"),
        (
            COMPRESSION_TYPE,
            "brotli",
            "compression.type must be one of uncompressed, zstd, lz4, snappy, gzip, producer, not",
        ),
        (
            CLEANUP_POLICY,
            "delete,delete",
            "cleanup.policy must name each entry once, and none empty, not 'delete,delete'.",
        ),
        (MIN_CLEANABLE_DIRTY_RATIO, "1.5", "min.cleanable.dirty.ratio must be at most 1, not '1.5'."),
    ],
)
def test_a_wrong_value_is_answered_with_a_sentence(setting: Setting[Any], text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as refused:
        setting.parse(text)
    assert str(refused.value).startswith(sentence)


def test_a_secret_never_prints() -> None:
    secret = SSL_KEY_PASSWORD.parse("hunter2")
    assert secret is not None
    assert "hunter2" not in f"{secret} {secret!r} {[secret]} {SSL_KEY_PASSWORD.render(secret)}"
    assert secret.reveal() == "hunter2"


def test_no_number_is_no_ratio() -> None:
    """Kafka lets NaN pass between any bounds; nobody can mean it."""
    with pytest.raises(SettingsError, match="must be at least 0"):
        MIN_CLEANABLE_DIRTY_RATIO.parse("NaN")


@given(st.integers(-(2**70), 2**70))
def test_whole_numbers_are_bounded_by_their_kind(number: int) -> None:
    for kind, bits in ((INT, 31), (LONG, 63)):
        if -(2**bits) <= number < 2**bits:
            assert kind.parse(str(number)) == number
        else:
            with pytest.raises(ValueError, match="does not fit"):
                kind.parse(str(number))


@given(st.floats(allow_nan=False))
def test_a_decimal_survives_its_text(number: float) -> None:
    assert DOUBLE.parse(DOUBLE.render(number)) == number
