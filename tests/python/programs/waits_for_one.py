"""Four ranks over gloo, of which GUILTY does not enter the fourth all-reduce of its gradients: it sleeps until it is killed."""
import os
import time

import torch
import torch.distributed as dist

dist.init_process_group('gloo')
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(4):
    model(torch.ones(4, 16)).sum().backward()
    if step == 3 and dist.get_rank() == int(os.environ['GUILTY']):
        time.sleep(1e6)
    dist.all_reduce(model.weight.grad)
    optimizer.step()
