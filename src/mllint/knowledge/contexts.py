"""Context managers of the frameworks that change nothing until they are entered.

Seen by running torch 2.13.0 and paddlepaddle 3.3.1 and 2.6.2 (``tests/evidence``), those of ``paddle.fluid`` read in
its documentation: https://www.paddlepaddle.org.cn/documentation/docs/en/1.8/api/dygraph.html. Not here, because a call
acts at once: ``set_grad_enabled``, ``set_detect_anomaly``, ``set_multithreading_enabled``, ``set_default_device``.
"""

from functools import cache

from mllint.knowledge.lookup import canonical


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that mean the same in whatever module of the framework they stand.
_ANYWHERE = {
    "torch": _words(
        "no_grad enable_grad inference_mode autocast fork_rng sdpa_kernel sdp_kernel save_on_cpu saved_tensors_hooks "
        "disable_saved_tensors_hooks allow_mutation_on_saved_tensors detect_anomaly record_function emit_nvtx emit_itt "
        "safe_globals optimized_execution"
    ),
    "paddle": _words(
        "no_grad no_grad_ enable_grad auto_cast autocast amp_guard program_guard scope_guard device_guard name_scope "
        "saved_tensors_hooks"
    ),
}
_BY_NAME = _words(
    "torch.device torch.cuda.device torch.xpu.device torch.cuda.stream torch.profiler.profile "
    "torch.autograd.profiler.profile torch.jit.fuser torch.backends.cudnn.flags torch.nn.utils.parametrize.cached "
    "paddle.utils.unique_name.guard paddle.fluid.unique_name.guard paddle.fluid.dygraph.guard "
    "paddle.fluid.dygraph.base.guard"
)
# These can be called without arguments and then mean what people mean by them.
_PLAIN = _words(
    "no_grad no_grad_ enable_grad inference_mode fork_rng save_on_cpu allow_mutation_on_saved_tensors detect_anomaly "
    "emit_nvtx emit_itt auto_cast amp_guard profile cached guard"
)
_PLAIN_BY_NAME = _words("torch.cuda.amp.autocast torch.cpu.amp.autocast paddle.amp.autocast")
WORDS = tuple(sorted({name.rpartition(".")[2] for name in _BY_NAME.union(*_ANYWHERE.values())} | {"set_grad_enabled"}))
"""The last words of all these names, and of the switches that can be entered as well."""


@cache
def is_context_manager(name: str) -> bool:
    """Whether a call of this name gives a context manager, and does nothing else."""
    name = canonical(name)
    root, last = name.partition(".")[0], name.rpartition(".")[2]
    return name in _BY_NAME or last in _ANYWHERE.get(root, ())


@cache
def is_plain_context_manager(name: str) -> bool:
    """Whether it is one that is called without arguments."""
    name = canonical(name)
    return name in _PLAIN_BY_NAME or (is_context_manager(name) and name.rpartition(".")[2] in _PLAIN)


@cache
def decorates_uncalled(name: str) -> bool:
    """Whether the context manager, as a decorator that is not called, still gives a function that works.

    Run: torch's own classes do. Paddle's raise at the definition, but for the function ``no_grad`` of the modules that
    its own code uses; ``auto_cast`` and torch's ``autocast`` take the function for their first argument. In
    ``paddle.fluid`` a function without parentheses was accepted.
    """
    root, last = name.partition(".")[0], name.rpartition(".")[2]
    if root == "paddle" and name.endswith((".base.no_grad", ".dygraph.no_grad")):
        return True
    if last.startswith("no_grad") or last in ("enable_grad", "inference_mode"):
        return root == "torch" or name.startswith("paddle.fluid.")
    return last not in ("auto_cast", "autocast", "amp_guard")
