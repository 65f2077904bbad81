"""A message: a sentence for the user, with a code that the documentation explains and a severity."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

Severity = Literal["note", "warning", "severe"]
"""A note is for information; a warning says what limits the numbers; after a severe one they must not be used."""

PAGE = "docs/howto/warnings.md"
"""Where every code is explained."""


class Message(str):
    """A sentence that knows its code and severity: a string, so that it prints, joins and compares as one.

    >>> message = Message("the chains disagree.", code="PE201", severity="severe")
    >>> print(message, message.code, message.severity)
    the chains disagree. PE201 severe
    >>> [message]
    [<PE201: the chains disagree.>]
    """

    code: str
    severity: Severity

    def __new__(cls, text: str, *, code: str, severity: Severity) -> "Message":
        """A string with two attributes."""
        message = super().__new__(cls, text)
        message.code, message.severity = code, severity
        return message

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, str]]:  # for pickle and copy
        return (str(self),), {"code": self.code, "severity": self.severity}

    def __repr__(self) -> str:
        """Show the code too, where a tuple of messages is displayed."""
        return f"<{self.code}: {self}>"

    def line(self) -> str:
        """The sentence with its code in front, as a printed result shows it."""
        return f"{self.code}: {self}"


@dataclass(frozen=True)
class Kind:
    """One kind of message: its code, and the sentence that its facts are put into.

    >>> kind = Kind("PE999", "warning", "few draws", "{draws} draws of a chain are too few.")
    >>> kind(draws=3).line()
    'PE999: 3 draws of a chain are too few.'
    >>> kind.says("7 draws of a chain are too few."), kind.says("all is well.")
    (True, False)
    """

    code: str
    severity: Severity
    title: str
    """A few words, the heading of its section in the documentation."""
    template: str

    def __call__(self, **facts: Any) -> Message:
        """The message about these facts."""
        return Message(self.template.format(**facts), code=self.code, severity=self.severity)

    def says(self, text: str) -> bool:
        """Whether `text` is a sentence of this kind: a store keeps sentences, and no codes."""
        return self._pattern.fullmatch(text) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        fixed = re.split(r"\{[^{}]*\}", self.template)
        return re.compile(".*".join(map(re.escape, fixed)), re.DOTALL)
