"""A job as a program defines it.

Owns its parts and what is wrong with them, and the way to ``nap``. Does not own what happens in a task (``task``).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, NoReturn, Optional, Sequence, Tuple, TypeVar, Union

from .codec import Codec, Grouped, KeyType, Number, key_codec, value_codec
from .frames import VERSION, private_pipe
from .task import speak

#: Says to a program that it is to speak frames, and not to run a job.
_SPEAK_VARIABLE = "NAPREDUCE_FRAMES"
_FILES_VARIABLE = "NAPREDUCE_FILES_DIR"
_SUM_BITS, _NUMBER_BITS = 64, 128

_F = TypeVar("_F", bound=Callable[..., Any])


def count(values: Iterable[Any]) -> int:
    """How many values there are. As a combiner: the reduce gets numbers of values, to be summed up."""
    return sum(1 for _ in values)


_NATIVE = {sum: "sum", min: "min", max: "max", count: "sum"}


def side_file(name: str) -> str:
    """The path of a file that the job was given with ``--files PATH[#NAME]``, in a task."""
    path = Path(os.environ.get(_FILES_VARIABLE, "")) / name
    if _FILES_VARIABLE not in os.environ or not path.exists():
        raise FileNotFoundError(f"no side file is called {name!r}; pass it with --files PATH")
    return str(path)


class Job:
    """A job, from its input on: give it a map, and perhaps a combiner and a reduce."""

    def __init__(self, wanted: str, decode: Callable[[bytes], Any]) -> None:
        self._input = wanted
        #: Makes what the map gets of what ``nap`` has read.
        self.decode_record = decode
        self._map: Any = None
        self._reduce: Any = None
        self._combine: Any = None
        self._keys: KeyType = str
        self._order: Optional[KeyType] = None
        self._values: Any = None
        self._reduces: Optional[int] = None
        #: Given with ``--parameter NAME=VALUE``; known in maps and reduces.
        self.parameters: Dict[str, str] = {}
        #: In a map: the file that is read.
        self.input: Optional[str] = None
        #: In a task: the attempt at it, such as ``job_0007_m_0003.1``.
        self.attempt: Optional[str] = None

    @classmethod
    def text(cls) -> "Job":
        """Lines of UTF-8 text, as ``str``; a byte that is not UTF-8 fails the task and is named."""
        return cls("text", bytes.decode)

    @classmethod
    def lines(cls, encoding: str = "utf-8", errors: str = "replace") -> "Job":
        """Lines of text in any encoding that has newlines where ASCII has them, as ``str``; see ``bytes.decode``."""
        b"".decode(encoding, errors)
        return cls("bytes", lambda record: record.decode(encoding, errors))

    @classmethod
    def bytes(cls) -> "Job":
        """Lines of any bytes, as ``bytes``."""
        return cls("bytes", lambda record: record)

    @classmethod
    def json_lines(cls) -> "Job":
        """A JSON value on each line."""
        return cls("bytes", json.loads)

    def map(self, function: _F) -> _F:
        """What is done with each record: a function that yields pairs of key and value, or items of the output where there is
        no reduce; or a class whose objects are such functions."""
        if self._map is not None:
            raise TypeError("the job has a map already")
        self._map = function
        return function

    def combine(self, function: Callable[[Iterable[Any]], Any]) -> None:
        """How values of one key become one value before they travel: ``sum``, ``min``, ``max``, ``count``, or a function of one's
        own. It may be called for some values of a key, or for what it has made of others, or not at all."""
        if self._combine is not None:
            raise TypeError("the job has a combiner already")
        self._combine = function

    def reduce(
        self,
        function: Optional[_F] = None,
        *,
        keys: KeyType = str,
        order: Optional[KeyType] = None,
        values: Any = None,
        reduces: Optional[int] = None,
    ) -> Any:
        """What is done with each key and its values: a function that yields items of the output, or a class whose objects are.

        ``keys`` and ``values`` are their types. Values are pickled unless it is said what they are: ``int`` of any size,
        ``bytes``, ``"json"``, or what keys may be. ``reduces`` is how many part files there are.

        With ``order``, a type that keys may have, the map yields ``((key, order), value)``, and the values of a key come in that
        order; those of one order in the order of the input.
        """
        self._keys, self._order, self._values, self._reduces = keys, order, values, reduces

        def decorate(decorated: _F) -> _F:
            if self._reduce is not None:
                raise TypeError("the job has a reduce already")
            self._reduce = decorated
            return decorated

        return decorate if function is None else decorate(function)

    def main(self, arguments: Optional[Sequence[str]] = None) -> NoReturn:
        """Runs the job, with the arguments of the command line unless others are given; or one task of it. Does not return."""
        if os.environ.get(_SPEAK_VARIABLE):
            sys.exit(0 if speak(self, private_pipe()) else 1)
        self.describe()
        line = self.command_line(sys.argv[1:] if arguments is None else arguments)
        for stream in (sys.stdout, sys.stderr):
            try:
                # It is None if the descriptor was closed.
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):
                # The job does not depend on what its program has printed.
                pass
        os.execv(line[0], line)

    def command_line(self, arguments: Sequence[str]) -> List[str]:
        """What runs this job."""
        program = getattr(sys.modules["__main__"], "__file__", None)
        if program is None:
            raise RuntimeError("a job is run from a file; put it into one")
        named = any(argument == "--python" or argument.startswith("--python=") for argument in arguments)
        python = [] if named else ["--python", sys.executable]
        return [_nap(), "frames", "--program", program, *python, *arguments]

    def begin(self, parameters: Dict[str, str], source: Optional[str], attempt: Optional[str]) -> None:
        """Takes over what the task is about."""
        self.parameters, self.input, self.attempt = parameters, source, attempt

    def describe(self) -> Dict[str, Any]:
        """What ``nap`` is told of the job."""
        if self._map is None:
            raise TypeError("the job has no map; put @job.map before a function")
        if self._combine is not None and self._reduce is None:
            raise TypeError("the job has a combiner and no reduce; leave it out, or put @job.reduce before a function")
        if self._reduce is not None:
            self.codecs()
        return {
            "version": VERSION,
            "input": self._input,
            "reduce": self._reduce is not None,
            "combine": self._native,
            "grouped": self._order is not None,
            "reduces": self._reduces,
            "saves": {"map": _saves(self._map), "reduce": _saves(self._reduce)},
        }

    @property
    def _native(self) -> Optional[str]:
        """What is done with values in Rust."""
        if self._combine is count and self._values not in (None, int):
            raise TypeError("what count makes are numbers: say values=int, or leave it out")
        if self._combine is count or self._values is int:
            return _NATIVE.get(self._combine)
        return None

    @property
    def combine_here(self) -> Any:
        """The combiner, if it is one that is called in Python."""
        return None if self._native else self._combine

    @property
    def reduces_groups(self) -> bool:
        """Whether there is a reduce."""
        return self._reduce is not None

    def codecs(self) -> Tuple[Codec, Codec]:
        """The encodings of keys and of values."""
        keys = key_codec(self._keys)
        if self._order is not None:
            keys = Grouped(keys, key_codec(self._order))
        if self._combine is count:
            return keys, _Ones()
        if self._native:
            return keys, Number(_SUM_BITS if self._native == "sum" else _NUMBER_BITS)
        return keys, value_codec("pickle" if self._values is None else self._values)

    def make_map(self) -> Any:
        """The map of one task."""
        return _made(self._map)

    def make_reduce(self) -> Any:
        """The reduce of one task."""
        return _made(self._reduce)


class _Ones(Number):
    """Each value that a map emits is one; what comes back are numbers of them."""

    _ONE = Number().encode(1)

    def encode(self, value: Any, last: bool = True) -> bytes:
        return self._ONE


def _made(function: Any) -> Any:
    return function() if isinstance(function, type) else function


def _saves(function: Any) -> bool:
    """A function has no state; a class says what its is, or its tasks are not checkpointed."""
    return not isinstance(function, type) or any("__getstate__" in vars(known) for known in function.__mro__[:-1])


def _nap() -> str:
    """The program that came with this module, or the first of its name."""
    beside = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    if sys.version_info >= (3, 10):
        beside.append(Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))))
    found = [str(folder / "nap") for folder in beside if os.access(folder / "nap", os.X_OK)]
    nap: Union[str, None] = found[0] if found else shutil.which("nap")
    if nap is None:
        raise FileNotFoundError("there is no program nap; install it with: pip install napreduce")
    return nap
