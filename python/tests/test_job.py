"""A program called from the command line: the ``nap`` command that it runs."""

import os
import subprocess
import sys

from conversation import MODULE

PROGRAM = "from napreduce import Job\njob = Job.text()\njob.map(lambda line: [line])\njob.main()\n"


def run(folder, *arguments):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(MODULE)}
    line = [sys.executable, "-S", str(program), *arguments]
    return str(program), subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60)


def fake_nap(folder):
    nap = folder / "nap"
    nap.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    nap.chmod(0o755)


def test_main_forwards_arguments_to_nap(tmp_path):
    fake_nap(tmp_path)
    program, ended = run(tmp_path, "in", "--output", "a b")
    expected = ["frames", "--program", program, "--python", sys.executable, "in", "--output", "a b"]
    # A nap that was installed beside this Python goes before any other.
    if not os.access(os.path.join(os.path.dirname(sys.executable), "nap"), os.X_OK):
        assert ended.stdout.splitlines() == expected, ended.stderr


def test_python_flag_selects_interpreter(tmp_path):
    fake_nap(tmp_path)
    program, ended = run(tmp_path, "--python=python3.9")
    if not os.access(os.path.join(os.path.dirname(sys.executable), "nap"), os.X_OK):
        assert ended.stdout.splitlines() == ["frames", "--program", program, "--python=python3.9"], ended.stderr


def test_readme_wordcount_is_the_example():
    program = (MODULE / "examples" / "wordcount.py").read_text()
    assert f"```python\n{program}```" in (MODULE / "README.md").read_text()
    assert len(program.splitlines()) == 4
