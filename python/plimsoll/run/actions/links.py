"""`link down`: a network interface is taken down and up again, in a namespace or on the machine.

Taking it down makes the kernel forget routes that somebody added and IPv6 addresses (kernel
documentation, ip-sysctl, keep_addr_on_down); both are read before and set again. The interface of
the default route is refused on the machine itself, also below the bridge, bond or VLAN that has
that route, because whoever controls the run would be cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.documents.ready_actions import ReadyAction, Step
from plimsoll.run.actions.disks import printed
from plimsoll.run.actions.surroundings import ActionError, Prepared, Surroundings

#: Words about the present state of a route that cannot be set.
_STATE = ("linkdown", "dead", "offload", "notify")


def link_down(action: ReadyAction, here: Surroundings) -> Prepared:
    """The steps that take an interface down and up again.

    Raises:
        ActionError: there is no such interface, or the default route goes over it.
    """
    here.need_root()
    ip = [here.tool("ip", "iproute2")]
    link = action.link or ""
    if action.namespace is not None:
        ip += ["-netns", action.namespace]
    (line, *_) = printed([*ip, "-o", "link", "show", "dev", link], f"there is no link {link}")
    if "UP" not in line.partition("<")[2].partition(">")[0].split(","):
        raise ActionError(f"link {link} is down already")
    routes = _routes(ip, link)
    for device in [] if action.namespace else [link, *_uppers(link, here)]:
        if any(words[0] == "default" for _, words in _routes(ip, device)):
            above = "" if device == link else f"{device}, which lies on "
            raise ActionError(
                f"{above}link {link}{',' * bool(above)} has the default route; it is taken down "
                f"only in a namespace"
            )
    addresses = [
        found.split()[3]
        for found in printed([*ip, "-o", "-6", "address", "show", "dev", link, "scope", "global"])
    ]
    show = [*ip, "-o", "link", "show", "dev", link]
    return Prepared(
        apply=[Step(kind="run", argv=[*ip, "link", "set", "dev", link, "down"])],
        prove=[Step(kind="shows", argv=show, text="state DOWN")],
        undo=[
            Step(kind="run", argv=[*ip, "link", "set", "dev", link, "up"]),
            *(
                Step(kind="run", argv=[*ip, "-6", "address", "replace", address, "dev", link])
                for address in addresses
            ),
            *(
                Step(kind="run", argv=[*ip, kind, "route", "replace", *words, "dev", link])
                for kind, words in routes
            ),
        ],
    )


def _uppers(link: str, here: Surroundings) -> list[str]:
    """The bridges, bonds and VLANs above an interface, and those above them."""
    found, waiting = list[str](), [link]
    while waiting:
        place = here.sys / "class/net" / waiting.pop()
        names = (path.name.removeprefix("upper_") for path in sorted(place.glob("upper_*")))
        new = [name for name in names if name not in (link, *found)]
        found += new
        waiting += new
    return found


def _routes(ip: Sequence[str], link: str) -> list[tuple[str, list[str]]]:
    """The routes over an interface that the kernel did not make itself, IPv4 and IPv6."""
    found = []
    for kind in ("-4", "-6"):
        for line in printed([*ip, kind, "route", "show", "dev", link]):
            words = [word for word in line.split() if word not in _STATE]
            if "kernel" not in words and "ra" not in words:
                found.append((kind, words))
    return found
