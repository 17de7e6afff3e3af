"""Accounts of mail servers that a run of this machine works with, so that no other does meanwhile.

A server of mail has no locks that go with their owner, so they are names among the kernel's
sockets, as those of directories are. Runs of other machines are not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from plimsoll.documents.run_spec import MailInstance, RunSpec
from plimsoll.files import claims
from plimsoll.files.folder import FolderError


@contextmanager
def kept(run: RunSpec) -> Iterator[None]:
    """Keep other runs on this machine from the accounts of the mail servers of a run.

    Raises:
        FolderError: another run works with some of them.
    """
    with ExitStack() as stack:
        for instance in run.instances:
            if not isinstance(instance, MailInstance):
                continue
            numbers = range(instance.first_account, instance.first_account + instance.accounts)
            for place in sorted({endpoint.imap for endpoint in instance.databases}):
                claim = claims.claim_numbers(f"{place} {instance.login}", numbers)
                if claim is None:
                    raise FolderError(
                        f"another run works with accounts of {instance.name} at {place}; stop it "
                        f"first or take other accounts, nothing was changed"
                    )
                stack.enter_context(claim)
        yield
