"""Folds, and jobs that run inside a test."""

import pytest

from napreduce import Job, JobError, counter


def lengths():
    return Job.text().flat_map(lambda line: [(word[:1], len(word)) for word in line.split()])


LINES = ["to be or", "not to bring"]


def test_count_counts_each_key():
    assert Job.text().flat_map(str.split).count().test(LINES) == [("be", 1), ("bring", 1), ("not", 1), ("or", 1), ("to", 2)]


def test_count_of_tuples_counts_each_tuple():
    pairs = Job.text().flat_map(lambda line: [tuple(line.split()[:2])]).count(keys=(str, str))
    assert pairs.test(["a b", "a c", "a b"]) == [(("a", "b"), 2), (("a", "c"), 1)]


def test_distinct_yields_each_key_once():
    assert Job.text().flat_map(str.split).distinct().test(LINES) == ["be", "bring", "not", "or", "to"]


def test_folds_of_values():
    assert lengths().sum().test(LINES) == [("b", 7), ("n", 3), ("o", 2), ("t", 4)]
    assert lengths().min().test(LINES)[0] == ("b", 2)
    assert lengths().max().test(LINES)[0] == ("b", 5)
    assert lengths().mean().test(LINES)[0] == ("b", 3.5)


def test_sum_of_floats_has_no_combiner():
    prices = Job.text().flat_map(lambda line: [("all", float(line))]).sum(values=float)
    assert prices.describe()["combine"] is None and prices.combine_here is None
    assert prices.test(["0.5", "1"]) == [("all", 1.5)]


def test_integer_folds_combine_in_rust():
    assert [job.describe()["combine"] for job in (lengths().sum(), lengths().min(), lengths().max())] == ["sum", "min", "max"]
    assert lengths().count().describe()["combine"] == "sum"
    assert lengths().distinct().describe()["combine"] == "max"


def test_top_yields_greatest_values_first():
    top = Job.text().flat_map(lambda line: [("all", int(line))]).top(2)
    assert top.test(["1", "5", "3", "5", "4"]) == [("all", [5, 5])]
    assert top.test(["1"]) == [("all", [1])]
    assert top.encode_item(("all", [5, 5])) == b"all\t5\t5"
    assert top.encode_item((("a", 1), [5, 4])) == b"a\t1\t5\t4"


def test_folds_finish_a_decorated_map():
    job = Job.text()

    @job.map
    def words(line):
        yield line, 2

    assert job.sum().test(["a", "a"]) == [("a", 4)]
    with pytest.raises(TypeError, match="two combiners"):
        job.max()


def test_class_with_finish_is_folded():
    class Lines:
        def __init__(self):
            self.number = 0

        def __call__(self, line):
            self.number += 1

        def finish(self):
            yield from ["lines"] * self.number

    assert Job.text().flat_map(Lines).count().test(["a", "b"]) == [("lines", 2)]


NAN = float("nan")


@pytest.mark.parametrize("values", [[NAN, 1.0, 2.0], [1.0, NAN, 2.0], [2.0, 1.0, NAN]])
def test_nan_is_the_greatest_number(values):
    lines = [repr(value) for value in values]
    floats = lambda: Job.text().flat_map(lambda line: [("all", float(line))])  # noqa: E731
    assert floats().min(values=float).test(lines) == [("all", 1.0)]
    assert repr(floats().max(values=float).test(lines)) == "[('all', nan)]"
    assert repr(floats().top(2).test(lines)) == "[('all', [nan, 2.0])]"
    pairs = Job.text().flat_map(lambda line: [("all", (float(line), line))]).max(values=(float, str))
    assert repr(pairs.test(lines)) == "[('all', (nan, 'nan'))]"


def test_zeros_of_both_signs_are_one_group_of_both_values():
    zeros = lambda: Job.text().flat_map(lambda line: [(float(line), float(line))])  # noqa: E731
    assert repr(Job.text().flat_map(lambda line: [float(line)]).count(keys=float).test(["-0.0", "0.0"])) == "[(0.0, 2)]"
    listed = zeros()
    listed.reduce(lambda key, values: [(key, list(values))], keys=float, values=float)
    assert repr(listed.test(["-0.0", "0.0"])) == "[(0.0, [-0.0, 0.0])]"
    assert repr(zeros().max(keys=float, values=float).test(["-0.0"])) == "[(0.0, -0.0)]"


def test_values_arrive_in_order():
    job = Job.text()
    job.map(lambda line: [((line.split()[0], int(line.split()[1])), line)])
    job.reduce(lambda key, values: [(key, list(values))], keys=str, order=int, values=str)
    assert job.test(["b 10", "a 2", "b 9"]) == [("a", ["a 2"]), ("b", ["b 9", "b 10"])]


def test_job_without_reduce_yields_items_of_map():
    job = Job.text().flat_map(lambda line: [(line, None, 2.5), job.parameters["x"]])
    assert job.test(["a"], parameters={"x": "y"}) == [("a", None, 2.5), "y"]
    assert job.encode_item(("a", None)) == b"a\t"


def test_records_are_what_another_job_has_yielded():
    swapped = Job.records().flat_map(lambda pair: [(pair[1], pair[0])]).max(keys=int, values=str)
    assert swapped.test([("a", 1), ("b", 1), ("c", 2)]) == [(1, "b"), (2, "c")]


def test_exception_of_map_is_raised():
    job = Job.text().flat_map(lambda line: [counter("lines").add() or int(line)]).count(keys=int)
    with pytest.raises(ValueError, match="'x'"):
        job.test(["1", "x"])


def test_local_job_cannot_run():
    with pytest.raises(RuntimeError, match="global variable"):
        Job.text().flat_map(str.split).count().run("in")


def test_failed_job_is_described_by_its_error():
    error = JobError(
        "nap frames: job_0001_m_0002 failed 4 times; last: the mapper `a.py` failed, mapping b line 2: Traceback ...\n"
        "ValueError: oh\nrecord: 'x y'"
    )
    assert (error.task, error.place, error.record, error.group) == ("job_0001_m_0002", "b line 2", "'x y'", None)
    error = JobError(
        "job_0001_m_0002 failed 2 times; last: the mapper `a.py` failed, mapping in line 2: record: \"it's\"\nTraceback ...\n"
        "ValueError:\nrecord: 'no'; before: the mapper `a.py` failed, mapping in line 1: record: 'first'\nTraceback ..."
    )
    assert (error.place, error.record) == ("line 2", '"it\'s"')
    error = JobError("job_0001_r_0001 failed 1 time; last: the reducer `a.py` failed: reducing the group of ('a', 3)\nTraceback")
    assert (error.task, error.place, error.record, error.group) == ("job_0001_r_0001", None, None, "('a', 3)")


def test_count_of_no_lines_is_empty():
    assert Job.text().flat_map(str.split).count().test([]) == []
