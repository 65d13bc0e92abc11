"""A compiled function: Triton's kernels, and the processes that compile them."""
import torch


@torch.compile
def function(x, y):
    return (torch.relu(x * 2 - 1) + y).sum(dim=1)


total = 0
for rows in (128, 300, 1000):
    x = (torch.arange(rows * 512, device="cuda") % 7).reshape(rows, 512)
    y = (torch.arange(rows * 512, device="cuda") % 5).reshape(rows, 512)
    total += int(function(x, y).sum().item())
print("torch_compile:", total)
