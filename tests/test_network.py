"""The way to a server, from the environment: the hosts that are this machine, and the values that cannot be used."""

import pytest

from attractor_nb.network import (
    SOCKS_PROXIES,
    WEB_PROXIES,
    certificate_fault,
    is_local,
    is_this_machine,
    proxy_fault,
    proxy_variables,
)

HERE = (
    "127.0.0.1",
    "127.1.2.3",
    "::1",
    "[::1]",
    "::ffff:127.0.0.1",
    "localhost",
    "LocalHost.",
    "a.localhost",
    "0.0.0.0",
    "::",
)
ELSEWHERE = (
    "10.0.0.1",
    "::ffff:10.0.0.1",
    "example.org",
    "localhost.example.org",
    "notlocalhost",
    "127.0.0.1.example.org",
    "",
)


@pytest.mark.parametrize("host", HERE)
def test_this_machine_is_known_by_its_names_and_numbers(host):
    assert is_this_machine(host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_no_other_host_is_this_machine(host):
    assert not is_this_machine(host)


def test_an_address_is_local_by_its_host_alone():
    assert is_local("http://user@localhost:8080/v1")
    assert is_local("https://[::1]:8080")
    assert not is_local("https://example.org/?at=http://127.0.0.1")
    assert not is_local("https://127.0.0.1@example.org/")
    assert not is_local("")
    assert not is_local("http://[::1")


def test_small_letters_count_before_capitals_also_where_they_are_empty():
    environment = {"HTTPS_PROXY": "http://a:1", "https_proxy": "", "ALL_PROXY": "http://b:2"}
    assert proxy_variables(environment, ("http", "https", "all")) == [("ALL_PROXY", "http://b:2")]


@pytest.mark.parametrize(
    "value", ["http://proxy:3128", "https://ann:pw@proxy", "proxy:3128", "127.0.0.1:9", "http://[::1]:3128", ""]
)
def test_a_usable_proxy_is_no_fault(value):
    assert proxy_fault({"https_proxy": value}, ("https",), WEB_PROXIES) is None


def test_a_socks_proxy_is_one_for_a_client_that_speaks_to_it():
    environment = {"all_proxy": "socks5h://proxy:1080"}
    assert proxy_fault(environment, ("all",), WEB_PROXIES | SOCKS_PROXIES) is None
    fault = proxy_fault(environment, ("all",), WEB_PROXIES)
    assert fault is not None
    assert "httpx2[socks]" in fault.hint
    assert proxy_fault(environment, ("http",), WEB_PROXIES) is None, "a client that does not read it does not mind"


@pytest.mark.parametrize(
    "value", ["socks://proxy:1", "ftp://proxy", "http://", "http://proxy:port", "http://[proxy", "http://proxy:0"]
)
def test_what_is_no_proxy_is_a_fault_that_names_the_variable(value):
    fault = proxy_fault({"HTTPS_PROXY": value}, ("https",), WEB_PROXIES | SOCKS_PROXIES)
    assert fault is not None
    assert fault.message.startswith(f"the environment variable HTTPS_PROXY is {value}, ")


ENTRIES = (
    "*",
    "",
    "localhost",
    ".example.org",
    "*.x",
    "127.0.0.0/8",
    "::1",
    "[::1]:80",
    "fe80::/10",
    "h:80",
    "http://h",
    "<local>",
    "/var/run/x.sock",
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_of_no_proxy_that_names_hosts_or_nothing_at_all_is_no_fault(entry):
    assert proxy_fault({"http_proxy": "http://a:1", "no_proxy": f"x, {entry} ,y"}, ("http",), WEB_PROXIES) is None


@pytest.mark.parametrize("entry", ["[::1", "::1]", "a b", "h:port", "x:y:z", "[h]", "http://[x", "a\x07"])
def test_an_entry_of_no_proxy_that_cannot_be_read_is_a_fault_where_there_is_a_proxy(entry):
    environment = {"http_proxy": "http://a:1", "NO_PROXY": f"localhost,{entry}"}
    fault = proxy_fault(environment, ("http",), WEB_PROXIES)
    assert fault is not None
    assert fault.variable == "NO_PROXY"
    assert repr(entry) in fault.problem
    assert proxy_fault({**environment, "http_proxy": ""}, ("http",), WEB_PROXIES) is None


def test_certificates_that_are_not_there_are_a_fault(tmp_path):
    (tmp_path / "ca.pem").touch()
    whole = {
        "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
        "SSL_CERT_DIR": "/nowhere",
        "SSLKEYLOGFILE": str(tmp_path / "log"),
    }
    assert certificate_fault(whole) is None, "the folder does not count beside the file"
    for name in whole:
        fault = certificate_fault({name: "/nowhere/x"})
        assert fault is not None
        assert fault.variable == name
        assert certificate_fault({name: ""}) is None
