"""One loopback server for all model calls of a run."""

from steeltrap.harness.gateway.backend import Backend, BackendError, Call, Embedder, Local
from steeltrap.harness.gateway.server import Gateway

__all__ = ["Backend", "BackendError", "Call", "Embedder", "Gateway", "Local"]
