"""The places of each word, as PATH:LINE."""

import sys

from pyspark import SparkContext


def places(file):
    path, text = file
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.split():
            yield word, (path, number)


sc = SparkContext()
(
    sc.wholeTextFiles(sys.argv[1])
    .flatMap(places)
    .groupByKey()
    .map(lambda entry: entry[0] + "\t" + " ".join("%s:%d" % place for place in sorted(entry[1])))
    .saveAsTextFile(sys.argv[2])
)
