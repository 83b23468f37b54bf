#!/usr/bin/env python3
"""Submits Slurm workers while tasks wait, and drains idle ones: scale.py MAX SLOTS SBATCH ARGUMENTS... worker.sh"""
import json
import os
import subprocess
import sys
import time

EVERY = float(os.environ.get("EVERY", 10))  # seconds between rounds
IDLE = float(os.environ.get("IDLE", 300))  # seconds without tasks after which a worker is drained


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def waiting(job):
    maps, reduces = (job[kind]["tasks"] - job[kind]["done"] - job[kind]["running"] for kind in ("map", "reduce"))
    return maps or reduces


def scale(most, slots, sbatch, idle_since, waited):
    queue = run("squeue", "--me", "--name=nap-worker", "--states=PD,CF,R", "--noheader", "--format=%A %t")
    jobs = dict(line.split() for line in queue.splitlines())
    names = {"nap-worker-" + job for job in jobs}
    workers = json.loads(run("nap", "worker", "list", "--format", "json"))
    workers = [one for one in workers if one["state"] == "up" and one["name"] in names]
    current = json.loads(run("nap", "status", "--format", "json"))["current"]
    wanted = sum(waiting(job) for job in current if job["state"] in ("waiting", "running"))
    if wanted and waited:
        coming = len(jobs) - len(workers)
        for _ in range(min(-(-wanted // slots) - coming, most - len(jobs))):
            print(wanted, "tasks wait:", run("sbatch", "--job-name=nap-worker", *sbatch).strip(), flush=True)
    pending = [job for job, state in jobs.items() if state == "PD"]
    if not wanted and pending:
        run("scancel", "--state=PENDING", *pending)
    for one in workers:
        if wanted or one["map"]["used"] or one["reduce"]["used"]:
            idle_since.pop(one["worker"], None)
        elif time.monotonic() - idle_since.setdefault(one["worker"], time.monotonic()) >= IDLE:
            run("nap", "worker", "drain", one["worker"], "--reason", "idle")
    return wanted > 0


def main(most, slots, *sbatch):
    idle_since, waited = {}, False
    while True:
        try:
            waited = scale(int(most), int(slots), sbatch, idle_since, waited)
        except subprocess.CalledProcessError as error:  # it has printed why; the coordinator may be starting again
            print(error, file=sys.stderr)
        time.sleep(EVERY)


main(*sys.argv[1:])
