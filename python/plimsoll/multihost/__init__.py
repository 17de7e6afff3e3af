"""Several hosts at once: each has carried out a run of its own, and here their folders become one
result.

    reading    which folders, of which hosts, and what forbids to add them up
    overlap    when all of them measured, on one clock
    together   the figures of each host in that time, and of all
    verdicts   the worst result, with every check and its host
    combined   the folder that holds all of it: made, and made again
    page       the report

Nothing here touches a storage or another machine: whoever runs the test copies the folders to one
place.
"""

from plimsoll.multihost.combined_folder import combine, judge_again, read
from plimsoll.multihost.reading import CombineError

__all__ = ["CombineError", "combine", "judge_again", "read"]
