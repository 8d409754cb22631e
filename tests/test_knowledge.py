"""The tables of facts: well formed, and answering right what is known to be so."""

import subprocess
import sys
from typing import get_args

import pytest

from mllint.knowledge import facts, lookup, neighbour_tables, torchvision_facts
from mllint.knowledge.rows import FRAMEWORKS, read_class, read_function, read_layer_state, sections, table
from mllint.knowledge.schema import Class, Function, Kind, LayerState, Returns
from mllint.knowledge.wrappers import WRAPPERS

every_framework = pytest.mark.parametrize("framework", FRAMEWORKS)


@every_framework
@pytest.mark.parametrize("name", ["TENSOR_METHODS", "FUNCTIONS", "CLASS_METHODS"])
def test_functions_are_well_formed(framework: str, name: str) -> None:
    rows = table(framework, name)
    assert len(rows) > 80
    for key, rest in rows.items():
        function = read_function(rest)
        assert function.returns in get_args(Returns), key
        names = function.parameters.split()
        assert all(word.lstrip("*").isidentifier() or word == "*" for word in names), key
        assert len(set(names)) == len(names), key
        assert names.count("*") <= 1, key


@every_framework
def test_classes_are_well_formed(framework: str) -> None:
    rows = table(framework, "CLASSES")
    assert len(rows) > 200
    for key, rest in rows.items():
        known = read_class(rest)
        assert known.kind in get_args(Kind), key
        assert known.called in get_args(Returns), key


@every_framework
def test_attributes_are_well_formed(framework: str) -> None:
    rows = table(framework, "TENSOR_ATTRIBUTES")
    assert set(rows.values()) <= set(get_args(Returns))
    assert not set(rows) & set(table(framework, "TENSOR_METHODS"))


@every_framework
def test_layer_states_are_well_formed(framework: str) -> None:
    rows = table(framework, "LAYER_STATES")
    assert len(rows) > 100
    for key, rest in rows.items():
        state = read_layer_state(rest)
        parameters = lookup.parameters(key)
        assert {name for name, _, _ in state.switches} <= set(parameters), key
        assert set(state.depends) <= set(parameters), key
        assert not set(state.depends) & {name for name, _, _ in state.switches}, key
        assert not (state.sized and state.keys), key


@every_framework
def test_rows_are_sorted_and_unique(framework: str) -> None:
    found = sections(framework)
    assert len(found) == 9
    for name, text in found.items():
        rows = text.split("\n")
        assert rows == sorted(rows), name
        assert len({row.partition(" ")[0] for row in rows}) == len(rows), name


@every_framework
def test_other_spellings_lead_to_tabled_names(framework: str) -> None:
    functions, classes = table(framework, "FUNCTIONS"), table(framework, "CLASSES")
    for other, name in table(framework, "CANONICAL").items():
        assert other.startswith(f"{framework}.")
        if other == name:
            continue  # a name that a module has for something else than the `.*` row of the module says
        if other.endswith(".*"):
            assert any(known.startswith(name[:-1]) for known in (*functions, *classes)), other
        else:
            assert lookup.canonical(other) == name
            assert lookup.canonical(name) == name


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("torch.nn.modules.loss.CrossEntropyLoss", "torch.nn.CrossEntropyLoss"),
        ("torch.nn.modules.module.Module", "torch.nn.Module"),
        ("torch.nn.modules.Linear", "torch.nn.Linear"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.utils.data.distributed.DistributedSampler", "torch.utils.data.DistributedSampler"),
        ("torch.nn.parallel.DataParallel", "torch.nn.DataParallel"),
        ("torch.nn.parallel.distributed.DistributedDataParallel", "torch.nn.parallel.DistributedDataParallel"),
        ("torch.optim.adam.Adam", "torch.optim.Adam"),
        ("torch.autograd.no_grad", "torch.no_grad"),
        ("torch.autograd.grad_mode.no_grad", "torch.no_grad"),
        ("torch.nn.utils.clip_grad.clip_grad_norm_", "torch.nn.utils.clip_grad_norm_"),
        ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
        ("torch.functional.einsum", "torch.einsum"),
        ("torch.conv2d", "torch.nn.functional.conv2d"),
        ("torch.autocast", "torch.amp.autocast"),
        ("paddle.nn.layer.common.Linear", "paddle.nn.Linear"),
        ("paddle.nn.layer.layers.Layer", "paddle.nn.Layer"),
        ("paddle.nn.Conv2d", "paddle.nn.Conv2D"),
        ("paddle.tensor.concat", "paddle.concat"),
        ("paddle.tensor.math.add", "paddle.add"),
        ("paddle.nn.functional.loss.cross_entropy", "paddle.nn.functional.cross_entropy"),
        ("paddle.optimizer.adam.Adam", "paddle.optimizer.Adam"),
        ("paddle.base.dygraph.no_grad_", "paddle.no_grad"),
        ("torchvision.models.resnet.resnet18", "torchvision.models.resnet18"),
        # Names of other things stay what they are.
        ("torch.nn.modules.loss.torch", "torch.nn.modules.loss.torch"),
        ("torch.autograd.Variable", "torch.autograd.Variable"),
        ("numpy.array", "numpy.array"),
        ("torch", "torch"),
        ("torchvision.models.resnet", "torchvision.models.resnet"),
        ("torch.torch", "torch"),
        ("torch.torch.nn.modules.loss.CrossEntropyLoss", "torch.nn.CrossEntropyLoss"),
        ("paddle.paddle.no_grad", "paddle.no_grad"),
    ],
)
def test_canonical(other: str, name: str) -> None:
    assert lookup.canonical(other) == name


