"""The one simulator of publish/subscribe systems."""
