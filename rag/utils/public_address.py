"""Where a name that a user gave leads to, and whether a server may be asked to go there. Addresses of this host and of
the networks around it are refused, also where they hide inside an address of IPv6.

Whoever connects must use the addresses found here, and not look the name up again: the second answer may be another."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from common.errors import InvalidInput, Outage

_NAT64 = IPv6Network("64:ff9b::/96")
_PORTS = {"http": 80, "https": 443}
_LONGEST_URL = 2048


@dataclass(frozen=True)
class Target:
    """An address as it is asked for: `path` with its query, `authority` as the Host header has it."""

    is_https: bool
    host: str
    port: int
    authority: str
    path: str


def target_of(url: str) -> Target:
    """Raises InvalidInput for what is no plain address of a web server."""
    if not (url.isascii() and url.isprintable()) or " " in url or len(url) > _LONGEST_URL:
        raise InvalidInput(f"should be at most {_LONGEST_URL} characters of ASCII, without blanks")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as exc:
        raise InvalidInput(f"is no address: {exc}") from exc
    if parts.scheme not in _PORTS or not host or port == 0:
        raise InvalidInput("should be an address such as https://host/path")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("should hold no user and no password: check the signature instead")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme == "https", host, port or _PORTS[parts.scheme], parts.netloc, path)


def require_public_literal(target: Target) -> None:
    """Raises InvalidInput for a number that is refused. What a name leads to is found out when it is used."""
    try:
        address = ip_address(target.host)
    except ValueError:
        return
    if not is_public(address):
        raise InvalidInput("should not be a private address")


def addresses_of(target: Target, *, allow_private: bool) -> list[str]:
    """What the name stands for now. Raises InvalidInput where one of them is refused, Outage where there is none."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise Outage("can't be reached: its host is not known") from exc
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not allow_private and not all(is_public(ip_address(address)) for address in addresses):
        # Which one it is stays unsaid: names inside are not for everybody to look up.
        raise InvalidInput("its host is a private address, and webhooks.allow_private is off")
    return addresses


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether it is on the open internet; of one that carries another inside, that other decides."""
    inner = _inside(address)
    if inner is not None:
        return is_public(inner)
    if isinstance(address, IPv6Address) and address.is_site_local:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_link_local)


def _inside(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The address of IPv4 that this host, or a gateway on the way, turns this one into."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
