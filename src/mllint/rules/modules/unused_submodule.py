"""## What it does

Finds layers with weights that a module makes in `__init__` and that nothing in the project uses; also those that the
constructor replaces by another one, under the same name, before anything has used them.

## Why is this bad?

The layer is saved, moved and counted, and never gets a gradient. Most often `forward` calls another layer in its
place, so that two positions share one set of weights. `DistributedDataParallel` stops at the second step: "Expected to
have finished reduction in the prior iteration before starting a new one". A layer with buffers alone, such as a table
of positions, is only saved and moved: what it adds is missing. A layer that is replaced is gone, and with two lines
that were to have different names a second layer is missing.

## Example

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(3)
        self.norm2 = nn.LayerNorm(3)

    def forward(self, x):
        return self.norm1(self.norm1(x))
```

## Use instead

```python
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(3)
        self.norm2 = nn.LayerNorm(3)

    def forward(self, x):
        return self.norm2(self.norm1(x))
```

## What it leaves alone

Layers without weights (`BatchNorm1d(3, affine=False)` has none), those of tests, those of which a comment says that
they are unused or there for a checkpoint, and the only layer of a class, which is there for the class to have
parameters. Layers that are made on demand, where an option of the constructor (or one read with a default,
`getattr(config, "kind", "absolute")`) is set to what it is not by default. Lists that are made empty and left so.
Classes whose `forward` uses nothing of the object: it is still to be written. Attributes that are read anywhere in the
project, whose name stands in a string, or whose call is commented out. Lists and sequences of layers that are used by
another name too (`self._heads = nn.ModuleList(self.heads)`). Networks whose weights the file loads and never saves,
whatever else it saves: there the checkpoint says which layers there are; so does a published one that a function of the
project downloads and loads strictly. Variants of a network that leave three layers or more unused which a class in
another file has and uses: the same checkpoint is to fit both. Classes that look at their own attributes in other ways:
`getattr`, `children()`, the instance handed to a function. Classes with a base that is not known, and abstract ones.
What is only done to set a layer up (initial values of its weights, `append`) is no use of it. Layers that are replaced
in a branch, by a derived class, by what wraps them (`self.conv = weight_norm(self.conv)`), or where a comment says so.

## Fix safety

No fix is offered: the layer may be missing from `forward`, or be left over.

## References

- [torch.nn.parallel.DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html)
- [paddle.DataParallel](https://www.paddlepaddle.org.cn/documentation/docs/en/api/paddle/DataParallel_en.html)
"""

import re
from collections.abc import Iterator

import libcst as cst

from mllint.context import Context
from mllint.rule import Finding, Rule
from mllint.semantic.files.testing import is_test_code
from mllint.semantic.modules.unused import replaced_submodules, unused_submodules
from mllint.semantic.modules.weights import has_only_buffers

rule = Rule(
    code="ML408",
    message="this layer is never used",
    help="use it in `forward`, or remove it",
    frameworks=frozenset({"torch", "paddle"}),
    since="0.1.0",
    by_default=False,
)

# What a comment says of a layer that somebody keeps on purpose.
_KNOWN = re.compile(
    r"\b(?:unused|(?:not|never) us(?:ed|ing)|compatib|checkpoints?\b)|没有?使?用|[未不](?:使用|用到)", re.IGNORECASE
)
# What it says of one that takes another's place on purpose.
_MEANT = re.compile(r"\b(overwrit|overrid|replac|redefin)", re.IGNORECASE)


@rule.on(cst.ClassDef)
def check(node: cst.ClassDef, context: Context) -> Iterator[Finding]:
    """Report the submodules of a class that nothing reads."""
    definition = context.model.class_info(node)
    found, replaced = unused_submodules(definition), list(replaced_submodules(definition))
    if (found or replaced) and is_test_code(context.model):
        return
    for name, statement, lines in replaced:
        statements = [line.body[0] for line in lines if isinstance(line, cst.SimpleStatementLine)]
        said = (comment for line in statements for comment in context.comments(line))
        if name not in dict(found) and not any(_MEANT.search(comment) for comment in said):
            yield Finding(
                statement,
                f"`self.{name}` is replaced before it is used: these weights are thrown away",
                "give one of the layers another name, or remove this one",
            )
    for name, place in found:
        if any(_KNOWN.search(comment) for comment in context.comments(place.node)):
            continue
        is_table = place.value is not None and has_only_buffers(place.model, place.value)
        effect = "it is only saved and moved" if is_table else "its weights get no gradient"
        yield Finding(place.node, f"`self.{name}` is never used: {effect}")
