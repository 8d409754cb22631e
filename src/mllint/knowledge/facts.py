"""Facts a person wrote, each with its source: the neighbours of torch and paddle, old names.

"Run" means: seen by running torch 2.13.0 or paddlepaddle 3.3.1 and 2.6.2; ``tests/evidence/test_knowledge.py`` runs
it again.
"""

from collections.abc import Mapping
from typing import Literal

from mllint.knowledge.schema import Class, Function, Given, Returns


def _words(text: str) -> list[str]:
    return text.split()


LOOK_ALIKES = frozenset({"chainer", "dynet", "jittor", "megengine", "mindspore", "mxnet", "oneflow"})
"""Frameworks whose networks and optimizers have methods of the same names, by their documentation."""

LIGHTNING_ENTRIES = frozenset(
    _words("callbacks epoch global_step hyper_parameters loops lr_schedulers optimizer_states state_dict")
)
"""What the files of Lightning's trainer hold: ``dump_checkpoint`` in ``checkpoint_connector.py``, read in 2.6.6."""

PACKAGES: Mapping[str, Literal["torch", "paddle"]] = {
    # Packages built on a framework, by the requirements they publish on PyPI.
    "accelerate": "torch",
    "apex": "torch",
    "efficientnet_pytorch": "torch",
    "fairseq": "torch",
    "ignite": "torch",
    "kornia": "torch",
    "lightning": "torch",
    "monai": "torch",
    "pretrainedmodels": "torch",
    "pytorch_lightning": "torch",
    "segmentation_models_pytorch": "torch",
    "timm": "torch",
    "torch_geometric": "torch",
    "torchaudio": "torch",
    "torchmetrics": "torch",
    "torchtext": "torch",
    "torchvision": "torch",
    "transformers": "torch",
    "paddlenlp": "paddle",
    "paddleseg": "paddle",
    "paddlex": "paddle",
    "parl": "paddle",
    "pgl": "paddle",
    "ppdet": "paddle",
}

PARTS_OF_PACKAGES: Mapping[str, Literal["torch", "paddle"]] = {
    # https://einops.rocks/api/einops.layers/: modules of each framework in a module of its own.
    "einops.layers.torch": "torch",
    "einops.layers.paddle": "paddle",
    "horovod.torch": "torch",
}
"""Modules that are built on a framework, of packages that are not."""

APPLYING: Mapping[str, Given] = {
    # The predictor is called for each window of the input, in the mode in which it is (run with 1.6.1).
    "monai.inferers.sliding_window_inference": Given(3, "predictor"),
    "monai.inferers.utils.sliding_window_inference": Given(3, "predictor"),
    "torch.nn.parallel.data_parallel": Given(0, "module"),
}
"""Functions that call a module which they are given, and change nothing about it."""

GRAD_OFF = frozenset({
    # Run: requires_grad of a product computed inside is False (torch), stop_gradient True (paddle).
    "torch.no_grad",
    "torch.inference_mode",
    "paddle.no_grad",
    "paddle.base.dygraph.no_grad",
    "paddle.base.dygraph.base.no_grad",
    "paddle.framework.base.no_grad",
    # paddle 1.x to 2.5: paddle.fluid was renamed paddle.base in 2.6.
    "paddle.fluid.dygraph.no_grad",
    "paddle.fluid.dygraph.base.no_grad",
    "paddle.fluid.dygraph.no_grad_",
})  # fmt: skip

PUBLIC_SUBCLASSES: Mapping[str, str] = {
    "torch.nn.modules.batchnorm._BatchNorm": "torch.nn.BatchNorm2d",
    "torch.nn.modules.batchnorm._NormBase": "torch.nn.BatchNorm2d",
    "torch.nn.modules.conv._ConvNd": "torch.nn.Conv2d",
    "torch.nn.modules.conv._ConvTransposeNd": "torch.nn.ConvTranspose2d",
    "torch.nn.modules.dropout._DropoutNd": "torch.nn.Dropout",
    "torch.nn.modules.instancenorm._InstanceNorm": "torch.nn.InstanceNorm2d",
    "torch.nn.modules.loss._Loss": "torch.nn.MSELoss",
    "torch.nn.modules.loss._WeightedLoss": "torch.nn.CrossEntropyLoss",
}
"""Private bases, each with a class that registers what its base does and nothing else (run)."""

