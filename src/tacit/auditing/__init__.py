"""Empirical lower bounds on epsilon, set beside what a mechanism claims."""

from tacit.auditing.auditor import Target, audit_target
from tacit.auditing.findings import AuditReport, MethodBound

__all__ = ["AuditReport", "MethodBound", "Target", "audit_target"]
