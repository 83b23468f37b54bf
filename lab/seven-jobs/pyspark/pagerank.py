import sys
from operator import add

from pyspark import SparkContext


def shares(node):
    page, (links, rank) = node
    yield page, 0.15
    for link in links:
        yield link, 0.85 * rank / len(links)


sc = SparkContext()
links = sc.textFile(sys.argv[1]).map(str.split).map(lambda words: (words[0], words[1:])).cache()
ranks, moved = links.mapValues(lambda _: 1.0), 1
while moved >= 1e-6:
    after = links.join(ranks).flatMap(shares).reduceByKey(add, links.getNumPartitions())
    after.localCheckpoint()
    moved = ranks.join(after).values().map(lambda both: abs(both[0] - both[1])).sum()
    ranks = after
ranks.map(lambda pair: "%s\t%r" % pair).saveAsTextFile(sys.argv[2])