GRAD_SWITCHES = frozenset({"torch.set_grad_enabled", "paddle.set_grad_enabled"})
"""Their first argument says whether gradients are recorded (run)."""

MOVES = frozenset({
    # Run: PackedSequence has them, and so have the batches that libraries build of several tensors.
    "to", "cuda", "cpu", "float", "double", "half", "bfloat16", "type", "pin_memory", "detach", "clone", "contiguous",
    "long", "int", "bool", "astype",
})  # fmt: skip
"""Methods that give the same numbers elsewhere or otherwise."""

TENSOR_METHODS: Mapping[tuple[str, str], Function] = {
    # With a type it converts, without it tells (run).
    ("paddle", "where"): Function("tensor", "x y name * out"),
    ("torch", "type"): Function("tensor", "dtype non_blocking **kwargs"),
}

TENSOR_ATTRIBUTES: Mapping[tuple[str, str], Returns] = {
    # "None by default and becomes a Tensor the first time a call to backward() computes gradients":
    # https://docs.pytorch.org/docs/stable/generated/torch.Tensor.grad.html; paddle the same (run).
    ("torch", "grad"): "tensor",
    ("paddle", "grad"): "tensor",
    # A list of ints (run).
    ("paddle", "shape"): "size",
    ("paddle", "strides"): "size",
}

PADDLE_BUILDERS = frozenset(
    f"paddle.vision.models.{name}"
    for name in _words("""
        alexnet densenet121 densenet161 densenet169 densenet201 densenet264 inception_v3 mobilenet_v1 mobilenet_v2
        mobilenet_v3_large mobilenet_v3_small resnet101 resnet152 resnet18 resnet34 resnet50 resnext101_32x4d
        resnext101_64x4d resnext152_32x4d resnext152_64x4d resnext50_32x4d resnext50_64x4d shufflenet_v2_swish
        shufflenet_v2_x0_25 shufflenet_v2_x0_33 shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5
        shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 vgg11 vgg13 vgg16 vgg19 wide_resnet101_2 wide_resnet50_2
    """)
)
"""Functions that build a model (run, 3.3: each has batch normalization or dropout, and gives a tensor)."""

