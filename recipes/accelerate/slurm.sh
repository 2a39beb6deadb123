#!/bin/bash
# sbatch --nodes 2 --gpus-per-node 8 recipes/accelerate/slurm.sh recipes/bert_sentiment.py --output-dir /shared/runs
# One launcher a machine, which starts a process for each of its GPUs. LAUNCHER=… before sbatch takes
# another file than multi_node.yaml, such as recipes/accelerate/fsdp2.yaml.
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
set -euo pipefail

# A failed process ends its machine's launcher; --kill-on-bad-exit ends the other machines'.
export LAUNCHER=${LAUNCHER:-recipes/accelerate/multi_node.yaml}
export MAIN_PROCESS_IP=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --kill-on-bad-exit=1 bash -c '
    exec accelerate launch --config_file "$LAUNCHER" --num_machines "$SLURM_NNODES" \
        --num_processes "$((SLURM_NNODES * SLURM_GPUS_ON_NODE))" --machine_rank "$SLURM_NODEID" \
        --main_process_ip "$MAIN_PROCESS_IP" --main_process_port 29500 "$@"
' launch "$@"
