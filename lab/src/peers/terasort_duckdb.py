# Sorts rows of text with DuckDB: terasort_duckdb.py INPUT OUTPUT THREADS SCRATCH
# The rows hold no control characters, so that such a delimiter makes one column of a whole row. Reading drops the
# carriage return of each row and writing adds it again.
import sys

import duckdb

source, target, threads, scratch = sys.argv[1:5]
source, target = (path.replace("'", "''") for path in (source, target))
connection = duckdb.connect(config={"threads": threads, "temp_directory": scratch})
connection.execute(
    f"""
    COPY (
        SELECT line || chr(13)
        FROM read_csv('{source}', header = false, auto_detect = false, columns = {{'line': 'VARCHAR'}},
                      delim = '\x01', quote = '', escape = '', new_line = '\\r\\n')
        ORDER BY line
    ) TO '{target}' (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '')
    """
)
