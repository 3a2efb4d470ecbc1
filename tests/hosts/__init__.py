"""Several hosts on one machine, for tests of a real cluster: namespaces, sshd, links with delay."""

from tests.hosts.hosts import Host, Hosts, why_not

__all__ = ["Host", "Hosts", "why_not"]
