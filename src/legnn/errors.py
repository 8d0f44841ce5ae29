"""The one exception a user's mistake raises."""


class InputError(ValueError):
    """What the user gave cannot be used.

    The message is one sentence that names the file, column, row or node and says what would have been right.
    The command line prints it alone and exits with code 2.
    """
