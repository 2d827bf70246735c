"""What devices and collectors say to each other: formats, ids and the two halves of a report.

Everything that arrives is decoded strictly: a wrong type, length, shape or number is refused with a
sentence, before anything is allocated that the sender chose the size of. Nothing is pickled.
"""

from tacit.wire.formats import (
    TERMS,
    VERSION,
    array_from_json,
    array_to_json,
    canonical,
    publication_from_json,
    publication_to_json,
    task_from_json,
    task_id,
    task_to_json,
)
from tacit.wire.halves import device_message, local_privatizer
from tacit.wire.messages import (
    coin,
    new_report_id,
    pack_message,
    pack_trajectory,
    report_id,
    unpack_message,
    unpack_trajectory,
)

__all__ = [
    "TERMS",
    "VERSION",
    "array_from_json",
    "array_to_json",
    "canonical",
    "coin",
    "device_message",
    "local_privatizer",
    "new_report_id",
    "pack_message",
    "pack_trajectory",
    "publication_from_json",
    "publication_to_json",
    "report_id",
    "task_from_json",
    "task_id",
    "task_to_json",
    "unpack_message",
    "unpack_trajectory",
]