CLASSES: Mapping[str, Class] = {
    # Bases of other packages that derive from torch.nn.Module.
    # https://lightning.ai/docs/pytorch/stable/common/lightning_module.html
    "pytorch_lightning.LightningModule": Class("container"),
    "pytorch_lightning.core.LightningModule": Class("container"),
    "pytorch_lightning.core.lightning.LightningModule": Class("container"),
    "lightning.LightningModule": Class("container"),
    "lightning.pytorch.LightningModule": Class("container"),
    "lightning.fabric.wrappers._FabricModule": Class("container"),
    # https://huggingface.co/docs/transformers/main_classes/model
    "transformers.PreTrainedModel": Class("container", "config *inputs **kwargs"),
    "transformers.modeling_utils.PreTrainedModel": Class("container", "config *inputs **kwargs"),
    # https://paddlenlp.readthedocs.io/en/latest/source/paddlenlp.transformers.model_utils.html
    "paddlenlp.transformers.PretrainedModel": Class("container"),
    # https://pytorch-geometric.readthedocs.io/en/stable/generated/torch_geometric.nn.conv.MessagePassing.html
    "torch_geometric.nn.MessagePassing": Class("container"),
    "torch_geometric.nn.conv.MessagePassing": Class("container"),
    # https://mmengine.readthedocs.io/en/latest/api/model.html, https://mmcv.readthedocs.io/en/v1.7.0/api.html#runner
    **{
        f"{package}.BaseModule": Class("container", "init_cfg")
        for package in ("mmcv.runner", "mmcv.runner.base_module", "mmengine.model", "mmengine.model.base_module")
    },
    "mmengine.model.BaseModel": Class("container", "data_preprocessor init_cfg"),
    # https://fairseq.readthedocs.io/en/latest/models.html
    **{
        f"fairseq.models.{name}": Class("container")
        for name in _words("""
            BaseFairseqModel FairseqDecoder FairseqEncoder FairseqEncoderDecoderModel FairseqEncoderModel
            FairseqIncrementalDecoder FairseqLanguageModel
        """)
    },
    **dict.fromkeys(PADDLE_BUILDERS, Class("layer", "pretrained", "tensor")),
    "paddle.vision.models.googlenet": Class("layer", "pretrained"),  # gives a tuple
    # paddle 1.x, https://www.paddlepaddle.org.cn/documentation/docs/en/1.8/api/dygraph.html
    "paddle.fluid.Layer": Class("container", "name_scope dtype"),
    "paddle.fluid.dygraph.Layer": Class("container", "name_scope dtype"),
    "paddle.fluid.dygraph.layers.Layer": Class("container", "name_scope dtype"),
    "paddle.fluid.dygraph.Sequential": Class("container", "*layers"),
    "paddle.fluid.dygraph.LayerList": Class("container", "sublayers"),
    "paddle.fluid.dygraph.ParameterList": Class("container", "parameters"),
    "paddle.fluid.dygraph.Linear": Class("layer", "input_dim output_dim param_attr bias_attr act dtype", "tensor"),
    "paddle.fluid.dygraph.Conv2D": Class(
        "layer",
        "num_channels num_filters filter_size stride padding dilation groups param_attr bias_attr use_cudnn act dtype",
        "tensor",
    ),
    "paddle.fluid.dygraph.Conv2DTranspose": Class(
        "layer",
        "num_channels num_filters filter_size output_size padding stride dilation groups param_attr bias_attr",
        "tensor",
    ),
    "paddle.fluid.dygraph.Pool2D": Class(
        "layer", "pool_size pool_type pool_stride pool_padding global_pooling use_cudnn ceil_mode exclusive", "tensor"
    ),
    "paddle.fluid.dygraph.BatchNorm": Class(
        "layer", "num_channels act is_test momentum epsilon param_attr bias_attr dtype data_layout", "tensor"
    ),
    "paddle.fluid.dygraph.Embedding": Class(
        "layer", "size is_sparse is_distributed padding_idx param_attr dtype", "tensor"
    ),
    "paddle.fluid.dygraph.Dropout": Class("layer", "p seed dropout_implementation is_test", "tensor"),
    "paddle.fluid.dygraph.LayerNorm": Class(
        "layer", "normalized_shape scale shift epsilon param_attr bias_attr act dtype", "tensor"
    ),
    "paddle.fluid.dygraph.GRUUnit": Class("rnn", "size param_attr bias_attr activation gate_activation", "tensors"),
    # paddle 1.x optimizers, https://www.paddlepaddle.org.cn/documentation/docs/en/1.8/api/optimizer.html
    **{
        f"paddle.fluid.optimizer.{name}{suffix}": Class("optimizer", "learning_rate parameter_list")
        for name in ("SGD", "Momentum", "Adam", "Adagrad", "Adamax", "RMSProp", "Adadelta", "Lamb")
        for suffix in ("", "Optimizer")
    },
    # No optimizer as others: it steps with the gradients of a context, which are new in each.
    # https://docs.pytorch.org/docs/stable/rpc.html#module-torch.distributed.optim
    "torch.distributed.optim.DistributedOptimizer": Class("other", "optimizer_class params_rref"),
    # Run: to(), cuda(), double() and their like give a new one and leave the old one as it was.
    "torch.nn.utils.rnn.PackedSequence": Class("packed", "data batch_sizes sorted_indices unsorted_indices"),
    # https://github.com/huggingface/pytorch-image-models/blob/main/timm/layers/drop.py
    **dict.fromkeys(
        ("timm.layers.DropPath", "timm.layers.drop.DropPath", "timm.models.layers.DropPath"),
        Class("layer", "drop_prob scale_by_keep", "tensor"),
    ),
    # https://einops.rocks/api/einops.layers/
    **{
        f"einops.layers.{framework}.{name}": Class("layer", f"pattern {parameters}".strip(), "tensor")
        for framework in ("torch", "paddle")
        for name, parameters in (("Rearrange", ""), ("Reduce", "reduction"))
    },
    # Private bases that people derive from and test for, by where torch.nn defines them (run: all are Modules).
    **dict.fromkeys(
        (
            f"torch.nn.modules.{name}"
            for name in _words(
                "conv._ConvNd conv._ConvTransposeNd batchnorm._BatchNorm batchnorm._NormBase"
                " instancenorm._InstanceNorm dropout._DropoutNd"
            )
        ),
        Class("layer"),
    ),
    "torch.nn.modules.loss._Loss": Class("loss", "size_average reduce reduction"),
    "torch.nn.modules.loss._WeightedLoss": Class("loss", "weight size_average reduce reduction"),
    # The name of LRScheduler before torch 2.0, still a subclass of it (run).
    "torch.optim.lr_scheduler._LRScheduler": Class("scheduler", "optimizer last_epoch"),
    # https://huggingface.co/docs/transformers/main_classes/optimizer_schedules: functions that make a LambdaLR.
    **{
        f"transformers.{home}get_{name}": Class("scheduler", f"optimizer {parameters}")
        for home in ("", "optimization.")
        for name, parameters in (
            ("constant_schedule", "last_epoch"),
            ("constant_schedule_with_warmup", "num_warmup_steps last_epoch"),
            ("linear_schedule_with_warmup", "num_warmup_steps num_training_steps last_epoch"),
            ("cosine_schedule_with_warmup", "num_warmup_steps num_training_steps num_cycles last_epoch"),
            (
                "cosine_with_hard_restarts_schedule_with_warmup",
                "num_warmup_steps num_training_steps num_cycles last_epoch",
            ),
            (
                "polynomial_decay_schedule_with_warmup",
                "num_warmup_steps num_training_steps lr_end power last_epoch",
            ),
        )
    },
    # Tensor types; torch.Tensor itself is in the tables.
    "torch.autograd.Variable": Class("tensor", "data requires_grad volatile"),
}

