#!/usr/bin/env python3
"""Adds up the numbers of each word: the reducer of a word count.

Lines arrive sorted, so that those of one word follow one another.
"""

import itertools
import sys

records = (line.rstrip(b"\n").split(b"\t") for line in sys.stdin.buffer)
for word, group in itertools.groupby(records, key=lambda record: record[0]):
    total = sum(int(number) for _, number in group)
    sys.stdout.buffer.write(b"%s\t%d\n" % (word, total))
