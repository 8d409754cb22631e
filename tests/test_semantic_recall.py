"""Shapes of code from real bug fixes: small sources, and the lines a rule must, or must not, report in them."""

import textwrap

import pytest

from mllint import engine, registry


def rows(code: str, source: str) -> list[int]:
    """The rows on which the rule reports, in a file with these lines below its imports (the first is row 1)."""
    header = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
    text = header + textwrap.dedent(source).lstrip("\n")
    result = engine.lint(text.encode(), "example.py", registry.select([code], []))
    return [diagnostic.location.row - 3 for diagnostic in result.diagnostics]


# -- ML102: what is spelled as one loss, and read as before 0.4 ------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        "loss.data[0]",
        "out.g_loss.data[0]",
        "lossD.data.cpu().numpy()[0]",
        "losses['box'].data[0]",
        "self._losses[name].data[0]",
        "criterion(x, y).data[0]",
        "compute_loss(x, y).cpu().data[0]",
        "mask.sum().data[0]",
        "weight.norm(2).data[0]",
        "(x == y).long().sum().data[0]",
    ],
)
def test_unknown_loss_read_through_data_is_an_old_item(expression: str) -> None:
    assert rows(
        "ML102", f"def f(self, x, y, loss, losses, lossD, out, mask, weight, name):\n    print({expression})"
    ) == [2]


@pytest.mark.parametrize(
    "expression",
    [
        "loss[0]",
        "losses.data[0]",
        "losses[:2].data[0]",
        "loss.cpu().numpy()[0]",
        "loss.detach().cpu().numpy()[0]",
        "glossary.data[0]",
        "lossless.data[0]",
        "dataset.data[0]",
        "mask.sum(1).data[0]",
        "mask.max(1).data[0]",
        "critic(x).data[0]",
        "loss_names[0]",
    ],
)
def test_other_unknown_values_are_left_alone(expression: str) -> None:
    source = (
        f"def f(x, y, loss, losses, lossless, glossary, dataset, mask, critic, loss_names):\n    print({expression})"
    )
    assert rows("ML102", source) == []


def test_a_loss_known_to_have_a_dimension_is_left_alone() -> None:
    source = """
        def f(x, y):
            loss = F.cross_entropy(x, y, reduction="none")
            return loss.data[0]
        """
    assert rows("ML102", source) == []


def test_a_total_that_began_as_a_number_is_a_tensor_where_a_tensor_attribute_is_read() -> None:
    source = """
        def f(loader, model):
            criterion = nn.MSELoss()
            total = 0
            for x, y in loader:
                total += criterion(model(x), y)
            print(total[0])
            return total.data[0]
        """
    assert rows("ML102", source) == [7]


def test_division_in_place_keeps_the_shape() -> None:
    source = """
        def f(x, unknown):
            kl = torch.sum(x.log())
            kl /= unknown
            ratio = torch.sum(x.log()) / unknown
            return kl.data[0], ratio.data[0]
        """
    assert rows("ML102", source) == [5]


def test_one_element_is_seen_behind_several_steps() -> None:
    source = """
        def f(unknown):
            out = unknown()
            out.backward()
            return out.data.cpu()[0]
        """
    assert rows("ML102", source) == [4]


# -- ML201: totals and lists that keep the graph ----------------------------------------------------------------------


def in_training_loop(backward: str, added: str = "total += loss") -> str:
    return f"""
def train(model, loader, optimizer, scaler, engine, args):
    total = 0.0
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.mean(model(x, y)) + args.weight
        {backward}
        optimizer.step()
        {added}
    print(total, losses)
"""


@pytest.mark.parametrize(
    "backward",
    [
        "loss.backward()",
        "loss.backward(retain_graph=True)",
        "(loss / args.steps).backward()",
        "(0.5 * loss).backward()",
        "scaler.scale(loss).backward()",
        "scaler.scale(loss / 4).backward()",
        "engine.backward(loss)",
        "engine.backward(loss / args.steps)",
        "self.manual_backward(loss)",
        "loss.mean().backward()",
    ],
)
def test_backward_proves_that_the_loss_is_attached(backward: str) -> None:
    assert rows("ML201", in_training_loop(backward)) == [9]


@pytest.mark.parametrize("backward", ["loss.backward(gradient)", "loss.step()", "other.backward()", "loss.backward"])
def test_other_calls_prove_nothing(backward: str) -> None:
    assert rows("ML201", in_training_loop(backward)) == []
