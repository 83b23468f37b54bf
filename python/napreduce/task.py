"""The task side of the frame protocol: maps records or reduces groups, and saves and restores the state."""

from __future__ import annotations

import os
import pickle
import struct
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from . import frames
from .codec import Codec
from .frames import BATCH_BYTES, BATCH_STRINGS, Pipe, ProtocolError

if TYPE_CHECKING:
    from .job import Job

#: Number of pairs at which the pairs of each key are combined.
_COMBINED_PAIRS = 100_000
#: Length of a record in an error.
_RECORD_BYTES_MOST = 200
_PROGRESS_SECONDS = 1.0
_DONE_SECONDS = 0.1
_DONE = struct.Struct(">Q")
_HERE = str(Path(__file__).parent)
#: Where this process was started; in a task, the directory of the attempt.
_DIRECTORY = os.getcwd()
#: Returns the job of a task: its parameters without those of this module, its input file, its attempt.
Begin = Callable[[Dict[str, str], Optional[str], Optional[str]], "Job"]


class Counter:
    """A user counter; the report of the job contains its total."""

    def __init__(self, name: str) -> None:
        self._name = name

    def add(self, amount: int = 1) -> None:
        """Adds to the counter. Failed attempts of a task are not counted."""
        if amount < 0:
            raise ValueError(f"counter {self._name!r}: {amount} is negative")
        _counted[self._name] = _counted.get(self._name, 0) + amount


_counted: Dict[str, int] = {}
_speaking: Optional["_Task"] = None


def counter(name: str) -> Counter:
    """Returns the counter of this name."""
    return Counter(name)


def progress() -> None:
    """Reports progress for a task that spends minutes on one record, so that it is not killed as hung."""
    if _speaking is not None:
        _speaking.progress()


class _Task:
    """The common part of map and reduce tasks."""

    def __init__(self, pipe: Pipe, function: Any) -> None:
        self._pipe = pipe
        self._function = function
        self._last_progress = 0.0
        #: Processed records or values, and the time of the next report.
        self._done = 0
        self._due = float("inf")

    def report_done(self) -> None:
        """Starts to report the number of processed records or values."""
        self._due = 0.0

    def _did(self, count: int) -> None:
        self._done += count
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _DONE_SECONDS
            self._pipe.write(frames.DONE, _DONE.pack(self._done))

    def progress(self) -> None:
        now = time.monotonic()
        if now - self._last_progress >= _PROGRESS_SECONDS:
            self._last_progress = now
            self._pipe.write(frames.LOG)

    def restore(self, state: bytes) -> None:
        """Restores the state that another process has saved."""
        user, own = pickle.loads(state)
        self.restore_own(own)
        if user is None:
            return
        if hasattr(self._function, "__setstate__"):
            self._function.__setstate__(user[0])
        else:
            self._function.__dict__.update(user[0])

    def save(self) -> None:
        """Sends the state, after all output."""
        self.flush()
        user = (self._function.__getstate__(),) if is_stateful(self._function) else None
        own = self.own_state()
        if user is None and own is None:
            self._pipe.write(frames.STATELESS)
        else:
            self._pipe.write(frames.STATE, pickle.dumps((user, own), 5))

    def flush(self) -> None:
        if _counted:
            self._pipe.write_json(frames.COUNTERS, _counted)
            _counted.clear()

    def own_state(self) -> Any:
        return None

    def restore_own(self, own: Any) -> None:
        pass


def is_stateful(function: Any) -> bool:
    """Whether its class defines ``__getstate__``."""
    return any("__getstate__" in vars(known) for known in type(function).__mro__ if known is not object)


class _Lines:
    """Lines of the output."""

    def __init__(self, pipe: Pipe, encode: Callable[[Any], bytes]) -> None:
        self._pipe = pipe
        self._encode = encode
        self._lines: List[bytes] = []
        self._bytes = 0

    def add_all(self, items: Optional[Iterable[Any]]) -> None:
        encode = self._encode
        for item in as_items(items):
            written = encode(item)
            self._lines.append(written)
            self._bytes += len(written)
            if self._bytes >= BATCH_BYTES or len(self._lines) >= BATCH_STRINGS:
                self.flush()

    def flush(self) -> None:
        if self._lines:
            self._pipe.write(frames.OUTPUT, frames.batch(self._lines))
            self._lines, self._bytes = [], 0


def as_items(items: Optional[Iterable[Any]]) -> Iterable[Any]:
    """Returns the items that a function has returned; raises ``TypeError`` for a single value."""
    if items is None:
        return ()
    if isinstance(items, (str, bytes, tuple, dict)):
        raise TypeError(f"the function returned {items!r}; use yield, or return a list")
    return items


