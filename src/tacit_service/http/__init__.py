"""The collector over HTTP: API v1, its limits, its tokens, its metrics."""
