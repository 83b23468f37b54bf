"""The definition of a job, its validation, and its submission through ``nap``."""

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

#: Set in tasks: the program speaks frames instead of submitting its job.
_SPEAK_VARIABLE = "NAPREDUCE_FRAMES"
_FILES_VARIABLE = "NAPREDUCE_FILES_DIR"
_SUM_BITS, _NUMBER_BITS = 64, 128

_F = TypeVar("_F", bound=Callable[..., Any])


def count(values: Iterable[Any]) -> int:
    """Returns the number of values. As a combiner it makes counts, which the reduce adds up."""
    return sum(1 for _ in values)


_NATIVE = {sum: "sum", min: "min", max: "max", count: "sum"}


def side_file(name: str) -> str:
    """Returns the path of a file that was shipped with ``--files PATH[#NAME]``; in tasks only."""
    path = Path(os.environ.get(_FILES_VARIABLE, "")) / name
    if _FILES_VARIABLE not in os.environ or not path.exists():
        raise FileNotFoundError(f"side file {name!r} not found; ship it with --files PATH")
    return str(path)


class Job:
    """A job: its input, a map, and optionally a combiner and a reduce."""

    def __init__(self, wanted: str, decode: Callable[[bytes], Any]) -> None:
        self._input = wanted
        #: Converts a record from ``nap`` to the argument of the map.
        self.decode_record = decode
        self._map: Any = None
        self._reduce: Any = None
        self._combine: Any = None
        self._keys: KeyType = str
        self._order: Optional[KeyType] = None
        self._values: Any = None
        self._reduces: Optional[int] = None
        #: The parameters ``--parameter NAME=VALUE``; set in maps and reduces.
        self.parameters: Dict[str, str] = {}
        #: The input file; set in maps.
        self.input: Optional[str] = None
        #: The attempt, such as ``job_0007_m_0003.1``; set in tasks.
        self.attempt: Optional[str] = None

    @classmethod
    def text(cls) -> "Job":
        """Reads lines of UTF-8 text as ``str``. Invalid UTF-8 fails the task."""
        return cls("text", bytes.decode)

    @classmethod
    def lines(cls, encoding: str = "utf-8", errors: str = "replace") -> "Job":
        """Reads lines of text as ``str``, in any encoding with ASCII newlines. Arguments are those of ``bytes.decode``."""
        b"".decode(encoding, errors)
        return cls("bytes", lambda record: record.decode(encoding, errors))

    @classmethod
    def bytes(cls) -> "Job":
        """Reads lines as ``bytes``."""
        return cls("bytes", lambda record: record)

    @classmethod
    def json_lines(cls) -> "Job":
        """Reads one JSON value per line."""
        return cls("bytes", json.loads)

    def map(self, function: _F) -> _F:
        """Sets the map: a function of a record that yields pairs of key and value, or output items if there is no reduce; or a
        class with such a ``__call__``."""
        if self._map is not None:
            raise TypeError("the job has two maps; remove one")
        self._map = function
        return function

    def combine(self, function: Callable[[Iterable[Any]], Any]) -> None:
        """Sets the combiner, which reduces the values of a key before they are sent: ``sum``, ``min``, ``max``, ``count``, or a
        function. It may be applied to some values of a key, to its own results, or not at all."""
        if self._combine is not None:
            raise TypeError("the job has two combiners; remove one")
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
        """Sets the reduce: a function of a key and its values that yields output items, or a class with such a ``__call__``.

        ``keys`` and ``values`` are types. ``values`` is a key type, ``int`` of any size, ``"json"`` or ``"pickle"`` (default).
        ``reduces`` is the number of part files.

        With ``order``, a key type, the map yields ``((key, order), value)``, and the values of a key are sorted by ``order``, then
        by their position in the input.
        """
        self._keys, self._order, self._values, self._reduces = keys, order, values, reduces

        def decorate(decorated: _F) -> _F:
            if self._reduce is not None:
                raise TypeError("the job has two reduces; remove one")
            self._reduce = decorated
            return decorated

        return decorate if function is None else decorate(function)

    def main(self, arguments: Optional[Sequence[str]] = None) -> NoReturn:
        """Runs the job with the given arguments or those of the command line; in a task, runs the task. Does not return."""
        if os.environ.get(_SPEAK_VARIABLE):
            sys.exit(0 if speak(self, private_pipe()) else 1)
        self.describe()
        line = self.command_line(sys.argv[1:] if arguments is None else arguments)
        for stream in (sys.stdout, sys.stderr):
            try:
                # None if the descriptor was closed.
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):
                # The job does not depend on the output of its program.
                pass
        os.execv(line[0], line)

    def command_line(self, arguments: Sequence[str]) -> List[str]:
        """Returns the command that runs this job."""
        program = getattr(sys.modules["__main__"], "__file__", None)
        if program is None:
            raise RuntimeError("the program is not a file; save it and run it as a script")
        named = any(argument == "--python" or argument.startswith("--python=") for argument in arguments)
        python = [] if named else ["--python", sys.executable]
        return [_nap(), "frames", "--program", program, *python, *arguments]

    def begin(self, parameters: Dict[str, str], source: Optional[str], attempt: Optional[str]) -> None:
        """Sets the attributes of a task."""
        self.parameters, self.input, self.attempt = parameters, source, attempt

    def describe(self) -> Dict[str, Any]:
        """Returns the description of the job for ``nap``; raises ``TypeError`` for an incomplete job."""
        if self._map is None:
            raise TypeError("the job has no map; decorate a function with @job.map")
        if self._combine is not None and self._reduce is None:
            raise TypeError("the job has a combiner without a reduce; remove it, or decorate a function with @job.reduce")
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
        """The combiner that Rust applies, if there is one."""
        if self._combine is count and self._values not in (None, int):
            raise TypeError(f"values={self._values!r}: count makes integers; use values=int or remove it")
        if self._combine is count or self._values is int:
            return _NATIVE.get(self._combine)
        return None

    @property
    def combine_here(self) -> Any:
        """The combiner that Python applies, if there is one."""
        return None if self._native else self._combine

    @property
    def reduces_groups(self) -> bool:
        """Whether there is a reduce."""
        return self._reduce is not None

    def codecs(self) -> Tuple[Codec, Codec]:
        """Returns the encodings of keys and of values."""
        keys = key_codec(self._keys)
        if self._order is not None:
            keys = Grouped(keys, key_codec(self._order))
        if self._combine is count:
            return keys, _Ones()
        if self._native:
            return keys, Number(_SUM_BITS if self._native == "sum" else _NUMBER_BITS)
        return keys, value_codec("pickle" if self._values is None else self._values)

    def make_map(self) -> Any:
        """Returns the map of one task."""
        return _instance(self._map)

    def make_reduce(self) -> Any:
        """Returns the reduce of one task."""
        return _instance(self._reduce)


class _Ones(Number):
    """Encodes every value as 1, so that sums are counts."""

    _ONE = Number().encode(1)

    def encode(self, value: Any, last: bool = True) -> bytes:
        return self._ONE


def _instance(function: Any) -> Any:
    return function() if isinstance(function, type) else function


def _saves(function: Any) -> bool:
    """Whether tasks can be checkpointed: a function has no state, and a class must define ``__getstate__``."""
    return not isinstance(function, type) or any("__getstate__" in vars(known) for known in function.__mro__[:-1])


def _nap() -> str:
    """Returns the path of the installed ``nap``, or of the first in PATH."""
    beside = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    if sys.version_info >= (3, 10):
        beside.append(Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))))
    found = [str(folder / "nap") for folder in beside if os.access(folder / "nap", os.X_OK)]
    nap: Union[str, None] = found[0] if found else shutil.which("nap")
    if nap is None:
        raise FileNotFoundError("program nap not found; install it with: pip install napreduce")
    return nap
