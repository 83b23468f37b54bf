"""Runs the loops of real tasks in one process: a map, the sort, and a reduce."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, List, Tuple, cast

from . import frames
from .codec import split_grouped
from .frames import BATCH_STRINGS, Pipe
from .task import MapTask, ReduceTask

if TYPE_CHECKING:
    from .job import Job


class _Frames:
    """A pipe to a task that has received all of its frames, and keeps the output."""

    def __init__(self, received: List[Tuple[int, bytes]]) -> None:
        self._received = iter([*received, (frames.END, b"")])
        self.output: List[bytes] = []

    def read(self) -> Tuple[int, bytes]:
        return next(self._received)

    def write(self, kind: int, payload: bytes = b"") -> None:
        if kind == frames.OUTPUT:
            self.output.append(payload)

    def write_json(self, kind: int, value: Any) -> None:
        # Counters are not part of the result.
        pass

    def lines(self) -> List[bytes]:
        return [line for payload in self.output for line in frames.strings(payload)]


def run_in_memory(job: "Job", records: List[bytes]) -> List[bytes]:
    """Returns the lines of the output."""
    batches = [records[at : at + BATCH_STRINGS] for at in range(0, len(records), BATCH_STRINGS)]
    mapped = _Frames([(frames.RECORDS, frames.batch(batch)) for batch in batches])
    MapTask(cast(Pipe, mapped), job).run()
    if not job.reduces_groups:
        return mapped.lines()
    pairs = [pair for payload in mapped.output for pair in frames.pairs(payload)]
    parts = [split_grouped(key) if job.is_grouped else (key, b"") for key, _ in pairs]
    entries = [(group, order, value) for (group, order), (_, value) in zip(parts, pairs)]
    entries.sort(key=itemgetter(0, 1))
    received: List[Tuple[int, bytes]] = []
    for key, group in groupby(entries, key=itemgetter(0)):
        values = [value for _, _, value in group]
        received += [(frames.GROUP, key), (frames.VALUES, frames.batch(values)), (frames.GROUP_END, b"")]
    reduced = _Frames(received)
    ReduceTask(cast(Pipe, reduced), job).run()
    return reduced.lines()
