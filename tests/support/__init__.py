"""What tests share: import it as `from tests.support.backends import TORCH`, from whatever folder."""
