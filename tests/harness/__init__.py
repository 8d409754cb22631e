"""What the tests share: fixtures with their expectations, and variants of them."""
