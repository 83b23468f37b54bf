"""The longest run of consecutive days of each user, from lines USER DAY."""

import sys

from pyspark import SparkContext


def longest_streak(days):
    last, streak, longest = None, 0, 0
    for day in sorted(set(days)):
        streak = streak + 1 if last == day - 1 else 1
        longest = max(longest, streak)
        last = day
    return longest


sc = SparkContext()
days = sc.textFile(sys.argv[1]).map(str.split).mapValues(int)
streaks = days.groupByKey().mapValues(longest_streak)
streaks.map(lambda pair: "%s\t%d" % pair).saveAsTextFile(sys.argv[2])
