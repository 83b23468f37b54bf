"""Programs in tasks: their answers over real pipes."""

import json
import pickle
import struct

import pytest

from conversation import Conversation

from napreduce.codec import Number

WORDS = """
from napreduce import Job, counter
job = Job.text()
@job.map
def words(line):
    counter("lines").add()
    for word in line.split():
        yield word, 1
job.combine(sum)
@job.reduce(keys=str, values=int)
def total(word, counts):
    yield word, sum(counts)
job.main()
"""

LAST_LINES = """
from napreduce import Job
job = Job.text()
@job.map
class Numbered:
    def __init__(self):
        self.number = 0
    def __call__(self, line):
        self.number += 1
        yield f"{job.parameters['begin']}{self.number}", line
    def finish(self):
        yield "all", self.number
    def __getstate__(self):
        return self.number
    def __setstate__(self, number):
        self.number = number
job.main()
"""


IN_ORDER = """
from napreduce import Job
job = Job.text()
@job.map
def visits(line):
    user, when, page = line.split()
    yield (user, int(when)), page
@job.reduce(keys=str, order=int, values=str)
def pages(user, visited):
    yield user, *visited
job.main()
"""


def numbers(*values):
    return [Number().encode(value) for value in values]


def test_program_describes_its_job(tmp_path):
    with Conversation(tmp_path, WORDS, "describe") as program:
        kind, payload = program.next()
        assert kind == "H" and json.loads(payload) == {
            "version": 1,
            "input": "text",
            "reduce": True,
            "combine": "sum",
            "grouped": False,
            "reduces": None,
            "saves": {"map": True, "reduce": True},
        }
        assert program.end() == (0, "")


def test_order_is_encoded_after_key(tmp_path):
    with Conversation(tmp_path, IN_ORDER) as program:
        assert json.loads(program.next()[1])["grouped"] is True
        program.send_strings("R", b"ann -1 home")
        program.send("E")
        output, _ = program.output("F")
        key = struct.pack(">I", 3) + b"ann" + struct.pack(">Q", (1 << 63) - 1)
        assert output == [[key, b"home"]]
    with Conversation(tmp_path, IN_ORDER, "reduce") as program:
        program.next()
        program.send_group(b"ann", b"home", b"about")
        program.send("E")
        output, _ = program.output("F")
        assert output == [[b"ann\thome\tabout"]]
    with Conversation(tmp_path, IN_ORDER.replace("(user, int(when))", "user")) as program:
        program.next()
        program.send_strings("R", b"ann 1 home")
        assert "'ann' is not a pair of key and order" in program.failure()["message"]


def test_map_sends_pairs_and_counters(tmp_path):
    with Conversation(tmp_path, WORDS) as program:
        program.send_strings("R", b"to be", b"", "é or".encode())
        program.send("E")
        kinds = [kind for kind, _ in program.until("F")]
        assert kinds == ["H", "O", "C", "F"]
    with Conversation(tmp_path, WORDS) as program:
        program.send_strings("R", b"to be", b"", "é or".encode())
        program.send("E")
        output, counted = program.output("C")
        assert output == [[b"to", b"be", "é".encode(), b"or", *numbers(1, 1, 1, 1)]]
        assert json.loads(counted) == {"lines": 3}
        assert program.next() == ("F", b"")
        assert program.end() == (0, "")


def test_reduce_receives_groups_in_batches(tmp_path):
    with Conversation(tmp_path, WORDS, "reduce") as program:
        program.send("G", b"be")
        program.send_strings("V", *numbers(1, 2))
        program.send_strings("V", *numbers(2**63))
        program.send("g")
        program.send_group(b"to", *numbers(-1))
        program.send("E")
        output, _ = program.output("F")
        assert output == [[b"be\t9223372036854775811", b"to\t-1"]]


@pytest.mark.parametrize("role", ["map", "reduce"])
def test_program_reports_processed_records(tmp_path, role):
    with Conversation(tmp_path, WORDS, role, tells_done=True) as program:
        program.until("H")
        if role == "map":
            program.send_strings("R", b"to be")
        else:
            program.send_group(b"be", struct.pack(">q", 1))
        assert program.next() == ("P", struct.pack(">Q", 1))


