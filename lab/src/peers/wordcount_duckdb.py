# Counts words with DuckDB: wordcount_duckdb.py INPUT OUTPUT THREADS SCRATCH
# A tab as delimiter makes one column of a whole line. The order of the rows is free, and DuckDB is told so.
import sys

import duckdb

source, target, threads, scratch = sys.argv[1:5]
source, target = (path.replace("'", "''") for path in (source, target))
connection = duckdb.connect(config={"threads": threads, "temp_directory": scratch})
connection.execute("SET preserve_insertion_order = false")
connection.execute(
    f"""
    COPY (
        SELECT word, count(*)
        FROM (
            SELECT unnest(string_split(line, ' ')) AS word
            FROM read_csv('{source}', header = false, auto_detect = false, columns = {{'line': 'VARCHAR'}},
                          delim = '\t', quote = '', escape = '')
        )
        GROUP BY word
        HAVING word <> ''
    ) TO '{target}' (FORMAT csv, HEADER false, DELIMITER '\t', QUOTE '', ESCAPE '')
    """
)
