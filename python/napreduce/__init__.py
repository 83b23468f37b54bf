"""MapReduce jobs in Python. Running tasks can be suspended or checkpointed without losing work.

    from napreduce import Job

    job = Job.text()

    @job.map
    def words(line):
        return [(word, 1) for word in line.split()]

    job.combine(sum)

    @job.reduce(keys=str, values=int)
    def total(word, counts):
        yield word, sum(counts)

    if __name__ == "__main__":
        job.main()
"""

from .job import Job, count, side_file
from .task import counter, progress

__all__ = ["Job", "count", "counter", "progress", "side_file"]
