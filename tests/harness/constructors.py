"""Constructors of modules in the ways that people write them, with the keys of the state dict of what they build.

Each is the rows of a constructor, after ``super().__init__()``, and the keys. The model has to tell them from the
source alone, and PyTorch has to give them when the source is run.
"""

HEAD = """import collections
import copy
import functools
import math

import torch
import torch.nn.functional as F
from torch import nn
"""


def net(*rows: str, parameters: str = "self", before: str = "") -> str:
    """A module whose constructor consists of the rows."""
    body = "\n".join(f"        {row}" for row in ("super().__init__()", *rows))
    return f"{before}\nclass Net(nn.Module):\n    def __init__({parameters}):\n{body}\n"


def weights(*names: str) -> set[str]:
    """The keys of layers that have a weight and nothing else."""
    return {f"{name}.weight" for name in names}


CLOSED: dict[str, tuple[list[str], set[str]]] = {
    # What is registered.
    "parameter": (["self.w = nn.Parameter(torch.zeros(2))"], {"w"}),
    "buffer": (["self.register_buffer('b', torch.zeros(2))"], {"b"}),
    "buffer-not-kept": (["self.register_buffer('b', torch.zeros(2), persistent=False)"], set()),
    "buffer-of-none": (["self.register_buffer('b', None)"], set()),
    "buffer-written-again": (["self.register_buffer('b', torch.zeros(2))", "self.b = torch.ones(2)"], {"b"}),
    "parameter-registered": (["self.register_parameter('p', nn.Parameter(torch.zeros(1)))"], {"p"}),
    "plain-tensor": (["self.t = torch.zeros(2)"], set()),
    "plain-list": (["self.items = [nn.Linear(1, 1)]"], set()),
    "linear": (["self.fc = nn.Linear(1, 1)"], {"fc.weight", "fc.bias"}),
    "no-bias": (["self.fc = nn.Linear(1, 1, bias=False)"], {"fc.weight"}),
    "no-bias-by-position": (["self.fc = nn.Linear(1, 1, False)"], {"fc.weight"}),
    "bias-of-a-constant": (["use = 1 > 2", "self.fc = nn.Linear(1, 1, bias=use)"], {"fc.weight"}),
    "taken-back": (["self.fc = nn.Linear(1, 1)", "self.fc = None"], set()),
    "deleted": (["self.fc = nn.Linear(1, 1)", "del self.fc"], set()),
    "replaced": (["self.fc = nn.Linear(1, 1)", "self.fc = nn.Identity()"], set()),
    "two-names": (["self.a = self.b = nn.PReLU()"], weights("a", "b")),
    "shared": (["self.a = nn.PReLU()", "self.b = self.a"], weights("a", "b")),
    "copied": (["self.a = nn.PReLU()", "self.b = copy.deepcopy(self.a)"], weights("a", "b")),
    "unpacked": (["self.a, self.b = nn.PReLU(), nn.ReLU()"], weights("a")),
    "unpacked-list": (["[self.a, self.b] = [nn.PReLU() for _ in range(2)]"], weights("a", "b")),
    "annotated": (["self.a: nn.Module = nn.PReLU()"], weights("a")),
    "moved": (["self.a = nn.PReLU().float().train()"], weights("a")),
    "wrapped-child": (["self.m = nn.DataParallel(nn.PReLU())"], {"m.module.weight"}),
    "add-module": (["self.add_module('m', nn.PReLU())"], weights("m")),
    "add-module-by-keyword": (["self.add_module(module=nn.PReLU(), name='m')"], weights("m")),
    "setattr": (["for i in range(2):", "    setattr(self, f'm{i}', nn.PReLU())"], weights("m0", "m1")),
    "getattr": (["self.a = nn.PReLU()", "self.b = getattr(self, 'a')"], weights("a", "b")),
    # Containers.
    "sequential": (["self.s = nn.Sequential(nn.ReLU(), nn.PReLU())"], weights("s.1")),
    "sequential-of-names": (
        ["self.s = nn.Sequential(collections.OrderedDict([('a', nn.PReLU()), ('b', nn.ReLU())]))"],
        weights("s.a"),
    ),
    "sequential-grown": (["self.s = nn.Sequential()", "self.s.add_module('a', nn.PReLU())"], weights("s.a")),
    "sequential-appended": (["self.s = nn.Sequential(nn.ReLU())", "self.s.append(nn.PReLU())"], weights("s.1")),
    "sequential-written": (
        ["self.s = nn.Sequential(nn.PReLU(), nn.PReLU())", "self.s[-1] = nn.ReLU()"],
        weights("s.0"),
    ),
    "sequential-taken-from": (
        ["other = nn.Sequential(nn.PReLU(), nn.ReLU())", "self.s = nn.Sequential(*other, nn.PReLU())"],
        weights("s.0", "s.2"),
    ),
    "starred": (["parts = [nn.PReLU()] * 2", "self.s = nn.Sequential(*parts)"], weights("s.0", "s.1")),
    "starred-in-a-list": (
        ["parts = [nn.ReLU(), *[nn.PReLU()] * 2]", "self.s = nn.Sequential(*parts)"],
        weights("s.1", "s.2"),
    ),
    "lists-added": (
        ["parts = [nn.PReLU()] + [nn.ReLU(), nn.PReLU()]", "self.s = nn.Sequential(*parts)"],
        weights("s.0", "s.2"),
    ),
    "module-list": (["self.l = nn.ModuleList([nn.PReLU() for _ in range(2)])"], weights("l.0", "l.1")),
    "appended": (["self.l = nn.ModuleList()", "self.l.append(nn.PReLU())"], weights("l.0")),
    "extended": (["self.l = nn.ModuleList()", "self.l += [nn.PReLU()]"], weights("l.0")),
    "extended-by-a-tuple": (
        ["self.l = nn.ModuleList()", "self.l.extend((nn.PReLU(), nn.PReLU()))"],
        weights("l.0", "l.1"),
    ),
    "extended-by-modules": (
        ["self.l = nn.ModuleList([nn.ReLU()])", "self.l.extend(nn.Sequential(nn.PReLU()))"],
        weights("l.1"),
    ),
    "module-list-of-modules": (
        ["self.l = nn.ModuleList(nn.Sequential(nn.ReLU(), nn.PReLU()))"],
        weights("l.1"),
    ),
    "module-dict": (["self.d = nn.ModuleDict({'a': nn.PReLU()})"], weights("d.a")),
    "module-dict-of-pairs": (["self.d = nn.ModuleDict([['a', nn.PReLU()], ['b', nn.ReLU()]])"], weights("d.a")),
    "module-dict-grown": (
        ["self.d = nn.ModuleDict()", "self.d['a'] = nn.PReLU()", "self.d.update({'b': nn.PReLU()})"],
        weights("d.a", "d.b"),
    ),
    "module-dict-read": (
        ["d = nn.ModuleDict({'a': nn.PReLU(), 'b': nn.ReLU()})", "self.s = nn.Sequential(*d.values())"],
        weights("s.0"),
    ),
    "module-dict-of-two": (
        ["a = {'a': nn.PReLU()}", "self.d = nn.ModuleDict({**a, 'b': nn.PReLU()})"],
        weights("d.a", "d.b"),
    ),
    "parameter-list": (["self.p = nn.ParameterList([nn.Parameter(torch.zeros(1))])"], {"p.0"}),
    # Lists, dicts, strings and numbers on the way to them.
    "list-inserted": (
        ["l = [nn.ReLU()]", "l.insert(0, nn.PReLU())", "self.s = nn.Sequential(*l)"],
        weights("s.0"),
    ),
    "list-popped": (["l = [nn.PReLU(), nn.PReLU()]", "l.pop()", "self.s = nn.Sequential(*l)"], weights("s.0")),
    "list-reversed": (
        ["l = [nn.PReLU(), nn.ReLU()]", "l.reverse()", "self.s = nn.Sequential(*l, *reversed(l))"],
        weights("s.1", "s.2"),
    ),
    "list-copied": (
        ["l = [nn.PReLU()]", "m = l.copy()", "m.append(nn.PReLU())", "self.s = nn.Sequential(*l)"],
        weights("s.0"),
    ),
    "list-cut": (["l = [nn.ReLU(), nn.PReLU(), nn.PReLU()]", "self.s = nn.Sequential(*l[1:-1])"], weights("s.0")),
    "list-written": (
        ["l = [nn.PReLU(), nn.PReLU()]", "l[0] = nn.ReLU()", "self.s = nn.Sequential(*l)"],
        weights("s.1"),
    ),
    "list-of-a-range": (["self.l = nn.ModuleList(nn.PReLU(n) for n in list(range(1, 3)))"], weights("l.0", "l.1")),
    "last-of-a-list": (["l = [nn.ReLU(), nn.PReLU()]", "self.a = l[-1]"], weights("a")),
    "dict-of-layers": (
        ["layers = {'a': nn.PReLU(), 'b': nn.ReLU()}", "for k, v in layers.items():", "    self.add_module(k, v)"],
        weights("a"),
    ),
    "dict-asked": (["kinds = {'relu': nn.ReLU, 'prelu': nn.PReLU}", "self.a = kinds['prelu']()"], weights("a")),
    "dict-asked-for-what-lacks": (
        ["kinds = {'relu': nn.ReLU}", "self.a = kinds.get('prelu', nn.PReLU)()"],
        weights("a"),
    ),
    "dict-written": (["d = {}", "d['a'] = nn.PReLU()", "self.d = nn.ModuleDict(d)"], weights("d.a")),
    "dict-updated": (
        ["d = dict(a=nn.PReLU())", "d.update(b=nn.PReLU())", "self.d = nn.ModuleDict(d)"],
        weights("d.a", "d.b"),
    ),
    "dict-popped": (
        ["d = {'a': nn.PReLU(), 'b': nn.PReLU()}", "self.first = d.pop('a')", "self.d = nn.ModuleDict(d)"],
        weights("first", "d.b"),
    ),
    "dict-comprehension": (["self.d = nn.ModuleDict({str(i): nn.PReLU() for i in range(2)})"], weights("d.0", "d.1")),
    "keys-of-a-dict": (["for k in {'a': 1, 'b': 2}:", "    setattr(self, k, nn.PReLU())"], weights("a", "b")),
    "options-unpacked": (["options = {'bias': False}", "self.fc = nn.Linear(1, 1, **options)"], {"fc.weight"}),
    "names-formatted": (["self.add_module('block_{}'.format(3), nn.PReLU())"], weights("block_3")),
    "names-by-percent": (["self.add_module('block_%d' % 3, nn.PReLU())"], weights("block_3")),
    "names-joined": (["self.add_module('_'.join(['a', 'b']), nn.PReLU())"], weights("a_b")),
    "names-split": (["for name in 'a b'.split():", "    self.add_module(name, nn.PReLU())"], weights("a", "b")),
    "zip": (
        ["for name, width in zip(['a', 'b'], [1, 2]):", "    self.add_module(name, nn.PReLU(width))"],
        weights("a", "b"),
    ),
    "zip-of-neighbours": (
        [
            "n = [1, 2, 3]",
            "self.l = nn.ModuleList([nn.Linear(a, b, False) for a, b in zip(n[:-1], n[1:])])",
        ],
        weights("l.0", "l.1"),
    ),
    "enumerate": (
        ["for i, n in enumerate([2, 3], 1):", "    setattr(self, f'fc{i}', nn.PReLU(n))"],
        weights("fc1", "fc2"),
    ),
    "computed-length": (
        ["count = int(math.log2(4))", "self.l = nn.ModuleList(nn.PReLU() for _ in range(count))"],
        weights("l.0", "l.1"),
    ),
    "length-of-a-list": (
        ["widths = (1, 2)", "self.l = nn.ModuleList(nn.PReLU() for _ in range(len(widths)))"],
        weights("l.0", "l.1"),
    ),
    "largest": (["self.l = nn.ModuleList(nn.PReLU() for _ in range(max([1, 2])))"], weights("l.0", "l.1")),
    "added-up": (
        ["n = 0", "for w in (1, 1):", "    n += w", "self.l = nn.ModuleList([nn.PReLU()] * n)"],
        weights("l.0", "l.1"),
    ),
    "nested-comprehension": (
        ["self.l = nn.ModuleList(nn.PReLU() for a in range(2) for b in range(2) if a != b)"],
        weights("l.0", "l.1"),
    ),
    # Branches and loops of which the way is known.
    "while-not-run": (["if False:", "    self.a = nn.PReLU()", "else:", "    self.b = nn.PReLU()"], weights("b")),
    "one-of-several-branches": (
        ["n = 2", "if n == 1:", "    self.a = nn.PReLU()", "elif n == 2:", "    self.b = nn.PReLU()"],
        weights("b"),
    ),
    "conditional-expression": (["deep = 3 > 2", "self.a = nn.PReLU() if deep else nn.ReLU()"], weights("a")),
    "or": (["norm = None", "norm = norm or nn.PReLU", "self.a = norm()"], weights("a")),
    "and": (["deep = False", "self.a = deep and nn.PReLU()"], set()),
    "asked-whether-it-is-there": (
        ["norm = None", "if norm is not None:", "    self.a = norm()", "if norm is None:", "    self.b = nn.PReLU()"],
        weights("b"),
    ),
    "asked-whether-it-is-in": (
        [
            "stages = ['a', 'b']",
            "if 'a' in stages:",
            "    self.a = nn.PReLU()",
            "if 'c' in stages:",
            "    self.c = nn.PReLU()",
        ],
        weights("a"),
    ),
    "asked-which-class": (
        ["k = nn.PReLU", "if k is nn.ReLU:", "    self.a = k()", "else:", "    self.b = k()"],
        weights("b"),
    ),
    "asked-what-it-is": (
        ["n = 2", "if isinstance(n, int):", "    n = (n, n)", "for i in n:", "    self.add_module(f'{i}', nn.PReLU())"],
        weights("2"),
    ),
    "named-on-the-way": (["if (n := 2) > 1:", "    self.a = nn.PReLU(n)"], weights("a")),
    "asserted": (["n = 1", "assert n > 0", "self.a = nn.PReLU()"], weights("a")),
    "loop-with-break": (
        ["for i in range(9):", "    if i == 1:", "        break", "    self.add_module(str(i), nn.PReLU())"],
        weights("0"),
    ),
    "loop-with-continue": (
        ["for i in range(3):", "    if i % 2:", "        continue", "    self.add_module(str(i), nn.PReLU())"],
        weights("0", "2"),
    ),
    "in-a-context": (["with torch.no_grad():", "    self.a = nn.PReLU()"], weights("a")),
    # Functions and library layers.
    "partial": (["make = functools.partial(nn.Linear, 1, 1, bias=False)", "self.a = make()"], weights("a")),
    "lambda": (["make = lambda n: nn.PReLU(n)", "self.a = make(3)"], weights("a")),
    "inner-function": (
        ["def block(n):", "    return nn.Sequential(nn.Linear(n, n, False), nn.ReLU())", "self.a = block(2)"],
        weights("a.0"),
    ),
    "recurrent": (
        ["self.r = nn.GRU(2, 2, bias=False, bidirectional=True)"],
        {"r.weight_ih_l0", "r.weight_hh_l0", "r.weight_ih_l0_reverse", "r.weight_hh_l0_reverse"},
    ),
    "stack-of-layers": (
        ["layer = nn.TransformerEncoderLayer(4, 2, 8, bias=False)", "self.e = nn.TransformerEncoder(layer, 2)"],
        {
            f"e.layers.{i}.{name}"
            for i in range(2)
            for name in (
                "self_attn.in_proj_weight",
                *weights("self_attn.out_proj", "linear1", "linear2", "norm1", "norm2"),
            )
        },
    ),
}
