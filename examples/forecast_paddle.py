"""Fits a small forecast model with Paddle. It has mistakes for mllint to find: try `mllint examples`."""

import math

import paddle
from paddle import nn


class Forecast(nn.Layer):
    """Predicts the next value of a series from the last eight."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.output = nn.Linear(32, 1)

    def forward(self, series: paddle.Tensor) -> paddle.Tensor:
        return self.output(nn.functional.relu(self.hidden(series)))


def fit(model: Forecast, steps: int) -> list[float]:
    optimizer = paddle.optimizer.Adam(learning_rate=0.01, parameters=model.parameters())
    mean_square = nn.MSELoss()
    history = []
    for _ in range(steps):
        series = paddle.rand([64, 9])
        series.clip(0.1, 0.9)

        loss = mean_square(model(series[:, :8]), series[:, 8:])
        if loss == math.nan:
            break
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        history.append(loss)
    return [float(loss) for loss in history]


def main() -> None:
    model = Forecast()
    model.hidden.weight.stop_gradients = True
    losses = fit(model, steps=200)
    print(f"first {losses[0]:.4f}, last {losses[-1]:.4f}")
    paddle.save(model.state_dict(), "forecast.pdparams")


if __name__ == "__main__":
    main()
