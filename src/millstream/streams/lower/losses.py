"""What a source says when records are gone, for who runs an application.

The source under a query speaks to those who write queries: it names `failOnDataLoss`, an option that an application
does not have. Going on as if nothing were missing would make counts wrong without a word, so an application ends, and
says what can be done. The source is in another process, and what it raises comes as a text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from millstream.streams.errors import InputLost

if TYPE_CHECKING:
    from millstream.streams.lower.subtopologies import SubTopology

_LOSS: Final = re.compile(
    r"DataLost: (?P<what>topic '(?P<topic>[^']+)'(?: partition (?P<index>\d+))?.*?)\. With failOnDataLoss=false",
    re.DOTALL,
)


def in_words_of_streams(failure: Exception, part: SubTopology, application_id: str, checkpoint: str) -> Exception:
    """The failure of a sub-topology's query, or what it means if it is a loss."""
    found = _LOSS.search(str(failure))
    if found is None:
        return failure
    anew = "To begin anew: `millstream streams reset`"
    topic, index = found["topic"], found["index"]
    if topic in [part.full_name(each, application_id) for each in part.internal_topics]:
        # The application itself takes only what is done (purging.py).
        said = (
            f"It is a topic of the application itself. If nobody else has deleted from it, the checkpoint {checkpoint} "
            f"is an old one: delete it, and the application goes on where its group stands. {anew}"
        )
    else:
        scope = topic if index is None else f"{topic}:{index}"
        moving = f"millstream group reset-offsets {application_id} --topic {scope} --to-earliest --execute"
        said = (
            f"To go on with what is left, and with the state as it is: `{moving}`, and delete the checkpoint "
            f"{checkpoint}. {anew}"
        )
    lost = InputLost(f"{found['what']}. {said}")
    lost.__cause__ = failure
    return lost
