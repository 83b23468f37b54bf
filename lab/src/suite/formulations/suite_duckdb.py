# A job of the suite with DuckDB: suite_duckdb.py JOB INPUT OUTPUT THREADS SCRATCH [CENTROIDS]
# INPUT is a folder of files, OUTPUT a file of lines in the job's own format. Order is kept only where the job has one
# within a group. A delimiter that no line holds makes one column of a whole line.
import sys

import duckdb

job, source, target, threads, scratch = sys.argv[1:6]
quoted = [path.replace("'", "''") for path in (source, target, *sys.argv[6:])]
lines = f"""(
    SELECT line, parse_filename(filename) AS document
    FROM read_csv('{quoted[0]}/[!._]*', header = false, auto_detect = false, columns = {{'line': 'VARCHAR'}},
                  delim = '\x01', quote = '', escape = '', filename = true, max_line_size = 16777216)
)"""
words = f"""(
    SELECT word, document FROM (SELECT unnest(string_split(line, ' ')) AS word, document FROM {lines}) WHERE word <> ''
)"""
reviews = f"""(
    SELECT movie, split_part(review, '_', 1)::BIGINT AS rater, split_part(review, '_', 2)::BIGINT AS rating
    FROM (
        SELECT split_part(line, ':', 1) AS movie, unnest(string_split(split_part(line, ':', 2), ',')) AS review
        FROM {lines}
    )
    WHERE review <> ''
)"""
# Beginning and end of a line at its last comma.
pairs = f"""(
    SELECT DISTINCT regexp_extract(line, '^(.*),([^,]*)$', 1) AS a, regexp_extract(line, '^(.*),([^,]*)$', 2) AS b
    FROM {lines} WHERE contains(line, ',')
)"""
tab = "chr(9)"
queries = {
    "wordcount": f"SELECT word || {tab} || count(*) FROM {words} GROUP BY word",
    "term-vector": f"""
        SELECT document || {tab} || word || ':' || count(*) FROM {words}
        GROUP BY document, word HAVING count(*) >= 10 ORDER BY document, count(*) DESC, word""",
    "inverted-index": f"SELECT word || {tab} || document FROM (SELECT DISTINCT word, document FROM {words})",
    "sequence-count": f"""
        SELECT sequence || {tab} || count(*) FROM (
            SELECT w[i] || '|' || w[i + 1] || '|' || w[i + 2] || '|' || document AS sequence FROM (
                SELECT w, document, unnest(range(1, len(w) - 1)) AS i FROM (
                    SELECT list_filter(string_split(line, ' '), lambda word: word <> '') AS w, document FROM {lines}
                )
            )
        ) GROUP BY sequence""",
    "ranked-inverted-index": f"""
        SELECT sequence || {tab} || n || '|' || document FROM (
            SELECT split_part(line, {tab}, 2)::BIGINT AS n,
                   regexp_extract(line, '^(.*)\\|([^|]*)\t', 1) AS sequence,
                   regexp_extract(line, '^(.*)\\|([^|]*)\t', 2) AS document
            FROM {lines}
        ) ORDER BY sequence, n DESC, document""",
    "self-join": f"""
        WITH pairs AS MATERIALIZED {pairs}
        SELECT one.a || {tab} || one.b || ',' || other.b FROM pairs one JOIN pairs other
        ON one.a = other.a AND one.b < other.b""",
    "histogram-movies": f"""
        SELECT (bin // 10) || '.' || (bin % 10) || {tab} || count(*) FROM (
            SELECT (2 * sum(rating)::BIGINT // count(*) + 1) * 5 AS bin FROM {reviews} GROUP BY movie
        ) GROUP BY bin""",
    "histogram-ratings": f"SELECT rating || {tab} || count(*) FROM {reviews} GROUP BY rating",
    "adjacency-list": f"""
        WITH edges AS MATERIALIZED {pairs}
        SELECT v || {tab} || 'from{{' || coalesce(ins, '') || '}}:to{{' || coalesce(outs, '') || '}}'
        FROM (SELECT b AS v, array_to_string(list_sort(list(a))[:200000], ',') AS ins FROM edges GROUP BY b)
        FULL JOIN (SELECT a AS v, array_to_string(list_sort(list(b))[:200000], ',') AS outs FROM edges GROUP BY a)
        USING (v)""",
    "count-matches": f"""
        SELECT n || {tab} || found FROM (
            SELECT found, count(*) AS n FROM (
                SELECT unnest(regexp_extract_all(line, 'n[aeiou]t[a-z]*')) AS found FROM {lines}
            ) GROUP BY found
        ) ORDER BY n DESC, found""",
}
if job == "classification":
    # Sums of whole numbers, rounded to 32 bits where the job rounds them.
    queries[job] = f"""
        WITH centroids AS MATERIALIZED (
            SELECT k, split_part(review, '_', 1)::BIGINT AS rater, split_part(review, '_', 2)::BIGINT AS rating FROM (
                SELECT split_part(line, ' ', 1)::INTEGER AS k,
                       unnest(string_split(split_part(line, ' ', 5), ',')) AS review
                FROM read_csv('{quoted[2]}', header = false, auto_detect = false, columns = {{'line': 'VARCHAR'}},
                              delim = '\x01', quote = '', escape = '')
            )
        ), nearest AS (
            SELECT movie, arg_min(k, (-similarity, k)) AS k FROM (
                SELECT movie, k, sum(r.rating * c.rating)::BIGINT::FLOAT / sqrt((sum(r.rating * r.rating)::BIGINT::FLOAT
                    * sum(c.rating * c.rating)::BIGINT::FLOAT)::DOUBLE)::FLOAT AS similarity
                FROM {reviews} r JOIN centroids c USING (rater) GROUP BY movie, k
            ) GROUP BY movie
        )
        SELECT coalesce(k, 0) || {tab} || movie
        FROM (SELECT split_part(line, ':', 1) AS movie FROM {lines}) LEFT JOIN nearest USING (movie)"""
connection = duckdb.connect(config={"threads": threads, "temp_directory": scratch})
connection.execute("SET preserve_insertion_order = false")
connection.execute(
    f"COPY ({queries[job]}) TO '{quoted[1]}' (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '')"
)
