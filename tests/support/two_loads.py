"""A run of two loads on a modelled array, an online store and a file server, of half a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plimsoll import build_plan, qualify


def two_loads(place: Path, **changes: Any) -> Path:
    """Carry it out in virtual time; returns its folder."""
    content: dict[str, Any] = {
        "name": "two loads",
        "seed": 3,
        "target": [{"name": "array", "modelled": "nearline-raid6"}],
        "instance": [
            {"name": "shop", "backend": "store", "store_size": "10MB"},
            {"name": "share", "backend": "files", "files": 1, "file_mib": 256},
        ],
        "workload": [
            {
                "name": "orders",
                "instances": ["shop"],
                "think_s": 0.5,
                "load": {"users": 40},
            },
            {
                "name": "files",
                "instances": ["share"],
                "pattern": "file-server",
                "load": {"users": 50, "iops_per_user": 0.7},
            },
        ],
        "phase": [
            {"kind": "prepare"},
            {"kind": "measure", "duration_s": 60},
            {"kind": "stop"},
        ],
    }
    return qualify(build_plan({**content, **changes}), place).folder
