"""Trains the digit classifier. It has mistakes for mllint to find: try `mllint examples`."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from models.net import DigitNet


def random_digits(count: int) -> DataLoader:
    images = torch.rand(count, 1, 28, 28)
    labels = torch.randint(0, 10, (count,))
    return DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)


def train_epoch(
    model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, device: torch.device
) -> float:
    criterion = nn.CrossEntropyLoss()
    model.train()
    total_loss = 0.0
    for images, labels in loader:
        images.to(device)
        labels = labels.to(device)

        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        if loss == float("nan"):
            raise RuntimeError("the training diverged")
        loss.backward()
        optimizer.step()

        total_loss += loss
    return total_loss / len(loader)


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = DigitNet().to(device)
    for parameter in model.features.parameters():
        parameter.require_grad = False

    parallel = nn.DataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
    loader = random_digits(2048)
    for epoch in range(5):
        loss = train_epoch(parallel, loader, optimizer, device)
        print(f"epoch {epoch}: loss {loss:.4f}")
    torch.save(parallel.state_dict(), "digits.pt")


if __name__ == "__main__":
    main()
