"""From a log to columns: `parse.reader.read_log` is the door, `parse.grammar` the reference for every line."""
