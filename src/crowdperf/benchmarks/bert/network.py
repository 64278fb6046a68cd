"""BERT for question answering (Devlin et al. 2018, https://arxiv.org/abs/1810.04805): encoder and one linear layer that
gives each token a start and an end logit.

Parameters are named as in the published PyTorch checkpoint (Zenodo 3733896, made with Hugging Face transformers); its
pooler, which question answering does not use, has no place here.

The ONNX form is plain: standard operators, shapes of Reshape constant, scores divided and masked as in the published
model. Nothing is fused by hand, because that wins nothing on a CPU. Tokens/s on one thread of a Xeon with VNNI that
others used too, 4 full-width layers, 225 tokens, medians of 5 (fused fp32 in another call), onnxruntime 1.31, 2026-11:

    samples at once                                         1      2      4      8
    fp32                                                1,213  1,215  1,250  1,194
    fp32, fused Attention and SkipLayerNormalization    1,260  1,220  1,201  1,203
    dynamic int8, weights per channel                   3,462  3,425  3,189  3,102
    dynamic int8 of the fused form, per tensor          2,844  2,865  2,773  2,772
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    # language/bert/bert_config.json of mlcommons/inference
    "full": {
        "vocab_size": 30_522,
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
    },
    # our choice: all parts of the structure, made and fitted in seconds
    "tiny": {
        "vocab_size": 1024,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
    },
}

LAYER_NORM_EPSILON = 1e-12  # BertConfig.layer_norm_eps of transformers, and the original BERT code
MASKED_SCORE = -10_000.0  # added to the scores of padding, as in the published model; its softmax weight is 0


class _Reshape(torch.autograd.Function):
    """Reshape whose ONNX form has a constant shape, where 0 keeps a size: `view` would compute it at each call."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, sizes: tuple[int, ...]) -> torch.Tensor:
        """Return the tensor with `sizes`: 0 stands for the tensor's own size, one -1 for what is left."""
        return tensor.reshape([size or tensor.shape[axis] for axis, size in enumerate(sizes)])

    @staticmethod
    def symbolic(graph: Any, tensor: Any, sizes: tuple[int, ...]) -> Any:
        return graph.op("Reshape", tensor, graph.op("Constant", value_t=torch.tensor(sizes, dtype=torch.int64)))


def _reshape(tensor: torch.Tensor, sizes: tuple[int, ...]) -> torch.Tensor:
    return _Reshape.apply(tensor, sizes)  # type: ignore[no-untyped-call]


class _Embeddings(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = int(config["hidden_size"])
        self.word_embeddings = nn.Embedding(int(config["vocab_size"]), width)
        self.position_embeddings = nn.Embedding(int(config["max_position_embeddings"]), width)
        self.token_type_embeddings = nn.Embedding(int(config["type_vocab_size"]), width)
        self.LayerNorm = nn.LayerNorm(width, eps=LAYER_NORM_EPSILON)

    def forward(self, input_ids: torch.Tensor, segment_ids: torch.Tensor) -> torch.Tensor:
        words = self.word_embeddings(input_ids)
        positions = self.position_embeddings.weight[: input_ids.shape[1]]
        summed: torch.Tensor = words + positions + self.token_type_embeddings(segment_ids)
        return self.LayerNorm(summed)


class _SelfAttention(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = int(config["hidden_size"])
        self.heads = int(config["num_attention_heads"])
        self.head_size = width // self.heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def _exported(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        split = (0, -1, self.heads, self.head_size)
        query = _reshape(self.query(states), split).permute(0, 2, 1, 3)
        key = _reshape(self.key(states), split).permute(0, 2, 3, 1)
        value = _reshape(self.value(states), split).permute(0, 2, 1, 3)
        scores = torch.matmul(query, key) / math.sqrt(self.head_size) + mask
        context = torch.matmul(functional.softmax(scores, dim=-1), value).permute(0, 2, 1, 3)
        return _reshape(context, (0, -1, self.heads * self.head_size))

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if torch.onnx.is_in_onnx_export():
            return self._exported(states, mask)
        batch, tokens, width = states.shape
        query, key, value = (
            layer(states).view(batch, tokens, self.heads, self.head_size).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        context = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return context.transpose(1, 2).reshape(batch, tokens, width)


class _Output(nn.Module):
    """A projection back to the hidden size, added to what came in and normalised."""

    def __init__(self, input_size: int, config: Mapping[str, Any]) -> None:
        super().__init__()
        width = int(config["hidden_size"])
        self.dense = nn.Linear(input_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=LAYER_NORM_EPSILON)

    def forward(self, states: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.LayerNorm(self.dense(states) + residual)


class _Attention(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.self = _SelfAttention(config)
        self.output = _Output(int(config["hidden_size"]), config)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.output(self.self(states, mask), states)


class _Intermediate(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.dense = nn.Linear(int(config["hidden_size"]), int(config["intermediate_size"]))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return functional.gelu(self.dense(states))  # the exact one, with erf


class _Layer(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Intermediate(config)
        self.output = _Output(int(config["intermediate_size"]), config)

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        attended = self.attention(states, mask)
        return self.output(self.intermediate(attended), attended)


class _Encoder(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.layer = nn.ModuleList(_Layer(config) for _ in range(int(config["num_hidden_layers"])))

    def forward(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layer:
            states = layer(states, mask)
        return states


class _Bert(nn.Module):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.embeddings = _Embeddings(config)
        self.encoder = _Encoder(config)

    def forward(self, input_ids: torch.Tensor, input_mask: torch.Tensor, segment_ids: torch.Tensor) -> torch.Tensor:
        states = self.embeddings(input_ids, segment_ids)
        mask = (1.0 - input_mask[:, None, None, :].to(states.dtype)) * MASKED_SCORE
        return self.encoder(states, mask)


class BertForQuestionAnswering(nn.Module):
    """input_ids, input_mask, segment_ids int64[batch, tokens] to start and end logits float32[batch, tokens]."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.bert = _Bert(config)
        self.qa_outputs = nn.Linear(int(config["hidden_size"]), 2)

    def forward(
        self, input_ids: torch.Tensor, input_mask: torch.Tensor, segment_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        logits = self.qa_outputs(self.bert(input_ids, input_mask, segment_ids))
        return logits[..., 0], logits[..., 1]


def build(network: str, config: Mapping[str, Any]) -> BertForQuestionAnswering:
    return BertForQuestionAnswering(config).eval()


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return `count` made questions of 24 tokens, the last one shorter: ids, mask and segments, int64[count, 24]."""
    ids = torch.randint(0, int(config["vocab_size"]), (count, 24), generator=generator)
    mask = torch.ones_like(ids)
    mask[-1, 16:] = 0
    segments = (torch.arange(24) >= 8).to(torch.int64).expand(count, 24) * mask
    return ids * mask, mask, segments
