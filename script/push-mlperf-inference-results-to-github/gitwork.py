"""Runs git for a push: the only module here that starts processes or changes a repository.

Commits are made without a working copy: files become blobs, a private index becomes a tree, the tree a commit. So a
kill at any instant leaves nothing half done, the user's own clone keeps its branch and its files, and files of others
are never downloaded. What git keeps of a push are two references: `refs/crowdperf/tip/<branch>`, what the branch was
when it was last fetched, and `refs/crowdperf/seen/<branch>`, what the user was last shown.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.privacy import PrivateNames, masked

from .changes import Blob, Changes
from .content import Content

LOCAL_TIMEOUT_S = 600
NETWORK_TIMEOUT_S = 7200
PATIENCE_S = 30
"""How long to wait for the lock: what a killed push started may still be ending."""

GONE = "0" * 40
HOME_REFS = "refs/crowdperf"
QUIET_CONFIG = ("-c", "gc.autoDetach=false", "-c", "maintenance.autoDetach=false", "-c", "advice.detachedHead=false")


class GitError(Exception):
    """A git command that failed; its text is masked. `hint` is empty where the connection may be the reason."""

    def __init__(self, what: str, told: str, hint: str = "") -> None:
        super().__init__(f"{what}: {told}" if told else what)
        self.hint = hint


class RejectedError(Exception):
    """The other side did not take a push; `is_behind` when its branch has commits that ours lacks."""

    def __init__(self, told: str, *, is_behind: bool) -> None:
        super().__init__(told)
        self.is_behind = is_behind


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of the other side: `tip` is its commit, None when the branch, or the whole repository, is still empty.

    `is_new` says that the branch has to be made; `tip` is then the commit that it begins at.
    """

    name: str
    tip: str | None
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A local repository (`folder` is its git folder) and the remote that it works with: a name or an address."""

    folder: Path
    remote: str
    known: PrivateNames
    environment: Mapping[str, str] = field(repr=False)
    lock_number: int = -1

    def git(self, what: str, *words: str, given: bytes | None = None, timeout_s: int = LOCAL_TIMEOUT_S) -> bytes:
        """Return what git wrote; `what` is what it was to do, for the error. Raises GitError."""
        done = self._run(words, given, timeout_s, what)
        if done.returncode != 0:
            raise GitError(what, self.mask(done.stderr))
        return done.stdout

    def _run(
        self, words: Iterable[str], given: bytes | None, timeout_s: int, what: str
    ) -> subprocess.CompletedProcess[bytes]:
        held = (self.lock_number,) if self.lock_number >= 0 else ()  # what outlives this process keeps the lock
        all_words = (*QUIET_CONFIG, f"--git-dir={self.folder}", *words)
        return _run(all_words, self.environment, what, given=given or b"", timeout_s=timeout_s, held=held)

    def mask(self, told: bytes) -> str:
        """Return what git said, for people."""
        return masked(told.decode("utf-8", "replace").strip(), self.known)

    def address(self) -> str:
        """Return the remote's address, for people."""
        told = self._run(("remote", "get-url", self.remote), None, LOCAL_TIMEOUT_S, "cannot read the clone")
        return self.mask(told.stdout if told.returncode == 0 else self.remote.encode())

    def author(self) -> str:
        """Return who commits, as `Name <e-mail>`. Raises GitError when git was not told."""
        found = self.git("git does not know who you are", "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT")
        return found.decode("utf-8", "replace").rpartition(" ")[0].rpartition(" ")[0]

    def find_branch(self, wanted: str) -> Branch:
        """Return the branch to push to, fetched; the main one when `wanted` is empty. Raises GitError."""
        what = "cannot read the repository"
        listed = self.git(what, "ls-remote", "--symref", "--", self.remote, timeout_s=NETWORK_TIMEOUT_S).decode()
        rows = [line.split("\t") for line in listed.splitlines() if "\t" in line]
        heads = {name.removeprefix("refs/heads/"): value for value, name in rows if name.startswith("refs/heads/")}
        main = next((value[5:].removeprefix("refs/heads/") for value, name in rows if value.startswith("ref: ")), "")
        name = wanted or main or (next(iter(heads)) if len(heads) == 1 else "main")
        self.git(f"{name} cannot be the name of a branch", "check-ref-format", f"refs/heads/{name}")
        source = name if name in heads else main if main in heads else ""
        if not source:
            if heads:
                told = f"its branches: {', '.join(sorted(heads))}. It does not report its main branch"
                raise GitError(f"there is no branch {name} to begin at", told)
            return Branch(name=name, tip=None, is_new=True)
        return Branch(name=name, tip=self._fetch(source), is_new=name not in heads)

    def _fetch(self, source: str) -> str:
        kept = f"{HOME_REFS}/tip/{source}"
        words = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--", self.remote)
        self.git("cannot fetch", *words, f"+refs/heads/{source}:{kept}", timeout_s=NETWORK_TIMEOUT_S)
        return self.git("cannot read the fetched data", "rev-parse", "--verify", kept).decode().strip()

    def seen(self, branch: str) -> str | None:
        """Return the commit of a branch that the user was last shown."""
        words = ("for-each-ref", "--format=%(objectname)", f"{HOME_REFS}/seen/{branch}")
        return self.git("cannot read the references", *words).decode().strip() or None

    def note_seen(self, branch: str, commit: str) -> None:
        """Remembers what the user was shown."""
        self.git("cannot write a reference", "update-ref", f"{HOME_REFS}/seen/{branch}", commit)

    def listing(self, commit: str | None, roots: Iterable[str]) -> dict[str, Blob]:
        """Return what a commit has below some folders."""
        if commit is None:
            return {}
        told = self.git("cannot list the commit", "ls-tree", "-r", "-z", commit, "--", *(f"{root}/" for root in roots))
        found = {}
        for row in told.decode("utf-8", "surrogateescape").split("\0"):
            if row:
                facts, _, path = row.partition("\t")
                mode, _, digest = facts.split(" ")
                found[path] = Blob(mode, digest)
        return found

    def keep_files(self, content: Content) -> dict[str, Blob]:
        """Put the files of a submission into the repository, byte for byte, and return what they became."""
        paths = "".join(f"{content.root / file.path}\n" for file in content.files).encode("utf-8", "surrogateescape")
        words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
        digests = self.git("cannot keep the files", *words, given=paths).decode().split()
        return {file.path: Blob(file.mode, digest) for file, digest in zip(content.files, digests, strict=True)}

    def tree_of(self, tip: str | None, changes: Changes, blobs: Mapping[str, Blob]) -> str:
        """Return the tree that `tip` becomes."""
        index = self.folder / "crowdperf-index"
        for left in (index, index.with_name(index.name + ".lock")):  # of a killed push; the lock is ours
            left.unlink(missing_ok=True)
        inner = replace(self, environment={**self.environment, "GIT_INDEX_FILE": str(index)})
        rows = [f"0 {GONE}\t{path}" for path in changes.removed]
        rows += [f"{blobs[file.path].mode} {blobs[file.path].digest}\t{file.path}" for file in changes.added]
        rows += [f"{blobs[file.path].mode} {blobs[file.path].digest}\t{file.path}" for file in changes.changed]
        given = "".join(f"{row}\0" for row in rows).encode("utf-8", "surrogateescape")
        try:
            inner.git("cannot read the commit", "read-tree", *([tip] if tip else ["--empty"]))
            inner.git("cannot put the files in their places", "update-index", "-z", "--index-info", given=given)
            return inner.git("cannot write the tree", "write-tree", "--missing-ok").decode().strip()
        finally:
            index.unlink(missing_ok=True)

    def commit(self, tree: str, tip: str | None, message: str) -> str:
        """Return a commit; nothing refers to it until it is pushed."""
        parent = ["-p", tip] if tip else []
        words = ("-c", "user.useConfigOnly=true", "commit-tree", tree, *parent, "-F", "-")
        return self.git("cannot commit", *words, given=message.encode()).decode().strip()

    def push(self, commit: str, branch: str) -> None:
        """Push one commit. Raises RejectedError, or GitError when nobody knows whether it arrived."""
        words = ("push", "--porcelain", "--no-recurse-submodules", "--", self.remote, f"{commit}:refs/heads/{branch}")
        done = self._run(words, None, NETWORK_TIMEOUT_S, "cannot push")
        if done.returncode == 0:
            return
        told = self.mask(done.stderr)
        refused = next((line for line in done.stdout.decode("utf-8", "replace").splitlines() if line[:1] == "!"), "")
        if not refused:
            raise GitError("cannot push", told)
        is_behind = any(word in refused for word in ("(fetch first)", "(non-fast-forward)", "(stale info)"))
        raise RejectedError(told, is_behind=is_behind or "cannot lock ref" in refused)


