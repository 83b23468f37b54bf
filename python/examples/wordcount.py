from napreduce import Job
counts = Job.text().flat_map(str.split).count()
if __name__ == "__main__":
    counts.main()
