"""Bad input by the hundred thousand: spoilt documents for every reader that people's files meet."""
