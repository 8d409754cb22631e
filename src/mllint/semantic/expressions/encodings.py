"""What tokenizers and processors give that are asked for tensors: ``tokenizer(text, return_tensors="pt")``.

Those of Hugging Face's Transformers, and of PaddleNLP, whatever object they are kept in.
"""

from typing import TYPE_CHECKING

import libcst as cst

from mllint.semantic.values import Framework, Mapping, Tensor
from mllint.syntax.shape import argument, last_word, string_literal

if TYPE_CHECKING:
    from mllint.semantic.model import Model

_FRAMEWORKS: dict[str, Framework] = {"pt": "torch", "pd": "paddle"}
_GIVING_ONE_TENSOR = frozenset({"encode", "apply_chat_template"})
"""Methods that give a tensor then, and no dict."""


def encoded(model: "Model", call: cst.Call) -> Mapping | None:
    """The dict of tensors that a call of something unknown gives: the call says itself of which framework they are."""
    asked = argument(call, None, "return_tensors")
    framework = None if asked is None else _FRAMEWORKS.get(string_literal(asked.value) or "")
    name = last_word(call.func)
    if framework is None or name is None or name in _GIVING_ONE_TENSOR or name in model.function_names:
        return None
    is_class = name[:1].isupper()  # a collator, that will be called later
    return None if is_class else Mapping(item=Tensor(framework, False))
