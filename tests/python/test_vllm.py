"""vLLM's attention backend on its interface: that of vLLM where it is installed, a stand-in of the
same signatures elsewhere."""

import importlib.metadata
import importlib.util
import inspect
import math
import types

import pytest

torch = pytest.importorskip("torch")
import grids  # noqa: E402
import vllm_interface  # noqa: E402
from grids import DEVICE, on_device  # noqa: E402

import pagoda  # noqa: E402
import pagoda.vllm  # noqa: E402

HAS_VLLM = importlib.util.find_spec("vllm") is not None
if not HAS_VLLM:
    vllm_interface.install()
import vllm.envs  # noqa: E402
from vllm.v1.attention import backend as interface  # noqa: E402
from vllm.v1.attention.backends import registry  # noqa: E402

import pagoda.vllm_backend  # noqa: E402
from pagoda.vllm_backend import PagodaBackend, PagodaImpl, PagodaMetadataBuilder  # noqa: E402

HEADS, KV_HEADS, DIM, BLOCK = 6, 2, 64, 16
CAPACITY = 128  # tokens of the longest sequence
DTYPE = torch.bfloat16


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """vLLM's constructor asks for its process groups."""
    if HAS_VLLM:
        monkeypatch.setattr(
            "vllm.distributed.parallel_state.get_dcp_world_size_and_rank", lambda *a: (1, 0)
        )


