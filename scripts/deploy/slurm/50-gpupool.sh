#!/bin/bash
# Enroot hook: lies executable in /etc/enroot/hooks.d, after NVIDIA's own (98-nvidia.sh may come later; neither needs the other). Containers that are
# started with GPUPOOL=1 get the libraries, and the front before the image's own LD_PRELOAD.
set -euo pipefail
grep -q '^GPUPOOL=1$' "$ENROOT_ENVIRON" || exit 0
home=/opt/gpupool # on the node, and in the container
front=$home/lib/libgpupool.so
[ -r "$front" ] || exit 0

echo "$home $home none x-create=dir,bind,ro,nosuid,nodev" >>"${ENROOT_MOUNTS:?}"
before=$(sed -n 's/^LD_PRELOAD=//p' "$ENROOT_ENVIRON" | tail -n 1)
case ":$before:" in
  *":$front:"*) ;;
  *) echo "LD_PRELOAD=$front${before:+:$before}" >>"$ENROOT_ENVIRON" ;;
esac
