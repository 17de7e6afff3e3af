"""One measured figure: what, how much, against which bar, by which command."""

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Figure:
    """A row of the table. `met` is None where no bar was set."""

    section: str
    name: str
    value: str
    bar: str
    met: bool | None
    command: str
    load_average: float
    remark: str = ""
    data: dict[str, object] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """For the record."""
        return asdict(self)

    def row(self) -> str:
        """For the table."""
        met = {True: "met", False: "**missed**", None: "no bar"}[self.met]
        return f"| {self.name} | {self.value} | {self.bar} | {met} | {self.load_average:.1f} |"