@pytest.mark.parametrize(
    ("name", "returns"),
    [
        ("torch.zeros", "tensor"),
        ("torch.cat", "tensor"),
        ("torch.where", "tensor"),
        ("torch.max", "scalar"),
        ("torch.norm", "scalar"),
        ("torch.linalg.det", "tensor"),
        ("torch.topk", "tensors"),
        ("torch.split", "tensors"),
        ("torch.is_tensor", "number"),
        ("torch.nn.functional.cross_entropy", "scalar"),
        ("torch.nn.functional.softmax", "tensor"),
        ("torch.nn.functional.relu_", "self"),
        ("torch.nn.init.xavier_uniform_", "self"),
        ("torch.nn.init.xavier_uniform", "self"),
        ("torch.nn.utils.clip_grad_norm_", "scalar"),
        ("torch.nn.utils.clip_grad_value_", "none"),
        ("torch.nn.utils.weight_norm", "module"),
        ("torch.autograd.grad", "tensors"),
        ("torch.cuda.is_available", "number"),
        ("torch.load", "other"),
        ("paddle.concat", "tensor"),
        ("paddle.to_tensor", "tensor"),
        ("paddle.where", "tensor"),
        ("paddle.mean", "scalar"),
        ("paddle.nn.functional.cross_entropy", "scalar"),
        ("paddle.nn.functional.relu_", "self"),
        ("numpy.zeros", "array"),
        ("timm.create_model", "module"),
        ("transformers.AutoModelForCausalLM.from_pretrained", "module"),
        ("transformers.models.bert.BertModel.from_pretrained", "module"),
    ],
)
def test_function_returns(name: str, returns: Returns) -> None:
    known = lookup.function(name)
    assert known is not None
    assert known.returns == returns


@pytest.mark.parametrize(
    "name",
    [
        "torch.nn.Linear",
        "torch.nosuch",
        "mymodule.zeros",
        "transformers.AutoTokenizer.from_pretrained",
        "transformers.TFBertModel.from_pretrained",
        "transformers.FlaxBertForMaskedLM.from_pretrained",
        "torch.Tensor",
        "",
    ],
)
def test_function_of_another_name_is_unknown(name: str) -> None:
    assert lookup.function(name) is None


@pytest.mark.parametrize(
    ("framework", "name", "expected"),
    [
        ("torch", "add", Function("tensor", "other * alpha")),
        ("torch", "add_", Function("self", "other * alpha")),
        ("torch", "sum", Function("scalar", "dim keepdim dtype")),
        ("torch", "max", Function("scalar", "dim keepdim")),
        ("torch", "log_softmax", Function("tensor", "dim dtype")),
        ("torch", "item", Function("number")),
        ("torch", "backward", Function("none", "gradient retain_graph create_graph inputs")),
        ("torch", "detach_", Function("self")),
        ("torch", "requires_grad_", Function("self", "requires_grad")),
        ("torch", "cuda", Function("tensor", "device non_blocking memory_format")),
        ("torch", "numpy", Function("array", "* force")),
        ("torch", "dim", Function("number")),
        ("paddle", "unsqueeze_", Function("self", "axis name")),
        ("paddle", "mean", Function("scalar", "axis keepdim name")),
        ("paddle", "numpy", Function("array")),
        ("paddle", "backward", Function("none", "grad_tensor retain_graph * dump_backward_graph_path")),
    ],
)
def test_tensor_method(framework: str, name: str, expected: Function) -> None:
    known = lookup.tensor_method(framework, name)
    assert known is not None
    assert known.returns == expected.returns
    assert known.parameters.split()[: len(expected.parameters.split())] == expected.parameters.split()