# https://numpy.org/doc/stable/reference/routines.html (run: each gives an ndarray)
_NUMPY_ARRAYS = """
    arange array asarray ascontiguousarray atleast_2d concatenate copy diag empty empty_like expand_dims eye full
    full_like hstack identity linspace ones ones_like pad repeat reshape rollaxis sort squeeze stack tile transpose
    tril triu vstack zeros zeros_like
"""
_NUMPY_NUMBERS = "float16 float32 float64 int8 int16 int32 int64 uint8 bool_"

FUNCTIONS: Mapping[str, Function] = {
    # https://huggingface.co/docs/timm/reference/models
    "timm.create_model": Function(
        "module", "model_name pretrained pretrained_cfg pretrained_cfg_overlay checkpoint_path"
    ),
    # https://docs.pytorch.org/docs/stable/hub.html: most entry points give a model, but any object is possible.
    "torch.hub.load": Function("other", "repo_or_dir model * source trust_repo force_reload verbose skip_validation"),
    "torch.hub.load_state_dict_from_url": Function(
        "state_dict", "url model_dir map_location progress check_hash file_name weights_only"
    ),
    "torch.utils.model_zoo.load_url": Function(
        "state_dict", "url model_dir map_location progress check_hash file_name weights_only"
    ),
    # https://docs.pytorch.org/docs/stable/autograd.html#variable-api-deprecated (run: gives a Tensor)
    "torch.autograd.Variable": Function("tensor", "data requires_grad volatile"),
    "paddle.fluid.dygraph.to_variable": Function("tensor", "value name zero_copy"),
    "paddle.fluid.dygraph.base.to_variable": Function("tensor", "value name zero_copy"),
    # They change the module they are given and give it back (run).
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm": Function("module", "module process_group"),
    "paddle.nn.SyncBatchNorm.convert_sync_batchnorm": Function("module", "layer"),
    # They give a changed copy unless they are called with `inplace=True` (run).
    **{
        f"torch.{package}.{name}": Function("module", parameters)
        for package in ("quantization", "ao.quantization")
        for name, parameters in (
            ("convert", "module mapping inplace remove_qconfig is_reference convert_custom_config_dict"),
            ("prepare", "model inplace allow_list observer_non_leaf_module_list prepare_custom_config_dict"),
            ("prepare_qat", "model mapping inplace"),
            ("quantize", "model run_fn run_args mapping inplace"),
            ("quantize_dynamic", "model qconfig_spec dtype mapping inplace"),
            ("fuse_modules", "model modules_to_fuse inplace fuser_func fuse_custom_config_dict"),
        )
    },
    # The norm of all gradients together (run).
    "torch.nn.utils.clip_grad_norm_": Function("scalar", "parameters max_norm norm_type error_if_nonfinite foreach"),
    "torch.nn.utils.clip_grad_norm": Function("scalar", "parameters max_norm norm_type error_if_nonfinite foreach"),
    "paddle.nn.utils.clip_grad_norm_": Function("scalar", "parameters max_norm norm_type error_if_nonfinite"),
    # Run: of shape [] in 2.6 and 3.3.
    "paddle.metric.accuracy": Function("scalar", "input label k correct total name"),
    # https://einops.rocks/api/rearrange/: of a tensor (or a list of them) one of the same framework.
    "einops.rearrange": Function("tensor", "tensor pattern"),
    "einops.reduce": Function("tensor", "tensor pattern reduction"),
    "einops.repeat": Function("tensor", "tensor pattern"),
    "einops.einsum": Function("tensor"),
    # https://horovod.readthedocs.io/en/stable/api.html#module-horovod.torch: "a thin wrapper around an autograd
    # function. If your input tensor requires gradients, then callings this function will allow gradients to be
    # computed and backpropagated".
    "horovod.torch.allreduce": Function("tensor", "tensor average name compression op"),
    "horovod.torch.allgather": Function("tensor", "tensor name"),
    "horovod.torch.broadcast": Function("tensor", "tensor root_rank name"),
    # https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.PackedSequence.html
    "torch.nn.utils.rnn.pack_padded_sequence": Function("packed", "input lengths batch_first enforce_sorted"),
    "torch.nn.utils.rnn.pack_sequence": Function("packed", "sequences enforce_sorted"),
    "paddle.Model": Function("other", "network inputs labels"),
    # Run: a layer with the given weights.
    "torch.nn.Embedding.from_pretrained": Function(
        "module", "embeddings freeze padding_idx max_norm norm_type scale_grad_by_freq sparse"
    ),
    "torch.nn.EmbeddingBag.from_pretrained": Function(
        "module", "embeddings freeze max_norm norm_type scale_grad_by_freq mode sparse include_last_offset padding_idx"
    ),
    # Run; they stand in no list of public names.
    "torch.jit.is_scripting": Function("number"),
    "torch.jit.is_tracing": Function("number"),
    # https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/distributed/fleet/Fleet_en.html
    "paddle.distributed.fleet.distributed_model": Function("module", "model"),
    "paddle.distributed.fleet.distributed_optimizer": Function("optimizer", "optimizer strategy"),
    **dict.fromkeys((f"numpy.{name}" for name in _words(_NUMPY_ARRAYS)), Function("array")),
    **dict.fromkeys((f"numpy.{name}" for name in _words(_NUMPY_NUMBERS)), Function("number")),
}

