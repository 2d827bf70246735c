"""Empirical lower bounds on epsilon, set beside what a mechanism claims."""

from tacit.auditing.auditor import AuditReport, MethodBound, Target, audit_target

__all__ = ["AuditReport", "MethodBound", "Target", "audit_target"]