@every_framework
def test_every_in_place_method_gives_its_receiver(framework: str) -> None:
    known = {name: lookup.tensor_method(framework, name) for name in table(framework, "TENSOR_METHODS")}
    odd = {name for name, fact in known.items() if name.endswith("_") and fact is not None and fact.returns != "self"}
    # `reconstruct_from_` gives nothing; how to call the others is written nowhere.
    assert odd <= {"reconstruct_from_", "copy_", "map2_", "resize_as_sparse_"}


@every_framework
def test_a_tensor_gives_numbers_only_where_it_must(framework: str) -> None:
    for name in ("clone", "detach", "to", "view" if framework == "torch" else "reshape", "transpose", "float"):
        known = lookup.tensor_method(framework, name)
        assert known is not None, name
        assert known.returns == "tensor", name


@pytest.mark.parametrize(
    ("framework", "name", "returns"),
    [
        ("torch", "data", "tensor"),
        ("torch", "grad", "tensor"),
        ("torch", "shape", "size"),
        ("torch", "device", "device"),
        ("torch", "dtype", "dtype"),
        ("torch", "is_cuda", "number"),
        ("paddle", "grad", "tensor"),
        ("paddle", "shape", "size"),
        ("paddle", "place", "device"),
        ("paddle", "stop_gradient", "number"),
        ("paddle", "add", None),
        ("numpy", "shape", None),
    ],
)
def test_tensor_attribute(framework: str, name: str, returns: Returns | None) -> None:
    assert lookup.tensor_attribute(framework, name) == returns


@pytest.mark.parametrize(
    ("name", "kind", "called"),
    [
        ("torch.nn.Linear", "layer", "tensor"),
        ("torch.nn.CrossEntropyLoss", "loss", "scalar"),
        ("torch.nn.LSTM", "rnn", "tensors"),
        ("torch.nn.GRUCell", "rnn", "tensor"),
        ("torch.nn.Module", "container", "other"),
        ("torch.nn.modules.conv._ConvNd", "layer", "other"),
        ("torch.optim.SGD", "optimizer", "other"),
        ("torch.optim.lr_scheduler.StepLR", "scheduler", "other"),
        ("torch.optim.lr_scheduler.ReduceLROnPlateau", "scheduler", "other"),
        ("torch.optim.lr_scheduler._LRScheduler", "scheduler", "other"),
        ("torch.utils.data.DataLoader", "loader", "other"),
        ("torch.utils.data.Dataset", "dataset", "other"),
        ("torch.utils.data.distributed.DistributedSampler", "sampler", "other"),
        ("torch.cuda.amp.GradScaler", "scaler", "other"),
        ("torch.nn.Parameter", "parameter", "other"),
        ("torch.FloatTensor", "tensor", "other"),
        ("torch.device", "device", "other"),
        ("torch.Generator", "generator", "other"),
        ("paddle.nn.Linear", "layer", "tensor"),
        ("paddle.nn.MSELoss", "loss", "scalar"),
        ("paddle.nn.Layer", "container", "other"),
        ("paddle.optimizer.Adam", "optimizer", "other"),
        ("paddle.optimizer.lr.StepDecay", "scheduler", "other"),
        ("paddle.io.DataLoader", "loader", "other"),
        ("paddle.io.DistributedBatchSampler", "sampler", "other"),
        ("paddle.amp.GradScaler", "scaler", "other"),
        ("paddle.fluid.dygraph.Linear", "layer", "tensor"),
        ("torchvision.models.resnet50", "layer", "tensor"),
        ("torchvision.models.inception_v3", "layer", "other"),
        ("torchvision.datasets.MNIST", "dataset", "other"),
        ("pytorch_lightning.LightningModule", "container", "other"),
    ],
)
def test_class(name: str, kind: Kind, called: Returns) -> None:
    known = lookup.class_(name)
    assert known is not None
    assert (known.kind, known.called) == (kind, called)


def test_parameters() -> None:
    assert lookup.parameters("torch.nn.Linear") == ("in_features", "out_features", "bias", "device", "dtype")
    assert lookup.parameters("torch.nn.LSTM")[:4] == ("input_size", "hidden_size", "num_layers", "bias")
    assert lookup.parameters("paddle.optimizer.Adam")[:5] == (
        "learning_rate",
        "beta1",
        "beta2",
        "epsilon",
        "parameters",
    )
    assert lookup.parameters("torch.optim.nosuch") == ()


