# SPDX-License-Identifier: Apache-2.0
"""Networks of torchvision, timm and transformers in small configurations with random weights.

A network is made by a function without arguments; its inputs by one of a batch and a length. The
dimensions in which inputs of two batches and lengths differ are the dynamic ones.
"""

import dataclasses
import functools
import importlib
from collections.abc import Callable

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Network:
    name: str
    package: str  # that it needs beside PyTorch, or ""
    make: Callable
    inputs: Callable  # (batch, length) -> tuple of tensors

    def model(self):
        """The network with the same random weights every time. Those that begin as zeros, and
        statistics of batches, are random as well: what they do shows in the results."""
        torch.manual_seed(0)
        model = self.make().eval()
        with torch.no_grad():
            for tensor in model.parameters():
                if tensor.dim() > 1 and not tensor.any():
                    tensor.normal_(0, 0.05)
            for layer in model.modules():
                if getattr(layer, "running_mean", None) is not None:
                    layer.running_mean.normal_(0, 0.1)
                    layer.running_var.uniform_(0.5, 1.5)
        return model


NETWORKS: dict[str, Network] = {}


def network(name, package, inputs, make):
    NETWORKS[name] = Network(name, package, make, inputs)


@functools.cache
def has(package):
    """Whether a package can be imported."""
    _declare_torchvision()  # the others import it
    try:
        return not package or bool(importlib.import_module(package))
    except (ImportError, RuntimeError):
        return False


@functools.cache
def _declare_torchvision():
    """Its compiled operators may not load beside this PyTorch: then their names must exist."""
    try:
        return importlib.import_module("torchvision")
    except ImportError:
        return None
    except RuntimeError:  # an operator that does not exist
        pass
    library = torch.library.Library("torchvision", "FRAGMENT")
    for op in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, op):
            library.define(f"{op}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def image(size, channels=3):
    return lambda batch, _: (torch.randn(batch, channels, size, size),)


def tokens(batch, length):
    return (torch.randint(3, 60, (batch, length)),)


# ---- torchvision --------------------------------------------------------------------------------
def vision(name, size=64, function=None, **options):
    def make():
        models = importlib.import_module("torchvision.models")
        return getattr(models, function or name)(weights=None, num_classes=10, **options)

    network(name, "torchvision", image(size), make)


for _name in ("resnet18", "resnet50", "resnext50_32x4d", "vgg11", "densenet121", "squeezenet1_1",
              "shufflenet_v2_x0_5", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5",
              "efficientnet_b0", "regnet_y_400mf", "convnext_tiny"):  # fmt: skip
    vision(_name)
vision("googlenet", aux_logits=False, init_weights=False)
vision("inception_v3", size=75, aux_logits=False, init_weights=False)


def _submodule(name):
    return importlib.import_module(f"torchvision.models.{name}")


def _vit():
    return _submodule("vision_transformer").VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64
    )


def _swin(version):
    swin = _submodule("swin_transformer")
    options = {} if version == 1 else {
        "block": swin.SwinTransformerBlockV2, "downsample_layer": swin.PatchMergingV2
    }  # fmt: skip
    return swin.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10, **options)


def _maxvit():
    return _submodule("maxvit").MaxVit(
        input_size=(64, 64), stem_channels=16, partition_size=2, block_channels=[16, 32],
        block_layers=[1, 1], head_dim=8, stochastic_depth_prob=0.0, num_classes=10
    )  # fmt: skip


def _mvit():
    mvit = _submodule("video.mvit")
    block = functools.partial(mvit.MSBlockConfig, kernel_q=[3, 3, 3], kernel_kv=[3, 3, 3])
    blocks = [
        block(1, 16, 32, stride_q=[1, 1, 1], stride_kv=[1, 2, 2]),
        block(2, 32, 32, stride_q=[1, 2, 2], stride_kv=[1, 1, 1]),
    ]
    return mvit.MViT(spatial_size=(32, 32), temporal_size=4, block_setting=blocks,
                     residual_pool=True, residual_with_cls_embed=False, rel_pos_embed=True,
                     proj_after_attn=True, num_classes=10)  # fmt: skip


