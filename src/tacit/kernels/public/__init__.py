"""Compiled formulas of what is public: planners and policies use these only."""