def line(item: Any) -> bytes:
    """Returns the line of an output item; the fields of a tuple are separated by TABs."""
    if isinstance(item, tuple):
        return b"\t".join([_field(field) for field in item])
    return _field(item)


def flat_line(item: Any) -> bytes:
    """Returns the line of an output item whose fields may be tuples or lists, which become several fields."""
    if not isinstance(item, tuple):
        return line(item)
    fields: List[Any] = []
    for field in item:
        fields.extend(field if isinstance(field, (tuple, list)) else [field])
    return line(tuple(fields))


def _field(field: Any) -> bytes:
    if isinstance(field, bytes):
        return field
    return b"" if field is None else str(field).encode()


class _Pairs:
    """Pairs for the reduces."""

    def __init__(self, pipe: Pipe, keys: Codec, values: Codec) -> None:
        self._pipe = pipe
        self._encode_key, self._encode_value = keys.encode, values.encode
        self._keys: List[bytes] = []
        self._values: List[bytes] = []
        self._bytes = 0

    def add_all(self, pairs: Optional[Iterable[Tuple[Any, Any]]]) -> None:
        keys, values, size = self._keys, self._values, self._bytes
        encode_key, encode_value = self._encode_key, self._encode_value
        for key, value in as_items(pairs):
            key, value = encode_key(key), encode_value(value)
            keys.append(key)
            values.append(value)
            size += len(key) + len(value)
            # The pairs of one record may exceed the memory.
            if size >= BATCH_BYTES or len(keys) >= BATCH_STRINGS:
                self.flush()
                keys, values, size = self._keys, self._values, 0
        self._bytes = size

    def flush(self) -> None:
        if self._keys:
            self._pipe.write(frames.OUTPUT, frames.batch(self._keys, self._values))
            self._keys, self._values, self._bytes = [], [], 0

    def own_state(self) -> Any:
        return None

    def restore_own(self, own: Any) -> None:
        pass


class _CombinedPairs(_Pairs):
    """Pairs whose values are combined by key whenever there are enough pairs.

    Uncombined pairs are part of the state, so combining depends only on the pairs and not on interruptions.
    """

    def __init__(self, pipe: Pipe, keys: Codec, values: Codec, combine: Any) -> None:
        super().__init__(pipe, keys, values)
        self._combine = combine
        self._held: Dict[Any, List[Any]] = {}
        self._count = 0

    def add_all(self, pairs: Optional[Iterable[Tuple[Any, Any]]]) -> None:
        held = self._held
        for key, value in as_items(pairs):
            values = held.get(key)
            if values is None:
                held[key] = [value]
            else:
                values.append(value)
            self._count += 1
        if self._count >= _COMBINED_PAIRS:
            self.combine()

    def combine(self) -> None:
        combine, held = self._combine, self._held
        self._held, self._count = {}, 0
        super().add_all(
            [(key, values[0] if len(values) == 1 else combine(values)) for key, values in held.items()]
        )

    def own_state(self) -> Any:
        return (self._held, self._count) if self._held else None

    def restore_own(self, own: Any) -> None:
        if own is not None:
            self._held, self._count = own


class MapTask(_Task):
    """Maps records to pairs, or to lines of the output."""

    def __init__(self, pipe: Pipe, job: "Job") -> None:
        super().__init__(pipe, job.make_map())
        self._decode, self._pair = job.decode_record, job.pair
        #: The current record, if there is one.
        self._mapping: Optional[bytes] = None
        self._out: Any = _Lines(pipe, job.encode_item)
        if job.reduces_groups:
            keys, values = job.codecs()
            combine = job.combine_here
            self._out = _CombinedPairs(pipe, keys, values, combine) if combine else _Pairs(pipe, keys, values)

    def run(self) -> None:
        while True:
            kind, payload = self._pipe.read()
            if kind == frames.RECORDS:
                self._records(payload)
            elif kind == frames.SAVE:
                self.save()
            elif kind == frames.END:
                break
            else:
                raise ProtocolError(f"a frame {chr(kind)} for a map")
        if hasattr(self._function, "finish"):
            self._add_all(self._function.finish())
        if isinstance(self._out, _CombinedPairs):
            self._out.combine()
        self.flush()

    def _records(self, payload: bytes) -> None:
        function, decode, did = self._function, self._decode, self._did
        add_all = self._out.add_all if self._pair is None else self._add_all
        for record in frames.strings(payload):
            self._mapping = record
            add_all(function(decode(record)))
            did(1)
        self._mapping = None

    def _add_all(self, items: Optional[Iterable[Any]]) -> None:
        pair = self._pair
        self._out.add_all(items if pair is None else [pair(item) for item in as_items(items)])

    def flush(self) -> None:
        self._out.flush()
        super().flush()

    def own_state(self) -> Any:
        return None if isinstance(self._out, _Lines) else self._out.own_state()

    def restore_own(self, own: Any) -> None:
        if own is not None:
            self._out.restore_own(own)

    @property
    def failed_record(self) -> Optional[Tuple[int, bytes]]:
        """The number of the current record, and the record, if there is one."""
        return None if self._mapping is None else (self._done, self._mapping)


