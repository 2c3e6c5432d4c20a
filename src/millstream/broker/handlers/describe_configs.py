"""DescribeConfigs: every setting of a resource, with where its value comes from."""

from __future__ import annotations

from millstream.broker.config_access import config_refusal
from millstream.broker.dispatch import Context, handles
from millstream.metadata.describe_configs import describe_configs as describe
from millstream.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse


@handles(DescribeConfigsRequest, versions="1-4")
def describe_configs(request: DescribeConfigsRequest, ctx: Context) -> DescribeConfigsResponse:
    broker = ctx.broker
    return describe(
        broker.image,
        request,
        settings=broker.settings,
        node_id=broker.node_id,
        refusal=config_refusal(DescribeConfigsRequest, ctx),
    )
