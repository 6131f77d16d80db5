"""The log of a run and who may write it: records, lock, fence, ownership."""
