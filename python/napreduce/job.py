"""The definition of a job, its validation, and its runs: through ``nap``, or inside a test."""

from __future__ import annotations

import heapq
import json
import os
import re
import sys
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Iterable, Iterator, List, NoReturn, Optional, Sequence, Tuple, TypeVar, Union

from .codec import Codec, Grouped, KeyType, Number, decode_record, encode_record, key_codec, value_codec
from .dataset import Dataset, JobError
from .frames import VERSION
from .in_memory import run_in_memory
from .program import PIPE, Driver, load, take_driver
from .task import MissingJobError, flat_line, line, speak

_FILES_VARIABLE = "NAPREDUCE_FILES_DIR"
#: A line of progress: ``1 min 2 s: maps 45% 18/40, reduces 0% 0/4, 2 running``.
_PROGRESS = re.compile(r"\d+ (?:s|min|h)[ \w]*: maps \d+% ")
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
        #: Makes the pair of an item that the map returns; ``None`` if the item is one.
        self.pair: Optional[Callable[[Any], Tuple[Any, Any]]] = None
        #: Converts an item of the output to its line.
        self.encode_item: Callable[[Any], bytes] = line
        #: Whether errors show the record of a map, for `JobError`.
        self.shows_record = False
        #: The global variables of the program that defines the job.
        self._globals = sys._getframe(2).f_globals
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

    @classmethod
    def records(cls) -> "Job":
        """Reads a dataset of `run`: the items that another job has yielded."""
        return cls("bytes", decode_record)

    def map(self, function: _F) -> _F:
        """Sets the map: a function of a record that yields pairs of key and value, or output items if there is no reduce; or a
        class with such a ``__call__``."""
        if self._map is not None:
            raise TypeError("the job has two maps; remove one")
        self._map = function
        return function

    def flat_map(self, function: Callable[[Any], Any]) -> "Job":
        """Sets the map, as `map`, and returns the job."""
        self.map(function)
        return self

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

    def count(self, keys: KeyType = str) -> "Job":
        """Counts how often the map returns each key."""
        self.combine(count)
        return self._fold(_total, keys, int, lambda key: (key, 1))

    def distinct(self, keys: KeyType = str) -> "Job":
        """Writes each key that the map returns once."""
        self.combine(max)
        return self._fold(_key, keys, int, lambda key: (key, 0))

    def sum(self, keys: KeyType = str, values: Any = int) -> "Job":
        """Adds up the values of each key. Floats are added in the order of the input."""
        if values is int:
            self.combine(sum)
        return self._fold(_total, keys, values)

    def min(self, keys: KeyType = str, values: Any = int) -> "Job":
        """Finds the least value of each key. NaN is greater than all numbers."""
        self.combine(min)
        return self._fold(_least_of_group, keys, values)

    def max(self, keys: KeyType = str, values: Any = int) -> "Job":
        """Finds the greatest value of each key. NaN is greater than all numbers."""
        self.combine(max)
        return self._fold(_greatest_of_group, keys, values)

    def mean(self, keys: KeyType = str, values: Any = int) -> "Job":
        """Computes the mean of the values of each key. Integers are added exactly, floats in the order of the input."""
        return self._fold(_mean, keys, values)

    def top(self, n: int, keys: KeyType = str) -> "Job":
        """Finds the ``n`` greatest values of each key, the greatest first. NaN is greater than all numbers."""

        def greatest(lists: Iterable[List[Any]]) -> List[Any]:
            return heapq.nlargest(n, chain.from_iterable(lists), key=_sort_key)

        def top_of_group(key: Any, lists: Iterable[List[Any]]) -> Iterator[Tuple[Any, List[Any]]]:
            yield key, greatest(lists)

        self.combine(greatest)
        return self._fold(top_of_group, keys, "pickle", lambda pair: (pair[0], [pair[1]]))

    def _fold(self, reduce: Any, keys: KeyType, values: Any, pair: Any = None) -> "Job":
        self.reduce(reduce, keys=keys, values=values)
        self.pair, self.encode_item = pair, flat_line
        return self

    def main(self, arguments: Optional[Sequence[str]] = None) -> NoReturn:
        """Runs the job with the given arguments or those of the command line; in a task, runs the task. Does not return."""
        self._speak_in_task()
        self.describe()
        command = self.command_line(sys.argv[1:] if arguments is None else arguments)
        driver = self._driver(vars(sys.modules["__main__"]))
        for stream in (sys.stdout, sys.stderr):
            try:
                # None if the descriptor was closed.
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):
                # The job does not depend on the output of its program.
                pass
        os.execve(command[0], command, driver.environment())

    def run(
        self,
        *inputs: Union[str, "os.PathLike[str]"],
        output: Union[str, "os.PathLike[str]", None] = None,
        parameters: Optional[Dict[str, str]] = None,
        progress: bool = False,
        **options: Any,
    ) -> Dataset:
        """Runs the job and returns its records. Raises `JobError` if the job fails.

        The job must be a global variable of its file. Tasks load that file, but not as ``__main__``. ``inputs`` are paths, globs
        and datasets. With ``output``, a directory, the records stay there as lines
        of text. With ``progress``, the progress of the job is printed on ``sys.stderr``, a line about every two seconds;
        otherwise nothing is printed. Other options are those of the command line: ``reduces=4`` is ``--reduces 4``, and
        ``overwrite=True`` a flag.
        """
        self._speak_in_task()
        self.describe()
        driver = self._driver(self._globals)._replace(is_run=True, writes_records=output is None)
        if not driver.job:
            raise RuntimeError(f"the job is not a global variable of {driver.program}; assign it to one, so that tasks find it")
        # Imported here, as every import delays every task, and tasks do not run jobs.
        import shutil
        import tempfile

        folder = Path(tempfile.mkdtemp(prefix="napreduce-")) if output is None else None
        path = Path(output) if output is not None else folder / "output"  # type: ignore[operator]
        flags = [f"--parameter={name}={value}" for name, value in (parameters or {}).items()]
        for option, value in options.items():
            flag = "--" + option.replace("_", "-")
            flags += [flag] if value is True else [f"{flag}={value}"]
        shown = "--progress=always" if progress else "--quiet"
        arguments = [*flags, f"--output={path}", shown, "--", *(os.fspath(source) for source in inputs)]
        try:
            command = self.command_line(arguments, self._globals.get("__file__"))
            _run_to_end(command, driver.environment())
        except BaseException:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        return Dataset(path, is_temporary=folder is not None)

    def test(self, records: Iterable[Any], parameters: Optional[Dict[str, str]] = None) -> List[Any]:
        """Runs the job on records in this process, without ``nap``, and returns what it yields, in the order of keys.

        A record is a line of the input, with ``Job.records()`` an item. Exceptions of the map and the reduce are raised.
        """
        self.describe()
        encode = encode_record if self.decode_record is decode_record else _as_bytes
        before = self.encode_item
        self.encode_item = encode_record
        self._enter(dict(parameters or {}), None, None)
        try:
            return [decode_record(item) for item in run_in_memory(self, [encode(record) for record in records])]
        finally:
            self.encode_item = before

    def command_line(self, arguments: Sequence[str], program: Optional[str] = None) -> List[str]:
        """Returns the command that runs this job."""
        program = program or getattr(sys.modules["__main__"], "__file__", None)
        # A program from standard input has the file <stdin> in some versions.
        if program is None or program.startswith("<"):
            raise RuntimeError(
                "the job is not defined in a file that tasks could load, but in a notebook cell or at a prompt; write it to a file, "
                "such as words.py (in a notebook with %%writefile words.py), and import it from there; `test` needs no file"
            )
        named = any(argument == "--python" or argument.startswith("--python=") for argument in arguments)
        python = [] if named else ["--python", sys.executable]
        return [_nap(), "frames", "--program", program, *python, *arguments]

    def _driver(self, variables: Dict[str, Any]) -> Driver:
        """Returns this process for tasks, which find the job among these global variables of its file."""
        job = next((name for name, value in variables.items() if value is self), "")
        program = variables.get("__file__") or "the program"
        return Driver(program, str(variables.get("__name__")), sys.argv, job, is_run=False, writes_records=False)

    def _speak_in_task(self) -> None:
        """Runs the task and exits, if this process is one."""
        if PIPE is not None:
            sys.exit(0 if speak(self._begin, PIPE) else 1)

    def _begin(self, parameters: Dict[str, str], source: Optional[str], attempt: Optional[str]) -> "Job":
        """Returns the job of a task that has called `run` or `main` while its file was loaded."""
        driver = take_driver(parameters)
        if driver is None:
            return self._enter(parameters, source, attempt)
        job = self
        if driver.job:
            job = vars(sys.modules["__main__"]).get(driver.job)  # type: ignore[assignment]
        if not isinstance(job, Job):
            raise MissingJobError(f"the program defines the job {driver.job} after its first `run` or `main`; define it before")
        return job._enter_for(driver, parameters, source, attempt)

    def _enter_for(
        self, driver: Driver, parameters: Dict[str, str], source: Optional[str], attempt: Optional[str]
    ) -> "Job":
        self.shows_record = driver.is_run
        if driver.writes_records:
            self.encode_item = encode_record
        return self._enter(parameters, source, attempt)

    def _enter(self, parameters: Dict[str, str], source: Optional[str], attempt: Optional[str]) -> "Job":
        """Sets the attributes that a task has."""
        self.parameters, self.input, self.attempt = parameters, source, attempt
        return self

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
            "grouped": self.is_grouped,
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
        if self._native:
            return None
        # The built-in functions depend on the order of values if one of them is NaN.
        if self._combine is min:
            return _least
        if self._combine is max:
            return _greatest
        return self._combine

    @property
    def is_grouped(self) -> bool:
        """Whether keys have an order."""
        return self._order is not None

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


