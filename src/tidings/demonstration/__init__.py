"""The main job from end to end on a sample system: traces to report."""