@pytest.mark.parametrize(
    ("class_name", "name", "returns"),
    [
        ("torch.nn.Module", "eval", "self"),
        ("torch.nn.Module", "cuda", "self"),
        ("torch.nn.Module", "parameters", "generator"),
        ("torch.nn.Module", "state_dict", "state_dict"),
        ("torch.nn.Module", "zero_grad", "none"),
        ("torch.nn.modules.module.Module", "train", "self"),
        ("torch.optim.Optimizer", "zero_grad", "none"),
        ("torch.optim.Optimizer", "state_dict", "state_dict"),
        ("paddle.nn.Layer", "parameters", "tensors"),
        ("paddle.nn.Layer", "eval", "other"),
        ("paddle.nn.Layer", "to", "self"),
        ("paddle.optimizer.Optimizer", "get_lr", "number"),
    ],
)
def test_method(class_name: str, name: str, returns: Returns) -> None:
    known = lookup.method(class_name, name)
    assert known is not None
    assert known.returns == returns


def test_method_of_another_class_is_unknown() -> None:
    assert lookup.method("torch.nn.Module", "nosuch") is None
    assert lookup.method("builtins.str", "join") is None


def test_wrapper() -> None:
    assert lookup.wrapper("torch.nn.parallel.DataParallel") == WRAPPERS["torch.nn.DataParallel"]
    compiled = lookup.wrapper("torch.compile")
    assert compiled is not None
    assert compiled.prefix == "_orig_mod."
    assert lookup.wrapper("torch.nn.Sequential") is None


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("torch.no_grad", True),
        ("torch.autograd.no_grad", True),
        ("torch.inference_mode", True),
        ("paddle.no_grad", True),
        ("paddle.base.dygraph.no_grad", True),
        ("paddle.fluid.dygraph.no_grad", True),
        ("torch.enable_grad", False),
        ("torch.set_grad_enabled", False),
        ("contextlib.suppress", False),
    ],
)
def test_is_grad_off_context(name: str, off: bool) -> None:
    assert lookup.is_grad_off_context(name) is off


def test_set_grad_enabled_switches() -> None:
    assert lookup.switches_grad("torch.set_grad_enabled")
    assert lookup.switches_grad("torch.autograd.set_grad_enabled")
    assert lookup.switches_grad("paddle.set_grad_enabled")
    assert not lookup.switches_grad("torch.no_grad")


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("torch.nn.Linear", "torch"),
        ("torch", "torch"),
        ("torchvision.models.resnet18", "torch"),
        ("paddle.nn.Linear", "paddle"),
        ("ppdet.core", "paddle"),
        ("numpy.array", "numpy"),
        ("torchlike.thing", None),
        ("", None),
    ],
)
def test_framework_of(name: str, framework: str | None) -> None:
    assert lookup.framework_of(name) == framework


def test_tensor_only_methods_are_on_nothing_else() -> None:
    only = lookup.tensor_only_methods()
    assert {"masked_fill", "unsqueeze", "index_select", "type_as", "view_as", "permute"} <= only
    for name in only:
        assert not name.endswith("_")
        for other in (str, bytes, list, dict, set, tuple, int, float):
            assert not hasattr(other, name)
    # arrays, modules, distributions, packed sequences, images, data frames, loggers
    assert not only & {"reshape", "sum", "mean", "to", "cuda", "float", "expand", "sort", "clip", "flatten", "squeeze"}
    assert not only & {"apply", "type", "size", "resize", "rotate", "crop", "split", "transpose", "repeat", "log"}
    assert not only & set(neighbour_tables.METHODS.split())


