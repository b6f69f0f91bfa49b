"""Packs scripts/gpu-check for a machine with a GPU, and proves here what can be proven of the packed tree."""
