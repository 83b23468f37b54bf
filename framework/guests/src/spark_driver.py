"""Runs the jobs of a napreduce program on Spark: maps and reduces as guests, blocks through Spark's shuffle.

The submitting program commits the output. docs/spark.md describes the files and events.

Executors run nested functions that use no names of this module, because PySpark would pickle those by value.
"""

import base64
import json
import os
import re
import sys
import threading
import time

FORMAT = "napreduce-engine/1"
TICK = 0.2
# A Spark setting that makes records go through PySpark's ordinary, pickled shuffle.
PICKLED = "spark.napreduce.pickled"
MARK = "napreduce-guest-failed:"

printing = threading.Lock()


def print_event(event, number, **more):
    """Prints an event as a JSON text sequence; other lines are Spark's."""
    with printing:
        sys.stdout.write("\x1e" + json.dumps({"event": event, "number": number, **more}) + "\n")
        sys.stdout.flush()


def map_guests(request):
    """Returns the function that runs map tasks on executors. It yields partition numbers and frames, or without reduces reports."""
    guest = guests(request)
    reduces = request["reduces"]

    def run(_, rows):
        import struct

        for task, input_file in rows:
            process = guest("map", task, input_file, None)
            reported = False
            try:
                while True:
                    header = process.read(16)
                    if len(header) < 16:
                        break
                    if reported:
                        raise process.protocol_error("sent a frame after its report")
                    partition, _, _, length = struct.unpack(">IIII", header)
                    payload = process.read(length)
                    if len(payload) < length:
                        header = payload or header
                        break
                    reported = partition == 0xFFFFFFFF
                    if reduces == 0:
                        yield payload
                    else:
                        yield struct.pack(">q", task % reduces if reported else partition)
                        yield header + payload
                # If the guest failed, `succeeded` raises its error.
                if process.succeeded() and (header or not reported):
                    raise process.protocol_error("sent a truncated frame" if header else "ended without a report")
            finally:
                process.end()

    return run


def reduce_guests(request):
    """Returns the function that reduces the frames of a partition on executors."""
    guest = guests(request)

    def run(task, frames):
        process = guest("reduce", task, None, frames)
        try:
            report = process.read()
            if process.succeeded():
                yield report
        finally:
            process.end()

    return run


def guests(request):
    """Returns the class of guest processes on executors."""
    mark, failures = MARK, request["failures"]

    class Guest:
        def __init__(self, kind, task, input_file, frames):
            import os
            import random
            import subprocess
            import tempfile
            from pyspark import SparkFiles, TaskContext

            context = TaskContext.get()
            self.task = "%s_%s_%04d" % (request["job"], kind[0], task)
            places = [place for place in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if place]
            place = random.choice(places) if places else None
            if place:
                os.makedirs(place, exist_ok=True)
            self.folder = tempfile.mkdtemp(prefix="napreduce-guest-", dir=place)
            files = os.path.join(self.folder, "files")
            os.mkdir(files)
            for name, sent in request["sent_files"]:
                os.symlink(SparkFiles.get(sent), os.path.join(files, name))
            program = SparkFiles.get(request["sent_program"])
            if not os.access(program, os.X_OK):
                os.chmod(program, 0o755)
            attempt = context.attemptNumber() + 1
            command = [program, "--napreduce-guest", kind, "--plan", SparkFiles.get(request["sent_plan"])]
            command += ["--task", str(task), "--attempt", str(attempt), "--die-with", str(os.getpid())]
            command += ["--scratch", os.path.join(self.folder, "work"), "--chunk", str(request["chunk"])]
            if kind == "reduce" or request["reduces"] == 0:
                # The number is unique among attempts of all stages.
                name = "%s.%d" % (self.task, context.taskAttemptId())
                command += ["--part", os.path.join(request["parts"], name)]
            variables = {
                "NAPREDUCE_JOB_ID": request["job"],
                "NAPREDUCE_TASK_ID": self.task,
                "NAPREDUCE_ATTEMPT_ID": "%s.%d" % (self.task, attempt),
                "NAPREDUCE_FILES_DIR": files,
            }
            environment = {name: value for name, value in os.environ.items() if name != "NAPREDUCE_INPUT_FILE"}
            environment.update(variables)
            if input_file is not None:
                environment["NAPREDUCE_INPUT_FILE"] = input_file
            self.errors = open(os.path.join(self.folder, "errors"), "w+b")
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE if frames is not None else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                start_new_session=True,
            )
            self.forward_signals()
            if frames is not None:
                self.feed(frames)

        def forward_signals(self):
            """Forwards the termination of the executor to the guest, which may save a checkpoint."""
            import os
            import signal
            import threading
            import time

            def terminate(*_):
                self.process.terminate()
                for _ in range(100):
                    if self.process.poll() is not None:
                        break
                    time.sleep(0.1)
                os._exit(143)

            in_main_thread = threading.current_thread() is threading.main_thread()
            signals = (signal.SIGTERM, signal.SIGHUP) if in_main_thread else ()
            self.former = {one: signal.signal(one, terminate) for one in signals}

        def feed(self, frames):
            """Writes the frames of a reduce, which produces no output before it has read all of them."""
            try:
                for frame in frames:
                    self.process.stdin.write(frame)
                self.process.stdin.close()
            except BrokenPipeError:
                # The guest has ended; its status is the error.
                pass

        def read(self, length=-1):
            return self.process.stdout.read(length)

        def protocol_error(self, what):
            return RuntimeError("%s %s" % (self.task, what))

        def succeeded(self):
            """Returns whether the task succeeded. Reports a fatal failure to the driver, so that Spark does not retry it; raises
            other failures."""
            import base64
            import json

            status = self.process.wait()
            if status == 0:
                return True
            self.errors.seek(0, 2)
            self.errors.seek(max(0, self.errors.tell() - 4096))
            reason = self.errors.read().decode("utf-8", "replace").strip()
            if not reason or status not in (64, 65, 66):
                ended = "status %d" % status if status >= 0 else "signal %d" % -status
                reason = ("ended by %s; %s" % (ended, reason)).rstrip("; ")
            failure = {"task": self.task, "status": status, "reason": reason}
            if status == 65:
                failures.add([failure])
                return False
            raise RuntimeError(mark + base64.b64encode(json.dumps(failure).encode()).decode() + ";")

        def end(self):
            import shutil
            import signal
            import sys

            for one, former in self.former.items():
                signal.signal(one, former or signal.SIG_DFL)
            # The guest's output is no longer read.
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            if self.process.stdin is not None:
                try:
                    self.process.stdin.close()
                except BrokenPipeError:
                    pass
            # Copy its messages to the executor's log.
            self.errors.seek(0)
            shutil.copyfileobj(self.errors, sys.stderr.buffer)
            sys.stderr.flush()
            self.errors.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    return Guest