def test_unread_values_are_skipped(tmp_path):
    source = WORDS.replace("sum(counts)", "next(counts)")
    with Conversation(tmp_path, source, "reduce") as program:
        for word in (b"a", b"b"):
            program.send("G", word)
            for number in range(3):
                program.send_strings("V", *numbers(number, 7))
            program.send("g")
        program.send("E")
        assert program.output("F")[0] == [[b"a\t0", b"b\t0"]]


def test_function_is_stateless(tmp_path):
    for role in ("map", "reduce"):
        with Conversation(tmp_path, WORDS, role) as program:
            program.send("S")
            assert [kind for kind, _ in program.until("D", "d")] == ["H", "d"]


def test_class_restores_its_state(tmp_path):
    begin = {"begin": "line "}
    with Conversation(tmp_path, LAST_LINES, parameters=begin) as program:
        program.send_strings("R", b"a", b"b")
        program.send("S")
        output, state = program.output("D")
        assert output == [[b"line 1\ta", b"line 2\tb"]]
    with Conversation(tmp_path, LAST_LINES, state=state, parameters=begin) as program:
        program.send_strings("R", b"c")
        program.send("E")
        assert program.output("F")[0] == [[b"line 3\tc", b"all\t3"]]


def test_class_without_getstate_is_not_saved(tmp_path):
    source = LAST_LINES.replace("__getstate__", "state")
    with Conversation(tmp_path, source, "describe") as program:
        assert json.loads(program.next()[1])["saves"] == {"map": False, "reduce": True}


def test_uncombined_pairs_are_saved(tmp_path):
    source = WORDS.replace("combine(sum)", "combine(lambda counts: sum(counts))")
    with Conversation(tmp_path, source) as program:
        program.send_strings("R", b"to be to")
        program.send("S")
        output, state = program.output("D")
        assert output == [] and pickle.loads(state) == (None, ({"to": [1, 1], "be": [1]}, 3))
    with Conversation(tmp_path, source, state=state) as program:
        program.send_strings("R", b"to")
        program.send("E")
        assert program.output("F")[0] == [[b"to", b"be", *numbers(3, 1)]]


@pytest.mark.parametrize(("values", "native"), [("int", "sum"), ("None", "sum"), ("str", None)])
def test_count_sends_ones(tmp_path, values, native):
    source = WORDS.replace("combine(sum)", "combine(count)").replace("import Job", "import Job, count")
    source = source.replace("values=int", f"values={values}").replace("word, 1", "word, 'x'")
    with Conversation(tmp_path, source) as program:
        if native is None:
            assert "use values=int" in program.failure()["message"]
            return
        assert json.loads(program.next()[1])["combine"] == native
        program.send_strings("R", b"to")
        program.send("E")
        assert program.output("F")[0] == [[b"to", *numbers(1)]]


def test_print_and_input_do_not_disturb_frames(tmp_path):
    source = WORDS.replace("    for word", "    import sys\n    print(line, repr(sys.stdin.read()))\n    for word")
    with Conversation(tmp_path, source) as program:
        program.send_strings("R", b"to")
        program.send("E")
        assert program.output("F")[0] == [[b"to", *numbers(1)]]
        assert program.end() == (0, "to ''\n")


def test_exception_is_sent_with_traceback_and_record(tmp_path):
    source = WORDS.replace("    for word", "    if line == 'bad':\n        raise ValueError('oh')\n    for word")
    with Conversation(tmp_path, source) as program:
        program.send_strings("R", b"to", b"be")
        program.send_strings("R", b"or", b"bad", b"not")
        failure = program.failure()
        assert failure["record"] == 3
        first, *_, last = failure["message"].splitlines()
        assert first == "Traceback (most recent call last):" and last == "ValueError: oh"
        assert "in words" in failure["message"] and "task.py" not in failure["message"]
        assert program.end()[0] == 1


