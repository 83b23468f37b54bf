"""The words that are at least as frequent as the tenth."""

import sys
from operator import add

from pyspark import SparkContext

sc = SparkContext()
words = sc.textFile(sys.argv[1]).flatMap(str.split)
counts = words.map(lambda word: (word, 1)).reduceByKey(add).cache()
tenth = counts.values().top(10)[-1]
top = counts.filter(lambda pair: pair[1] >= tenth)
top.map(lambda pair: "%s\t%d" % pair).saveAsTextFile(sys.argv[2])
