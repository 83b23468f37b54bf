from mrjob.job import MRJob

PAUSE_SECONDS = 30 * 60


class Sessions(MRJob):
    """Sessions from lines VISITOR SECONDS PAGE: visitor, start, length and pages."""

    def mapper(self, _, line):
        visitor, seconds, _ = line.split(" ")
        yield visitor, int(seconds)

    def reducer(self, visitor, visits):
        start = None
        for at in sorted(visits):
            if start is not None and at - end > PAUSE_SECONDS:
                yield visitor, (start, end - start, pages)
                start = None
            if start is None:
                start, pages = at, 0
            end, pages = at, pages + 1
        yield visitor, (start, end - start, pages)


if __name__ == "__main__":
    Sessions.run()
