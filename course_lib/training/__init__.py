"""What training has in common in every framework: where a run is, when it ends, what it keeps."""
