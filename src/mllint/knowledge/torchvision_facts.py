"""What torchvision has, seen by running 0.29.2 (builders called on images without pretrained weights).

Builders stand among the classes: calling one gives a module, as calling a class does.
"""

import re
from collections.abc import Mapping

from mllint.knowledge.schema import Class, Function


def _words(text: str) -> list[str]:
    return text.split()


_TENSOR_BUILDERS = """
    alexnet convnext_base convnext_large convnext_small convnext_tiny densenet121 densenet161 densenet169 densenet201
    efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_b5 efficientnet_b6
    efficientnet_b7 efficientnet_v2_l efficientnet_v2_m efficientnet_v2_s maxvit_t mnasnet0_5 mnasnet0_75 mnasnet1_0
    mnasnet1_3 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_16gf regnet_x_1_6gf regnet_x_32gf
    regnet_x_3_2gf regnet_x_400mf regnet_x_800mf regnet_x_8gf regnet_y_128gf regnet_y_16gf regnet_y_1_6gf
    regnet_y_32gf regnet_y_3_2gf regnet_y_400mf regnet_y_800mf regnet_y_8gf resnet101 resnet152 resnet18 resnet34
    resnet50 resnext101_32x8d resnext101_64x4d resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0
    shufflenet_v2_x1_5 shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 swin_b swin_s swin_t swin_v2_b swin_v2_s
    swin_v2_t vgg11 vgg11_bn vgg13 vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn vit_b_16 vit_b_32 vit_h_14 vit_l_16
    vit_l_32 wide_resnet101_2 wide_resnet50_2 video.mc3_18 video.mvit_v1_b video.mvit_v2_s video.r2plus1d_18
    video.r3d_18 video.s3d video.swin3d_b video.swin3d_s video.swin3d_t
"""
# Named tuples while training, dictionaries, lists of dictionaries.
_OTHER_BUILDERS = """
    detection.fasterrcnn_mobilenet_v3_large_320_fpn detection.fasterrcnn_mobilenet_v3_large_fpn
    detection.fasterrcnn_resnet50_fpn detection.fasterrcnn_resnet50_fpn_v2 detection.fcos_resnet50_fpn
    detection.keypointrcnn_resnet50_fpn detection.maskrcnn_resnet50_fpn detection.maskrcnn_resnet50_fpn_v2
    detection.retinanet_resnet50_fpn detection.retinanet_resnet50_fpn_v2 detection.ssd300_vgg16
    detection.ssdlite320_mobilenet_v3_large googlenet inception_v3 optical_flow.raft_large optical_flow.raft_small
    segmentation.deeplabv3_mobilenet_v3_large segmentation.deeplabv3_resnet101 segmentation.deeplabv3_resnet50
    segmentation.fcn_resnet101 segmentation.fcn_resnet50 segmentation.lraspp_mobilenet_v3_large
"""
_TENSOR_MODELS = """
    AlexNet ConvNeXt DenseNet EfficientNet MNASNet MaxVit MobileNetV2 MobileNetV3 RegNet ResNet ShuffleNetV2
    SqueezeNet SwinTransformer VGG VisionTransformer video.MViT video.S3D video.SwinTransformer3d video.VideoResNet
"""
_OTHER_MODELS = """
    GoogLeNet Inception3 detection.FCOS detection.FasterRCNN detection.KeypointRCNN detection.MaskRCNN
    detection.RetinaNet segmentation.DeepLabV3 segmentation.FCN segmentation.LRASPP
"""
_TENSOR_LAYERS = """
    Conv2dNormActivation Conv3dNormActivation DeformConv2d DropBlock2d DropBlock3d FrozenBatchNorm2d MLP
    MultiScaleRoIAlign PSRoIAlign PSRoIPool Permute RoIAlign RoIPool SqueezeExcitation StochasticDepth
"""
_DATASETS = """
    CIFAR10 CIFAR100 Caltech101 Caltech256 CelebA Cityscapes CocoCaptions CocoDetection DatasetFolder EMNIST FakeData
    FashionMNIST Flickr30k Flickr8k Flowers102 Food101 HMDB51 ImageFolder ImageNet KMNIST Kinetics Kitti LSUN MNIST
    Omniglot OxfordIIITPet PhotoTour Places365 QMNIST SBDataset SBU SEMEION STL10 SVHN StanfordCars UCF101 USPS
    VOCDetection VOCSegmentation VisionDataset WIDERFace
"""

CLASSES: Mapping[str, Class] = {
    **{
        f"torchvision.models.{name}": Class("layer", "* weights progress", "tensor")
        for name in _words(_TENSOR_BUILDERS)
    },
    **{f"torchvision.models.{name}": Class("layer", "* weights progress") for name in _words(_OTHER_BUILDERS)},
    **{f"torchvision.models.{name}": Class("layer", "", "tensor") for name in _words(_TENSOR_MODELS)},
    **{f"torchvision.models.{name}": Class("layer") for name in _words(_OTHER_MODELS)},
    **{f"torchvision.ops.{name}": Class("layer", "", "tensor") for name in _words(_TENSOR_LAYERS)},
    "torchvision.models.get_model": Class("layer", "name"),
    "torchvision.ops.FeaturePyramidNetwork": Class("layer"),
    **{f"torchvision.datasets.{name}": Class("dataset") for name in _words(_DATASETS)},
    "torchvision.transforms.ToTensor": Class("other", "", "tensor"),
    "torchvision.transforms.PILToTensor": Class("other", "", "tensor"),
    "torchvision.transforms.Normalize": Class("other", "mean std inplace", "tensor"),
}

FUNCTIONS: Mapping[str, Function] = {
    "torchvision.utils.make_grid": Function("tensor", "tensor nrow padding normalize value_range scale_each pad_value"),
    "torchvision.utils.save_image": Function("none", "tensor fp format **kwargs"),
    "torchvision.ops.batched_nms": Function("tensor", "boxes scores idxs iou_threshold"),
    "torchvision.ops.box_area": Function("tensor", "boxes fmt"),
    "torchvision.ops.box_convert": Function("tensor", "boxes in_fmt out_fmt"),
    "torchvision.ops.box_iou": Function("tensor", "boxes1 boxes2 fmt"),
    "torchvision.ops.clip_boxes_to_image": Function("tensor", "boxes size"),
    "torchvision.ops.generalized_box_iou": Function("tensor", "boxes1 boxes2"),
    "torchvision.ops.nms": Function("tensor", "boxes scores iou_threshold"),
    "torchvision.ops.remove_small_boxes": Function("tensor", "boxes min_size"),
    "torchvision.transforms.functional.to_tensor": Function("tensor", "pic"),
    "torchvision.transforms.functional.pil_to_tensor": Function("tensor", "pic"),
    "torchvision.transforms.functional.normalize": Function("tensor", "tensor mean std inplace"),
    "torchvision.io.read_image": Function("tensor", "path mode apply_exif_orientation"),
}

_DEFINING_FILE = r"torchvision\.(models(?:\.detection|\.segmentation|\.video)?|ops|datasets)\.[a-z_0-9]+\.(\w+)"


def canonical(name: str) -> str:
    """``torchvision.models.resnet.resnet18`` -> ``torchvision.models.resnet18``; other names as they are."""
    match = re.fullmatch(_DEFINING_FILE, name)
    if match is None or name in CLASSES:
        return name
    shorter = f"torchvision.{match[1]}.{match[2]}"
    return shorter if shorter in CLASSES or shorter in FUNCTIONS else name
