"""The finished run that the tests of the report use, too."""

from tests.report.conftest import published

__all__ = ["published"]
