#!/usr/bin/env python3
"""Emits each word of the lines it reads with a one: the mapper of a word count.

A word is a run of bytes between white space; lines need not be UTF-8.
"""

import sys

for line in sys.stdin.buffer:
    for word in line.split():
        sys.stdout.buffer.write(word + b"\t1\n")
