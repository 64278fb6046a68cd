"""tools/check_words.py: a sentence for each pattern, what is not counted, and the ceilings of this checkout."""

import subprocess
import sys
from pathlib import Path

import check_words
import pytest
import yaml
from helpers import CHECKOUT

RULES = yaml.safe_load((CHECKOUT / "tools" / "words.yaml").read_text(encoding="utf-8"))
SENTENCES = {
    "P1": "What helps is printed.",
    "P2": "Each run has a folder of its own.",
    "P3": "The entry is made once again.",
    "P4": "It is in the file beside it.",
    "P5": "The file holds no score.",
    "P6": "Give the same line once more.",
    "P7": "The table tells the rate.",
    "P8": "This is the least time.",
    "P9": "The reason stands below the table.",
    "P10": "This is no number.",
    "P11": "The rule asks for a log.",
    "P12": "It is checked, too.",
    "P13": "Made data is labeled.",
    "P14": "It runs on the processor.",
    "P15": "Compare these figures.",
    "P16": "No version fits.",
    "P17": "The tree lacks a log.",
    "P18": "It takes a folder.",
    "P19": "The variation is named in the error.",
    "P20": "Nobody reads it.",
    "P21": "No image could be had.",
    "P22": "**Cost.** None.",
    "P23": "It is fast; it is small.",
    "P24": "TensorRT: not run on hardware.",
    "US": "The licence of the colour catalogue.",
}


def checkout_of(folder: Path, files: dict[str, str]) -> Path:
    """A repository with these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def found(folder: Path, files: dict[str, str]) -> list[tuple[str, str, str]]:
    """Pattern, kind and place of each hit."""
    hits = check_words.hits(checkout_of(folder, files), RULES["patterns"])
    return [(hit.pattern, hit.kind, hit.place) for hit in hits]


def test_every_pattern_finds_its_sentence_and_none_of_the_plain_ones(tmp_path: Path) -> None:
    assert SENTENCES.keys() == RULES["patterns"].keys() == RULES["ceilings"].keys()
    page = "\n\n".join(SENTENCES.values())
    wanted = {(name, "pages", f"README.md:{2 * row + 1}") for row, name in enumerate(SENTENCES)}
    assert wanted <= set(found(tmp_path, {"README.md": page}))
    plain = "There is no lock. The run takes 20 s. At least 2 files fit in memory, and no other run holds the lock.\n"
    assert found(tmp_path, {"README.md": plain}) == []


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.md", "```\nbeside\n```\nSee `beside`, and\n[it](beside.md) is\nbeside.\n", [("P4", "pages", "a.md:6")]),
        ("a.md", "    cm run beside\n\nbeside <!-- words: ok P4 -->\n", []),
        ("a.md", "<!-- made by tools/make_recipe_pages.py -->\n\nbeside\n\n<!-- end of what it makes -->\n", []),
        ("a.md", "It holds this beside. <!-- words: ok P4 P5 -->\n", []),
        ("src/a.py", '"""It is beside."""\n', [("P4", "docstrings", "src/a.py:1")]),
        ("src/a.py", 'NAME = "beside"\nTEXT = f"{NAME} is beside"\n', [("P4", "strings", "src/a.py:2")]),
        ("src/a.py", 'A = "is beside"  # words: ok P4\n', []),
        ("tests/a.py", 'A = "is beside"\n', []),
        ("script/a/_cm.yaml", "alias: is beside\ni: {desc: is beside}\n", [("P4", "strings", "script/a/_cm.yaml:2")]),
        ("src/a.html", '<p class="is beside">is {{ beside }}\n beside</p>\n', [("P4", "strings", "src/a.html:2")]),
    ],
)  # fmt: skip
def test_which_texts_are_read(tmp_path: Path, name: str, text: str, wanted: list[tuple[str, str, str]]) -> None:
    assert found(tmp_path, {name: text}) == wanted


def test_ceilings_only_fall() -> None:
    counts = {"P1": {"pages": 3, "strings": 1, "docstrings": 0}}
    assert check_words.lowered(counts, {"P1": {"pages": 2, "strings": 4, "docstrings": 0}}) == (
        "  P1: {pages: 2, strings: 1, docstrings: 0}\n"
    )


def test_no_pattern_is_above_its_ceiling_here() -> None:
    command = [sys.executable, str(CHECKOUT / "tools" / "check_words.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