STATELESS = frozenset({
    "timm.layers.DropPath", "timm.layers.drop.DropPath", "timm.models.layers.DropPath", "einops.layers.torch.Rearrange",
    "einops.layers.torch.Reduce", "einops.layers.paddle.Rearrange", "einops.layers.paddle.Reduce",
})  # fmt: skip
"""Layers of other packages that have neither parameters nor buffers (source as for their classes)."""

UNTRAINED = frozenset({"paddle.nn.SpectralNorm"})
"""Layers whose parameters are never trained: vectors of a power iteration, with ``stop_gradient`` (run)."""

RETURNS: Mapping[str, Returns] = {
    # Deprecated spellings, documented by nothing but "see `constant_`" (run: they give their argument).
    **dict.fromkeys(
        (
            f"torch.nn.init.{name}"
            for name in _words(
                "constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse uniform xavier_normal"
                " xavier_uniform"
            )
        ),
        "self",
    ),
    # They change the module they are given and give it back (run).
    **dict.fromkeys(
        (
            f"torch.nn.utils.{name}"
            for name in _words(
                "weight_norm spectral_norm remove_weight_norm remove_spectral_norm parametrizations.weight_norm"
                " prune.identity prune.l1_unstructured prune.ln_structured prune.random_structured"
                " prune.random_unstructured prune.custom_from_mask prune.remove"
            )
        ),
        "module",
    ),
    # Deprecated for `interpolate`, which they call (run).
    "torch.nn.functional.upsample": "tensor",
    "torch.nn.functional.upsample_bilinear": "tensor",
    "torch.nn.functional.upsample_nearest": "tensor",
    # https://docs.pytorch.org/docs/stable/generated/torch.sparse.mm.html
    "torch.sparse.mm": "tensor",
    # They give the layer itself in 3.3.1 and None in 2.6.2 (run).
    "paddle.nn.Layer.eval": "other",
    "paddle.nn.Layer.train": "other",
    "paddle.nn.utils.weight_norm": "module",
    "paddle.nn.utils.spectral_norm": "module",
    "paddle.nn.utils.remove_weight_norm": "module",
    # https://docs.pytorch.org/docs/stable/generated/torch.jit.load.html: "A ScriptModule object".
    "torch.jit.load": "module",
    "torch.jit.freeze": "module",
    "torch.jit.optimize_for_inference": "module",
    # https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/jit/load_en.html: "A TranslatedLayer object".
    "paddle.jit.load": "module",
    # With all three arguments they give one tensor; the tables saw them with the condition alone (run).
    "paddle.where": "tensor",
    # For one tensor one tensor, for several a list (run).
    "paddle.atleast_1d": "tensor",
    "paddle.atleast_2d": "tensor",
    "paddle.atleast_3d": "tensor",
}
"""What functions give whose rows in the tables say otherwise or nothing; their parameters stay those of the tables."""

