"""Writes the inputs of the seven jobs: inputs.py DIR. The same bytes on every machine."""

import csv
import random
import sys
from pathlib import Path


def write_inputs(folder):
    # With this seed, three words are as frequent as the tenth.
    chance = random.Random(135)
    (folder / "text").mkdir(parents=True)
    vocabulary = [f"{first}{last}" for first in "bcdfgklmnprstvwz" for last in ("a", "e", "in", "or", "un")]
    frequencies = [1 / (rank + 1) for rank in range(len(vocabulary))]
    for name in ("one.txt", "two.txt"):
        lines = [" ".join(chance.choices(vocabulary, frequencies, k=chance.randrange(9))) for _ in range(300)]
        write_lines(folder / "text" / name, lines)
    write_lines(folder / "stop.txt", vocabulary[:4])

    users = [(number, f"{chance.choice(vocabulary)}, {chance.choice(vocabulary)}") for number in range(40)]
    orders = [(chance.randrange(50), chance.randrange(1000)) for _ in range(200)]
    for name, header, rows in (("users", ("id", "name"), users), ("orders", ("user", "amount"), orders)):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])

    visits = [f"visitor{chance.randrange(20)} {chance.randrange(400_000)} /{chance.choice(vocabulary)}" for _ in range(900)]
    write_lines(folder / "visits.txt", visits)
    pages = [f"page{number}" for number in range(60)]
    write_lines(folder / "links.txt", [" ".join([page, *chance.sample(pages, chance.randrange(1, 6))]) for page in pages])
    write_lines(folder / "days.txt", [f"user{chance.randrange(12)} {chance.randrange(20_000, 20_060)}" for _ in range(500)])


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    write_inputs(Path(sys.argv[1]))
