#!/usr/bin/env python3
"""Runs seven jobs on five engines, checks that their outputs are equal, and counts their lines.

    compare.py                                      # all engines; compiles DataFusion, which takes many minutes
    compare.py --engines napreduce,mrjob,pyspark    # some engines
    compare.py --engines ''                         # counts lines only

Needs cargo, Java 17, and a Python with mrjob and pyspark. Cargo compiles in CARGO_TARGET_DIR (default: target of the repository).
"""

import argparse
import csv
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inputs import write_inputs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

#: Each engine, and whether its programs are Rust.
ENGINES = {"napreduce": True, "mrjob": False, "pyspark": False, "datafusion": True, "rayon": True}

#: Each job, and its inputs; "text" is a folder.
JOBS = {
    "stop_words": ["text", "stop.txt"],
    "inverted_index": ["text"],
    "top_ten": ["text"],
    "join": ["users.csv", "orders.csv"],
    "sessions": ["visits.txt"],
    "pagerank": ["links.txt"],
    "streaks": ["days.txt"],
}
TEXT = ["text/one.txt", "text/two.txt"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", default=",".join(ENGINES), help="engines to run (default: all)")
    engines = [engine for engine in parser.parse_args().engines.split(",") if engine]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute() / "seven-jobs"
    for engine in engines:
        if ENGINES[engine]:
            build(engine, target)
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder))
        os.chdir(folder)
        for job in JOBS if engines else ():
            outputs = {engine: run(engine, job, target) for engine in engines}
            check_equal(job, outputs)
            print(f"{job}: the outputs of {', '.join(engines)} are equal ({len(outputs[engines[0]])} records)", flush=True)
    print_lines()


def build(engine, target):
    if not (HERE / engine / "Cargo.lock").exists():
        # The versions of the workspace, as far as it has these crates.
        shutil.copy(ROOT / "Cargo.lock", HERE / engine)
    environment = {"CARGO_PROFILE_DEV_DEBUG": "false", **os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(["cargo", "build", "--quiet"], cwd=HERE / engine, env=environment, check=True)
    for job in JOBS:
        # The programs of all engines have the same names.
        shutil.copy(target / "debug" / job, target / f"{engine}-{job}")


def run(engine, job, target):
    """Runs one job and returns its records, sorted lists of fields."""
    command = [str(target / f"{engine}-{job}")] if ENGINES[engine] else [sys.executable, str(HERE / engine / f"{job}.py")]
    output = f"{engine}-{job}/"
    if engine in ("mrjob", "rayon"):
        # These print their output.
        printed = execute([*command, *arguments(engine, job)])
        lines = [line.split("\t") for line in printed.splitlines()]
        records = [json_fields(line) for line in lines] if engine == "mrjob" else lines
    elif engine == "datafusion":
        execute([*command, *JOBS[job], output])
        records = csv.reader(io.StringIO(parts(output, "*.csv", lines_to_skip=1)))
    elif engine == "pyspark":
        execute([*command, *JOBS[job], output])
        records = [line.split("\t") for line in parts(output, "part-*").splitlines()]
    else:
        execute([*command, *arguments(engine, job), "--output", output, "--quiet"])
        records = [line.split("\t") for line in parts(output, "part-*").splitlines()]
    return sorted([normal(field) for field in record] for record in records)


def arguments(engine, job):
    """Returns the inputs as one engine takes them."""
    if job == "stop_words":
        return {
            "napreduce": ["text", "--files", "stop.txt"],
            "mrjob": [*TEXT, "--stop-words", "stop.txt"],
            "rayon": ["stop.txt", *TEXT],
        }[engine]
    if job == "join" and engine == "napreduce":
        return ["users=users.csv", "orders=orders.csv"]
    return TEXT if JOBS[job] == ["text"] else JOBS[job]


def execute(command):
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ended.stderr}")
    return ended.stdout


def parts(folder, pattern, lines_to_skip=0):
    """Returns the lines of all part files, without their headers."""
    texts = [part.read_text().splitlines(keepends=True) for part in sorted(Path(folder).glob(pattern))]
    return "".join(line for text in texts for line in text[lines_to_skip:])


def json_fields(columns):
    """Returns the fields of a line of mrjob, key TAB value in JSON."""
    values = [json.loads(column) for column in columns]
    return [str(field) for value in values for field in (value if isinstance(value, list) else [value])]


def normal(field):
    """Returns a field without the folder of a path, which engines write as URI, as absolute path or as given."""
    return re.sub(r"\S*text/", "", field)


def check_equal(job, outputs):
    first, *others = outputs
    for other in others:
        if not outputs[first]:
            sys.exit(f"{job}: {first} wrote nothing")
        if len(outputs[first]) != len(outputs[other]):
            sys.exit(f"{job}: {first} wrote {len(outputs[first])} records, {other} {len(outputs[other])}")
        for one, another in zip(outputs[first], outputs[other]):
            if not all(map(equal if job == "pagerank" else str.__eq__, one, another)) or len(one) != len(another):
                sys.exit(f"{job}: {first} wrote {one}, {other} {another}")


def equal(one, another):
    """Compares names, or ranks, whose shares are added in different orders."""
    return one == another or math.isclose(float(one), float(another), abs_tol=1e-5)


def print_lines():
    """Prints the lines of code of each job, and in brackets those with comments."""
    print(f"\n| job | {' | '.join(ENGINES)} |\n|{'---|' * (len(ENGINES) + 1)}")
    totals = [[0, 0] for _ in ENGINES]
    for job in JOBS:
        counts = [count_lines(source(engine, job)) for engine in ENGINES]
        totals = [[total[0] + count[0], total[1] + count[1]] for total, count in zip(totals, counts)]
        print_row(job.replace("_", " "), counts)
    print_row("all", totals)


def print_row(name, counts):
    print(f"| {name} | {' | '.join(f'{code} ({all_lines})' for code, all_lines in counts)} |")


def source(engine, job):
    return HERE / engine / "src" / "bin" / f"{job}.rs" if ENGINES[engine] else HERE / engine / f"{job}.py"


def count_lines(path):
    """Returns the number of lines with code, and of lines that are not blank. Comments and docstrings are not code."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    written = [line for line in lines if line]
    if path.suffix == ".rs":
        return sum(not line.startswith("//") for line in written), len(written)
    return sum(not re.match(r'#|""".*"""$', line) for line in written), len(written)


if __name__ == "__main__":
    main()
