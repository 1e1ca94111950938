"""Sound to what a model reads: the spectrogram of Whisper."""
