"""One loopback server for all model calls of a run."""

from steeltrap.harness.gateway.backend import Backend, BackendError, Call, Embedder, Local, Vectors
from steeltrap.harness.gateway.meter import Meter
from steeltrap.harness.gateway.server import Gateway

__all__ = ["Backend", "BackendError", "Call", "Embedder", "Gateway", "Local", "Meter", "Vectors"]
