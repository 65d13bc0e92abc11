# Sourced when the environment is deactivated.
if [ -n "${gpupool_before-}" ]; then export LD_PRELOAD="$gpupool_before"; else unset LD_PRELOAD; fi
unset gpupool_before GPUPOOL_POOL_STRATEGY PYTORCH_ALLOC_CONF
