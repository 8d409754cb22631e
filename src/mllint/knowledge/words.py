"""Words by which code says what it does in a training, where nothing more is known of the thing that has them."""

CLEARING = ("zero_grad", "clear_grad", "clear_gradients")
"""Methods that clear gradients, of an optimizer or a module."""
UPDATING = ("backward", "step", "minimize")
"""Methods of which a training consists."""
LOADING = ("load_state_dict", "set_state_dict", "set_dict", "load_dict")
"""Methods that load a state dict."""
MODES = ("train", "eval")
"""Methods that switch the mode of a module."""
GIVING_PARAMETERS = frozenset({"parameters", "named_parameters"})
"""Methods that give the parameters of a module."""
STATEFUL = frozenset({"optimizer", "scheduler", "scaler"})
"""What a training has beside its modules, by kind."""
CUTTING = frozenset({"item", "data", "detach", "tolist", "numpy"})
"""What takes a tensor off its graph: numbers, arrays, and the tensor alone."""
ADDING_MODULES = frozenset({"add_module", "register_module", "add_sublayer"})
"""Methods that register a module with another one under a name."""
ADDING_PARAMETERS = frozenset({"register_parameter", "add_parameter"})
"""Methods that register a parameter under a name."""
SETTING = frozenset({"setattr", "__setattr__"})
"""What sets an attribute whose name may be computed."""
STATISTICS = frozenset({"running_mean", "running_var", "num_batches_tracked", "_mean", "_variance"})
"""What layers count and do not train: the buffers of normalizations, in both frameworks."""
MOVING = frozenset({"to", "cuda", "cpu", "float", "double", "half"})
"""Methods that move or convert a tensor and leave it on its graph."""
GIVING_ITSELF = frozenset({
    "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "train", "eval", "requires_grad_", "apply", "to_empty",
    "xpu", "npu", "share_memory",
})  # fmt: skip
"""Methods of a module that give the module itself."""
READING = frozenset({
    "parameters", "named_parameters", "trainable_parameters", "modules", "named_modules", "children",
    "named_children", "buffers", "named_buffers", "state_dict", "sublayers", "named_sublayers", "keys", "values",
    "items", "get", "item", "size", "dim", "numel", "numpy", "tolist", "get_lr", "get_last_lr", "get_scale",
    "is_enabled",
})  # fmt: skip
"""Methods that change nothing, whatever they are called on."""
OF_MODULES = frozenset({
    "apply", "bfloat16", "buffers", "children", "cpu", "cuda", "double", "eval", "float", "forward", "half",
    "load_dict", "load_state_dict", "modules", "named_buffers", "named_children", "named_modules", "named_parameters",
    "named_sublayers", "parameters", "register_buffer", "requires_grad_", "set_dict", "set_state_dict", "share_memory",
    "state_dict", "sublayers", "to", "train", "training", "type", "zero_grad",
})  # fmt: skip
"""What every module has, in one framework or the other, whatever its class defines."""
OF_WRAPPERS = frozenset({"module", "_layers"})
"""Where the wrappers for several devices have the module itself."""
WRITING = frozenset({
    "add_", "sub_", "mul_", "div_", "copy_", "normal_", "uniform_", "fill_", "zero_", "addcmul_", "lerp_", "clamp_",
    "set_value",
})  # fmt: skip
"""Methods of a tensor that write into it."""
SAME_GRAPH = frozenset({
    "torch.mean", "torch.sum", "paddle.mean", "paddle.sum", "horovod.torch.allreduce", "horovod.torch.allgather",
})  # fmt: skip
"""Functions that give a number or tensor with the graph of their first argument."""
