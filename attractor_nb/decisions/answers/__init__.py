"""Which answers are accepted: choices, forms, schemas, and the complaint about one that is not."""
