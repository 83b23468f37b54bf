"""Counts the words of text files: python3 wordcount.py INPUT... --output DIR."""

from napreduce import Job

job = Job.text()


@job.map
def words(line):
    return [(word, 1) for word in line.split()]


job.combine(sum)


@job.reduce(keys=str, values=int)
def count(word, counts):
    yield word, sum(counts)


if __name__ == "__main__":
    job.main()