class ReduceTask(_Task):
    """Reduces groups to lines of the output."""

    def __init__(self, pipe: Pipe, job: "Job") -> None:
        super().__init__(pipe, job.make_reduce())
        keys, values = job.codecs()
        self._decode_key, self._decode_value = keys.decode, values.decode
        self._out = _Lines(pipe, job.encode_item)

    def run(self) -> None:
        while True:
            kind, payload = self._pipe.read()
            if kind == frames.GROUP:
                self._group(payload)
            elif kind == frames.SAVE:
                self.save()
            elif kind == frames.END:
                break
            else:
                raise ProtocolError(f"a frame {chr(kind)} between groups")
        if hasattr(self._function, "finish"):
            self._out.add_all(self._function.finish())
        self.flush()

    def _group(self, payload: bytes) -> None:
        key = self._decode_key(payload)
        values = self._values()
        try:
            self._out.add_all(self._function(key, values))
        except Exception as error:
            raise GroupError(key) from error
        for _ in values:
            pass

    def _values(self) -> Iterator[Any]:
        read, decode = self._pipe.read, self._decode_value
        while True:
            kind, payload = read()
            if kind == frames.GROUP_END:
                return
            if kind != frames.VALUES:
                raise ProtocolError(f"a frame {chr(kind)} in a group")
            values = frames.strings(payload)
            for value in values:
                yield decode(value)
            self._did(len(values))

    def flush(self) -> None:
        self._out.flush()
        super().flush()


class MissingJobError(RuntimeError):
    """A program in whose file a task does not find its job."""


class GroupError(Exception):
    """A failed reduce of one group; the cause is the error."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.key = key


def speak(begin: Begin, pipe: Pipe) -> bool:
    """Runs the task that ``nap`` requests, of the job that ``begin`` returns. Returns whether it succeeded."""
    task: Optional[_Task] = None
    job: Optional["Job"] = None
    try:
        greeting, state = pipe.greeting()
        if greeting["version"] != frames.VERSION:
            raise ProtocolError(
                f"nap speaks frames of version {greeting['version']}, but this module supports version {frames.VERSION}; "
                "install the same release of both"
            )
        job = begin(greeting["parameters"], greeting["input"], greeting["attempt"])
        description = job.describe()
        pipe.write_json(frames.HELLO, description)
        if greeting["role"] == "describe":
            return True
        task = MapTask(pipe, job) if greeting["role"] == "map" else ReduceTask(pipe, job)
        if greeting["restores"]:
            task.restore(state)
        if greeting.get("tells_done"):
            task.report_done()
        global _speaking
        _speaking = task
        task.run()
        pipe.write(frames.FINISHED)
        return True
    except (EOFError, BrokenPipeError):
        # nap has closed the pipe.
        return False
    except BaseException as error:
        pipe.write_json(frames.FAILURE, _failure(error, task, job is not None and job.shows_record))
        pipe.drain()
        return False


def _failure(error: BaseException, task: Optional[_Task], shows_record: bool) -> Dict[str, Any]:
    if isinstance(error, MissingJobError):
        return {"message": str(error), "record": None}
    about = ""
    if isinstance(error, GroupError):
        about = f"reducing the group of {error.key!r}\n"
        error = error.__cause__ or error
    # Imported here, as every import delays every task, and few fail.
    import traceback

    shown = "".join(traceback.format_exception(type(error), error, _of_program(error.__traceback__))).rstrip()
    # The directory differs between attempts; without it, equal failures of a task are equal texts.
    shown = shown.replace(_DIRECTORY + os.sep, "")
    failed = task.failed_record if isinstance(task, MapTask) else None
    if failed is None:
        return {"message": about + shown, "record": None}
    number, record = failed
    if shows_record:
        # First, as a line of its own: an exception's text may have any lines.
        shown = f"record: {_cut(record)!r}\n{shown}"
    return {"message": shown, "record": number}


def _cut(record: bytes) -> str:
    """Returns the beginning of a record."""
    text = record[:_RECORD_BYTES_MOST].decode(errors="replace")
    return text if len(record) <= _RECORD_BYTES_MOST else f"{text}..."


def _of_program(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    """Removes the frames of this module from a traceback, unless there are no others."""
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_HERE):
        rest = rest.tb_next
    return rest or trace
