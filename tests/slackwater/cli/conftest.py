from __future__ import annotations

from tests.support.fake_host import host

__all__ = ["host"]