@pytest.mark.parametrize(
    ("name", "arguments", "keys"),
    [
        ("torch.nn.Linear", {}, "weight bias"),
        ("torch.nn.Linear", {"in_features": 3, "out_features": ..., "bias": True}, "weight bias"),
        ("torch.nn.Linear", {"bias": False}, "weight"),
        ("torch.nn.modules.linear.Linear", {"bias": False}, "weight"),
        ("torch.nn.ReLU", {}, ""),
        ("torch.nn.BatchNorm2d", {}, "weight bias running_mean running_var num_batches_tracked"),
        ("torch.nn.BatchNorm2d", {"affine": False}, "running_mean running_var num_batches_tracked"),
        ("torch.nn.BatchNorm2d", {"affine": False, "track_running_stats": False}, ""),
        ("torch.nn.InstanceNorm2d", {}, ""),
        ("torch.nn.InstanceNorm2d", {"affine": True}, "weight bias"),
        ("torch.nn.LayerNorm", {"elementwise_affine": False}, ""),
        ("torch.nn.MultiheadAttention", {"bias": False}, "in_proj_weight out_proj.weight"),
        ("torch.nn.LSTM", {}, "weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0"),
        ("torch.nn.GRU", {"bias": False}, "weight_ih_l0 weight_hh_l0"),
        ("torch.nn.GRU", {"num_layers": 2, "bias": False}, "weight_ih_l0 weight_hh_l0 weight_ih_l1 weight_hh_l1"),
        (
            "torch.nn.RNN",
            {"bidirectional": True, "bias": False},
            "weight_ih_l0 weight_hh_l0 weight_ih_l0_reverse weight_hh_l0_reverse",
        ),
        ("paddle.nn.Linear", {"bias_attr": False}, "weight"),
        ("paddle.nn.Linear", {"bias_attr": None}, "weight bias"),
        ("paddle.nn.BatchNorm2D", {}, "weight bias _mean _variance"),
        ("paddle.nn.BatchNorm2D", {"weight_attr": False, "bias_attr": False}, "_mean _variance"),
        ("paddle.nn.InstanceNorm2D", {}, "scale bias"),
        ("paddle.nn.InstanceNorm2D", {"weight_attr": False, "bias_attr": False}, ""),
    ],
)
def test_layer_keys(name: str, arguments: dict[str, object], keys: str) -> None:
    assert lookup.layer_keys(name, arguments) == tuple(keys.split())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("torch.nn.Linear", {"bias": ...}),
        ("torch.nn.Sequential", {}),
        ("torch.nn.TransformerEncoder", {}),
        ("torch.nn.MultiheadAttention", {"kdim": 3}),
        ("torch.nn.LSTM", {"num_layers": ...}),
        ("torch.nn.LSTM", {"num_layers": 2, "bidirectional": ...}),
        ("paddle.nn.InstanceNorm2D", {"weight_attr": ..., "bias_attr": False}),
        ("paddle.nn.LSTM", {"direction": "sideways"}),
        ("torch.nn.DataParallel", {}),
        ("mymodule.Linear", {}),
    ],
)
def test_layer_keys_are_unknown(name: str, arguments: dict[str, object]) -> None:
    assert lookup.layer_keys(name, arguments) is None


@pytest.mark.parametrize(
    ("rest", "state"),
    [
        ("| keys weight bias | bias=False weight", LayerState(("weight", "bias"), (("bias", False, ("weight",)),))),
        ("| keys", LayerState(())),
        ("| keys | affine=True weight", LayerState((), (("affine", True, ("weight",)),))),
        ("| keys weight | depends kdim vdim", LayerState(("weight",), (), ("kdim", "vdim"))),
        ("| sized", LayerState((), sized=True)),
    ],
)
def test_layer_state_row(rest: str, state: LayerState) -> None:
    assert read_layer_state(rest) == state


def test_written_facts_use_the_words_of_the_schema() -> None:
    functions = [*facts.FUNCTIONS.values(), *torchvision_facts.FUNCTIONS.values(), *facts.TENSOR_METHODS.values()]
    classes: list[Class] = [*facts.CLASSES.values(), *torchvision_facts.CLASSES.values()]
    assert {it.returns for it in functions} | set(facts.RETURNS.values()) <= set(get_args(Returns))
    assert {it.kind for it in classes} <= set(get_args(Kind))


def test_written_facts_are_about_tabled_names() -> None:
    """What corrects a row of the tables must name one, or it corrects nothing."""
    for name in facts.RETURNS:
        framework = name.partition(".")[0]
        assert name in table(framework, "FUNCTIONS") or name in table(framework, "CLASS_METHODS"), name
    for framework, name in facts.TENSOR_METHODS:
        assert name in table(framework, "TENSOR_METHODS"), name
    for framework, name in facts.TENSOR_ATTRIBUTES:
        assert name in table(framework, "TENSOR_ATTRIBUTES"), name


def test_asking_loads_no_more_than_is_asked_for() -> None:
    code = (
        "import sys; from mllint.knowledge import lookup, rows; lookup.class_('paddle.nn.Linear');"
        "print(rows.sections.cache_info().misses, *{'libcst', 'msgspec', 'torch', 'paddle'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


def test_unknown_table_raises() -> None:
    with pytest.raises(KeyError):
        table("jax", "FUNCTIONS")
    with pytest.raises(KeyError):
        table("torch", "NOSUCH")
