# Counts words with Polars: wordcount_polars.py INPUT OUTPUT (threads come from POLARS_MAX_THREADS)
import sys

import polars

source, target = sys.argv[1:3]
words = polars.scan_lines(source, name="line").select(polars.col("line").str.split(" ").explode().alias("word"))
counts = words.group_by("word").agg(polars.len()).filter(polars.col("word") != "")
counts.sink_csv(target, separator="\t", include_header=False, quote_style="never", engine="streaming")
