"""The name of the user of each order, and its amount: join.py USERS ORDERS OUTPUT."""

import csv
import sys

from pyspark import SparkContext

users, orders, output = sys.argv[1:]
sc = SparkContext()
users = sc.textFile(users).mapPartitions(csv.reader).filter(lambda row: row[0] != "id").map(tuple)
orders = sc.textFile(orders).mapPartitions(csv.reader).filter(lambda row: row[0] != "user").map(tuple)
users.join(orders).values().map("\t".join).saveAsTextFile(output)
