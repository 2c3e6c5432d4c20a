"""Listeners fit together, or the sentence says why not."""

from __future__ import annotations

import pytest

from millstream.settings import Endpoint, Endpoints, Settings, SettingsError, Voter, bootstrap_servers, quorum_voters

COMBINED = {
    "listeners": "CLIENTS://0.0.0.0:9092,CONTROLLER://[::1]:9093",
    "listener.security.protocol.map": "clients:plaintext,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "advertised.listeners": "CLIENTS://broker.example:19092",
}


def endpoints(**changes: str) -> Endpoints:
    return Endpoints.of(Settings({**COMBINED, **{name.replace("_", "."): value for name, value in changes.items()}}))


def test_a_node_without_any_settings_listens_for_clients() -> None:
    found = Endpoints.of(Settings())
    assert found.broker == (Endpoint("PLAINTEXT", "", 9092, "PLAINTEXT"),)
    assert (found.controller, found.advertised, found.inter_broker) == ((), (), "PLAINTEXT")


def test_listeners_are_sorted_by_what_they_are_for() -> None:
    found = endpoints()
    assert found.broker == (Endpoint("CLIENTS", "0.0.0.0", 9092, "PLAINTEXT"),)
    assert found.controller == (Endpoint("CONTROLLER", "::1", 9093, "PLAINTEXT"),)
    assert found.advertised == (Endpoint("CLIENTS", "broker.example", 19092, "PLAINTEXT"),)
    assert str(found.controller[0]) == "CONTROLLER://[::1]:9093"


def test_other_nodes_are_told_what_is_advertised_for_controllers() -> None:
    found = endpoints(advertised_listeners="CLIENTS://broker.example:19092,CONTROLLER://broker.example:19093")
    assert [str(endpoint) for endpoint in found.advertised_controller] == ["CONTROLLER://broker.example:19093"]
    assert [str(endpoint) for endpoint in found.advertised] == ["CLIENTS://broker.example:19092"]


def test_an_advertised_address_may_leave_the_host_to_the_client() -> None:
    assert endpoints(advertised_listeners="CLIENTS://:19092").advertised[0].host == ""


def test_ipv4_and_ipv6_may_share_a_port() -> None:
    assert len(endpoints(listeners="CLIENTS://127.0.0.1:9092,CONTROLLER://[::1]:9092").broker) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"listeners": "localhost:9092"}, "it takes NAME://host:port"),
        ({"listeners": "CLIENTS://:9092,OTHER://:1"}, "add OTHER:PLAINTEXT there"),
        ({"listeners": "CLIENTS://:70000"}, "a port lies between 0 and 65535"),
        ({"listeners": "CLIENTS://:1,CLIENTS://:2"}, "names CLIENTS twice"),
        ({"listeners": "CLIENTS://:1,CONTROLLER://:1"}, "on the same port"),
        ({"listeners": "CONTROLLER://:1"}, "leaves no listener for clients"),
        ({"listener_security_protocol_map": "CLIENTS:TLS"}, "PROTOCOL being one of PLAINTEXT, SSL"),
        ({"listener_security_protocol_map": "A:SSL,A:SSL"}, "names A twice"),
        ({"inter_broker_listener_name": "PEERS"}, "inter.broker.listener.name is PEERS, whose protocol is missing"),
        ({"inter_broker_listener_name": "CONTROLLER"}, "cannot be both"),
        ({"security_inter_broker_protocol": "SSL"}, "Set only one of"),
        ({"advertised_listeners": "CLIENTS://0.0.0.0:1"}, "nobody can dial that"),
        ({"advertised_listeners": "CLIENTS://a:1,CLIENTS://b:1"}, "advertised.listeners names CLIENTS twice"),
        ({"process_roles": "broker"}, "process.roles does not include controller"),
        ({"process_roles": "controller"}, "A node that is only a controller has only listeners"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError) as refused:
        endpoints(**changes)
    assert sentence in str(refused.value)


def test_a_controller_without_listeners_is_told_what_it_needs_and_not_what_it_never_said() -> None:
    with pytest.raises(SettingsError) as refused:
        Endpoints.of(Settings({"process.roles": "controller", "controller.listener.names": "QUORUM"}))
    (sentence,) = refused.value.sentences
    assert sentence.startswith("A node that is only a controller needs listeners")
    assert sentence.endswith("for example listeners=QUORUM://:9093.")


def test_voters_and_bootstrap_servers_are_typed() -> None:
    settings = Settings({"controller.quorum.voters": "1@a:9093,2@[::1]:9094"})
    assert quorum_voters(settings) == (Voter(1, "a", 9093), Voter(2, "::1", 9094))
    assert bootstrap_servers(Settings({"controller.quorum.bootstrap.servers": "a:1,b:2"})) == (("a", 1), ("b", 2))
    with pytest.raises(SettingsError, match="names a voter twice"):
        quorum_voters(Settings({"controller.quorum.voters": "1@a:1,1@b:1"}))
