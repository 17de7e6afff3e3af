"""The campaign of power cuts itself."""

import threading
from pathlib import Path

from tests.powercut.campaign import Campaign


def test_an_interrupted_campaign_waits_for_nobody(tmp_path: Path) -> None:
    """Ctrl-C before the work under test has called its witness.

    The campaign must end, not wait for a call that never comes.
    """

    def interrupted() -> None:
        try:
            with Campaign(tmp_path, 1).witness():
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass

    thread = threading.Thread(target=interrupted, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive(), "it still waits for the work"
