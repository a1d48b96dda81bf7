"""Random-weight models of Transformers: logits and greedy tokens of "pagoda" and "eager"."""

import inspect

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import pagoda  # noqa: E402
import pagoda.transformers  # noqa: E402

from grids import DEVICE  # noqa: E402

VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
    "initializer_range": 0.3,  # so that the tokens before matter
}
MODELS = {
    "llama": (transformers.LlamaConfig, {}),
    "mistral": (transformers.MistralConfig, {"sliding_window": 6}),
    "gemma2": (
        transformers.Gemma2Config,
        {
            "sliding_window": 6,
            "attn_logit_softcapping": 2.0,
            "query_pre_attn_scalar": 24,
            "tie_word_embeddings": False,
        },  # fmt: skip
    ),
    "gpt_oss": (
        transformers.GptOssConfig,
        {"sliding_window": 6, "num_local_experts": 2, "num_experts_per_tok": 1},
    ),
    "qwen3": (transformers.Qwen3Config, {}),
}
# The default, grouped products, is made for bf16 on GPUs; the models are in fp32.
EXPERTS = {"gpt_oss": {"experts_implementation": "eager"}}


@pytest.fixture(autouse=True)
def no_grad():
    pagoda.transformers.register()
    with torch.no_grad():
        yield


@pytest.fixture(params=MODELS)
def models(request):
    """The same weights with both implementations."""
    kind, more = MODELS[request.param]
    pair = []
    for implementation in ("eager", "pagoda"):
        config = kind(**{**SIZES, **more})
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation=implementation, **EXPERTS.get(request.param, {})
        )
        for name, parameter in model.named_parameters():
            if name.endswith("sinks"):
                torch.nn.init.normal_(parameter)
        pair.append(model.to(DEVICE).eval())
    pair[1].load_state_dict(pair[0].state_dict())
    assert pair[1].config._attn_implementation == "pagoda"
    return pair


def prompts(padding):
    """(input_ids, attention_mask) of three prompts of different lengths, or of one length."""
    g = torch.Generator().manual_seed(2)
    ids = torch.randint(2, VOCABULARY, (3, 19), generator=g)
    seen = torch.ones_like(ids)
    if padding != "none":
        for row, count in enumerate((0, 5, 11)):
            side = slice(0, count) if padding == "left" else slice(19 - count, 19)
            ids[row, side], seen[row, side] = 0, 0
    return ids.to(DEVICE), seen.to(DEVICE)


@pytest.mark.parametrize("padding", ["none", "left", "right"])
def test_logits_are_those_of_eager(models, padding):
    ids, seen = prompts(padding)
    expected, got = (m(ids, attention_mask=seen).logits for m in models)
    error = (got - expected).abs()[seen.bool()].max()
    assert error < 2e-4 * expected.abs().max(), error


def test_inference_mode_gives_the_same_logits(models):
    ids, seen = prompts("left")
    expected = models[1](ids, attention_mask=seen).logits
    with torch.inference_mode():
        got = models[1](ids, attention_mask=seen).logits
    assert torch.equal(got, expected)


def test_the_attention_goes_through_pagoda(models, monkeypatch):
    """With another softmax scale in the operator, the logits differ."""
    ids, seen = prompts("none")
    expected = models[1](ids, attention_mask=seen).logits
    original = pagoda.transformers.ops.attention
    calls = []

    def other(q, kv, **arguments):
        calls.append(arguments)
        return original(q, kv, **{**arguments, "softmax_scale": 0.9})

    monkeypatch.setattr(pagoda.transformers.ops, "attention", other)
    got = models[1](ids, attention_mask=seen).logits
    assert len(calls) == 2 and (got - expected).abs().max() > 1e-2


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("padding", ["none", "left"])
def test_greedy_tokens_are_those_of_eager(models, padding, cache):
    ids, seen = prompts(padding)
    tokens = [
        m.generate(
            ids, attention_mask=seen, max_new_tokens=12, do_sample=False, disable_compile=True,
            cache_implementation=None if cache == "dynamic" else "static",
        )
        for m in models
    ]  # fmt: skip
    assert tokens[0].shape == (3, 31) and torch.equal(*tokens)
    assert len(tokens[0][:, 19:].unique()) > 5, "the models repeat one token: nothing is tested"


def test_continuous_batching_gives_the_tokens_of_eager(models, monkeypatch):
    from transformers import AttentionInterface, ContinuousBatchingConfig, GenerationConfig

    ids, _ = prompts("none")
    inputs = [row[: 19 - 4 * i].tolist() for i, row in enumerate(ids)]
    expected = [
        models[0].generate(torch.tensor([row], device=DEVICE), max_new_tokens=10, do_sample=False)
        for row in inputs
    ]
    known = inspect.signature(ContinuousBatchingConfig).parameters  # 5.17 does not switch by itself
    switches = {"auto_switch_to_flash": False, "use_cuda_graph": False}
    switches = {name: value for name, value in switches.items() if name in known}
    before = AttentionInterface._global_mapping["paged|eager"]
    calls = []
    original = pagoda.transformers.ops.attention
    monkeypatch.setattr(
        pagoda.transformers.ops, "attention", lambda *a, **n: calls.append(n) or original(*a, **n)
    )
    pagoda.transformers.register(continuous_batching=True)
    try:
        results = models[0].generate_batch(
            inputs,
            generation_config=GenerationConfig(max_new_tokens=10, do_sample=False, eos_token_id=-1),
            continuous_batching_config=ContinuousBatchingConfig(
                num_blocks=32, max_batch_tokens=64, **switches
            ),
        )
    finally:
        AttentionInterface.register("paged|eager", before)
    tokens = [r.generated_tokens for r in results.values()]
    assert tokens == [row[0, len(i) :].tolist() for row, i in zip(expected, inputs)]
    assert len(calls) >= 2 * 10


