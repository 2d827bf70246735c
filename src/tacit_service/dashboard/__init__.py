"""The dashboard: what a privacy officer and an operator want to see, from public numbers only."""

from tacit_service.dashboard.page import router

__all__ = ["router"]
