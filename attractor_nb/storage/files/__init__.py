"""Files: the seam to the operating system, durable writes, strict JSON, what lies below a folder."""
