"""What a launcher starts: a few steps on the CPU. With `late`, variables are set by the program, as Ray Train does; with
`print NAME`, the variable of that name is printed first."""
import os
import sys

if 'late' in sys.argv:
    os.environ.update(RAY_JOB_ID='01000000', RANK='2', LOCAL_RANK='0', WORLD_SIZE='4', LOCAL_WORLD_SIZE='2', NODE_RANK='1')

import torch  # noqa: E402


def main():
    if 'print' in sys.argv:
        name = sys.argv[sys.argv.index('print') + 1]
        # One write, also with -u: other ranks write to the same pipe.
        sys.stdout.write(f'{name}={os.environ.get(name)}\n')
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()


if __name__ == '__main__':
    main()
