"""Files that the user owns and names: sources that are mended, drawings that are kept."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from attractor_nb.errors import StorageError


def write_file(path: Path, text: str) -> None:
    """Write a text as ``write_bytes`` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file whole, or not at all; one that was there keeps its rights, a link its target.

    A pipe or a device is written to: another file in its place would take it from everybody.
    """
    place = path.resolve()
    temporary: Path | None = None
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            with path.open("wb") as target:
                target.write(data)
            return
        mode = place.stat().st_mode & 0o7777 if place.exists() else 0o666 & ~_creation_mask()
        with tempfile.NamedTemporaryFile("wb", dir=place.parent, prefix=f".{place.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
        temporary.chmod(mode)
        temporary.replace(place)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        reason = error.strerror or type(error).__name__
        raise StorageError(f"{path} cannot be written: {reason}", path=str(path)) from None


def _creation_mask() -> int:
    """The process's mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
