"""The campaign against faults: broken inputs, kills, races and a soak, whose counts are in `docs/reliability.md`."""
