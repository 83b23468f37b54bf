# Sorts rows of text with Polars: terasort_polars.py INPUT OUTPUT (threads come from POLARS_MAX_THREADS)
# The rows hold no control characters, so that such a separator makes one column of a whole row. Reading drops the
# carriage return of each row and writing adds it again.
import sys

import polars

source, target = sys.argv[1:3]
rows = polars.scan_csv(
    source, has_header=False, separator="\x01", quote_char=None, schema={"row": polars.String}
)
rows.sort("row").sink_csv(
    target, include_header=False, quote_style="never", line_terminator="\r\n", engine="streaming"
)