class IndexedCache:
    """PagedAttentionCache of Transformers to 5.18, with one layer of 8 slots."""

    def __init__(self):
        self.slots = torch.randn(2, 8, 2, 16, device=DEVICE)

    def update(self, key_states, value_states, layer_idx, read_index, write_index):
        for slots, new in zip(self.slots, (key_states, value_states)):
            slots[write_index[layer_idx]] = new[0].transpose(0, 1)
        return tuple(slots[read_index[layer_idx]] for slots in self.slots)


class KwargsCache(IndexedCache):
    """The one since 5.19."""

    def update(self, key_states, value_states, layer_idx, kwargs):
        indices = {name: kwargs[name] for name in ("read_index", "write_index")}
        both = super().update(key_states, value_states, layer_idx, **indices)
        return tuple(x.transpose(0, 1)[None] for x in both)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", [IndexedCache, KwargsCache])
def test_paged_caches_of_all_versions_are_updated(kind, compiled):
    cache, module = kind(), torch.nn.Module()
    module.layer_idx = 1
    before = cache.slots.clone()
    q, k, v = (torch.randn(1, heads, 3, 16, device=DEVICE) for heads in (4, 2, 2))
    read, write = torch.tensor([6, 0, 5, 2, 7]), torch.tensor([5, 2, 7])
    keep = torch.ones(1, 1, 3, 5, dtype=torch.bool).tril(2)
    call = pagoda.transformers.attention_forward
    if compiled:  # Transformers 5.17 compiles in one graph
        call = torch.compile(call, backend="eager", fullgraph=True)
    out, _ = call(
        module, q, k, v, keep.to(DEVICE), cache=cache,
        read_index=[None, read.to(DEVICE)], write_index=[None, write.to(DEVICE)],
    )  # fmt: skip
    keys, values = (torch.cat([old[[6, 0]].transpose(0, 1)[None], new], 2).cpu()
                    for old, new in zip(before, (k, v)))  # fmt: skip
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.cpu(), keys, values, keep, enable_gqa=True
    )
    torch.testing.assert_close(out.cpu(), expected.transpose(1, 2), atol=1e-5, rtol=1e-5)
    stored = cache.slots[:, write.to(DEVICE)].transpose(1, 2)
    assert torch.equal(stored, torch.cat([k, v]))


def test_dropout_and_stored_weights_are_refused(models):
    q = torch.zeros(1, 4, 2, 16)
    module = models[1].model.layers[0].self_attn
    for named, field in (({"dropout": 0.1}, "dropout"),
                         ({"output_attentions": True}, "output_attentions")):  # fmt: skip
        with pytest.raises(pagoda.Unsupported) as error:
            pagoda.transformers.attention_forward(module, q, q[:, :2], q[:, :2], None, **named)
        assert error.value.field == field


def test_float_masks_and_masks_by_head_are_biases():
    from grids import attention

    module = torch.nn.Module()
    module.is_causal = False
    q, k, v = torch.randn(1, 4, 5, 16), torch.randn(1, 2, 9, 16), torch.randn(1, 2, 9, 16)
    keep = torch.rand(1, 4, 5, 9) < 0.7
    keep[..., 0] = True
    bias = torch.randn(1, 4, 5, 9)
    call = pagoda.transformers.attention_forward
    sequences = [x[0].transpose(0, 1) for x in (q, k, v)]
    seen = torch.ones(5, 9, dtype=torch.bool)
    minus = torch.where(keep, 0.0, -torch.inf)
    for mask, named, expected_bias in (
        (bias, {}, bias), (keep, {}, minus),
        (None, {"position_bias": bias}, bias),
        (keep[:, :1], {"position_bias": bias}, bias + minus[:, :1]),
    ):  # fmt: skip
        out, _ = call(module, *(x.to(DEVICE) for x in (q, k, v)),
                      None if mask is None else mask.to(DEVICE),
                      **{n: x.to(DEVICE) for n, x in named.items()})  # fmt: skip
        expected, _ = attention(*sequences, torch.float64, visible=seen, bias=expected_bias[0])
        torch.testing.assert_close(out[0].cpu().double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", [(2, 1, 3, 9), (2, 1, 4, 7), (3, 1, 3, 7), (2, 3, 7)])
def test_a_mask_of_another_shape_is_refused(shape):
    q, k = torch.randn(2, 4, 3, 64), torch.randn(2, 2, 7, 64)
    call = pagoda.transformers.attention_forward
    with pytest.raises(pagoda.InvalidArgument, match="^attention_mask.shape is"):
        call(torch.nn.Module(), q, k, k, torch.ones(shape, dtype=torch.bool))
