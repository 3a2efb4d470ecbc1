"""Ask over UDP for the offset of a source's clock; add it to rows."""
