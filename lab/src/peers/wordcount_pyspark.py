# Counts words with RDDs, as PySpark's own example does: wordcount_pyspark.py INPUT OUTPUT THREADS SCRATCH
# The parts are renamed to where OUTPUT is when all of them are written.
import os
import sys
from operator import add

from pyspark import SparkConf, SparkContext

source, target, threads, scratch = sys.argv[1:5]
settings = {"spark.ui.enabled": "false", "spark.driver.memory": "4g", "spark.local.dir": scratch}
context = SparkContext(conf=SparkConf().setMaster(f"local[{threads}]").setAll(settings.items()))
words = context.textFile(f"file://{source}").flatMap(lambda line: line.split(" ")).filter(lambda word: word)
counts = words.map(lambda word: (word, 1)).reduceByKey(add)
written = os.path.join(scratch, "written")
counts.map(lambda count: f"{count[0]}\t{count[1]}").saveAsTextFile(f"file://{written}")
for name in os.listdir(written):
    if name.startswith("part-"):
        os.rename(os.path.join(written, name), os.path.join(os.path.dirname(target), name))
context.stop()
