"""Gymnasium: its tables read, its environments played, and our problems as its own."""
