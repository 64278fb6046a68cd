"""The words of `--power_command`: a program that prints the power of the measured machine. It is started without a
shell, so that no part of the text can start another program."""

import os
import shlex
import shutil
from pathlib import Path

_OPERATORS = frozenset(("|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"))
_SCRIPT = "Write it into a script, and give the script's path"


def power_words(text: str, folder: Path) -> tuple[str, ...]:
    """Return the program, as an absolute path, and its arguments. A relative path counts from `folder`, a name is
    looked for in PATH. Raises ValueError with the reason if it cannot be started."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"found {text!r}: {str(error).lower()}. Close the quotation") from error
    if not words:
        raise ValueError("it is empty; allowed: a program that prints one number of watts per line")
    found = [word for word in words if word in _OPERATORS or word.startswith(("$(", "`")) or word.endswith(";")]
    if found:
        raise ValueError(f"found {text!r}: it is not run by a shell, so that {found[0]!r} has no effect. {_SCRIPT}")
    name = os.path.expanduser(words[0])
    program = shutil.which(name) if "/" not in name else shutil.which(os.path.normpath(folder / name))
    if program is None:
        is_file = "/" in name and (folder / name).is_file()
        why = f"is not executable. Run: chmod +x {shlex.quote(str(folder / name))}" if is_file else "was not found"
        raise ValueError(f"the program {name} {why}")
    return (program, *words[1:])
