"""Networks that other packages have ready, by their names."""

import pytest

from mllint.knowledge import lookup, networks


@pytest.mark.parametrize(
    ("name", "weights", "depends"),
    [
        ("transformers.BertForSequenceClassification.from_pretrained", None, True),
        ("transformers.BertModel", None, True),
        ("transformers.models.bert.BertModel.from_pretrained", "anything", True),
        ("transformers.GPT2LMHeadModel.from_pretrained", None, True),
        ("transformers.LlamaForCausalLM.from_pretrained", None, None),
        ("transformers.AlbertModel.from_pretrained", None, None),
        ("transformers.AutoModel.from_pretrained", None, None),
        ("transformers.AutoModel.from_pretrained", "bert-base-uncased", True),
        ("transformers.AutoModel.from_pretrained", "someone/SciBERT_cased", True),
        ("transformers.AutoModel.from_pretrained", "google/flan-t5-base", True),
        ("transformers.AutoModel.from_pretrained", "albert-base-v2", None),
        ("transformers.AutoModel.from_pretrained", "someone/ModernBERT-base", None),
        ("transformers.AutoModel.from_pretrained", "someone/model", None),
        ("timm.create_model", None, True),
        ("timm.create_model", "resnet50.a1_in1k", True),
        ("timm.create_model", "tf_efficientnet_b0_ns", True),
        ("timm.create_model", "vit_base_patch16_224", None),
        ("timm.create_model", "hf_hub:timm/convnext_tiny", None),
        ("timm.create_model", "resnet50_gn", None),
        ("pretrainedmodels.se_resnext50_32x4d", None, True),
        ("pretrainedmodels.models.nasnetalarge", None, True),
        ("segmentation_models_pytorch.Unet", None, True),
        ("efficientnet_pytorch.EfficientNet.from_pretrained", None, True),
    ],
)
def test_which_depend_on_their_mode(name: str, weights: str | None, depends: bool | None) -> None:
    function = lookup.function(name)
    assert function is not None
    assert function.returns == "module"
    assert networks.depends_on_mode(name, weights) is depends


@pytest.mark.parametrize(
    "name",
    [
        "transformers.TFBertModel.from_pretrained",
        "transformers.FlaxBertModel.from_pretrained",
        "transformers.BertTokenizer.from_pretrained",
        "transformers.BertConfig",
        "transformers.get_linear_schedule_with_warmup",
        "segmentation_models_pytorch.losses.DiceLoss",
        "pretrainedmodels.pretrained_settings",
        "timm.list_models",
    ],
)
def test_what_is_no_network_of_torch(name: str) -> None:
    assert not networks.makes_network(name)
    assert networks.depends_on_mode(name, "bert-base-uncased") is None


def test_only_loaded_networks_are_in_evaluation_mode() -> None:
    assert networks.is_made_as_loaded("transformers.AutoModel.from_pretrained")
    assert not networks.is_made_as_loaded("transformers.AutoModel.from_config")
    assert not networks.is_made_as_loaded("transformers.BertModel")
    assert not networks.is_made_as_loaded("segmentation_models_pytorch.Unet")
