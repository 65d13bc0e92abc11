"""Two streams that hand tensors to each other, with record_stream where PyTorch asks for it."""
import torch

side = torch.cuda.Stream()
main = torch.cuda.current_stream()
generator = torch.Generator().manual_seed(3)
total = 0
for step in range(60):
    size = int(torch.randint(1, 4_000_000, (1,), generator=generator))
    given = torch.full((size,), step, dtype=torch.int64, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        doubled = given * 2
        torch.cuda._sleep(1_000_000)
        result = (doubled + given).sum()
    given.record_stream(side)
    del given
    # Takes the place of what was just dropped, unless record_stream is heeded.
    filler = torch.full((size,), -1, dtype=torch.int64, device="cuda")
    main.wait_stream(side)
    result.record_stream(main)
    total += int(result.item()) - 3 * step * size
    assert int(filler.sum().item()) == -size
print("torch_streams: off by", total)
