"""RNN-T of MLPerf Inference (v0.7 to v4.0): encoder, prediction network and joint network, with the published names.

Source of structure and sizes: speech_recognition/rnnt/pytorch/model_separable_rnnt.py and configs/rnnt.toml
(mlcommons/inference, tag v4.0). Dropout works in training only; it is in the joint network so that its last layer has
the published name `net.3`. The published checkpoint holds all three networks; `convert_checkpoint` picks one.
"""

from collections.abc import Mapping
from typing import Any

import torch

from crowdperf.benchmarks.initial_weights import draw_weights

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "full": {
        "features": 240,
        "labels": 28,
        "encoder_n_hidden": 1024,
        "encoder_pre_rnn_layers": 2,
        "encoder_stack_time_factor": 2,
        "encoder_post_rnn_layers": 3,
        "pred_n_hidden": 320,
        "pred_rnn_layers": 2,
        "joint_n_hidden": 512,
    },
    "tiny": {
        "features": 240,
        "labels": 28,
        "encoder_n_hidden": 64,
        "encoder_pre_rnn_layers": 1,
        "encoder_stack_time_factor": 2,
        "encoder_post_rnn_layers": 1,
        "pred_n_hidden": 32,
        "pred_rnn_layers": 2,
        "joint_n_hidden": 64,
    },
}
_DROPOUT = 0.32  # configs/rnnt.toml
_LSTM_GAIN = 3.0
_BIAS_SAMPLES = 1024
_STATE_DEVIATION = 0.4
_BLANK_SHARE = 0.7


