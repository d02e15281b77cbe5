"""What every configuration model shares: frozen, nothing unknown, counts with their bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]


class Section(BaseModel):
    """Base of every configuration model: frozen, and a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
