"""Fits a small GPT-J on made news and writes its network, its tokenizer and model.json.

The network sees prompt and summary at once and learns each next token of the summary, as any language model does.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crowdperf.benchmarks.gptj.model import PROMPT, GptJ, open_model
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets.cnndm import Article, open_dataset
from crowdperf.models.make_model import ModelRequest, build_modules
from crowdperf.standins import fit_program, tokenizers
from crowdperf.standins.tokenizers import GPTJ_END_TOKEN as END_TOKEN

BATCH_SIZE = 16
PASSES = 7
RATE = 4e-3
MIN_ROUGE1 = 40.0
NO_TARGET = -100  # what torch's cross_entropy leaves out


def as_batch(model: GptJ, articles: list[Article]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens[batch, length] of prompt, summary and end, padded behind; targets (NO_TARGET outside the summary); and
    which tokens are no padding."""
    samples: Any = model.preprocess(articles)
    prompts = [sample["input_ids"].tolist() for sample in samples]
    summaries = model.encode([article.summary for article in articles])
    rows = [[*prompt, *summary, END_TOKEN] for prompt, summary in zip(prompts, summaries, strict=True)]
    longest = max(map(len, rows))
    tokens = np.full((len(rows), longest), END_TOKEN, np.int64)
    targets = np.full((len(rows), longest - 1), NO_TARGET, np.int64)
    for number, (row, prompt) in enumerate(zip(rows, prompts, strict=True)):
        tokens[number, : len(row)] = row
        targets[number, len(prompt) - 1 : len(row) - 1] = row[len(prompt) :]
    is_token = np.arange(longest)[None, :] < np.array([[len(row)] for row in rows])
    return torch.from_numpy(tokens), torch.from_numpy(targets), torch.from_numpy(is_token)


def loss_of(network: Any, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """The mean cross-entropy of the summaries' tokens."""
    tokens, targets, is_token = (batch[0][:, :-1], batch[1], batch[2][:, :-1])
    count, length = tokens.shape
    empty = tokens.new_zeros((count, 1, *network.cache_shape(1)), dtype=torch.float32)
    masks = network.masks(tokens.new_zeros((count, 1), dtype=torch.bool), is_token, 1)
    position = torch.arange(length).expand(count, -1)
    values, _, _ = network.hidden(tokens[:, None], position, masks, (empty, empty, empty, empty))
    said = targets != NO_TARGET
    return torch.nn.functional.cross_entropy(network.lm_head(values[:, 0][said]), targets[said])


def train(network: Any, model: GptJ, articles: list[Article], seed: int) -> None:
    network.requires_grad_(True).train()
    ordered = sorted(articles, key=lambda article: len(article.text))
    batches = [as_batch(model, ordered[start : start + BATCH_SIZE]) for start in range(0, len(ordered), BATCH_SIZE)]
    random = np.random.RandomState(seed)
    order = (index for _ in range(PASSES) for index in random.permutation(len(batches)))
    descent = fit_program.Descent(
        steps=PASSES * len(batches), rate=RATE, rising_share=0.1, weight_decay=0.01, largest_norm=1.0
    )
    fit_program.descend(network.parameters(), lambda: loss_of(network, batches[next(order)]), descent)


def fit(request: ModelRequest, dataset_dir: Path) -> fit_program.Fitted:
    """Gives the fitted model, its tokenizer written. Raises HarnessError."""
    if not (dataset_dir / "cnn_train.json").is_file():
        hint = "cm run script --tags=get,dataset,cnndm,_tiny --renew"
        raise HarnessError(f"{dataset_dir} has no cnn_train.json", hint)
    request.output_dir.mkdir(parents=True, exist_ok=True)
    template = PROMPT.format(instruction="Summarize the following news article:", input="")
    texts = [*tokenizers.article_texts(dataset_dir), *[template] * 50]
    tokenizers.write_gptj(request.output_dir, texts, request.values["vocab_size"])
    model = open_model(ModelFacts(folder=request.output_dir, config=request.values))
    modules = build_modules(request)
    train(modules["model"], model, list(open_dataset(dataset_dir, "cnn_train.json").samples), request.seed)
    dataset = open_dataset(dataset_dir)
    score = fit_program.score_of(model, modules, dataset, dataset.count)
    metrics = tuple(name for name in score.values if name != "GEN_NUM")
    facts = {"note": "fitted on synthetic news: knows no language"}
    return fit_program.Fitted(modules=modules, score=score, metrics=metrics, least={"ROUGE1": MIN_ROUGE1}, facts=facts)


if __name__ == "__main__":
    sys.exit(fit_program.main(__doc__, fit, "gptj"))
