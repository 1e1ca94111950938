"""Where data comes from: a wheel of the package index, the hub, an archive."""
