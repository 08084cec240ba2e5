#!/usr/bin/env bash
# A Slurm array: each task runs its part of a suite, and goes on where it stopped when it is requeued. Then a last job
# joins the parts.
#
#   sbatch --export=ALL,DEVICE=gpu,SUITE=full,TIME=30m ci/jobs/slurm-array.sh
#   sbatch --dependency=afterany:JOB --wrap 'vk-litmus merge vk-litmus-JOB/part-* --out vk-litmus-JOB/all'
#
# VK_LITMUS names the program where it is not on the path, EXPECT a folder of expectation files.
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
    # Parts that are to be joined have one seed.
    --seed "$SLURM_ARRAY_JOB_ID"
    --out "vk-litmus-$SLURM_ARRAY_JOB_ID/part-$SLURM_ARRAY_TASK_ID"
    --resume
    --retries 1
)
[ -z "${EXPECT:-}" ] || arguments+=(--expect "$EXPECT")
# Which part this is, the program reads from the variables of the array.
exec "${VK_LITMUS:-vk-litmus}" run "${arguments[@]}"
