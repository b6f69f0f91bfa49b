"""A step with one operator of more inputs than its description has room for."""
import torch


def main():
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(torch.cat([torch.ones(2, 3)] * 6000)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == '__main__':
    main()
