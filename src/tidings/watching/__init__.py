"""A running system under watch: what was promised, what is measured, what to expect."""
