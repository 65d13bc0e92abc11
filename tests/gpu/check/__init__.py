"""The checks of scripts/gpu-check: one module each, with a function check(bench, result)."""
