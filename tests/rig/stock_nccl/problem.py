"""What ends the program: a message for a person and the exit code."""

FAILED = 1  # it ran and something failed
WRONG_INPUT = 2  # wrong usage or input
LACKS = 3  # the machine lacks something, or the packages cannot be reached


class Problem(Exception):
    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code = code
