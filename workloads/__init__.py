"""Scripts with their truth inside: ops, world, families, rendering and composition."""
