import os

# `make nightly` sets it: all of what `make test` takes a part of, because another test or case shows the same.
NIGHTLY = bool(os.environ.get("DELTA_CDC_NIGHTLY"))
