"""A stand-in for the part of vLLM 0.33 that pagoda.vllm uses, where vLLM is not installed: the same
names and signatures, without behaviour. test_vllm.py compares it with vLLM where that is there."""

import enum
import sys
import types
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class AttentionType(str, enum.Enum):
    DECODER = "decoder"
    ENCODER = "encoder"
    ENCODER_ONLY = "encoder_only"
    ENCODER_DECODER = "encoder_decoder"


class AttentionCGSupport(enum.Enum):
    ALWAYS = 3
    UNIFORM_BATCH = 2
    UNIFORM_SINGLE_TOKEN_DECODE = 1
    NEVER = 0


class AttentionBackend:
    supported_dtypes: list = []
    supported_kv_cache_dtypes: list = []
    forward_includes_kv_cache_update = True

    @staticmethod
    def get_name(): ...
    @staticmethod
    def get_impl_cls(): ...
    @staticmethod
    def get_builder_cls(): ...
    @classmethod
    def supports_head_size(cls, head_size): ...
    @classmethod
    def supports_kv_cache_dtype(cls, kv_cache_dtype):
        return kv_cache_dtype is None or kv_cache_dtype in cls.supported_kv_cache_dtypes

    @classmethod
    def supports_sink(cls): ...
    @classmethod
    def supports_sliding_window(cls): ...
    @classmethod
    def supports_per_head_quant_scales(cls): ...
    @classmethod
    def supports_batch_invariance(cls): ...
    @classmethod
    def supports_compute_capability(cls, capability): ...


class AttentionMetadataBuilder(Generic[T]):
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.kv_cache_spec, self.layer_names = kv_cache_spec, layer_names
        self.vllm_config, self.device = vllm_config, device

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False): ...
    def build_for_cudagraph_capture(self, common_attn_metadata): ...
    def update_block_table(self, metadata, blk_table, slot_mapping): ...
    def update_draft_decode_metadata(self, metadata): ...


class AttentionImpl(Generic[T]):
    def __init__(self, num_heads, head_size, scale, num_kv_heads=None, alibi_slopes=None,
                 sliding_window=None, kv_cache_dtype="auto", logits_soft_cap=None,
                 attn_type=AttentionType.DECODER, kv_sharing_target_layer_name=None):  # fmt: skip
        ...

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output,
                output_scale=None, output_block_scale=None):  # fmt: skip
        ...


@dataclass
class CommonAttentionMetadata:
    query_start_loc: Any
    query_start_loc_cpu: Any
    seq_lens: Any
    num_reqs: int
    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    block_table_tensor: Any
    slot_mapping: Any
    causal: Any = True
    encoder_seq_lens: Any = None
    mm_req_doc_ranges: Any = None
    rswa_prefix_lens: Any = None


class AttentionBackendEnum:
    """vLLM's is an Enum that grows; its values are paths of classes."""

    __members__: dict = {}  # noqa: RUF012

    @classmethod
    def register(cls, name, class_path):
        if name in cls.__members__:
            raise ValueError(f"Backend {name} already exists")
        cls.__members__[name] = class_path


def register_backend(backend, class_path=None, is_mamba=False):
    if backend not in AttentionBackendEnum.__members__.values():
        AttentionBackendEnum.register(backend, class_path)


def install():
    """Makes `import vllm...` find this."""
    modules = {
        name: types.ModuleType(name)
        for name in ("vllm", "vllm.envs", "vllm.v1", "vllm.v1.attention",
                     "vllm.v1.attention.backend", "vllm.v1.attention.backends",
                     "vllm.v1.attention.backends.registry")
    }  # fmt: skip
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    modules["vllm.envs"].VLLM_BATCH_INVARIANT = False
    for cls in (AttentionType, AttentionCGSupport, AttentionBackend, AttentionMetadataBuilder,
                AttentionImpl, CommonAttentionMetadata):  # fmt: skip
        setattr(modules["vllm.v1.attention.backend"], cls.__name__, cls)
    registry = modules["vllm.v1.attention.backends.registry"]
    registry.AttentionBackendEnum, registry.register_backend = (
        AttentionBackendEnum,
        register_backend,
    )
    sys.modules.update(modules)