def _run(
    words: Iterable[str],
    environment: Mapping[str, str],
    what: str,
    *,
    given: bytes = b"",
    timeout_s: int = LOCAL_TIMEOUT_S,
    held: tuple[int, ...] = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end, whatever its exit code; `held` are open files that it keeps open. Raises GitError."""
    try:
        return subprocess.run(
            ["git", *words],
            input=given,
            capture_output=True,
            env=environment,
            pass_fds=held,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitError(what, "git is not installed", "sudo apt-get install git") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(what, f"git did not end in {timeout_s} s") from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold the lock of a git folder; yields the number of the open file. Raises GitError when another push has it."""
    in_use = GitError(f"another push works in {folder.name}", "", "wait until it finishes, or stop it")
    with file_lock(folder / "crowdperf-push.lock", in_use, patience_s=PATIENCE_S) as number:
        for left in (folder / HOME_REFS).rglob("*.lock"):  # git's own, of a killed push
            left.unlink(missing_ok=True)
        yield number


def process_environment(environ: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git: no questions, English, paths as they are, no other repository's settings."""
    dropped = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX")
    kept = {name: value for name, value in environ.items() if name not in dropped}
    kept.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    kept.setdefault("GIT_ASKPASS", "true")  # answers nothing, so that a missing password is an error at once
    fixed = {"GIT_TERMINAL_PROMPT": "0", "GIT_LITERAL_PATHSPECS": "1", "LC_ALL": "C"}
    return {**kept, **fixed, **more}


def emails(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the addresses that git was told for the user's commits, here and in any other folder."""
    try:
        told = _run(("config", "--get-all", "user.email"), environment, "cannot read git's settings").stdout
    except GitError:
        told = b""
    return (environment.get("GIT_AUTHOR_EMAIL", ""), *told.decode("utf-8", "replace").split())


def folder_of_clone(path: Path, environment: Mapping[str, str]) -> Path:
    """Return the git folder of a clone. Raises GitError when `path` is none."""
    what = f"{path} is not a clone of a git repository"
    done = _run(("-C", str(path), "rev-parse", "--absolute-git-dir"), environment, what)
    if done.returncode != 0:
        raise GitError(what, "", "git clone ADDRESS makes one")
    return Path(os.fsdecode(done.stdout).rstrip("\n"))


def remote_of_clone(folder: Path, environment: Mapping[str, str]) -> str:
    """Return the remote that a clone pushes to: that of its branch, else the only one. Raises GitError."""
    alone = Repository(folder=folder, remote="", known=PrivateNames(), environment=environment)
    names = alone.git("cannot read the clone", "remote").decode().split()
    head = alone._run(("symbolic-ref", "--quiet", "HEAD"), None, LOCAL_TIMEOUT_S, "").stdout.decode().strip()
    own = alone._run(("for-each-ref", "--format=%(push:remotename)", head), None, LOCAL_TIMEOUT_S, "").stdout.decode()
    for name in (own.strip(), "origin", *(names if len(names) == 1 else ())):
        if name in names:
            return name
    raise GitError(
        f"{folder.parent} has no remote to push to", f"it has: {', '.join(names) or 'none'}", "name it: --repo_url"
    )
