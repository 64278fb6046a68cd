"""crowdperf.kit.privacy finds secrets, home folders and names, quickly, and never in what benchmarks write."""

import hashlib
import os
import re
import time
from pathlib import Path

import pytest
from recipe_engine.rules import secrets
from recipe_engine.rules.secrets import TOKEN_SHAPES, holds_secret, is_secret

from crowdperf.kit import privacy, secret_shapes
from crowdperf.kit.privacy import (
    Budget,
    Kind,
    Person,
    PrivateNames,
    find_leaks,
    find_leaks_in_file,
    find_leaks_in_folder,
    known_of,
)
from crowdperf.kit.secret_shapes import is_secret_name

ROOT = Path(__file__).resolve().parents[2]
ANNA = PrivateNames(
    users=("annab",), hosts=("annas-box",), homes=("/srv/people/annab",), emails=("anna@x.org",), secrets=("hunter2-x",)
)


def made(prefix: str, length: int = 40) -> str:
    """A token that no service gave out; put together here so that no scanner takes this file for a leak."""
    return prefix + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7"[: length % 27] + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * (length // 27)


SECRETS = [
    (made("ya" + "29.", 40), Kind.TOKEN),
    (made("ghp" + "_", 36), Kind.TOKEN),
    (made("gho" + "_", 36), Kind.TOKEN),
    (made("github" + "_pat_", 82), Kind.TOKEN),
    (made("gl" + "pat-", 20), Kind.TOKEN),
    (made("hf" + "_", 34), Kind.TOKEN),
    ("AKIA" + "Z3X7Y5W2V4U6T8S1", Kind.TOKEN),
    (made("pypi-" + "AgEIcHlwaS5vcmc", 60), Kind.TOKEN),
    (made("xox" + "b-", 30), Kind.TOKEN),
    (made("AI" + "za", 35), Kind.TOKEN),
    (made("npm" + "_", 36), Kind.TOKEN),
    (made("nv" + "api-", 64), Kind.TOKEN),
    (made("dckr" + "_pat_", 27), Kind.TOKEN),
    (made("sk" + "-proj-", 40), Kind.TOKEN),
    ("https://hooks.slack" + ".com/services/" + made("T", 40), Kind.TOKEN),
    (".".join((made("ey" + "J", 20), made("ey" + "J", 40), made("x", 40))), Kind.TOKEN),
]

IN_CONTEXT = [
    ("-----BEGIN OPENSSH " + "PRIVATE KEY-----", "PRIVATE KEY", Kind.PRIVATE_KEY),
    ("-----BEGIN " + "PRIVATE KEY-----", "PRIVATE KEY", Kind.PRIVATE_KEY),
    ("git clone https://anna:q9w8e7@git.org/x.git", "q9w8e7", Kind.LOGIN),
    ("git clone https://q9w8e7r6t5q9w8e7@git.org/x.git", "q9w8e7r6", Kind.LOGIN),
    ("Authorization: Basic YW5uYTpxOXc4", "YW5uYTpxOXc4", Kind.AUTHORIZATION),
    ('curl -H "authorization: token q9w8e7r6t5"', "q9w8e7r6t5", Kind.AUTHORIZATION),
    ("Bearer q9w8e7r6t5y4u3i2o1p0zz", "q9w8e7r6", Kind.AUTHORIZATION),
    ("CM_GH_TOKEN=letmein", "letmein", Kind.SECRET),
    ("export MY_PASSWORD='open sesame1' HF_TOKEN='sesame'", "'sesame'", Kind.SECRET),
    ("run --hf_token=q9w8 --quiet", "q9w8", Kind.SECRET),
    ("run --password sesame", "sesame", Kind.SECRET),
    ('{"api_key": "sesame"}', "sesame", Kind.SECRET),
    ('{"token": "q9w8e7r6t5y4u3i2"}', "q9w8e7", Kind.SECRET),
    ("password: q9w8e7r6", "q9w8e7r6", Kind.SECRET),
    ("aws_secret_access_key = q9w8e7r6t5y4", "q9w8e7", Kind.SECRET),
    ("get https://x.org/f?token=sesame&x=1", "sesame", Kind.SECRET),
    ("https://s3.org/f?x=1&X-Amz-Signature=" + "0a1b" * 16, "0a1b0a1b", Kind.SECRET),
    ("ERROR in /home/bert-smith/CM/x.py", "bert-smith", Kind.HOME_PATH),
    ("-I/home/bsmith/include", "bsmith", Kind.HOME_PATH),
    ("PATH=/usr/bin:/home/bsmith/bin", "bsmith", Kind.HOME_PATH),
    ("file:///home/bsmith/x", "bsmith", Kind.HOME_PATH),
    ("/var/home/bsmith", "bsmith", Kind.HOME_PATH),
    ("/Users/bsmith/CM", "bsmith", Kind.HOME_PATH),
    ('"C:\\\\Users\\\\bsmith\\\\CM"', "bsmith", Kind.HOME_PATH),
    ("C:\\Users\\bsmith\\CM", "bsmith", Kind.HOME_PATH),
    ("D:/Users/bsmith/CM", "bsmith", Kind.HOME_PATH),
    ("/mnt/c/Users/bsmith/x", "bsmith", Kind.HOME_PATH),
    ("in /root/CM/repos", "/root", Kind.HOME_PATH),
    ("by annab on", "annab", Kind.USER_NAME),
    ("host: Annas-Box.", "Annas-Box", Kind.HOST_NAME),
    ("mail Anna@x.org", "Anna@x.org", Kind.EMAIL),
    ("/mnt/auto/srv/people/annab/x", "annab", Kind.HOME_PATH),
    ("xxhunter2-xyy", "hunter2-x", Kind.OWN_SECRET),
]


