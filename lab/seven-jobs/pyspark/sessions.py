"""Sessions from lines VISITOR SECONDS PAGE: visitor, start, length and pages."""

import sys

from pyspark import SparkContext

PAUSE_SECONDS = 30 * 60


def visit(line):
    visitor, seconds, _ = line.split(" ")
    return visitor, int(seconds)


def sessions(visits):
    start = None
    for at in sorted(visits):
        if start is not None and at - end > PAUSE_SECONDS:
            yield start, end - start, pages
            start = None
        if start is None:
            start, pages = at, 0
        end, pages = at, pages + 1
    yield start, end - start, pages


sc = SparkContext()
found = sc.textFile(sys.argv[1]).map(visit).groupByKey().flatMapValues(sessions)
found.map(lambda pair: "%s\t%d\t%d\t%d" % (pair[0], *pair[1])).saveAsTextFile(sys.argv[2])