def _run_to_end(command: List[str], environment: Dict[str, str]) -> None:
    """Runs ``nap`` and prints its progress; raises `JobError` with what it prints besides if it fails."""
    import subprocess

    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        printed = []
        try:
            for text in process.stderr or ():
                if _PROGRESS.match(text):
                    # In a notebook this is not the standard error of the process.
                    print(text, end="", file=sys.stderr, flush=True)
                else:
                    printed.append(text)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise JobError("".join(printed).strip())


def _total(key: Any, values: Iterable[Any]) -> Iterator[Tuple[Any, Any]]:
    yield key, sum(values)


def _sort_key(value: Any) -> Any:
    """Orders values as Rust does: NaN, which Python cannot compare, is the greatest number, also inside of tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [_sort_key(item) for item in value]
    try:
        is_nan = bool(value != value)
    except (TypeError, ValueError):
        # Not a number.
        is_nan = False
    return (True, 0) if is_nan else (False, value)


def _least(values: Iterable[Any]) -> Any:
    return min(values, key=_sort_key)


def _greatest(values: Iterable[Any]) -> Any:
    return max(values, key=_sort_key)


def _least_of_group(key: Any, values: Iterable[Any]) -> Iterator[Tuple[Any, Any]]:
    yield key, _least(values)


def _greatest_of_group(key: Any, values: Iterable[Any]) -> Iterator[Tuple[Any, Any]]:
    yield key, _greatest(values)


def _mean(key: Any, values: Iterable[Any]) -> Iterator[Tuple[Any, float]]:
    total, number = 0, 0
    for value in values:
        total, number = total + value, number + 1
    yield key, total / number


def _key(key: Any, _: Iterable[Any]) -> Iterator[Any]:
    yield key


class _Ones(Number):
    """Encodes every value as 1, so that sums are counts."""

    _ONE = Number().encode(1)

    def encode(self, value: Any, last: bool = True) -> bytes:
        return self._ONE


def _as_bytes(line: Union[str, bytes]) -> bytes:
    return line if isinstance(line, bytes) else line.encode()


def _instance(function: Any) -> Any:
    return function() if isinstance(function, type) else function


def _saves(function: Any) -> bool:
    """Whether tasks can be checkpointed: a function has no state, and a class must define ``__getstate__``."""
    return not isinstance(function, type) or any("__getstate__" in vars(known) for known in function.__mro__[:-1])


def _nap() -> str:
    """Returns the path of the installed ``nap``, or of the first in PATH."""
    import shutil
    import sysconfig

    beside = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    if sys.version_info >= (3, 10):
        beside.append(Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))))
    found = [str(folder / "nap") for folder in beside if os.access(folder / "nap", os.X_OK)]
    nap: Union[str, None] = found[0] if found else shutil.which("nap")
    if nap is None:
        raise FileNotFoundError("program nap not found; install it with: pip install napreduce")
    return nap


def run_task(path: str) -> NoReturn:
    """Runs the task of this process, of a job that the file defines."""
    module = load(path)

    def begin(parameters: Dict[str, str], source: Optional[str], attempt: Optional[str]) -> Job:
        driver = take_driver(parameters)
        if driver is None:
            return _only_job(module)._enter(parameters, source, attempt)
        job = vars(module).get(driver.job)
        if not isinstance(job, Job):
            raise MissingJobError(_missing_job(driver))
        return job._enter_for(driver, parameters, source, attempt)

    if PIPE is None:
        raise RuntimeError("this process is not a task; start the program itself")
    sys.exit(0 if speak(begin, PIPE) else 1)


def _missing_job(driver: Driver) -> str:
    if driver.job:
        return (
            f"tasks do not find the job {driver.job} in {driver.program}: they skip `if __name__ == \"__main__\"`; "
            "define the job before that block"
        )
    return (
        f"tasks do not find the job in {driver.program}: it is not a global variable; assign it to one, before "
        "`if __name__ == \"__main__\"`"
    )


def _only_job(module: ModuleType) -> Job:
    """Returns the job of a program that was not started by itself but by ``nap frames``."""
    jobs = {id(value): name for name, value in vars(module).items() if isinstance(value, Job)}
    if len(jobs) == 1:
        (name,) = jobs.values()
        job: Job = vars(module)[name]
        return job
    names = ", ".join(sorted(jobs.values()))
    found = f"the jobs {names}" if jobs else "no job outside of functions and of `if __name__ == \"__main__\"`"
    raise MissingJobError(f"the program defines {found}; define one, or start the program with python3 instead of `nap frames`")
