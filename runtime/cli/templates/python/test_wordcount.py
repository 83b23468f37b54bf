"""Tests of the functions, and of the whole job on this machine."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from wordcount import count, words


class WordcountTest(unittest.TestCase):
    def test_map_emits_every_word(self):
        self.assertEqual(words("to be to"), [("to", 1), ("be", 1), ("to", 1)])

    def test_reduce_adds_counts(self):
        self.assertEqual(list(count("to", iter([2, 1]))), [("to", 3)])

    def test_job_counts_words(self):
        with tempfile.TemporaryDirectory() as folder:
            text, output = Path(folder, "text"), Path(folder, "out")
            text.write_text("to be or\nnot to be\n")
            line = [sys.executable, "wordcount.py", str(text), "--output", str(output)]
            subprocess.run([*line, "--reduces", "1", "--quiet"], check=True)
            counts = Path(output, "part-r-00000").read_text()
        self.assertEqual(counts, "be\t2\nnot\t1\nor\t1\nto\t2\n")


if __name__ == "__main__":
    unittest.main()