def _segmentation(name):
    return lambda: getattr(_submodule("segmentation"), name)(
        weights=None, weights_backbone=None, num_classes=5
    )


def _raft():
    raft = _submodule("optical_flow").raft_small(weights=None)

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.raft = raft

        def forward(self, first, second):
            return self.raft(first, second, num_flow_updates=2)[-1]

    return Last()


network("vit", "torchvision", image(32), _vit)
network("swin", "torchvision", image(64), lambda: _swin(1))
network("swin_v2", "torchvision", image(64), lambda: _swin(2))
network("maxvit", "torchvision", image(64), _maxvit)
network("deeplabv3", "torchvision", image(64), _segmentation("deeplabv3_mobilenet_v3_large"))
network("lraspp", "torchvision", image(64), _segmentation("lraspp_mobilenet_v3_large"))
network("r3d_18", "torchvision", lambda b, _: (torch.randn(b, 3, 4, 32, 32),),
        lambda: _submodule("video").r3d_18(weights=None, num_classes=10))  # fmt: skip
network("mvit", "torchvision", lambda b, _: (torch.randn(b, 3, 4, 32, 32),), _mvit)
network("raft", "torchvision", lambda b, _: (torch.randn(b, 3, 128, 128),) * 2, _raft)


# ---- timm ---------------------------------------------------------------------------------------
def timm_model(name, model, size, **options):
    def make():
        return importlib.import_module("timm").create_model(model, num_classes=10, **options)

    network(name, "timm", image(size), make)


timm_model("mlp_mixer", "mixer_s32_224", 64, img_size=64)
timm_model("levit", "levit_128s", 64, img_size=64)
timm_model("fastvit", "fastvit_t8", 64)
timm_model("hrnet", "hrnet_w18_small", 64)


# ---- transformers -------------------------------------------------------------------------------
class Results(nn.Module):
    """The tensors of a model's result."""

    def __init__(self, model, names, **options):
        super().__init__()
        self.model, self.names, self.options = model, names, options

    def forward(self, *args):
        named = dict(zip(self.names, args, strict=True))
        result = self.model(**named, **self.options, return_dict=False)
        return [item for item in result if isinstance(item, torch.Tensor)]


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "vocab_size": 64, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2}  # fmt: skip


def language(name, kind=None, inputs=tokens, names=("input_ids",), auto="AutoModel", use=None,
             **options):  # fmt: skip
    def make():
        transformers = importlib.import_module("transformers")
        config = transformers.AutoConfig.for_model(kind or name, **(SMALL | options))
        model = getattr(transformers, auto).from_config(config)
        return Results(model, names, **(use or {}))

    network(name, "transformers", inputs, make)


def masked(batch, length):
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length - 2 :] = 0
    return (*tokens(batch, length), mask)


MASKED = {"inputs": masked, "names": ("input_ids", "attention_mask")}
DECODER = {"auto": "AutoModelForCausalLM", "use": {"use_cache": False}}
GROUPED = DECODER | {"num_key_value_heads": 2}

language("bert", **MASKED)
language("roberta", **MASKED)
language("albert", **MASKED, embedding_size=16)
language("deberta_v2", "deberta-v2", **MASKED, relative_attention=True, pos_att_type=["p2c", "c2p"],
         max_relative_positions=16)  # fmt: skip
language("xlnet", **MASKED, d_model=32, n_layer=2, n_head=4, d_inner=64, use={"use_mems": False})
language("fnet")
language("gpt2", **DECODER, n_positions=64)
language("gpt_neox", **DECODER)
language("opt", **DECODER, ffn_dim=64, word_embed_proj_dim=32)
language("bloom", **DECODER)
language("llama", **GROUPED)
language("mistral", **GROUPED)
language("qwen2", **GROUPED)
language("qwen3", **GROUPED, head_dim=8)
language("phi3", **GROUPED)
language("gemma2", **GROUPED, head_dim=8)
language("falcon", **DECODER)
language("mixtral", **GROUPED, num_local_experts=4)
language("mamba", **DECODER, state_size=8)
language("mamba2", **DECODER, state_size=8, num_heads=4, head_dim=16, n_groups=1, chunk_size=4)


