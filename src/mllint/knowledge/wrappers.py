"""What is wrapped around a module: facts a person wrote, each with its source.

"Run" means: seen by running torch 2.13.0 or paddlepaddle 3.3.1 and 2.6.2; ``tests/evidence/test_knowledge.py`` runs
it again.
"""

from collections.abc import Mapping

from mllint.knowledge.schema import Wrapper

WRAPPERS: Mapping[str, Wrapper] = {
    # Run: keys of state_dict() and the attribute that is the wrapped module.
    "torch.nn.DataParallel": Wrapper("torch", "module.", "module", "module device_ids output_device dim"),
    "torch.nn.parallel.DistributedDataParallel": Wrapper(
        "torch", "module.", "module", "module device_ids output_device dim broadcast_buffers"
    ),
    "torch.optim.swa_utils.AveragedModel": Wrapper(
        "torch", "module.", "module", "model device avg_fn multi_avg_fn use_buffers", copies=True
    ),
    "torch.compile": Wrapper(
        "torch",
        "_orig_mod.",
        "_orig_mod",
        "model * fullgraph dynamic backend mode options disable",
        hands_on=True,
    ),
    "torch.jit.script": Wrapper("torch", "", None, "obj"),
    "torch.jit.trace": Wrapper("torch", "", None, "func example_inputs"),
    "paddle.DataParallel": Wrapper("paddle", "", "_layers", "layers strategy"),
    "paddle.jit.to_static": Wrapper("paddle", "", None, "function input_spec", hands_on=True),
    # https://nvidia.github.io/apex/parallel.html: "a module wrapper similar to
    # torch.nn.parallel.DistributedDataParallel"; its __init__ does `self.module = module`.
    "apex.parallel.DistributedDataParallel": Wrapper(
        "torch", "module.", "module", "module message_size delay_allreduce"
    ),
    # https://github.com/qubvel/ttach/blob/master/ttach/wrappers.py: it calls `self.model` with each augmentation.
    **dict.fromkeys(
        ("ttach.ClassificationTTAWrapper", "ttach.SegmentationTTAWrapper", "ttach.KeypointsTTAWrapper"),
        Wrapper("torch", "model.", "model", "model transforms merge_mode"),
    ),
    # https://docs.pytorch.org/docs/1.0.0/nn.html#distributeddataparallelcpu, removed in 1.4.
    "torch.nn.parallel.DistributedDataParallelCPU": Wrapper("torch", "module.", "module", "module"),
    # paddle 1.x and 2.0-2.4, https://www.paddlepaddle.org.cn/documentation/docs/en/1.8/api/dygraph/DataParallel.html
    "paddle.fluid.dygraph.DataParallel": Wrapper("paddle", "", "_layers", "layers strategy"),
    "paddle.fluid.dygraph.parallel.DataParallel": Wrapper("paddle", "", "_layers", "layers strategy"),
}
