"""Tests of the job: inside this process, and by `nap` on this machine."""

import tempfile
import unittest
from pathlib import Path

from wordcount import counts


class WordcountTest(unittest.TestCase):
    def test_words_are_counted(self):
        self.assertEqual(counts.test(["to be or", "not to be"]), [("be", 2), ("not", 1), ("or", 1), ("to", 2)])

    def test_job_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder, "text")
            text.write_text("to be or\nnot to be\n")
            self.assertEqual(sorted(counts.run(text)), [("be", 2), ("not", 1), ("or", 1), ("to", 2)])


if __name__ == "__main__":
    unittest.main()
