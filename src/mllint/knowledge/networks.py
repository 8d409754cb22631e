"""Networks that other packages have ready: what makes one, and which have layers that ask for their mode.

Seen by running transformers 5.24 (the families below have ``nn.Dropout`` or a rate of dropout above zero by the default
of their configuration; ``tests/evidence/test_networks.py`` runs some), timm 1.0, segmentation_models_pytorch 0.6,
efficientnet_pytorch 0.7 and pretrainedmodels 0.7 (all but some families of timm have batch normalization or dropout,
and all are made in training mode).
"""

import re


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SEGMENTATION = frozenset(
    f"segmentation_models_pytorch.{name}"
    for name in _words("DeepLabV3 DeepLabV3Plus FPN Linknet MAnet PAN PSPNet Unet UnetPlusPlus create_model")
)
_EFFICIENTNET = frozenset(f"efficientnet_pytorch.EfficientNet.{name}" for name in ("from_name", "from_pretrained"))

_CADENE = re.compile(r"pretrainedmodels\.(?:models\.)?(?!(?:datasets|models|model_names|pretrained_settings)$)[a-z]\w+")
"""https://github.com/Cadene/pretrained-models.pytorch: all functions of the package build a network."""

_READY_MADE = ("torchvision.models.", "paddle.vision.models.")
_TIMM = "timm.create_model"
_TIMM_FAMILY = re.compile(r"(?:hf[-_]hub:|timm/)*(?:tf_)?([a-z]+)")
_WITHOUT_MODE = frozenset(
    _words("""
    aimv beit beitv caformer cait coat coatnext convformer convit convnext convnextv crossvit csatv davit deepseek deit
    dm eca edgenext ese eva flexivit gcvit gemma gmixer gmlp hiera hieradet mambaout maxxvitv mixer mvitv naflexvit nf
    nfnet pit poolformer poolformerv pvt qwen rdnet regnetz resmlp resnetv sam samvit sequencer test tnt twins vgg vit
    vitamin
""")
)
"""The families of which some networks, or all, do the same in both modes unless they are told to drop something."""

# https://huggingface.co/docs/transformers/model_doc/auto: AutoModel, AutoModelFor..., BertModel, BertFor...; TF... and
# Flax... are models of other frameworks. Called themselves they take a configuration, and are in training mode (run).
_TRANSFORMERS_MODEL = re.compile(
    r"transformers\.(?:\w+\.)*(?P<class>(?!TF|Flax)\w*?(?:Model|For[A-Z]\w+|LMHeadModel|DoubleHeadsModel))"
    r"(?:\.(?P<maker>from_pretrained|from_config|_from_config))?"
)

_DROPPING_FAMILIES = _words("""
    Bart Bert BertGeneration BigBird BigBirdPegasus Blenderbot BlenderbotSmall CTRL Camembert Canine ConvBert
    Data2VecAudio Data2VecText Deberta DebertaV2 Detr DistilBert Electra Ernie FNet Flaubert Funnel GPT2 Hubert IBert
    LED LayoutLM LayoutLMv3 Lilt LongT5 Longformer Luke Lxmert M2M100 MBart MPNet MT5 Marian MarkupLM MegatronBert
    MobileBert Nystromformer OPT OpenAIGPT PLBart Pegasus ProphetNet Reformer RoCBert RoFormer Roberta
    RobertaPreLayerNorm Segformer SpeechT5 SqueezeBert SwitchTransformers Swin Swinv2 T5 UMT5 UniSpeech UniSpeechSat
    VisualBert Wav2Vec2 WavLM XGLM XLM XLMRoberta XLMRobertaXL XLNet Xmod Yoso
""")
_DROPPING = re.compile(rf"(?:{'|'.join(_DROPPING_FAMILIES)})(?:\w*Model|For[A-Z]\w+)")

_DROPPING_WEIGHTS = re.compile(r"bert|electra|xlnet|gpt2|(?:^|[/-])(?:flan-|m)?t5-|(?:^|/)m?bart-")
"""How the names of published weights of such families read."""
_OTHER_WEIGHTS = re.compile(r"albert|eurobert|modern-?bert|nomic|neobert|cosmos")
"""Those that read alike and drop nothing by default."""


def makes_network(name: str) -> bool:
    """Whether a function or class by its qualified name gives a network: ``transformers.AutoModel.from_pretrained``."""
    if name == _TIMM or name in _SEGMENTATION or name in _EFFICIENTNET:
        return True
    return _TRANSFORMERS_MODEL.fullmatch(name) is not None or _CADENE.fullmatch(name) is not None


def is_ready_made(name: str) -> bool:
    """Whether a module by its qualified name is a whole network, with weights, of torchvision or of Paddle."""
    return name.startswith(_READY_MADE)


def is_made_as_loaded(name: str) -> bool:
    """Whether what it gives is in evaluation mode, until somebody switches it to training (run: transformers)."""
    found = _TRANSFORMERS_MODEL.fullmatch(name)
    return found is not None and found["maker"] == "from_pretrained"


def is_of_any_family(name: str) -> bool:
    """Whether the name of the weights alone says of which family a network is: ``AutoModel.from_pretrained(path)``."""
    found = _TRANSFORMERS_MODEL.fullmatch(name)
    return found is not None and found["class"].startswith("Auto")


def depends_on_mode(name: str, weights: str | None) -> bool | None:
    """Whether such a network has layers that ask for their mode, told its name or its weights'; ``None``: not known.

    What timm builds by a name that nobody in sight says is taken for one that has, as nearly all do that are trained.
    """
    if name == _TIMM:
        family = _TIMM_FAMILY.match(weights or "")
        is_other = family is not None and (family[1] in _WITHOUT_MODE or "_gn" in (weights or ""))
        return None if is_other else True
    if not name.startswith("transformers."):
        return makes_network(name) or None
    found = _TRANSFORMERS_MODEL.fullmatch(name)
    if found is None:
        return None
    if not found["class"].startswith("Auto"):
        return _DROPPING.fullmatch(found["class"]) is not None or None
    if weights is None or _OTHER_WEIGHTS.search(weights.lower()):
        return None
    return _DROPPING_WEIGHTS.search(weights.lower()) is not None or None
