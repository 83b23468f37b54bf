"""The output of a job that a program has run, and the error of one that failed."""

from __future__ import annotations

import json
import re
import weakref
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

from .codec import decode_record

_TASK = re.compile(r"\b(job_\d+_[mr]_\d+) failed")
_PLACE = re.compile(r"failed, mapping (?:in )?(.*?line \d+): ")
# The first one is of the last failure; an exception's text may have any lines after it.
_RECORD = re.compile(r"""(?:^|failed: |failed, mapping .*?: )record: ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.MULTILINE)
_GROUP = re.compile(r"reducing the group of (.*)$", re.MULTILINE)


class Dataset:
    """The records that a job has written, in the order of its part files; an input of other jobs.

    Without an output directory the files are temporary and removed with this object.
    """

    def __init__(self, path: Path, is_temporary: bool) -> None:
        #: The directory with the part files.
        self.path = path
        self._is_temporary = is_temporary
        if is_temporary:
            # Imported here, as every import delays every task, and tasks make no dataset.
            import shutil

            weakref.finalize(self, shutil.rmtree, path.parent, ignore_errors=True)

    def __iter__(self) -> Iterator[Any]:
        """Yields what the job has yielded; lines of text if the job was given an output directory."""
        for part in sorted(self.path.glob("part-*")):
            with open(part, "rb") as lines:
                for line in lines:
                    line = line[:-1]
                    yield decode_record(line) if self._is_temporary else line.decode()

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def counters(self) -> Dict[str, int]:
        """The counters of the job by name: built-in ones such as ``MAP_INPUT_RECORDS``, and those of ``counter``."""
        counters: Dict[str, int] = json.loads((self.path / "_SUCCESS").read_text())["counters"]
        return counters


class JobError(Exception):
    """A job that failed. The message has the traceback of the failed task."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        #: The failed task, such as ``job_0001_m_0003``.
        self.task = _found(_TASK, message)
        #: The place of the record that a map failed on: file and line, or the line of the only file.
        self.place = _found(_PLACE, message)
        #: That record, as Python writes it; cut if it is long.
        self.record = _found(_RECORD, message)
        #: The key of the group that a reduce failed on, as Python writes it.
        self.group = _found(_GROUP, message)


def _found(pattern: "re.Pattern[str]", message: str) -> Optional[str]:
    found = pattern.search(message)
    return found.group(1) if found else None
