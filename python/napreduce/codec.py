"""Encodings of keys and values, the same as in Rust: encoded keys compare as the keys do, so sorting calls no Python code.

``vectors.json`` next to the tests contains encoded keys that both implementations must reproduce.
"""

from __future__ import annotations

import binascii
import json
import math
import operator
import pickle
import struct
import types
import typing
from typing import Any, Callable, Dict, Tuple, Type

#: ``str``, ``bytes``, ``int``, ``float``, ``bool``, ``None``, a tuple of these (``(str, int)`` or ``Tuple[str, int]``), or
#: ``Optional`` of one.
KeyType = Any

_SIGN = 1 << 63
_TUPLE_MOST = 6
_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")
_F64 = struct.Struct(">d")


class DecodeError(ValueError):
    """The error for bytes that do not encode the wanted type."""


class Codec:
    """The encoding of one type. The last field of a record extends to the end of the record; others are delimited."""

    def encode(self, value: Any, last: bool = True) -> bytes:
        """Returns the bytes of a value."""
        raise NotImplementedError

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        """Returns the value that begins at byte ``at``, and its end."""
        raise NotImplementedError

    def decode(self, data: bytes) -> Any:
        """Returns the value of all the bytes."""
        value, end = self.take(data, 0, True)
        if end != len(data):
            raise DecodeError(f"expected the end at byte {end} of the encoding")
        return value


class _Bytes(Codec):
    def encode(self, value: Any, last: bool = True) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"{value!r} is not bytes")
        data = bytes(value)
        return data if last else data.replace(b"\0", b"\0\xff") + b"\0\0"

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        if last:
            return data[at:], len(data)
        parts = []
        while True:
            zero = data.find(b"\0", at)
            mark = data[zero + 1 : zero + 2] if zero >= 0 else b""
            if mark not in (b"\0", b"\xff"):
                raise DecodeError("expected the end of a byte string (00 00)")
            parts.append(data[at:zero])
            at = zero + 2
            if mark == b"\0":
                return b"\0".join(parts), at


class _Str(_Bytes):
    def encode(self, value: Any, last: bool = True) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"{value!r} is not a str")
        data = value.encode()
        return data if last else data.replace(b"\0", b"\0\xff") + b"\0\0"

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        text, end = super().take(data, at, last)
        try:
            return text.decode(), end
        except UnicodeDecodeError as error:
            raise DecodeError(f"expected UTF-8 text: {error}") from None

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(f"expected UTF-8 text: {error}") from None


def _fixed(data: bytes, at: int, length: int, what: str) -> bytes:
    found = data[at : at + length]
    if len(found) != length:
        raise DecodeError(f"expected {what} ({length} bytes) at byte {len(data)} of the encoding")
    return found


class _Int(Codec):
    """An ``i64`` with its sign bit flipped, so that negative numbers sort first."""

    def encode(self, value: Any, last: bool = True) -> bytes:
        number = operator.index(value)
        if not -_SIGN <= number < _SIGN:
            raise OverflowError(f"{number} exceeds 64 bits; use a str or bytes as the key")
        return _U64.pack(number + _SIGN)

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        (number,) = _U64.unpack(_fixed(data, at, 8, "an i64"))
        return number - _SIGN, at + 8


class _Float(Codec):
    """An ``f64``: all bits of negative numbers are flipped, of others the sign bit. There is one NaN, which sorts last."""

    def encode(self, value: Any, last: bool = True) -> bytes:
        number = math.nan if math.isnan(value) else float(value)
        (bits,) = _U64.unpack(_F64.pack(number))
        if math.isnan(number):
            bits = 0x7FF8 << 48
        return _U64.pack(bits ^ (0xFFFF_FFFF_FFFF_FFFF if bits & _SIGN else _SIGN))

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        (bits,) = _U64.unpack(_fixed(data, at, 8, "an f64"))
        bits ^= _SIGN if bits & _SIGN else 0xFFFF_FFFF_FFFF_FFFF
        (number,) = _F64.unpack(_U64.pack(bits))
        return number, at + 8


class _FloatKey(_Float):
    """A float as a key. There is one zero, so that ``0.0`` and ``-0.0`` are one group."""

    def encode(self, value: Any, last: bool = True) -> bytes:
        return super().encode(0.0 if value == 0 else value, last)


class _Bool(Codec):
    def encode(self, value: Any, last: bool = True) -> bytes:
        if not isinstance(value, bool):
            raise TypeError(f"{value!r} is not a bool")
        return b"\1" if value else b"\0"

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        byte = _fixed(data, at, 1, "a bool")
        if byte not in (b"\0", b"\1"):
            raise DecodeError(f"expected a bool (0 or 1) at byte {at} of the encoding")
        return byte == b"\1", at + 1


class _Nothing(Codec):
    def encode(self, value: Any, last: bool = True) -> bytes:
        if value is not None and value != ():
            raise TypeError(f"{value!r} is not None")
        return b""

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        return None, at


class _Optional(Codec):
    def __init__(self, inner: Codec) -> None:
        self._inner = inner

    def encode(self, value: Any, last: bool = True) -> bytes:
        return b"\0" if value is None else b"\1" + self._inner.encode(value, last)

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        tag = data[at : at + 1]
        if tag == b"\0":
            return None, at + 1
        if tag != b"\1":
            raise DecodeError(f"expected the tag of an Option (0 or 1) at byte {at} of the encoding")
        return self._inner.take(data, at + 1, last)


