"""Whether the kernel takes this machine's wall clock to be kept in step with others, and how far
off it may be.

From adjtimex(2), which anybody may ask: a daemon of NTP, PTP or a hypervisor tells the kernel that
it keeps the clock, and with which error at most. A clock that is kept without telling the kernel
counts as not in step; where the call is forbidden, as in some containers, nothing is known.
"""

from __future__ import annotations

import ctypes

from plimsoll.documents.environment import WallClock

#: STA_UNSYNC of the kernel's timex.h: nobody keeps the clock.
_UNSYNCHRONISED = 0x0040
_WORD = ctypes.c_long


class _Timex(ctypes.Structure):
    """`struct timex` of 64-bit Linux up to the last field that is looked at, and room for the
    rest.
    """

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", _WORD),
        ("frequency", _WORD),
        ("error_us_max", _WORD),
        ("error_us_estimated", _WORD),
        ("status", ctypes.c_int),
        ("rest", _WORD * 32),
    ]


def wall_clock() -> WallClock:
    """Whether the clock is synchronised and its largest error in ms; None for what is not known."""
    state = _Timex()
    try:
        answer = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state))
    except (OSError, AttributeError):
        answer = -1
    if answer < 0:
        return {"synchronised": None, "error_ms_max": None}
    return {
        "synchronised": not state.status & _UNSYNCHRONISED,
        "error_ms_max": state.error_us_max / 1000,
    }
