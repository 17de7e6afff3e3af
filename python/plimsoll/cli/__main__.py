"""`python -m plimsoll.cli`.

The same program as `plimsoll`, for a checkout that is not installed.
"""

from plimsoll.cli import main

main()
