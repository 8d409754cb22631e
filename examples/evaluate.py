"""Evaluates the digit classifier. It has mistakes for mllint to find: try `mllint examples`."""

import torch
import torch.nn.functional as F

from models.net import DeepDigitNet, DigitNet
from train import random_digits


def load(path: str) -> DigitNet:
    model = DigitNet()
    model = model.load_state_dict(torch.load(path, weights_only=True))
    return model


def load_default() -> DigitNet:
    model = DigitNet()
    model.load_state_dict("digits.pt")
    return model


def start_from(path: str) -> DeepDigitNet:
    """The deeper network, with the features of the small one."""
    model = DeepDigitNet()
    model.load_state_dict(torch.load(path, weights_only=True), strict=False)
    return model


def copy_weights(small: DigitNet) -> DeepDigitNet:
    model = DeepDigitNet()
    model.load_state_dict(small.state_dict())
    return model


@torch.no_grad()
def evaluate(model: DigitNet) -> float:
    model.eval()
    total, batches = 0.0, 0
    for images, labels in random_digits(512):
        loss = F.cross_entropy(model(images), labels)
        total += loss.data[0]
        batches += 1
    return total / batches


if __name__ == "__main__":
    print(f"loss {evaluate(load('digits.pt')):.4f}")
