"""The checks of scripts/gpu-check, one file a subject."""
