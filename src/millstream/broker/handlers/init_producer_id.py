"""InitProducerId: a fresh producer id for idempotent writing.

Without a transactional id every request gets a new id with epoch 0, as in Kafka, also one that brings an id along:
the old one cannot be continued, since nobody but the producer knows how far it got.

A transactional id is refused, because there is no transaction coordinator yet. The answer has no room for a sentence,
so the code must stop the client by itself. UNSUPPORTED_VERSION would be the plain truth and ends a Java producer, but
librdkafka takes everything outside a short list for a passing state and tries again until its timeout, as it does with
COORDINATOR_NOT_AVAILABLE. TRANSACTIONAL_ID_AUTHORIZATION_FAILED is on that list, is fatal in the Java client too, and
says what holds: nobody may use a transactional id here.
"""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from millstream.security.operations import ANY_NAME, needs_of

_TRANSACTIONAL, _TWO_PHASE, _IDEMPOTENT = needs_of(InitProducerIdRequest)
NO_PRODUCER_ID, NO_PRODUCER_EPOCH = -1, -1


@handles(InitProducerIdRequest, versions="0-5")
async def init_producer_id(request: InitProducerIdRequest, ctx: Context) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        if request.transactional_id == "":
            return _refused(ErrorCode.INVALID_REQUEST)
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST)
    if not _IDEMPOTENT.granted(ctx.allows, ANY_NAME):
        return _refused(_IDEMPOTENT.refusal)
    try:
        producer_id = await ctx.broker.producer_ids.next()
    except BrokerError as refusal:
        return _refused(refusal.code)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)
