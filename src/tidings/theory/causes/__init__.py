"""What keeps events from being on time: a cost for each cause on the paths of each subscriber."""
