# The lectures are no nbgrader course: assignments/ is, with a configuration of its own. `make lab` shows this file to
# nbgrader, which warns where it finds none.
