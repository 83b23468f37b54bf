# A job of the suite with Polars: suite_polars.py JOB INPUT OUTPUT (threads come from POLARS_MAX_THREADS)
# INPUT is a folder of files, OUTPUT a file of lines in the job's own format.
import os
import sys

import polars
from polars import col, concat_str, lit

job, source, target = sys.argv[1:4]
files = sorted(name for name in os.listdir(source) if name[0] not in "._")


def lines():
    scans = [polars.scan_lines(os.path.join(source, name), name="line") for name in files]
    return polars.concat(scan.with_columns(document=lit(name)) for scan, name in zip(scans, files))


def words():
    split = lines().with_columns(word=col("line").str.split(" ")).drop("line").explode("word")
    return split.filter(col("word") != "")


def reviews():
    parts = col("line").str.split_exact(":", 1).struct
    split = lines().select(parts.field("field_0").alias("movie"), parts.field("field_1").str.split(",").alias("review"))
    split = split.explode("review").filter(col("review") != "")
    return split.with_columns(rating=col("review").str.extract("_([0-9])$").cast(polars.Int64))


def pairs():
    parts = col("line").str.extract_groups("^(.*),([^,]*)$").struct
    split = lines().filter(col("line").str.contains(",", literal=True))
    return split.select(parts.field("1").alias("a"), parts.field("2").alias("b")).unique()


def joined(*parts):
    return concat_str([lit(part) if part in "\t:,|." else col(part).cast(polars.String) for part in parts])


def histogram_movies():
    sums = reviews().group_by("movie").agg(col("rating").sum().alias("sum"), polars.len().cast(polars.Int64).alias("n"))
    bins = sums.select(bin=(2 * col("sum") // col("n") + 1) * 5).group_by("bin").agg(polars.len().alias("count"))
    return bins.with_columns(whole=col("bin") // 10, tenth=col("bin") % 10).select(joined("whole", ".", "tenth", "\t", "count"))


def sequence_count():
    split = lines().select(w=col("line").str.extract_all("[^ ]+"), document=col("document"))
    split = split.filter(col("w").list.len() > 2).with_columns(n=col("w").list.len() - 2)
    thirds = [col("w").list.slice(at, col("n")).alias(name) for at, name in enumerate("abc")]
    each = split.select(*thirds, "document").explode("a", "b", "c")
    keys = each.select(key=concat_str(["a", "b", "c", "document"], separator="|"))
    return keys.group_by("key").agg(polars.len().alias("count")).select(joined("key", "\t", "count"))


def ranked_inverted_index():
    parts = col("line").str.extract_groups(r"^(.*)\|([^|]*)\t([0-9]+)$").struct
    rows = lines().select(
        parts.field("1").alias("sequence"), parts.field("2").alias("name"), parts.field("3").cast(polars.Int64).alias("n")
    )
    rows = rows.sort("sequence", "n", "name", descending=[False, True, False])
    return rows.select(joined("sequence", "\t", "n", "|", "name"))


def self_join():
    rows = pairs()
    both = rows.join(rows, on="a").filter(col("b") < col("b_right"))
    return both.select(joined("a", "\t", "b", ",", "b_right"))


def count_matches():
    found = lines().select(found=col("line").str.extract_all("n[aeiou]t[a-z]*")).explode("found").drop_nulls()
    counted = found.group_by("found").agg(polars.len().alias("n")).sort("n", "found", descending=[True, False])
    return counted.select(joined("n", "\t", "found"))


def counted(rows, *key):
    return rows.group_by(key).agg(polars.len().alias("count"))


jobs = {
    "wordcount": lambda: counted(words(), "word").select(joined("word", "\t", "count")),
    "term-vector": lambda: counted(words(), "document", "word")
    .filter(col("count") >= 10)
    .sort("document", "count", "word", descending=[False, True, False])
    .select(joined("document", "\t", "word", ":", "count")),
    "inverted-index": lambda: words().unique().select(joined("word", "\t", "document")),
    "sequence-count": sequence_count,
    "ranked-inverted-index": ranked_inverted_index,
    "self-join": self_join,
    "histogram-movies": histogram_movies,
    "histogram-ratings": lambda: counted(reviews(), "rating").select(joined("rating", "\t", "count")),
    "count-matches": count_matches,
}
# No line holds this separator.
jobs[job]().sink_csv(target, include_header=False, quote_style="never", separator="\x01", engine="streaming")
