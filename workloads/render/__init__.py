"""From ops to language: turns and questions in varied, natural wordings."""

from steeltrap.workloads.render.renderer import Renderer
from steeltrap.workloads.render.surface import Surface

__all__ = ["Renderer", "Surface"]
