"""Programs that work keep working after `--fix`: what they give stays the same but for the mistake."""

from typing import Any

import pytest

from mllint import fix_source

pytestmark = pytest.mark.evidence

START = """import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
"""
# Each leaves `result`, which is the same before and after.
UNCHANGED = {
    "a leaf that an optimizer holds": """
weight = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.5)
weight.mul(2)
weight.sum().backward()
optimizer.step()
result = weight.tolist()
""",
    "a graph that goes on behind no_grad": """
def train():
    model = nn.Linear(2, 2)
    output = model(torch.ones(1, 2))
    with torch.no_grad():
        output.clamp(0, 1)
    output.mean().backward()
    return model.weight.grad is not None

result = train()
""",
    "flags of what is computed": """
model = nn.Linear(2, 2)
output = model(torch.ones(1, 2))
output.require_grad = False
indices = torch.arange(3)
indices.require_grad = True
kept = torch.ones(2)
kept.require_grad = True
result = [output.requires_grad, indices.sum().item(), kept.numpy().sum()]
""",
    "a type that is asked for on the way": """
weight = torch.ones(2, 2)
x = torch.ones(1, 2) / 2
x.double().clamp(0, 1)
result = (x @ weight).tolist()
""",
    "a generator that is asked for the next": """
model = nn.Linear(2, 2)
parameters = model.parameters()
first = next(parameters)
optimizer = torch.optim.SGD(parameters, lr=0.1)
clip_grad_norm_(parameters, 1.0)
result = len(optimizer.param_groups[0]["params"])
""",
    "an evaluation that calls what wants gradients": """
def saliency(model, x):
    x = x.clone().requires_grad_()
    model(x).sum().backward()
    return x.grad

def report(model, test_loader):
    model.eval()
    for x in test_loader:
        print(model(x).argmax(1))
    return saliency(model, x).tolist()

result = report(nn.Linear(2, 2), torch.utils.data.DataLoader(torch.ones(4, 2), 2))
""",
    "a method that is also called": """
model = nn.Linear(2, 2)
loss = model(torch.ones(1, 2)).sum()
loss.backward
loss.backward()
result = model.weight.grad.tolist()
""",
    "forces of a part of the model": """
class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        x = x.clone().requires_grad_()
        return torch.autograd.grad(self.layer(x).pow(2).sum(), x)[0]

class Forces(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = Energy()

    def forward(self, x):
        return -self.energy(x)

def evaluate(loader):
    model = Forces()
    model.eval()
    found = []
    for x in loader:
        found.append(model(x).abs().mean().item())
    return found

result = evaluate(torch.utils.data.DataLoader(torch.ones(4, 2), 2))
""",
    "everything is frozen, and trained": """
model = nn.Linear(2, 2)
model.requires_grad = False
other = nn.Linear(2, 2)
for weight in other.parameters():
    weight.require_grad = False
optimizer = torch.optim.SGD([*model.parameters()], lr=0.1)
optimizer.add_param_group({"params": list(other.parameters())})
other(model(torch.ones(1, 2))).sum().backward()
result = model.weight.grad.tolist()
""",
    "a method that would raise under no_grad": """
def measure():
    model = nn.Linear(2, 2)
    with torch.no_grad():
        loss = model(torch.ones(1, 2)).sum()
        loss.backward
    return loss.item()

result = measure()
""",
    "a shape that the code below has run with": """
x = torch.arange(3.0)
x.unsqueeze(1)
result = (x - torch.arange(3.0)).abs().sum().item()
""",
    "a predicate that is called elsewhere": """
class Settings:
    def __init__(self, wanted):
        self.has_gpu = wanted and torch.cuda.is_available

result = Settings(True).has_gpu()
""",
}
CHANGED = {
    "a tensor that is moved nowhere else": (
        "x = torch.ones(3)\nx.double()\nresult = str(x.dtype)\n",
        "torch.float64",
    ),
    "a generator that is only gone through": (
        """
model = nn.Linear(2, 2)
parameters = model.parameters()
optimizer = torch.optim.SGD(parameters, lr=0.1)
result = sum(parameter.numel() for parameter in parameters)
""",
        6,
    ),
    "a frozen parameter": (
        """
model = nn.Linear(2, 2)
for parameter in model.parameters():
    parameter.require_grad = False
result = model.weight.requires_grad
""",
        False,
    ),
}


def result_of(source: bytes) -> Any:
    program: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, "program.py", "exec"), program)
    return program["result"]


@pytest.mark.parametrize("name", UNCHANGED)
def test_what_works_is_left_as_it_is(torch: Any, name: str) -> None:
    source = (START + UNCHANGED[name]).encode()
    assert result_of(fix_source(source, path="program.py").data) == result_of(source)


@pytest.mark.parametrize("name", CHANGED)
def test_what_was_meant_happens(torch: Any, name: str) -> None:
    program, meant = CHANGED[name]
    source = (START + program).encode()
    assert result_of(source) != meant
    assert result_of(fix_source(source, path="program.py").data) == meant
