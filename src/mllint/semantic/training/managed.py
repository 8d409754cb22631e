"""Bodies that a trainer of another framework runs, or in which one wraps what trains."""

from mllint.semantic.events.manual import optimizes_by_hand, owner_of_run
from mllint.semantic.events.things import Frame

TRAINERS = frozenset({
    "accelerate", "catalyst", "colossalai", "composer", "deepspeed", "fastai", "fabric", "flair", "ignite", "lightning",
    "lightning_fabric", "mmcv", "mmengine", "paddlex", "pl_bolts", "poutyne", "pytorch_lightning", "ray", "skorch",
    "torchbearer", "torchtnt", "transformers",
})  # fmt: skip
"""Packages whose base classes and engines run the loop: what derives from them, or comes from them, is left alone."""

_WRAPPER = frozenset({"Accelerator", "accelerator"})
_READS_CHECKPOINTS = ("deepspeed.checkpoint", "deepspeed.utils.zero_to_fp32")
"""What only reads files that an engine has written; accelerate may have run it: it switches no modes either."""
_ENGINES: dict[str, tuple[str, ...]] = {
    "deepspeed": _READS_CHECKPOINTS, "colossalai": (), "lightning.fabric": (), "lightning_fabric": (),
}  # fmt: skip
"""Packages that wrap optimizers and losses themselves, whatever the loop looks like, but for these parts of them."""


def is_managed(frame: Frame, accelerated: bool, by_hand: bool = False) -> bool:
    """Whether a trainer of another framework runs a body; accelerate does not where it is ``accelerated`` anyway.

    Nor Lightning where a module does all ``by_hand``.
    """
    owner = owner_of_run(frame)
    if owner is not None and any(name.partition(".")[0] in TRAINERS for name in owner.library_bases):
        return not (by_hand and optimizes_by_hand(owner))
    model = frame.model
    is_wrapped = not accelerated and model.imports("accelerate")  # `set_seed` alone wraps nothing
    if is_wrapped and not _WRAPPER.isdisjoint(model.names_by_word):
        return True
    return any(model.imports_beside(engine, parts) for engine, parts in _ENGINES.items())
