"""PySpark with Spark's own Kafka connector, in an environment of its own: the pipeline's PySpark is another version.

The connector's jars come from Maven. Of those, Spark brings most itself; what it lacks goes on the class path.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.maven import Artifact, fetched_jars
from tests.support.requirements import built_once, require, unavailable

if TYPE_CHECKING:
    from pathlib import Path

# The newest version whose connector resolves whole on every mirror.
VERSION = "4.0.0"
CONNECTOR = Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13", VERSION)
NOT_IN_SPARK = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")


def spark_python() -> Path:
    """The interpreter that has PySpark."""
    with built_once(f"pyspark-{VERSION}") as (folder, complete):
        python = folder / "venv" / "bin" / "python"
        if not complete:
            require("java", "Spark needs Java 17")
            for command in (
                [sys.executable, "-m", "venv", "--clear", str(folder / "venv")],
                [str(python), "-m", "pip", "install", "--quiet", f"pyspark=={VERSION}"],
            ):
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
                if done.returncode != 0:
                    unavailable(f"PySpark {VERSION} could not be installed: {(done.stdout + done.stderr)[-1500:]}")
    return python


def connector_jars() -> list[str]:
    """Spark's Kafka connector and the Kafka client that it uses."""
    found = fetched_jars(f"spark-kafka-{VERSION}", [CONNECTOR])
    return sorted(str(jar) for jar in found.glob("*.jar") if jar.name.startswith(NOT_IN_SPARK))
