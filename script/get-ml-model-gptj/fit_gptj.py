"""Fits a small GPT-J on made news and writes its network, its tokenizer and model.json.

    python3 fit_gptj.py --dataset_dir FOLDER_OF_GET_DATASET_CNNDM_TINY --framework onnx --output_dir FOLDER

Run by run.sh in the benchmark's virtual environment with harness on PYTHONPATH; needs numpy, torch and tokenizers. The
network sees prompt and summary at once and learns each next token of the summary, as any language model does.
"""

import argparse
import sys
import time
from pathlib import Path

import gptj_tokenizer
import numpy as np
import torch
from harness.benchmarks.gptj.model import PROMPT, open_model
from harness.datasets.cnndm import Article, open_dataset
from harness.making.makemodel import FRAMEWORKS, ModelClaims, ModelRequest, build_modules, write_model
from harness.modelfacts import ModelFacts

BATCH_SIZE = 16
PASSES = 7
LEARNING_RATE = 4e-3
LEAST_ROUGE1 = 40.0
NO_TARGET = -100  # what torch's cross_entropy leaves out


def as_batch(model, articles: list[Article]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens[batch, length] of prompt, summary and end, padded behind; targets (NO_TARGET outside the summary); and
    which tokens are no padding."""
    prompts = [sample["input_ids"].tolist() for sample in model.preprocess(articles)]
    summaries = model.encode([article.summary for article in articles])
    rows = [[*prompt, *summary, gptj_tokenizer.END_TOKEN] for prompt, summary in zip(prompts, summaries, strict=True)]
    longest = max(map(len, rows))
    tokens = np.full((len(rows), longest), gptj_tokenizer.END_TOKEN, np.int64)
    targets = np.full((len(rows), longest - 1), NO_TARGET, np.int64)
    for number, (row, prompt) in enumerate(zip(rows, prompts, strict=True)):
        tokens[number, : len(row)] = row
        targets[number, len(prompt) - 1 : len(row) - 1] = row[len(prompt) :]
    is_token = np.arange(longest)[None, :] < np.array([[len(row)] for row in rows])
    return torch.from_numpy(tokens), torch.from_numpy(targets), torch.from_numpy(is_token)


def loss_of(network, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """The mean cross-entropy of the summaries' tokens."""
    tokens, targets, is_token = (batch[0][:, :-1], batch[1], batch[2][:, :-1])
    count, length = tokens.shape
    empty = tokens.new_zeros((count, 1, *network.cache_shape(1)), dtype=torch.float32)
    masks = network.masks(tokens.new_zeros((count, 1), dtype=torch.bool), is_token, 1)
    position = torch.arange(length).expand(count, -1)
    values, _, _ = network.hidden(tokens[:, None], position, masks, (empty, empty, empty, empty))
    said = targets != NO_TARGET
    return torch.nn.functional.cross_entropy(network.lm_head(values[:, 0][said]), targets[said])


def fit(network, model, articles: list[Article], seed: int) -> None:
    """Fits the network in place."""
    network.train()
    ordered = sorted(articles, key=lambda article: len(article.text))
    batches = [as_batch(model, ordered[start : start + BATCH_SIZE]) for start in range(0, len(ordered), BATCH_SIZE)]
    optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, LEARNING_RATE, total_steps=PASSES * len(batches), pct_start=0.1
    )
    order = np.random.RandomState(seed)
    for number in range(PASSES):
        total = 0.0
        for index in order.permutation(len(batches)):
            loss = loss_of(network, batches[index])
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item()
        print(f"pass {number + 1} of {PASSES}: loss {total / len(batches):.4f}", flush=True)
    network.eval()


def measure(network, model, dataset) -> dict[str, float]:
    """The scores of the validation part, as a run would score it."""
    spec = model.networks[0]

    @torch.inference_mode()
    def call(inputs):
        outputs = network(*(torch.as_tensor(inputs[tensor.name]) for tensor in spec.inputs))
        return {tensor.name: output.numpy() for tensor, output in zip(spec.outputs, outputs, strict=True)}

    samples = model.preprocess(dataset.load(range(dataset.count)))
    responses = model.predict({"model": call}, model.collate(samples))
    return dict(model.score(((index, row.tobytes()) for index, row in enumerate(responses)), dataset).values)


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset_dir", type=Path, required=True)
    parser.add_argument("--framework", choices=FRAMEWORKS, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if not (given.dataset_dir / "cnn_train.json").is_file():
        print(f"fit_gptj.py: {given.dataset_dir} has no cnn_train.json", file=sys.stderr)
        print("hint: cm run script --tags=get,dataset,cnndm,_tiny --renew", file=sys.stderr)
        return 1
    torch.set_num_threads(1)  # for these sizes faster than two, and the same sums in the same order each time
    start_s = time.monotonic()
    request = ModelRequest(
        architecture="gptj", config="tiny", framework=given.framework, output_dir=given.output_dir, seed=given.seed
    )
    given.output_dir.mkdir(parents=True, exist_ok=True)
    template = PROMPT.format(instruction="Summarize the following news article:", input="")
    texts = [*gptj_tokenizer.article_texts(given.dataset_dir), *[template] * 50]
    gptj_tokenizer.train(texts, request.values["vocab_size"], given.output_dir / "tokenizer.json")
    model = open_model(ModelFacts(folder=given.output_dir, config=request.values))
    network = build_modules(request)["model"]
    fit(network, model, list(open_dataset(given.dataset_dir, "cnn_train.json").articles), given.seed)
    scores = measure(network, model, open_dataset(given.dataset_dir))
    if scores["ROUGE1"] < LEAST_ROUGE1:
        print(f"fit_gptj.py: ROUGE-1 is {scores['ROUGE1']}; at least {LEAST_ROUGE1} is expected", file=sys.stderr)
        return 1
    reference = {name: value for name, value in scores.items() if name != "GEN_NUM"}
    facts = {"licence": "Apache-2.0", "note": "fitted on made news: knows no language"}
    write_model({"model": network}, request, ModelClaims(reference=reference, facts=facts))
    print(f"gptj (tiny, fitted): {scores}, {time.monotonic() - start_s:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
