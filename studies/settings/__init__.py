"""What each study can be asked for: light to import, so that help is there at once."""
