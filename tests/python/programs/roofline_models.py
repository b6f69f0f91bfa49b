"""The two models of the article about rooflines, on the meta device: everything is dispatched and nothing computed.
Three steps of training on one image."""
import sys

import torch
from torch import nn


def vgg16():
    import torchvision
    return torchvision.models.vgg16()


def mobilenet():
    """MobileNet (v1, width 1): 4.2 M parameters, 569 M multiply-adds."""
    def block(inside, outside, stride):
        return nn.Sequential(
            nn.Conv2d(inside, inside, 3, stride, 1, groups=inside, bias=False), nn.BatchNorm2d(inside), nn.ReLU(),
            nn.Conv2d(inside, outside, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU())

    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    inside = 32
    for outside, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        layers.append(block(inside, outside, stride))
        inside = outside
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000))


def main():
    with torch.device('meta'):
        model, image = {'vgg16': vgg16, 'mobilenet': mobilenet}[sys.argv[1]](), torch.zeros(1, 3, 224, 224)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(image).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == '__main__':
    main()
