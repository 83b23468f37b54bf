"""Counts words that are not in a list: stop_words.py INPUT STOP OUTPUT."""

import sys
from operator import add

from pyspark import SparkContext

source, stop, output = sys.argv[1:]
sc = SparkContext()
stop = sc.broadcast(set(sc.textFile(stop).collect()))
(
    sc.textFile(source)
    .flatMap(str.split)
    .filter(lambda word: word not in stop.value)
    .map(lambda word: (word, 1))
    .reduceByKey(add)
    .map(lambda pair: "%s\t%d" % pair)
    .saveAsTextFile(output)
)
