"""A program in its own process, and a test's side of the frame protocol."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

MODULE = Path(__file__).parent.parent


class Conversation:
    """One program, from its hello to its end."""

    def __init__(self, folder, source, role="map", state=None, parameters=None, version=1, tells_done=False):
        program = folder / "program.py"
        program.write_text(source)
        environment = {**os.environ, "NAPREDUCE_FRAMES": "1", "PYTHONPATH": str(MODULE), "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen(
            [sys.executable, str(program)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        told = json.dumps(
            {
                "version": version,
                "role": role,
                "attempt": "job_0001_m_0000.1",
                "input": "in",
                "parameters": parameters or {},
                "restores": state is not None,
                "tells_done": tells_done,
            }
        ).encode()
        self.send("H", struct.pack(">I", len(told)) + told + (state or b""))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except BrokenPipeError:
                # The test ends; unsent frames do not matter.
                pass

    def send(self, kind, payload=b""):
        self.process.stdin.write(struct.pack(">I", len(payload)) + kind.encode() + payload)
        self.process.stdin.flush()

    def send_strings(self, kind, *strings):
        lengths = struct.pack(f">I{len(strings)}I", len(strings), *map(len, strings))
        self.send(kind, lengths + b"".join(strings))

    def send_group(self, key, *values):
        self.send("G", key)
        self.send_strings("V", *values)
        self.send("g")

    def next(self):
        """The next frame, as its letter and its payload."""
        head = self.process.stdout.read(5)
        assert len(head) == 5, f"no frame but {head!r}: {self.process.stderr.read().decode()}"
        (length,) = struct.unpack(">I", head[:4])
        return chr(head[4]), self.process.stdout.read(length)

    def until(self, *kinds):
        """All frames up to one of these kinds."""
        found = [self.next()]
        while found[-1][0] not in kinds:
            found.append(self.next())
        return found

    def output(self, *kinds):
        """The pairs or lines that come before one of these kinds, and what that holds."""
        *before, (_, last) = self.until(*kinds)
        return [strings(payload) for kind, payload in before if kind == "O"], last

    def failure(self):
        """What it says of its failure."""
        return json.loads(self.until("X")[-1][1])

    def end(self):
        """How it ends when it is told no more, and what it has printed."""
        _, printed = self.process.communicate(timeout=30)
        return self.process.returncode, printed.decode()


def strings(payload):
    """The byte strings of a batch, of pairs: keys and then values."""
    (count,) = struct.unpack_from(">I", payload)
    for each in (1, 2):
        lengths = struct.unpack_from(f">{count * each}I", payload, 4)
        at = 4 + 4 * count * each
        if at + sum(lengths) == len(payload):
            break
    found = []
    for length in lengths:
        found.append(payload[at : at + length])
        at += length
    return found
