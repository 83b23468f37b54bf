# Sorts rows of text with RDDs, by their keys, as PySpark's own example does: terasort_pyspark.py INPUT OUTPUT THREADS SCRATCH
# Reading drops the carriage return of each row and writing adds it again. The parts are renamed to where OUTPUT is when
# all of them are written.
import os
import sys

from pyspark import SparkConf, SparkContext

source, target, threads, scratch = sys.argv[1:5]
settings = {"spark.ui.enabled": "false", "spark.driver.memory": "4g", "spark.local.dir": scratch}
context = SparkContext(conf=SparkConf().setMaster(f"local[{threads}]").setAll(settings.items()))
rows = context.textFile(f"file://{source}").map(lambda row: (row[:10], row)).sortByKey()
written = os.path.join(scratch, "written")
rows.map(lambda row: row[1] + "\r").saveAsTextFile(f"file://{written}")
for name in os.listdir(written):
    if name.startswith("part-"):
        os.rename(os.path.join(written, name), os.path.join(os.path.dirname(target), name))
context.stop()
