"""torch.cuda.memory_stats() where the driver's pool counts, with PYTORCH_ALLOC_CONF=backend:cudaMallocAsync."""
import torch

MIB = 1 << 20
blocks = [torch.zeros(size * MIB, dtype=torch.uint8, device="cuda") for size in (2, 64, 10, 512)]
torch.cuda.synchronize()
print("torch_stats: allocated", torch.cuda.memory_allocated() // MIB)
blocks[3] = None
blocks[1] = None
torch.cuda.synchronize()
torch.cuda.empty_cache()
stats = torch.cuda.memory_stats()
print("now", stats["allocated_bytes.all.current"] // MIB, "peak", stats["allocated_bytes.all.peak"] // MIB)
print("reserved enough", stats["reserved_bytes.all.current"] >= stats["allocated_bytes.all.current"],
      stats["reserved_bytes.all.peak"] >= stats["allocated_bytes.all.peak"])
torch.cuda.reset_peak_memory_stats()
more = torch.zeros(100 * MIB, dtype=torch.uint8, device="cuda")
print("after a reset", torch.cuda.max_memory_allocated() // MIB, "sum", sum(int(b.sum().item()) for b in blocks if b is not None))
