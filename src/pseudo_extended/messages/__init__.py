"""Messages for the user, each with a code, a severity and a sentence, from one place."""

from pseudo_extended.messages import kinds as kinds
from pseudo_extended.messages.kinds import KINDS as KINDS
from pseudo_extended.messages.kinds import recall as recall
from pseudo_extended.messages.message import Kind as Kind
from pseudo_extended.messages.message import Message as Message
from pseudo_extended.messages.message import Severity as Severity
