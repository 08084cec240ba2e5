#!/usr/bin/env bash
# A Slurm array: each task runs one shard of a suite. A requeued task resumes. A last job joins the shards.
#
#   sbatch --export=ALL,DEVICE=gpu,SUITE=full,TIME=30m ci/jobs/slurm-array.sh
#   sbatch --dependency=afterany:JOB --wrap 'vk-litmus merge vk-litmus-JOB/part-* --out vk-litmus-JOB/all'
#
# VK_LITMUS is the path of the program (default: from PATH), EXPECT a folder of expectation files.
#SBATCH --job-name=vk-litmus
#SBATCH --array=1-4
#SBATCH --ntasks=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=vk-litmus-%A_%a.log
set -euo pipefail

: "${SLURM_ARRAY_JOB_ID:?this script is for sbatch}" "${SLURM_ARRAY_TASK_ID:?this script is for sbatch}"
arguments=(
    --suite "${SUITE:-full}"
    --device "${DEVICE:-gpu}"
    --time "${TIME:-10m}"
    # Shards that are joined must have the same seed.
    --seed "$SLURM_ARRAY_JOB_ID"
    --out "vk-litmus-$SLURM_ARRAY_JOB_ID/part-$SLURM_ARRAY_TASK_ID"
    --resume
    --retries 1
)
[ -z "${EXPECT:-}" ] || arguments+=(--expect "$EXPECT")
# The program reads its shard from the array's variables.
exec "${VK_LITMUS:-vk-litmus}" run "${arguments[@]}"
