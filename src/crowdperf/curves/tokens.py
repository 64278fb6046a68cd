"""Counts tokens as the client does: by the package `tokenizers`, from tokenizer.json, without special tokens.

The package is not one of ours. Where this Python has none, that of the client counts: a process of its own that answers
with a number for each text. The client: encode_lengths in
src/inference_endpoint/async_utils/services/metrics_aggregator/token_metrics.py of mlcommons/endpoints ea332753
(2026-08-21).
"""

import importlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from crowdperf.endpoints.events import CountTokens

TOKENIZER = "tokenizer.json"
_COUNTER = """
import json, sys
try:
    from tokenizers import Tokenizer
except ImportError:
    sys.exit("no package tokenizers")
tokenizer = Tokenizer.from_file(sys.argv[1])
for line in sys.stdin:
    print(len(tokenizer.encode(json.loads(line), add_special_tokens=False).ids), flush=True)
"""


class TokenizerError(ValueError):
    """tokenizer.json is there but cannot be used; the text says why."""


@dataclass(slots=True)
class _Counter:
    """A process that counts; it ends with its standard input, at the latest with this process."""

    process: subprocess.Popen[str]

    def __call__(self, text: str) -> int:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps(text) + "\n")
            stdin.flush()
            return int(stdout.readline())
        except (OSError, ValueError):
            self.process.wait(10)
            stderr = self.process.stderr
            why = stderr.read().strip().splitlines()[-1:] if stderr is not None else []
            raise TokenizerError(f"{TOKENIZER}: the client's Python cannot count tokens: {''.join(why)}") from None


def counter_of(folder: Path, client: Path | None = None) -> CountTokens | None:
    """Return the function that counts a text's tokens; None without a tokenizer.json, or where no Python can count.

    client: the program of the client, in whose environment `tokenizers` is. Raises TokenizerError.
    """
    path = folder / TOKENIZER
    if not path.is_file():
        return None
    try:
        library = importlib.import_module("tokenizers")
    except ImportError:
        return _counter_beside(client, path) if client is not None else None
    try:
        tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise TokenizerError(f"{TOKENIZER}: {error}") from None

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return count


def _counter_beside(client: Path, tokenizer: Path) -> CountTokens | None:
    """The counter in the environment of a program; None where it is in none, or that one has no `tokenizers`."""
    python = client.with_name("python")
    if not python.is_file():
        return None
    looked = subprocess.run([python, "-I", "-c", "import tokenizers"], capture_output=True, timeout=120, check=False)
    if looked.returncode:
        return None
    process = subprocess.Popen([python, "-I", "-c", _COUNTER, str(tokenizer)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    return _Counter(process)
