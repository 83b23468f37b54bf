"""Counts the words of text files: python3 wordcount.py INPUT... --output DIR."""

from napreduce import Job

counts = Job.text().flat_map(str.split).count()

if __name__ == "__main__":
    counts.main()
