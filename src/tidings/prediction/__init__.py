"""The answer to which share arrives in time: by theory where it is good enough, else simulated."""
