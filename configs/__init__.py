"""Hydra groups: system, script, reader, embedder, experiment."""
