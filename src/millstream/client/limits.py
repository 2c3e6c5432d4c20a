"""What a topic allows: asked once, and kept as long as metadata are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from millstream.client.errors import ClientError
from millstream.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

if TYPE_CHECKING:
    from millstream.client.client import Client
    from millstream.protocol.messages.describe_configs import DescribeConfigsResponse

_TOPIC: Final = 2
_SETTING: Final = "max.message.bytes"


async def batch_bytes_max(client: Client, topic: str) -> int | None:
    """How large a record batch of this topic may be, its header included; None where the broker does not say.

    Producers need no permission to ask for settings, so a refusal is no error: without an answer a batch that is too
    large will be refused as before. So it is asked once, and not again and again as `admin.configs` does.
    """
    now_s = asyncio.get_running_loop().time()
    asked_s, limit = client.batch_limits.get(topic, (None, None))
    if asked_s is None or now_s - asked_s > client.options.metadata_age_ms_max / 1000:
        try:
            limit = await _ask(client, topic)
        except ClientError:
            limit = None
        client.batch_limits[topic] = (now_s, limit)
    return limit


async def _ask(client: Client, topic: str) -> int | None:
    asked = DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=[_SETTING])
    response: DescribeConfigsResponse = await client.call(DescribeConfigsRequest(resources=[asked]))
    for result in response.results:
        for config in result.configs:
            if config.name == _SETTING and (config.value or "").isdecimal():
                return int(config.value or "")
    return None
