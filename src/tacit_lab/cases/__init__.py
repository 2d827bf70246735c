"""Two worlds that people care about, and what privacy costs in them."""
