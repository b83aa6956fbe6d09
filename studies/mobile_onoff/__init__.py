"""The experiments of the mobile-peers paper: response times of queues that come and go."""