@pytest.mark.parametrize(("secret", "kind"), SECRETS, ids=[secret[:6] for secret, _ in SECRETS])
@pytest.mark.parametrize("line", ["{}", "a = '{}'", "x:{},", '{{"x":"{}"}}', "url/{}/x", "é {}"])
def test_a_token_is_found_by_its_shape_wherever_it_stands(secret: str, kind: Kind, line: str) -> None:
    (leak,) = find_leaks("first\n" + line.format(secret) + "\nlast")
    assert (leak.line, leak.kind) == (2, kind)
    assert secret not in leak.excerpt and secret[8:20] not in leak.excerpt and privacy.MASK in leak.excerpt


@pytest.mark.parametrize(("text", "secret", "kind"), IN_CONTEXT, ids=[text[:30] for text, _, _ in IN_CONTEXT])
def test_what_is_private_is_found_by_its_place(text: str, secret: str, kind: Kind) -> None:
    (leak,) = find_leaks(f"{text}\n{'and so on ' * 12}", ANNA)
    assert leak.kind is kind
    assert secret not in leak.excerpt
    assert secret not in privacy.masked(text, ANNA)


@pytest.mark.parametrize("text", [text for text, _, _ in IN_CONTEXT])
def test_a_masked_text_has_no_leaks_and_keeps_the_rest(text: str) -> None:
    shown = privacy.masked(f"before {text} after", ANNA)
    assert find_leaks(shown, ANNA) == ()
    assert shown.startswith("before ") and shown.endswith(" after")


