"""The examples of `examples/streams_*.py` on Spark: they say what they say in the test driver.

A table says the last value of each key and micro-batch there, so steps on the way to it may be missing. Each example
starts an embedded Millstream of its own.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.examples.test_examples import EXAMPLES, with_spark
from tests.spark.conftest import spark
from tests.streams.test_examples import SAID

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark"]
pytestmark = with_spark


@pytest.mark.parametrize("name", SAID)
def test_an_example_on_spark_says_what_it_says_in_the_driver(
    name: str, spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    from pyspark import cloudpickle

    run_streams = importlib.import_module("run_streams")
    example = importlib.import_module(f"streams_{name}")
    # Run as a program, what it defines is __main__'s and goes to the workers by value.
    cloudpickle.register_pickle_by_value(example)
    example.main(partial(run_streams.OnSpark, spark=spark))
    said = capsys.readouterr().out.splitlines()
    if name == "fraud":
        assert said[-1] == SAID[name][-1]
        assert set(said) <= set(SAID[name])
    else:
        # Word count describes itself before.
        assert sorted(said[-len(SAID[name]) :] if name == "word_count" else said) == sorted(SAID[name])
