"""The encodings of keys and values: what they share with Rust, their order, and what they refuse."""

import json
import math
import random
import struct
from pathlib import Path
from typing import Optional

import pytest

from napreduce.codec import DecodeError, Number, key_codec, value_codec

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())

TYPES = {
    "str": str,
    "bytes": bytes,
    "int": int,
    "float": float,
    "bool": bool,
    "None": None,
    "Optional[str]": Optional[str],
    "(str,)": (str,),
    "(str, int)": (str, int),
    "((str, str), Optional[float])": ((str, str), Optional[float]),
}


def written(key_type, value):
    """A key as it is written in the file of vectors."""
    if value is None:
        return None
    if key_type is bytes:
        return bytes.fromhex(value)
    if key_type is float:
        return struct.unpack(">d", bytes.fromhex(value))[0]
    if isinstance(key_type, tuple):
        return tuple(written(field, part) for field, part in zip(key_type, value))
    return written(float, value) if key_type == Optional[float] else value


KEYS = [
    (known["type"], *key) for known in VECTORS["keys"] for key in known["keys"]
]
REFUSED = [(known["type"], data) for known in VECTORS["refused"] for data in known["bytes"]]


def same(one, other):
    return one == other or (one != one and other != other)


@pytest.mark.parametrize(("name", "value", "last", "inside"), KEYS)
def test_keys_match_rust(name, value, last, inside):
    codec, value = key_codec(TYPES[name]), written(TYPES[name], value)
    assert codec.encode(value).hex() == last
    assert codec.encode(value, False).hex() == inside
    assert same(codec.decode(bytes.fromhex(last)), value)
    found, end = codec.take(bytes.fromhex(inside) + b"rest", 0, False)
    assert same(found, value) and end == len(inside) // 2


def test_vectors_cover_all_types():
    assert {known["type"] for known in VECTORS["keys"]} == set(TYPES)
    assert len(KEYS) > 50 and len(REFUSED) > 15


@pytest.mark.parametrize(("name", "data"), REFUSED)
def test_invalid_bytes_are_rejected_as_in_rust(name, data):
    with pytest.raises(DecodeError):
        key_codec(TYPES[name]).decode(bytes.fromhex(data))


def test_bytes_sort_like_keys():
    dice = random.Random(7)

    def text():
        return "".join(dice.choice("\0\1ab\xff") for _ in range(dice.randrange(5)))

    for key_type, make in [
        (str, text),
        (int, lambda: dice.choice([dice.randrange(-3, 3), dice.getrandbits(64) - 2**63])),
        (float, lambda: dice.choice([dice.uniform(-2, 2), 10.0 ** dice.randrange(-300, 300), -math.inf])),
        ((str, int, bytes), lambda: (text(), dice.randrange(-2, 2), text().encode())),
    ]:
        codec = key_codec(key_type)
        keys = [make() for _ in range(2000)]
        assert sorted(keys) == [codec.decode(data) for data in sorted(map(codec.encode, keys))]


def test_none_sorts_first():
    codec = key_codec(Optional[int])
    assert codec.encode(None) < codec.encode(-(2**63))


@pytest.mark.parametrize(
    ("key_type", "key", "error"),
    [
        (str, b"x", TypeError),
        (str, 1, TypeError),
        (str, "\ud800", UnicodeEncodeError),
        (bytes, "x", TypeError),
        (int, 1.0, TypeError),
        (int, "1", TypeError),
        (int, 2**63, OverflowError),
        (int, -(2**63) - 1, OverflowError),
        (float, "x", TypeError),
        (bool, 1, TypeError),
        (None, 0, TypeError),
        ((str, int), ("x",), TypeError),
        ((str, int), ["x", 1], TypeError),
        ((str, int), "x1", TypeError),
        ((str, int), ("x", None), TypeError),
    ],
)
def test_key_of_other_type_is_rejected(key_type, key, error):
    with pytest.raises(error):
        key_codec(key_type).encode(key)


@pytest.mark.parametrize("key_type", [list, dict, "str", (), (str,) * 7, Optional[list], (str, ...)])
def test_unordered_key_type_is_rejected(key_type):
    with pytest.raises(TypeError, match="cannot be a key type"):
        key_codec(key_type)


@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**127 - 1, 2**127, -(2**127), 7**200])
def test_integers_have_any_size(number):
    codec = value_codec(int)
    data = codec.encode(number)
    assert codec.decode(data) == number
    assert len(data) == (8 if -(2**63) <= number < 2**63 else max(16, len(data)))


def test_combined_number_over_limit_is_rejected():
    assert len(Number(64).encode(2**63 - 1)) == 8
    for bits, number in [(64, 2**63), (64, -(2**63) - 1), (128, 2**127), (128, -(2**127) - 1)]:
        with pytest.raises(OverflowError, match=f"exceeds {bits} bits; combine such numbers in Python"):
            Number(bits).encode(number)
    assert Number(128).decode(Number(128).encode(-(2**127))) == -(2**127)
    for wrong in ["1", 1.5, None]:
        with pytest.raises(TypeError):
            Number(64).encode(wrong)
    for length in [0, 7, 9, 15]:
        with pytest.raises(DecodeError):
            Number().decode(bytes(length))


@pytest.mark.parametrize("value", [(1, 2), [{"a": (1,)}], {1: "a"}, {"a": {None: 1}}, {1, 2}, b"bytes"])
def test_values_that_json_changes_are_refused(value):
    with pytest.raises(TypeError, match="after JSON; use .* or values=\"pickle\""):
        value_codec("json").encode(value)


@pytest.mark.parametrize(("value_type", "value"), [("pickle", {1: {2.5}}), ("json", {"a": [1, None]}), (bytes, b"\0"), (str, "é"), ((str, float), ("a", 0.5))])
def test_values_round_trip(value_type, value):
    codec = value_codec(value_type)
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(("kind", "negative", "positive"), [
    (float, -0.0, 0.0),
    (Optional[float], -0.0, 0.0),
    ((str, float), ("a", -0.0), ("a", 0.0)),
    (((float, int), None), ((-0.0, 1), None), ((0.0, 1), None)),
])
def test_negative_zero_is_zero_in_keys_and_stays_in_values(kind, negative, positive):
    assert key_codec(kind).encode(negative) == key_codec(kind).encode(positive)
    assert repr(key_codec(kind).decode(key_codec(kind).encode(negative))) == repr(positive)
    codec = value_codec(kind)
    assert repr(codec.decode(codec.encode(negative))) == repr(negative)
    assert repr(codec.decode(codec.encode(positive))) == repr(positive)