def both_sides(batch, length):
    return (*tokens(batch, length), *tokens(batch, 5))


SEQUENCES = {"inputs": both_sides, "names": ("input_ids", "decoder_input_ids"),
             "use": {"use_cache": False}}  # fmt: skip
language("t5", **SEQUENCES, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
         decoder_start_token_id=0)  # fmt: skip
language("bart", **SEQUENCES, d_model=32, encoder_layers=2, decoder_layers=2,
         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
         decoder_ffn_dim=64, decoder_start_token_id=1)  # fmt: skip
language("whisper", inputs=lambda b, _: (torch.randn(b, 8, 64), *tokens(b, 5)),
         names=("input_features", "decoder_input_ids"), use={"use_cache": False}, d_model=32,
         encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
         encoder_ffn_dim=64, decoder_ffn_dim=64, num_mel_bins=8, max_source_positions=32,
         decoder_start_token_id=1)  # fmt: skip
language("wav2vec2", inputs=lambda b, n: (torch.randn(b, 400 + 20 * n),), names=("input_values",),
         conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 4), num_feat_extract_layers=2,
         num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2)  # fmt: skip


def pixels(size):
    return {"inputs": image(size), "names": ("pixel_values",), "image_size": size}


def text_and_image(batch, length):
    return (*tokens(batch, length), torch.randn(batch, 3, 32, 32))


def pair(name, kind):
    towers = {key: value for key, value in SMALL.items() if key != "pad_token_id"}
    language(name, kind, inputs=text_and_image, names=("input_ids", "pixel_values"),
             text_config=towers | {"eos_token_id": 2, "projection_dim": 16},
             vision_config=towers | {"image_size": 32, "patch_size": 8, "projection_dim": 16},
             projection_dim=16)  # fmt: skip


pair("clip", "clip")
pair("siglip", "siglip")
language("segformer", **pixels(64), num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1],
         hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2],
         num_attention_heads=[2, 4])  # fmt: skip
language("beit", **pixels(32), patch_size=8, use_relative_position_bias=True)


# ---- of our own ---------------------------------------------------------------------------------
class UNet(nn.Module):
    """Two levels down, two up, with the finer ones carried over."""

    def __init__(self, width=8):
        super().__init__()

        def level(inputs, outputs):
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
            )

        self.down = nn.ModuleList([level(3, width), level(width, 2 * width)])
        self.bottom = level(2 * width, 4 * width)
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(2 * n, n, 2, stride=2) for n in (2 * width, width)
        )
        self.merge = nn.ModuleList(level(2 * n, n) for n in (2 * width, width))

    def forward(self, x):
        kept = []
        for level in self.down:
            x = level(x)
            kept.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([kept.pop(), up(x)], 1))
        return x


class DLRM(nn.Module):
    """Dense features and embedding bags, whose products meet in a last perceptron."""

    def __init__(self, tables=3, width=8):
        super().__init__()
        self.dense = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, width))
        self.tables = nn.ModuleList(nn.EmbeddingBag(64, width, mode="sum") for _ in range(tables))
        rows, columns = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)
        self.top = nn.Sequential(nn.Linear(width + len(rows), 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense, indices):
        x = self.dense(dense)
        features = [x] + [table(indices[:, i]) for i, table in enumerate(self.tables)]
        features = torch.stack(features, 1)
        products = features @ features.mT
        return torch.sigmoid(self.top(torch.cat([x, products[:, self.rows, self.columns]], 1)))


def sequence(batch, length):
    return (torch.randn(batch, length, 12),)


network("unet", "", image(32), UNet)
network("dlrm", "", lambda b, _: (torch.randn(b, 13), torch.randint(0, 64, (b, 3, 4))), DLRM)
for _kind in (nn.LSTM, nn.GRU):
    network(_kind.__name__.lower(), "", lambda b, _: sequence(b, 7),
            functools.partial(_kind, 12, 16, num_layers=2, batch_first=True))  # fmt: skip
