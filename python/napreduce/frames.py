"""Frames over pipes: a length, a kind and a payload. Batches of byte strings as payloads."""

from __future__ import annotations

import io
import json
import os
import struct
from typing import Any, Dict, List, Optional, Sequence, Tuple

#: Version of the protocol.
VERSION = 1
#: Bytes at which output is sent.
BATCH_BYTES = 64 << 10
#: Number of byte strings at which output is sent.
BATCH_STRINGS = 16 << 10

_HEAD = struct.Struct(">IB")
_COUNT = struct.Struct(">I")
_PIPE_BYTES = 128 << 10

HELLO, RECORDS, OUTPUT, GROUP, VALUES, GROUP_END = b"HROGVg"
COUNTERS, LOG, DONE, FAILURE, SAVE, STATE, STATELESS, END, FINISHED = b"CLPXSDdEF"


class ProtocolError(Exception):
    """A violation of the protocol by ``nap``."""


class Pipe:
    """The pipes from and to ``nap``."""

    def __init__(self, source: int, target: int) -> None:
        self._source = io.BufferedReader(io.FileIO(source, "rb"), _PIPE_BYTES)
        self._target = io.FileIO(target, "wb")
        self._greeting: Optional[Tuple[Dict[str, Any], bytes]] = None

    def greeting(self) -> Tuple[Dict[str, Any], bytes]:
        """Returns the greeting of ``nap``, which is read once, and the state to restore."""
        if self._greeting is None:
            kind, payload = self.read()
            if kind != HELLO:
                raise ProtocolError(f"expected a frame H, got {chr(kind)}")
            (length,) = _COUNT.unpack_from(payload)
            end = _COUNT.size + length
            self._greeting = json.loads(payload[_COUNT.size : end]), payload[end:]
        return self._greeting

    def read(self) -> Tuple[int, bytes]:
        """Returns kind and payload of the next frame."""
        head = self._source.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise EOFError("nap has closed the pipe")
        length, kind = _HEAD.unpack(head)
        payload = self._source.read(length)
        if len(payload) < length:
            raise EOFError("nap has closed the pipe in the middle of a frame")
        return kind, payload

    def write(self, kind: int, payload: bytes = b"") -> None:
        """Sends a frame."""
        if len(payload) > 0xFFFF_FFFF:
            raise OverflowError(f"a frame of {len(payload)} bytes; emit smaller values")
        rest = memoryview(_HEAD.pack(len(payload), kind) + payload)
        while rest:
            rest = rest[self._target.write(rest) or 0 :]

    def write_json(self, kind: int, value: Any) -> None:
        """Sends a frame with JSON as its payload."""
        self.write(kind, json.dumps(value).encode())

    def drain(self) -> None:
        """Reads and discards the rest, so that ``nap`` is not blocked on a full pipe before it reads the failure."""
        while self._source.read(_PIPE_BYTES):
            pass


def private_pipe() -> Pipe:
    """Takes over standard input and output as the pipe to ``nap``. From then on the program prints to standard error and reads
    an empty input."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return Pipe(source, target)


def strings(payload: bytes) -> List[bytes]:
    """Returns the byte strings of a batch."""
    try:
        (count,) = _COUNT.unpack_from(payload)
        lengths = struct.unpack_from(f">{count}I", payload, _COUNT.size)
    except struct.error:
        raise ProtocolError(f"a batch of {len(payload)} bytes is truncated") from None
    at = _COUNT.size * (count + 1)
    if at + sum(lengths) != len(payload):
        raise ProtocolError(f"a batch of {len(payload)} bytes whose header claims {at + sum(lengths)} bytes")
    found = []
    for length in lengths:
        found.append(payload[at : at + length])
        at += length
    return found


def pairs(payload: bytes) -> List[Tuple[bytes, bytes]]:
    """Returns the pairs of a batch."""
    (count,) = _COUNT.unpack_from(payload)
    lengths = struct.unpack_from(f">{2 * count}I", payload, _COUNT.size)
    at = _COUNT.size * (2 * count + 1)
    found = []
    for length in lengths:
        found.append(payload[at : at + length])
        at += length
    return list(zip(found[:count], found[count:]))


def batch(items: Sequence[bytes], others: Optional[Sequence[bytes]] = None) -> bytes:
    """Returns the payload for byte strings, or for pairs if ``others`` are given."""
    lengths = list(map(len, items))
    if others is None:
        return struct.pack(f">I{len(lengths)}I", len(lengths), *lengths) + b"".join(items)
    lengths += map(len, others)
    return struct.pack(f">I{len(lengths)}I", len(items), *lengths) + b"".join(items) + b"".join(others)
