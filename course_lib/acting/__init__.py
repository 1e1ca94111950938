"""From predictions to what is done: episodes, and worlds to act in."""
