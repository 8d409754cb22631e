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


def test_a_total_that_began_as_a_number_has_no_items_either_way() -> None:
    source = """
        def f(loader, model):
            criterion = nn.MSELoss()
            total = 0
            for x, y in loader:
                total += criterion(model(x), y)
            print(total[0])
            return total.data[0]
        """
    assert rows("ML102", source) == [6, 7]


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


@pytest.mark.parametrize("backward", ["loss.step()", "other.backward()", "loss.backward"])
def test_other_calls_prove_nothing(backward: str) -> None:
    assert rows("ML201", in_training_loop(backward)) == []


def test_parts_of_a_loss_are_done_with_like_the_whole() -> None:
    source = """
        def train(loader, compute, optimizer, args):
            policy_sum = value_sum = reward_sum = 0.0
            for batch in loader:
                policy_loss, value_loss, reward = compute(batch)
                loss = policy_loss + args.weight * value_loss
                loss.backward()
                optimizer.step()
                policy_sum += policy_loss
                value_sum += value_loss * args.size
                reward_sum += reward
            print(policy_sum, value_sum, reward_sum)
        """
    assert rows("ML201", source) == [8, 9]


def test_a_number_taken_from_the_loss_holds_no_graph() -> None:
    source = """
        def train(loader, compute):
            total = 0.0
            for batch in loader:
                loss = compute(batch)
                loss.backward()
                loss = loss.item()
                total += loss
            print(total)
        """
    assert rows("ML201", source) == []


@pytest.mark.parametrize("target", ["history['loss']", "history[name]", "self.history['train']['loss']"])
def test_items_of_a_dict_are_collections_too(target: str) -> None:
    source = f"""
def train(self, loader, model, optimizer, history, name):
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        {target}.append(loss)
        {target} += loss
        {target} += [loss]
"""
    assert rows("ML201", source) == [5, 6, 7]


def test_the_total_may_be_bound_to_a_name_that_is_spent_elsewhere() -> None:
    source = """
        def train(loader, model, epochs):
            for epoch in range(epochs):
                total = 0.0
                for x, y in loader:
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                    total += loss
                loss = total / len(loader)
                print(loss)
        """
    assert rows("ML201", source) == [7]


def test_a_total_that_is_spent_needs_its_graph() -> None:
    source = """
        def meta(tasks, model, optimizer):
            total = 0.0
            kept = []
            for x, y in tasks:
                inner = F.mse_loss(model(x), y)
                inner.backward(retain_graph=True)
                total += inner
                kept.append(inner)
            loss = total / len(tasks)
            loss.backward()
            for part in kept:
                part.backward()
        """
    assert rows("ML201", source) == []


def test_attributes_collected_in_one_method_and_spent_in_another_need_their_graph() -> None:
    source = """
        class Agent:
            def act(self, state):
                probabilities = self.policy(state)
                self.value_loss.append(F.mse_loss(probabilities, state))
                self.seen.append(F.mse_loss(probabilities, state))

            def run(self, model, loader):
                for x in loader:
                    loss = F.mse_loss(model(x), x)
                    loss.backward()
                    self.kept.append(loss)
                    self.same.append(loss)
                    other = F.l1_loss(model(x), x)
                    other.backward()
                    self.reported.append(other)

            def finish(self):
                total = torch.stack(self.kept).sum()
                total.backward()
        """
    assert rows("ML201", source) == [15]


def test_an_attribute_that_a_training_step_adds_to() -> None:
    source = """
        class Trainer:
            def step(self, x, y):
                self.parts = 0.0
                loss = F.mse_loss(self.model(x), y)
                self.parts += loss
                loss.backward()
                self.total += loss
                self.other += F.mse_loss(self.model(x), y)
        """
    assert rows("ML201", source) == [7]


def test_validation_without_no_grad() -> None:
    source = """
        def validate(model, loader):
            model.eval()
            total = 0.0
            kept = []
            for x, y in loader:
                out = model(x)
                total += F.mse_loss(out, y)
                kept.append(out)
            return total / len(loader), kept

        def heads(model, loader):
            total = 0.0
            for x, y in loader:
                total += F.mse_loss(model(x), y)
            return total
        """
    assert rows("ML201", source) == [7]


def test_a_total_that_is_only_printed() -> None:
    source = """
        def report(n, data):
            layer = nn.Linear(3, 1)
            total = 0.0
            for i in range(0, n, 10):
                total += F.mse_loss(layer(data[i]), data[i])
            print("loss", total.item() / n)

        def loss(n, data):
            layer = nn.Linear(3, 1)
            total = 0.0
            for i in range(0, n, 10):
                total += F.mse_loss(layer(data[i]), data[i])
            print("loss", total.item() / n)
            return total
        """
    assert rows("ML201", source) == [5]


def test_a_name_made_anew_in_every_iteration_is_no_total() -> None:
    source = """
        def meta(tasks, model, steps):
            loss = 0.0
            for x, y in tasks:
                for step in range(steps):
                    loss = F.mse_loss(model(x), y)
                    loss.backward()
                loss += F.mse_loss(model(y), x)
            print(loss.item())
        """
    assert rows("ML201", source) == []


def test_what_becomes_of_the_loss_after_backward_and_of_the_number_read_from_the_total() -> None:
    source = """
        def train(loader, model):
            total = torch.zeros(1)
            for x, y in loader:
                loss = model(x, y)
                loss.backward()
                loss *= x.size(0)
                total += loss
            return total.item() / len(loader)
        """
    assert rows("ML201", source) == [7]
