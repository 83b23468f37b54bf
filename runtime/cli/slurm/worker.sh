#!/bin/sh
#SBATCH --job-name=nap-worker --cpus-per-task=8 --time=4:00:00 --signal=B:TERM@60 --requeue
# A worker as a batch job. NAPREDUCE_DIR, or NAPREDUCE_COORDINATOR and NAPREDUCE_SECRET_FILE, name its cluster.
exec nap worker --bind 0.0.0.0:0 \
  --name "nap-worker-$SLURM_JOB_ID" --directory "${TMPDIR:-/tmp}/nap-worker-$SLURM_JOB_ID" \
  --map-slots "${SLURM_CPUS_ON_NODE:-1}" --reduce-slots "${SLURM_CPUS_ON_NODE:-1}"
