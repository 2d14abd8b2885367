"""Makes the folder of a course one of nbgrader, which runs this file and gives it `get_config`."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "drocox"
c.CourseDirectory.source_directory = "notebooks"
c.ClearSolutions.enabled = False  # there are none, and the stubs shall stay
c.Execute.timeout = 300