_METHODS = "weight_ih weight_hh bias_ih bias_hh"


def recurrent_keys(name: str, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
    """The state-dict keys of a recurrent layer of several layers or directions; ``None`` for unknown arguments.

    Run: ``num_layers`` 1 and 2, both directions, with and without bias, in torch (with ``proj_size``) and paddle.
    """
    framework, _, last = name.partition(".")
    if last.rpartition(".")[2] not in ("RNN", "LSTM", "GRU", "SimpleRNN") or name == "paddle.nn.RNN":
        return None
    count = arguments.get("num_layers", 1)
    if not isinstance(count, int) or isinstance(count, bool):
        return None
    if framework == "torch":
        return _torch_recurrent_keys(count, arguments)
    return _paddle_recurrent_keys(count, arguments)


def _torch_recurrent_keys(count: int, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
    bias, both, projected = (arguments.get(name, default) for name, default in _TORCH_SWITCHES)
    if not isinstance(bias, bool) or not isinstance(both, bool) or not isinstance(projected, int):
        return None
    words = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if bias else []), *(["weight_hr"] if projected else [])]
    return tuple(f"{word}_l{layer}{end}" for layer in range(count) for end in _ends(both) for word in words)


_TORCH_SWITCHES = (("bias", True), ("bidirectional", False), ("proj_size", 0))


def _paddle_recurrent_keys(count: int, arguments: Mapping[str, object]) -> tuple[str, ...] | None:
    direction = arguments.get("direction", "forward")
    if direction not in ("forward", "bidirect", "bidirectional") or "proj_size" in arguments:
        return None
    both = direction != "forward"
    words = ["weight_ih", "weight_hh"]
    for word in ("bias_ih", "bias_hh"):
        given = arguments.get(f"{word}_attr")
        if given is ...:
            return None
        if given is not False:
            words.append(word)
    flat = [f"{word}_l{layer}{end}" for layer in range(count) for end in _ends(both) for word in words]
    # The cells keep their own parameters, biases included, beside the flat ones.
    cells = [
        f"{layer}.{cell}.{word}"
        for layer in range(count)
        for cell in (("cell_fw", "cell_bw") if both else ("cell",))
        for word in _words(_METHODS)
    ]
    return (*flat, *cells)


def _ends(both: bool) -> tuple[str, ...]:
    return ("", "_reverse") if both else ("",)


# Names of methods that nobody gives to anything but a tensor. Left out, although only tensors have them: words that a
# logger, an iterator, a layer or a namespace may as well have (`log`, `roll`, `tile`, `relu`, `bernoulli`). Seen in
# real code: `wandb.log(...)`, `iterator.roll(...)`, `boxes.clip(...)`, `functional.relu(...)` on unknown things.
UNMISTAKABLE = frozenset(
    _words(
        "addbmm addcdiv addcmul addmm baddbmm bmm broadcast_to clamp clamp_max clamp_min diag_embed digamma expand_as "
        "gather_nd index_add index_copy index_fill index_put index_sample index_select lgamma log_softmax logsumexp "
        "masked_fill masked_scatter masked_select movedim nan_to_num new_empty new_full new_ones new_tensor new_zeros "
        "permute put_along_axis repeat_interleave reshape_as resize_as rsqrt scatter_add scatter_reduce sum_to_size "
        "swapdims take_along_dim tril triu type_as unflatten unique_consecutive unsqueeze view_as view_as_complex "
        "view_as_real"
    )
)