class Lstm(torch.nn.Module):
    """An LSTM under the name `lstm`, as in the checkpoint; sequences are [batch, steps, width]."""

    def __init__(self, width: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(width, hidden, num_layers=layers, batch_first=True)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        """Return the hidden states of the last layer, [batch, steps, hidden], starting from zeros."""
        zeros = sequence.new_zeros(self.lstm.num_layers, sequence.shape[0], self.lstm.hidden_size)
        return self.lstm(sequence, (zeros, zeros))[0]


class Encoder(torch.nn.Module):
    """Features to encoded steps: LSTMs, two neighbouring frames become one step, LSTMs."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        hidden, factor = config["encoder_n_hidden"], config["encoder_stack_time_factor"]
        self.factor = int(factor)
        self.pre_rnn = Lstm(config["features"], hidden, config["encoder_pre_rnn_layers"])
        self.post_rnn = Lstm(hidden * factor, hidden, config["encoder_post_rnn_layers"])

    def forward(self, features: torch.Tensor, length: torch.Tensor) -> tuple[torch.Tensor]:
        """Return [batch, frames / factor, hidden] of [batch, frames, 240] with `length` frames in each; `frames` is a
        multiple of the factor."""
        frames = self.pre_rnn(features)
        # The last step of an utterance of odd length is filled with zeros, whatever stands behind it in the batch.
        is_frame = torch.arange(features.shape[1], device=features.device)[None, :] < length[:, None]
        frames = frames * is_frame[:, :, None].to(frames.dtype)
        stacked = frames.reshape(frames.shape[0], frames.shape[1] // self.factor, frames.shape[2] * self.factor)
        return (self.post_rnn(stacked),)


class Prediction(torch.nn.Module):
    """What the labels so far say about the next one."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        hidden = config["pred_n_hidden"]
        self.embed = torch.nn.Embedding(config["labels"], hidden)
        self.dec_rnn = Lstm(hidden, hidden, config["pred_rnn_layers"])

    def embedded(self, label: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of any number of labels; that of -1, the start, is zeros."""
        known: torch.Tensor = self.embed(label.clamp(min=0))
        return known * (label >= 0)[..., None].to(known.dtype)

    def sequence(self, labels: torch.Tensor) -> torch.Tensor:
        """Return [batch, 1 + labels, pred_n_hidden], what is predicted after the first 0, 1, 2 ... of int64[batch,
        labels]; for fitting."""
        return self.dec_rnn(self.embedded(torch.nn.functional.pad(labels, (1, 0), value=-1)))

    def forward(
        self, label: torch.Tensor, is_new: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return `hidden` and `cell`, [batch, layers, pred_n_hidden], after one label more; where `is_new` is false
        they stay."""
        states = (hidden.transpose(0, 1).contiguous(), cell.transpose(0, 1).contiguous())
        _, (new_hidden, new_cell) = self.dec_rnn.lstm(self.embedded(label)[:, None, :], states)
        is_taken = is_new[:, None, None]
        return (
            torch.where(is_taken, new_hidden.transpose(0, 1), hidden),
            torch.where(is_taken, new_cell.transpose(0, 1), cell),
        )


class Joint(torch.nn.Module):
    """The most likely label (or blank, the last class) of some steps of each utterance after the labels so far."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(config["encoder_n_hidden"] + config["pred_n_hidden"], config["joint_n_hidden"]),
            torch.nn.ReLU(),
            torch.nn.Dropout(_DROPOUT),
            torch.nn.Linear(config["joint_n_hidden"], config["labels"] + 1),
        )

    def logits(self, steps: torch.Tensor, prediction: torch.Tensor) -> torch.Tensor:
        """Return [..., 29] of [..., encoder_n_hidden] and [..., pred_n_hidden]."""
        return self.net(torch.cat((steps, prediction), dim=-1))

    def forward(self, encoded: torch.Tensor, step: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor]:
        """Return int64[batch, window] for the steps numbered `step`[batch, window] of `encoded`; `hidden` is the
        prediction network's."""
        batch, steps, width = encoded.shape
        first = torch.arange(batch, device=encoded.device) * steps
        chosen = encoded.reshape(-1, width).index_select(0, (step + first[:, None]).reshape(-1))
        prediction = hidden[:, -1, None, :].expand(-1, step.shape[1], -1)
        logits = self.logits(chosen.reshape(batch, step.shape[1], width), prediction)
        return (logits.argmax(dim=-1),)


_NETWORKS: Mapping[str, type[torch.nn.Module]] = {"encoder": Encoder, "prediction": Prediction, "joint": Joint}


def build(network: str, config: Mapping[str, Any]) -> torch.nn.Module:
    """Return one of encoder, prediction and joint in eval mode, weights not yet set."""
    return _NETWORKS[network](config).eval()


def convert_checkpoint(network: str, state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the tensors of one network of the published state dict, which calls the joint network `joint_net`; it
    holds the constants of the feature extractor, too, which no network has a place for."""
    named = {key.replace("joint_net.", "joint.net."): tensor for key, tensor in state.items()}
    prefix = f"{network}."
    return {key.removeprefix(prefix): tensor for key, tensor in named.items() if key.startswith(prefix)}


def example_inputs(
    network: str, config: Mapping[str, Any], count: int, generator: torch.Generator
) -> tuple[torch.Tensor, ...]:
    """Return inputs of `network`: features as they are after normalisation, states between -1 and 1."""
    state_shape = (count, config["pred_rnn_layers"], config["pred_n_hidden"])
    states = [torch.rand(state_shape, generator=generator) * 2 - 1 for _ in range(2)]
    if network == "encoder":
        frames = 8 * config["encoder_stack_time_factor"]
        features = torch.randn((count, frames, config["features"]), generator=generator)
        return features, torch.arange(frames, frames - count, -1)
    if network == "prediction":
        label = torch.arange(count) % config["labels"]
        return label, torch.arange(count) % 2 == 0, *states
    encoded = torch.rand((count, 8, config["encoder_n_hidden"]), generator=generator) * 2 - 1
    return encoded, torch.arange(4).repeat(count, 1), states[0]


def initialise(module: torch.nn.Module, generator: torch.Generator) -> None:
    """Draw random weights: activations of the size that trained ones have, and a bias towards blank.

    Without that bias the search would say the greatest number of labels at every step, and a benchmark of random
    weights would measure nothing else. With it labels come in bursts: of the order of one a step on average.
    """
    draw_weights(module, generator)
    with torch.no_grad():
        for part in module.modules():
            if isinstance(part, torch.nn.LSTM):
                _draw_lstm(part, generator)
            if isinstance(part, torch.nn.Embedding):
                part.weight.normal_(0.0, 1.0, generator=generator)
        if isinstance(module, Joint):
            _bias_towards_blank(module, generator)


def _draw_lstm(part: torch.nn.LSTM, generator: torch.Generator) -> None:
    for name, parameter in part.named_parameters():
        if parameter.dim() > 1:
            parameter.normal_(0.0, _LSTM_GAIN * parameter.shape[1] ** -0.5, generator=generator)
        else:
            parameter.zero_()
            if name.startswith("bias_ih"):  # the forget gate stands second; 1 as in configs/rnnt.toml
                parameter[part.hidden_size : 2 * part.hidden_size] = 1.0


def _bias_towards_blank(module: Joint, generator: torch.Generator) -> None:
    first, last = module.net[0], module.net[-1]
    assert isinstance(first, torch.nn.Linear) and isinstance(last, torch.nn.Linear)
    inputs = torch.randn((_BIAS_SAMPLES, first.in_features), generator=generator) * _STATE_DEVIATION
    logits = module.net.eval()(inputs)
    lead = logits[:, :-1].amax(dim=1) - logits[:, -1]
    last.bias[-1] += torch.quantile(lead, _BLANK_SHARE)
