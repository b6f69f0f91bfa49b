"""Four ranks over gloo with NVTX ranges: a program that knows nothing of ranktap."""
import os

import torch
import torch.distributed as dist

STEPS = 5


def main():
    dist.init_process_group('gloo')
    rank = dist.get_rank()
    if os.environ.get('FAIL_RANK') == str(rank):
        raise SystemExit(3)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(16, 10) + rank
    for step in range(STEPS):
        with torch.cuda.nvtx.range(f'step_{step}'):
            torch.cuda.nvtx.range_push('forward')
            loss = model(data).square().mean()
            torch.cuda.nvtx.range_pop()
            torch.cuda.nvtx.range_push('backward')
            optimizer.zero_grad()
            loss.backward()
            torch.cuda.nvtx.range_pop()
            with torch.cuda.nvtx.range('all_reduce'):
                for parameter in model.parameters():
                    dist.all_reduce(parameter.grad)
            optimizer.step()
            torch.cuda.nvtx.mark(f'rank {rank} done with {step}')
    # One write: four ranks share this pipe, and unbuffered `print` writes the end of the line apart.
    os.write(1, f'rank {rank} local {os.environ["LOCAL_RANK"]} loss {loss.item():.6f}\n'.encode())
    dist.barrier()
    dist.destroy_process_group()
    # PyTorch 2.15's gloo calls std::terminate in about one interpreter shutdown in ten, bare as well.
    os._exit(0)


if __name__ == '__main__':
    main()
