"""Which addresses a server may be sent to by a user."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from common.errors import InvalidInput
from rag.utils.public_address import is_public, target_of


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "192.0.2.1", "198.18.0.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12:3456::1", "ff02::1",
        "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:a00:1::1", "fec0::1",
    ],
)  # fmt: skip
def test_what_is_not_on_the_open_internet_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"]
)
def test_what_is_on_it_is_not(address: str) -> None:
    assert is_public(ip_address(address))


def test_an_address_is_taken_apart() -> None:
    target = target_of("https://Hooks.example:8443/a/b?c=d#e")
    assert (target.is_https, target.host, target.port) == (True, "hooks.example", 8443)
    assert (target.authority, target.path) == ("Hooks.example:8443", "/a/b?c=d")
    plain = target_of("http://[2606:4700::1111]")
    assert (plain.is_https, plain.host, plain.port, plain.path) == (False, "2606:4700::1111", 80, "/")


@pytest.mark.parametrize(
    "url", ["", "hooks.example", "//hooks.example", "file:///etc/passwd", "http://", "http://[::1", "http://a:b/"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        target_of(url)
