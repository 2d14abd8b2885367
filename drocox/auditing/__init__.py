"""The audit of any survival model: predictions in, measures by group with intervals, a page out.

:func:`drocox.audit` is in :mod:`drocox.auditing.audit`, its command in :mod:`drocox.auditing.cli`.
"""
