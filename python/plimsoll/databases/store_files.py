"""Files of SQLite that a run of this machine works with, so that no other does meanwhile.

SQLite lets several programs work on one file, and each run would find the orders of the other in
its audit. So a file is claimed as directories are. Runs of other machines are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from plimsoll.documents.run_spec import RunSpec, StoreClientInstance
from plimsoll.files import claims
from plimsoll.files.folder import FolderError


@contextmanager
def kept(run: RunSpec) -> Iterator[None]:
    """Keep other runs on this machine from the files of SQLite of a run.

    Raises:
        FolderError: another run works with one of them.
    """
    with ExitStack() as stack:
        for instance in run.instances:
            if not isinstance(instance, StoreClientInstance) or instance.server is not None:
                continue
            file = Path(instance.directory) / instance.databases[0].file_name
            claim = claims.claim(file)
            if claim is None:
                raise FolderError(
                    f"{file} is in use; stop the run that works with it first, nothing was changed"
                )
            stack.enter_context(claim)
        yield
