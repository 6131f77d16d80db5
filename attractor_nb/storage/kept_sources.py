"""The texts of the pipelines that a run and its children execute, as its directory keeps them.

It does not know what they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.storage.child_directories import keep_source
from attractor_nb.storage.files.atomic import write_whole
from attractor_nb.storage.run_directory import SOURCE_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.storage.files.disk import Disk
    from attractor_nb.storage.run_directory import RunDirectory


def write_sources(
    disk: Disk, root: RunDirectory, text: str, child_texts: Mapping[str, str], *, is_synced: bool
) -> None:
    """Write the source of a run, and those of its children by the places of their runs."""
    data = text.encode("utf-8", "surrogatepass")
    write_whole(disk, root.descriptor, SOURCE_NAME, data, directory=root.path, is_synced=is_synced)
    for home, child_text in child_texts.items():
        keep_source(disk, root.path / home, child_text, is_synced=is_synced)


def source_of(root: RunDirectory) -> str:
    """The source of a run that this process owns."""
    return (root.path / SOURCE_NAME).read_bytes().decode("utf-8", "surrogatepass")