class _Tuple(Codec):
    def __init__(self, fields: Tuple[Codec, ...]) -> None:
        self._fields = fields

    def encode(self, value: Any, last: bool = True) -> bytes:
        if not isinstance(value, tuple) or len(value) != len(self._fields):
            raise TypeError(f"{value!r} is not a tuple of {len(self._fields)}")
        *inner, end = zip(self._fields, value)
        return b"".join([codec.encode(field, False) for codec, field in inner]) + end[0].encode(end[1], last)

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        values = []
        for number, codec in enumerate(self._fields):
            value, at = codec.take(data, at, last and number == len(self._fields) - 1)
            values.append(value)
        return tuple(values), at


class Grouped(Codec):
    """A key and the order of its values within the group. Both are encoded; only the key is decoded."""

    def __init__(self, key: Codec, order: Codec) -> None:
        self._key, self._order = key, order

    def encode(self, value: Any, last: bool = True) -> bytes:
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(f"{value!r} is not a pair of key and order")
        key = self._key.encode(value[0])
        return _U32.pack(len(key)) + key + self._order.encode(value[1])

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        return self._key.take(data, at, last)


def split_grouped(data: bytes) -> Tuple[bytes, bytes]:
    """Returns key and order of an encoding by `Grouped`."""
    (length,) = _U32.unpack_from(data)
    end = _U32.size + length
    return data[_U32.size : end], data[end:]


class Number(Codec):
    """An integer as a value: 8 bytes as an ``i64``, 16 as an ``i128``, or more if needed. Not for keys."""

    def __init__(self, bits_most: int = 0) -> None:
        self._most = bits_most

    def encode(self, value: Any, last: bool = True) -> bytes:
        try:
            return _U64.pack(value + _SIGN)
        except (struct.error, TypeError):
            pass
        number = operator.index(value)
        bits = number.bit_length() if number >= 0 else (~number).bit_length()
        if self._most and bits >= self._most:
            raise OverflowError(
                f"{number} exceeds {self._most} bits; combine such numbers in Python: "
                "job.combine(lambda values: sum(values))"
            )
        length = 8 if bits < 64 else max(16, bits // 8 + 1)
        return (number + (1 << (8 * length - 1))).to_bytes(length, "big")

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        length = len(data) - at
        if length != 8 and length < 16:
            raise DecodeError(f"expected an integer of 8, 16 or more bytes, got {length}")
        return int.from_bytes(data[at:], "big") - (1 << (8 * length - 1)), len(data)


class _Foreign(Codec):
    """Made by others, and only where nothing follows."""

    def __init__(self, encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> None:
        self._encode, self._decode = encode, decode

    def encode(self, value: Any, last: bool = True) -> bytes:
        return self._encode(value)

    def take(self, data: bytes, at: int, last: bool) -> Tuple[Any, int]:
        return self._decode(data[at:]), len(data)


_PLAIN_VALUES = {str: _Str, bytes: _Bytes, int: _Int, float: _Float, bool: _Bool, type(None): _Nothing, None: _Nothing}
_PLAIN_KEYS = {**_PLAIN_VALUES, float: _FloatKey}


def key_codec(key_type: KeyType) -> Codec:
    """Returns the encoding of keys of a type."""
    return _codec(key_type, _PLAIN_KEYS)


def _codec(key_type: KeyType, plain_types: Dict[Any, Type[Codec]]) -> Codec:
    try:
        plain = plain_types.get(key_type)
    except TypeError:
        plain = None
    if plain is not None:
        return plain()
    fields: Tuple[Any, ...] = typing.get_args(key_type)
    origin: Any = typing.get_origin(key_type)
    if isinstance(key_type, tuple):
        fields, origin = key_type, tuple
    if origin is tuple and 1 <= len(fields) <= _TUPLE_MOST and ... not in fields:
        return _Tuple(tuple(_codec(field, plain_types) for field in fields))
    if origin in (typing.Union, getattr(types, "UnionType", typing.Union)):
        inner = [field for field in fields if field is not type(None)]
        if len(inner) == 1 and len(fields) == 2:
            return _Optional(_codec(inner[0], plain_types))
    raise TypeError(
        f"{key_type!r} cannot be a key type; use str, bytes, int, float, bool, None, a tuple of up to "
        f"{_TUPLE_MOST} of these, or Optional of one"
    )


def _json(value: Any) -> bytes:
    """Returns a value as JSON. Refuses values that JSON changes: tuples, and keys other than strings."""
    _check_json(value)
    return json.dumps(value, separators=(",", ":")).encode()


def _check_json(value: Any) -> None:
    kind = type(value)
    if kind is list:
        for item in value:
            _check_json(item)
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f'a dict with the key {key!r} would be another one after JSON; use str keys, or values="pickle"')
            _check_json(item)
    elif kind not in (str, int, float, bool, type(None)):
        raise TypeError(f'{value!r} ({kind.__name__}) would be another value after JSON; use a list or dict, or values="pickle"')


def value_codec(value_type: Any) -> Codec:
    """Returns the encoding of values: a key type, ``int`` of any size, ``"json"`` or ``"pickle"``."""
    if value_type == "pickle":
        return _Foreign(lambda value: pickle.dumps(value, 5), pickle.loads)
    if value_type == "json":
        return _Foreign(_json, json.loads)
    return Number() if value_type is int else _codec(value_type, _PLAIN_VALUES)


def encode_record(record: Any) -> bytes:
    """Returns a record of a dataset as one line: pickled, in Base64."""
    return binascii.b2a_base64(pickle.dumps(record, 5), newline=False)


def decode_record(line: bytes) -> Any:
    """Returns the record of a line of a dataset."""
    return pickle.loads(binascii.a2b_base64(line))
