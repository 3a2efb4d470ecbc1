"""Sources: Arrow blocks in, batches with times and promises out."""

from slackwater.runtime.sources.spec import (
    END_OF_INPUT,
    EndOfInput,
    Input,
    SourceReader,
    SourceSpec,
)

__all__ = [
    "END_OF_INPUT",
    "EndOfInput",
    "Input",
    "SourceReader",
    "SourceSpec",
]
