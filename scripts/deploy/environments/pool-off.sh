# Sourced when the environment is deactivated: takes back what pool-on.sh has set, and nothing else.
if [ -n "${gpupool_before-}" ]; then export LD_PRELOAD="$gpupool_before"; else unset LD_PRELOAD; fi
case "${gpupool_set-}" in *strategy*) unset GPUPOOL_POOL_STRATEGY ;; esac
case "${gpupool_set-}" in *torch*) unset PYTORCH_ALLOC_CONF ;; esac
unset gpupool_before gpupool_set
