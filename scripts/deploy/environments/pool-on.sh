# Sourced when the environment is activated. What was set before is kept: our library comes first in LD_PRELOAD.
gpupool_before=${LD_PRELOAD-}
export LD_PRELOAD="@FRONT@${LD_PRELOAD:+:$LD_PRELOAD}"
export GPUPOOL_POOL_STRATEGY="${GPUPOOL_POOL_STRATEGY-auto_growth}"
export PYTORCH_ALLOC_CONF="${PYTORCH_ALLOC_CONF-backend:cudaMallocAsync}"
