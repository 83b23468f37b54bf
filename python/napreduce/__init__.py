"""MapReduce jobs in Python. Running tasks can be suspended or checkpointed without losing work.

    from napreduce import Job

    counts = Job.text().flat_map(str.split).count()

    if __name__ == "__main__":
        counts.main()
"""

from .dataset import Dataset, JobError
from .job import Job, count, side_file
from .task import counter, progress

__all__ = ["Dataset", "Job", "JobError", "count", "counter", "progress", "side_file"]
