"""The audit of any survival model: predictions in, figures by group with intervals, one page out.

:func:`drocox.audit` is in :mod:`drocox.auditing.audit`, its command in :mod:`drocox.auditing.cli`.
"""
