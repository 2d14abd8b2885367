"""What chapters of the book compute and draw beside what they teach: one module per idea.

A chapter's module bears its name (``main-tables.md``: ``drocox.chapters.main_tables``). Where a
chapter has more than one idea, each has a module that begins with this name, such as
``main_tables_observations``. They hold the numbers that the chapter's sentences need (``tell``
hands them to the page), the guards that hold sentences to these numbers, and drawings that are
longer than what they show. What a chapter teaches stays in the chapter. Nothing else imports these
modules.
"""
