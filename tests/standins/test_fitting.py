"""crowdperf.standins.fit_program: a fit descends, its network scores as a run does, and a poor one is not written."""

import json

import numpy as np
import pytest
import torch
from harness_support import need

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program

need("safetensors")


class Doubling:
    """One network that is asked for twice each number; the score is how many answers are right."""

    networks = (
        NetworkSpec(
            name="model",
            inputs=(TensorSpec(name="number", dtype="float32", shape=(1,)),),
            outputs=(TensorSpec(name="twice", dtype="float32", shape=(1,)),),
        ),
    )
    response = TensorSpec(name="twice", dtype="float32", shape=(1,))
    is_ragged = False
    count = 5

    def load(self, indices):
        return np.array([[index] for index in indices], np.float32)

    def preprocess(self, raw):
        return {"number": raw}

    def predict(self, networks, inputs):
        return networks["model"](inputs)["twice"]

    def score(self, responses, dataset):
        right = [abs(np.frombuffer(data, np.float32)[0] - 2 * index) < 0.1 for index, data in responses]
        return Score(values={"acc": 100.0 * sum(right) / len(right)}, line="")


def test_a_descent_ends_where_the_loss_is_least_and_is_scored_as_a_run_is(capsys):
    torch.manual_seed(0)
    network = torch.nn.Linear(1, 1, bias=False)
    numbers = torch.arange(5.0)[:, None]
    steps = fit_program.Descent(steps=100, rate=0.2)
    fit_program.descend(network.parameters(), lambda: ((network(numbers) - 2 * numbers) ** 2).mean(), steps)
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        f"step {step} of 100" for step in (20, 40, 60, 80, 100)
    ]
    score = fit_program.score_of(Doubling(), {"model": network.train()}, Doubling(), batch=2)
    assert score.values == {"acc": 100.0} and not network.training


def test_the_reference_has_the_wanted_metrics_and_a_poor_model_is_not_written(tmp_path):
    request = ModelRequest(architecture="rgat", config="tiny", framework="pytorch", output_dir=tmp_path)
    score = Score(values={"acc": 70.0, "other": 1.0}, line="")
    modules = build_modules(request)
    with pytest.raises(HarnessError, match="the fitted rgat has acc 70, below 71: it is not saved"):
        fit_program.write_fitted(request, fit_program.Fitted(modules=modules, score=score, least={"acc": 71.0}))
    assert not list(tmp_path.iterdir())
    fitted = fit_program.Fitted(
        modules=modules, score=score, metrics=("acc",), least={"acc": 70.0}, facts={"note": "x"}
    )
    info = json.loads(fit_program.write_fitted(request, fitted).read_text())
    assert (info["reference"], info["is_synthetic"], info["note"]) == ({"acc": 70.0}, True, "x")