HARMLESS = [
    "sha256: " + hashlib.sha256(b"x").hexdigest(),
    "uid: 4dc1bf490c6dafd2",
    '"eos_token": "</s>", "pad_token": "<|endoftext_0123456789|>"',
    "pad_token=tokenizer.eos_token, max_new_tokens=128, token=token",
    '"eos_token": "<|endoftext_0123456789|>", "architectures": ["A model"], "other settings": ["as in the paper"]',
    ":::MLLOG {'key': 'result_first_token_99.00_percentile_latency_ns', 'value': 12345678}",
    "*.Server.ttft_latency = 2000\n*.Offline.use_token_latencies = 1",
    "token_type_ids: [0, 0, 0]",
    "password = getpass.getpass('Password: ')",
    "connect(user, password=password, secret=config.secret)",
    'api_key = os.environ["API_KEY"]',
    "export HF_TOKEN=<your token>; CM_GH_TOKEN=${{ secrets.TOKEN }} HF_TOKEN=$TOKEN HF_TOKEN=... CM_TOKEN=********",
    "adduser --disabled-password --gecos x",
    "git clone https://<user>:<token>@github.com/x and git@github.com:x/y.git ssh://git@github.com/x",
    "https://user:password@host/x",
    "http://localhost:8080/a@b",
    "https://example.org/home/page and https://example.org/Users/list and docs/home/index",
    "${WORK}/home/cm and ~/root/x and /root and /home/<user>/x and /home/$USER/x and /home/user/x",
    "authorization is granted: the Authorization: of the License; bearer of this document",
    "annabelle xannab annab_1 annas-boxes other/people/annab2",
    "-----BEGIN PUBLIC KEY----- -----BEGIN CERTIFICATE-----",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_alike_is_no_leak(text: str) -> None:
    assert find_leaks(text, ANNA) == ()


@pytest.mark.parametrize(
    "folder", ["tests/logs/fixtures", "docs", "script", "automation", "README.md", "LICENSE", "CHANGELOG.md"]
)
def test_nothing_is_found_in_loadgen_logs_licenses_and_our_own_texts(folder: str) -> None:
    place = ROOT / folder
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    wanted = [path for path in files if path.suffix in ("", ".md", ".txt", ".json", ".yaml", ".csv", ".conf", ".gz")]
    found = {path: leaks for path in wanted if (leaks := find_leaks_in_file(path, ANNA))}
    assert found == {}


def test_ten_megabytes_of_an_accuracy_log_take_less_than_a_second(tmp_path: Path) -> None:
    row = '{ "seq_id" : 12, "qsl_idx" : 345, "data" : "%s", "sample_id": 7 },\n'
    text = "[\n" + "".join(row % os.urandom(32).hex() for _ in range(80_000)) + "]\n"
    path = tmp_path / "mlperf_log_accuracy.json"
    path.write_text(text)
    assert path.stat().st_size > 10_000_000
    begin = time.process_time()
    assert find_leaks_in_file(path, ANNA) == ()
    assert time.process_time() - begin < 1


@pytest.mark.parametrize("at", range(3000, 3100, 7))
def test_a_leak_across_two_blocks_is_found_once_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(privacy, "BLOCK_BYTES", 1024)
    monkeypatch.setattr(privacy, "OVERLAP_BYTES", 512)
    text = "x" * 99 + "\n"
    body = (text * 40)[:at] + "\nexport HF_TOKEN=q9w8e7r6t5 /home/bsmith/x\n" + text * 40
    (tmp_path / "log.txt").write_text(body)
    leaks = find_leaks_in_file(tmp_path / "log.txt")
    assert [leak.kind for leak in leaks] == [Kind.SECRET, Kind.HOME_PATH]
    assert {leak.line for leak in leaks} == {body[:at].count("\n") + 2}
    assert leaks == find_leaks(body)


def test_names_of_files_and_targets_of_links_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "tree" / "logs-of-annab").mkdir(parents=True)
    (tmp_path / "tree" / "logs-of-annab" / "a.txt").write_text("fine\n/home/bsmith/x\n")
    (tmp_path / "tree" / "link").symlink_to("/home/bsmith/data")
    found = find_leaks_in_folder(tmp_path / "tree", ANNA)
    assert [(item.path, item.leak.line, item.leak.kind) for item in found] == [
        ("link", 1, Kind.HOME_PATH),
        ("logs-of-<user>/a.txt", 0, Kind.USER_NAME),
        ("logs-of-<user>/a.txt", 2, Kind.HOME_PATH),
    ]
    assert "annab" not in "".join(map(str, found)) and "bsmith" not in "".join(map(str, found))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_texts_as_windows_writes_them_are_read(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes("ok\r\nC:\\Users\\bsmith\r\n".encode(encoding))
    (leak,) = find_leaks_in_file(tmp_path / "log.txt")
    assert (leak.line, leak.kind) == (2, Kind.HOME_PATH)


def test_bytes_that_are_no_text_are_searched_too() -> None:
    (leak,) = find_leaks(b"\x00\xff\xfe" + made("ghp" + "_", 36).encode() + b"\x00\x80")
    assert leak.kind is Kind.TOKEN and leak.excerpt.isprintable()


def test_many_leaks_in_one_long_line_are_found_quickly() -> None:
    begin = time.process_time()
    assert len(find_leaks("/home/bsmith/x " * 20_000)) == 20_000
    assert time.process_time() - begin < 3


def test_no_more_leaks_are_looked_for_than_are_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "/home/bsmith/x\n" * 1000
    assert [leak.line for leak in find_leaks(text, limit=3)] == [1, 2, 3]
    assert len(find_leaks(text, limit=5000)) == 1000
    monkeypatch.setattr(privacy, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(privacy, "OVERLAP_BYTES", 512)
    read: list[int] = []
    search = privacy._all_spans
    monkeypatch.setattr(privacy, "_all_spans", lambda text, known: read.append(1) or search(text, known))
    assert len(find_leaks(text, limit=10)) == 10
    assert len(read) == 1


@pytest.mark.parametrize("unit", ["token=", "api_key=", "--password ", "HF_TOKEN:", "token='", 'secret="x'])
def test_a_text_of_assignments_without_an_end_is_read_once(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = unit * 20_000
    matched = [0]
    match_end = secret_shapes._match_end

    def counted(pattern: re.Pattern[bytes], data: bytes, start: int, end: int) -> int:
        found = match_end(pattern, data, start, end)
        matched[0] += found - start
        return found

    monkeypatch.setattr(secret_shapes, "_match_end", counted)
    find_leaks(text, limit=1)
    assert matched[0] <= 2 * len(text)


BUSY = {"an assignment": "token= ", "a home folder": "/home/bsmith/ ", "a name": "annab ", "a login": "x://users:"}


@pytest.mark.parametrize("unit", BUSY.values(), ids=BUSY)
@pytest.mark.parametrize("door", ["text", "file", "folder", "masked"])
def test_a_text_that_keeps_the_search_busy_ends_it_at_every_door(
    unit: str, door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    search = privacy._all_spans
    for name in ("BLOCK_BYTES", "OVERLAP_BYTES"):
        monkeypatch.setattr(privacy, name, getattr(privacy, name) // 64)
    monkeypatch.setattr(
        privacy, "_all_spans", lambda text, known: searched.append(len(text.data)) or search(text, known)
    )
    monkeypatch.setattr(privacy, "MAX_PLACES", 5000)
    monkeypatch.setattr(privacy, "FOLDER_PLACES", 5000)
    monkeypatch.setattr(privacy, "Budget", lambda most=5000: Budget(most))
    text = unit * 100_000
    path = tmp_path / "busy.txt"
    path.write_text(text)
    (tmp_path / "later.txt").write_text(text)
    if door == "masked":
        assert privacy.masked(text, ANNA) == privacy.MASK
    else:
        leaks = {"text": lambda: find_leaks(text, ANNA), "file": lambda: find_leaks_in_file(path, ANNA)}
        found = leaks[door]() if door in leaks else [one.leak for one in find_leaks_in_folder(tmp_path, ANNA)]
        assert found[-1].kind is Kind.NOT_SEARCHED
        assert [leak.kind for leak in found].count(Kind.NOT_SEARCHED) == 1
    assert sum(searched) < 200_000


def test_a_budget_is_for_all_the_texts_that_are_searched_with_it() -> None:
    budget = Budget(100)
    assert find_leaks("token= " * 80, budget=budget) == ()
    (leak,) = find_leaks("token= " * 80, budget=budget)
    assert str(leak) == (
        "line 1: text that is too slow to search: more than 100 places that could be secrets, so the search ended here"
    )
    assert len(find_leaks("fine", budget=budget)) == 1


def test_names_that_are_no_utf_8_are_looked_for_and_looked_at() -> None:
    known = PrivateNames(users=("anna\udcff",), public=("org\udce9",), secrets=("pass\udc80word",))
    assert [leak.kind for leak in find_leaks("by anna\udcff", known)] == [Kind.USER_NAME]
    assert [leak.kind for leak in find_leaks(b"is pass\x80word", known)] == [Kind.OWN_SECRET]
    assert find_leaks("org\udce9 of half a \ud800", known) == ()


def test_an_excerpt_masks_its_neighbours_too() -> None:
    first, _ = find_leaks("HF_TOKEN=sesame1 CM_PASSWORD=sesame2")
    assert first.excerpt == "HF_TOKEN=******** CM_PASSWORD=********"


def test_general_short_and_public_names_are_not_looked_for() -> None:
    anna = Person(
        user="annab", host="annas-box.lan", home="/home/annab/", emails=("a@b.org", "", "a@b.org"), public=("AnnaB",)
    )
    assert known_of(anna, {"HF_TOKEN": "q9w8e7", "HF_HOME": "abcdefgh", "X_TOKEN": "1"}) == PrivateNames(
        users=(),
        hosts=("annas-box.lan", "annas-box"),
        homes=("/home/annab",),
        emails=("a@b.org",),
        secrets=("q9w8e7",),
        public=("AnnaB",),
    )
    assert known_of(Person(user="bob", host="x1", home=""), {}) == PrivateNames(users=("bob",)), "x1 is too short"
    root = known_of(Person(user="root", host="vm", home="/root"), {})
    assert root == PrivateNames(homes=("/root",))
    assert [leak.kind for leak in find_leaks("cd /root", root)] == [Kind.HOME_PATH]
    assert find_leaks("as root in a/root and b", root) == ()


def test_names_and_folders_can_be_public_and_secrets_cannot() -> None:
    known = PrivateNames(users=("annab",), homes=("/root",), secrets=("hunter2",), public=("/root", "ANNAB", "hunter2"))
    assert find_leaks("annab in /root/.cache and /root", known) == ()
    assert [leak.kind for leak in find_leaks("/home/annab/x hunter2", known)] == [Kind.HOME_PATH, Kind.OWN_SECRET]


def test_this_machine_can_be_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("USER", "annab")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GITHUB_TOKEN", "q9w8e7r6")
    monkeypatch.setenv("KAGGLE_KEY", "0123456789abcdef")
    known = privacy.known_here(("anna@x.org",))
    assert known.users == ("annab",) and known.homes == (str(tmp_path),)
    assert {"q9w8e7r6", "0123456789abcdef"} <= set(known.secrets)


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "token", "CM_GH_TOKEN", "api_key", "APIKEY", "private_key", "passwd", "DB_PASSPHRASE"),
        *("client_secret", "AWS_SECRET_ACCESS_KEY", "CREDENTIALS", "credential"),
        *("max_tokens", "KEY", "public_key", "TOKENIZER", "monkey", "key_password_file", "sekret"),
        *("HF_TOKEN_2", "PGPASSWORD", "AWS_ACCESS_KEY_ID", "ACCESS_ID", "subscription-key", "x.hf-token", "TOKEN_B64"),
        *("PASS", "DB_PASS", "BYPASS", "NOPASSWD", "PATH", "OLDPWD", "SSH_AUTH_SOCK", ""),
    ],
)
def test_secret_names_are_those_of_the_engine(name: str) -> None:
    assert is_secret_name(name) == is_secret(name)


def test_every_word_of_the_engine_makes_a_name_secret_or_ordinary_here_too() -> None:
    names = [name for word in secrets._LAST_WORDS for name in (word, f"x_{word}", f"{word}S", f"NO{word}")]
    for words in (secrets._WORDS_BEFORE, secrets._ORDINARY_BEFORE):
        names += [f"X_{before}_{last}" for last in words for before in (*words[last], "OTHER")]
    assert [name for name in names if is_secret_name(name) != is_secret(name)] == []


def test_the_engine_and_the_search_know_the_same_tokens() -> None:
    assert secret_shapes.TOKEN_SHAPES == TOKEN_SHAPES


@pytest.mark.parametrize("secret", [secret for secret, _ in SECRETS], ids=[secret[:6] for secret, _ in SECRETS])
def test_tokens_are_those_that_the_engine_keeps_out_of_its_lines(secret: str) -> None:
    assert holds_secret("notes", f"made with {secret}") and holds_secret("url", f"https://{secret}@x.org/y")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_is_harmless_for_the_engine_too(text: str) -> None:
    assert not holds_secret("notes", text) or "://user:password@" in text or "<token>" in text


def test_names_are_words_in_the_program_but_tokens_and_homes_are_leaks_there_too(tmp_path: Path) -> None:
    program = tmp_path / "open" / "ACME" / "src" / "resnet50" / "box" / "script" / "run"
    program.mkdir(parents=True)
    (program / "a.py").write_text("limit = max(1, 2)\n")
    known = PrivateNames(users=("max",), homes=("/home/max",))
    assert find_leaks_in_folder(tmp_path, known) == ()
    (program / "b.py").write_text("FOLDER = '/home/max/runs'\n")
    (tmp_path / "open" / "ACME" / "notes.txt").write_text("made by max\n")
    assert [found.path for found in find_leaks_in_folder(tmp_path, known)] == [
        "open/ACME/notes.txt", "open/ACME/src/resnet50/box/script/run/b.py",
    ]  # fmt: skip
