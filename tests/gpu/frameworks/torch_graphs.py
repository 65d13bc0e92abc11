"""CUDA graphs: a training step captured and replayed, with allocations before, inside and after the capture."""
import torch

torch.manual_seed(5)
torch.use_deterministic_algorithms(False)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data, target = torch.randn(64, 256, device="cuda"), torch.randn(64, 8, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(data), target)
    loss.backward()
    optimizer.step()
    return loss


warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(warm)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = step()
losses = []
for replay in range(20):
    graph.replay()
    # Eager memory that comes and goes between replays.
    torch.full(((replay % 7 + 1) * 1_000_000,), float(replay), device="cuda").sum().item()
    losses.append(f"{loss.item():.4f}")
print("torch_graphs:", losses[0], losses[-1])
