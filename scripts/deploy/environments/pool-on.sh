# Sourced when the environment is activated. What is set already is kept: our library comes first in LD_PRELOAD, and of the options those stay
# that the user has chosen. What is set here is remembered, for pool-off.sh.
gpupool_before=${LD_PRELOAD-}
gpupool_set=
export LD_PRELOAD="@FRONT@${LD_PRELOAD:+:$LD_PRELOAD}"
if [ -z "${GPUPOOL_POOL_STRATEGY+set}" ]; then export GPUPOOL_POOL_STRATEGY=auto_growth; gpupool_set="$gpupool_set strategy"; fi
if [ -z "${PYTORCH_ALLOC_CONF+set}" ]; then export PYTORCH_ALLOC_CONF=backend:cudaMallocAsync; gpupool_set="$gpupool_set torch"; fi
