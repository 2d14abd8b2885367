"""What chapters of the book compute and draw beside what they teach: one module per chapter.

A chapter's module bears its name (``main-tables.md``: ``drocox.chapters.main_tables``). It holds
the numbers that the chapter's sentences need (``tell`` hands them to the page), the guards that
hold sentences to these numbers, and drawings that are longer than what they show. What a chapter
teaches stays in the chapter. Nothing else imports these modules.
"""
