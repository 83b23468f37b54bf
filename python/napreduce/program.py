"""The program of a task: what its driver was called with, and how its file is loaded.

A task does not execute the file as ``__main__``, so that the block ``if __name__ == "__main__"`` runs in the driver only.
"""

from __future__ import annotations

import importlib.util
import json
import linecache
import os
import sys
import types
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from .frames import Pipe, ProtocolError, private_pipe

#: Set in tasks: the program speaks frames instead of submitting its job.
_SPEAK_VARIABLE = "NAPREDUCE_FRAMES"
#: Describes the driver to ``nap``, which sends it to tasks as the parameter below.
DRIVER_VARIABLE = "NAPREDUCE_PYTHON_DRIVER"
DRIVER_PARAMETER = "napreduce.driver"
#: The name of a program in its tasks. The driver knows its own module by it, too: classes are pickled with this name.
_LOADED_NAME = "__napreduce_main__"


class Driver(NamedTuple):
    """The process that a user has started, as its tasks see it."""

    #: The path of the program.
    program: str
    #: Its name as a module; ``__main__`` if the user has started it.
    module: str
    #: The driver's ``sys.argv``.
    argv: List[str]
    #: The global variable of the job; empty if there is none.
    job: str
    #: Whether the job was started by ``run``, whose errors show records.
    is_run: bool
    #: Whether the output are the records of a dataset.
    writes_records: bool

    def environment(self) -> Dict[str, str]:
        """Returns the environment of a ``nap`` that runs a job of this driver."""
        return {**os.environ, DRIVER_VARIABLE: json.dumps(self._asdict())}


def take_driver(parameters: Dict[str, str]) -> Optional[Driver]:
    """Removes the driver from the parameters of a task. There is none if ``nap frames`` was called directly."""
    text = parameters.pop(DRIVER_PARAMETER, None)
    return None if text is None else Driver(**json.loads(text))


def _restore_arguments(pipe: Pipe) -> None:
    """Gives the task the driver's ``sys.argv``."""
    try:
        greeting, _ = pipe.greeting()
        driver = take_driver(dict(greeting["parameters"]))
    except (EOFError, KeyError, ProtocolError, TypeError, ValueError):
        # The task reports it when it reads its greeting.
        return
    if driver is not None:
        sys.argv = driver.argv


#: The pipe of a task. It is taken before the program prints anything, and commands that the program runs are no tasks.
PIPE = private_pipe() if os.environ.pop(_SPEAK_VARIABLE, None) else None
if PIPE is None:
    sys.modules.setdefault(_LOADED_NAME, sys.modules["__main__"])
else:
    _restore_arguments(PIPE)


def load(path: str) -> types.ModuleType:
    """Executes the file of a task under another name than ``__main__``. Tracebacks show the path that the user knows."""
    driver = None
    if PIPE is not None:
        driver = take_driver(dict(PIPE.greeting()[0]["parameters"]))
    shown = os.path.basename(path) if driver is None else driver.program
    name = _LOADED_NAME if driver is None or driver.module == "__main__" else driver.module
    source = Path(path).read_bytes()
    code = compile(source, shown, "exec", dont_inherit=True)
    # Workers may not have a file at the user's path.
    lines = importlib.util.decode_source(source).splitlines(keepends=True)
    linecache.cache[shown] = (len(source), None, lines, shown)
    module = types.ModuleType(name)
    module.__file__ = os.path.abspath(path)
    namespace: Dict[str, Any] = module.__dict__
    namespace["__builtins__"] = __builtins__
    sys.modules[name] = module
    sys.modules["__main__"] = module
    exec(code, namespace)
    return module
