"""What ``mllint.knowledge.networks`` says of the networks that other packages have ready."""

from typing import Any

import pytest

from mllint.knowledge import networks

pytestmark = pytest.mark.evidence

_SMALL = {
    "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 32,
    "d_model": 8, "d_kv": 8, "d_ff": 8, "n_embd": 8, "n_layer": 1, "n_head": 1, "num_layers": 1, "num_heads": 1,
    "dim": 8, "hidden_dim": 8, "n_layers": 1, "n_heads": 1, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_attention_heads": 1, "decoder_attention_heads": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8,
    "ffn_dim": 8, "word_embed_proj_dim": 8, "embedding_size": 8, "num_key_value_heads": 1, "pad_token_id": 0,
}  # fmt: skip


def _outputs_differ(transformers: Any, torch: Any, family: str) -> bool:
    """Whether a small model gives something else each time in training mode, with the dropout of the default."""
    config_class = getattr(transformers, f"{family}Config")
    known = config_class().to_dict()
    config = config_class(**{name: value for name, value in _SMALL.items() if name in known})
    model = getattr(transformers, f"{family}Model")(config)
    assert model.training
    given = {"input_ids": torch.tensor([[3, 4, 5, 6]])}
    if config.is_encoder_decoder:
        given["decoder_input_ids"] = torch.tensor([[3, 4]])
    torch.manual_seed(0)
    first, second = (model(**given)[0] for _ in range(2))
    model.eval()
    third, fourth = (model(**given)[0] for _ in range(2))
    assert torch.equal(third, fourth)
    return not torch.equal(first, second)


@pytest.mark.parametrize(
    "family", ["Bart", "Bert", "DistilBert", "Electra", "GPT2", "OPT", "Roberta", "T5", "XLMRoberta"]
)
def test_families_of_transformers_that_drop(family: str) -> None:
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    assert networks.depends_on_mode(f"transformers.{family}Model.from_pretrained", None) is True
    assert _outputs_differ(transformers, torch, family)


@pytest.mark.parametrize("family", ["Llama", "Mistral", "ModernBert"])
def test_families_of_transformers_that_drop_nothing(family: str) -> None:
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    assert networks.depends_on_mode(f"transformers.{family}Model.from_pretrained", None) is None
    assert not _outputs_differ(transformers, torch, family)


@pytest.mark.parametrize("name", ["DeepLabV3", "DeepLabV3Plus", "FPN", "Linknet", "MAnet", "PAN", "PSPNet", "Unet"])
def test_networks_for_segmentation_have_batch_normalization(name: str) -> None:
    package, torch = pytest.importorskip("segmentation_models_pytorch"), pytest.importorskip("torch")
    model = getattr(package, name)(encoder_name="resnet18", encoder_weights=None)
    assert model.training
    for taken_out in (model.encoder, model.decoder):
        kinds = (torch.nn.BatchNorm2d, torch.nn.Dropout2d)
        assert any(isinstance(part, kinds) for part in taken_out.modules())
    assert networks.depends_on_mode(f"segmentation_models_pytorch.{name}", None) is True


def test_efficientnet_has_batch_normalization() -> None:
    package, torch = pytest.importorskip("efficientnet_pytorch"), pytest.importorskip("torch")
    model = package.EfficientNet.from_name("efficientnet-b0")
    assert model.training
    assert any(isinstance(part, torch.nn.BatchNorm2d) for part in model.modules())
    assert networks.depends_on_mode("efficientnet_pytorch.EfficientNet.from_name", None) is True


@pytest.mark.parametrize(
    "name", ["resnet18", "mobilenetv3_small_100", "tf_efficientnet_b0", "swin_tiny_patch4_window7_224"]
)
def test_networks_of_timm_that_ask_for_their_mode(name: str) -> None:
    timm = pytest.importorskip("timm")
    model = timm.create_model(name)
    assert model.training
    assert _asks_for_mode(model)
    assert networks.depends_on_mode("timm.create_model", name) is True


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "convnext_atto", "mixer_s32_224", "resnet50_gn"])
def test_networks_of_timm_that_do_not(name: str) -> None:
    timm = pytest.importorskip("timm")
    assert not _asks_for_mode(timm.create_model(name))
    assert networks.depends_on_mode("timm.create_model", name) is None


def _asks_for_mode(model: Any) -> bool:
    """Whether a network has batch normalization, or something that drops more than nothing."""
    kinds = [(type(part).__name__, getattr(part, "p", 0) or getattr(part, "drop_prob", 0)) for part in model.modules()]
    return any("BatchNorm" in kind or (kind.startswith("Drop") and rate) for kind, rate in kinds)


def test_what_pretrainedmodels_builds_is_in_training_mode() -> None:
    package, torch = pytest.importorskip("pretrainedmodels"), pytest.importorskip("torch")
    for name in ("se_resnet50", "alexnet", "squeezenet1_1"):
        model = package.__dict__[name](pretrained=None)
        assert model.training
        kinds = (torch.nn.BatchNorm2d, torch.nn.Dropout)
        assert any(isinstance(part, kinds) for part in model.modules())
