"""What is offered to brokers, and how long it waits there."""
