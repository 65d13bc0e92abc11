#!/bin/sh
# Slurm's TaskProlog: what it prints as "export NAME=value" is in the environment of the task. For tasks of jobs that were submitted
# with GPUPOOL=1: the preload, before whatever the user preloads, and a report per rank in the folder of the job.
[ "${GPUPOOL:-0}" = 1 ] || exit 0
front=/opt/gpupool/lib/libgpupool.so # on every node
[ -r "$front" ] || exit 0
case ":${LD_PRELOAD:-}:" in
  *":$front:"*) ;;
  *) echo "export LD_PRELOAD=$front${LD_PRELOAD:+:$LD_PRELOAD}" ;;
esac
if [ -z "${GPUPOOL_STATS_PATH:-}" ] && [ -n "${SLURM_SUBMIT_DIR:-}" ]; then
  echo "export GPUPOOL_STATS_PATH=$SLURM_SUBMIT_DIR/gpupool-${SLURM_JOB_ID:-0}-%h-%r.json"
fi