def passes_bytes(sc):
    """Returns whether this PySpark has the internals of `partitionBy`, so that frames can be shuffled without pickling."""
    from py4j.java_gateway import JavaClass

    if sc.getConf().get(PICKLED, "false") == "true":
        return False
    try:
        from pyspark.rdd import RDD
        from pyspark.serializers import NoOpSerializer

        java = [sc._jvm.PairwiseRDD, sc._jvm.PythonPartitioner, sc._jvm.PythonRDD]
        return all(isinstance(one, JavaClass) for one in java) and bool(RDD and NoOpSerializer)
    except (AttributeError, ImportError):
        return False


def shuffled(sc, mapped, reduces, as_bytes):
    """Returns the frames of the maps, partitioned by the numbers before them."""
    if not as_bytes:
        def pairs(items):
            import struct

            for key in items:
                yield struct.unpack(">q", key)[0], next(items)

        return mapped.mapPartitions(pairs).partitionBy(reduces, lambda partition: partition).values()

    from pyspark.rdd import RDD
    from pyspark.serializers import NoOpSerializer

    mapped._bypass_serializer = True
    paired = sc._jvm.PairwiseRDD(mapped._jrdd.rdd()).asJavaPairRDD()
    # The second number distinguishes partitioners, as in `partitionBy`.
    partitioner = sc._jvm.PythonPartitioner(reduces, id(mapped))
    return RDD(sc._jvm.PythonRDD.valueOfPair(paired.partitionBy(partitioner)), sc, NoOpSerializer())


class Failures:
    """An accumulator of fatal failures, which Spark updates at the end of each task."""

    def zero(self, _):
        return []

    def addInPlace(self, some, more):
        return some + more


