"""`kafka-server-start server.properties [--override name=value]...`"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.cli.broker import overrides, run_broker
from millstream.cli.connect import read_properties
from millstream.cli.declare import UsageError
from millstream.cli.kafka.arguments import ToolParser

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(words: Sequence[str]) -> int:
    parser = ToolParser("kafka-server-start", "Run a broker with a server.properties.")
    parser.add_argument("properties", help="a server.properties")
    parser.flag("-daemon", help="not supported: let your service manager do that")
    parser.multiple("--override", metavar="NAME=VALUE", help="a setting that wins over the file's")
    parsed = parser.parse_args(list(words))
    if parsed.daemon:
        raise UsageError("-daemon is not supported: start it with a service manager, or with & in a shell")
    return run_broker(read_properties(parsed.properties), overrides(parsed.override))
