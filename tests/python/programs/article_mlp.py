"""The articles' first program: a small classifier, its epochs under record_function, then one inference."""
import torch
from torch import nn
from torch.profiler import record_function


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 5), nn.ReLU(), nn.Linear(5, 1), nn.Sigmoid())
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(16, 10), torch.rand(16, 1)
    for epoch in range(3):
        with record_function(f'epoch_{epoch}'):
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(f'epoch {epoch} loss {loss.item().hex()}')
    with torch.no_grad():
        print('inference', model(inputs).sum().item().hex())


if __name__ == '__main__':
    main()
