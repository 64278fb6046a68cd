"""Carries out a push from beginning to end: look, compare, show, and when asked commit and push.

A push that the other side moved under (its branch got commits meanwhile) is made anew upon the new commit, once, unless
those commits changed files that the push changes too: then nobody but the user can decide.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .changes import Blob, Changes, compare, conflicts, render
from .content import Content
from .gitwork import Branch, GitError, RejectedError, Repository

MAX_LINES = 200


class PushError(Exception):
    """A push that did not happen; the text says what is as before and how to go on."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(f"{text}\nhint: {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the user asked for; `command` is the line that repeats it without pushing, for hints."""

    content: Content
    branch: str
    message: str
    is_push: bool
    is_pruning: bool
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How it ended: `commit` is the pushed commit, or the one that has everything already, None in a dry run."""

    branch: Branch
    changes: Changes
    commit: str | None
    is_pushed: bool


def work(repository: Repository, order: Order, tell: Callable[[str], None]) -> Outcome:
    """Do what was asked; `tell` gets the lines for the user. Raises PushError and GitError."""
    content = order.content
    author = _author(repository, order)
    branch = repository.find_branch(order.branch)
    state = "new" if branch.is_new else f"at {str(branch.tip)[:12]}"
    tell(f"Repository: {repository.address()}, branch {branch.name} ({state})")
    tell(f"Submission: {', '.join(content.roots)}, {len(content.files)} files")
    if content.left_out:
        tell(f"Left out:   {', '.join(content.left_out)} (only <division>/<submitter> is pushed)")
    tell(f"Commit:     by {author}: {order.message.splitlines()[0]}")
    blobs = repository.keep_files(content)
    there = repository.listing(branch.tip, content.roots)
    changes = compare(content, blobs, there, is_pruning=order.is_pruning)
    for line in render(changes, MAX_LINES):
        tell(line)
    if not changes and not branch.is_new:
        tell("Nothing to do: the repository is up to date.")
        return Outcome(branch=branch, changes=changes, commit=branch.tip, is_pushed=False)
    seen = repository.seen(branch.name)
    is_moved = seen and branch.tip and seen != branch.tip  # an empty repository has nothing of others
    theirs = conflicts(changes, repository.listing(seen, content.roots), there) if is_moved else ()
    if theirs and order.is_push:
        raise _conflict(theirs, f"since you looked last (commit {str(seen)[:12]})", order)
    if theirs:
        tell(f"Note: others changed {len(theirs)} of these files since you looked last: {', '.join(theirs[:5])}")
    if not order.is_push:
        if branch.tip:
            repository.note_seen(branch.name, branch.tip)
        return Outcome(branch=branch, changes=changes, commit=None, is_pushed=False)
    return _push(repository, order, blobs, Outcome(branch=branch, changes=changes, commit=None, is_pushed=True))


def _author(repository: Repository, order: Order) -> str:
    try:
        return repository.author()
    except GitError as error:
        if not order.is_push:
            return "not set: configure user.name and user.email (git config --global ...)"
        commands = 'git config --global user.name "YOUR NAME" && git config --global user.email YOU@EXAMPLE.ORG'
        raise PushError(str(error).splitlines()[0], commands) from error


def _push(repository: Repository, order: Order, blobs: dict[str, Blob], planned: Outcome) -> Outcome:
    branch, changes = planned.branch, planned.changes
    for is_last in (False, True):
        tree = repository.tree_of(branch.tip, changes, blobs)
        commit = repository.commit(tree, branch.tip, order.message)
        try:
            repository.push(commit, branch.name)
        except RejectedError as error:
            if is_last or not error.is_behind:
                raise _rejected(error, order) from error
            branch, changes = _made_anew(repository, order, blobs, Outcome(
                branch=branch, changes=changes, commit=None, is_pushed=True))  # fmt: skip
        except GitError as error:
            text = (
                f"{error}\nIt is unknown whether the commit arrived. No other changes were made, locally or remotely."
            )
            raise PushError(text, f"the same command again finds out and goes on: {order.command} --push") from error
        else:
            repository.note_seen(branch.name, commit)
            return Outcome(branch=branch, changes=changes, commit=commit, is_pushed=True)
        if not changes:
            return Outcome(branch=branch, changes=changes, commit=branch.tip, is_pushed=False)
    raise AssertionError("the second try ends by returning or raising")


def _made_anew(repository: Repository, order: Order, blobs: dict[str, Blob], former: Outcome) -> tuple[Branch, Changes]:
    """The push upon what the branch has become meanwhile. Raises PushError for a conflict."""
    branch = repository.find_branch(former.branch.name)
    roots = order.content.roots
    before, now = (repository.listing(tip, roots) for tip in (former.branch.tip, branch.tip))
    theirs = conflicts(former.changes, before, now)
    if theirs:
        raise _conflict(theirs, "while you were pushing", order)
    return branch, compare(order.content, blobs, now, is_pruning=order.is_pruning)


def _conflict(theirs: tuple[str, ...], when: str, order: Order) -> PushError:
    shown = [*theirs[:20], *([f"and {len(theirs) - 20} more"] if len(theirs) > 20 else [])]
    text = "\n  ".join([f"conflict: these files changed upstream {when}, so no files were pushed:", *shown])
    return PushError(text, f"see what would change now, then push: {order.command}")


def _rejected(error: RejectedError, order: Order) -> PushError:
    if error.is_behind:
        text = f"the branch moved twice while you were pushing, so no files were pushed:\n{error}"
        return PushError(text, f"try again: {order.command} --push")
    text = f"the repository refused the push and was not changed:\n{error}"
    return PushError(
        text, f"see its message above. Another branch may be allowed: {order.command} --branch=NAME --push"
    )


def record(repository: Repository, content: Content, outcome: Outcome) -> dict[str, Any]:
    """Return the push as state for CM's answer."""
    changes = outcome.changes
    return {
        "format": 1,
        "repository": repository.address(),
        "branch": outcome.branch.name,
        "branch_is_new": outcome.branch.is_new,
        "base_commit": outcome.branch.tip,
        "commit": outcome.commit,
        "is_pushed": outcome.is_pushed,
        "submitter": content.submitter,
        "added": [{"path": file.path, "size_bytes": file.size_bytes} for file in changes.added],
        "changed": [{"path": file.path, "size_bytes": file.size_bytes} for file in changes.changed],
        "removed": list(changes.removed),
        "same": changes.same,
        "stays": changes.stays,
        "left_out": list(content.left_out),
    }
