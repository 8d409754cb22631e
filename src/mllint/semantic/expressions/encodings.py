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
_OWN = frozenset({
    "to", "data", "encodings", "is_fast", "n_sequences", "tokens", "sequence_ids", "words", "word_ids",
    "convert_to_tensors", "token_to_sequence", "token_to_word", "word_to_tokens", "token_to_chars", "char_to_token",
    "word_to_chars", "char_to_word",
})  # fmt: skip
"""What such a dict has of its own, beside what every dict has; any other attribute is an entry: ``tokens.input_ids``.

Source: https://huggingface.co/docs/transformers/main_classes/tokenizer (``BatchEncoding``).
"""


def is_entry(name: str) -> bool:
    """Whether an attribute of such a dict is one of its entries."""
    return name not in _OWN and not hasattr(dict, name)


def encoded(model: "Model", call: cst.Call) -> Mapping | None:
    """The dict of tensors that a call of something unknown gives: the call says itself of which framework they are."""
    asked = argument(call, None, "return_tensors")
    framework = None if asked is None else _FRAMEWORKS.get(string_literal(asked.value) or "")
    name = last_word(call.func)
    if framework is None or name is None or name in _GIVING_ONE_TENSOR or name in model.function_names:
        return None
    is_class = name[:1].isupper()  # a collator, that will be called later
    return None if is_class else Mapping(item=Tensor(framework, False))