def test_exception_of_reduce_names_group(tmp_path):
    source = WORDS.replace("yield word, sum(counts)", "yield word, 1 // next(counts)")
    with Conversation(tmp_path, source, "reduce") as program:
        program.send_group(b"to", *numbers(0))
        failure = program.failure()
        assert failure["record"] is None
        assert failure["message"].startswith("reducing the group of 'to'\nTraceback")
        assert failure["message"].endswith("ZeroDivisionError: integer division or modulo by zero")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("yield word, 1", "yield 7, 1", "TypeError: 7 is not a str"),
        ("yield word, 1", "yield word, 'x'", "TypeError: 'str' object cannot be interpreted as an integer"),
        ("yield word, 1", "yield word, 2**63", "OverflowError: 9223372036854775808 exceeds 64 bits"),
        ("yield word, 1", "yield (word,)", "ValueError: not enough values to unpack"),
        ("yield word, 1", "raise SystemExit(3)", "SystemExit: 3"),
        ("for word in line.split():\n        yield word, 1", "return 'x'", "use yield, or return a list"),
        ("keys=str", "keys=list", "cannot be a key type"),
        ("@job.reduce(keys=str, values=int)\n", "", "a combiner without a reduce"),
        ("@job.map\n", "", "the job has no map"),
        ("sum(counts)", "sum(counts)\n@job.reduce\ndef more(): pass", "the job has two reduces"),
    ],
)
def test_invalid_job_is_reported(tmp_path, old, new, says):
    assert old in WORDS
    with Conversation(tmp_path, WORDS.replace(old, new)) as program:
        program.send_strings("R", b"to be")
        try:
            message = program.failure()["message"]
        except AssertionError as error:
            # What is wrong before there is a conversation is printed.
            message = str(error)
        assert says in message


def test_other_protocol_version_is_rejected(tmp_path):
    with Conversation(tmp_path, WORDS, version=2) as program:
        assert "nap speaks frames of version 2" in program.failure()["message"]


def test_batch_with_wrong_lengths_is_rejected(tmp_path):
    with Conversation(tmp_path, WORDS) as program:
        program.send("R", struct.pack(">II", 1, 9) + b"to")
        assert "a batch of 10 bytes whose header claims 17 bytes" in program.failure()["message"]


def test_unexpected_frames_are_rejected(tmp_path):
    for role, kind, says in [("map", "G", "a frame G for a map"), ("reduce", "V", "a frame V between groups")]:
        with Conversation(tmp_path, WORDS, role) as program:
            program.send(kind)
            assert says in program.failure()["message"]


def test_program_ends_when_pipe_closes(tmp_path):
    with Conversation(tmp_path, WORDS) as program:
        program.next()
        program.process.stdin.close()
        assert program.process.wait(30) == 1


def test_lines_may_be_in_any_encoding_or_json(tmp_path):
    for source, records, lines in [
        ("Job.lines('latin-1')", [b"caf\xe9"], ["café"]),
        ("Job.lines()", [b"caf\xe9"], ["caf\ufffd"]),
        ("Job.bytes()", [b"caf\xe9"], ["b'caf\\xe9'"]),
        ("Job.json_lines()", [b'{"a": [1, null]}'], ["{'a': [1, None]}"]),
    ]:
        program = f"from napreduce import Job\njob = {source}\n@job.map\ndef f(x):\n    yield str(x)\njob.main()\n"
        with Conversation(tmp_path, program) as program:
            program.send_strings("R", *records)
            program.send("E")
            assert program.output("F")[0] == [[line.encode() for line in lines]]


def test_output_items_become_lines(tmp_path):
    items = "[('a', 1), ('b', None, 2.5), 'c', b'\\xff', 7, (True,)]"
    program = f"from napreduce import Job\njob = Job.text()\njob.map(lambda line: {items})\njob.main()\n"
    with Conversation(tmp_path, program) as program:
        program.send_strings("R", b"x")
        program.send("E")
        assert program.output("F")[0] == [[b"a\t1", b"b\t\t2.5", b"c", b"\xff", b"7", b"True"]]