class Watcher(threading.Thread):
    """Prints the progress of a job, and cancels the job on request or after a fatal failure."""

    def __init__(self, sc, directory, request, submitter):
        super().__init__(daemon=True)
        self.sc, self.directory, self.request, self.submitter = sc, directory, request, submitter
        self.ended = threading.Event()
        self.failed = {"map": 0, "reduce": 0}
        self.last = None

    def run(self):
        number = self.request["number"]
        while not self.ended.wait(TICK):
            if is_gone(self.submitter, self.directory):
                self.sc.cancelAllJobs()
                self.sc.stop()
                os._exit(1)
            self.report_progress()
            cancelled = os.path.exists(os.path.join(self.directory, "jobs", "%d.cancel" % number))
            if cancelled or self.request["failures"].value:
                self.sc.cancelAllJobs()

    def report_progress(self):
        tracker = self.sc.statusTracker()
        phases = {"map": {"done": 0, "running": 0}, "reduce": {"done": 0, "running": 0}}
        for job in tracker.getJobIdsForGroup(self.request["job"]):
            info = tracker.getJobInfo(job)
            stages = sorted(info.stageIds) if info else []
            for stage in stages:
                info = tracker.getStageInfo(stage)
                if info is None:
                    continue
                kind = "reduce" if stage == stages[-1] and self.request["reduces"] else "map"
                phases[kind] = {"done": info.numCompletedTasks, "running": info.numActiveTasks}
                self.failed[kind] = info.numFailedTasks
        if phases != self.last:
            self.last = phases
            print_event("progress", self.request["number"], maps=phases["map"], reduces=phases["reduce"])
        return phases

    def report_last_progress(self):
        """Waits up to two seconds until Spark's delayed statistics of the job are complete."""
        kind = "reduce" if self.request["reduces"] else "map"
        tasks = self.request["reduces"] or len(self.request["inputs"])
        for _ in range(20):
            if self.report_progress()[kind]["done"] >= tasks:
                return
            time.sleep(TICK / 2)


def is_gone(submitter, directory):
    return not os.path.exists("/proc/%d" % submitter) or not os.path.isdir(directory)


def send(sc, request):
    """Ships program, plan and side files under names unique to the job."""
    from pathlib import Path

    def sent(path):
        # Spark would resolve the link of a plain path and use the name of its target.
        sc.addFile(Path(path).as_uri())
        return os.path.basename(path)

    request["sent_program"] = sent(request["program"])
    request["sent_plan"] = sent(request["plan"])
    request["sent_files"] = [(one["name"], sent(one["path"])) for one in request["files"]]


def run(sc, request):
    """Runs a job; returns the reports of the tasks that wrote parts, as JSON."""
    reduces, inputs = request["reduces"], request["inputs"]
    as_bytes = passes_bytes(sc)
    request["chunk"] = (1 << 20) if as_bytes else (64 << 10)
    task_request = {name: value for name, value in request.items() if name != "inputs"}
    sc.setJobGroup(request["job"], request["name"])
    rows = sc.parallelize(list(enumerate(inputs)), max(1, len(inputs)))
    mapped = rows.mapPartitionsWithIndex(map_guests(task_request), preservesPartitioning=True)
    if reduces == 0:
        return mapped.collect()
    return shuffled(sc, mapped, reduces, as_bytes).mapPartitionsWithIndex(reduce_guests(task_request)).collect()


def failure_of(error, request):
    """Returns the failure of a job: a fatal one of a task, else the last one of a guest, else Spark's message."""
    failures = request["failures"].value
    if failures:
        return {"task": failures[0]["task"], "reason": failures[0]["reason"]}
    message = str(error)
    found = re.findall(re.escape(MARK) + r"([A-Za-z0-9+/=]+);", message)
    if found:
        failure = json.loads(base64.b64decode(found[-1]))
        return {"task": failure["task"], "reason": failure["reason"]}
    lines = [line for line in message.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return {"reason": "Spark: " + "\n".join(lines)[-4096:]}


def work(sc, directory, request, submitter):
    number = request["number"]
    request["failures"] = sc.accumulator([], Failures())
    watcher = Watcher(sc, directory, request, submitter)
    try:
        send(sc, request)
        watcher.start()
        reports = run(sc, request)
        # Spark may have treated the fatal failure as the end of a task.
        failures = request["failures"].value
        if failures:
            raise RuntimeError(failures[0]["reason"])
    except Exception as error:  # Any error must be reported to the submitter.
        print_event("failed", number, **failure_of(error, request))
        return
    finally:
        watcher.ended.set()
    watcher.join()
    watcher.report_last_progress()
    for report in reports:
        print_event("report", number, report=json.loads(report))
    print_event("done", number, failed_maps=watcher.failed["map"], failed_reduces=watcher.failed["reduce"])


def main(directory):
    from pyspark import SparkContext

    with open(os.path.join(directory, "engine.json")) as text:
        engine = json.load(text)
    submitter = engine["submitter"]
    # The settings come from spark-submit.
    sc = SparkContext()
    number = 1
    while not is_gone(submitter, directory) and not os.path.exists(os.path.join(directory, "end")):
        path = os.path.join(directory, "jobs", "%d.json" % number)
        if not os.path.exists(path):
            time.sleep(TICK / 4)
            continue
        with open(path) as text:
            request = json.load(text)
        if request["format"] != FORMAT:
            print_event("failed", number, reason="this driver reads %s, but received %s" % (FORMAT, request["format"]))
        else:
            work(sc, directory, request, submitter)
        number += 1
    sc.stop()


if __name__ == "__main__":
    main(sys.argv[1])