class Batch:
    """Requests of `lengths` tokens, of which the last `rows` are queries, in shuffled blocks."""

    def __init__(self, rows, lengths, dtype=DTYPE, seed=0, padding=0, strides="HND"):
        g = torch.Generator().manual_seed(seed)
        self.rows, self.lengths = rows, lengths
        counts = [-(-n // BLOCK) for n in lengths]
        order = torch.randperm(sum(counts) + 2, generator=g).to(torch.int32)
        # Logical shape [blocks, heads, block, 2 * dim]; in memory heads or tokens come first.
        shape = (len(order), KV_HEADS, BLOCK, 2 * DIM)
        if strides == "NHD":
            shape = (len(order), BLOCK, KV_HEADS, 2 * DIM)
        self.cache = torch.full(shape, math.nan).to(dtype)
        if strides == "NHD":
            self.cache = self.cache.transpose(1, 2)
        width = CAPACITY // BLOCK
        table = torch.zeros(len(rows), width, dtype=torch.int32)
        self.kv, slots, first = [], [], 0
        new_k, new_v = [], []
        for b, n in enumerate(lengths):
            table[b, : counts[b]] = order[first : first + counts[b]]
            first += counts[b]
            k, v = (torch.randn(n, KV_HEADS, DIM, generator=g).to(dtype) for _ in "kv")
            self.kv.append((k, v))
            for i in range(n):
                block, slot = int(table[b, i // BLOCK]), i % BLOCK
                if i < n - rows[b]:
                    self.cache[block, :, slot] = torch.cat((k[i], v[i]), -1)
                else:
                    slots.append(block * BLOCK + slot)
            new_k.append(k[n - rows[b] :])
            new_v.append(v[n - rows[b] :])
        total = sum(rows) + padding
        nan = torch.full((padding, KV_HEADS, DIM), math.nan)
        self.key, self.value = (torch.cat((*(t.to(DTYPE) for t in x), nan.to(DTYPE)))
                                for x in (new_k, new_v))
        self.query = torch.randn(total, HEADS, DIM, generator=g).to(DTYPE)
        self.slots = torch.tensor(slots + [-1] * padding)
        self.output = torch.full_like(self.query, math.nan)
        offsets = torch.tensor([0, *rows]).cumsum(0).to(torch.int32)
        self.common = interface.CommonAttentionMetadata(
            query_start_loc=on_device(offsets),
            query_start_loc_cpu=offsets,
            seq_lens=on_device(torch.tensor(lengths, dtype=torch.int32)),
            num_reqs=len(rows),
            num_actual_tokens=total,
            max_query_len=max(rows),
            max_seq_len=CAPACITY,  # vLLM may know no better
            block_table_tensor=on_device(table),
            slot_mapping=on_device(self.slots),
        )
        for name in ("cache", "key", "value", "query", "output"):
            setattr(self, name, on_device(getattr(self, name)))

    def run(self, impl, metadata=None, layer=None):
        impl.do_kv_cache_update(layer, self.key, self.value, self.cache, self.common.slot_mapping)
        metadata = builder().build(0, self.common) if metadata is None else metadata
        output = self.output.view(len(self.query), -1)
        assert impl.forward(layer, self.query, self.key, self.value, self.cache, metadata,
                            output) is output  # fmt: skip
        return self.output.cpu()

    def check(self, out, left=-1, causal=True, right=-1, **scores):
        at = 0
        for (k, v), rows in zip(self.kv, self.rows):
            seen = grids.visible_keys(rows, len(k), left, 0 if causal else right)
            q = self.query[at : at + rows].cpu()
            expected, _ = grids.attention(q, k, v, torch.float64, visible=seen, **scores)
            same, _ = grids.attention(q, k, v, DTYPE, visible=seen, **scores)
            grids.assert_within_rule(out[at : at + rows], expected, same, (self.rows, scores))
            at += rows
        assert (out[at:] == 0).all()


def builder():
    config = types.SimpleNamespace(model_config=types.SimpleNamespace(max_model_len=CAPACITY))
    return PagodaMetadataBuilder(None, ["layer"], config, torch.device(DEVICE))


def impl(**named):
    return PagodaImpl(HEADS, DIM, 1 / math.sqrt(DIM), KV_HEADS, **named)


MIXED = ([1, 7, 1, 20], [33, 7, 90, 41])


@pytest.mark.parametrize("strides", ["HND", "NHD"])
@pytest.mark.parametrize("padding", [0, 5])
def test_a_mixed_batch_is_appended_and_attended(strides, padding):
    batch = Batch(*MIXED, strides=strides, padding=padding)
    batch.check(batch.run(impl()))
    filled = batch.cache.float().cpu()
    assert torch.isfinite(filled).all(-1).all(1).sum() == sum(batch.lengths)


def test_windows_soft_caps_sinks_slopes_and_non_causal_batches():
    sinks = torch.linspace(-1, 2, HEADS).to(DTYPE)
    batch = Batch(*MIXED)
    out = batch.run(impl(sliding_window=9, logits_soft_cap=3.0, sinks=on_device(sinks)))
    batch.check(out, left=8, softcap=3.0, sinks=sinks)
    batch = Batch([1, 1], [9, 40])
    slopes = [0.5 ** (h + 1) for h in range(HEADS)]
    batch.check(batch.run(impl(alibi_slopes=slopes)), slopes=torch.tensor(slopes))
    batch = Batch(*MIXED)
    batch.common.causal = False
    batch.check(batch.run(impl()), causal=False)
    batch = Batch(*MIXED)
    batch.common.causal = False
    batch.check(batch.run(impl(sliding_window=9)), left=8, causal=False, right=8)
    with pytest.raises(pagoda.Unsupported, match="^alibi_slopes is given; needs causal"):
        batch.run(impl(alibi_slopes=slopes))


def test_sinks_that_are_loaded_again_are_used():
    sinks = on_device(torch.linspace(-1, 2, HEADS).to(DTYPE))
    layer = impl(sinks=sinks)
    for factor in (1, -2):
        sinks.data.mul_(factor)
        batch = Batch(*MIXED)
        batch.check(batch.run(layer), sinks=sinks.cpu())


@pytest.mark.parametrize("per_head", [False, True])
def test_fp8_caches_with_the_scales_of_the_layer(per_head):
    shape = (KV_HEADS,) if per_head else ()
    scales = [torch.full(shape, s) * torch.linspace(1, 2, KV_HEADS if per_head else 1).view(shape)
              for s in (0.5, 0.25)]  # fmt: skip
    layer = types.SimpleNamespace(_k_scale=on_device(scales[0]), _v_scale=on_device(scales[1]))
    batch = Batch(*MIXED, dtype=torch.float8_e4m3fn)
    batch.key, batch.value = (
        (x.float() * on_device(s).view(-1, 1)).to(DTYPE)
        for x, s in zip((batch.key, batch.value), scales)
    )
    batch.cache = batch.cache.view(torch.uint8)  # as vLLM has it
    out = batch.run(impl(kv_cache_dtype="fp8"), layer=layer)
    batch.kv = [[x.float() * s.view(-1, 1) for x, s in zip(pair, scales)] for pair in batch.kv]
    at = 0
    for (k, v), rows in zip(batch.kv, batch.rows):
        seen = grids.visible_keys(rows, len(k), right=0)
        expected, _ = grids.attention(
            batch.query[at : at + rows].cpu(), k, v, torch.float64, visible=seen
        )
        assert (out[at : at + rows].double() - expected).abs().max() < 0.03
        at += rows


def test_batch_invariance_of_bits(monkeypatch):
    """The same request alone and in a batch, with VLLM_BATCH_INVARIANT."""
    monkeypatch.setattr(vllm.envs, "VLLM_BATCH_INVARIANT", True, raising=False)
    original, asked = pagoda.vllm_backend.ops.attention, []
    monkeypatch.setattr(
        pagoda.vllm_backend.ops,
        "attention",
        lambda *a, **n: asked.append(n.get("is_batch_invariant")) or original(*a, **n),
    )
    layer = impl()
    batch = Batch(*MIXED)
    whole = batch.run(layer)
    assert asked == [True]  # short sequences may have the same bits without it
    at = 0
    for b, rows in enumerate(batch.rows):
        common = batch.common
        alone = builder().build(0, interface.CommonAttentionMetadata(
            query_start_loc=on_device(torch.tensor([0, rows], dtype=torch.int32)),
            query_start_loc_cpu=torch.tensor([0, rows]), seq_lens=common.seq_lens[b : b + 1],
            num_reqs=1, num_actual_tokens=rows, max_query_len=rows, max_seq_len=CAPACITY,
            block_table_tensor=common.block_table_tensor[b : b + 1],
            slot_mapping=common.slot_mapping[at : at + rows],
        ))  # fmt: skip
        rows_of = slice(at, at + rows)
        out = torch.full_like(batch.output[rows_of], math.nan)
        layer.forward(None, batch.query[rows_of], None, None, batch.cache, alone, out)
        assert torch.equal(out.cpu(), whole[rows_of]), b
        at += rows
    assert PagodaBackend.supports_batch_invariance()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="captures a CUDA graph")
def test_one_captured_graph_serves_other_batches():
    first, second = Batch(*MIXED, padding=3), Batch([5, 1, 2, 1], [61, 90, 2, 18], seed=4)
    layer, common = impl(), first.common
    metadata = builder().build_for_cudagraph_capture(common)
    run = lambda: layer.forward(  # noqa: E731
        None, first.query, None, None, cache, metadata, first.output
    )
    second.run(layer)
    cache = torch.zeros_like(second.cache)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    cache.copy_(second.cache)
    first.query[: len(second.query)] = second.query
    for name in ("query_start_loc", "seq_lens", "block_table_tensor"):
        getattr(common, name).copy_(getattr(second.common, name))
    first.output.fill_(math.nan)
    graph.replay()
    torch.cuda.synchronize()
    second.check(first.output.cpu())


def test_metadata_reads_nothing_on_the_device_and_follows_block_tables():
    batch = Batch(*MIXED)
    assert builder()._cudagraph_support is interface.AttentionCGSupport.ALWAYS
    metadata = builder().build(0, batch.common)
    assert metadata.seq_lens is batch.common.seq_lens and not metadata.may_have_padding
    assert builder().build_for_cudagraph_capture(batch.common).may_have_padding
    other = on_device(torch.zeros(4, 8, dtype=torch.int32))
    moved = builder().update_block_table(metadata, other, batch.common.slot_mapping)
    assert moved.block_table is other and metadata.block_table is not other
    batch.run(impl(), metadata)


def test_the_memory_profile_run_and_refusals():
    batch = Batch(*MIXED)
    out = impl().forward(None, batch.query, None, None, batch.cache, None, batch.output)
    assert (out == 0).all()
    metadata = builder().build(0, batch.common)
    arguments = (None, batch.query, None, None, batch.cache, metadata, batch.output)
    for name in ("output_scale", "output_block_scale"):
        with pytest.raises(pagoda.Unsupported) as error:
            impl().forward(*arguments, **{name: torch.ones(1)})
        assert error.value.field == name
    for named, field in (({"attn_type": "encoder_only"}, "attn_type"),
                         ({"kv_cache_dtype": "fp8_e5m2"}, "kv_cache_dtype"),
                         ({"use_alibi_sqrt": True}, "use_alibi_sqrt")):  # fmt: skip
        with pytest.raises(pagoda.Unsupported) as error:
            impl(**named)
        assert error.value.field == field
    with pytest.raises(pagoda.InvalidArgument, match=r"^kv_cache.shape is \(2,"):
        impl().forward(*arguments[:4], batch.cache[:2, :1], *arguments[5:])
    for name in ("mm_req_doc_ranges", "rswa_prefix_lens"):
        changed = Batch(*MIXED).common
        setattr(changed, name, torch.zeros(1))
        with pytest.raises(pagoda.Unsupported) as error:
            builder().build(0, changed)
        assert error.value.field == name
    batch.common.causal = torch.ones(4, dtype=torch.bool)
    with pytest.raises(pagoda.Unsupported, match="^causal differs"):
        builder().build(0, batch.common)


def test_the_entry_point_registers_the_backend():
    (entry,) = [e for e in importlib.metadata.entry_points(group="vllm.general_plugins")
                if e.name == "pagoda"]  # fmt: skip
    for _ in range(2):
        entry.load()()
    if HAS_VLLM:
        assert registry.AttentionBackendEnum["PAGODA"].get_class() is PagodaBackend
        reasons = PagodaBackend.validate_configuration(
            head_size=128, dtype=DTYPE, kv_cache_dtype="fp8", block_size=16, use_mla=False,
            has_sink=True, use_sparse=False, use_mm_prefix=False, use_per_head_quant_scales=True,
            device_capability=types.SimpleNamespace(major=9), attn_type="decoder",
            has_sliding_window=True, use_batch_invariant=True,
        )  # fmt: skip
        assert reasons == []
        assert not PagodaBackend.supports_head_size(100)
    else:
        path = registry.AttentionBackendEnum.__members__["PAGODA"]
        assert path == f"{PagodaBackend.__module__}.{PagodaBackend.__name__}"
    assert PagodaBackend.get_name() == "PAGODA" and PagodaBackend.get_impl_cls() is PagodaImpl
    assert PagodaBackend.get_builder_cls() is PagodaMetadataBuilder


@pytest.mark.skipif(not HAS_VLLM, reason="vLLM is not installed: the stand-in was tested with")
def test_the_stand_in_has_the_signatures_of_vllm():
    for cls in (vllm_interface.AttentionBackend, vllm_interface.AttentionMetadataBuilder,
                vllm_interface.AttentionImpl, vllm_interface.CommonAttentionMetadata):  # fmt: skip
        of_vllm = getattr(interface, cls.__name__)
        for name, member in vars(cls).items():
            if inspect.isfunction(getattr(cls, name)) and cls.__name__[0] == "A":
                expected = inspect.signature(getattr(of_vllm, name))
                assert list(inspect.signature(member).parameters) == list(expected.parameters), name
    fields = inspect.signature(interface.CommonAttentionMetadata).parameters
    mine = inspect.signature(vllm_interface.CommonAttentionMetadata).parameters
    assert mine.keys() <= fields.keys()
    for name in ("AttentionType", "AttentionCGSupport"):
        members = getattr(interface, name).__members__
        assert {n: m.value for n, m in members.items()} == {
            n: m.value for n, m in getattr(vllm_interface, name).__members__.items()
        }
    for backend in (PagodaImpl, PagodaMetadataBuilder, PagodaBackend):
        assert not getattr(backend, "__abstractmethods__", None)
